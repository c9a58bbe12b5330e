//! Why a program cannot run in a guest.

use std::io;
use std::path::{Path, PathBuf};

use suimon_units::{Bytes, Duration};

/// The reason for which a guest does not start, or gives no result.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program of this machine is missing.
    #[error("{program} is not installed; on Debian and Ubuntu: sudo apt-get install {package}")]
    Missing {
        /// The program.
        program: String,
        /// The package that has it.
        package: &'static str,
    },
    /// A name is no program and no file.
    #[error("{0}: there is no such program")]
    NoProgram(String),
    /// A kernel that was asked for is not set up.
    #[error(
        "no kernel {asked} is set up; accepted: {known}; or set it up: suimon lab setup --kernel {asked}"
    )]
    NoKernel {
        /// The beginning of the version that was asked for.
        asked: String,
        /// The versions that are set up.
        known: String,
    },
    /// No kernel is set up.
    #[error("no kernel is set up; set one up: suimon lab setup")]
    NotSetUp,
    /// No suite of the distribution has such a kernel.
    #[error("no suite has a kernel {asked}; looked in: {suites}")]
    NotOffered {
        /// The beginning of the version that was asked for.
        asked: String,
        /// The suites.
        suites: String,
    },
    /// A program that sets up a kernel, or the emulator, failed.
    #[error("{program}: {message}")]
    Failed {
        /// The program.
        program: String,
        /// Its last words.
        message: String,
    },
    /// A kernel's image does not read.
    #[error("{path}: {problem}; accepted: an x86-64 kernel (vmlinuz)")]
    Image {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// The guest's kernel refused.
    #[error(transparent)]
    Linux(#[from] suimon_linux::LinuxError),
    /// The files of a job take too much room.
    #[error("the files of the job take {size}; accepted: at most {limit}")]
    TooLarge {
        /// Their size.
        size: Bytes,
        /// The room.
        limit: Bytes,
    },
    /// The guest ended without a result.
    #[error("the guest ended without a result; its last words: {last_words}")]
    Ended {
        /// The end of the kernel's console.
        last_words: String,
    },
    /// The guest was ended, as it took longer than allowed.
    #[error("the guest was ended after {limit} of real time; accepted: a longer --limit")]
    OutOfTime {
        /// The limit.
        limit: Duration,
    },
}

/// Adds the path to an error of the system.
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, GuestError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, GuestError> {
        self.map_err(|error| GuestError::File { path: path.as_ref().to_owned(), error })
    }
}

impl<T> At<T> for nix::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, GuestError> {
        self.map_err(io::Error::from).at(path)
    }
}
