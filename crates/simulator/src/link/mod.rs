//! A unidirectional link: queue, server, and the packets in flight on it.

pub(crate) mod capacity;

use std::collections::VecDeque;

use suimon_algorithms::RandomStream;
use suimon_algorithms::queue::{DropReason, Dropped, Ecn, QueueDiscipline};
use suimon_algorithms::registry::build_queue;
use suimon_scenario::{self as scenario, Loss, Reordering};
use suimon_units::{Bytes, Duration, Instant};

use self::capacity::Server;
use crate::events::{Event, EventQueue};
use crate::measure::QueueMeter;
use crate::packet::Packet;

/// A link.
#[derive(Debug)]
pub(crate) struct Link {
    index: u32,
    server: Server,
    delay: Duration,
    impairments: Option<Box<Impairments>>,
    queue: Box<dyn QueueDiscipline<Packet>>,
    /// The packet in transmission has left by then.
    free_at: Instant,
    /// A [`Event::LinkFree`] is scheduled.
    waiting_for_free: bool,
    /// Packets between transmission and arrival, by arrival.
    in_flight: VecDeque<(Instant, Packet)>,
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
        Self {
            index,
            server: Server::new(&link.capacity),
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
            queue: build_queue(&link.queue, link.buffer, random("queue")),
            free_at: Instant::ZERO,
            waiting_for_free: false,
            in_flight: VecDeque::new(),
            next_arrival: Instant::MAX,
            next_wakeup: None,
            meter: link.reported.then(|| Box::new(QueueMeter::new(link))),
        }
    }

    /// Takes a packet in. What the queue drops goes to `dropped`.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        mut packet: Packet,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Packet>>,
    ) {
        packet.queued_at = now;
        packet.was_marked = packet.ecn == Ecn::CongestionExperienced;
        if matches!(self.server, Server::Unlimited) {
            self.transmit(now, packet, events, dropped);
            return;
        }
        self.queue.enqueue(now, packet, dropped);
        if now >= self.free_at && !self.waiting_for_free {
            self.send_next(now, events, dropped);
        } else {
            self.wait_for_free(events);
        }
        self.observe(now, events);
    }

    /// The packet in transmission has left.
    pub(crate) fn on_free(
        &mut self,
        now: Instant,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Packet>>,
    ) {
        self.waiting_for_free = false;
        self.send_next(now, events, dropped);
        self.observe(now, events);
    }

    /// The queue's own timer.
    pub(crate) fn on_wakeup(&mut self, now: Instant, events: &mut EventQueue) {
        if self.next_wakeup.is_some_and(|at| at <= now) {
            self.next_wakeup = None;
            self.queue.on_wakeup(now);
        }
        self.observe(now, events);
    }

    /// Gives the next packet that has arrived by `now`.
    pub(crate) fn take_arrived(&mut self, now: Instant) -> Option<Packet> {
        match self.in_flight.front() {
            Some((arrival, _)) if *arrival <= now => self.in_flight.pop_front().map(|(_, packet)| packet),
            _ => None,
        }
    }

    /// True where a [`Event::LinkArrival`] at `now` is not stale.
    pub(crate) fn expects_arrival(&self, now: Instant) -> bool {
        self.next_arrival == now
    }

    /// Schedules the arrival of what is in flight after those of now were taken.
    pub(crate) fn schedule_arrival(&mut self, events: &mut EventQueue) {
        self.next_arrival = match self.in_flight.front() {
            Some((arrival, _)) => {
                events.schedule(*arrival, Event::LinkArrival(self.index));
                *arrival
            }
            None => Instant::MAX,
        };
    }

    pub(crate) fn queue(&self) -> &dyn QueueDiscipline<Packet> {
        &*self.queue
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.potential(from, to)
    }

    fn send_next(&mut self, now: Instant, events: &mut EventQueue, dropped: &mut Vec<Dropped<Packet>>) {
        let Some(packet) = self.queue.dequeue(now, dropped) else { return };
        self.transmit(now, packet, events, dropped);
        if self.queue.backlog().packets > 0 {
            self.wait_for_free(events);
        }
    }

    fn wait_for_free(&mut self, events: &mut EventQueue) {
        if !self.waiting_for_free && self.queue.backlog().packets > 0 {
            self.waiting_for_free = true;
            events.schedule(self.free_at, Event::LinkFree(self.index));
        }
    }

    fn transmit(
        &mut self,
        now: Instant,
        packet: Packet,
        events: &mut EventQueue,
        dropped: &mut Vec<Dropped<Packet>>,
    ) {
        let service = self.server.send(now, Bytes::new(u64::from(packet.size)));
        self.free_at = service.ends;
        if let Some(meter) = &mut self.meter {
            let waited = service.starts.saturating_since(packet.queued_at);
            let newly_marked = packet.ecn == Ecn::CongestionExperienced && !packet.was_marked;
            meter.on_sent(packet.size, waited, newly_marked);
        }
        let mut arrival = service.ends + self.delay;
        if let Some(impairments) = &mut self.impairments {
            let Some(late) = impairments.apply(arrival) else {
                dropped.push(Dropped { packet, reason: DropReason::Link });
                return;
            };
            arrival = late;
        }
        // In order nearly always; a packet held back finds its place from the end.
        let mut place = self.in_flight.len();
        while place > 0 && self.in_flight[place - 1].0 > arrival {
            place -= 1;
        }
        if place == self.in_flight.len() {
            self.in_flight.push_back((arrival, packet));
        } else {
            self.in_flight.insert(place, (arrival, packet));
        }
        if place == 0 {
            self.next_arrival = arrival;
            events.schedule(arrival, Event::LinkArrival(self.index));
        }
    }

    /// Keeps the books on what waits, and the queue's timer scheduled.
    fn observe(&mut self, now: Instant, events: &mut EventQueue) {
        if let Some(meter) = &mut self.meter {
            meter.on_backlog(now, self.queue.backlog());
        }
        if let Some(at) = self.queue.next_wakeup()
            && self.next_wakeup.is_none_or(|scheduled| at < scheduled)
        {
            self.next_wakeup = Some(at);
            events.schedule(at, Event::QueueTimer(self.index));
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
