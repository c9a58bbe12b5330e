//! A program to run in a guest, as it is handed over.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A program, its surroundings, and the seed of the guest's randomness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The program, a name in `PATH` or a path, and its arguments; not empty.
    pub words: Vec<String>,
    /// The folder that it runs in. Files that the program writes there come back.
    pub folder: PathBuf,
    /// Variables beside `PATH`, `HOME` and `LANG`.
    pub environment: Vec<(String, String)>,
    /// Files and folders that the program reads, beside itself and its libraries.
    pub files: Vec<PathBuf>,
    /// Programs that it starts, beside those that every guest has.
    pub programs: Vec<String>,
    /// The seed of the guest's random numbers.
    pub seed: u64,
}

impl Job {
    /// A job that does nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            words: vec!["true".to_owned()],
            folder: PathBuf::from("/tmp"),
            environment: Vec::new(),
            files: Vec::new(),
            programs: Vec::new(),
            seed: 1,
        }
    }
}

/// The place of the description in a job's archive.
pub(crate) const DESCRIPTION: &str = "/run/suimon-job.json";

/// A device's first bytes, where it holds a job; the archive's size follows, eight bytes, least significant first.
pub(crate) const MAGIC: &[u8; 8] = b"suimonjb";

/// The archive follows at this place.
pub(crate) const ARCHIVE_AT: u64 = 4_096;
