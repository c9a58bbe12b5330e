//! Runs simulations on all cores, with a progress bar where that takes long enough to wonder.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_simulator::run_observed;
use suimon_units::Duration as Simulated;

/// Nobody wonders before.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs everything; results come in the order of `runs`, on any number of cores.
pub(crate) fn simulate(runs: &[Run]) -> Vec<RunResult> {
    let progress = Progress::new(runs.iter().map(|run| run.scenario.duration));
    let results = runs
        .par_iter()
        .map(|run| {
            let mut told = Simulated::ZERO;
            let result = run_observed(&run.scenario, &run.labels, &mut |passed| {
                progress.advance(passed.saturating_sub(told));
                told = passed;
            });
            progress.advance(run.scenario.duration.saturating_sub(told));
            result
        })
        .collect();
    progress.finish();
    results
}

/// Simulated time done, of all that is to do. Threads may share it.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// In nanoseconds, not yet shown.
    pending: AtomicU64,
    shown: Mutex<bool>,
}

impl Progress {
    /// Over runs that last so long; the bar counts their milliseconds.
    pub(crate) fn new(durations: impl Iterator<Item = Simulated>) -> Self {
        let total = durations.map(|duration| duration.as_nanos() / NANOS_PER_MILLI).sum();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left")
            .expect("the template is constant and checked by every long run");
        bar.set_style(style);
        Self { bar, started: Instant::now(), pending: AtomicU64::new(0), shown: Mutex::new(false) }
    }

    /// So much more is done.
    pub(crate) fn advance(&self, by: Simulated) {
        self.pending.fetch_add(by.as_nanos(), Ordering::Relaxed);
        if self.started.elapsed() < PATIENCE {
            return;
        }
        // Who finds it held has nothing to wait for: the other one or the next one shows this too.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        if !*shown {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            *shown = true;
        }
        let nanos = self.pending.swap(0, Ordering::Relaxed);
        self.pending.fetch_add(nanos % NANOS_PER_MILLI, Ordering::Relaxed);
        self.bar.inc(nanos / NANOS_PER_MILLI);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
