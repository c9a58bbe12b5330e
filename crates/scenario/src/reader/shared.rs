//! What links share by name, and the files that they name.

use std::sync::Arc;

use suimon_model::{Cell, Medium};

use super::fields::{Field, Fields};
use super::files::Files;
use super::keys::{CELL, MEDIUM, any_cell, any_medium};
use crate::error::{Problem, ScenarioError, closest};

/// What several links may refer to.
pub(crate) struct Shared<'a> {
    pub(super) files: &'a Files,
    cells: Vec<Arc<Cell>>,
    media: Vec<Arc<Medium>>,
}

impl<'a> Shared<'a> {
    /// Files alone.
    pub(super) fn none(files: &'a Files) -> Self {
        Self { files, cells: Vec::new(), media: Vec::new() }
    }

    /// What `document` lists beside `files`.
    pub(super) fn read(document: &Fields<'_>, files: &'a Files) -> Result<Self, ScenarioError> {
        let none = Self::none(files);
        let cells = all_named(document, "cell", |table| {
            let mut cell = any_cell();
            CELL.enter(&mut cell, table, &none).map(|()| cell)
        })?;
        let media = all_named(document, "medium", |table| {
            let mut medium = any_medium();
            MEDIUM.enter(&mut medium, table, &none).map(|()| medium)
        })?;
        Ok(Self { files, cells, media })
    }

    /// The cell that `field` names.
    pub(super) fn cell(&self, field: &Field<'_>) -> Result<Arc<Cell>, ScenarioError> {
        named(field, "cell", &self.cells, |cell| &cell.name)
    }

    /// The medium that `field` names.
    pub(super) fn medium(&self, field: &Field<'_>) -> Result<Arc<Medium>, ScenarioError> {
        named(field, "medium", &self.media, |medium| &medium.name)
    }
}

/// The one of `all` that `field` names.
fn named<T>(
    field: &Field<'_>,
    what: &'static str,
    all: &[Arc<T>],
    name_of: impl Fn(&T) -> &String,
) -> Result<Arc<T>, ScenarioError> {
    let name = field.name()?;
    if let Some(found) = all.iter().find(|one| *name_of(one) == name) {
        return Ok(Arc::clone(found));
    }
    let names: Vec<_> = all.iter().map(|one| name_of(one).as_str()).collect();
    Err(field.error(Problem::UnknownName {
        what,
        suggestion: closest(&name, names.iter().copied()),
        accepted: if names.is_empty() { format!("the name of a [[{what}]]") } else { names.join(", ") },
        name,
    }))
}

/// All of what `document` lists as `what`, each under a name of its own.
fn all_named<T>(
    document: &Fields<'_>,
    what: &'static str,
    read: impl Fn(&Fields<'_>) -> Result<T, ScenarioError>,
) -> Result<Vec<Arc<T>>, ScenarioError> {
    let mut names = Vec::new();
    let mut all = Vec::new();
    for table in document.list(what)? {
        let field = table.field("name")?;
        let name = field.name()?;
        if names.contains(&name) {
            return Err(field.error(Problem::Duplicate { what, name }));
        }
        names.push(name);
        all.push(Arc::new(read(&table)?));
    }
    Ok(all)
}
