//! What can go wrong.

use std::borrow::Cow;
use std::path::PathBuf;

use suimon_report::ReportError;
use suimon_scenario::ScenarioError;

/// Why there are no findings.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A scenario, a trace, a link or an algorithm was refused.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A packet capture was refused.
    #[cfg(feature = "capture")]
    #[error(transparent)]
    Capture(#[from] suimon_capture::CaptureError),
    /// A field of a request was refused. Front ends say how they call it.
    #[error("{input}: {problem}")]
    Input {
        /// The field.
        input: Cow<'static, str>,
        /// What is wrong, and what is accepted.
        problem: String,
    },
    /// A field of a request has a meaning only beside another one.
    #[error("{input}: goes with {other}, as in \"{example}\"")]
    Requires {
        /// The field.
        input: &'static str,
        /// The field that is missing.
        other: &'static str,
        /// What that one may be.
        example: &'static str,
    },
    /// A field of a request has no meaning beside another one.
    #[error("{input}: has no meaning with {other}; accepted: one of the two")]
    Excludes {
        /// The field.
        input: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// A folder cannot take what was to go there.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder, or the file in it.
        path: PathBuf,
        /// What is wrong, and what is accepted.
        problem: String,
    },
    /// A paper's claims do not read.
    #[error("{}: {problem}", file.display())]
    Claims {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        problem: String,
    },
    /// A file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl StudyError {
    /// A refusal of the field called `input`.
    pub fn input(input: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        Self::Input { input: input.into(), problem: problem.into() }
    }
}

/// What is wrong with a link in a line; what a file is at fault for goes by its own name.
#[must_use]
pub fn problem_of_link(error: &ScenarioError) -> String {
    match error.key() {
        _ if error.source_name() != "link" => error.to_string(),
        Some(key) => format!("{key}: {}", error.problem()),
        None => error.problem().to_string(),
    }
}
