//! Runs simulations on all cores, and shows a progress bar where something takes long enough to wonder.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::{Observer, total_duration};
use suimon_units::Duration as Simulated;

/// Nobody wonders before.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs everything; results come in the order of `runs`, on any number of cores.
pub(crate) fn simulate(runs: &[Run]) -> Vec<RunResult> {
    let progress = Progress::new(total_duration(runs));
    suimon_study::simulate(runs, &progress)
}

/// The same without events, and without samples of flows and aggregates.
pub(crate) fn simulate_totals(runs: &[Run]) -> Vec<RunResult> {
    let progress = Progress::new(total_duration(runs));
    suimon_study::simulate_totals(runs, &progress)
}

/// What is done, simulated time or bytes, of all that is to do. Threads may share it.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    /// How much is a step of the bar.
    step: u64,
    /// Not yet shown.
    pending: AtomicU64,
    shown: Mutex<bool>,
}

impl Progress {
    /// Over so much simulated time; the bar counts milliseconds.
    pub(crate) fn new(total: Simulated) -> Self {
        let total = total.as_nanos() / NANOS_PER_MILLI;
        Self::with_style(Some(total), "{bar:40} {percent:>3} %  {eta} left", NANOS_PER_MILLI)
    }

    /// Over so many bytes of a file, or over input whose length is not known.
    #[cfg(feature = "capture")]
    pub(crate) fn of_bytes(total: Option<u64>) -> Self {
        let unknown = "{spinner} {binary_bytes} read in {elapsed}";
        let style = if total.is_some() { "{bar:40} {percent:>3} %  {eta} left" } else { unknown };
        Self::with_style(total, style, 1)
    }

    fn with_style(total: Option<u64>, template: &str, step: u64) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(template)
            .expect("the templates are constant and checked by every long run");
        bar.set_style(style);
        let (pending, shown) = (AtomicU64::new(0), Mutex::new(false));
        Self { bar, started: Instant::now(), step, pending, shown }
    }

    /// So much more is done.
    pub(crate) fn advance_by(&self, amount: u64) {
        self.pending.fetch_add(amount, Ordering::Relaxed);
        if self.started.elapsed() < PATIENCE {
            return;
        }
        // Who finds it held has nothing to wait for: the other one or the next one shows this too.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        if !*shown {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            *shown = true;
        }
        let pending = self.pending.swap(0, Ordering::Relaxed);
        self.pending.fetch_add(pending % self.step, Ordering::Relaxed);
        self.bar.inc(pending / self.step);
    }
}

/// Takes the bar away.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn advance(&self, by: Simulated) {
        self.advance_by(by.as_nanos());
    }
}

const NANOS_PER_MILLI: u64 = 1_000_000;
