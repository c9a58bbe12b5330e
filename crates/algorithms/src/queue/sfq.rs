//! SFQ, stochastic fairness queueing (McKenney 1990), as Linux has it (`net/sched/sch_sfq.c`): a queue for each hash of
//! flows, deficit round robin among them, and the longest queue loses its last packet where there is no room.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::Instant;

use super::flows::{FlowHash, FlowQueues};
use super::round::{QUANTUM, quantum};
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Packet, QueueDiscipline, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "sfq",
    summary: "a queue for each flow, served in turn; the longest loses its last packet where there is no room",
    source: "McKenney 1990; Linux 6.18",
    colour: "#bab0ac",
    parameters: &[
        Parameter {
            name: "divisor",
            help: "number of queues that flows are hashed to",
            default: Value::Count(1_024),
            range: Range::Between(1.0, 65_535.0),
        },
        Parameter {
            name: "depth",
            help: "most packets of one queue",
            default: Value::Count(127),
            range: Range::Between(1.0, 1e6),
        },
        QUANTUM,
        tbf::SHAPER,
    ],
};

/// A queue's part in the round: `struct sfq_slot`.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Bytes that it may still send before its turn ends.
    allot: i64,
    /// When its length last changed, as a count of such changes.
    changed: u64,
}

/// Flows in turn.
#[derive(Debug, Clone)]
pub struct Sfq<P> {
    queues: FlowQueues<P>,
    slots: Box<[Slot]>,
    /// The queues that have packets, the one whose turn it is first.
    round: VecDeque<u16>,
    hash: FlowHash,
    depth: u64,
    quantum: i64,
    changes: u64,
}

