//! Files that a scenario names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::fields::Field;
use crate::error::ScenarioError;
use crate::model::Capacity;
use crate::trace::{LARGEST_FILE, Opportunities, RateSchedule, read_text};

/// How a file tells a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Format {
    Mahimahi,
    Schedule,
}

/// Reads each file once, however many links and runs use it.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    read: RefCell<BTreeMap<(PathBuf, Format), Capacity>>,
}

impl Files {
    /// Paths are relative to `directory`.
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), read: RefCell::default() }
    }

    /// The capacity that the file named by `field` tells.
    pub(super) fn capacity(&self, field: &Field<'_>, format: Format) -> Result<Capacity, ScenarioError> {
        let path = self.directory.join(field.text()?);
        let key = (path, format);
        if let Some(capacity) = self.read.borrow().get(&key) {
            return Ok(capacity.clone());
        }
        let text = read_text(&key.0, LARGEST_FILE).map_err(|problem| field.error(problem))?;
        let name = key.0.display().to_string();
        let capacity = match format {
            Format::Mahimahi => Opportunities::parse(&text, &name)?.into(),
            Format::Schedule => RateSchedule::parse(&text, &name)?.into(),
        };
        self.read.borrow_mut().insert(key, Capacity::clone(&capacity));
        Ok(capacity)
    }
}
