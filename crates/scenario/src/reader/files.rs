//! Files that a scenario names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::fields::Field;
use crate::error::ScenarioError;
use crate::trace::{MAX_FILE, Opportunities, RateSchedule, read_text};
use suimon_model::Capacity;

/// How a file tells a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Format {
    Mahimahi,
    Schedule,
}

/// Reads each file once, however many links and runs use it.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    read: Mutex<BTreeMap<(PathBuf, Format), (Capacity, u64)>>,
}

impl Files {
    /// Paths are relative to `directory`.
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), read: Mutex::default() }
    }

    /// The capacity that the file named by `field` tells.
    pub(super) fn capacity(&self, field: &Field<'_>, format: Format) -> Result<Capacity, ScenarioError> {
        let path = self.directory.join(field.text()?);
        let key = (path, format);
        let mut read = self.read.lock().expect(NO_PANIC);
        if let Some((capacity, _)) = read.get(&key) {
            return Ok(capacity.clone());
        }
        let text = read_text(&key.0, MAX_FILE).map_err(|problem| field.error(problem))?;
        let name = key.0.display().to_string();
        let capacity = match format {
            Format::Mahimahi => Opportunities::parse(&text, &name)?.into(),
            Format::Schedule => RateSchedule::parse(&text, &name)?.into(),
        };
        read.insert(key, (Capacity::clone(&capacity), digest(&text)));
        Ok(capacity)
    }

    /// Every file read so far, with a digest of its text, by path.
    pub(super) fn digests(&self) -> Vec<(PathBuf, u64)> {
        let read = self.read.lock().expect(NO_PANIC);
        read.iter().map(|((path, _), (_, digest))| (path.clone(), *digest)).collect()
    }
}

/// Why a lock is never poisoned.
const NO_PANIC: &str = "readers refuse, they do not panic";

/// FNV-1a: against change by accident, not by intent; and the same on every platform.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
