//! Means over seeds, with their confidence intervals.

use std::fmt;

use crate::numbers::{round_to, significant};

/// The mean over seeds, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; none for a single seed.
    pub half_width: Option<f64>,
}

/// As `17.6 ± 0.3`, in three and two significant digits; without what is only rounding.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&significant(self.mean))?;
        match self.half_width {
            Some(half) if half > self.mean.abs() * ROUNDING => {
                write!(f, " ± {}", significant(round_to(half, 2)))
            }
            _ => Ok(()),
        }
    }
}

/// Relative differences below this are those of floating-point sums.
const ROUNDING: f64 = 1e-9;

impl Estimate {
    /// Whether the intervals of both have numbers in common, so that their difference may be chance.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let half = |estimate: Self| estimate.half_width.unwrap_or(0.0);
        (self.mean - other.mean).abs() <= half(self) + half(other)
    }

    /// Of independent `values`, at least one, by Student's t.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let t = student_t(values.len() - 1);
        Self { mean, half_width: t.map(|t| t * (squares / (count - 1.0) / count).sqrt()) }
    }

    /// In percent of `other`, which is independent of it: relative errors add up as squares do.
    #[must_use]
    pub fn percent_of(self, other: Self) -> Self {
        let percent = 100.0 * self.mean / other.mean;
        let both = self.half_width.zip(other.half_width);
        let half_width = both.map(|(own, others)| (100.0 * own).hypot(percent * others) / other.mean.abs());
        Self { mean: percent, half_width }
    }
}

/// The 97.5 % quantile of Student's t distribution; none without a degree of freedom.
fn student_t(freedom: usize) -> Option<f64> {
    const QUANTILES: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    // Beyond, the normal distribution's z with the first two terms of its expansion in 1/freedom
    // (Abramowitz, Stegun 26.7.5): (z^3 + z) / 4 and (5 z^5 + 16 z^3 + 3 z) / 96.
    let beyond = |freedom: usize| {
        let inverse = 1.0 / freedom as f64;
        1.95996 + 2.37227 * inverse + 2.82250 * inverse * inverse
    };
    (freedom > 0).then(|| QUANTILES.get(freedom - 1).copied().unwrap_or_else(|| beyond(freedom)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students_and_its_width_that_of_the_textbook() {
        // Mean 3, variance 2.5, t of 4 degrees of freedom 2.776.
        let five = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(five.mean, 3.0);
        assert!((five.half_width.unwrap() - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-9);
        assert_eq!(Estimate::of(&[7.0]), Estimate { mean: 7.0, half_width: None });
        // Of printed tables: 31, 40 and 1000 degrees of freedom.
        for (freedom, quantile) in [(31, 2.0395), (40, 2.0211), (1_000, 1.9623)] {
            assert!((student_t(freedom).unwrap() - quantile).abs() < 1e-4, "{freedom}");
        }
    }

    #[test]
    fn errors_of_a_quotient_add_up_as_squares_do() {
        let estimate = |mean, half| Estimate { mean, half_width: half };
        let percent = estimate(30.0, Some(0.9)).percent_of(estimate(60.0, Some(2.4)));
        assert_eq!(percent.mean, 50.0);
        assert!((percent.half_width.unwrap() - 50.0 * 0.05).abs() < 1e-9);
        assert_eq!(estimate(0.0, Some(0.0)).percent_of(estimate(60.0, Some(2.4))), estimate(0.0, Some(0.0)));
        assert_eq!(estimate(1.0, None).percent_of(estimate(2.0, None)), estimate(50.0, None));
    }
}
