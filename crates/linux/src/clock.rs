//! The time of a live world.

use std::time::{self, SystemTime};

use nix::time::{ClockId, clock_gettime};
use suimon_units::{Duration, Instant};

/// A monotonic clock that began at zero, so that algorithms see live time as they see simulated time.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: time::Instant,
    began_at: SystemTime,
}

impl Clock {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        Self { began: time::Instant::now(), began_at: SystemTime::now() }
    }

    /// Begins `delay` from now; until then it stands at zero.
    #[must_use]
    pub fn start_in(delay: Duration) -> Self {
        let delay = time::Duration::from_nanos(delay.as_nanos());
        Self { began: time::Instant::now() + delay, began_at: SystemTime::now() + delay }
    }

    /// The time since it began.
    #[must_use]
    pub fn now(&self) -> Instant {
        let nanos = self.began.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time at which the kernel's monotonic clock shows so many nanoseconds, as programs in the kernel tell it; zero
    /// before this clock began.
    #[must_use]
    pub fn at_monotonic(&self, nanos: u64) -> Instant {
        // Both readings are of one clock, some nanoseconds apart.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
        let now = time::Duration::from(now);
        let since_begin = time::Instant::now().saturating_duration_since(self.began);
        let until_begin = self.began.saturating_duration_since(time::Instant::now());
        let began = (now + until_begin).saturating_sub(since_begin).as_nanos() as u64;
        Instant::from_nanos(nanos.saturating_sub(began))
    }

    /// The calendar time at `instant`.
    #[must_use]
    pub fn calendar(&self, instant: Instant) -> SystemTime {
        self.began_at + time::Duration::from_nanos(instant.as_nanos())
    }

    /// Does nothing until `instant`.
    pub fn sleep_until(&self, instant: Instant) {
        let then = self.began + time::Duration::from_nanos(instant.as_nanos());
        std::thread::sleep(then.saturating_duration_since(time::Instant::now()));
    }
}
