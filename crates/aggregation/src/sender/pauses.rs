//! How long a path is silent at times and loses nothing: radio links pause.

use suimon_units::{Duration, Instant};

/// The pauses of a path of late: it carried nothing for longer than it ought to, and went on.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// When each ended, and how long it was. Each is longer than [`LATE`](super::LATE), so they are few.
    pauses: Vec<(Instant, Duration)>,
}

impl Pauses {
    /// A pause of `length` ends.
    pub(super) fn add(&mut self, now: Instant, length: Duration) {
        self.pauses.retain(|(ended_at, _)| now < *ended_at + REMEMBERED);
        self.pauses.push((now, length));
    }

    /// The longest of late.
    pub(super) fn longest(&self, now: Instant) -> Duration {
        self.recent(now).max().unwrap_or_default()
    }

    /// The longest of late, where there are many. Any link pauses once in a while, as where the machine at its other end is busy.
    pub(super) fn longest_of_many(&self, now: Instant) -> Duration {
        if self.recent(now).count() < MANY { Duration::ZERO } else { self.longest(now) }
    }

    fn recent(&self, now: Instant) -> impl Iterator<Item = Duration> {
        let recent = self.pauses.iter().filter(move |(ended_at, _)| now < *ended_at + REMEMBERED);
        recent.map(|(_, length)| *length)
    }
}

/// A pause is expected again for so long: radio links pause every second or two.
const REMEMBERED: Duration = Duration::from_secs(10);
/// One every two seconds is no accident.
const MANY: usize = 5;
