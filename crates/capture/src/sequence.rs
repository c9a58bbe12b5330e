//! Sequence numbers of one direction of a TCP connection: what is new, what was sent again, what came late.

use std::collections::VecDeque;

use suimon_units::{Duration, Instant};

use crate::packet::{Packet, Tcp};

/// Follows the data that one host sends.
///
/// Positions count bytes from the first one that was seen, across wraps of the 32-bit sequence number (RFC 9293 §3.4).
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    /// The sequence number at position zero.
    base: Option<u32>,
    /// The position behind all data that passed.
    next: u64,
    /// Data before `next` that has not passed, oldest first.
    gaps: VecDeque<Gap>,
}

#[derive(Debug, Clone, Copy)]
struct Gap {
    start: u64,
    end: u64,
    /// When a later segment showed it.
    since: Instant,
}

/// A segment with data, as its sequence number places it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencedSegment {
    /// The position of its first byte.
    pub position: u64,
    /// How it relates to the data before.
    pub order: SegmentOrder,
}

/// How a segment relates to the data that passed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentOrder {
    /// It carries data beyond all before.
    New,
    /// Its data passed before: the sender sends it again.
    Again,
    /// It fills a gap that a later segment showed this long ago: an earlier copy was lost on its way to the capture, or
    /// the network changed the order.
    Late(Duration),
}

/// Gaps that are open at once; of more, the oldest are forgotten, and what fills them counts as sent again.
const MAX_GAPS: usize = 64;

impl Sequence {
    /// Takes the next packet of this direction; `None` where it carries no data, or only probes the other host.
    pub fn on_packet(&mut self, packet: &Packet, tcp: &Tcp) -> Option<SequencedSegment> {
        if tcp.syn {
            let first = tcp.sequence.wrapping_add(1);
            if self.base != Some(first) {
                // The same ports again, for another connection.
                *self = Self { base: Some(first), ..Self::default() };
            }
        }
        let length = packet.payload.get();
        if length == 0 {
            return None;
        }
        let first = tcp.sequence.wrapping_add(u32::from(tcp.syn));
        self.base.get_or_insert(first);
        let position = self.position(first)?;
        // A keep-alive repeats the last byte (RFC 9293 §3.8.4).
        if length == 1 && position + 1 == self.next {
            return None;
        }
        let order = self.place(position, position + length, packet.time);
        Some(SequencedSegment { position, order })
    }

    /// The position of a sequence number, or of an acknowledgement by the other host; `None` before any was seen, and
    /// where it lies before the first byte.
    #[must_use]
    pub fn position(&self, number: u32) -> Option<u64> {
        let nearest = self.base?.wrapping_add(self.next as u32);
        self.next.checked_add_signed(i64::from(number.wrapping_sub(nearest) as i32))
    }

    fn place(&mut self, start: u64, end: u64, now: Instant) -> SegmentOrder {
        if start >= self.next {
            if start > self.next {
                if self.gaps.len() == MAX_GAPS {
                    self.gaps.pop_front();
                }
                self.gaps.push_back(Gap { start: self.next, end: start, since: now });
            }
            self.next = end;
            return SegmentOrder::New;
        }
        self.next = self.next.max(end);
        let Some(nth) = self.gaps.iter().position(|gap| start < gap.end && gap.start < end) else {
            return SegmentOrder::Again;
        };
        let gap = self.gaps[nth];
        let left = [Gap { end: start, ..gap }, Gap { start: end, ..gap }];
        self.gaps.remove(nth);
        for rest in left.into_iter().rev().filter(|rest| rest.start < rest.end) {
            self.gaps.insert(nth, rest);
        }
        SegmentOrder::Late(now.saturating_since(gap.since))
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::queue::Ecn;
    use suimon_units::Bytes;

    use super::SegmentOrder::{Again, Late, New};
    use super::*;
    use crate::packet::{Endpoints, Transport};

    const ISN: u32 = u32::MAX - 2_500;

    fn segment(sequence: &mut Sequence, ms: u64, offset: u32, payload: u64) -> Option<SequencedSegment> {
        send(sequence, ms, offset.wrapping_add(1), payload, false)
    }

    fn send(
        sequence: &mut Sequence,
        ms: u64,
        offset: u32,
        payload: u64,
        syn: bool,
    ) -> Option<SequencedSegment> {
        let tcp = Tcp {
            sequence: ISN.wrapping_add(offset),
            acknowledgement: None,
            sacked: None,
            syn,
            fin: false,
            rst: false,
            timestamps: None,
        };
        let packet = Packet {
            number: 1,
            time: Instant::ZERO + Duration::from_millis(ms),
            endpoints: Endpoints {
                transport: Transport::Tcp,
                source: "10.0.0.1:5000".parse().unwrap(),
                destination: "10.0.0.2:80".parse().unwrap(),
            },
            size: Bytes::new(payload + 40),
            payload: Bytes::new(payload),
            ecn: Ecn::NotCapable,
            tcp: Some(tcp),
        };
        sequence.on_packet(&packet, &tcp)
    }

    #[test]
    fn segments_are_placed_across_a_wrap_of_the_sequence_number() {
        let mut sequence = Sequence::default();
        assert_eq!(send(&mut sequence, 0, 0, 0, true), None);
        for (ms, offset, payload, order) in [
            (1, 0, 1_000, New),
            (2, 1_000, 1_000, New),
            (3, 4_000, 1_000, New),
            (4, 2_000, 500, Late(Duration::from_millis(1))),
            (9, 2_500, 1_500, Late(Duration::from_millis(6))),
            (10, 2_500, 1_500, Again),
            (11, 4_500, 1_000, Again),
            (12, 5_500, 1_000, New),
        ] {
            let placed = segment(&mut sequence, ms, offset, payload).unwrap();
            assert_eq!((placed.position, placed.order), (u64::from(offset), order), "at {ms} ms");
        }
        assert_eq!(segment(&mut sequence, 13, 6_499, 1), None, "a keep-alive");
        assert_eq!(sequence.position(ISN.wrapping_add(6_501)), Some(6_500));
    }

    #[test]
    fn a_capture_may_begin_in_the_middle_and_ports_be_used_again() {
        let mut sequence = Sequence::default();
        assert_eq!(sequence.position(5), None);
        assert_eq!(segment(&mut sequence, 0, 9_000, 100).unwrap().position, 0);
        assert_eq!(segment(&mut sequence, 1, 8_000, 100), None, "before the first byte");
        send(&mut sequence, 2, 70_000, 0, true);
        assert_eq!(segment(&mut sequence, 3, 70_000, 100).unwrap().order, New);
    }

    #[test]
    fn more_gaps_than_are_kept_are_forgotten() {
        let mut sequence = Sequence::default();
        for nth in 0..1_000 {
            segment(&mut sequence, 0, 2_000 * nth, 1_000);
        }
        assert_eq!(sequence.gaps.len(), MAX_GAPS);
    }
}
