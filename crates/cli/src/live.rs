//! Runs on the kernel's own stacks, in real time.

use std::sync::Mutex;

use suimon_lab::controls::hold_missing;
use suimon_live::{Glance, KernelNames, Observer};
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;
use suimon_units::Duration;

use crate::error::CliError;
use crate::progress::{Progress, simulate};
use crate::view::{View, ViewOptions};

/// Runs everything live; results come in the order of `runs`.
pub(crate) fn live(runs: &[Run], view: &ViewOptions) -> Result<Vec<RunResult>, CliError> {
    live_with(runs, &hold_missing(runs)?.names, view)
}

/// The same; congestion controls go by `names` in the kernel.
pub(crate) fn live_with(
    runs: &[Run],
    names: &KernelNames,
    view: &ViewOptions,
) -> Result<Vec<RunResult>, CliError> {
    let title = runs.first().map_or("", |run| run.scenario.name.as_str());
    let view = if view.is_wanted() { Some(view.show(title, None)?) } else { None };
    let progress = LiveProgress::new(runs, view);
    Ok(suimon_live::run_all(runs, names, &progress)?)
}

/// The same runs live and simulated, the simulator being told what the senders do and the scenario does not say.
pub(crate) fn beside_simulation(runs: &[Run], view: &ViewOptions) -> Result<Vec<Pair>, CliError> {
    let live = live(runs, view)?;
    let mut runs = runs.to_vec();
    runs.iter_mut().for_each(|run| suimon_live::write_as_live(&mut run.scenario));
    let pair = |(simulated, live)| Pair { simulated, live };
    Ok(simulate(&runs).into_iter().zip(live).map(pair).collect())
}

/// A bar over the time that all runs take together, and a view of their links.
struct LiveProgress {
    bar: Progress,
    /// How much of each run was told.
    told: Mutex<Vec<Duration>>,
    view: Option<View>,
}

impl LiveProgress {
    fn new(runs: &[Run], view: Option<View>) -> Self {
        Self {
            bar: Progress::new(suimon_study::total_duration(runs)),
            told: Mutex::new(vec![Duration::ZERO; runs.len()]),
            view,
        }
    }
}

impl Observer for LiveProgress {
    fn glance(&self, glance: &Glance<'_>) {
        if let Some(view) = &self.view {
            let labels: Vec<_> = glance.labels.iter().map(|(_, value)| value.as_str()).collect();
            view.post(&labels.join(", "), glance.links);
            if view.has_terminal() {
                return;
            }
        }
        let Ok(mut told) = self.told.lock() else { return };
        let more = glance.passed.saturating_sub(told[glance.run]);
        told[glance.run] = glance.passed;
        self.bar.advance_by(more.as_nanos());
    }
}
