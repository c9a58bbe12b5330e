//! Random streams: one per component, keyed by a seed and the component's name, so that adding a
//! component leaves the draws of the others alone.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use suimon_units::{Duration, Probability};

/// A stream of pseudo-random numbers, the same on every platform.
#[derive(Debug, Clone)]
pub struct RandomStream(Xoshiro256PlusPlus);

impl RandomStream {
    /// The stream that `seed` and the component called `name` define.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        // FNV-1a keys the name; SplitMix64 inside `seed_from_u64` spreads the bits.
        let key = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(key ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in `0.0..1.0`.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: Probability) -> bool {
        self.uniform() < p.get()
    }

    /// Uniform in `0..bound`; zero for an empty range.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform between `low` and `high`.
    pub fn duration_between(&mut self, low: Duration, high: Duration) -> Duration {
        low + high.saturating_sub(low).mul_f64(self.uniform())
    }

    /// Exponentially distributed with this `mean`.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        mean.mul_f64(-libm::log(1.0 - self.uniform()))
    }

    /// Normally distributed with mean zero and variance one (Box, Muller 1958).
    pub fn standard_normal(&mut self) -> f64 {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_name_and_by_seed_and_repeat() {
        let draw = |seed, name: &str| RandomStream::new(seed, name).uniform();
        assert_eq!(draw(1, "link"), draw(1, "link"));
        assert_ne!(draw(1, "link"), draw(1, "flow"));
        assert_ne!(draw(1, "link"), draw(2, "link"));
    }

    #[test]
    fn means_are_as_asked_for() {
        let mut stream = RandomStream::new(7, "means");
        let n = 100_000;
        let uniform = (0..n).map(|_| stream.uniform()).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
        let mean = Duration::from_millis(20);
        let exponential =
            (0..n).map(|_| stream.exponential(mean).as_millis_f64()).sum::<f64>() / f64::from(n);
        assert!((exponential - 20.0).abs() < 0.3, "{exponential}");
        let hits = (0..n).filter(|_| stream.chance(Probability::clamped(0.1))).count();
        assert!((9_600..10_400).contains(&hits), "{hits}");
        assert!((0..n).all(|_| stream.below(3) < 3));
        assert_eq!(stream.below(0), 0);
        let normal: Vec<f64> = (0..n).map(|_| stream.standard_normal()).collect();
        let mean = normal.iter().sum::<f64>() / f64::from(n);
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean}, {variance}");
    }
}
