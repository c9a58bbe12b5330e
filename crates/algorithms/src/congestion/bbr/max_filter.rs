//! BBR's estimate of the bandwidth.

use suimon_units::Rate;

/// The largest sample of the last ten rounds (§4.1.1.5), by K. Nichols' filter as Linux has it: it keeps the best
/// sample, the best after that, and the best after that one, so the next largest may be one that came a little
/// earlier or later than the true one.
#[derive(Debug, Clone, Default)]
pub(super) struct MaxFilter {
    best: [Sample; 3],
}

#[derive(Debug, Default, Clone, Copy)]
struct Sample {
    round: u64,
    rate: Rate,
}

impl MaxFilter {
    /// Rounds after which a sample no longer counts.
    const ROUNDS: u64 = 10;

    /// Takes the `sample` of `round`, which is not before the one of the last sample. The filter forgets only
    /// here, so that a silence of many rounds leaves the last estimate in force.
    pub(super) fn update(&mut self, round: u64, sample: Rate) {
        let new = Sample { round, rate: sample };
        let age = |of: Sample| round - of.round;
        if new.rate >= self.best[0].rate || age(self.best[2]) > Self::ROUNDS {
            self.best = [new; 3];
            return;
        }
        if new.rate >= self.best[1].rate {
            self.best = [self.best[0], new, new];
        } else if new.rate >= self.best[2].rate {
            self.best[2] = new;
        }
        let [first, second, third] = self.best;
        if age(first) > Self::ROUNDS {
            self.best = [second, third, new];
            if age(second) > Self::ROUNDS {
                self.best = [third, new, new];
            }
        } else if second.round == first.round && age(first) > Self::ROUNDS / 4 {
            // The second quarter of the window has its own best, and so has the second half.
            self.best = [first, new, new];
        } else if third.round == second.round && age(first) > Self::ROUNDS / 2 {
            self.best[2] = new;
        }
    }

    /// The largest that the filter holds; zero before the first sample.
    pub(super) fn max(&self) -> Rate {
        self.best[0].rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_about_the_largest_sample_of_the_last_ten_rounds() {
        let samples = [7, 3, 9, 1, 4, 4, 2, 8, 1, 1, 6, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        // The 9 of round 2 counts to round 12, the 8 of round 7 to 17, the 5 of 15 to 25; the 6 of round 10 is
        // behind the 8, and the 5 takes its place when it is two and a half rounds from the 8.
        let expected = [7, 7, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 6, 6, 6, 5, 5, 5, 5, 5, 1, 1];
        let mut filter = MaxFilter::default();
        let mut found = Vec::new();
        for (round, sample) in (0..).zip(samples) {
            filter.update(round, Rate::from_bps(sample));
            found.push(filter.max().as_bps());
            let from = (round as usize).saturating_sub(10);
            let largest = samples[from..=round as usize].iter().max().unwrap();
            assert!(filter.max().as_bps() <= *largest, "round {round}");
        }
        assert_eq!(found, expected);
        filter.update(1_000, Rate::from_bps(2));
        assert_eq!(filter.max().as_bps(), 2, "after rounds without a sample");
    }
}
