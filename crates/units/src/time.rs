use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use crate::parse::{self, ParseUnitError};
use crate::round::nearest;

const NANOS_PER_SECOND: f64 = 1e9;

/// A length of time in whole nanoseconds, up to 584 years.
///
/// Not the standard library's: that one is two words and divides on every conversion, which shows in
/// an event loop that adds durations a hundred million times a second.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// A duration in nanoseconds.
    #[must_use]
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A duration in microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A duration in milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A duration in seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The nearest nanosecond; negative and undefined values give none.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(nearest(secs * NANOS_PER_SECOND))
    }

    /// Whole nanoseconds.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds.
    #[must_use]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND
    }

    /// Milliseconds.
    #[must_use]
    pub const fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or none where `other` is longer.
    #[must_use]
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This duration times `factor`; a negative factor gives none.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(nearest(self.0 as f64 * factor))
    }

    /// The absolute difference.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

const ACCEPTED: &str = "ns, us, ms, s, min, h";

impl FromStr for Duration {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let units =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
        let nanos = parse::scaled(text, &units, ACCEPTED)?;
        if nanos >= u64::MAX as f64 {
            return Err(ParseUnitError::too_large(text, ACCEPTED));
        }
        Ok(Self(nearest(nanos)))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            return f.write_str("never");
        }
        parse::display(f, self.0 as f64, &[("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)])
    }
}

/// A point in time: nanoseconds since the world it belongs to began.
///
/// The simulator starts its world at zero; a live driver chooses its own epoch. Algorithms only ever
/// compare and subtract.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// Stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` after the beginning.
    #[must_use]
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning.
    #[must_use]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SECOND
    }

    /// Time since `earlier`, or none where that lies later than this.
    #[must_use]
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time.0))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, time: Duration) {
        *self = *self + time;
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_their_unit() {
        assert_eq!("90ms".parse(), Ok(Duration::from_millis(90)));
        assert_eq!("0.5 s".parse(), Ok(Duration::from_millis(500)));
        assert_eq!("2min".parse(), Ok(Duration::from_secs(120)));
        assert!("90".parse::<Duration>().is_err());
    }

    #[test]
    fn what_is_printed_parses_back() {
        for nanos in [0, 1, 1_500, 90_000_000, 1_000_000_000, 61_500_000_000] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(duration.to_string().parse(), Ok(duration), "{duration}");
        }
    }

    #[test]
    fn no_time_has_passed_since_a_later_instant() {
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(7));
        assert_eq!(late.saturating_since(early), Duration::from_nanos(2));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Duration::MAX * 2, Duration::MAX);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
    }
}
