//! Errors of live runs.

use suimon_linux::LinuxError;

/// The reason that a scenario was not run live.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The scenario asks for something that real hosts do not have.
    #[error("scenario {scenario}: {key}: {problem}")]
    Scenario {
        /// The scenario's name.
        scenario: String,
        /// The key as scenario files have it.
        key: String,
        /// The fault, and the accepted values.
        problem: String,
    },
    /// The kernel refused something.
    #[error("cannot run live: {0}")]
    Linux(#[from] LinuxError),
    /// A socket was refused.
    #[error("flow {flow}: {source}")]
    Socket {
        /// The name of the flow.
        flow: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
}
