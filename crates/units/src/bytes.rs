use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::parse::{self, ParseUnitError};

/// A count of bytes.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// Stands for "no limit" where a limit is a byte count.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` bytes.
    #[must_use]
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The bare count.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as a float, for ratios and averages.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The nearest whole number of bytes; negative and undefined values give none.
    #[must_use]
    pub const fn from_f64(count: f64) -> Self {
        // A float-to-integer cast saturates, and maps NaN to zero.
        Self((count + 0.5) as u64)
    }

    /// The difference, or none where `other` is larger.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, or [`Bytes::MAX`] where it would not fit.
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// How many whole `unit`s fit, zero for an empty unit.
    #[must_use]
    pub const fn whole(self, unit: Self) -> u64 {
        match self.0.checked_div(unit.0) {
            Some(count) => count,
            None => 0,
        }
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Self::saturating_add)
    }
}

const ACCEPTED: &str = "B, kB, MB, GB, KiB, MiB, GiB";

impl FromStr for Bytes {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let units = [
            ("B", 1.0),
            ("kB", 1e3),
            ("KB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("KiB", 1024.0),
            ("MiB", 1024.0 * 1024.0),
            ("GiB", 1024.0 * 1024.0 * 1024.0),
        ];
        let value = parse::scaled(text, &units, ACCEPTED)?;
        if value >= u64::MAX as f64 {
            return Err(ParseUnitError::too_large(text, ACCEPTED));
        }
        Ok(Self::from_f64(value))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("unlimited");
        }
        parse::display(f, self.as_f64(), &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!("96kB".parse(), Ok(Bytes::new(96_000)));
        assert_eq!("96 KiB".parse(), Ok(Bytes::new(98_304)));
        assert_eq!("1.5MB".parse(), Ok(Bytes::new(1_500_000)));
        assert!("96 kbit".parse::<Bytes>().is_err());
        assert!("99999999999GB".parse::<Bytes>().is_err());
    }

    #[test]
    fn what_is_printed_parses_back() {
        for count in [0, 1, 999, 1_000, 1_448, 96_000, 10_000_000, 123_456_789] {
            let bytes = Bytes::new(count);
            assert_eq!(bytes.to_string().parse(), Ok(bytes), "{bytes}");
        }
    }

    #[test]
    fn rounding_from_float_never_wraps() {
        assert_eq!(Bytes::from_f64(-3.0), Bytes::ZERO);
        assert_eq!(Bytes::from_f64(f64::NAN), Bytes::ZERO);
        assert_eq!(Bytes::from_f64(1.5), Bytes::new(2));
        assert_eq!(Bytes::from_f64(1e300), Bytes::MAX);
    }

    #[test]
    fn whole_units_of_nothing_are_none() {
        assert_eq!(Bytes::new(96_000).whole(Bytes::new(1_448)), 66);
        assert_eq!(Bytes::new(96_000).whole(Bytes::ZERO), 0);
    }
}
