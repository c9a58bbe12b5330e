//! Numbers for people: three significant digits, no exponents.

use serde::{Serialize, Serializer};

/// `value` in three significant digits and at most three decimals; an en dash where it is not a number.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    // Rounding may carry into the next decade (9.996 is 10.0), so the decimals follow the rounded value.
    let rounded = round_to(value, 3);
    let decimals = match rounded.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{rounded:.decimals$}");
    if text.trim_start_matches('-').bytes().all(|digit| matches!(digit, b'0' | b'.')) {
        return "0".to_owned();
    }
    text
}

/// The sign for a value that does not exist.
pub(crate) const MISSING: &str = "–";

/// `value` rounded to `digits` significant digits.
pub(crate) fn round_to(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = digits - 1 - value.abs().log10().floor() as i32;
    // Dividing by a power of ten gives the nearest float to the decimal; multiplying by 0.1^n does not.
    if exponent >= 0 {
        let scale = 10_f64.powi(exponent);
        (value * scale).round() / scale
    } else {
        let scale = 10_f64.powi(-exponent);
        (value / scale).round() * scale
    }
}

/// A number as short as JSON allows: whole ones without a fraction, `null` where there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Compact(pub(crate) f64);

impl Serialize for Compact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// Largest range in which every whole float is the integer it stands for.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if !self.0.is_finite() {
            serializer.serialize_none()
        } else if self.0.fract() == 0.0 && self.0.abs() <= EXACT {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_get_three_significant_digits() {
        let cases = [
            (0.0, "0"),
            (0.0004, "0"),
            (0.0123, "0.012"),
            (0.5, "0.500"),
            (1.0, "1.00"),
            (3.456, "3.46"),
            (9.996, "10.0"),
            (99.96, "100"),
            (1234.5, "1230"),
            (-2.345, "-2.35"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn compact_numbers_lose_needless_fractions_and_undefined_values() {
        let numbers = [Compact(3.0), Compact(0.25), Compact(f64::NAN), Compact(-0.0), Compact(1e300)];
        assert_eq!(serde_json::to_string(&numbers).unwrap(), "[3,0.25,null,0,1e+300]");
    }

    #[test]
    fn rounding_keeps_the_decimal_short() {
        assert_eq!(round_to(0.123_456_7, 4).to_string(), "0.1235");
        assert_eq!(round_to(123_456_789.0, 5).to_string(), "123460000");
    }
}
