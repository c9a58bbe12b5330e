//! FQ-PIE: a queue for each flow, deficit round robin among them, and PIE in each, as Linux has it since 5.6
//! (`net/sched/sch_fq_pie.c`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use suimon_units::Instant;

use super::flows::{FlowHash, FlowQueues};
use super::pie_linux::{self, PieLinux};
use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::round::{QUANTUM, Round, quantum};
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Packet, QueueDiscipline, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "fq-pie",
    summary: "a queue for each flow, served in turn, new flows first, with PIE in each",
    source: "Linux 5.6; RFC 8033",
    colour: "#f1ce63",
    parameters: &[
        pie_linux::TARGET,
        pie_linux::TUPDATE,
        pie_linux::ALPHA,
        pie_linux::BETA,
        pie_linux::MTU,
        pie_linux::ECN,
        Parameter {
            name: "flows",
            help: "number of queues that flows are hashed to",
            default: Value::Count(1_024),
            range: Range::Between(1.0, 65_535.0),
        },
        QUANTUM,
        tbf::SHAPER,
    ],
};

/// Flows in turn, PIE in each.
#[derive(Debug, Clone)]
pub struct FqPie<P> {
    queues: FlowQueues<P>,
    pies: Box<[PieLinux]>,
    round: Round,
    hash: FlowHash,
    buffer: Buffer,
}

impl<P: Packet> FqPie<P> {
    /// Empty queues with room for `buffer` in all and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, mut random: RandomStream) -> Self {
        let flows = arguments.count("flows") as usize;
        let hash = FlowHash::new(&mut random);
        Self {
            queues: FlowQueues::new(flows, buffer),
            pies: (0..flows)
                .map(|_| {
                    let random = RandomStream::new(random.below(u64::MAX), DESCRIPTION.name);
                    PieLinux::new(arguments, Buffer::Unbounded, random)
                })
                .collect(),
            round: Round::new(flows, quantum(arguments)),
            hash,
            buffer,
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for FqPie<P> {
    // `fq_pie_qdisc_enqueue`: each flow's PIE sees the flow's own backlog.
    fn enqueue(&mut self, now: Instant, mut packet: P, dropped: &mut Vec<Dropped<P>>) {
        let at = self.hash.queue_of(packet.flow(), self.round.flows());
        let pie = &mut self.pies[at];
        if !self.buffer.admits(self.queues.backlog(), packet.size()) {
            pie.on_overflow();
            return dropped.push(Dropped { packet, reason: DropReason::Overflow });
        }
        let arrival = Arrival::of(&packet, now, self.queues.backlog_of(at));
        match pie.judge(&arrival) {
            Verdict::Pass => {}
            Verdict::Mark => packet.mark_congestion_experienced(),
            Verdict::Drop(reason) => return dropped.push(Dropped { packet, reason }),
        }
        self.queues.push(at, Timed { packet, since: now });
        self.round.join(at);
    }

    // `fq_pie_qdisc_dequeue`.
    fn dequeue(&mut self, now: Instant, _: &mut Vec<Dropped<P>>) -> Option<P> {
        loop {
            let at = self.round.whose_turn()?;
            if let Some(packet) = self.queues.pop(at).map(|timed| timed.packet) {
                self.round.sends(at, packet.size());
                self.pies[at].on_departure(now, packet.size(), self.queues.backlog_of(at));
                return Some(packet);
            }
            self.round.finds_none(true);
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
    use crate::queue::Ecn;
    use crate::queue::testing::{FlowPacket, arguments, drain};
    use suimon_units::Duration;

    fn fq_pie(settings: &str, buffer: Buffer) -> FqPie<FlowPacket> {
        FqPie::new(&arguments(&DESCRIPTION, settings), buffer, RandomStream::new(1, "fq-pie"))
    }

    #[test]
    fn flows_get_equal_bytes_whatever_the_size_of_their_packets() {
        let mut queue = fq_pie("", Buffer::Unbounded);
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

    /// A flow that always has 50 packets waiting, and one that has a packet now and then, for 10 s.
    #[test]
    fn a_flow_that_queues_is_marked_and_a_sparse_one_is_not() {
        let mut queue = fq_pie("", Buffer::Unbounded);
        let (mut marks, mut dropped) = ([0; 3], Vec::new());
        for millis in 0..10_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            for _ in queue.backlog().packets..50 {
                let packet = FlowPacket { ecn: Ecn::Capable, ..FlowPacket::new(1, 1_500) };
                queue.enqueue(now, packet, &mut dropped);
            }
            if millis % 20 == 0 {
                let packet = FlowPacket { ecn: Ecn::Capable, ..FlowPacket::new(2, 100) };
                queue.enqueue(now, packet, &mut dropped);
            }
            let sent = queue.dequeue(now, &mut dropped).unwrap();
            marks[sent.flow as usize] += usize::from(sent.ecn == Ecn::CongestionExperienced);
        }
        assert!(marks[1] > 10 && marks[2] == 0, "{marks:?}");
        assert!(dropped.iter().all(|dropped| dropped.packet.flow == 1));
    }

    #[test]
    fn a_packet_that_finds_no_room_is_dropped() {
        let mut queue = fq_pie("", Buffer::Packets(3));
        let mut dropped = Vec::new();
        (0..5).for_each(|flow| queue.enqueue(Instant::ZERO, FlowPacket::new(flow, 1_500), &mut dropped));
        let flows: Vec<_> = dropped.iter().map(|dropped| dropped.packet.flow).collect();
        assert_eq!(flows, [3, 4]);
        assert!(dropped.iter().all(|dropped| dropped.reason == DropReason::Overflow));
    }
}
