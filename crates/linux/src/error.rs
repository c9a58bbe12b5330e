//! Refusals of the kernel.

use std::fmt::Display;
use std::io;

/// The kernel refused something.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}{}", hint(source))]
pub struct LinuxError {
    doing: String,
    source: io::Error,
}

impl LinuxError {
    /// `doing` names the attempt, as in "creating the device lte0".
    pub fn new(doing: impl Display, source: impl Into<io::Error>) -> Self {
        Self { doing: doing.to_string(), source: source.into() }
    }

    /// Why, as the kernel tells it.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => " (this needs root, or a kernel that allows user namespaces)",
        _ => "",
    }
}

/// Adds the attempt to an error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Display) -> Result<T, LinuxError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Display) -> Result<T, LinuxError> {
        self.map_err(|error| LinuxError::new(what, error))
    }
}
