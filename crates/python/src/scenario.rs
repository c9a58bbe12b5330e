//! Scenarios for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use suimon_report::ReportHeader;
use suimon_study::VERSION;

use crate::errors::Failure;
use crate::registry::registry;
use crate::results::Findings;
use crate::work::simulate;

/// A scenario as text, with what was set since.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct Document {
    pub(crate) document: suimon_scenario::Document,
}

/// A scenario file with every key, its default and its meaning.
#[pyfunction]
pub(crate) fn default_scenario() -> String {
    suimon_scenario::print_defaults()
}

#[pymethods]
impl Document {
    /// The file at `path`.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Ok(Self {
            document: suimon_scenario::Document::read(path).map_err(Failure::from)?.with_registry(registry()),
        })
    }

    /// The scenario that `text` describes; `source` is for messages, and traces are relative to `directory`.
    #[staticmethod]
    fn parse(text: &str, source: &str, directory: PathBuf) -> PyResult<Self> {
        let document = suimon_scenario::Document::parse(text, source).map_err(Failure::from)?;
        Ok(Self { document: document.in_directory(directory).with_registry(registry()) })
    }

    /// The text as it was read.
    #[getter]
    fn text(&self) -> &str {
        self.document.text()
    }

    /// The same with `key` set to `value`.
    fn with_value(&self, key: &str, value: &str) -> PyResult<Self> {
        let mut document = self.document.clone();
        document.set(key, value).map_err(Failure::from)?;
        Ok(Self { document })
    }

    /// How many runs it asks for; every value is checked.
    fn count(&self) -> PyResult<usize> {
        Ok(self.document.runs().map_err(Failure::from)?.len())
    }

    /// Runs it.
    fn run(&self, py: Python<'_>, command: String, progress: bool) -> PyResult<Findings> {
        let runs = self.document.runs().map_err(Failure::from)?;
        let results = simulate(py, &runs, progress)?;
        let first = &runs[0].scenario;
        let header = ReportHeader {
            title: first.name.clone(),
            description: first.description.clone(),
            command,
            version: VERSION.to_owned(),
            scenario_text: Some(self.document.text().to_owned()),
        };
        let topology = suimon_study::topology(&runs);
        Ok(suimon_study::Findings { topology, ..suimon_study::Findings::new(header, &first.name, results) }
            .into())
    }
}
