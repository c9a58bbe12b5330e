//! One of the runs that a scenario file or a comparison asks for.

use crate::scenario::Scenario;

/// One run: a scenario, and what sets it apart from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Pairs of axis and value, for example `("cc", "fs-at")`, in the order of the axes.
    pub labels: Vec<(String, String)>,
    /// What to run.
    pub scenario: Scenario,
}
