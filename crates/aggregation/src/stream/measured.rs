//! Stalls, and data that waits at the receiver.

use suimon_units::{Bytes, Duration, Instant};

/// Times in which nothing reaches the application.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    since: Option<Instant>,
    longest: Duration,
}

impl Stalls {
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { since: Some(now), longest: Duration::ZERO };
    }

    pub(super) fn end(&mut self, now: Instant) {
        self.longest = self.longest(now);
        self.since = Some(now);
    }

    pub(super) fn longest(&self, now: Instant) -> Duration {
        let lasts = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.longest.max(lasts)
    }
}

/// Bytes that wait at the receiver, over time.
#[derive(Debug, Default)]
pub(super) struct Held {
    now: Bytes,
    since: Instant,
    from: Instant,
    /// Byte-seconds from `from` to `since`.
    area: f64,
    most: Bytes,
}

impl Held {
    pub(super) fn set(&mut self, now: Instant, held: Bytes) {
        self.area += self.now.as_f64() * now.saturating_since(self.since).as_secs_f64();
        (self.now, self.since) = (held, now);
        self.most = self.most.max(held);
    }

    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { now: self.now, since: now, from: now, area: 0.0, most: self.now };
    }

    pub(super) fn mean(&mut self, end: Instant) -> f64 {
        self.set(end, self.now);
        let time = end.saturating_since(self.from).as_secs_f64();
        if time > 0.0 { self.area / time } else { 0.0 }
    }

    pub(super) fn most(&self) -> Bytes {
        self.most
    }
}
