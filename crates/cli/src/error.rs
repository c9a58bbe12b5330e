//! What can go wrong, and the exit code that it gives.

use std::io;

use clap::{Args, Command};
#[cfg(feature = "bond")]
use suimon_bond::keys::KeyError;
#[cfg(feature = "capture")]
use suimon_capture::CaptureError;
#[cfg(feature = "live")]
use suimon_guest::GuestError;
#[cfg(feature = "live")]
use suimon_lab::LabError;
#[cfg(feature = "live")]
use suimon_linux::LinuxError;
#[cfg(feature = "live")]
use suimon_live::LiveError;
#[cfg(feature = "measure")]
use suimon_measure::client::MeasureError;
use suimon_report::ReportError;
use suimon_scenario::ScenarioError;
use suimon_study::{Comparison, StudyError, problem_of_link};

use crate::part::Part;

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A scenario, a trace, a link or an algorithm was refused.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A packet capture was refused.
    #[cfg(feature = "capture")]
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A key cannot be read or made.
    #[cfg(feature = "bond")]
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Something was not run live.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Live(#[from] LiveError),
    /// A program was not run in a guest.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// A guest made no result.
    #[cfg(feature = "live")]
    #[error("in the guest: {said}")]
    InGuest {
        /// What its program complained of.
        said: String,
    },
    /// No fault: in a guest, the one run to make has been handed over.
    #[cfg(feature = "live")]
    #[error("the run was handed over")]
    HandedOver,
    /// A second run in a guest gave other bytes.
    #[cfg(feature = "live")]
    #[error("two runs gave different bytes: SHA-256 {one} and {other}")]
    Differs {
        /// The digest of the first.
        one: String,
        /// The digest of the second.
        other: String,
    },
    /// Options that do not go together, or a value that an option does not take.
    #[error("{option}: {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong, and what is accepted.
        problem: String,
    },
    /// A field of a request was refused: the option that gives it, and what is wrong.
    #[error("{0}")]
    Input(String),
    /// A folder or a paper's claims were refused.
    #[error(transparent)]
    Study(StudyError),
    /// Claims that once held do not hold any more.
    #[error("{0} that once held no longer {1}")]
    ClaimsBroken(String, &'static str),
    /// What was put to the test failed: a bond that did not bring what was sent, a trace whose verdicts differ.
    #[cfg(any(feature = "bond", feature = "bpf"))]
    #[error("{0}")]
    Failed(String),
    /// A line was not measured.
    #[cfg(feature = "measure")]
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// This build lacks a part.
    #[error(
        "this suimon was built without {0}; accepted: a build with its default features, as `make build` makes"
    )]
    Without(Part),
    /// A congestion control was not loaded, found or unloaded.
    #[cfg(feature = "bpf")]
    #[error(transparent)]
    Congestion(#[from] suimon_linux::congestion::CongestionError),
    /// A policy in front of a queue in the kernel.
    #[cfg(feature = "bpf")]
    #[error(transparent)]
    Queue(#[from] suimon_linux::queue::QueueError),
    /// A report file could not be written.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The kernel refused a device, a namespace or a program.
    #[cfg(feature = "live")]
    #[error(transparent)]
    Linux(#[from] LinuxError),
    /// Standard output or another file could not be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Scenario(error) => error.into(),
            StudyError::Input { input, problem } => Self::Input(format!("{}: {problem}", option(&input))),
            StudyError::Requires { input, other, example } => {
                let (input, other) = (option(input), option(other));
                Self::Input(format!("{input}: goes with {other}, as in {other} \"{example}\""))
            }
            StudyError::Excludes { input, other } => {
                let (input, other) = (option(input), option(other));
                Self::Input(format!("{input}: has no meaning with {other}; accepted: one of the two"))
            }
            #[cfg(feature = "capture")]
            StudyError::Capture(error) => error.into(),
            StudyError::Report(error) => error.into(),
            error @ (StudyError::Folder { .. } | StudyError::Claims { .. }) => Self::Study(error),
        }
    }
}

#[cfg(feature = "live")]
impl From<LabError> for CliError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Study(error) => error.into(),
            LabError::Linux(error) => error.into(),
            #[cfg(feature = "bpf")]
            LabError::Congestion(error) => error.into(),
            #[cfg(feature = "bond")]
            LabError::Key(error) => error.into(),
            #[cfg(feature = "bond")]
            LabError::NoBond { .. } => Self::Failed(error.to_string()),
            LabError::Io(error) => error.into(),
        }
    }
}

/// What this program calls the field of a request.
fn option(field: &str) -> String {
    if field == "name" {
        return "NAME".to_owned();
    }
    let options = Comparison::augment_args(Command::new("compare"));
    let option = options.get_arguments().find(|option| option.get_id() == field);
    format!("--{}", option.and_then(|option| option.get_long()).unwrap_or(field))
}

impl CliError {
    /// A refusal of the link that `option` gives in a line.
    pub(crate) fn of_link(option: &'static str, error: &ScenarioError) -> Self {
        Self::Option { option, problem: problem_of_link(error) }
    }

    /// As the help says.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ClaimsBroken(..) => 1,
            #[cfg(any(feature = "bond", feature = "bpf"))]
            Self::Failed(_) => 1,
            #[cfg(feature = "live")]
            Self::Differs { .. } | Self::HandedOver => 1,
            #[cfg(feature = "live")]
            Self::Guest(
                GuestError::NoProgram(_) | GuestError::NoKernel { .. } | GuestError::TooLarge { .. },
            ) => 2,
            Self::Scenario(_) | Self::Option { .. } | Self::Input(_) | Self::Study(_) => 2,
            #[cfg(feature = "capture")]
            Self::Capture(_) => 2,
            #[cfg(feature = "bond")]
            Self::Key(_) => 2,
            #[cfg(feature = "bpf")]
            Self::Congestion(error) if error.is_of_input() => 2,
            #[cfg(feature = "bpf")]
            Self::Queue(error) if error.is_of_input() => 2,
            #[cfg(feature = "live")]
            Self::Live(LiveError::Scenario { .. }) => 2,
            #[cfg(feature = "measure")]
            Self::Measure(_) => 1,
            Self::Report(_) | Self::Output(_) => 3,
            #[cfg(feature = "bpf")]
            Self::Congestion(_) | Self::Queue(_) => 4,
            #[cfg(feature = "live")]
            Self::Live(_) | Self::Linux(_) | Self::Guest(_) | Self::InGuest { .. } => 4,
            Self::Without(_) => 4,
        }
    }
}
