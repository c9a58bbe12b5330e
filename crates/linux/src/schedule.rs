//! The scheduling of threads, and their wake-ups.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::{fmt, hint, io};

use nix::poll::{PollFd, PollFlags};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::unistd::Pid;
use suimon_units::Duration;

use crate::error::{Doing, LinuxError};
use crate::guest;

/// The kernel's scheduling of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// `SCHED_FIFO`: before all ordinary threads, as soon as it wants to run.
    RealTime,
    /// `SCHED_OTHER`: in turn with the rest of the machine, milliseconds late where that is busy.
    Ordinary,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RealTime => "SCHED_FIFO",
            Self::Ordinary => "SCHED_OTHER",
        })
    }
}

/// The rank of a real-time thread among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Threads that move packets: the lowest of the priorities, before all ordinary threads.
    Link = 1,
    /// Threads that watch whether this machine is in time, before every link.
    Watch = 2,
}

/// Lets the calling thread run under `SCHED_FIFO`.
///
/// # Errors
/// Without `CAP_SYS_NICE` or a limit on real-time priorities that allows it.
pub fn become_real_time(urgency: Urgency) -> Result<(), LinuxError> {
    set_policy(libc::SCHED_FIFO, urgency as libc::c_int).doing("running under SCHED_FIFO")
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // By the call itself, as musl's function refuses it. The kernel's `struct sched_param` is one number.
    // SAFETY: 0 is the calling thread, and the pointer is to a live number that the call only reads.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The cores that this process may run on.
#[must_use]
pub fn cores() -> Vec<usize> {
    let may = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|core| may.is_set(*core).unwrap_or(false)).collect()
}

/// Keeps the calling thread on one core.
///
/// # Errors
/// Where this process may not run there.
pub fn stay_on(core: usize) -> Result<(), LinuxError> {
    let mut own = CpuSet::new();
    own.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &own)).doing("staying on one core")
}

/// Cores that do not halt while this lives: on each runs a thread under `SCHED_IDLE`, which gives way to all else.
///
/// A core of a virtual machine that has halted takes its host up to some 100 us to wake, which delays every event then.
/// The price is the power of a busy machine.
#[derive(Debug)]
pub struct Awake {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// All cores that this process may run on are awake from now on. In a guest whose time is the count of its
    /// instructions none halts late, and one that spins would only make time pass.
    #[must_use]
    pub fn begin() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let spin = |core| {
            let ends = Arc::clone(&ends);
            thread::spawn(move || {
                // A thread that might take anything from others does not run.
                if become_idle().is_ok() && stay_on(core).is_ok() {
                    while !ends.load(Ordering::Relaxed) {
                        hint::spin_loop();
                    }
                }
            })
        };
        let wanted = if guest::here().is_some() { Vec::new() } else { cores() };
        let threads = wanted.into_iter().map(spin).collect();
        Self { ends, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread only spins, which does not panic.
            let _ = thread.join();
        }
    }
}

/// Lets the calling thread run under `SCHED_IDLE`.
fn become_idle() -> Result<(), LinuxError> {
    set_policy(libc::SCHED_IDLE, 0).doing("running under SCHED_IDLE")
}

/// Asks for wake-ups of the calling thread as exact as the kernel's timers, rather than within 50 us.
pub fn wake_exactly() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory. A real-time thread has no slack, and
    // where the call is refused wake-ups are later, which is measured.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// Waits until one of `sources` can be read, at most for `timeout`; `None` waits without end. Tells which can.
///
/// # Errors
/// Where a source is none that can be waited for.
pub fn wait_readable<const N: usize>(
    sources: [BorrowedFd<'_>; N],
    timeout: Option<Duration>,
) -> Result<[bool; N], LinuxError> {
    let mut polled = sources.map(|source| PollFd::new(source, PollFlags::POLLIN));
    if wait(&mut polled, timeout)? {
        Ok(polled.map(|source| source.any().unwrap_or(false)))
    } else {
        Ok([false; N])
    }
}

/// Waits until one of `sources` can be read, at most for `timeout`. Tells whether one can.
///
/// # Errors
/// Where a source is none that can be waited for.
pub fn wait_any_readable<'a>(
    sources: impl Iterator<Item = BorrowedFd<'a>>,
    timeout: Duration,
) -> Result<bool, LinuxError> {
    let mut polled: Vec<_> = sources.map(|source| PollFd::new(source, PollFlags::POLLIN)).collect();
    wait(&mut polled, Some(timeout))
}

