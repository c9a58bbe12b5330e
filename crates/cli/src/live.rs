//! Runs on a kernel's own stacks, in real time here or in virtual time in guests.

use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use suimon_lab::controls::hold_missing;
use suimon_live::{Glance, KernelNames, Links, Observer};
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::Pair;
use suimon_units::Duration;

use crate::error::CliError;
use crate::guests::{GUEST_LOAD, Guests, LabOptions, Only, hand_over_all};
use crate::progress::{Progress, simulate};
use crate::view::{View, ViewOptions};

#[cfg(feature = "parquet")]
mod sweep;

/// Options of commands that run on a kernel rather than in the simulator.
#[derive(Debug, Args, Default)]
pub(crate) struct LiveOptions {
    /// Run on this machine's kernel instead of simulating: real TCP over emulated links, in real time; needs root
    #[arg(long, conflicts_with = "lab")]
    live: bool,
    #[command(flatten)]
    lab: LabOptions,
}

impl LiveOptions {
    /// Whether a kernel runs.
    pub(crate) fn is_wanted(&self) -> bool {
        self.live || self.is_virtual()
    }

    /// Whether it runs in virtual time.
    pub(crate) fn is_virtual(&self) -> bool {
        self.lab.lab.is_some()
    }

    /// Why a guest does not bear `run`.
    pub(crate) fn left_out(&self, run: &Run) -> Option<String> {
        let rates = suimon_live::shown_rates(&run.scenario);
        ((self.is_virtual() || Only::here().is_some()) && rates > GUEST_LOAD).then(|| {
            format!("links of more than {GUEST_LOAD} together are too much for a guest; --live has them in real time")
        })
    }

    /// Runs everything; results come in the order of `runs`. In virtual time each run has a guest of its own, in which
    /// this command runs with `--live`; the guest takes `files` along.
    pub(crate) fn run(
        &self,
        runs: &[Run],
        files: &[PathBuf],
        view: &ViewOptions,
    ) -> Result<Vec<RunResult>, CliError> {
        hand_over_all(match self.lab.lab {
            Some(_) => self.in_guests(runs, &["--live"], files)?,
            None => live_with(runs, &hold_missing(runs)?.names, Links::Emulated, view)?,
        })
    }

    /// The same in virtual time; the command in the guests has these `words` in place of `--lab`.
    fn in_guests(&self, runs: &[Run], words: &[&str], files: &[PathBuf]) -> Result<Vec<RunResult>, CliError> {
        let guests = Guests::of_command(words, files, &self.lab)?;
        guests.run_all(0..runs.len(), suimon_study::total_duration(runs))
    }

    /// The options of guests.
    #[cfg(feature = "bpf")]
    pub(crate) fn lab(&self) -> &LabOptions {
        &self.lab
    }

    /// The same runs on links that are devices and queues of the kernel, and simulated. In virtual time guests run the
    /// command with `--kernel`.
    #[cfg(feature = "bpf")]
    pub(crate) fn on_kernel_links(
        &self,
        runs: &[Run],
        files: &[PathBuf],
        view: &ViewOptions,
    ) -> Result<Vec<Pair>, CliError> {
        let live = match self.lab.lab {
            Some(_) => self.in_guests(runs, &["--kernel"], files)?,
            None => live_with(runs, &hold_missing(runs)?.names, Links::Kernel, view)?,
        };
        Ok(pairs(runs, live))
    }

    /// The same runs live and simulated, the simulator being told what the senders do and the scenario does not say.
    pub(crate) fn beside_simulation(
        &self,
        runs: &[Run],
        files: &[PathBuf],
        view: &ViewOptions,
    ) -> Result<Vec<Pair>, CliError> {
        let live = self.run(runs, files, view)?;
        Ok(pairs(runs, live))
    }
}

/// Each of `live` beside its run, simulated.
fn pairs(runs: &[Run], live: Vec<RunResult>) -> Vec<Pair> {
    let mut runs = runs.to_vec();
    runs.iter_mut().for_each(|run| suimon_live::behave_as_live(&mut run.scenario));
    let pair = |(simulated, live)| Pair { simulated, live };
    simulate(&runs).into_iter().zip(live).map(pair).collect()
}

/// Runs everything on this kernel; congestion controls go by `names` there. In a guest that has one of the runs to make
/// it makes this one, and hands it over.
pub(crate) fn live_with(
    runs: &[Run],
    names: &KernelNames,
    links: Links,
    view: &ViewOptions,
) -> Result<Vec<RunResult>, CliError> {
    if let Some(only) = Only::here() {
        let run = runs.get(only.0..=only.0).unwrap_or_default();
        return only.hand_over(&suimon_live::run_all(run, names, links, &Unseen)?);
    }
    let title = runs.first().map_or("", |run| run.scenario.name.as_str());
    let view = if view.is_wanted() { Some(view.show(title, None)?) } else { None };
    let progress = LiveProgress::new(runs, view);
    Ok(suimon_live::run_all(runs, names, links, &progress)?)
}

/// Nobody watches.
struct Unseen;

impl Observer for Unseen {
    fn glance(&self, _: &Glance<'_>) {}
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

#[cfg(test)]
mod tests {
    use suimon_scenario::Document;

    use super::*;

    fn run(mbit: u32) -> Run {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"{mbit}Mbit\"\n\
             [link.reverse]\nrate = \"unlimited\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
        );
        Document::parse(&text, "test").unwrap().runs().unwrap().remove(0)
    }

    #[test]
    fn a_guest_is_not_asked_for_more_than_it_bears_and_real_time_is() {
        let guests =
            LiveOptions { lab: LabOptions { lab: Some(1), lab_kernel: None }, ..LiveOptions::default() };
        assert_eq!(guests.left_out(&run(60)), None);
        let reason = guests.left_out(&run(61)).unwrap();
        assert!(reason.contains("60 Mbit/s") && reason.contains("--live"), "{reason}");
        assert_eq!(LiveOptions { live: true, ..LiveOptions::default() }.left_out(&run(500)), None);
    }
}
