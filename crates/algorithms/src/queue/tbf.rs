//! How Linux's token bucket takes packets out of the discipline below it (`tbf_dequeue` in `net/sched/sch_tbf.c`,
//! `qdisc_peek_dequeued` in `include/net/sch_generic.h`).
//!
//! A token bucket looks at the packet that comes next before it knows whether it may send it. Disciplines that choose
//! this packet, or judge it, as they give it away (CoDel, FQ-CoDel, PIE, FQ-PIE, SFQ) do so then: when the packet before
//! leaves, and not when the token bucket has saved up for this one. The packet still counts as waiting.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use suimon_units::{Bytes, Instant, Rate};

use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::{Backlog, Buffer, Capabilities, Dropped, Packet, QueueDiscipline};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;

pub(super) const SHAPER: Parameter = Parameter {
    name: "shaper",
    help: "tbf: as below Linux's token bucket, which takes a packet out as soon as the one before leaves",
    default: Value::Choice("none"),
    range: Range::OneOf(&["none", "tbf"]),
};

/// True where `arguments` ask for a token bucket.
#[must_use]
pub fn is_asked_for(arguments: &Arguments) -> bool {
    arguments.choice("shaper") == "tbf"
}

/// A discipline from which a token bucket takes packets.
#[derive(Debug)]
pub struct Peeked<P, D> {
    below: D,
    /// The packet that leaves next.
    next: Option<P>,
}

impl<P, D> Peeked<P, D> {
    /// Over a discipline that `build` gives the buffer that is left.
    #[must_use]
    pub fn new(buffer: Buffer, build: impl FnOnce(Buffer) -> D) -> Self {
        // Whenever packets wait below, one more waits here.
        let below = match buffer {
            Buffer::Packets(limit) => Buffer::Packets(limit.saturating_sub(1).max(1)),
            Buffer::Bytes(_) | Buffer::Unbounded => buffer,
        };
        Self { below: build(below), next: None }
    }
}

impl<P: Packet + Send, D: QueueDiscipline<P>> QueueDiscipline<P> for Peeked<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        self.below.enqueue(now, packet, dropped);
        if self.next.is_none() {
            self.next = self.below.dequeue(now, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        let packet = self.next.take();
        self.next = self.below.dequeue(now, dropped);
        packet
    }

    fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.below.backlog();
        match &self.next {
            Some(next) => Backlog { packets: packets + 1, bytes: bytes + next.size() },
            None => Backlog { packets, bytes },
        }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.below.on_link_rate(now, rate);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { idle_passes: self.below.capabilities().idle_passes, ..Capabilities::default() }
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.below.probe(out);
    }
}

/// A policy that learns of departures when a token bucket takes the packets.
#[derive(Debug, Clone)]
pub struct PeekedPolicy<A> {
    below: A,
    /// The sizes of the waiting packets, without the one that the token bucket has taken.
    sizes: VecDeque<Bytes>,
}

impl<A> PeekedPolicy<A> {
    /// Over `below`.
    #[must_use]
    pub fn new(below: A) -> Self {
        Self { below, sizes: VecDeque::new() }
    }
}

