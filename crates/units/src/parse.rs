//! Text with a unit to a number in the base unit.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use crate::round::nearest;

/// Text that is not a quantity of the wanted kind. Its message names the text and the accepted units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    problem: Problem,
    accepted: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    NoNumber,
    NoUnit,
    UnknownUnit,
    /// A prefix without saying of what, or bytes without saying in which time.
    BitsOrBytes(char),
    Negative,
    TooLarge,
    OutOfRange,
}

impl ParseUnitError {
    pub(crate) fn too_large(text: &str, accepted: &'static str) -> Self {
        Self { text: text.to_owned(), problem: Problem::TooLarge, accepted }
    }

    pub(crate) fn out_of_range(text: &str, accepted: &'static str) -> Self {
        Self { text: text.to_owned(), problem: Problem::OutOfRange, accepted }
    }

    /// The same of a rate, which `text` gives: where its unit may stand for bits or for bytes, both are named.
    pub(crate) fn in_a_rate(self, text: &str) -> Self {
        let unit =
            text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_' | ' '));
        let problem = match (self.problem, unit) {
            (Problem::UnknownUnit, "k" | "K" | "kb" | "KB" | "Kb" | "kB") => Problem::BitsOrBytes('k'),
            (Problem::UnknownUnit, "m" | "M" | "mb" | "MB" | "Mb" | "mB") => Problem::BitsOrBytes('M'),
            (Problem::UnknownUnit, "g" | "G" | "gb" | "GB" | "Gb" | "gB") => Problem::BitsOrBytes('G'),
            (problem, _) => problem,
        };
        Self { problem, ..self }.about(text)
    }

    /// The same of the whole `text` that a part was read from.
    pub(crate) fn about(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::NoNumber => "does not start with a number",
            Problem::NoUnit => "has no unit",
            Problem::UnknownUnit => "has an unknown unit",
            Problem::BitsOrBytes(prefix) => {
                let (text, accepted) = (&self.text, self.accepted);
                return write!(
                    f,
                    "\"{text}\" has an unknown unit: bits are meant by {prefix}bit, bytes by {prefix}B/s; accepted: {accepted}"
                );
            }
            Problem::Negative => "is negative",
            Problem::TooLarge => "is too large",
            Problem::OutOfRange => "is out of range",
        };
        write!(f, "\"{}\" {problem}; accepted: {}", self.text, self.accepted)
    }
}

impl core::error::Error for ParseUnitError {}

/// Splits `text` into number and unit and scales by the factor that `units` gives for the unit.
///
/// # Errors
/// When the number or the unit is missing, the unit is not in `units`, or the number is negative or not finite.
pub(crate) fn scaled(
    text: &str,
    units: &[(&str, f64)],
    accepted: &'static str,
) -> Result<f64, ParseUnitError> {
    let error = |problem| ParseUnitError { text: text.to_owned(), problem, accepted };
    let trimmed = text.trim();
    let split = trimmed
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 = number.replace('_', "").parse().map_err(|_| error(Problem::NoNumber))?;
    if number.is_sign_negative() && number != 0.0 {
        return Err(error(Problem::Negative));
    }
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(error(Problem::NoUnit));
    }
    let (_, factor) =
        units.iter().find(|(name, _)| *name == unit).ok_or_else(|| error(Problem::UnknownUnit))?;
    let value = number * factor;
    if value.is_finite() { Ok(value) } else { Err(error(Problem::TooLarge)) }
}

/// Prints `value` in the largest unit of `units` (largest first) that shows it in at most six
/// significant decimals without loss, or else in the largest unit it fills.
pub(crate) fn display(f: &mut fmt::Formatter<'_>, value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let (unit, factor) = units
        .iter()
        .find(|(_, factor)| value.abs() >= *factor)
        .or(units.last())
        .expect("every quantity has at least one unit");
    let scaled = value / factor;
    let rounded = (nearest((scaled * 1e6).abs()) as f64).copysign(scaled) / 1e6;
    if let Some(precision) = f.precision() {
        write!(f, "{rounded:.precision$} {unit}")
    } else {
        write!(f, "{rounded} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use crate::{Bytes, Duration, Rate};

    #[test]
    fn an_error_names_the_text_and_the_accepted_units() {
        let message = "96".parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(message, "\"96\" has no unit; accepted: B, kB, MB, GB, KiB, MiB, GiB");
        let message = "9 parsecs".parse::<Duration>().unwrap_err().to_string();
        assert!(message.contains("unknown unit") && message.contains("ms"), "{message}");
        let message = "-2Mbit".parse::<Rate>().unwrap_err().to_string();
        assert!(message.contains("is negative"), "{message}");
        assert!("".parse::<Rate>().is_err());
        assert!("fast".parse::<Rate>().unwrap_err().to_string().contains("start with a number"));
        assert!("1e400Mbit".parse::<Rate>().is_err());
    }
}
