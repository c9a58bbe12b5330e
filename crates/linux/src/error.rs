//! Refusals of the kernel.

use std::fmt::Display;
use std::io;

/// The kernel refused something.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}{}", hint(source, needs))]
pub struct LinuxError {
    doing: String,
    source: io::Error,
    needs: &'static str,
}

/// What an attempt needs, unless it says so itself.
const RIGHTS: &str =
    "this needs root, in a container with --privileged, or a kernel that allows user namespaces";

impl LinuxError {
    /// `doing` names the attempt, as in "creating the device lte0".
    pub fn new(doing: impl Display, source: impl Into<io::Error>) -> Self {
        Self { doing: doing.to_string(), source: source.into(), needs: RIGHTS }
    }

    /// Why, as the kernel tells it.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// The exit code that shells have for a program whose start failed so: 127 where it is not there, 126 where it cannot
    /// be run; `None` where something else failed.
    #[must_use]
    pub fn exit_code(&self) -> Option<u8> {
        match self.source.raw_os_error()? {
            libc::ENOENT => Some(127),
            libc::EACCES | libc::ENOTDIR | libc::ENOEXEC => Some(126),
            _ => None,
        }
    }
}

fn hint(source: &io::Error, needs: &str) -> String {
    match source.kind() {
        // No space is said of namespaces where a user may have none.
        io::ErrorKind::PermissionDenied | io::ErrorKind::StorageFull => format!(" ({needs})"),
        _ => String::new(),
    }
}

/// Adds the attempt to an error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Display) -> Result<T, LinuxError>;

    /// The same, with what it needs: said where the kernel does not permit it.
    fn doing_with(self, what: impl Display, needs: &'static str) -> Result<T, LinuxError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T, LinuxError> {
        self.map_err(|error| LinuxError::new(what, error))
    }

    fn doing_with(self, what: impl Display, needs: &'static str) -> Result<T, LinuxError> {
        self.map_err(|error| LinuxError { needs, ..LinuxError::new(what, error) })
    }
}
