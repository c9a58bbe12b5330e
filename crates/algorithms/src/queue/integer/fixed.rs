//! Fixed-point arithmetic: 64-bit unsigned integers and two tables, which is all that a program for the kernel has.

use alloc::boxed::Box;

/// One, as a probability or a fraction: 32 bits follow the point.
pub const ONE: u64 = 1 << 32;

/// Entries of a table: 256 steps and the end of the last.
pub const ENTRIES: usize = 257;

/// Logarithms and powers of two, between whose entries values are interpolated.
#[derive(Debug, Clone)]
pub struct Tables {
    /// `log2(1 + i / 256)`, 32 bits after the point.
    pub log2: Box<[u64; ENTRIES]>,
    /// `2^(-i / 256)`, 32 bits after the point.
    pub exp2: Box<[u64; ENTRIES]>,
}

impl Default for Tables {
    fn default() -> Self {
        let table = |value: fn(f64) -> f64| {
            let fixed = |entry: usize| libm::round(value(entry as f64 / 256.0) * ONE as f64) as u64;
            Box::new(core::array::from_fn(fixed))
        };
        Self { log2: table(|x| libm::log2(1.0 + x)), exp2: table(|x| libm::exp2(-x)) }
    }
}

impl Tables {
    /// `-log2(m)` for `m` above 0 and up to [`ONE`].
    #[must_use]
    pub fn negative_log2(&self, m: u64) -> u64 {
        if m >= ONE {
            return 0;
        }
        // `m` is 2^-shift times a number from 1 to 2.
        let shift = u64::from(m.max(1).leading_zeros()) - 31;
        let fraction = ((m.max(1) << shift) - ONE) & (ONE - 1);
        let (at, rest) = ((fraction >> 24) as usize, fraction & STEP_MASK);
        let (low, high) = (self.log2[at], self.log2[at + 1]);
        (shift << 32) - (low + (((high - low) * rest) >> 24))
    }

    /// `2^-e`.
    #[must_use]
    pub fn power_of_half(&self, e: u64) -> u64 {
        let whole = e >> 32;
        if whole >= 32 {
            return 0;
        }
        let fraction = e & (ONE - 1);
        let (at, rest) = ((fraction >> 24) as usize, fraction & STEP_MASK);
        let (high, low) = (self.exp2[at], self.exp2[at + 1]);
        (high - (((high - low) * rest) >> 24)) >> whole
    }
}

/// The part of a fraction that lies between two entries.
const STEP_MASK: u64 = (1 << 24) - 1;

/// `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), of which the upper half
/// is used: one word of state.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream that begins with `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Thirty-two bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 32
    }

    /// Uniform in `0..bound`, for a bound below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.bits() * bound) >> 32
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: u64) -> bool {
        self.bits() < p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_are_those_of_floats_within_a_few_millionths() {
        let tables = Tables::default();
        let mut random = Random::new(1);
        for _ in 0..100_000 {
            let m = (random.bits() >> random.below(32)).max(1);
            let expected = -libm::log2(m as f64 / ONE as f64);
            let got = tables.negative_log2(m) as f64 / ONE as f64;
            assert!((got - expected).abs() < 3e-6, "{m}: {got} {expected}");
            let e = random.bits() << random.below(6);
            let expected = libm::exp2(-(e as f64) / ONE as f64);
            let got = tables.power_of_half(e) as f64 / ONE as f64;
            assert!((got - expected).abs() < 2e-6, "{e}: {got} {expected}");
        }
        assert_eq!(tables.negative_log2(ONE), 0);
        assert_eq!(tables.negative_log2(1), 32 << 32);
        assert_eq!(tables.power_of_half(0), ONE);
        assert_eq!(tables.power_of_half(32 << 32), 0);
    }

    /// The first value for seed 0 of the authors' own program.
    #[test]
    fn the_generator_is_the_published_one() {
        assert_eq!(Random::new(0).bits(), 0xe220_a839_7b1d_cdaf >> 32);
    }
}
