//! The share of each heavy flow, in integers: [`crate::estimate::heaviest`] with weights that double each half-life.
//!
//! Counts are halved as often as half-lives have passed, each set as a packet comes to it. So no packet takes longer
//! than another.

use alloc::boxed::Box;
use alloc::vec;

use super::sets::{ENTRIES, SETS, entries_of, set_of};
use super::{ONE, Tables};

/// Bytes per flow over a sliding window; `N` is a note on a flow.
#[derive(Debug, Clone)]
pub(super) struct Heaviest<N> {
    half_life: u64,
    entries: Box<[Entry<N>]>,
    epochs: Box<[u64]>,
    /// Half-lives that have passed, and weighted bytes as of then: of all flows, and of the heaviest.
    epoch: u64,
    total: u64,
    heaviest: Option<(u32, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry<N> {
    count: u64,
    error: u64,
    flow: u32,
    note: N,
}

impl<N: Copy + Default> Heaviest<N> {
    pub(super) fn new(half_life: u64) -> Self {
        let entries = vec![Entry::default(); ENTRIES].into_boxed_slice();
        let epochs = vec![0; SETS].into_boxed_slice();
        Self { half_life, entries, epochs, epoch: 0, total: 0, heaviest: None }
    }

    /// Brings the set of `flow`, and the totals, to `now`. Everything else takes this for granted.
    pub(super) fn age(&mut self, now: u64, flow: u32) {
        let epoch = now / self.half_life;
        if epoch > self.epoch {
            let halvings = (epoch - self.epoch).min(63);
            self.epoch = epoch;
            self.total >>= halvings;
            if let Some((_, most)) = &mut self.heaviest {
                *most >>= halvings;
            }
        }
        let set = set_of(flow);
        let halvings = (self.epoch - self.epochs[set]).min(63);
        if halvings > 0 {
            self.epochs[set] = self.epoch;
            for entry in &mut self.entries[entries_of(set)] {
                entry.count >>= halvings;
                entry.error >>= halvings;
            }
        }
    }

    pub(super) fn on_packet(&mut self, now: u64, flow: u32, size: u64, tables: &Tables) {
        // 2^(part of a half-life) = 2 * 2^(the part until the next).
        let into = now.saturating_sub(self.epoch * self.half_life).min(self.half_life - 1);
        let until_next = ((self.half_life - into) << 32) / self.half_life;
        let weighted = size * (tables.power_of_half(until_next) >> 15);
        self.total += weighted;
        let set = &mut self.entries[entries_of(set_of(flow))];
        let at = set.iter().position(|entry| entry.flow == flow).unwrap_or_else(|| {
            let mut least = 0;
            for (at, entry) in set.iter().enumerate() {
                if entry.count < set[least].count {
                    least = at;
                }
            }
            let count = set[least].count;
            set[least] = Entry { count, error: count, flow, note: N::default() };
            least
        });
        set[at].count += weighted;
        let certain = set[at].count - set[at].error;
        if self.heaviest.is_none_or(|(heaviest, most)| heaviest == flow || certain > most) {
            self.heaviest = Some((flow, certain));
        }
    }

    /// The flow that sent most, and its weighted bytes.
    pub(super) fn heaviest(&self) -> Option<(u32, u64)> {
        self.heaviest
    }

    /// The weighted bytes that `flow` certainly sent.
    pub(super) fn certain(&self, flow: u32) -> u64 {
        let own = self.entries[entries_of(set_of(flow))].iter().find(|entry| entry.flow == flow);
        own.map_or(0, |entry| entry.count - entry.error)
    }

    pub(super) fn note(&mut self, flow: u32) -> Option<&mut N> {
        let own = self.entries[entries_of(set_of(flow))].iter_mut().find(|entry| entry.flow == flow);
        own.map(|entry| &mut entry.note)
    }

    /// The share of the heaviest in all bytes.
    pub(super) fn heaviest_share(&self) -> f64 {
        self.heaviest.map_or(0.0, |(_, most)| most as f64 / self.total.max(1) as f64)
    }
}

/// `a / b` in parts of [`ONE`], at most one; for counts of bytes in 1/65536.
pub(super) fn ratio(a: u64, b: u64) -> u64 {
    if a >= b { ONE } else { ((a.min(MAX_COUNT) << 16) / (b >> 16).max(1)).min(ONE) }
}

const MAX_COUNT: u64 = (1 << 48) - 1;
