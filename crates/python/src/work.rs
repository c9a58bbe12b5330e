//! Work without the interpreter's lock, that signals stop and a bar accompanies.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pyo3::prelude::*;
use suimon_results::RunResult;
use suimon_scenario::{Flow, Run, Traffic};
use suimon_study::{Observer, total_duration};
use suimon_units::Duration as Simulated;

use crate::errors::InternalError;
use crate::user_defined::raised;

/// How long a signal may wait, and a bar stand still.
const PATIENCE: Duration = Duration::from_millis(50);
/// Nobody wonders before.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// Runs everything on all cores; results come in the order of `runs`.
pub(crate) fn simulate(py: Python<'_>, runs: &[Run], progress: bool) -> PyResult<Vec<RunResult>> {
    watched(py, total_duration(runs), progress, |observer| {
        if !runs.iter().any(is_user_defined) {
            return suimon_study::simulate(runs, observer);
        }
        // Threads would only wait for the interpreter's lock, so runs that take it come one after the other.
        let others: Vec<Run> = runs.iter().filter(|run| !is_user_defined(run)).cloned().collect();
        let mut others = suimon_study::simulate(&others, observer).into_iter();
        Python::attach(|_| {
            let result = |run: &Run| match is_user_defined(run) {
                true => suimon_study::simulate_one(run, observer),
                false => others.next().expect("there is a result for each of them"),
            };
            runs.iter().map(result).collect()
        })
    })
}

/// Does `work` on another thread while this one waits for signals, without the interpreter's lock.
///
/// # Errors
/// What a signal's handler raised, such as `KeyboardInterrupt`, or the exception of an algorithm in Python.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    total: Simulated,
    progress: bool,
    work: impl FnOnce(&dyn Observer) -> T + Send,
) -> PyResult<T> {
    let watcher = Watcher::default();
    let bar = progress.then(|| Bar::new(total));
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, is_done) = channel();
            let worker = scope.spawn(|| {
                // Dropped at the end, however that comes.
                let _done = done;
                catch_unwind(AssertUnwindSafe(|| work(&watcher)))
            });
            let mut raised = None;
            while is_done.recv_timeout(PATIENCE) == Err::<(), _>(RecvTimeoutError::Timeout) {
                if let Some(bar) = &bar {
                    bar.show(watcher.passed.load(Ordering::Relaxed));
                }
                if raised.is_none() {
                    raised = Python::attach(signals).err();
                    watcher.stop.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let outcome = worker.join().expect("what it does is caught");
            outcome.map_err(|unwound| raised.unwrap_or_else(|| exception_of(unwound)))
        })
    });
    if let Some(bar) = bar {
        bar.0.1.finish_and_clear();
    }
    outcome
}

/// Lets the interpreter handle signals that came.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// What unwinds to end work early.
struct Stopped;

/// Counts what is done, and ends the work where that is wanted.
#[derive(Debug, Default)]
struct Watcher {
    /// Simulated nanoseconds.
    passed: AtomicU64,
    stop: AtomicBool,
}

impl Observer for Watcher {
    fn advance(&self, by: Simulated) {
        self.passed.fetch_add(by.as_nanos(), Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }
}

/// Whether anything in `run` is written in Python.
pub(crate) fn is_user_defined(run: &Run) -> bool {
    let scenario = &run.scenario;
    let flow = |flow: &Flow| matches!(&flow.traffic, Traffic::Tcp(tcp) if tcp.cc.is_user_defined());
    scenario.flows.iter().any(flow)
        || scenario.links.iter().any(|link| link.queue.is_user_defined())
        || scenario.aggregates.iter().any(|aggregate| aggregate.scheduler.is_user_defined())
}

/// The exception for what unwound: that of an algorithm in Python, or an error of this program, since all others
/// are results.
fn exception_of(unwound: Box<dyn Any + Send>) -> PyErr {
    let unwound = match raised(unwound) {
        Ok(error) => return error,
        Err(unwound) => unwound,
    };
    let words = unwound.downcast_ref::<&str>().copied();
    let words = words.or_else(|| unwound.downcast_ref::<String>().map(String::as_str));
    InternalError::new_err(format!("suimon is wrong here, not you: {}", words.unwrap_or("no message")))
}

/// A bar on standard error, where that is a terminal.
struct Bar((Instant, ProgressBar));

impl Bar {
    fn new(total: Simulated) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total.as_nanos()), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {eta} left");
        bar.set_style(style.expect("the template is constant and shown by every long run"));
        Self((Instant::now(), bar))
    }

    fn show(&self, passed: u64) {
        let Self((since, bar)) = self;
        if since.elapsed() > BAR_AFTER {
            if bar.is_hidden() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            bar.set_position(passed);
        }
    }
}
