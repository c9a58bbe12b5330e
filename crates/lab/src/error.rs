//! What can go wrong.

use std::io;

use suimon_linux::LinuxError;
use suimon_study::StudyError;

/// Why there are no measurements.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What was asked for does not read, or cannot be.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The kernel refused a device, a namespace or a program.
    #[error(transparent)]
    Linux(#[from] LinuxError),
    /// A congestion control was not loaded.
    #[cfg(feature = "bpf")]
    #[error(transparent)]
    Congestion(#[from] suimon_linux::congestion::CongestionError),
    /// A key of the bond cannot be written.
    #[cfg(feature = "bond")]
    #[error(transparent)]
    Key(#[from] suimon_bond::keys::KeyError),
    /// The bond did not come up.
    #[cfg(feature = "bond")]
    #[error("the bond has not {paths} paths within 10 s")]
    NoBond {
        /// How many it should have.
        paths: usize,
    },
    /// A program or a socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<suimon_scenario::ScenarioError> for LabError {
    fn from(error: suimon_scenario::ScenarioError) -> Self {
        Self::Study(error.into())
    }
}
