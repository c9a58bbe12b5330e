//! Runs on the kernel's own stacks, in real time.

use std::sync::Mutex;

use suimon_live::{Glance, LiveError, Observer};
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;
use suimon_units::Duration;

use crate::progress::{Progress, simulate};

/// Runs everything live; results come in the order of `runs`.
pub(crate) fn live(runs: &[Run]) -> Result<Vec<RunResult>, LiveError> {
    let progress = LiveProgress::new(runs);
    let results = suimon_live::run_all(runs, &progress);
    progress.bar.finish();
    results
}

/// The same runs simulated and live.
pub(crate) fn beside_simulation(runs: &[Run]) -> Result<Vec<Pair>, LiveError> {
    let live = live(runs)?;
    let pair = |(simulated, live)| Pair { simulated, live };
    Ok(simulate(runs).into_iter().zip(live).map(pair).collect())
}

/// A bar over the time that all runs take together.
struct LiveProgress {
    bar: Progress,
    /// How much of each run was told.
    told: Mutex<Vec<Duration>>,
}

impl LiveProgress {
    fn new(runs: &[Run]) -> Self {
        Self {
            bar: Progress::new(suimon_study::total_duration(runs)),
            told: Mutex::new(vec![Duration::ZERO; runs.len()]),
        }
    }
}

impl Observer for LiveProgress {
    fn glance(&self, glance: &Glance<'_>) {
        let Ok(mut told) = self.told.lock() else { return };
        let more = glance.passed.saturating_sub(told[glance.run]);
        told[glance.run] = glance.passed;
        self.bar.advance_by(more.as_nanos());
    }
}