impl<A: ArrivalPolicy + Clone> ArrivalPolicy for PeekedPolicy<A> {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let verdict = self.below.judge(arrival);
        if matches!(verdict, Verdict::Drop(_)) {
            return verdict;
        }
        if arrival.backlog.packets == 0 {
            self.below.on_departure(arrival.now, arrival.size, Backlog::default());
        } else {
            self.sizes.push_back(arrival.size);
        }
        verdict
    }

    fn on_departure(&mut self, now: Instant, _size: Bytes, left: Backlog) {
        if let Some(size) = self.sizes.pop_front() {
            let left =
                Backlog { packets: left.packets.saturating_sub(1), bytes: left.bytes.saturating_sub(size) };
            self.below.on_departure(now, size, left);
        }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.below.on_link_rate(now, rate);
    }

    fn capabilities(&self) -> Capabilities {
        self.below.capabilities()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.below.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::fifo::Fifo;
    use crate::queue::testing::TestPacket;
    use crate::queue::timed::Timed;
    use suimon_units::Duration;

    /// First in, first out; it notes how long each packet had waited when it was taken.
    #[derive(Debug, Default)]
    struct Noting {
        fifo: Fifo<Timed<TestPacket>>,
        sojourns: Vec<u64>,
    }

    impl QueueDiscipline<TestPacket> for Noting {
        fn enqueue(&mut self, now: Instant, packet: TestPacket, _: &mut Vec<Dropped<TestPacket>>) {
            self.fifo.push(Timed { packet, since: now });
        }
        fn dequeue(&mut self, now: Instant, _: &mut Vec<Dropped<TestPacket>>) -> Option<TestPacket> {
            let packet = self.fifo.pop()?;
            self.sojourns.push(packet.sojourn(now).as_nanos() / 1_000_000);
            Some(packet.packet)
        }
        fn backlog(&self) -> Backlog {
            self.fifo.backlog()
        }
    }

    /// A policy that notes the times of departures, in milliseconds, and the packets left behind.
    #[derive(Debug, Clone, Default)]
    struct Departures(Vec<(u64, u64)>);

    impl ArrivalPolicy for Departures {
        fn judge(&mut self, _: &Arrival) -> Verdict {
            Verdict::Pass
        }
        fn on_departure(&mut self, now: Instant, _: Bytes, left: Backlog) {
            self.0.push((now.saturating_since(Instant::ZERO).as_nanos() / 1_000_000, left.packets));
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Four packets at 0 ms over a link that sends one each 10 ms: the second is taken as the first leaves, at 0 ms.
    #[test]
    fn each_packet_is_judged_when_the_one_before_leaves_and_waits_until_its_own_turn() {
        let mut queue = Peeked::new(Buffer::Unbounded, |_| Noting::default());
        queue.enqueue(at(0), TestPacket::new(0, 100), &mut Vec::new());
        assert_eq!(queue.dequeue(at(0), &mut Vec::new()).unwrap().id, 0);
        for id in 1..4 {
            queue.enqueue(at(0), TestPacket::new(id, 100), &mut Vec::new());
        }
        for id in 1..4 {
            assert_eq!(queue.backlog(), Backlog { packets: 4 - id, bytes: Bytes::new(100 * (4 - id)) });
            assert_eq!(queue.dequeue(at(10 * id), &mut Vec::new()).unwrap().id, id);
        }
        assert_eq!(queue.below.sojourns, [0, 0, 10, 20]);
    }

    #[test]
    fn a_policy_learns_of_the_same_departures() {
        let mut policy = PeekedPolicy::new(Departures::default());
        let mut backlog = Backlog::default();
        let join = |policy: &mut PeekedPolicy<Departures>, backlog: &mut Backlog| {
            policy.judge(&Arrival { backlog: *backlog, ..Arrival::at_empty_queue(at(0)) });
            *backlog = Backlog { packets: backlog.packets + 1, bytes: backlog.bytes + Bytes::new(1_000) };
        };
        join(&mut policy, &mut backlog);
        backlog = Backlog::default();
        policy.on_departure(at(0), Bytes::new(1_000), backlog);
        (0..3).for_each(|_| join(&mut policy, &mut backlog));
        for id in 1..4 {
            backlog = Backlog { packets: 3 - id, bytes: Bytes::new(1_000 * (3 - id)) };
            policy.on_departure(at(10 * id), Bytes::new(1_000), backlog);
        }
        assert_eq!(policy.below.0, [(0, 0), (0, 0), (10, 1), (20, 0)]);
    }

    #[test]
    fn the_packet_that_was_taken_counts_towards_the_buffer() {
        let mut asked = Vec::new();
        for buffer in [Buffer::Packets(10), Buffer::Packets(1), Buffer::Unbounded] {
            let _: Peeked<TestPacket, _> = Peeked::new(buffer, |below| asked.push(below));
        }
        assert_eq!(asked, [Buffer::Packets(9), Buffer::Packets(1), Buffer::Unbounded]);
    }
}
