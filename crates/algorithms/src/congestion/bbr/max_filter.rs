//! BBR's estimate of the bandwidth.

use suimon_units::Rate;

/// The largest sample of the last ten rounds (§4.1.1.5).
#[derive(Debug, Default)]
pub(super) struct MaxFilter {
    /// The largest of each round, at the round's number modulo the length.
    by_round: [Rate; MaxFilter::ROUNDS as usize],
    newest: u64,
    max: Rate,
}

impl MaxFilter {
    const ROUNDS: u64 = 10;

    /// Takes the `sample` of `round`, which is not before the one of the last sample. The filter forgets only
    /// here, so that a silence of many rounds leaves the last estimate in force.
    pub(super) fn update(&mut self, round: u64, sample: Rate) {
        let skipped = (round - self.newest).min(Self::ROUNDS);
        for gone in 0..skipped {
            self.by_round[((round - gone) % Self::ROUNDS) as usize] = Rate::ZERO;
        }
        self.newest = round;
        let slot = &mut self.by_round[(round % Self::ROUNDS) as usize];
        *slot = (*slot).max(sample);
        self.max = if skipped == 0 { self.max.max(sample) } else { self.largest() };
    }

    /// The largest that the filter holds; zero before the first sample.
    pub(super) fn max(&self) -> Rate {
        self.max
    }

    fn largest(&self) -> Rate {
        self.by_round.iter().copied().max().unwrap_or(Rate::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_the_largest_sample_of_the_last_ten_rounds() {
        let samples = [7, 3, 9, 1, 4, 4, 2, 8, 1, 1, 6, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        let mut filter = MaxFilter::default();
        for (round, sample) in (0..).zip(samples) {
            filter.update(round, Rate::from_bps(sample));
            let from = (round as usize + 1).saturating_sub(10);
            let expected = samples[from..=round as usize].iter().max().unwrap();
            assert_eq!(filter.max().as_bps(), *expected, "round {round}");
        }
        filter.update(1_000, Rate::from_bps(2));
        assert_eq!(filter.max().as_bps(), 2, "after rounds without a sample");
    }
}
