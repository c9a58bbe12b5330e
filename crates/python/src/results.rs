//! What was found out, for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use suimon_report::{
    JsonDetail, Tables, TerminalOptions, advice_table, json, observations, summarise, terminal,
    terminal_advice, terminal_verdicts,
};

use crate::errors::{Failure, of_argument};
use crate::table::Table;

/// The findings of a study; tables are made when they are asked for.
#[pyclass(frozen, module = "suimon._suimon")]
pub(crate) struct Findings {
    findings: suimon_study::Findings,
    /// How many claims that once held do not any more.
    #[pyo3(get)]
    broken: usize,
    tables: [PyOnceLock<Py<Table>>; Tables::NAMES.len()],
    verdicts: PyOnceLock<Py<Table>>,
    advice: PyOnceLock<Py<Table>>,
}

impl From<suimon_study::Findings> for Findings {
    fn from(findings: suimon_study::Findings) -> Self {
        Self::judged(findings, 0)
    }
}

impl Findings {
    pub(crate) fn judged(findings: suimon_study::Findings, broken: usize) -> Self {
        let tables = [const { PyOnceLock::new() }; Tables::NAMES.len()];
        Self { findings, broken, tables, verdicts: PyOnceLock::new(), advice: PyOnceLock::new() }
    }
}

#[pymethods]
impl Findings {
    /// The title.
    #[getter]
    fn title(&self) -> &str {
        &self.findings.header.title
    }

    /// The command that makes the same.
    #[getter]
    fn command(&self) -> &str {
        &self.findings.header.command
    }

    /// How many runs there are.
    fn __len__(&self) -> usize {
        self.findings.runs.len()
    }

    /// The table called `name`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let Some(place) = Tables::NAMES.iter().position(|known| *known == name) else {
            let accepted = Tables::NAMES.join(", ");
            return Err(of_argument("name", &format!("no table is called \"{name}\"; accepted: {accepted}")));
        };
        let make = || Py::new(py, Table::of(py, || Tables::only(&self.findings.runs, Tables::NAMES[place])));
        Ok(self.tables[place].get_or_try_init(py, make)?.clone_ref(py))
    }

    /// What became of a paper's claims, one row each.
    fn verdicts(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        let make = || Py::new(py, Table::of_verdicts(&self.findings.verdicts));
        Ok(self.verdicts.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Changes that were tried, best first; no row where none were.
    fn advice(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        let advice = self.findings.advice.as_deref().unwrap_or_default();
        let make = || Py::new(py, Table::of(py, || advice_table(advice)));
        Ok(self.advice.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Sentences that a reader should know.
    #[getter]
    fn notes(&self) -> Vec<String> {
        let observed = observations(&summarise(&self.findings.runs));
        if self.findings.verdicts.is_empty() { observed } else { self.findings.notes.clone() }
    }

    /// The page as HTML.
    fn html(&self, py: Python<'_>) -> String {
        py.detach(|| self.findings.page().render())
    }

    /// Writes the page to `path`.
    fn report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| self.findings.page().write(&path));
        written.map_err(|error| Failure::from(suimon_study::StudyError::from(error)).into())
    }

    /// Writes page and tables into the folder at `path`.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<PathBuf> {
        let written = py.detach(|| self.findings.write(&path));
        written.map_err(|error| Failure::from(suimon_study::StudyError::from(error)).into())
    }

    /// Everything as one JSON document.
    fn json(&self, py: Python<'_>, series: bool) -> String {
        let series = if series { JsonDetail::Series } else { JsonDetail::Totals };
        let suimon_study::Findings { header, runs, verdicts, advice, .. } = &self.findings;
        py.detach(|| json(header, runs, verdicts, advice.as_deref(), series))
    }

    /// What the command prints, without colours.
    fn text(&self, width: u16) -> String {
        let options = TerminalOptions { colour: false, width };
        let suimon_study::Findings { header, runs, verdicts, advice, notes, .. } = &self.findings;
        if verdicts.is_empty() {
            let results = terminal(header, runs, options);
            return advice
                .iter()
                .fold(results, |text, advice| format!("{text}\n{}", terminal_advice(advice)));
        }
        [terminal_verdicts(verdicts, options), notes.join("\n")].join("\n")
    }
}
