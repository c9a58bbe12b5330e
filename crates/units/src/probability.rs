use core::fmt;
use core::str::FromStr;

use crate::parse::{self, ParseUnitError};
use crate::round::nearest;

/// A probability: a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// `value` if it lies in 0..=1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The nearest probability to `value`; an undefined value gives zero.
    #[must_use]
    pub fn clamped(value: f64) -> Self {
        Self(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) })
    }

    /// The number from 0 to 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

const ACCEPTED: &str = "0% to 100%, or a number from 0 to 1";

impl FromStr for Probability {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let value = match text.trim().parse::<f64>() {
            Ok(value) => value,
            Err(_) => parse::scaled(text, &[("%", 0.01)], ACCEPTED)?,
        };
        Self::new(value).ok_or_else(|| ParseUnitError::out_of_range(text, ACCEPTED))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", nearest(self.0 * 100.0 * 1e9) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_fractions_mean_the_same() {
        assert_eq!("0.5%".parse::<Probability>().unwrap().get(), 0.005);
        assert_eq!("0.005".parse::<Probability>().unwrap().get(), 0.005);
        assert_eq!("0.3%".parse::<Probability>().unwrap().to_string(), "0.3%");
    }

    #[test]
    fn outside_zero_to_one_is_refused() {
        assert!("101%".parse::<Probability>().is_err());
        assert!("-0.1".parse::<Probability>().is_err());
        assert!("NaN".parse::<Probability>().is_err());
        assert_eq!(Probability::new(1.0001), None);
        assert_eq!(Probability::clamped(f64::NAN), Probability::ZERO);
    }
}
