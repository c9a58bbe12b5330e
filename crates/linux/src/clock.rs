//! The time of a live world.

use std::time::{self, SystemTime};

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
