//! Data that waits for no other: its path, and its second path.

use std::ops::Range;

use suimon_algorithms::path::{PathId, Rtt};
use suimon_units::{Bytes, Duration, Instant};

use super::{AggregateSender, Path, PathState, Suspicion, Urgency, within};

impl AggregateSender {
    /// The path for `len` bytes of urgent data given now: the one over which they arrive first. `None` where no path is usable,
    /// and where that one has not sent all that it was given: over another they would arrive later still. What goes over
    /// two paths begins with any that has, as its other copy takes the better one.
    #[must_use]
    pub fn path_for(&self, now: Instant, len: Bytes, urgency: Urgency) -> Option<PathId> {
        self.path_of(now, len, urgency, |_| true)
    }

    /// The path over which `len` bytes given now arrive first, where they would arrive over a second one before a retransmission
    /// over the first, which takes a round trip more at least.
    #[must_use]
    pub fn beaten_by_a_copy(&self, now: Instant, len: Bytes) -> Option<PathId> {
        let usable = self.paths.iter().enumerate().filter(|(_, path)| path.is_usable());
        let mut arrivals: Vec<_> = usable.map(|(index, path)| (path.arrival(now, len), index)).collect();
        arrivals.sort_unstable();
        let [(first, best), (second, _), ..] = arrivals[..] else { return None };
        let srtt = self.paths[best].status?.rtt?.srtt;
        (second.saturating_sub(srtt) < first).then_some(PathId(best))
    }

    /// Whether data that is not urgent is under way or waits for a path.
    #[must_use]
    pub fn has_bulk(&self) -> bool {
        let under_way = self.outstanding.iter().map(|(range, _)| range);
        under_way.chain(self.unassigned.iter()).any(|range| self.urgent.gaps(range).next().is_some())
    }

    /// Bytes that went over a second path: of urgent data, and first bytes that the receiver lacked, whose path was late.
    #[must_use]
    pub fn copied(&self) -> Bytes {
        self.copied
    }

    fn path_of(
        &self,
        now: Instant,
        len: Bytes,
        urgency: Urgency,
        may: impl Fn(usize) -> bool,
    ) -> Option<PathId> {
        let has_sent = |path: &Path| path.status.is_some_and(|status| status.unsent == Bytes::ZERO);
        let waits = urgency != Urgency::Twice;
        let usable = (self.paths.iter().enumerate())
            .filter(|(index, path)| path.is_usable() && may(*index) && (waits || has_sent(path)));
        let (index, path) = usable.min_by_key(|(_, path)| path.arrival(now, len))?;
        has_sent(path).then_some(PathId(index))
    }

    /// How urgent the data at `place` is, which is urgent.
    pub(super) fn urgency_at(&self, place: u64) -> Urgency {
        if self.twice.contains(&place) { Urgency::Twice } else { Urgency::First }
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

    /// The first data that a second path had better carry too, and that path: data of which two copies are wanted, urgent data whose
    /// paths are late with what they carry, and other data whose paths are, as far as a second path has room.
    pub(super) fn second_copy(&self, now: Instant) -> Option<(PathId, Range<u64>)> {
        if self.suspicion == Suspicion::Timeout && self.urgent.is_empty() {
            return None;
        }
        let late = self.late_paths(now, |_| Duration::ZERO);
        let wanted = if late == 0 { &self.twice } else { &self.urgent };
        let urgent = wanted.iter().find_map(|wanted| {
            self.outstanding.overlapping(wanted.clone()).find_map(|(range, carriers)| {
                let range = within(range, wanted);
                // The second path of what is wanted twice may be late too: the first one may be worse.
                let (range, unfit) = match self.twice.overlapping(range.clone()).next() {
                    Some(twice) if carriers.count_ones() == 1 => (within(twice, &range), *carriers),
                    _ if carriers & !late == 0 => (range, carriers | late),
                    _ => return None,
                };
                let urgency = self.urgency_at(range.start);
                self.copy(now, range, urgency, unfit)
            })
        });
        urgent.or_else(|| self.copy_of_late(now))
    }

    /// The first data that `late` paths alone carry and have lost, and a path for a copy. What the receiver waits for may make a queue longer
    /// than it should be. A path that often pauses is not late before the longest of its pauses would be over. Of a path that paused now and then,
    /// only what the receiver waits for is copied before that.
    fn copy_of_late(&self, now: Instant) -> Option<(PathId, Range<u64>)> {
        if self.suspicion == Suspicion::Timeout {
            return None;
        }
        let late = self.late_paths(now, |path| path.pauses.longest_of_many(path.progress_at));
        let paths = self.paths.iter().enumerate().filter(|(index, _)| late & 1 << index != 0);
        let mut lost: Vec<_> = paths.flat_map(|(_, path)| self.lost_by(path)).collect();
        lost.sort_unstable_by_key(|(range, _)| range.start);
        let awaited = lost.first()?.0.start;
        let (range, carriers) = lost.into_iter().find(|(_, carriers)| carriers & !late == 0)?;
        let is_awaited = range.start == awaited;
        let (path, copied) = self.copy(now, range, Urgency::First, carriers | late)?;
        let status = self.paths[path.0].status?;
        let has_room = status.buffered + Bytes::new(copied.end - copied.start) <= status.send_buffer;
        let overdue = self.late_paths(now, |path| path.pauses.longest(path.progress_at));
        (is_awaited || (has_room && carriers & !overdue == 0)).then_some((path, copied))
    }

    /// What `path` was given and has lost, with all that carry it.
    fn lost_by<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (Range<u64>, u64)> + 'a {
        path.lost(self.reported_at).flat_map(|given| {
            let parts = self.outstanding.overlapping(given.range.clone());
            parts.map(|(range, carriers)| (within(range, &given.range), *carriers))
        })
    }

