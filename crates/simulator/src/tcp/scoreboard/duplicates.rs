//! Losses without SACK: a duplicate acknowledgement says that some segment arrived, and not which (RFC 5681 §3.2).
//!
//! As in Linux, each one counts for the first segment behind the missing one that was not counted yet. So the flight
//! shrinks by a segment with each, which is ns-2's inflated window.

use super::{DUP_THRESH, LOST, SACKED, Scoreboard};

/// What is known of the latest losses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Duplicates {
    /// `snd_nxt` at the latest loss or timeout: until more than this is acknowledged, duplicates show no other loss.
    recover: u64,
}

impl Scoreboard {
    /// The segment for which an acknowledgement up to `ack` counts, where it confirms nothing new. After a timeout,
    /// duplicates come of what the receiver has twice, and count for nothing.
    #[cold]
    pub(super) fn duplicate(&mut self, ack: u64) -> Option<(u64, u64)> {
        if ack > self.snd_una {
            self.forget_duplicates();
            return None;
        }
        let next = self.segments.get(1 + self.counted_duplicates()).filter(|next| !next.is(LOST))?;
        Some((next.seq(self.snd_nxt), next.end(self.snd_nxt)))
    }

    /// The third duplicate shows that the first segment is lost.
    #[cold]
    pub(super) fn detect_by_duplicates(&mut self, Duplicates { recover }: Duplicates) {
        let is_news = recover == 0 || self.snd_una > recover;
        if !is_news || self.counted_duplicates() < DUP_THRESH as usize {
            return;
        }
        if let Some(first) = self.segments.get_mut(0)
            && !first.is(LOST)
        {
            first.set(LOST);
            self.lost += u64::from(first.len);
            self.losses += 1;
            self.retransmit_from = self.snd_una;
            self.duplicates = Some(Duplicates { recover: self.snd_nxt });
        }
    }

    /// The next acknowledgement of new data says where the receiver is, and the count begins anew; so does a timeout.
    pub(super) fn forget_duplicates(&mut self) {
        if self.duplicates.is_none() {
            return;
        }
        for segment in self.segments.iter_mut() {
            segment.clear(SACKED);
        }
        self.sacked = 0;
        self.sacked_ranges.remove_below(u64::MAX);
    }

    /// Everything sent so far counts as lost, and duplicates show no other loss of it.
    pub(super) fn ignore_duplicates(&mut self) {
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.recover = self.snd_nxt;
        }
    }

    fn counted_duplicates(&self) -> usize {
        let behind = (1..).map_while(|index| self.segments.get(index));
        behind.take_while(|segment| segment.is(SACKED)).count()
    }
}
