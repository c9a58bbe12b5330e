//! Link adaptation: signal quality to CQI, to transport block, to block error rate.

use suimon_units::{Bytes, Probability};

/// A channel quality indicator: 0 for "out of range", 1 to 30.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cqi(u8);

impl Cqi {
    /// The largest.
    pub const MAX: Self = Self(30);

    /// The indicator that a signal-to-interference ratio of `sinr_db` asks for (R1-02-0675, as in Brouwer and
    /// others, "Usage of Link-Level Performance Indicators for HSDPA Network-Level Simulations in E-UMTS", 2004).
    #[must_use]
    pub fn of_sinr_db(sinr_db: f64) -> Self {
        Self((sinr_db / 1.02 + 16.62).floor().clamp(0.0, 30.0) as u8)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The share of blocks of this indicator that are lost at `sinr_db` (Brouwer and others 2004, eq. 5).
    /// Above the largest block of the terminal the power offset of TS 25.214 keeps the margin.
    #[must_use]
    pub fn block_error_rate(self, sinr_db: f64) -> Probability {
        let cqi = f64::from(self.0.max(1));
        let exponent = 2.0 * (sinr_db - 1.03 * cqi + 17.3) / (libm::sqrt(3.0) - libm::log10(cqi));
        let base = libm::exp(exponent * std::f64::consts::LN_10) + 1.0;
        Probability::clamped(libm::exp(-libm::log(base) / 0.7))
    }
}

/// Transport block sizes in bits by CQI from 1 (TS 25.214, tables 7A to 7E, which share their beginning).
const BLOCK_BITS: [u32; 30] = [
    137, 173, 233, 317, 377, 461, 650, 792, 931, 1262, 1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287,
    5887, 6554, 7168, 9719, 11418, 14411, 17237, 21754, 23370, 24222, 25558,
];

/// The UE category: the terminal's receiving capability (TS 25.306, table 5.1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category(u8);

impl Category {
    /// Up to 3.6 Mbit/s: five codes in every TTI.
    pub const SIX: Self = Self(6);
    /// The last one known here.
    pub const LAST: u8 = 12;

    /// The category of this number, from 1 to 12.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if 1 <= number && number <= Self::LAST { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// From one TTI in which it receives to the next.
    #[must_use]
    pub const fn inter_tti(self) -> u64 {
        match self.0 {
            1 | 2 => 3,
            3 | 4 | 11 => 2,
            _ => 1,
        }
    }

    /// The CQI with its largest block.
    const fn largest(self) -> u8 {
        match self.0 {
            11 | 12 => 15,
            7 | 8 => 25,
            9 => 26,
            10 => 30,
            _ => 22,
        }
    }

    /// Size of the transport block that `cqi` allows; nothing for CQI 0.
    #[must_use]
    pub fn block_bits(self, cqi: Cqi) -> u32 {
        match cqi.0.min(self.largest()) {
            0 => 0,
            cqi => BLOCK_BITS[usize::from(cqi) - 1],
        }
    }

    /// Payload of a transport block: 15/16 of it, since 21 RLC units of 336 bits with 320 of payload fill 7168.
    #[must_use]
    pub fn payload(self, cqi: Cqi) -> Bytes {
        Bytes::new((u64::from(self.block_bits(cqi)) * 15 + 64) / 128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_fifteen_sixteenths_rounded() {
        for cqi in 1..=30 {
            let exact = f64::from(Category::SIX.block_bits(Cqi(cqi))) * 15.0 / 16.0 / 8.0;
            assert_eq!(Category::SIX.payload(Cqi(cqi)).as_f64(), exact.round(), "CQI {cqi}");
        }
        assert_eq!(Category::SIX.payload(Cqi(22)), Bytes::new(840));
        assert_eq!(Category::SIX.payload(Cqi(30)), Bytes::new(840));
        assert_eq!(Category::SIX.payload(Cqi(0)), Bytes::ZERO);
    }

    #[test]
    fn a_category_caps_the_block() {
        let largest = |number| Category::new(number).unwrap().block_bits(Cqi::MAX);
        assert_eq!([1, 6, 8, 9, 10, 12].map(largest), [7168, 7168, 14411, 17237, 25558, 3319]);
        assert_eq!([1, 3, 6, 10, 11, 12].map(|n| Category::new(n).unwrap().inter_tti()), [3, 2, 1, 1, 2, 1]);
        assert_eq!((Category::new(0), Category::new(13)), (None, None));
    }

    #[test]
    fn error_rates_are_those_computed_by_hand() {
        // By a pocket calculator: S = 0 dB is CQI 16; (2 (0 - 16.48 + 17.3) / (1.73205 - 1.20412) = 3.1064,
        // 10^3.1064 + 1 = 1278.7, to the power -1/0.7 = 3.64e-5.
        let rate = |cqi, sinr_db| Cqi(cqi).block_error_rate(sinr_db).get();
        assert!((rate(16, 0.0) / 3.640e-5 - 1.0).abs() < 2e-3, "{}", rate(16, 0.0));
        // Exponent zero: S = 1.03 c - 17.3, and 2^(-1/0.7) = 0.37150.
        assert!((rate(16, 1.03 * 16.0 - 17.3) - 0.371_50).abs() < 1e-5);
        assert!((rate(1, 1.03 - 17.3) - 0.371_50).abs() < 1e-5);
        assert!((rate(30, 1.03 * 30.0 - 17.3) - 0.371_50).abs() < 1e-5);
        assert!(rate(22, -10.0) > 0.999_99 && rate(22, 20.0) < 1e-9);
    }

    #[test]
    fn the_indicator_asked_for_is_the_highest_with_about_one_error_in_ten() {
        // TS 25.214, 6A.2 defines it so; the two fits give 7 to 16 % and over 90 %.
        for cqi in 2..30 {
            let sinr_db = 1.02 * (f64::from(cqi) - 16.62) + 1e-9;
            assert_eq!(Cqi::of_sinr_db(sinr_db), Cqi(cqi));
            let rate = |cqi: u8| Cqi(cqi).block_error_rate(sinr_db).get();
            assert!((0.05..0.17).contains(&rate(cqi)), "CQI {cqi}: {}", rate(cqi));
            assert!(rate(cqi + 1) > 0.8, "CQI {}: {}", cqi + 1, rate(cqi + 1));
        }
    }

    #[test]
    fn the_indicator_stays_in_range() {
        assert_eq!(Cqi::of_sinr_db(-40.0), Cqi(0));
        assert_eq!(Cqi::of_sinr_db(f64::NEG_INFINITY), Cqi(0));
        assert_eq!(Cqi::of_sinr_db(40.0), Cqi::MAX);
    }
}
