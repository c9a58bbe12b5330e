//! FQ-CoDel: a queue for each flow, deficit round robin among them, and CoDel in each (RFC 8290).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::Instant;

use super::codel::{CE_THRESHOLD, CoDel, ECN, INTERVAL, MTU, Settings, TARGET};
use super::flows::{FlowHash, FlowQueues};
use super::round::{QUANTUM, Round, quantum};
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Packet, QueueDiscipline, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "fq-codel",
    summary: "a queue for each flow, served in turn, new flows first, with CoDel in each",
    source: "RFC 8290",
    colour: "#59a14f",
    parameters: &[
        TARGET,
        INTERVAL,
        MTU,
        ECN,
        CE_THRESHOLD,
        Parameter {
            name: "flows",
            help: "number of queues that flows are hashed to",
            default: Value::Count(1_024),
            range: Range::Between(1.0, 65_535.0),
        },
        QUANTUM,
        Parameter {
            name: "rules",
            help: "as RFC 8290 says; or as Linux does, where CoDel spares what is last in all queues, an overflow strengthens it, and roots are approximated",
            default: Value::Choice("rfc-8290"),
            range: Range::OneOf(&["rfc-8290", "linux"]),
        },
        tbf::SHAPER,
    ],
};

/// Most packets that one overflow drops (RFC 8290 §4.1).
const MAX_BATCH: u64 = 64;

/// Flows in turn, CoDel in each.
#[derive(Debug, Clone)]
pub struct FqCoDel<P> {
    queues: FlowQueues<P>,
    codels: Box<[CoDel]>,
    round: Round,
    hash: FlowHash,
    settings: Settings,
}