    /// The path for a copy of what `range` begins with, none of the `unfit`.
    fn copy(
        &self,
        now: Instant,
        range: Range<u64>,
        urgency: Urgency,
        unfit: u64,
    ) -> Option<(PathId, Range<u64>)> {
        let range = range.start..self.cut(range);
        let len = Bytes::new(range.end - range.start);
        Some((self.path_of(now, len, urgency, |index| unfit & 1 << index == 0)?, range))
    }

    /// When the next path will be late, where that concerns what it carries.
    pub(super) fn copies_at(&self) -> Option<Instant> {
        let first = self.suspicion == Suspicion::Late;
        let concerned = |path: &&Path| path.state == PathState::Up && (!self.urgent.is_empty() || first);
        self.paths.iter().filter(concerned).filter_map(|path| path.late_at(Duration::ZERO)).min()
    }

    /// The paths that are late with what they carry, a bit each, where each is `allowed` to be late by so much.
    fn late_paths(&self, now: Instant, allowed: impl Fn(&Path) -> Duration) -> u64 {
        let is_late = |path: &Path| path.late_at(allowed(path)).is_some_and(|at| at <= now);
        let late = self.paths.iter().enumerate().filter(|(_, path)| is_late(path));
        late.map(|(index, _)| 1 << index).sum()
    }
}

impl Path {
    /// The time until `len` bytes given now arrive; the longest where nothing is known.
    fn arrival(&self, now: Instant, len: Bytes) -> Duration {
        let arrives_in = self.view(now, false, false).arrives_in(len);
        arrives_in.map_or(Duration::MAX, |arrives_in| arrives_in + self.late(now))
    }

    /// The time by which what is under way is late: without an acknowledgement beyond a round trip and its deviation.
    fn late(&self, now: Instant) -> Duration {
        let rtt = self.status.and_then(|status| status.rtt);
        let expected = |rtt: Rtt| rtt.srtt + rtt.rttvar * 4;
        rtt.map_or(Duration::ZERO, |rtt| self.silent(now).saturating_sub(expected(rtt)))
    }

    /// When what it carries will be late, if nothing is acknowledged until then and it is `allowed` to be late by so much. The path is under
    /// suspicion only: one copy of what is urgent costs little, so this is sooner than the path is taken to have stalled.
    pub(super) fn late_at(&self, allowed: Duration) -> Option<Instant> {
        match self.state {
            PathState::Down => None,
            PathState::Stalled => Some(self.progress_at),
            PathState::Up if self.unacknowledged == 0 => None,
            PathState::Up => {
                let reports = self.reports.or(self.status.and_then(|status| status.rtt))?;
                Some(self.late_by(reports, slack(reports).max(allowed)))
            }
        }
    }
}

/// How much later than others a report is late.
pub(super) fn slack(reports: Rtt) -> Duration {
    (reports.rttvar * 4).max(REPORTED)
}

/// The other end's program reports what has come within 5 ms. Its turn of the processor and this one's may take as long.
const REPORTED: Duration = Duration::from_millis(10);
/// One part of the receiver's buffer out of so many is kept for urgent data.
const RESERVE: u64 = 16;
