//! Tail drop: first in, first out, and a packet that does not fit is lost.

use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::{Buffer, Capabilities, DropReason};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "droptail",
    summary: "first in, first out; an arrival that does not fit the buffer is dropped",
    source: "RFC 7567 §1",
    colour: "#79706e",
    parameters: &[],
};

/// Lets a packet join where it fits the buffer.
#[derive(Debug, Clone)]
pub struct DropTail(pub Buffer);

impl ArrivalPolicy for DropTail {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        if self.0.admits(arrival.backlog, arrival.size) {
            Verdict::Pass
        } else {
            Verdict::Drop(DropReason::Overflow)
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { idle_passes: true, tail_drop: true, ..Capabilities::default() }
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::{Bytes, Instant};

    use super::*;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::TestPacket;
    use crate::queue::{Backlog, QueueDiscipline};

    fn admitted(buffer: Buffer, offered: u64) -> u64 {
        let mut queue = PolicyQueue::new(DropTail(buffer));
        let mut dropped = Vec::new();
        for id in 0..offered {
            queue.enqueue(Instant::ZERO, TestPacket::new(id, 1_500), &mut dropped);
        }
        assert_eq!(queue.backlog().packets + dropped.len() as u64, offered);
        queue.backlog().packets
    }

    #[test]
    fn the_limit_is_met_exactly() {
        assert_eq!(admitted(Buffer::Packets(3), 5), 3);
        assert_eq!(admitted(Buffer::Bytes(Bytes::new(4_500)), 5), 3);
        assert_eq!(admitted(Buffer::Bytes(Bytes::new(4_499)), 5), 2);
        assert_eq!(admitted(Buffer::Unbounded, 5), 5);
    }

    #[test]
    fn order_is_kept_and_the_arrival_is_what_is_dropped() {
        let mut queue = PolicyQueue::new(DropTail(Buffer::Packets(2)));
        let mut dropped = Vec::new();
        for id in 0..3 {
            queue.enqueue(Instant::ZERO, TestPacket::new(id, 100), &mut dropped);
        }
        assert_eq!(dropped[0].packet.id, 2);
        assert_eq!(dropped[0].reason, DropReason::Overflow);
        let order: Vec<_> =
            std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut dropped)).map(|p| p.id).collect();
        assert_eq!(order, [0, 1]);
        assert_eq!(queue.backlog(), Backlog::default());
    }
}
