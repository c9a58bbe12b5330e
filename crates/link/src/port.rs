//! One direction of a link, on any clock and for packets of any kind.

use std::collections::VecDeque;

use suimon_algorithms::queue::{Backlog, DropReason, Dropped, Ecn, Packet, QueueDiscipline};
use suimon_algorithms::registry::{Queue, build_queue};
use suimon_algorithms::{Probe, RandomStream};
use suimon_model::{Capacity, Link};
use suimon_units::{Bytes, Duration, Instant};

use crate::server::Service;
use crate::transmitter::Transmitter;

/// A packet on its way over a link.
pub trait Transit: Packet + Send + 'static {
    /// The time at which the packet joined the queue; in flight, the time at which it reaches the far end.
    fn time(&self) -> Instant;
    /// Sets that time.
    fn set_time(&mut self, time: Instant);
    /// True where the packet bore a mark when it came to the queue.
    fn came_marked(&self) -> bool;
}

/// The driver of a port, which learns the fate of the port's packets.
pub trait Observer<P> {
    /// A packet has left the queue after it `waited`, to be transmitted as `service` says. `newly_marked` packets bear a
    /// mark that they did not bear on arrival.
    fn on_sent(&mut self, packet: &P, service: Service, waited: Duration, newly_marked: bool);

    /// The backlog from `now` on.
    fn on_backlog(&mut self, now: Instant, backlog: Backlog);

    /// The list of packets that were dropped or lost, to which the port adds.
    fn dropped(&mut self) -> &mut Vec<Dropped<P>>;

    /// Packets may have been dropped or lost at `now`.
    fn on_dropped(&mut self, _now: Instant) {}

    /// The arrival of a packet at the far end, where some packets take longer than the link's delay, which gives
    /// `arrival`.
    fn delayed(&self, _packet: &P, arrival: Instant) -> Instant {
        arrival
    }

    /// A packet is in flight, and reaches the far end at the time that it bears.
    fn on_departure(&mut self, packet: P);
}

/// A queue, the transmitter that empties it, and the impairments behind it.
///
/// A driver offers packets and asks for due events. The port does everything at its own time, even if the driver asks
/// late, so that lateness takes nothing from the link's rate.
#[derive(Debug)]
pub struct Port<P> {
    transmitter: Transmitter,
    /// The driver has stopped transmission.
    held: bool,
    queue: Box<dyn QueueDiscipline<P>>,
    /// A packet that need not wait need not be shown to the queue.
    idle_passes: bool,
    /// Packets in the queue that it can be asked for.
    waiting: usize,
    /// Packets in the queue that it did not give when asked; the next arrival lets it be asked again.
    withheld: usize,
    /// Packets that a radio holds, in order.
    on_air: VecDeque<P>,
}

/// The queue of `link`, empty. Its randomness derives from `seed` and the link's name.
#[must_use]
pub fn queue_of<P: Packet + Send + 'static>(link: &Link, seed: u64) -> Queue<P> {
    build_queue(&link.queue, link.buffer, RandomStream::new(seed, &format!("link {} queue", link.name)))
}

impl<P: Transit> Port<P> {
    /// The port of `link`, empty. Randomness derives from `seed` and the link's name.
    #[must_use]
    pub fn new(link: &Link, seed: u64) -> Self {
        Self::with_queue(Transmitter::new(link, seed), queue_of(link, seed).into_discipline())
    }

    /// A port with this transmitter and queue.
    #[must_use]
    pub fn with_queue(transmitter: Transmitter, queue: Box<dyn QueueDiscipline<P>>) -> Self {
        let mut port = Self {
            transmitter,
            held: false,
            queue,
            idle_passes: false,
            waiting: 0,
            withheld: 0,
            on_air: VecDeque::new(),
        };
        port.adapt(Instant::ZERO);
        port
    }

    /// See [`Transmitter::set_capacity`].
    pub fn set_capacity(&mut self, now: Instant, capacity: &Capacity) {
        self.transmitter.set_capacity(now, capacity);
        self.adapt(now);
    }

    /// The sending end.
    #[inline(always)]
    #[must_use]
    pub fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// Changes the propagation delay of packets that are sent from now on.
    pub fn set_delay(&mut self, delay: Duration) {
        self.transmitter.set_delay(delay);
    }

