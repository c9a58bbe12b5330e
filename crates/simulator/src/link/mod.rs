//! A unidirectional link: queue, server, and the packets in flight on it.

pub(crate) mod capacity;

use std::collections::VecDeque;

use suimon_algorithms::RandomStream;
use suimon_algorithms::queue::{DropReason, Dropped, Ecn, QueueDiscipline};
use suimon_algorithms::registry::build_queue;
use suimon_scenario::{self as scenario, Capacity, Loss, Reordering};
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::capacity::Server;
use crate::events::{Event, EventQueue};
use crate::measure::QueueMeter;
use crate::packet::Frame;

/// A link.
#[derive(Debug)]
pub(crate) struct Link {
    index: u32,
    server: Server,
    delay: Duration,
    impairments: Option<Box<Impairments>>,
    queue: Box<dyn QueueDiscipline<Frame>>,
    /// A packet that need not wait need not be shown to the queue.
    idle_passes: bool,
    queue_has_timer: bool,
    /// What the queue was last told of the rate, where that changes.
    rate_told: Option<Rate>,
    /// Packets in the queue.
    waiting: usize,
    /// The packet in transmission has left by then.
    free_at: Instant,
    /// A [`Event::LinkFree`] is scheduled.
    waiting_for_free: bool,
    /// Packets that a radio holds, in order.
    on_air: VecDeque<Frame>,
    /// Packets between transmission and arrival, by arrival.
    in_flight: VecDeque<Frame>,
    /// When the next [`Event::LinkArrival`] that counts happens; events at other times are stale.
    next_arrival: Instant,
    next_wakeup: Option<Instant>,
    pub(crate) meter: Option<Box<QueueMeter>>,
}

/// What a link does to packets beside delaying them.
#[derive(Debug)]
struct Impairments {
    loss: Loss,
    in_bad_state: bool,
    jitter: Duration,
    reordering: Option<Reordering>,
    latest_arrival: Instant,
    random: RandomStream,
}

impl Link {
    pub(crate) fn new(index: u32, link: &scenario::Link, seed: u64) -> Self {
        let random = |what: &str| RandomStream::new(seed, &format!("link {} {what}", link.name));
        let impaired = link.loss != Loss::None || link.jitter != Duration::ZERO || link.reordering.is_some();
        let mut queue: Box<dyn QueueDiscipline<Frame>> =
            build_queue(&link.queue, link.buffer, random("queue"));
        let server = Server::new(&link.capacity);
        let by_radio = matches!(server, Server::Radio);
        let rate = server.rate_at(Instant::ZERO);
        if let Some(rate) = rate {
            queue.on_link_rate(Instant::ZERO, rate);
        }
        Self {
            index,
            rate_told: matches!(server, Server::Steps(_)).then_some(rate).flatten(),
            server,
            delay: link.delay,
            impairments: impaired.then(|| {
                Box::new(Impairments {
                    loss: link.loss,
                    in_bad_state: false,
                    jitter: link.jitter,
                    reordering: link.reordering,
                    latest_arrival: Instant::ZERO,
                    random: random("impairments"),
                })
            }),
            idle_passes: queue.idle_passes() || link.capacity == Capacity::Rate(Rate::MAX),
            queue_has_timer: queue.has_timer(),
            queue,
            waiting: 0,
            // A radio takes packets when it wants, so such a link is never free by itself.
            free_at: if by_radio { Instant::MAX } else { Instant::ZERO },
            waiting_for_free: false,
            on_air: VecDeque::new(),
            in_flight: VecDeque::new(),
            next_arrival: Instant::MAX,
            next_wakeup: None,
            meter: link.reported.then(|| Box::new(QueueMeter::new(link))),
        }
    }

