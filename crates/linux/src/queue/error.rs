//! Errors of loading, finding and unloading a policy.

use std::path::{Path, PathBuf};

use crate::congestion::CongestionError;

/// An error of loading or watching a policy, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// There is no such device.
    #[error("there is no device \"{device}\" in this network namespace; accepted: {accepted}")]
    NoDevice {
        /// The given name.
        device: String,
        /// The devices there are.
        accepted: String,
    },
    /// The device has a queue that somebody made.
    #[error(
        "{device} has the qdisc {qdisc} already; remove it (tc qdisc del dev {device} root), or keep it and load in \
         front of it by --in-front-of"
    )]
    HasQdisc {
        /// The device.
        device: String,
        /// The kind of its root qdisc.
        qdisc: String,
    },
    /// The device has no queue to stand in front of.
    #[error(
        "{device} has no queue in which packets wait; leave --in-front-of out, and it gets one of the rate"
    )]
    NoQdisc {
        /// The device.
        device: String,
    },
    /// Its packets cannot be led through an intermediate device.
    #[error(
        "{device} is no Ethernet device, and the kernel leads no other packets through an intermediate one; on a router, \
         load the policy at the device toward your own network instead"
    )]
    NotEthernet {
        /// The device.
        device: String,
    },
    /// No policy is loaded at the device.
    #[error("no policy is loaded at {device}; loaded: {}", if loaded.is_empty() { "nothing" } else { loaded })]
    NotLoaded {
        /// The given name.
        device: String,
        /// The devices that have one.
        loaded: String,
    },
    /// The machine or the build lacks something.
    #[error("{0}")]
    Unsupported(String),
    /// Another process reads the records.
    #[error("process {0} traces this one already, and records go to one reader only")]
    AlreadyTraced(u32),
    /// The kernel refused the program or the queue.
    #[error("the kernel refused {what}: {problem}{}", if log.is_empty() { String::new() } else { format!("\n{log}") })]
    Refused {
        /// The thing that was refused.
        what: String,
        /// The kernel's reason.
        problem: String,
        /// The last lines of libbpf's log.
        log: String,
    },
    /// A pin cannot be read or written.
    #[error("{}: {problem}", path.display())]
    Pin {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        problem: String,
    },
    /// The place of the pins.
    #[error(transparent)]
    Host(#[from] CongestionError),
}

impl QueueError {
    /// Whether the input is at fault, rather than the machine or its state.
    #[must_use]
    pub const fn is_of_input(&self) -> bool {
        matches!(self, Self::NoDevice { .. } | Self::NotEthernet { .. } | Self::NotLoaded { .. })
    }

    pub(super) fn pin(path: &Path, problem: impl std::fmt::Display) -> Self {
        Self::Pin { path: path.to_owned(), problem: format!("{problem:#}") }
    }

    pub(super) fn refused(what: &str, problem: impl std::fmt::Display) -> Self {
        Self::Refused { what: what.to_owned(), problem: format!("{problem:#}"), log: String::new() }
    }
}
