//! Algorithms side by side over a link.

use pyo3::prelude::*;
use suimon_study::Question;

use crate::arguments::{optional, quantity};
use crate::errors::Failure;
use crate::link::LinkSpec;
use crate::results::Findings;
use crate::work::simulate;

/// Runs a comparison; names, counts and quantities are texts as the command takes them.
#[pyfunction]
#[pyo3(signature = (link, *, senders, queues, flows, mixed, duration, warmup, size, window, profile, seed, seeds, command, progress))]
#[allow(clippy::too_many_arguments, reason = "one for each keyword of suimon.compare")]
pub(crate) fn compare(
    py: Python<'_>,
    link: &LinkSpec,
    senders: Vec<String>,
    queues: Vec<String>,
    flows: String,
    mixed: bool,
    duration: Option<&str>,
    warmup: &str,
    size: Option<&str>,
    window: Option<&str>,
    profile: String,
    seed: u64,
    seeds: u64,
    command: String,
    progress: bool,
) -> PyResult<Findings> {
    let question = Question {
        schemes: senders,
        queues,
        flows,
        mixed,
        duration: optional("seconds", duration)?,
        warmup: quantity("warmup", warmup)?,
        size: optional("size", size)?,
        window: optional("window", window)?,
        profile,
        seed,
        seeds,
        ..Question::new(link.spec.clone(), &link.line)
    };
    let comparison = question.comparison().map_err(Failure::from)?;
    let runs = comparison.runs().map_err(Failure::from)?;
    let results = simulate(py, &runs, progress)?;
    Ok(suimon_study::Findings::new(question.header(command), &comparison.name, results).into())
}
