//! Congestion control in the kernel: programs of `bpf/` as `tcp_congestion_ops`, loaded, listed, watched, unloaded.
//!
//! A loaded algorithm outlives the process, by pins in a BPF file system of our own under `/run/suimon`. A pin of the
//! link comes last and goes first, so that a loader killed at any point leaves either a working algorithm or
//! nothing that the kernel knows of.

mod error;
pub(crate) mod host;
mod load;
mod record;
pub(crate) mod support;
mod trace;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use self::error::CongestionError;
pub use self::host::on_host;
pub use self::load::{Held, hold, load, remove_leftovers, unload};
pub use self::record::{Counts, Status};
pub use self::support::{Check, checks};
pub use self::trace::Trace;
pub use crate::congestion_trace::{Event, Record, Values};

/// A congestion control that can be loaded.
#[derive(Debug, Clone, Copy)]
pub struct Algorithm {
    /// The simulator's name, as in `fs-at+cubic`. The simulator has `fs-at-shared` as `shared` of a flow's `gateway`.
    pub name: &'static str,
    /// As the kernel will have it: letters, digits and underscores, at most fifteen.
    pub kernel_name: &'static str,
    /// The algorithm in a line.
    pub summary: &'static str,
    object: &'static [u8],
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

/// The algorithms that can be loaded.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "fs-at",
        kernel_name: "fs_at",
        summary: "FS-AT over the kernel's Reno: the flight is limited to the measured bandwidth-delay product",
        object: object!("fs_at"),
    },
    Algorithm {
        name: "fs-at+cubic",
        kernel_name: "fs_at_cubic",
        summary: "FS-AT over the kernel's CUBIC",
        object: object!("fs_at_cubic"),
    },
    Algorithm {
        name: "fs-at-shared",
        kernel_name: "fs_at_shared",
        summary: "FS-AT with one target for all connections to a client, as a gateway needs it",
        object: object!("fs_at_shared"),
    },
    Algorithm {
        name: "fs-at-open",
        kernel_name: "fs_at_open",
        summary: "FS-AT for queues that flows share, over the kernel's CUBIC beside senders that fill them",
        object: object!("fs_at_open"),
    },
    Algorithm {
        name: "vegas",
        kernel_name: "vegas",
        summary: "holds its own backlog between 1 and 3 segments, judged once per round trip",
        object: object!("vegas"),
    },
    Algorithm {
        name: "compound",
        kernel_name: "compound",
        summary: "Reno's window plus one that grows while the queue is short",
        object: object!("compound"),
    },
];

impl Algorithm {
    /// The one called `name`, in either world.
    ///
    /// # Errors
    /// Where there is none, with the names that are accepted.
    pub fn named(name: &str) -> Result<&'static Self, CongestionError> {
        ALGORITHMS.iter().find(|one| one.name == name || one.kernel_name == name).ok_or_else(|| {
            let accepted: Vec<_> = ALGORITHMS.iter().map(|one| one.name).collect();
            CongestionError::UnknownAlgorithm { name: name.to_owned(), accepted: accepted.join(", ") }
        })
    }

    /// The program as an object file (ELF, BPF) that any loader takes.
    ///
    /// # Errors
    /// Where this was built without a compiler for the kernel's programs.
    pub fn object(&self) -> Result<&'static [u8], CongestionError> {
        support::built().map(|_| self.object).map_err(CongestionError::Unsupported)
    }
}

/// A loaded algorithm.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The kernel's name of it, for `TCP_CONGESTION` and `congctl`.
    pub kernel_name: String,
    folder: PathBuf,
}

/// The loaded algorithms, by name.
///
/// # Errors
/// Where the pins cannot be read.
pub fn loaded() -> Result<Vec<Loaded>, CongestionError> {
    let mut found = Vec::new();
    for algorithm in ALGORITHMS {
        let of_algorithm = Path::new(host::ROOT).join(algorithm.name);
        let entries = match fs::read_dir(&of_algorithm) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CongestionError::file(&of_algorithm, error)),
        };
        let folders =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.join(load::LINK).exists());
        found.extend(folders.filter_map(|folder| {
            let kernel_name = folder.file_name()?.to_str()?.to_owned();
            Some(Loaded { algorithm, kernel_name, folder })
        }));
    }
    found.sort_by(|a, b| a.kernel_name.cmp(&b.kernel_name));
    Ok(found)
}

/// The one that `name` means: the kernel's name of one, or the algorithm's where it is loaded once.
///
/// # Errors
/// Where none or several go by it.
pub fn find_loaded(name: &str) -> Result<Loaded, CongestionError> {
    let all = loaded()?;
    if let Some(exact) = all.iter().find(|one| one.kernel_name == name) {
        return Ok(exact.clone());
    }
    let of_algorithm: Vec<_> = all.iter().filter(|one| one.algorithm.name == name).collect();
    if let [one] = of_algorithm[..] {
        return Ok(one.clone());
    }
    let names: BTreeSet<_> = all.iter().map(|one| one.kernel_name.as_str()).collect();
    let loaded = names.into_iter().collect::<Vec<_>>().join(", ");
    Err(CongestionError::NotLoaded { name: name.to_owned(), loaded })
}

impl Loaded {
    /// The connections of the algorithm, in every network namespace of this machine, oldest first.
    ///
    /// # Errors
    /// Where the kernel's list cannot be read.
    pub fn connections(&self) -> Result<Vec<Status>, CongestionError> {
        let path = self.folder.join(load::CONNECTIONS);
        let mut bytes = Vec::new();
        let read = fs::File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|error| CongestionError::file(&path, error))?;
        let mut all = record::statuses(&bytes);
        all.sort_by_key(|one| one.connection);
        Ok(all)
    }
}
