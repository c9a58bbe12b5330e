//! The receiving end: order across connections.

use std::ops::Range;

use rangemap::RangeSet;
use suimon_units::Bytes;

/// Puts data of several connections back in order.
#[derive(Debug, Clone)]
pub struct AggregateReceiver {
    /// Next byte that the application is due.
    next: u64,
    /// Data that came early.
    early: RangeSet<u64>,
    /// Bytes in `early`.
    held: Bytes,
    buffer: Bytes,
}

/// The result of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Bytes that are in order now and go to the application.
    pub in_order: Bytes,
    /// Bytes that had come before, by another path.
    pub duplicate: Bytes,
}

/// The message of the receiving end to the sending one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Feedback {
    /// Next byte that the application is due: all before it arrived.
    pub next: u64,
    /// First byte that there is no room for.
    pub edge: u64,
}

impl AggregateReceiver {
    /// Nothing arrived yet; `buffer` bytes may wait for others.
    #[must_use]
    pub fn new(buffer: Bytes) -> Self {
        Self { next: 0, early: RangeSet::new(), held: Bytes::ZERO, buffer }
    }

    /// The parts of the `len` bytes from `start` on that have not come before.
    #[must_use]
    pub fn fresh(&self, start: u64, len: Bytes) -> Vec<Range<u64>> {
        let end = start + len.get();
        self.early.gaps(&(start.max(self.next)..end.max(self.next))).collect()
    }

    /// One of the connections delivers the `len` bytes from `start` on.
    pub fn on_chunk(&mut self, start: u64, len: Bytes) -> Arrived {
        let end = start + len.get();
        let fresh = start.max(self.next)..end.max(self.next);
        let news: u64 = self.early.gaps(&fresh).map(|gap| gap.end - gap.start).sum();
        let duplicate = len - Bytes::new(news);
        if !fresh.is_empty() {
            self.held += Bytes::new(news);
            self.early.insert(fresh);
        }
        let before = self.next;
        if let Some(first) = self.early.first().cloned().filter(|first| first.start == self.next) {
            self.next = first.end;
            self.early.remove(first);
        }
        let in_order = Bytes::new(self.next - before);
        self.held -= in_order;
        Arrived { in_order, duplicate }
    }

    /// Next byte that the application is due.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that wait for others.
    #[must_use]
    pub fn held(&self) -> Bytes {
        self.held
    }

    /// Separate ranges of these bytes.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.early.len()
    }

    /// The message for the sending end.
    #[must_use]
    pub fn feedback(&self) -> Feedback {
        Feedback { next: self.next, edge: self.next + self.buffer.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrive(receiver: &mut AggregateReceiver, start: u64, len: u64) -> (u64, u64, u64) {
        let arrived = receiver.on_chunk(start, Bytes::new(len));
        (arrived.in_order.get(), arrived.duplicate.get(), receiver.held().get())
    }

    #[test]
    fn early_data_waits_until_the_gap_is_filled() {
        let mut receiver = AggregateReceiver::new(Bytes::new(10_000));
        assert_eq!(arrive(&mut receiver, 1_000, 500), (0, 0, 500));
        assert_eq!(arrive(&mut receiver, 2_000, 500), (0, 0, 1_000));
        assert_eq!(arrive(&mut receiver, 0, 1_000), (1_500, 0, 500));
        assert_eq!(receiver.feedback(), Feedback { next: 1_500, edge: 11_500 });
        assert_eq!(arrive(&mut receiver, 1_500, 500), (1_000, 0, 0));
    }

    #[test]
    fn what_came_before_counts_as_duplicate_and_is_not_delivered_again() {
        let mut receiver = AggregateReceiver::new(Bytes::new(10_000));
        assert_eq!(arrive(&mut receiver, 0, 1_000), (1_000, 0, 0));
        assert_eq!(arrive(&mut receiver, 500, 1_000), (500, 500, 0));
        assert_eq!(arrive(&mut receiver, 0, 1_500), (0, 1_500, 0));
        assert_eq!(arrive(&mut receiver, 3_000, 100), (0, 0, 100));
        assert_eq!(arrive(&mut receiver, 2_950, 200), (0, 100, 200));
    }

    proptest! {
        /// Against a map of single bytes.
        #[test]
        fn bytes_are_delivered_once_and_in_order(
            chunks in prop::collection::vec((0..300_u64, 1..60_u64), 1..80),
        ) {
            let mut receiver = AggregateReceiver::new(Bytes::new(1_000));
            let mut seen = [false; 400];
            for (start, len) in chunks {
                let (next, news) = (receiver.next(), (start..start + len).filter(|i| !seen[*i as usize]).count());
                seen[start as usize..(start + len) as usize].fill(true);
                let expected = seen.iter().take_while(|seen| **seen).count() as u64;
                let arrived = receiver.on_chunk(start, Bytes::new(len));
                prop_assert_eq!(receiver.next(), expected);
                prop_assert_eq!(arrived.in_order.get(), expected - next);
                prop_assert_eq!(arrived.duplicate.get(), len - news as u64);
                let held = seen.iter().filter(|seen| **seen).count() as u64 - expected;
                prop_assert_eq!(receiver.held().get(), held);
            }
        }
    }
}
