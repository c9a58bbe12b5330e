use core::fmt;
use core::iter::Sum;
use core::ops::{Add, Mul};
use core::str::FromStr;

use crate::parse::{self, ParseUnitError};
use crate::round::nearest;
use crate::{Bytes, Duration};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A data rate in bits per second. Zero is a rate: that of a link in an outage.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// Stands for "as fast as it comes": transmission takes no time.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate in bits per second.
    #[must_use]
    pub const fn from_bps(bits_per_second: u64) -> Self {
        Self(bits_per_second)
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Bits per second as a float, for ratios and averages.
    #[must_use]
    pub const fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }

    /// The mean rate at which `amount` passes in `time`; zero over no time.
    #[must_use]
    pub fn of(amount: Bytes, time: Duration) -> Self {
        if time == Duration::ZERO {
            return Self::ZERO;
        }
        Self(nearest(amount.as_f64() * 8.0 / time.as_secs_f64()))
    }

    /// How long `amount` takes to be sent, rounded up to a nanosecond; [`Duration::MAX`] at rate zero.
    #[must_use]
    pub fn transmission_time(self, amount: Bytes) -> Duration {
        if self == Self::MAX {
            return Duration::ZERO;
        }
        // Eight bits a byte times a billion fits 64 bits for anything below 2.3 GB.
        match amount.get().checked_mul(8 * NANOS_PER_SECOND) {
            Some(scaled) if self.0 > 0 => Duration::from_nanos(scaled.div_ceil(self.0)),
            _ if self.0 == 0 => Duration::MAX,
            _ => {
                let scaled = u128::from(amount.get()) * u128::from(8 * NANOS_PER_SECOND);
                let nanos = scaled.div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// How many whole bytes pass in `time`.
    #[must_use]
    pub fn amount_in(self, time: Duration) -> Bytes {
        let bits = u128::from(self.0) * u128::from(time.as_nanos()) / u128::from(NANOS_PER_SECOND);
        Bytes::new(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// This rate times `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self(nearest(self.as_bps_f64() * factor))
    }
}

impl Add for Rate {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Rate {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, |sum, rate| sum + rate)
    }
}

const ACCEPTED: &str = "bit, kbit, Mbit, Gbit (per second)";

impl FromStr for Rate {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let trimmed = text.trim();
        let per_second = ["/sec", "/s", "ps"].iter().find_map(|suffix| trimmed.strip_suffix(suffix));
        let written = per_second.unwrap_or(trimmed);
        // Whoever writes "bit" cannot mean bytes, in whatever case.
        let lower = written.trim_end_matches('s').to_ascii_lowercase();
        let amount = if lower.ends_with("bit") { lower.as_str() } else { written };
        let bits = [("bit", 1.0), ("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
        // A "b" is a bit only with "per second" spelled out: "96 kb" might be meant as bytes.
        let short = [
            ("b", 1.0),
            ("kb", 1e3),
            ("mb", 1e6),
            ("Mb", 1e6),
            ("Gb", 1e9),
            ("kB", 8e3),
            ("MB", 8e6),
            ("GB", 8e9),
        ];
        let result = match per_second {
            Some(_) if !lower.ends_with("bit") => parse::scaled(amount, &short, ACCEPTED),
            _ => parse::scaled(amount, &bits, ACCEPTED),
        };
        let value = result.map_err(|error| error.in_a_rate(text))?;
        if value >= u64::MAX as f64 {
            return Err(ParseUnitError::too_large(text, ACCEPTED));
        }
        Ok(Self(nearest(value)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("unlimited");
        }
        let units = [("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
        parse::display(f, self.as_bps_f64(), &units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_bits_never_bytes() {
        assert_eq!("3.6Mbit".parse(), Ok(Rate::from_bps(3_600_000)));
        assert_eq!("3.6 Mbit/s".parse(), Ok(Rate::from_bps(3_600_000)));
        assert_eq!("64kbps".parse(), Ok(Rate::from_bps(64_000)));
        assert!("3MB".parse::<Rate>().is_err());
        assert!("3Mb".parse::<Rate>().is_err());
        for (text, bps) in [
            ("2mbit", 2_000_000),
            ("2 MBIT/s", 2_000_000),
            ("2Mbits", 2_000_000),
            ("2Mbits/sec", 2_000_000),
            ("2mbps", 2_000_000),
            ("2MB/s", 16_000_000),
            ("96kB/s", 768_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate::from_bps(bps)), "{text}");
        }
        for (text, told) in [
            ("2M", "\"2M\" has an unknown unit: bits are meant by Mbit, bytes by MB/s; accepted: bit, kbit"),
            ("2Mb", "bits are meant by Mbit, bytes by MB/s"),
            ("2MB", "bits are meant by Mbit, bytes by MB/s"),
            ("96k", "bits are meant by kbit, bytes by kB/s"),
            ("9furlongs", "\"9furlongs\" has an unknown unit; accepted: bit"),
        ] {
            let message = text.parse::<Rate>().unwrap_err().to_string();
            assert!(message.contains(told), "{message}");
        }
    }

    #[test]
    fn transmission_time_rounds_up_and_survives_extremes() {
        let rate = Rate::from_bps(1_000_000);
        assert_eq!(rate.transmission_time(Bytes::new(1_500)), Duration::from_millis(12));
        assert_eq!(Rate::from_bps(3).transmission_time(Bytes::new(1)).as_nanos(), 2_666_666_667);
        assert_eq!(Rate::ZERO.transmission_time(Bytes::new(1)), Duration::MAX);
        assert_eq!(Rate::MAX.transmission_time(Bytes::MAX), Duration::ZERO);
        assert_eq!(Rate::from_bps(8_000_000_000).transmission_time(Bytes::new(1 << 33)).as_nanos(), 1 << 33);
    }

    #[test]
    fn amount_and_time_are_inverse() {
        let rate = Rate::from_bps(384_000);
        let time = rate.transmission_time(Bytes::new(96_000));
        assert_eq!(time, Duration::from_secs(2));
        assert_eq!(rate.amount_in(time), Bytes::new(96_000));
        assert_eq!(Rate::of(Bytes::new(96_000), time), rate);
        assert_eq!(Rate::of(Bytes::new(96_000), Duration::ZERO), Rate::ZERO);
    }

    #[test]
    fn what_is_printed_parses_back() {
        for bps in [0, 1, 64_000, 384_000, 1_000_000, 3_600_000, 10_000_000_000] {
            let rate = Rate::from_bps(bps);
            assert_eq!(rate.to_string().parse(), Ok(rate), "{rate}");
        }
    }
}