impl<P: Packet> Sfq<P> {
    /// Empty queues with room for `buffer` in all and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, mut random: RandomStream) -> Self {
        let divisor = arguments.count("divisor") as usize;
        Self {
            queues: FlowQueues::new(divisor, buffer),
            slots: vec![Slot::default(); divisor].into(),
            round: VecDeque::new(),
            hash: FlowHash::new(&mut random),
            depth: arguments.count("depth"),
            quantum: quantum(arguments),
            changes: 0,
        }
    }

    /// The length of `slot` has changed: `sfq_link` puts it first among those of its length.
    fn changes(&mut self, slot: usize) {
        self.changes += 1;
        self.slots[slot].changed = self.changes;
    }

    /// `sfq_drop`: the last packet of the longest queue goes; where all have one packet, that of the queue whose turn
    /// it is.
    #[cold]
    fn drop_one(&mut self) -> Option<P> {
        let key = |slot: u16| {
            let slot = usize::from(slot);
            (self.queues.backlog_of(slot).packets, self.slots[slot].changed)
        };
        let longest = self.round.iter().copied().max_by_key(|slot| key(*slot))?;
        let slot = if key(longest).0 > 1 { longest } else { self.round.pop_front()? };
        self.changes(usize::from(slot));
        self.queues.pop_last(usize::from(slot)).map(|timed| timed.packet)
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Sfq<P> {
    // `sfq_enqueue`.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        let overflow = |packet| Dropped { packet, reason: DropReason::Overflow };
        let slot = self.hash.queue_of(packet.flow(), self.slots.len());
        let waiting = self.queues.backlog_of(slot).packets;
        if waiting >= self.depth {
            return dropped.push(overflow(packet));
        }
        self.queues.push(slot, Timed { packet, since: now });
        self.changes(slot);
        if waiting == 0 {
            // A new flow waits behind the others, or else new ones could keep the old from sending.
            self.round.push_back(slot as u16);
            self.slots[slot].allot = self.quantum;
        }
        while self.queues.overflows() {
            dropped.extend(self.drop_one().map(overflow));
        }
    }

    // `sfq_dequeue`.
    fn dequeue(&mut self, _: Instant, _: &mut Vec<Dropped<P>>) -> Option<P> {
        loop {
            let number = *self.round.front()?;
            let at = usize::from(number);
            if self.slots[at].allot <= 0 {
                self.slots[at].allot += self.quantum;
                self.round.rotate_left(1);
                continue;
            }
            let packet = self.queues.pop(at)?.packet;
            self.changes(at);
            if self.queues.backlog_of(at).packets == 0 {
                self.round.pop_front();
            } else {
                self.slots[at].allot -= packet.size().get() as i64;
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("flows", self.round.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{FlowPacket, arguments, drain};

    fn sfq(settings: &str, buffer: Buffer) -> Sfq<FlowPacket> {
        Sfq::new(&arguments(&DESCRIPTION, settings), buffer, RandomStream::new(1, "sfq"))
    }

    /// `count` packets of a flow.
    fn offer(queue: &mut Sfq<FlowPacket>, flow: u32, count: usize, size: u64) -> Vec<Dropped<FlowPacket>> {
        let mut dropped = Vec::new();
        (0..count).for_each(|_| queue.enqueue(Instant::ZERO, FlowPacket::new(flow, size), &mut dropped));
        dropped
    }

    #[test]
    fn flows_get_equal_bytes_whatever_the_size_of_their_packets() {
        let mut queue = sfq(":depth=10000", Buffer::Unbounded);
        offer(&mut queue, 1, 200, 1_500);
        offer(&mut queue, 2, 3_000, 100);
        let mut bytes = [0; 3];
        for packet in drain(&mut queue).take(1_600) {
            bytes[packet.flow as usize] += packet.size;
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 2 * 1_514 + 1_500, "{bytes:?}");
    }

    /// Unlike FQ-CoDel, where a new flow goes first.
    #[test]
    fn a_new_flow_waits_for_its_turn_behind_the_others() {
        let mut queue = sfq("", Buffer::Unbounded);
        (1..=3).for_each(|flow| drop(offer(&mut queue, flow, 5, 1_514)));
        let order: Vec<_> = drain(&mut queue).take(4).map(|packet| packet.flow).collect();
        assert_eq!(order, [1, 2, 3, 1]);
        offer(&mut queue, 4, 1, 1_514);
        let order: Vec<_> = drain(&mut queue).take(4).map(|packet| packet.flow).collect();
        assert_eq!(order, [2, 3, 4, 1]);
    }

    #[test]
    fn the_longest_queue_loses_its_last_packet_and_of_several_the_one_that_changed_last() {
        let mut queue = sfq("", Buffer::Packets(6));
        offer(&mut queue, 1, 4, 1_000);
        offer(&mut queue, 2, 2, 999);
        let dropped = offer(&mut queue, 3, 1, 998);
        assert_eq!((dropped.len(), dropped[0].packet.flow), (1, 1));
        let dropped = offer(&mut queue, 2, 1, 997);
        assert_eq!(
            (dropped[0].packet.flow, dropped[0].packet.size),
            (2, 997),
            "flows 1 and 2 have three each"
        );
        assert_eq!(queue.backlog().packets, 6);
    }

    #[test]
    fn where_all_have_one_packet_the_one_whose_turn_it_is_loses_it() {
        let mut queue = sfq("", Buffer::Packets(3));
        (1..=3).for_each(|flow| assert!(offer(&mut queue, flow, 1, 1_000).is_empty()));
        assert_eq!(offer(&mut queue, 4, 1, 1_000)[0].packet.flow, 1);
        assert_eq!(drain(&mut queue).map(|packet| packet.flow).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn no_queue_grows_beyond_its_depth() {
        for (settings, room) in [("", 127), (":depth=5", 5)] {
            let mut queue = sfq(settings, Buffer::Unbounded);
            assert_eq!(offer(&mut queue, 1, 200, 1_000).len(), 200 - room);
            assert_eq!(offer(&mut queue, 2, room, 1_000).len(), 0, "the other flow has room of its own");
        }
    }
}
