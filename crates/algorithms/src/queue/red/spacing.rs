//! RED's spacing of marks.

use suimon_units::Probability;

use crate::random::RandomStream;

/// Spaces marks: with a constant `p_b`, evenly instead of in bursts as independent draws would.
#[derive(Debug, Clone)]
pub struct Spacing {
    /// Packets since the last mark; `None` where the average was below `min_th`.
    count: Option<u64>,
    wait: bool,
}

impl Spacing {
    /// With `wait`, the distance of marks is uniform on `1/p_b..2/p_b`, and else on `1..1/p_b`.
    #[must_use]
    pub fn new(wait: bool) -> Self {
        Self { count: None, wait }
    }

    /// The average is below `min_th`.
    pub fn calm(&mut self) {
        self.count = None;
    }

    /// A packet was lost or marked by other means.
    pub fn restart(&mut self) {
        self.count = Some(0);
    }

    /// Whether to mark the arrival, at probability `p_b`.
    pub fn marks(&mut self, p_b: Probability, random: &mut RandomStream) -> bool {
        // From -1 in the paper, so that the first packet above the threshold has count 0.
        let count = self.count.map_or(0, |count| count + 1);
        let marked = random.chance(self.p_a(p_b.get(), count));
        self.count = Some(if marked { 0 } else { count });
        marked
    }

    fn p_a(&self, p_b: f64, count: u64) -> Probability {
        let due = count as f64 * p_b;
        let left = match (self.wait, due) {
            (true, due) if due < 1.0 => return Probability::ZERO,
            (true, due) => 2.0 - due,
            (false, due) => 1.0 - due,
        };
        // Past the end of the interval a mark is overdue, unless there is nothing to mark.
        Probability::clamped(if left > 0.0 { p_b / left } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances of marks over many, as shares by distance.
    fn distances(wait: bool, p: f64, first: bool) -> Vec<f64> {
        let mut random = RandomStream::new(3, "spacing");
        let mut spacing = Spacing::new(wait);
        spacing.restart();
        let mut shares = vec![0.0; 64];
        const MARKS: usize = 100_000;
        for _ in 0..MARKS {
            if first {
                spacing.calm();
            }
            let distance = (1..).find(|_| spacing.marks(Probability::clamped(p), &mut random)).unwrap();
            shares[distance] += 1.0 / MARKS as f64;
        }
        shares
    }

    fn assert_uniform(shares: &[f64], on: std::ops::RangeInclusive<usize>) {
        let expected = 1.0 / on.clone().count() as f64;
        for (distance, share) in shares.iter().enumerate() {
            let expected = if on.contains(&distance) { expected } else { 0.0 };
            // Five standard deviations of a share over 100 000 draws.
            assert!((share - expected).abs() < 5.0 * (expected / 1e5).sqrt() + 1e-12, "{distance}: {share}");
        }
    }

    #[test]
    fn the_first_mark_is_uniform_on_the_first_one_pth_packets() {
        assert_uniform(&distances(false, 0.05, true), 1..=20);
    }

    /// The paper's figure counts the packet after a mark as the first, so the interval is one shorter.
    #[test]
    fn later_marks_are_uniform_and_never_in_bursts() {
        assert_uniform(&distances(false, 0.05, false), 1..=19);
    }

    #[test]
    fn with_wait_one_pth_packets_pass_before_each_mark() {
        assert_uniform(&distances(true, 0.0625, false), 16..=31);
    }
}
