//! When a thread runs, and what wakes it.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use nix::poll::{PollFd, PollFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use suimon_units::Duration;

use crate::error::{Doing, LinuxError};

/// How the kernel schedules a thread.
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

/// Which of two real-time threads goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// What moves packets: the lowest of the priorities, before all ordinary threads.
    Link = 1,
    /// What watches whether this machine is in time, before every link.
    Watch = 2,
}

/// Lets the calling thread run under `SCHED_FIFO`.
///
/// # Errors
/// Without `CAP_SYS_NICE` or a limit on real-time priorities that allows it.
pub fn become_real_time(urgency: Urgency) -> Result<(), LinuxError> {
    let parameters = libc::sched_param { sched_priority: urgency as libc::c_int };
    // SAFETY: 0 is the calling thread, and the pointer is to a live struct that the call only reads.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }.doing("running under SCHED_FIFO")
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
    let timeout =
        timeout.map(|time| TimeSpec::from_duration(std::time::Duration::from_nanos(time.as_nanos())));
    match nix::poll::ppoll(&mut polled, timeout, None) {
        Ok(_) => Ok(polled.map(|source| source.any().unwrap_or(false))),
        Err(nix::errno::Errno::EINTR) => Ok([false; N]),
        Err(error) => Err(error).doing("waiting for packets"),
    }
}

/// Signals to this process, asked for rather than acted upon: those that ask it to end, and those from the
/// terminal, which the program that runs in front gets too.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// From now on, in this thread and those that it starts.
    ///
    /// # Errors
    /// Where the process has no descriptors left.
    pub fn block() -> Result<Self, LinuxError> {
        let signals = [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT];
        let set: SigSet = signals.into_iter().collect();
        set.thread_block().doing("blocking signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        SignalFd::with_flags(&set, flags).doing("waiting for signals").map(Self)
    }

    /// One that came and is to be passed on; those from the terminal are not.
    ///
    /// # Errors
    /// None that the kernel is known to give.
    pub fn take(&mut self) -> Result<Option<i32>, LinuxError> {
        while let Some(signal) = self.0.read_signal().doing("reading signals")? {
            let number = signal.ssi_signo.cast_signed();
            if number == libc::SIGTERM || number == libc::SIGHUP {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}
