//! Tail drop: first in, first out, and what does not fit is lost.

use suimon_units::Instant;

use super::fifo::Fifo;
use super::{Backlog, Buffer, DropReason, Dropped, Packet, QueueDiscipline};
use crate::registry::Description;

/// What users see of it.
pub const DESCRIPTION: Description = Description {
    name: "droptail",
    summary: "first in, first out; an arrival that does not fit the buffer is dropped",
    source: "RFC 7567 §1",
    colour: "#79706e",
    parameters: &[],
};

/// A queue that takes what fits.
#[derive(Debug)]
pub struct DropTail<P>(Fifo<P>);

impl<P: Packet> DropTail<P> {
    /// An empty queue with room for `buffer`.
    #[must_use]
    pub fn new(buffer: Buffer) -> Self {
        Self(Fifo::new(buffer))
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for DropTail<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, dropped: &mut Vec<Dropped<P>>) {
        match self.judge(now, &mut packet, self.0.backlog()) {
            Ok(()) => self.0.push(packet),
            Err(reason) => dropped.push(Dropped { packet, reason }),
        }
    }

    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        self.0.pop()
    }

    fn idle_passes(&self) -> bool {
        true
    }

    fn judges_arrivals(&self) -> bool {
        true
    }

    fn judge(&mut self, _now: Instant, packet: &mut P, waiting: Backlog) -> Result<(), DropReason> {
        if self.0.buffer().admits(waiting, packet.size()) { Ok(()) } else { Err(DropReason::Overflow) }
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::TestPacket;
    use suimon_units::Bytes;

    fn admitted(buffer: Buffer, offered: u64) -> u64 {
        let mut queue = DropTail::new(buffer);
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
        let mut queue = DropTail::new(Buffer::Packets(2));
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