    /// Begins no transmission until [`release`](Self::release).
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Sends again, from `now` on.
    pub fn release(&mut self, now: Instant) {
        if std::mem::take(&mut self.held) {
            self.transmitter.wait_until(now);
        }
    }

    /// The backlog.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Tells the queue's inner values.
    pub fn probe(&self, out: &mut dyn Probe) {
        self.queue.probe(out);
    }

    /// The number of waiting packets that can be sent.
    #[inline(always)]
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// When the first that waits can be sent; the end of time where none waits.
    #[inline(always)]
    #[must_use]
    pub fn next_turn(&self) -> Instant {
        if self.waiting > 0 && !self.held { self.transmitter.free_at() } else { Instant::MAX }
    }

    /// Takes in a packet that comes at the time it bears. All that was due before has been done.
    // Forced, here and on the rest of the way over a link: as calls they take 8 % more instructions.
    #[inline(always)]
    pub fn offer(&mut self, packet: P, observer: &mut impl Observer<P>) {
        let now = packet.time();
        let idle = now >= self.transmitter.free_at() && !self.held;
        if idle && self.idle_passes {
            self.transmit(now, packet, observer);
            return;
        }
        if self.transmitter.rate_varies() {
            self.tell_rate(now);
        }
        let dropped_before = observer.dropped().len();
        self.queue.enqueue(now, packet, observer.dropped());
        self.waiting += 1 + std::mem::take(&mut self.withheld);
        self.waiting -= observer.dropped().len() - dropped_before;
        observer.on_dropped(now);
        if idle {
            self.send_next(now, observer);
        }
        observer.on_backlog(now, self.queue.backlog());
    }

    /// Sends the packets that have their turn by `now`, each at its time.
    #[inline(always)]
    pub fn proceed(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        while self.waiting > 0 && self.transmitter.free_at() <= now && !self.held {
            let turn = self.transmitter.free_at();
            self.send_next(turn, observer);
            observer.on_backlog(turn, self.queue.backlog());
        }
    }

