//! Several runs, at once where the machine can bear it.

use std::borrow::Cow;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use suimon_model::{Run, Scenario};
use suimon_results::RunResult;
use suimon_units::Rate;

use crate::error::LiveError;
use crate::plan::{Links, Plan};
use crate::run::{Observer, available, run_planned};
use crate::stack_options::KernelNames;

/// Runs go on at once as long as their links carry no more than this together: more would make the emulator late.
const MAX_LOAD: Rate = Rate::from_bps(120_000_000);
/// And no more runs than this.
const MAX_RUNS: usize = 12;

/// Runs everything; results come in the order of `runs`. `names` are the kernel's names of congestion controls that
/// have others, and `links` says who makes the links. A run that cannot be live is refused before anything begins.
///
/// # Errors
/// As [`run`](crate::run()); runs that have begun come to their end first.
pub fn run_all(
    runs: &[Run],
    names: &KernelNames,
    links: Links,
    observer: &dyn Observer,
) -> Result<Vec<RunResult>, LiveError> {
    let available = available()?;
    let scenarios: Vec<_> = runs.iter().map(|run| Scenario::split(Cow::Borrowed(&run.scenario))).collect();
    let plans: Vec<_> = scenarios
        .iter()
        .map(|scenario| Plan::new(scenario, &available, names, links))
        .collect::<Result<_, _>>()?;
    let capacity = Capacity::default();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, ((run, scenario), plan)) in runs.iter().zip(&scenarios).zip(&plans).enumerate() {
            let taken = capacity.take(plan.load());
            threads.push(scope.spawn(move || {
                let _taken = taken;
                run_planned(scenario, &run.labels, number, plan, observer)
            }));
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

/// The load and the number of runs that go on at the same time.
#[derive(Debug, Default)]
struct Capacity {
    used: Mutex<(u64, usize)>,
    freed: Condvar,
}

/// The part of one run.
struct Taken<'a> {
    of: &'a Capacity,
    load: u64,
}

impl Capacity {
    /// Waits until there is room for so much more, or nothing else goes on.
    fn take(&self, load: Rate) -> Taken<'_> {
        let load = load.as_bps();
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |used: &mut (u64, usize)| {
            used.1 > 0 && (used.0.saturating_add(load) > MAX_LOAD.as_bps() || used.1 >= MAX_RUNS)
        };
        let mut used = self.freed.wait_while(used, is_full).unwrap_or_else(PoisonError::into_inner);
        *used = (used.0 + load, used.1 + 1);
        Taken { of: self, load }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut used = self.of.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = (used.0 - self.load, used.1 - 1);
        self.of.freed.notify_all();
    }
}