    /// Takes a packet in. What the queue drops goes to `dropped`.
    // Forced, here and on the rest of the way over a link: as calls they take 8 % more instructions.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        mut frame: Frame,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        frame.time = now;
        frame.was_marked = frame.ecn == Ecn::CongestionExperienced;
        self.catch_up(now, events, dropped);
        let idle = now >= self.free_at;
        if idle && self.idle_passes {
            self.transmit(now, frame, events, dropped);
            return;
        }
        if self.rate_told.is_some() {
            self.tell_rate(now);
        }
        let dropped_before = dropped.len();
        self.queue.enqueue(now, frame, dropped);
        self.waiting += 1;
        self.waiting -= dropped.len() - dropped_before;
        if idle {
            self.send_next(now, events, dropped);
        } else if self.waiting == 1 && matches!(self.server, Server::Radio) {
            events.schedule(now, Event::RadioWaiting, self.index);
        }
        self.keep_going(events);
        self.observe(now, events);
    }

    /// Tells the queue where the rate has changed.
    #[cold]
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.server.rate_at(now);
        if let Some(rate) = rate.filter(|_| rate != self.rate_told) {
            self.rate_told = Some(rate);
            self.queue.on_link_rate(now, rate);
        }
    }

    /// The packet in transmission has left.
    pub(crate) fn on_free(
        &mut self,
        now: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        self.waiting_for_free = false;
        self.catch_up(now, events, dropped);
    }

    /// Sends what waits and had its turn by `now`, each packet at the time of its turn. Nobody looks at
    /// a queue between arrivals at one of its ends, so that is when this happens, and no event is needed
    /// for it.
    #[inline(always)]
    pub(crate) fn catch_up(
        &mut self,
        now: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        while self.waiting > 0 && self.free_at <= now {
            let turn = self.free_at;
            self.send_next(turn, events, dropped);
            self.observe(turn, events);
        }
        self.keep_going(events);
    }

    /// Makes sure that somebody looks again while packets wait: when the next one arrives, or else when
    /// the link is free.
    #[inline(always)]
    fn keep_going(&mut self, events: &mut EventQueue) {
        if self.waiting == 0 {
            return;
        }
        // A packet held back to be overtaken arrives too late to look after the others, and a queue with
        // timers is told the time as it passes.
        let arrivals_do = !self.in_flight.is_empty() && self.impairments.is_none() && !self.queue_has_timer;
        let looked_after = self.waiting_for_free || arrivals_do;
        if !looked_after {
            self.waiting_for_free = true;
            events.schedule(self.free_at, Event::LinkFree, self.index);
        }
    }

    /// The queue's own timer.
    pub(crate) fn on_wakeup(&mut self, now: Instant, events: &mut EventQueue) {
        if self.next_wakeup.is_some_and(|at| at <= now) {
            self.next_wakeup = None;
            self.queue.on_wakeup(now);
        }
        self.observe(now, events);
    }

    /// Gives the packet that arrives now and schedules the arrival of the one behind it; nothing where
    /// the event is stale.
    #[inline(always)]
    pub(crate) fn arrive(
        &mut self,
        now: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) -> Option<Frame> {
        if self.next_arrival != now {
            return None;
        }
        let frame = self.in_flight.pop_front();
        if let Some(next) = self.in_flight.front() {
            self.expect_arrival(next.time, events);
        } else {
            self.next_arrival = Instant::MAX;
            self.catch_up(now, events, dropped);
        }
        frame
    }

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Gives the next packet to the radio that serves the link: its size.
    pub(crate) fn hand_over(
        &mut self,
        now: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) -> Option<Bytes> {
        let dropped_before = dropped.len();
        let next = self.queue.dequeue(now, dropped);
        self.waiting -= dropped.len() - dropped_before + usize::from(next.is_some());
        self.observe(now, events);
        let frame = next?;
        self.count_sent(&frame, now);
        self.on_air.push_back(frame);
        Some(Bytes::new(u64::from(frame.size)))
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub(crate) fn carried(
        &mut self,
        at: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        let frame = self.on_air.pop_front().expect("a radio carries what it took");
        self.propagate(at, frame, events, dropped);
    }

    /// The radio has given up the oldest of its packets.
    pub(crate) fn not_carried(&mut self, dropped: &mut Vec<Dropped<Frame>>) {
        let packet = self.on_air.pop_front().expect("a radio gives up what it took");
        dropped.push(Dropped { packet, reason: DropReason::Link });
    }

    pub(crate) fn queue(&self) -> &dyn QueueDiscipline<Frame> {
        &*self.queue
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.potential(from, to)
    }

    #[inline(always)]
    fn send_next(&mut self, now: Instant, events: &mut EventQueue, dropped: &mut Vec<Dropped<Frame>>) {
        let dropped_before = dropped.len();
        let next = self.queue.dequeue(now, dropped);
        self.waiting -= dropped.len() - dropped_before;
        if let Some(frame) = next {
            self.waiting -= 1;
            self.transmit(now, frame, events, dropped);
        }
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Instant,
        frame: Frame,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        let service = self.server.send(now, Bytes::new(u64::from(frame.size)));
        self.free_at = service.ends;
        self.count_sent(&frame, service.starts);
        self.propagate(service.ends, frame, events, dropped);
    }

    #[inline(always)]
    fn count_sent(&mut self, frame: &Frame, starts: Instant) {
        if let Some(meter) = &mut self.meter {
            let waited = starts.saturating_since(frame.time);
            let newly_marked = frame.ecn == Ecn::CongestionExperienced && !frame.was_marked;
            meter.on_sent(frame.size, waited, newly_marked);
        }
    }

    /// Puts a packet that left at `departure` on its way.
    #[inline(always)]
    fn propagate(
        &mut self,
        departure: Instant,
        mut frame: Frame,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Frame>>,
    ) {
        let mut arrival = departure + self.delay;
        if let Some(impairments) = &mut self.impairments {
            let Some(late) = impairments.apply(arrival) else {
                dropped.push(Dropped { packet: frame, reason: DropReason::Link });
                return;
            };
            arrival = late;
        }
        frame.time = arrival;
        match self.in_flight.back() {
            None => {
                self.in_flight.push_back(frame);
                self.expect_arrival(arrival, events);
            }
            Some(last) if last.time <= arrival => self.in_flight.push_back(frame),
            Some(_) => self.overtake(frame, events),
        }
    }

    /// Puts a packet that overtakes others in its place.
    fn overtake(&mut self, frame: Frame, events: &mut EventQueue) {
        let place = self.in_flight.partition_point(|other| other.time <= frame.time);
        self.in_flight.insert(place, frame);
        if place == 0 {
            self.expect_arrival(frame.time, events);
        }
    }

    #[inline(always)]
    fn expect_arrival(&mut self, arrival: Instant, events: &mut EventQueue) {
        self.next_arrival = arrival;
        events.schedule(arrival, Event::LinkArrival, self.index);
    }

    /// Keeps the books on what waits, and the queue's timer scheduled.
    fn observe(&mut self, now: Instant, events: &mut EventQueue) {
        if let Some(meter) = &mut self.meter {
            meter.on_backlog(now, self.queue.backlog());
        }
        if self.queue_has_timer
            && let Some(at) = self.queue.next_wakeup()
            && self.next_wakeup.is_none_or(|scheduled| at < scheduled)
        {
            self.next_wakeup = Some(at);
            events.schedule(at, Event::QueueTimer, self.index);
        }
    }
}

