//! Sweeps, part by part, in this process or as a piece of many.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use suimon_study::StudyError;
use suimon_study::sweep::{self, Manifest};
use suimon_units::Duration;

use crate::errors::{Failure, of_argument};
use crate::scenario::Document;
use crate::work::watched;

/// A sweep whose every value is checked.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct Sweep {
    document: suimon_scenario::Document,
    manifest: Manifest,
    /// Where this process has checked it.
    durations: Option<Arc<[Duration]>>,
}

/// A sweep's folder, locked until this is gone.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct Folder(sweep::Folder);

#[pymethods]
impl Sweep {
    /// The sweep that `document` asks for; `settings` are those that its text does not have.
    #[new]
    fn new(py: Python<'_>, document: &Document, settings: Vec<String>, series: bool) -> PyResult<Self> {
        let document = document.document.clone();
        let checked = py.detach(|| {
            let sweep = sweep::Sweep::new(&document, &settings, series)?;
            Ok::<_, StudyError>((sweep.durations(), sweep.manifest))
        });
        let (durations, manifest) = checked.map_err(Failure::from)?;
        Ok(Self { document, manifest, durations: Some(durations) })
    }

    /// A sweep that another process has checked, which describes it by `manifest`.
    #[staticmethod]
    fn checked(document: &Document, manifest: &str) -> PyResult<Self> {
        let manifest =
            Manifest::from_json(manifest).map_err(|error| of_argument("manifest", &error.to_string()))?;
        Ok(Self { document: document.document.clone(), manifest, durations: None })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.manifest.name
    }

    /// How many runs it has.
    #[getter]
    fn runs(&self) -> u64 {
        self.manifest.runs
    }

    /// How many parts they fall into.
    #[getter]
    fn parts(&self) -> u64 {
        self.manifest.parts()
    }

    /// What it is, for another process.
    #[getter]
    fn manifest(&self) -> String {
        self.manifest.to_json()
    }

    /// What sets the sweep whose manifest is `found` apart from this one; none where one goes on with the other.
    fn difference(&self, found: &str) -> Option<String> {
        match Manifest::from_json(found) {
            Ok(found) => found.difference(&self.manifest).map(str::to_owned),
            Err(error) => Some(format!("description, which does not read: {error}")),
        }
    }

    /// The folder at `path` for this sweep.
    fn open(&self, path: PathBuf, restart: bool) -> PyResult<Folder> {
        let folder = sweep::Folder::open(&path, &self.manifest, restart).map_err(Failure::from)?;
        Ok(Folder(folder))
    }

    /// Makes what is missing, `jobs` runs at a time.
    fn make(
        &self,
        py: Python<'_>,
        folder: &Folder,
        jobs: Option<NonZeroUsize>,
        progress: bool,
    ) -> PyResult<()> {
        let missing = folder.0.missing(&self.manifest);
        let of_cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let jobs = jobs.map_or_else(of_cores, NonZeroUsize::get);
        let sweep = self.study()?;
        let made = watched(py, sweep.duration(&missing), progress, |observer| {
            sweep::make(&sweep, &folder.0, &missing, jobs, observer)
        })?;
        Ok(made.map_err(Failure::from)?)
    }

    /// Makes `parts` in the folder at `path`, one run at a time, as one process of many that `writer` names; gives how
    /// many were not there.
    fn make_parts(&self, py: Python<'_>, path: PathBuf, parts: Vec<u64>, writer: &str) -> PyResult<usize> {
        let sweep = self.study()?;
        let made = watched(py, Duration::ZERO, false, |observer| {
            sweep::make_parts(&sweep, &path, &parts, writer, observer)
        })?;
        Ok(made.map_err(Failure::from)?)
    }
}

impl Sweep {
    fn study(&self) -> PyResult<sweep::Sweep<'_>> {
        let sweep = sweep::Sweep::checked(&self.document, self.manifest.clone(), self.durations.clone());
        Ok(sweep.map_err(Failure::from)?)
    }
}

#[pymethods]
impl Folder {
    /// The parts of `sweep` that are not there.
    fn missing(&self, sweep: &Sweep) -> Vec<u64> {
        self.0.missing(&sweep.manifest)
    }
}
