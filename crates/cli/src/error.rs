//! What can go wrong, and the exit code that it gives.

use std::io;
use std::path::PathBuf;

use suimon_capture::CaptureError;
use suimon_report::ReportError;
use suimon_scenario::ScenarioError;

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A scenario, a trace, a link or an algorithm was refused.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A packet capture was refused.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Options that do not go together, or a value that an option does not take.
    #[error("{option}: {problem}")]
    Option {
        /// The option.
        option: &'static str,
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
    #[error("{file}: {problem}")]
    Claims {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        problem: String,
    },
    /// Claims that once held do not hold any more.
    #[error("{0} that once held no longer {1}")]
    ClaimsBroken(String, &'static str),
    /// A report file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// Standard output or another file could not be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// A refusal of the link that `option` gives in a line; what a file is at fault for goes by its own name.
    pub(crate) fn of_link(option: &'static str, error: ScenarioError) -> Self {
        if error.source_name() != "link" {
            return error.into();
        }
        let problem = match error.key() {
            Some(key) => format!("{key}: {}", error.problem()),
            None => error.problem().to_string(),
        };
        Self::Option { option, problem }
    }

    /// As the help says.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ClaimsBroken(..) => 1,
            Self::Scenario(_)
            | Self::Capture(_)
            | Self::Option { .. }
            | Self::Folder { .. }
            | Self::Claims { .. } => 2,
            Self::Report(_) | Self::Output(_) => 3,
        }
    }
}
