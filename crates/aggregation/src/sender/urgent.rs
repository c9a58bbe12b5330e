//! Data that waits for no other: its path, and its second path.

use std::ops::Range;

use suimon_algorithms::path::{PathId, Rtt};
use suimon_units::{Bytes, Duration, Instant};

use super::{AggregateSender, Path, PathState, within};

impl AggregateSender {
    /// The path over which `len` bytes given now arrive first. `None` where no path is usable, and where that one has not sent
    /// all that it was given: over another they would arrive later still.
    #[must_use]
    pub fn soonest(&self, now: Instant, len: Bytes) -> Option<PathId> {
        self.soonest_of(now, len, |_| true)
    }

    /// Bytes of urgent data that went over a second path.
    #[must_use]
    pub fn copied(&self) -> Bytes {
        self.copied
    }

    fn soonest_of(&self, now: Instant, len: Bytes, may: impl Fn(usize) -> bool) -> Option<PathId> {
        let usable = (self.paths.iter().enumerate()).filter(|(index, path)| path.is_usable() && may(*index));
        let arrival = |path: &Path| {
            let arrives_in = path.view(now, false, false).arrives_in(len);
            arrives_in.map_or(Duration::MAX, |arrives_in| arrives_in + path.late(now))
        };
        let (index, path) = usable.min_by_key(|(_, path)| arrival(path))?;
        path.status.is_some_and(|status| status.unsent == Bytes::ZERO).then_some(PathId(index))
    }

    /// The part of the receiver's buffer that is left to urgent data, where there is any.
    pub(super) fn reserve(&self) -> u64 {
        if self.groups.is_empty() { 0 } else { (self.feedback.edge - self.feedback.next) / RESERVE }
    }

    /// The first urgent data that no path has, where it fits the receiver's buffer.
    pub(super) fn first_urgent(&self) -> Option<Range<u64>> {
        if self.unassigned.is_empty() {
            return None;
        }
        let mut waiting = self.urgent.iter().filter_map(|urgent| {
            let range = self.unassigned.overlapping(urgent.clone()).next()?;
            Some(within(range, urgent))
        });
        let range = waiting.next()?;
        let end = self.cut(range.clone());
        (end <= self.feedback.edge).then_some(range.start..end)
    }

    /// The first urgent data that a second path had better carry too, and that path: data of which two copies are wanted, and
    /// data whose paths are late with what they carry.
    pub(super) fn second_copy(&self, now: Instant) -> Option<(PathId, Range<u64>)> {
        if self.urgent.is_empty() {
            return None;
        }
        let late = self.late_paths(now);
        let wanted = if late == 0 { &self.twice } else { &self.urgent };
        wanted.iter().find_map(|wanted| {
            self.outstanding.overlapping(wanted.clone()).find_map(|(range, carriers)| {
                let range = within(range, wanted);
                // The second path of what is wanted twice may be late too: the first one may be worse.
                let (range, unfit) = match self.twice.overlapping(range.clone()).next() {
                    Some(twice) if carriers.count_ones() == 1 => (within(twice, &range), *carriers),
                    _ if carriers & !late == 0 => (range, carriers | late),
                    _ => return None,
                };
                let range = range.start..self.cut(range);
                let others = |index: usize| unfit & 1 << index == 0;
                let path = self.soonest_of(now, Bytes::new(range.end - range.start), others)?;
                Some((path, range))
            })
        })
    }

    /// When the next path will be late, where that concerns urgent data.
    pub(super) fn copies_at(&self) -> Option<Instant> {
        let up = self.paths.iter().filter(|path| path.state == PathState::Up && !self.urgent.is_empty());
        up.filter_map(Path::late_at).min()
    }

    /// The paths that are late with what they carry, a bit each.
    fn late_paths(&self, now: Instant) -> u64 {
        let late =
            self.paths.iter().enumerate().filter(|(_, path)| path.late_at().is_some_and(|at| at <= now));
        late.map(|(index, _)| 1 << index).sum()
    }
}

impl Path {
    /// The time by which what is under way is late: without an acknowledgement beyond a round trip and its deviation.
    fn late(&self, now: Instant) -> Duration {
        let rtt = self.status.and_then(|status| status.rtt).filter(|_| self.unacknowledged > 0);
        let expected = |rtt: Rtt| rtt.srtt + rtt.rttvar * 4;
        rtt.map_or(Duration::ZERO, |rtt| now.saturating_since(self.progress_at).saturating_sub(expected(rtt)))
    }

    /// When what it carries will be late, if nothing is acknowledged until then. It is under suspicion only: one copy of what is
    /// urgent costs little, so this is sooner than the path is taken to have stalled.
    pub(super) fn late_at(&self) -> Option<Instant> {
        match self.state {
            PathState::Down => None,
            PathState::Stalled => Some(self.progress_at),
            PathState::Up if self.unacknowledged == 0 => None,
            PathState::Up => {
                let rtt = self.status.and_then(|status| status.rtt)?;
                Some(self.late_by(rtt, (rtt.rttvar * 4).max(REPORTED)))
            }
        }
    }
}

/// The other end's program reports what has come within 5 ms. Its turn of the processor and this one's may take as long.
const REPORTED: Duration = Duration::from_millis(10);
/// One part of the receiver's buffer out of so many is kept for urgent data.
const RESERVE: u64 = 16;
