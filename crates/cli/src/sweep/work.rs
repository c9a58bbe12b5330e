//! Runs a sweep on several threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_report::Tables;
use suimon_results::RunResult;
use suimon_simulator::run_observed;
use suimon_units::Duration;

use super::parts::Folder;
use super::plan::Sweep;
use crate::error::CliError;
use crate::progress::Progress;

/// Makes the parts that are missing, `jobs` runs at a time.
///
/// Runs are handed out one by one and in order, and whoever finishes the last one of a part writes it. So
/// threads share a counter and, once a run, a lock; a slow run holds up no other; and of the parts that
/// have begun, each but the last has a run at work: there are never more than one beyond `jobs`, whatever
/// the number of runs.
pub(crate) fn make(sweep: &Sweep<'_>, folder: &Folder, missing: &[u64], jobs: usize) -> Result<(), CliError> {
    let work = Work {
        sweep,
        folder,
        queue: missing
            .iter()
            .flat_map(|part| sweep.manifest.runs_in(*part).map(|run| (*part, run)))
            .collect(),
        next: AtomicU64::new(0),
        open: Mutex::default(),
        stopped: AtomicBool::new(false),
        progress: Progress::new(missing.iter().map(|part| sweep.duration(*part))),
    };
    let outcomes: Vec<Result<(), CliError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work.take_part())).collect();
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the process")).collect()
    });
    work.progress.finish();
    outcomes.into_iter().collect()
}

struct Work<'a> {
    sweep: &'a Sweep<'a>,
    folder: &'a Folder,
    /// Runs to do, each with its part.
    queue: Vec<(u64, u64)>,
    next: AtomicU64,
    /// Results of the parts that have begun, by run.
    open: Mutex<BTreeMap<u64, BTreeMap<u64, RunResult>>>,
    /// One thread has failed, and the others need not go on.
    stopped: AtomicBool,
    progress: Progress,
}

impl Work<'_> {
    /// Does runs until none is left.
    fn take_part(&self) -> Result<(), CliError> {
        while !self.stopped.load(Ordering::Relaxed) {
            let nth = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&(part, run)) = self.queue.get(nth as usize) else { break };
            let done = self.simulate(run).and_then(|result| self.hand_in(part, run, result));
            if done.is_err() {
                self.stopped.store(true, Ordering::Relaxed);
                return done;
            }
        }
        Ok(())
    }

    fn simulate(&self, nth: u64) -> Result<RunResult, CliError> {
        let mut run = self.sweep.plan.run(nth)?;
        if !self.sweep.manifest.series {
            run.scenario.record.interval = None;
        }
        let mut told = Duration::ZERO;
        let mut result = run_observed(&run.scenario, &run.labels, &mut |passed| {
            self.progress.advance(passed.saturating_sub(told));
            told = passed;
        });
        self.progress.advance(run.scenario.duration.saturating_sub(told));
        if !self.sweep.manifest.series {
            result.events = Vec::new();
        }
        Ok(result)
    }

    fn hand_in(&self, part: u64, run: u64, result: RunResult) -> Result<(), CliError> {
        let runs = self.sweep.manifest.runs_in(part);
        let complete = {
            let mut open = self.open.lock().expect("a panic ends the process");
            let results = open.entry(part).or_default();
            results.insert(run, result);
            if results.len() as u64 == runs.end - runs.start { open.remove(&part) } else { None }
        };
        let Some(results) = complete else { return Ok(()) };
        let results: Vec<_> = results.into_values().collect();
        self.folder.write(part, &self.sweep.header, &Tables::part(&results, runs.start))
    }
}