impl Impairments {
    /// When a packet that would arrive at `arrival` does; `None` where it is lost.
    fn apply(&mut self, arrival: Instant) -> Option<Instant> {
        if self.loses() {
            return None;
        }
        let mut arrival = arrival;
        if self.jitter != Duration::ZERO {
            let late = arrival + self.random.duration_between(Duration::ZERO, self.jitter);
            arrival = late.max(self.latest_arrival);
            self.latest_arrival = arrival;
        }
        if let Some(reordering) = self.reordering
            && self.random.chance(reordering.probability)
        {
            arrival += reordering.delay;
        }
        Some(arrival)
    }

    fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Random(probability) => self.random.chance(probability),
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let change = if self.in_bad_state { to_good } else { to_bad };
                self.in_bad_state ^= self.random.chance(change);
                self.random.chance(if self.in_bad_state { loss_bad } else { loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suimon_units::Probability;

    fn impairments(loss: Loss) -> Impairments {
        Impairments {
            loss,
            in_bad_state: false,
            jitter: Duration::ZERO,
            reordering: None,
            latest_arrival: Instant::ZERO,
            random: RandomStream::new(1, "test"),
        }
    }

    #[test]
    fn burst_loss_has_the_rate_and_burst_length_of_its_chain() {
        // Stationary share of the bad state: 0.01 / (0.01 + 0.25); mean stay in it: 1 / 0.25 packets.
        let p = Probability::clamped;
        let mut link = impairments(Loss::GilbertElliott {
            to_bad: p(0.01),
            to_good: p(0.25),
            loss_good: p(0.0),
            loss_bad: p(1.0),
        });
        let losses: Vec<bool> = (0..200_000).map(|_| link.loses()).collect();
        let lost = losses.iter().filter(|lost| **lost).count() as f64;
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((lost / 200_000.0 - 0.01 / 0.26).abs() < 0.003, "{lost}");
        assert!((lost / bursts - 4.0).abs() < 0.3, "{}", lost / bursts);
    }

    #[test]
    fn jitter_delays_but_never_reorders() {
        let mut link = Impairments { jitter: Duration::from_millis(10), ..impairments(Loss::None) };
        let arrivals: Vec<_> = (0..1_000)
            .map(|i| link.apply(Instant::ZERO + Duration::from_millis(i)).expect("nothing is lost"))
            .collect();
        assert!(arrivals.is_sorted());
        assert!(arrivals.iter().enumerate().any(|(i, at)| at.as_nanos() > (i as u64 + 5) * 1_000_000));
    }
}
