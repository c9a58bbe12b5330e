//! Errors of loading, finding and unloading a congestion control.

use std::io;
use std::path::{Path, PathBuf};

/// An error of loading or watching an algorithm, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// There is no such algorithm.
    #[error("unknown algorithm \"{name}\"; accepted: {accepted}")]
    UnknownAlgorithm {
        /// The given name.
        name: String,
        /// The known names.
        accepted: String,
    },
    /// A name that the kernel would refuse.
    #[error("\"{0}\" is no name for the kernel; accepted: up to 15 letters, digits and underscores")]
    BadName(String),
    /// The machine or the build lacks something.
    #[error("{0}")]
    Unsupported(String),
    /// The algorithm is loaded already.
    #[error("{0} is already loaded; `suimon cc unload {0}` removes it")]
    AlreadyLoaded(String),
    /// Another program, or the kernel itself, has an algorithm of that name.
    #[error(
        "the kernel already has a congestion control called {0}, not loaded by suimon; choose another name by --as"
    )]
    NameTaken(String),
    /// Nothing of that name is loaded.
    #[error("{name} is not loaded; loaded: {}", if loaded.is_empty() { "nothing" } else { loaded })]
    NotLoaded {
        /// The given name.
        name: String,
        /// The names of the loaded algorithms.
        loaded: String,
    },
    /// The algorithm is a default for new connections.
    #[error(
        "{name} is the default congestion control of {place}, and would stay in use there; set another one first, \
         as in: sysctl -w net.ipv4.tcp_congestion_control=cubic"
    )]
    IsDefault {
        /// The kernel's name of it.
        name: String,
        /// The network namespace.
        place: String,
    },
    /// Another process reads the events.
    #[error("process {0} traces this one already, and events go to one reader only")]
    AlreadyTraced(u32),
    /// The kernel refused the program.
    #[error("the kernel refused {name}: {problem}{}", if log.is_empty() { String::new() } else { format!("\n{log}") })]
    Refused {
        /// The algorithm.
        name: String,
        /// The error of libbpf.
        problem: String,
        /// The last lines of libbpf's log.
        log: String,
    },
    /// A pin, a mount or a setting.
    #[error("{}: {source}{}", path.display(), if source.kind() == io::ErrorKind::PermissionDenied { "; run this by sudo" } else { "" })]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The namespace of mounts could not be entered.
    #[error("cannot enter the machine's own mounts: {0}; run this outside `ip netns exec` and containers")]
    Mounts(io::Error),
}

impl CongestionError {
    /// Whether the name is at fault, rather than the machine or its state.
    #[must_use]
    pub const fn is_of_input(&self) -> bool {
        matches!(self, Self::UnknownAlgorithm { .. } | Self::BadName(_) | Self::NotLoaded { .. })
    }

    pub(super) fn file(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::File { path: path.to_owned(), source: source.into() }
    }
}
