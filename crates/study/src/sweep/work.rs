//! Makes the parts of a sweep.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use suimon_report::Tables;
use suimon_results::RunResult;
use suimon_scenario::Run;

use super::parts::{Folder, has, write};
use super::plan::Sweep;
use crate::error::StudyError;
use crate::simulate::{Observer, simulate_one};

/// Makes the parts that are missing, `jobs` runs at a time.
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
    make_by(sweep, folder, missing, jobs, &|_, run| Ok::<_, StudyError>(simulate_one(run, observer)))
}

/// The same elsewhere than in the simulator: `make_run` is called for each run with its number among all, from `jobs`
/// threads.
///
/// # Errors
/// As [`make`], and those of `make_run`, after which no other run begins.
pub fn make_by<E: From<StudyError> + Send>(
    sweep: &Sweep<'_>,
    folder: &Folder,
    missing: &[u64],
    jobs: usize,
    make_run: &MakeRun<'_, E>,
) -> Result<(), E> {
    make_all(sweep, folder.path(), missing, jobs, "", make_run)
}

/// Makes a run, which has this number among all of its sweep.
pub type MakeRun<'a, E> = dyn Fn(u64, &Run) -> Result<RunResult, E> + Sync + 'a;

/// Makes those of `parts` that are not in the folder at `folder`, one run at a time; tells how many that were.
/// `writer` is a word that no other process makes parts under.
///
/// # Errors
/// When one cannot be written, or a trace is not what it was where the sweep began.
pub fn make_parts(
    sweep: &Sweep<'_>,
    folder: &Path,
    parts: &[u64],
    writer: &str,
    observer: &dyn Observer,
) -> Result<usize, StudyError> {
    let missing: Vec<u64> = parts.iter().copied().filter(|part| !has(folder, *part)).collect();
    let make_run = |_, run: &Run| Ok::<_, StudyError>(simulate_one(run, observer));
    make_all(sweep, folder, &missing, 1, &format!("-{writer}"), &make_run)?;
    Ok(missing.len())
}

/// Makes the `missing` parts on `jobs` threads, with as many beside them that write: waiting for the disk holds up
/// no run.
///
/// Runs are handed out one by one and in order, and with the last run of a part the part is handed on. So
/// threads share a counter and, once a run, a lock; a slow run holds up no other; and of the parts that
/// have begun, each but the last has a run at work: there are never more than one beyond `jobs`, whatever
/// the number of runs, and as many that are being written.
fn make_all<E: From<StudyError> + Send>(
    sweep: &Sweep<'_>,
    folder: &Path,
    missing: &[u64],
    jobs: usize,
    writer: &str,
    make_run: &MakeRun<'_, E>,
) -> Result<(), E> {
    let work = Work {
        sweep,
        folder,
        missing,
        writer,
        next: AtomicU64::new(0),
        open: Mutex::default(),
        stopped: AtomicBool::new(false),
        make_run,
    };
    let (whole, to_write) = sync_channel(0);
    let to_write = Arc::new(Mutex::new(to_write));
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..jobs {
            let (work, whole, to_write) = (&work, whole.clone(), Arc::clone(&to_write));
            threads.push(scope.spawn(move || work.do_runs(&whole)));
            threads.push(scope.spawn(move || work.write(&to_write)));
        }
        // Only the threads hold the ends now, so whoever waits for one of the other kind learns that all have ended.
        drop((whole, to_write));
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for outcome in outcomes {
        outcome.unwrap_or_else(|unwound| resume_unwind(unwound))?;
    }
    Ok(())
}

/// A part whose runs are done: its number and their results.
type Whole = (u64, Vec<RunResult>);

struct Work<'a, E> {
    sweep: &'a Sweep<'a>,
    folder: &'a Path,
    missing: &'a [u64],
    /// What sets files apart that are not finished from those of other processes.
    writer: &'a str,
    /// The next place in the missing parts laid end to end.
    next: AtomicU64,
    /// Results of the parts that have begun, by run.
    open: Mutex<BTreeMap<u64, BTreeMap<u64, RunResult>>>,
    /// One thread has failed, and the others need not go on.
    stopped: AtomicBool,
    make_run: &'a MakeRun<'a, E>,
}

/// Tells the other threads to stop when this one ends before its work is done, also by unwinding.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<E: From<StudyError>> Work<'_, E> {
    /// Does runs until none is left.
    fn do_runs(&self, whole: &SyncSender<Whole>) -> Result<(), E> {
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
            if let Some(results) = self.hand_in(part, run, self.one(run)?)
                && whole.send((part, results)).is_err()
            {
                break;
            }
        }
        Ok(())
    }

    fn one(&self, nth: u64) -> Result<RunResult, E> {
        let mut result = (self.make_run)(nth, &self.sweep.run(nth)?)?;
        if !self.sweep.manifest.series {
            result.events = Vec::new();
        }
        Ok(result)
    }

    /// The results of `part`, once `run` makes it whole.
    fn hand_in(&self, part: u64, run: u64, result: RunResult) -> Option<Vec<RunResult>> {
        let runs = self.sweep.manifest.runs_in(part);
        let mut open = self.open.lock().expect("nothing panics while it is held");
        let results = open.entry(part).or_default();
        results.insert(run, result);
        let is_whole = results.len() as u64 == runs.end - runs.start;
        is_whole.then(|| open.remove(&part).unwrap_or_default().into_values().collect())
    }

    /// Writes what comes, until nothing comes any more.
    fn write(&self, to_write: &Mutex<Receiver<Whole>>) -> Result<(), E> {
        let stop_others = StopOthers(&self.stopped);
        let next = || to_write.lock().expect("nothing panics while it is held").recv();
        while let Ok((part, results)) = next() {
            // A worker may be where a trace is another.
            self.sweep.check_files()?;
            let first = self.sweep.manifest.runs_in(part).start;
            write(self.folder, part, self.writer, &self.sweep.header, &Tables::part(&results, first))?;
        }
        std::mem::forget(stop_others);
        Ok(())
    }
}