/// Waits for one of `polled`; true where one came within `timeout`.
fn wait(polled: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<bool, LinuxError> {
    let timeout =
        timeout.map(|time| TimeSpec::from_duration(std::time::Duration::from_nanos(time.as_nanos())));
    match nix::poll::ppoll(polled, timeout, None) {
        Ok(ready) => Ok(ready > 0),
        Err(nix::errno::Errno::EINTR) => Ok(false),
        Err(error) => Err(error).doing("waiting for packets"),
    }
}

/// The thing to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// There is something to read, or the end.
    Read,
    /// There is room to write.
    Write,
}

/// Waits until one of `sources` can be read or written, as it says, at most for `timeout`; tells which can. A place without
/// a source waits for nothing.
///
/// # Errors
/// Where a source is none that can be waited for.
pub fn wait_ready<const N: usize>(
    sources: [Option<(BorrowedFd<'_>, Wanted)>; N],
    timeout: Duration,
) -> Result<[bool; N], LinuxError> {
    let mut polled: Vec<_> = (sources.iter().flatten())
        .map(|(source, wanted)| match wanted {
            Wanted::Read => PollFd::new(*source, PollFlags::POLLIN),
            Wanted::Write => PollFd::new(*source, PollFlags::POLLOUT),
        })
        .collect();
    let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(timeout.as_nanos()));
    match nix::poll::ppoll(&mut polled, Some(timeout), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error).doing("waiting for input"),
    }
    let mut ready = polled.iter().map(|source| source.any().unwrap_or(false));
    Ok(sources.map(|source| source.is_some() && ready.next().unwrap_or(false)))
}

/// Signals that somebody sends to this process rather than to the program that runs in front.
const PASSED_ON: [Signal; 4] = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGUSR2];

/// Signals to this process, asked for rather than acted upon: those that are passed on, and those from the terminal, which
/// the program that runs in front gets too.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks the signals from now on, in this thread and those that it starts.
    ///
    /// # Errors
    /// Where the process has no descriptors left.
    pub fn block() -> Result<Self, LinuxError> {
        let set: SigSet = PASSED_ON.into_iter().chain([Signal::SIGINT, Signal::SIGQUIT]).collect();
        set.thread_block().doing("blocking signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        SignalFd::with_flags(&set, flags).doing("waiting for signals").map(Self)
    }

    /// A signal that came and is to be passed on; signals from the terminal are not.
    ///
    /// # Errors
    /// None that the kernel is known to give.
    pub fn take(&mut self) -> Result<Option<i32>, LinuxError> {
        while let Some(signal) = self.0.read_signal().doing("reading signals")? {
            let number = signal.ssi_signo.cast_signed();
            if PASSED_ON.iter().any(|signal| *signal as i32 == number) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Threads of this process that run under `SCHED_IDLE`: field 41 of `/proc/.../stat`, the name being the second.
    fn idle_threads() -> usize {
        let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("stat"));
        let policy =
            |stat: String| stat.rsplit(')').next().unwrap().split_whitespace().nth(38).map(str::to_owned);
        let is_idle = |stat| policy(stat) == Some(libc::SCHED_IDLE.to_string());
        tasks.filter_map(|stat| fs::read_to_string(stat).ok()).filter(|stat| is_idle(stat.clone())).count()
    }

    #[test]
    fn each_core_is_kept_awake_by_a_thread_that_gives_way_until_it_is_over() {
        assert!(!cores().is_empty());
        let awake = Awake::begin();
        let ends = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while idle_threads() < cores().len() && std::time::Instant::now() < ends {
            thread::yield_now();
        }
        assert_eq!(idle_threads(), cores().len());
        drop(awake);
        assert_eq!(idle_threads(), 0);
    }

    #[test]
    fn a_thread_stays_where_it_was_put_and_only_where_it_may() {
        let stayed = thread::spawn(|| {
            let core = cores()[0];
            stay_on(core).unwrap();
            (cores() == [core], stay_on(CpuSet::count()).is_err())
        });
        assert_eq!(stayed.join().unwrap(), (true, true));
    }
}