    /// Gives the next packet to the radio that serves the link, and returns the bytes that it takes.
    pub fn hand_over(&mut self, now: Instant, observer: &mut impl Observer<P>) -> Option<Bytes> {
        let next = self.dequeue(now, observer);
        observer.on_backlog(now, self.queue.backlog());
        let packet = next?;
        let cost = self.transmitter.cost(packet.size());
        Self::tell_sent(&packet, Service { starts: now, ends: now }, observer);
        self.on_air.push_back(packet);
        Some(cost)
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub fn carried(&mut self, at: Instant, observer: &mut impl Observer<P>) {
        if let Some(packet) = self.on_air.pop_front() {
            self.propagate(at, packet, observer);
        }
    }

    /// The radio has given up the oldest of its packets at `now`.
    pub fn not_carried(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        if let Some(packet) = self.on_air.pop_front() {
            observer.dropped().push(Dropped { packet, reason: DropReason::Link });
            observer.on_dropped(now);
        }
    }

    /// Loses at `now` all packets that wait or that a radio holds.
    pub fn lose_all(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        // The cut takes what the queue withheld, too.
        self.waiting += std::mem::take(&mut self.withheld);
        while self.waiting > 0 {
            let packet = self.dequeue(now, observer);
            observer.dropped().extend(packet.map(|packet| Dropped { packet, reason: DropReason::Link }));
        }
        let held = self.on_air.drain(..);
        observer.dropped().extend(held.map(|packet| Dropped { packet, reason: DropReason::Link }));
        observer.on_dropped(now);
        observer.on_backlog(now, self.queue.backlog());
    }

    /// The capacity is another from `now` on.
    fn adapt(&mut self, now: Instant) {
        self.idle_passes = self.queue.capabilities().idle_passes || self.transmitter.is_unlimited();
        self.tell_rate(now);
    }

    /// Tells the queue the rate, where it is new.
    #[cold]
    fn tell_rate(&mut self, now: Instant) {
        if let Some(rate) = self.transmitter.new_rate(now) {
            self.queue.on_link_rate(now, rate);
        }
    }

    #[inline(always)]
    fn send_next(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        if let Some(packet) = self.dequeue(now, observer) {
            self.transmit(now, packet, observer);
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant, observer: &mut impl Observer<P>) -> Option<P> {
        let dropped_before = observer.dropped().len();
        let next = self.queue.dequeue(now, observer.dropped());
        let gone = observer.dropped().len() - dropped_before + usize::from(next.is_some());
        self.waiting -= gone;
        observer.on_dropped(now);
        if gone == 0 {
            self.withheld += std::mem::take(&mut self.waiting);
        }
        next
    }

    #[inline(always)]
    fn transmit(&mut self, turn: Instant, packet: P, observer: &mut impl Observer<P>) {
        let service = self.transmitter.send(turn, packet.time() < turn, packet.size());
        Self::tell_sent(&packet, service, observer);
        self.propagate(service.ends, packet, observer);
    }

    #[inline(always)]
    fn tell_sent(packet: &P, service: Service, observer: &mut impl Observer<P>) {
        let waited = service.starts.saturating_since(packet.time());
        let newly_marked = packet.ecn() == Ecn::CongestionExperienced && !packet.came_marked();
        observer.on_sent(packet, service, waited, newly_marked);
    }

    /// Puts a packet that left at `departure` in flight, where it is not lost.
    #[inline(always)]
    fn propagate(&mut self, departure: Instant, mut packet: P, observer: &mut impl Observer<P>) {
        let arrival = observer.delayed(&packet, departure + self.transmitter.delay());
        match self.transmitter.impair(departure, arrival) {
            Some(arrival) => {
                packet.set_time(arrival);
                observer.on_departure(packet);
            }
            None => {
                observer.dropped().push(Dropped { packet, reason: DropReason::Link });
                observer.on_dropped(departure);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::queue::FlowId;

    use super::*;

    #[derive(Debug)]
    struct Parcel(Instant);

    impl Packet for Parcel {
        fn size(&self) -> Bytes {
            Bytes::new(1_500)
        }
        fn flow(&self) -> FlowId {
            FlowId(0)
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotCapable
        }
        fn mark_congestion_experienced(&mut self) {}
    }

    impl Transit for Parcel {
        fn time(&self) -> Instant {
            self.0
        }
        fn set_time(&mut self, time: Instant) {
            self.0 = time;
        }
        fn came_marked(&self) -> bool {
            false
        }
    }

    /// A queue that gives nothing when it is first asked.
    #[derive(Debug, Default)]
    struct Reluctant {
        packets: VecDeque<Parcel>,
        asked: bool,
    }

    impl QueueDiscipline<Parcel> for Reluctant {
        fn enqueue(&mut self, _: Instant, packet: Parcel, _: &mut Vec<Dropped<Parcel>>) {
            self.packets.push_back(packet);
        }
        fn dequeue(&mut self, _: Instant, _: &mut Vec<Dropped<Parcel>>) -> Option<Parcel> {
            if std::mem::replace(&mut self.asked, true) { self.packets.pop_front() } else { None }
        }
        fn backlog(&self) -> Backlog {
            let packets = self.packets.len() as u64;
            Backlog { packets, bytes: Bytes::new(1_500 * packets) }
        }
    }

    #[derive(Debug, Default)]
    struct Counts {
        dropped: Vec<Dropped<Parcel>>,
        backlog: Backlog,
    }

    impl Observer<Parcel> for Counts {
        fn on_sent(&mut self, _: &Parcel, _: Service, _: Duration, _: bool) {}
        fn on_backlog(&mut self, _: Instant, backlog: Backlog) {
            self.backlog = backlog;
        }
        fn dropped(&mut self) -> &mut Vec<Dropped<Parcel>> {
            &mut self.dropped
        }
        fn on_departure(&mut self, _: Parcel) {}
    }

    #[test]
    fn a_cut_takes_what_the_queue_withheld() {
        let transmitter = Transmitter::at(&Capacity::Rate(suimon_units::Rate::from_bps(1_000_000)));
        let mut port = Port::with_queue(transmitter, Box::new(Reluctant::default()));
        let mut counts = Counts::default();
        port.offer(Parcel(Instant::ZERO), &mut counts);
        assert_eq!((port.waiting(), port.backlog().packets), (0, 1), "it is withheld");
        port.lose_all(Instant::ZERO, &mut counts);
        assert_eq!((counts.dropped.len(), counts.backlog.packets), (1, 0));
    }
}
