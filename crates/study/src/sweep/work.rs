//! Makes the parts of a sweep.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use suimon_report::Tables;
use suimon_results::RunResult;

use super::parts::{Folder, has, write};
use super::plan::Sweep;
use crate::error::StudyError;
use crate::simulate::{Observer, simulate_one};

/// Makes the parts that are missing, `jobs` runs at a time.
///
/// Runs are handed out one by one and in order, and whoever finishes the last one of a part writes it. So
/// threads share a counter and, once a run, a lock; a slow run holds up no other; and of the parts that
/// have begun, each but the last has a run at work: there are never more than one beyond `jobs`, whatever
/// the number of runs.
///
/// # Errors
/// When a part cannot be written.
pub fn make(
    sweep: &Sweep<'_>,
    folder: &Folder,
    missing: &[u64],
    jobs: usize,
    observer: &dyn Observer,
) -> Result<(), StudyError> {
    let work = Work {
        sweep,
        folder: folder.path(),
        missing,
        next: AtomicU64::new(0),
        open: Mutex::default(),
        stopped: AtomicBool::new(false),
        observer,
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| work.do_runs())).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for outcome in outcomes {
        outcome.unwrap_or_else(|unwound| resume_unwind(unwound))?;
    }
    Ok(())
}

/// Makes `part` in the folder at `folder`, unless it is there; tells whether it had to. `writer` is a word that no
/// other process makes the same part under.
///
/// # Errors
/// When it cannot be written, or a trace is not what it was where the sweep began.
pub fn make_part(
    sweep: &Sweep<'_>,
    folder: &Path,
    part: u64,
    writer: &str,
    observer: &dyn Observer,
) -> Result<bool, StudyError> {
    if has(folder, part) {
        return Ok(false);
    }
    let runs = sweep.manifest.runs_in(part);
    let results = runs.clone().map(|run| simulate(sweep, run, observer)).collect::<Result<Vec<_>, _>>()?;
    sweep.check_files()?;
    write(folder, part, &format!("-{writer}"), &sweep.header, &Tables::part(&results, runs.start))?;
    Ok(true)
}

fn simulate(sweep: &Sweep<'_>, nth: u64, observer: &dyn Observer) -> Result<RunResult, StudyError> {
    let mut run = sweep.plan.run(nth)?;
    if !sweep.manifest.series {
        run.scenario.record.interval = None;
    }
    let mut result = simulate_one(&run, observer);
    if !sweep.manifest.series {
        result.events = Vec::new();
    }
    Ok(result)
}

struct Work<'a> {
    sweep: &'a Sweep<'a>,
    folder: &'a Path,
    missing: &'a [u64],
    /// The next place in the missing parts laid end to end.
    next: AtomicU64,
    /// Results of the parts that have begun, by run.
    open: Mutex<BTreeMap<u64, BTreeMap<u64, RunResult>>>,
    /// One thread has failed, and the others need not go on.
    stopped: AtomicBool,
    observer: &'a dyn Observer,
}

/// Tells the other threads to stop when this one ends before its work is done, also by unwinding.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Work<'_> {
    /// Does runs until none is left.
    fn do_runs(&self) -> Result<(), StudyError> {
        let stop_others = StopOthers(&self.stopped);
        while !self.stopped.load(Ordering::Relaxed) {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let runs_per_part = self.sweep.manifest.runs_per_part;
            let Some(&part) = self.missing.get((place / runs_per_part) as usize) else {
                // Those of the others that are at work finish it.
                std::mem::forget(stop_others);
                return Ok(());
            };
            // The last part may hold fewer.
            let Some(run) = self.sweep.manifest.runs_in(part).nth((place % runs_per_part) as usize) else {
                continue;
            };
            self.hand_in(part, run, simulate(self.sweep, run, self.observer)?)?;
        }
        Ok(())
    }

    fn hand_in(&self, part: u64, run: u64, result: RunResult) -> Result<(), StudyError> {
        let runs = self.sweep.manifest.runs_in(part);
        let complete = {
            let mut open = self.open.lock().expect("nothing panics while it is held");
            let results = open.entry(part).or_default();
            results.insert(run, result);
            if results.len() as u64 == runs.end - runs.start { open.remove(&part) } else { None }
        };
        let Some(results) = complete else { return Ok(()) };
        let results: Vec<_> = results.into_values().collect();
        write(self.folder, part, "", &self.sweep.header, &Tables::part(&results, runs.start))
    }
}
