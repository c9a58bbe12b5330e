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
    /// A queue in the kernel was refused.
    #[cfg(feature = "bpf")]
    #[error("cannot run live: {0}")]
    Queue(#[from] suimon_linux::queue::QueueError),
    /// A queue discipline of the kernel was refused.
    #[error("cannot run live: tc qdisc add {command}: {source}")]
    Discipline {
        /// What `tc` was told.
        command: String,
        /// Its answer.
        source: std::io::Error,
    },
    /// A socket was refused.
    #[error("flow {flow}: {source}")]
    Socket {
        /// The name of the flow.
        flow: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
}