impl<P: Packet> FqCoDel<P> {
    /// Empty queues with room for `buffer` in all and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, mut random: RandomStream) -> Self {
        let flows = arguments.count("flows") as usize;
        Self {
            queues: FlowQueues::new(flows, buffer),
            codels: vec![CoDel::default(); flows].into(),
            round: Round::new(flows, quantum(arguments)),
            hash: FlowHash::new(&mut random),
            settings: Settings::new(arguments),
        }
    }

    /// Makes room in the fattest queue: half its packets go, from its head (RFC 8290 §4.1).
    #[cold]
    fn drop_batch(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let fattest = self.queues.fattest();
        let half = self.queues.backlog_of(fattest).packets / 2;
        let batch = half.clamp(1, MAX_BATCH);
        if self.settings.as_linux {
            self.codels[fattest].on_overflow(batch as u32);
        }
        for _ in 0..batch {
            let packet = self.queues.pop(fattest).map(|timed| timed.packet);
            dropped.extend(packet.map(|packet| Dropped { packet, reason: DropReason::Overflow }));
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for FqCoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        let at = self.hash.queue_of(packet.flow(), self.round.flows());
        self.queues.push(at, Timed { packet, since: now });
        self.round.join(at);
        while self.queues.overflows() {
            self.drop_batch(dropped);
        }
    }

    // RFC 8290 §4.2.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        loop {
            let at = self.round.whose_turn()?;
            let (queues, as_linux) = (&mut self.queues, self.settings.as_linux);
            let next = || {
                let packet = queues.pop(at)?;
                let left = if as_linux { queues.backlog() } else { queues.backlog_of(at) };
                Some((packet, left.bytes))
            };
            if let Some(packet) = self.codels[at].dequeue(&self.settings, now, next, dropped) {
                self.round.sends(at, packet.size());
                return Some(packet);
            }
            self.round.finds_none(as_linux);
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.round.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{FlowPacket, drain};
    use crate::registry::{AlgorithmSpec, Role};

    fn fq_codel(settings: &str, buffer: Buffer) -> FqCoDel<FlowPacket> {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("fq-codel{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        spec.arguments().for_each(|(name, value)| arguments.set(name, value));
        FqCoDel::new(&arguments, buffer, RandomStream::new(1, "fq-codel"))
    }

    #[test]
    fn flows_get_equal_bytes_whatever_the_size_of_their_packets() {
        let mut queue = fq_codel("", Buffer::Unbounded);
        for _ in 0..200 {
            queue.enqueue(Instant::ZERO, FlowPacket::new(1, 1_500), &mut Vec::new());
            (0..15).for_each(|_| queue.enqueue(Instant::ZERO, FlowPacket::new(2, 100), &mut Vec::new()));
        }
        let mut bytes = [0; 3];
        for packet in drain(&mut queue).take(1_600) {
            bytes[packet.flow as usize] += packet.size;
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 2 * 1_514 + 1_500, "{bytes:?}");
    }

    #[test]
    fn a_sparse_flow_goes_before_those_that_queue() {
        let mut queue = fq_codel("", Buffer::Unbounded);
        (0..100).for_each(|_| queue.enqueue(Instant::ZERO, FlowPacket::new(1, 1_500), &mut Vec::new()));
        for _ in 0..5 {
            drain(&mut queue).take(10).for_each(drop);
            queue.enqueue(Instant::ZERO, FlowPacket::new(2, 100), &mut Vec::new());
            // The flow in its turn may end it first.
            assert!(drain(&mut queue).take(2).any(|packet| packet.flow == 2));
        }
    }

    #[test]
    fn overflow_takes_half_of_the_fattest_queue_from_its_head() {
        for (fat, gone) in [(2, 1), (5, 2), (6, 3), (127, 63), (128, 64), (129, 64), (300, 64)] {
            let mut queue = fq_codel("", Buffer::Packets(fat + 3));
            let mut dropped = Vec::new();
            (0..fat).for_each(|_| queue.enqueue(Instant::ZERO, FlowPacket::new(1, 1_500), &mut dropped));
            (0..4).for_each(|_| queue.enqueue(Instant::ZERO, FlowPacket::new(2, 100), &mut dropped));
            assert_eq!(dropped.len() as u64, gone, "{fat}");
            assert!(dropped.iter().all(|d| d.packet.flow == 1 && d.reason == DropReason::Overflow));
        }
    }

    /// How many of `packets` are marked that leave a millisecond apart from 200 ms on, one of flow 1 and one of flow 2
    /// in turn, where each finds only the other flow's packets behind it.
    fn marks_of_lone_packets(queue: &mut FqCoDel<FlowPacket>) -> usize {
        let at = |millis| Instant::ZERO + suimon_units::Duration::from_millis(millis);
        let add = |queue: &mut FqCoDel<FlowPacket>, flow, since| {
            let packet = FlowPacket { ecn: crate::queue::Ecn::Capable, ..FlowPacket::new(flow, 1_500) };
            queue.enqueue(at(since), packet, &mut Vec::new());
        };
        (1..=3).for_each(|flow| add(queue, flow, 190));
        (200..500)
            .filter(|now| {
                let sent = queue.dequeue(at(*now), &mut Vec::new()).unwrap();
                add(queue, sent.flow, now - 8);
                sent.ecn == crate::queue::Ecn::CongestionExperienced
            })
            .count()
    }

    #[test]
    fn linux_looks_at_all_queues_before_it_spares_a_flows_last_packet() {
        assert_eq!(marks_of_lone_packets(&mut fq_codel("", Buffer::Unbounded)), 0);
        assert!(marks_of_lone_packets(&mut fq_codel(":rules=linux", Buffer::Unbounded)) >= 3);
    }

    #[test]
    fn an_overflow_strengthens_codel_as_linux_has_it() {
        let marks = |overflows: bool| {
            let mut queue = fq_codel(":rules=linux", Buffer::Packets(100));
            for flow in 1..=3 {
                for _ in 0..if overflows { 101 } else { 0 } {
                    queue.enqueue(Instant::ZERO, FlowPacket::new(flow, 1_500), &mut Vec::new());
                }
                drain(&mut queue).for_each(drop);
            }
            marks_of_lone_packets(&mut queue)
        };
        assert!(marks(true) > marks(false) * 3, "{} {}", marks(true), marks(false));
    }

    #[test]
    fn a_quantum_of_nothing_is_a_small_one() {
        let mut queue = fq_codel(":quantum=0B", Buffer::Unbounded);
        (0..9)
            .for_each(|flow| queue.enqueue(Instant::ZERO, FlowPacket::new(flow % 3, 1_500), &mut Vec::new()));
        assert_eq!(drain(&mut queue).count(), 9);
    }

    #[test]
    fn ever_new_flows_take_no_more_memory_than_the_packets_that_wait() {
        let mut queue = fq_codel("", Buffer::Packets(100));
        for flow in 0..100_000 {
            queue.enqueue(Instant::ZERO, FlowPacket::new(flow, 1_500), &mut Vec::new());
        }
        assert!(queue.queues.places() <= 101 && queue.round.waiting() <= 1_024);
    }
}
