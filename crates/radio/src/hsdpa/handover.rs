//! Gaps while a terminal changes the cell.

use suimon_algorithms::RandomStream;
use suimon_units::{Duration, Instant};

/// When nothing can be sent to a terminal.
#[derive(Debug)]
pub(super) struct Handovers {
    every: Option<Duration>,
    gap: Duration,
    /// The next gap, or the one under way.
    begins: Instant,
    ends: Instant,
    random: RandomStream,
}

impl Handovers {
    pub(super) fn new(every: Option<Duration>, gap: Duration, random: RandomStream) -> Self {
        Self { every, gap, begins: Instant::ZERO, ends: Instant::ZERO, random }
    }

    /// True in a gap; `now` never goes back.
    pub(super) fn is_gap(&mut self, now: Instant) -> bool {
        let Some(every) = self.every else { return false };
        while self.ends <= now {
            self.begins = self.ends + self.random.exponential(every);
            self.ends = self.begins + self.gap;
        }
        self.begins <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_take_their_share_of_time() {
        let (every, gap) = (Duration::from_secs(2), Duration::from_millis(500));
        let mut handovers = Handovers::new(Some(every), gap, RandomStream::new(1, "handover"));
        let steps = 1_000_000_u64;
        let at = |n| Instant::ZERO + Duration::from_millis(10) * n;
        let in_gap = (0..steps).filter(|n| handovers.is_gap(at(*n))).count();
        // Half a second of every two and a half.
        assert!((in_gap as f64 / steps as f64 - 0.2).abs() < 0.01, "{in_gap}");
        let mut stays = Handovers::new(None, gap, RandomStream::new(1, "handover"));
        assert!((0..100).all(|n| !stays.is_gap(at(n))));
    }
}
