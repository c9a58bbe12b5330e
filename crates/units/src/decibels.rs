use core::fmt;
use core::ops::Neg;
use core::str::FromStr;

use crate::parse::{self, ParseUnitError};

/// Beyond this no ratio of powers has a meaning: 500 dB are 10 to the 50.
const MAX_DECIBELS: f64 = 500.0;

/// A ratio of powers on a logarithmic scale, from -500 dB to 500 dB.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Decibels(f64);

impl Decibels {
    /// Equal powers.
    pub const ZERO: Self = Self(0.0);

    /// A ratio of `decibels`, cut to the accepted range; an undefined value gives zero.
    #[must_use]
    pub fn new(decibels: f64) -> Self {
        Self(if decibels.is_nan() { 0.0 } else { decibels.clamp(-MAX_DECIBELS, MAX_DECIBELS) })
    }

    /// The number of decibels.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Neg for Decibels {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

const ACCEPTED: &str = "dB, from -500dB to 500dB";

impl FromStr for Decibels {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let trimmed = text.trim();
        let (negative, size) = match trimmed.strip_prefix('-') {
            Some(size) => (true, size),
            None => (false, trimmed),
        };
        // A second sign is refused like any text that is not a number.
        let size = parse::scaled(size, &[("dB", 1.0)], ACCEPTED).map_err(|error| error.about(text))?;
        if size > MAX_DECIBELS {
            return Err(ParseUnitError::out_of_range(text, ACCEPTED));
        }
        Ok(Self(if negative { -size } else { size }))
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::display(f, self.0, &[("dB", 1.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decibels_may_be_negative() {
        assert_eq!("-5dB".parse(), Ok(Decibels::new(-5.0)));
        assert_eq!("10 dB".parse(), Ok(Decibels::new(10.0)));
        assert_eq!((-Decibels::new(0.95)).to_string(), "-0.95 dB");
        assert_eq!("-0.95 dB".parse(), Ok(Decibels::new(-0.95)));
    }

    #[test]
    fn what_is_not_a_ratio_is_refused() {
        for text in ["5", "--5dB", "dB", "501dB", "-501dB", "5db", "", "-"] {
            let message = text.parse::<Decibels>().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("\"{text}\"")) && message.contains("accepted: dB"),
                "{message}"
            );
        }
        assert_eq!(Decibels::new(f64::NAN), Decibels::ZERO);
        assert_eq!(Decibels::new(f64::INFINITY).get(), 500.0);
    }
}
