//! Streams over several flows, beside what each flow reaches alone.

use std::collections::HashMap;

use suimon_results::{AggregateResult, RunResult};
use suimon_units::{Bytes, Duration};

/// The totals of a stream over several flows.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamTotals {
    /// The stream's goodput, of the sum of its flows' goodputs where each carries the stream alone; `None` without such
    /// runs.
    pub share_of_paths: Option<f64>,
    /// The stream's goodput, of the best flow's goodput alone.
    pub share_of_best: Option<f64>,
    /// Bytes that waited at the receiver for data of other flows: mean over time.
    pub reorder_mean_bytes: f64,
    /// Most that waited at once.
    pub reorder_max: Bytes,
    /// Payload that arrived a second time, by another path.
    pub duplicates: Bytes,
    /// Longest time in which nothing reached the application.
    pub longest_stall: Duration,
    /// The number of times that a flow's connection was established again.
    pub reconnections: u64,
}

/// Runs in which one flow carried a stream alone, by the stream, the flow and the other labels of the run. The axis
/// that says which flow carried the stream is no part of the key.
#[derive(Debug, Default)]
pub(crate) struct Alone<'a>(HashMap<Key<'a>, f64>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key<'a> {
    scenario: &'a str,
    seed: u64,
    stream: &'a str,
    flow: &'a str,
    axis: &'a str,
    others: Vec<&'a (String, String)>,
}

impl<'a> Alone<'a> {
    /// The runs among `runs` in which one flow carried a stream alone.
    pub(crate) fn of(runs: &'a [RunResult]) -> Self {
        let mut alone = HashMap::new();
        for run in runs {
            for stream in &run.aggregates {
                if let [flow] = stream.flows.as_slice() {
                    let goodput = stream.goodput.as_bps_f64();
                    alone.extend(keys(run, &stream.name, flow).map(|key| (key, goodput)));
                }
            }
        }
        Self(alone)
    }

    /// The totals of `stream` in `run`.
    pub(crate) fn totals(&self, run: &'a RunResult, stream: &'a AggregateResult) -> StreamTotals {
        let goodput = stream.goodput.as_bps_f64();
        let alone = self.goodputs(run, stream);
        let share = |of: f64| (of > 0.0).then(|| goodput / of);
        StreamTotals {
            share_of_paths: alone.as_ref().and_then(|alone| share(alone.iter().sum())),
            share_of_best: alone.and_then(|alone| share(alone.into_iter().fold(0.0, f64::max))),
            reorder_mean_bytes: stream.reorder_mean_bytes,
            reorder_max: stream.reorder_max,
            duplicates: stream.duplicates,
            longest_stall: stream.longest_stall,
            reconnections: stream.reconnections,
        }
    }

    /// The goodput of each flow of a stream when alone, where all of them ran alone.
    fn goodputs(&self, run: &'a RunResult, stream: &'a AggregateResult) -> Option<Vec<f64>> {
        if stream.flows.len() < 2 {
            return None;
        }
        let alone =
            |flow: &'a String| keys(run, &stream.name, flow).find_map(|key| self.0.get(&key).copied());
        stream.flows.iter().map(alone).collect()
    }
}

/// The keys of `run` for a run that differs from it in one axis.
fn keys<'a>(run: &'a RunResult, stream: &'a str, flow: &'a str) -> impl Iterator<Item = Key<'a>> {
    run.labels.iter().map(move |(axis, _)| Key {
        scenario: &run.scenario,
        seed: run.seed,
        stream,
        flow,
        axis,
        others: run.labels.iter().filter(|(other, _)| other != axis).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{flow, run};

    /// A run with a stream over `flows` at so many bits per second.
    fn stream(labels: &[(&str, &str)], flows: &[&str], bps: u64) -> RunResult {
        let stream = crate::samples::stream("ecf", flows, bps);
        let flows = flows.iter().map(|name| flow(name, "reno", bps)).collect();
        RunResult { aggregates: vec![stream], ..run(labels, flows, vec![]) }
    }

    fn shares(runs: &[RunResult], which: usize) -> (Option<f64>, Option<f64>) {
        let totals = Alone::of(runs).totals(&runs[which], &runs[which].aggregates[0]);
        (totals.share_of_paths, totals.share_of_best)
    }

    #[test]
    fn a_stream_is_set_beside_what_its_flows_reach_alone_in_the_same_place() {
        let runs = [
            stream(&[("cc", "reno"), ("scheme", "a alone")], &["a"], 8_000_000),
            stream(&[("cc", "reno"), ("scheme", "b alone")], &["b"], 2_000_000),
            stream(&[("cc", "reno"), ("scheme", "ecf")], &["a", "b"], 9_000_000),
            stream(&[("cc", "cubic"), ("scheme", "a alone")], &["a"], 6_000_000),
            stream(&[("cc", "cubic"), ("scheme", "ecf")], &["a", "b"], 7_000_000),
        ];
        assert_eq!(shares(&runs, 2), (Some(0.9), Some(1.125)));
        assert_eq!(shares(&runs, 0), (None, None), "alone it is beside itself");
        assert_eq!(shares(&runs, 4), (None, None), "b alone is not known with cubic");
    }

    #[test]
    fn runs_of_another_seed_are_no_measure() {
        let mut runs = [
            stream(&[("scheme", "a alone")], &["a"], 8_000_000),
            stream(&[("scheme", "b alone")], &["b"], 2_000_000),
            stream(&[("scheme", "ecf")], &["a", "b"], 9_000_000),
        ];
        runs[0].seed += 1;
        assert_eq!(shares(&runs, 2), (None, None));
    }
}
