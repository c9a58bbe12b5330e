//! What can go wrong.

use std::path::PathBuf;

use suimon_report::ReportError;
use suimon_scenario::ScenarioError;

/// Why there are no findings.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A scenario, a trace, a link or an algorithm was refused.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A part of the question was refused. Front ends say how they call it.
    #[error("{problem}")]
    Input {
        /// Which part.
        input: Input,
        /// What is wrong, and what is accepted.
        problem: String,
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

/// The parts of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The link in a line.
    Link,
    /// The links of several paths.
    Paths,
    /// The path schedulers.
    Schedulers,
    /// The buffer of a link that is a trace.
    Buffer,
    /// The algorithms at the ends.
    Schemes,
    /// The queue disciplines.
    Queues,
    /// How many flows.
    Flows,
    /// The profile of the stacks.
    Profile,
    /// The name of a paper.
    Paper,
    /// One experiment of a paper.
    Experiment,
}

impl StudyError {
    pub(crate) fn input(input: Input, problem: impl Into<String>) -> Self {
        Self::Input { input, problem: problem.into() }
    }

    /// A refusal of a link in a line; what a file is at fault for goes by its own name.
    #[must_use]
    pub fn of_link(error: ScenarioError) -> Self {
        Self::of_line(Input::Link, error)
    }

    /// The same of a line that is `input`.
    pub(crate) fn of_line(input: Input, error: ScenarioError) -> Self {
        if error.source_name() != "link" {
            return error.into();
        }
        let problem = match error.key() {
            Some(key) => format!("{key}: {}", error.problem()),
            None => error.problem().to_string(),
        };
        Self::input(input, problem)
    }
}
