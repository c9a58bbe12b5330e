//! How far apart marks are.

use suimon_units::Probability;

use crate::random::RandomStream;

/// Distances between marks at a constant probability `p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distances {
    /// Each packet is drawn alone: geometric, with bursts.
    Independent,
    /// Uniform on `1..1/p` (Floyd, Jacobson 1993 §4).
    Uniform,
    /// Uniform on `1/p..2/p`, as ns-2 has it.
    Wait,
}

/// Chooses packets so that their distances are as asked for.
#[derive(Debug, Clone)]
pub struct Spacing {
    /// Packets since the last mark; `None` where the queue was short.
    count: Option<u64>,
    distances: Distances,
}

impl Spacing {
    /// Nothing was chosen yet.
    #[must_use]
    pub fn new(distances: Distances) -> Self {
        Self { count: None, distances }
    }

    /// The queue is short, and what went before no longer counts.
    pub fn calm(&mut self) {
        self.count = None;
    }

    /// A packet was lost or marked by other means.
    pub fn restart(&mut self) {
        self.count = Some(0);
    }

    /// Whether to choose the arrival, at probability `p_b`.
    pub fn chooses(&mut self, p_b: Probability, random: &mut RandomStream) -> bool {
        // From -1 in the paper, so that the first packet above the threshold has count 0.
        let count = self.count.map_or(0, |count| count + 1);
        let chosen = random.chance(self.p_a(p_b.get(), count));
        self.count = Some(if chosen { 0 } else { count });
        chosen
    }

    fn p_a(&self, p_b: f64, count: u64) -> Probability {
        let due = count as f64 * p_b;
        let left = match self.distances {
            Distances::Independent => 1.0,
            Distances::Uniform => 1.0 - due,
            Distances::Wait if due < 1.0 => return Probability::ZERO,
            Distances::Wait => 2.0 - due,
        };
        // Past the end of the interval a mark is overdue, unless there is nothing to mark.
        Probability::clamped(if left > 0.0 { p_b / left } else { 1.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances of marks over many, as shares by distance.
    fn shares(distances: Distances, p: f64, first: bool) -> Vec<f64> {
        let mut random = RandomStream::new(3, "spacing");
        let mut spacing = Spacing::new(distances);
        spacing.restart();
        let mut shares = vec![0.0; 64];
        const MARKS: usize = 100_000;
        for _ in 0..MARKS {
            if first {
                spacing.calm();
            }
            let distance = (1..).find(|_| spacing.chooses(Probability::clamped(p), &mut random)).unwrap();
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
        assert_uniform(&shares(Distances::Uniform, 0.05, true), 1..=20);
    }

    /// The paper's figure counts the packet after a mark as the first, so the interval is one shorter.
    #[test]
    fn later_marks_are_uniform_and_never_in_bursts() {
        assert_uniform(&shares(Distances::Uniform, 0.05, false), 1..=19);
    }

    #[test]
    fn with_wait_one_pth_packets_pass_before_each_mark() {
        assert_uniform(&shares(Distances::Wait, 0.0625, false), 16..=31);
    }

    #[test]
    fn independent_draws_come_in_bursts_too() {
        let shares = shares(Distances::Independent, 0.25, false);
        for (distance, share) in shares.iter().enumerate().skip(1).take(20) {
            let expected = 0.25 * libm::pow(0.75, distance as f64 - 1.0);
            assert!((share - expected).abs() < 5.0 * (expected / 1e5).sqrt(), "{distance}: {share}");
        }
    }
}
