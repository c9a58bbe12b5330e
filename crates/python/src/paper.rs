//! Papers, re-run and judged.

use std::path::PathBuf;

use pyo3::prelude::*;
use suimon_study::paper::{Judged, Paper, World, evaluate, find};

use crate::errors::Failure;
use crate::results::Findings;
use crate::work::simulate;

/// Files of the papers that come with the package, each by its path.
const PAPERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// Path and text of each file of the papers that come with the package.
#[pyfunction]
pub(crate) fn papers() -> Vec<(&'static str, &'static str)> {
    PAPERS.to_vec()
}

/// Re-runs the paper called `name`, found in the first of `places` that has it.
#[pyfunction]
#[pyo3(signature = (name, *, experiment, places, command, progress))]
pub(crate) fn paper(
    py: Python<'_>,
    name: &str,
    experiment: Option<&str>,
    places: Vec<PathBuf>,
    command: String,
    progress: bool,
) -> PyResult<Findings> {
    let paper = find(name, &places).and_then(|folder| Paper::read(&folder)).map_err(Failure::from)?;
    let experiments = paper.select(experiment, World::Simulated).map_err(Failure::from)?;
    let Judged { findings, broken } = evaluate(
        name,
        &paper,
        &experiments,
        command,
        |_| None,
        |runs| simulate(py, runs, progress).map_err(Failure::from),
    )?;
    Ok(Findings::judged(findings, broken))
}
