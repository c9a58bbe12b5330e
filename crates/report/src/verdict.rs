//! Verdicts on the claims of a paper.

use serde::{Deserialize, Serialize, Serializer};

/// Claims of one experiment, each with the measured number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictTable {
    /// Heading, for example the experiment and its section in the paper.
    pub title: String,
    /// The two sides of the comparison.
    #[serde(skip_serializing_if = "Headings::is_paper")]
    pub headings: Headings,
    /// A note on the runs and their differences from the paper, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// One row a claim.
    pub rows: Vec<VerdictRow>,
}

/// The two sides that a table of verdicts compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Headings {
    /// A paper's numbers against those measured here.
    Paper,
    /// Simulated numbers against live ones.
    Worlds,
}

impl Headings {
    /// The headings of the columns: claim, number to compare with, tolerance, measured number, verdict.
    #[must_use]
    pub const fn columns(self) -> [&'static str; 5] {
        match self {
            Self::Paper => ["Claim", "Paper", "Tolerance", "Measured", "Verdict"],
            Self::Worlds => ["Run", "Simulated", "Tolerance", "Live", "Verdict"],
        }
    }

    fn is_paper(&self) -> bool {
        *self == Self::Paper
    }
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictRow {
    /// The claim in words.
    pub claim: String,
    /// The paper's number with its unit.
    pub paper: String,
    /// The difference that still counts as the same.
    pub tolerance: String,
    /// The number measured here, with its unit.
    pub measured: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What is judged, where the comparison is with a paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// Why it is not reproduced, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// What a paper's verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A number that the paper prints.
    Printed,
    /// An order of things that the paper states.
    Ordering,
    /// A throughput that the paper says is the same.
    SameThroughput,
    /// A number from elsewhere, for example ns-2's.
    Reference,
    /// A bar of this project.
    Own,
}

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The number is within the tolerance.
    Reproduced,
    /// Outside the tolerance.
    NotReproduced,
    /// Could not be tested.
    NotTested,
    /// Measured and shown beside the paper's number, without a judgement.
    Shown,
}

impl Verdict {
    /// The text in tables and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not reproduced",
            Self::NotTested => "not tested",
            Self::Shown => "shown",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
