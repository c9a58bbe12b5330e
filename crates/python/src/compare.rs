//! Comparisons: Python's keywords are the fields of the request.

use std::any::TypeId;
use std::num::NonZeroUsize;

use clap::{Args, Command};
use pyo3::prelude::*;
use serde_json::{Map, Value};
use suimon_results::RunResult;
use suimon_scenario::StackProfile;
use suimon_study::Comparison;
use suimon_study::comparison::{FlowCounts, Parsed, QueueName, SchedulerName, SenderName};
use suimon_units::{Bytes, Duration};

use crate::errors::{Failure, InputError, InternalError};
use crate::registry::registry;
use crate::results::Findings;
use crate::work::simulate;

/// Runs the comparison whose fields `request` has, as JSON.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, request: &str, progress: bool) -> PyResult<Findings> {
    let comparison = read(request)?;
    let runs = comparison.runs(&registry()).map_err(Failure::from)?;
    let results = simulate(py, &runs, progress)?;
    found(&comparison, comparison.command(), results)
}

/// The command that asks for the same comparison.
#[pyfunction]
pub(crate) fn command(request: &str) -> PyResult<String> {
    Ok(read(request)?.command())
}

/// What came of the same comparison on a kernel, by `command`, which handed `results` over.
#[pyfunction]
pub(crate) fn measured(request: &str, command: String, results: &[u8]) -> PyResult<Findings> {
    let results = postcard::from_bytes(results)
        .map_err(|error| InternalError::new_err(format!("results of {command}: {error}")))?;
    found(&read(request)?, command, results)
}

fn read(request: &str) -> PyResult<Comparison> {
    let refuse = |error| InputError::new_err(format!("{error}; accepted: text of Unicode characters"));
    let fields: Map<String, Value> = serde_json::from_str(request).map_err(refuse)?;
    Ok(Comparison::from_fields(fields).map_err(Failure::from)?)
}

fn found(comparison: &Comparison, command: String, results: Vec<RunResult>) -> PyResult<Findings> {
    let findings = comparison.findings(&registry(), command, results).map_err(Failure::from)?;
    Ok(findings.into())
}

/// A keyword of a comparison: its name, the kind of its value, its default, which is empty where it may be left out, and
/// its meaning.
type Keyword = (String, &'static str, Vec<String>, String);

/// The keywords of comparisons over a link, or over several paths.
#[pyfunction]
pub(crate) fn keywords(over_paths: bool) -> Vec<Keyword> {
    let others: &[&str] = if over_paths { &Comparison::LINK_ONLY } else { &Comparison::PATHS_ONLY };
    let options = Comparison::augment_args(Command::new("compare"));
    let keyword = |option: &clap::Arg| {
        let name = option.get_id().as_str();
        let default = option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let is_left_out = Comparison::OVER.contains(&name) || others.contains(&name);
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        (!is_left_out).then(|| (name.to_owned(), kind(option), default.collect(), help))
    };
    options.get_arguments().filter_map(keyword).collect()
}

/// What the values of `option` are, as `comparison.py` tells them apart.
fn kind(option: &clap::Arg) -> &'static str {
    let kinds = [
        (TypeId::of::<SenderName>(), "senders"),
        (TypeId::of::<QueueName>(), "queues"),
        (TypeId::of::<SchedulerName>(), "schedulers"),
        (TypeId::of::<Parsed<FlowCounts>>(), "counts"),
        (TypeId::of::<Parsed<Duration>>(), "time"),
        (TypeId::of::<Parsed<Bytes>>(), "bytes"),
        (TypeId::of::<Parsed<StackProfile>>(), "profile"),
        (TypeId::of::<NonZeroUsize>(), "number"),
        (TypeId::of::<u64>(), "number or zero"),
        (TypeId::of::<bool>(), "flag"),
    ];
    let of = option.get_value_parser().type_id();
    kinds.into_iter().find(|(id, _)| of == *id).map_or("text", |(_, kind)| kind)
}
