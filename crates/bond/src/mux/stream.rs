//! One stream: data that waits to be sent, data that came, and the credit of both directions.

use std::collections::VecDeque;

use rangemap::RangeSet;

use super::turns::Waiting;
use super::{ResetReason, ServiceClass};
use crate::ring::Ring;

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) class: ServiceClass,
    /// Waits to be sent.
    pub(super) queue: VecDeque<u8>,
    pub(super) sent: u64,
    /// The credit that the other end has granted, as a position in the stream.
    pub(super) limit: u64,
    /// The limit that the other end was last told to be too low.
    pub(super) blocked_at: Option<u64>,
    pub(super) ending: bool,
    pub(super) end_sent: bool,
    /// The other end may not have heard of the stream, so nothing of it may come before that.
    pub(super) unknown: bool,
    /// The writer was told that there is no room.
    pub(super) writer_waits: bool,
    pub(super) inbox: Inbox,
    /// Taken and passed on.
    pub(super) consumed: u64,
    pub(super) granted: u64,
    pub(super) window: u64,
    /// The other end would send more: it has said so, or the window will soon be used up behind a hole.
    pub(super) wanted: bool,
    /// The stream's length, once the other end has said it.
    pub(super) length: Option<u64>,
    pub(super) opened: bool,
    pub(super) reset: Option<ResetReason>,
    /// Nobody holds it any more.
    pub(super) released: bool,
}

impl Stream {
    /// A stream that may send `limit` bytes before any credit, and is granted `window`.
    pub(super) fn new(class: ServiceClass, limit: u64, window: u64) -> Self {
        Self {
            class,
            queue: VecDeque::new(),
            sent: 0,
            limit,
            blocked_at: None,
            ending: false,
            end_sent: false,
            unknown: false,
            writer_waits: false,
            inbox: Inbox::default(),
            consumed: 0,
            granted: window,
            window,
            wanted: false,
            length: None,
            opened: false,
            reset: None,
            released: false,
        }
    }

    /// All that the other end has sent is here.
    pub(super) fn ended(&self) -> bool {
        self.length == Some(self.inbox.next)
    }

    /// No more than half of the window is here in order and not read.
    pub(super) fn reader_keeps_up(&self) -> bool {
        self.inbox.next - self.consumed <= self.window / 2
    }

    pub(super) fn is_done(&self) -> bool {
        self.reset.is_some() || (self.end_sent && self.ended())
    }

    pub(super) fn waiting(&self) -> Waiting {
        let ends = self.ending && !self.end_sent;
        if self.reset.is_some() || (self.queue.is_empty() && !ends) {
            Waiting::Nothing
        } else if self.unknown || (!self.queue.is_empty() && self.sent >= self.limit) {
            Waiting::Blocked
        } else {
            Waiting::Ready
        }
    }
}

/// Data of a stream that came.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// In order, and not taken.
    pub(super) buffer: Vec<u8>,
    /// Where the data in order ends.
    pub(super) next: u64,
    /// Data beyond, which waits for what lies between.
    early: RangeSet<u64>,
    bytes: Ring,
    /// Bytes of it.
    pub(super) held: u64,
}

impl Inbox {
    /// Separate pieces that wait.
    pub(super) fn pieces(&self) -> usize {
        self.early.len()
    }

    /// Where the data that came ends.
    pub(super) fn end(&self) -> u64 {
        self.early.last().map_or(self.next, |last| last.end)
    }

    /// Takes in `bytes` from `offset` on. True where there is more to read than before.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let end = offset + bytes.len() as u64;
        if end <= self.next || bytes.is_empty() {
            return false;
        }
        let bytes = &bytes[self.next.saturating_sub(offset) as usize..];
        let offset = offset.max(self.next);
        if offset > self.next {
            let news: u64 = self.early.gaps(&(offset..end)).map(|gap| gap.end - gap.start).sum();
            self.held += news;
            self.bytes.forget_before(self.next);
            self.bytes.put(offset, bytes);
            self.early.insert(offset..end);
            return false;
        }
        self.append(bytes);
        self.next = end;
        if !self.early.is_empty() {
            self.join();
        }
        true
    }

    /// Takes over the early data that is in order now.
    fn join(&mut self) {
        let passed: u64 =
            self.early.overlapping(0..self.next).map(|range| range.end.min(self.next) - range.start).sum();
        self.held -= passed;
        self.early.remove(0..self.next);
        if let Some(first) = self.early.first().cloned().filter(|first| first.start == self.next) {
            let bytes = std::mem::take(&mut self.bytes);
            let (one, two) = bytes.slices(first.start, (first.end - first.start) as usize);
            self.append(one);
            self.append(two);
            self.bytes = bytes;
            self.held -= first.end - first.start;
            self.next = first.end;
            self.early.remove(first);
        }
        self.bytes.forget_before(self.next);
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() - self.buffer.len() < bytes.len() {
            // A quarter more than it holds: twice as much would be twice what was granted.
            self.buffer.reserve_exact(bytes.len().max(self.buffer.len() / 4));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Forgets what waits, as nobody will read it.
    pub(super) fn drop_early(&mut self) {
        self.early = RangeSet::new();
        self.bytes = Ring::default();
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_order_data_comes_in_it_is_read_once_and_in_order(
            pieces in prop::collection::vec((0..300_u64, 1..60_usize), 1..60),
        ) {
            let byte = |place: u64| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
            let (mut inbox, mut came, mut read) = (Inbox::default(), [false; 400], Vec::new());
            for (offset, len) in pieces.into_iter().chain([(0, 360)]) {
                let bytes: Vec<_> = (offset..offset + len as u64).map(byte).collect();
                let more = inbox.put(offset, &bytes);
                came[offset as usize..offset as usize + len].fill(true);
                let taken = std::mem::take(&mut inbox.buffer);
                prop_assert_eq!(more, !taken.is_empty());
                read.extend(taken);
                let in_order = came.iter().take_while(|came| **came).count();
                prop_assert_eq!(read.len(), in_order);
                let held = came.iter().filter(|came| **came).count() - in_order;
                prop_assert_eq!(inbox.held, held as u64);
            }
            prop_assert_eq!((inbox.held, inbox.pieces()), (0, 0));
            prop_assert!(read.iter().enumerate().all(|(place, got)| *got == byte(place as u64)));
        }
    }
}
