//! How long this machine stood still, as seen by a thread on each core that goes before all others.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suimon_linux::schedule::{Urgency, become_real_time, cores, stay_on, wake_exactly};

/// The time lost because a core did not run a due thread: the host of a virtual machine had others to
/// serve, or, without the right to real-time threads, this machine had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stillness {
    longest: Duration,
    /// On the core that lost most.
    lost: Duration,
    watched: Duration,
}

impl Stillness {
    /// Whether measurements meanwhile count: a link that stands still for longer than a few of its packets
    /// take, or for a share of the time that goodput is judged by, is another link.
    pub(crate) fn is_harmless(&self) -> bool {
        self.longest < Duration::from_millis(10) && self.lost < self.watched / 100
    }
}

impl fmt::Display for Stillness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { longest, lost, watched } = self;
        write!(
            f,
            "this machine stood still for {:.0} ms of {:.1} s, for up to {:.0} ms at once",
            lost.as_secs_f64() * 1e3,
            watched.as_secs_f64(),
            longest.as_secs_f64() * 1e3,
        )
    }
}

/// Threads that watch until they are told to end.
pub(crate) struct Watch {
    began: Instant,
    ends: Arc<AtomicBool>,
    cores: Vec<JoinHandle<(Duration, Duration)>>,
}

impl Watch {
    /// Returns once each core is watched.
    pub(crate) fn begin() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let own = cores();
        let ready = Arc::new(Barrier::new(own.len() + 1));
        let cores = own
            .into_iter()
            .map(|core| {
                let (ends, ready) = (Arc::clone(&ends), Arc::clone(&ready));
                thread::spawn(move || watch(core, &ready, &ends))
            })
            .collect();
        ready.wait();
        Self { began: Instant::now(), ends, cores }
    }

    pub(crate) fn end(self) -> Stillness {
        self.ends.store(true, Ordering::Relaxed);
        let watched = self.began.elapsed();
        let seen = self.cores.into_iter().map(|core| core.join().expect("a watch does not panic"));
        let (longest, lost) = seen.fold(Default::default(), |(longest, lost): (Duration, Duration), core| {
            (longest.max(core.0), lost.max(core.1))
        });
        Stillness { longest, lost, watched }
    }
}

/// A wake-up that is later than this is one that the core did not run.
const ON_TIME: Duration = Duration::from_millis(1);

/// The longest time that `core` stood still, and all of it.
fn watch(core: usize, ready: &Barrier, ends: &AtomicBool) -> (Duration, Duration) {
    // Where either is refused, it sees the core that it runs on, and waits for its turn there.
    let _ = stay_on(core);
    let _ = become_real_time(Urgency::Watch);
    wake_exactly();
    ready.wait();
    let pause = Duration::from_millis(2);
    let (mut longest, mut lost) = (Duration::ZERO, Duration::ZERO);
    while !ends.load(Ordering::Relaxed) {
        let slept = Instant::now();
        thread::sleep(pause);
        let late = slept.elapsed().saturating_sub(pause);
        longest = longest.max(late);
        if late > ON_TIME {
            lost += late;
        }
    }
    (longest, lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stillness that the watch sees of a thread of `urgency` that keeps the first core busy for 50 ms; none where
    /// this user may not have such a thread.
    fn seen_of_a_busy_core(urgency: Urgency) -> Option<Stillness> {
        let watch = Watch::begin();
        let busy = thread::spawn(move || {
            let may = become_real_time(urgency).is_ok() && stay_on(cores()[0]).is_ok();
            let ends = Instant::now() + Duration::from_millis(50);
            while may && Instant::now() < ends {
                std::hint::spin_loop();
            }
            may
        });
        let may = busy.join().unwrap();
        let stillness = watch.end();
        may.then_some(stillness)
    }

    #[test]
    fn a_core_that_is_taken_away_is_seen_and_one_that_a_link_takes_is_not() {
        let Some(taken) = seen_of_a_busy_core(Urgency::Watch) else {
            eprintln!("skipped: this user may not have real-time threads");
            return;
        };
        assert!(taken.longest > Duration::from_millis(30) && !taken.is_harmless(), "{taken}");
        // The host may take a core too; hardly each time.
        let of_link = || seen_of_a_busy_core(Urgency::Link).unwrap().longest;
        assert!((0..20).any(|_| of_link() < Duration::from_millis(30)));
    }
}
