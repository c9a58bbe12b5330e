//! Runs simulations on all cores, with a progress bar where that takes long enough to wonder.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_simulator::run_observed;

/// Nobody wonders before.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs everything; results come in the order of `runs`, on any number of cores.
pub(crate) fn simulate(runs: &[Run]) -> Vec<RunResult> {
    let progress = Progress::new(runs);
    let results = runs
        .par_iter()
        .map(|run| {
            let mut told = 0;
            let result = run_observed(&run.scenario, &run.labels, &mut |passed| {
                let millis = passed.as_nanos() / 1_000_000;
                progress.advance(millis - told);
                told = millis;
            });
            progress.advance((run.scenario.duration.as_nanos() / 1_000_000).saturating_sub(told));
            result
        })
        .collect();
    progress.bar.finish_and_clear();
    results
}

/// Simulated milliseconds done, of all that are to do.
struct Progress {
    bar: ProgressBar,
    started: Instant,
    pending: AtomicU64,
    shown: Mutex<bool>,
}

impl Progress {
    fn new(runs: &[Run]) -> Self {
        let total = runs.iter().map(|run| run.scenario.duration.as_nanos() / 1_000_000).sum();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left")
            .expect("the template is constant and checked by every long run");
        bar.set_style(style);
        Self { bar, started: Instant::now(), pending: AtomicU64::new(0), shown: Mutex::new(false) }
    }

    fn advance(&self, millis: u64) {
        self.pending.fetch_add(millis, Ordering::Relaxed);
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let mut shown = self.shown.lock().expect("no thread panics while it holds this lock");
        if !*shown {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            *shown = true;
        }
        self.bar.inc(self.pending.swap(0, Ordering::Relaxed));
    }
}
