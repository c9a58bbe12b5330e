//! Runs on all cores.

use rayon::prelude::*;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_simulator::run_observed;
use suimon_units::Duration;

/// Follows work from several threads.
///
/// An observer that wants the work to stop may unwind (`std::panic::resume_unwind`) where the program is built
/// to unwind: what was at work is lost, nothing is left half-written, and the call that began it unwinds too.
pub trait Observer: Sync {
    /// So much more simulated time is done.
    fn advance(&self, by: Duration);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn advance(&self, _by: Duration) {}
}

/// How much simulated time an observer of `runs` will be told of.
#[must_use]
pub fn total_duration(runs: &[Run]) -> Duration {
    runs.iter().fold(Duration::ZERO, |sum, run| sum + run.scenario.duration)
}

/// Runs everything; results come in the order of `runs`, on any number of cores.
#[must_use]
pub fn simulate(runs: &[Run], observer: &dyn Observer) -> Vec<RunResult> {
    runs.par_iter().map(|run| simulate_one(run, observer)).collect()
}

/// As [`simulate`], without what grows with the length of a run and no verdict takes: events, and samples of flows and
/// aggregates. A thousand runs fit in memory so. Samples of queues stay, since claims on estimators take them.
#[must_use]
pub fn simulate_totals(runs: &[Run], observer: &dyn Observer) -> Vec<RunResult> {
    let totals = |run| RunResult {
        events: Vec::new(),
        flow_series: Vec::new(),
        aggregate_series: Vec::new(),
        ..simulate_one(run, observer)
    };
    runs.par_iter().map(totals).collect()
}

/// Runs `run`.
#[must_use]
pub fn simulate_one(run: &Run, observer: &dyn Observer) -> RunResult {
    let mut told = Duration::ZERO;
    let result = run_observed(&run.scenario, &run.labels, &mut |passed| {
        observer.advance(passed.saturating_sub(told));
        told = passed;
    });
    observer.advance(run.scenario.duration.saturating_sub(told));
    result
}
