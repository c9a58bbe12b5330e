//! A school grade for latency under load.

use std::fmt;

use serde::{Serialize, Serializer};
use strum::VariantArray;
use suimon_units::Duration;

/// How much waiting in the queue a loaded link adds, as a school grade.
///
/// The steps are those of today's public bufferbloat tests, so that a simulated link and a line
/// measured at home read the same. Those tests grade the latency added under load; here that is the
/// 95th percentile of the queueing delay at the slowest reported queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum Grade {
    /// Nothing to notice, not even in games.
    APlus,
    /// Calls and games are unharmed.
    A,
    /// Calls are fine, games feel it.
    B,
    /// Calls suffer.
    C,
    /// Calls break up, pages hesitate.
    D,
    /// Interactive use is hard or impossible.
    F,
}

/// The grades below F, best first, with the delay that each must stay under.
pub const GRADE_THRESHOLDS: [(Grade, Duration); 5] = [
    (Grade::APlus, Duration::from_millis(5)),
    (Grade::A, Duration::from_millis(30)),
    (Grade::B, Duration::from_millis(60)),
    (Grade::C, Duration::from_millis(200)),
    (Grade::D, Duration::from_millis(400)),
];

/// The grades below F, best first, with the share of lost packets that a call must stay under. The steps
/// are this project's own; a public test grades delay only.
pub const LOSS_THRESHOLDS: [(Grade, f64); 5] =
    [(Grade::APlus, 0.001), (Grade::A, 0.01), (Grade::B, 0.02), (Grade::C, 0.05), (Grade::D, 0.1)];

impl Grade {
    /// Every grade, best first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The grade of a 95th-percentile queueing delay.
    #[must_use]
    pub fn of(delay_p95: Duration) -> Self {
        GRADE_THRESHOLDS.iter().find(|(_, below)| delay_p95 < *below).map_or(Self::F, |(grade, _)| *grade)
    }

    /// The grade of a call whose packets wait so long, by the 95th percentile, and of which this share is lost: the worse
    /// of both.
    #[must_use]
    pub fn of_call(waiting_p95: Duration, loss: f64) -> Self {
        let of_loss =
            LOSS_THRESHOLDS.iter().find(|(_, below)| loss < *below).map_or(Self::F, |(grade, _)| *grade);
        Self::of(waiting_p95).max(of_loss)
    }

    /// The grade as written: `A+`, `A`, `B`, `C`, `D` or `F`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }

    /// The definition for runs with a call.
    #[must_use]
    pub fn legend_of_calls() -> String {
        let losses = LOSS_THRESHOLDS.iter().map(|(grade, below)| format!("{grade} < {} %", below * 100.0));
        format!(
            "Grade of the call in its worse direction, by the 95th percentile of the time that its packets wait in \
             queues: {}, F beyond; or by the share of them that is lost, where that is worse: {}, F beyond.",
            Self::steps(),
            losses.collect::<Vec<_>>().join(", ")
        )
    }

    fn steps() -> String {
        let steps: Vec<String> =
            GRADE_THRESHOLDS.iter().map(|(grade, below)| format!("{grade} < {below}")).collect();
        steps.join(", ")
    }

    /// The definition with its thresholds, as it stands under every table that shows a grade.
    #[must_use]
    pub fn legend() -> String {
        format!(
            "Grade of latency under load, by the 95th percentile of queueing delay at the slowest \
             reported queue: {}, F beyond.",
            Self::steps()
        )
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Grade {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grade_holds_just_below_its_threshold_and_not_at_it() {
        let nanosecond = Duration::from_nanos(1);
        let worse = [Grade::A, Grade::B, Grade::C, Grade::D, Grade::F];
        for ((grade, below), next) in GRADE_THRESHOLDS.into_iter().zip(worse) {
            assert_eq!(Grade::of(below - nanosecond), grade);
            assert_eq!(Grade::of(below), next);
            assert_eq!(Grade::of(below + nanosecond), next);
        }
    }

    #[test]
    fn the_extremes_have_grades() {
        assert_eq!(Grade::of(Duration::ZERO), Grade::APlus);
        assert_eq!(Grade::of(Duration::MAX), Grade::F);
    }

    #[test]
    fn the_legend_states_every_threshold() {
        assert_eq!(
            Grade::legend(),
            "Grade of latency under load, by the 95th percentile of queueing delay at the slowest \
             reported queue: A+ < 5 ms, A < 30 ms, B < 60 ms, C < 200 ms, D < 400 ms, F beyond."
        );
    }
}
