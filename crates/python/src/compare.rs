//! Algorithms side by side over a link.

use pyo3::prelude::*;
use suimon_study::{PathQuestion, Question};

use crate::arguments::{optional, quantity};
use crate::errors::Failure;
use crate::link::LinkSpec;
use crate::registry::registry;
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
        registry: registry(),
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
        ..Question::new(link.spec.clone(), &link.title)
    };
    let comparison = question.comparison().map_err(Failure::from)?;
    let runs = comparison.runs().map_err(Failure::from)?;
    let results = simulate(py, &runs, progress)?;
    Ok(suimon_study::Findings::new(question.header(command), &comparison.name, results).into())
}

/// Runs a comparison of path schedulers over `paths`, lines of links.
#[pyfunction]
#[pyo3(signature = (paths, *, schedulers, senders, send_buffer, receive_buffer, duration, warmup, size, window, profile, seed, seeds, command, progress))]
#[allow(clippy::too_many_arguments, reason = "one for each keyword of suimon.compare_paths")]
pub(crate) fn compare_paths(
    py: Python<'_>,
    paths: Vec<String>,
    schedulers: Vec<String>,
    senders: Vec<String>,
    send_buffer: Option<&str>,
    receive_buffer: Option<&str>,
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
    let question = PathQuestion {
        registry: registry(),
        schedulers,
        schemes: senders,
        send_buffer: optional("send_buffer", send_buffer)?,
        receive_buffer: optional("receive_buffer", receive_buffer)?,
        duration: optional("seconds", duration)?,
        warmup: quantity("warmup", warmup)?,
        size: optional("size", size)?,
        window: optional("window", window)?,
        profile,
        seed,
        seeds,
        ..PathQuestion::new(paths.join("; "))
    };
    let comparison = question.comparison().map_err(Failure::from)?;
    let runs = comparison.runs().map_err(Failure::from)?;
    let results = simulate(py, &runs, progress)?;
    Ok(suimon_study::Findings::new(question.header(command), &comparison.name, results).into())
}
