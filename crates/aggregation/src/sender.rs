//! The sending end: gives data to connections, and to others when a path fails.

mod pauses;
mod urgent;

use std::collections::VecDeque;
use std::ops::Range;

use rangemap::{RangeMap, RangeSet};
use suimon_algorithms::Probe;
use suimon_algorithms::path::{Data, PathId, PathScheduler, PathStatus, PathView, Placement, Rtt, SendState};
use suimon_units::{Bytes, Duration, Instant};

use self::pauses::Pauses;
use crate::flight::ACKED_SEGMENTS;
use crate::receiver::Feedback;

/// Data for one connection: to be written to it at once, after all that it was given before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// The connection.
    pub path: PathId,
    /// Aggregate sequence number of the first byte.
    pub start: u64,
    /// How many bytes.
    pub len: Bytes,
}

/// The sending end of an aggregate.
#[derive(Debug)]
pub struct AggregateSender {
    scheduler: Box<dyn PathScheduler>,
    chunk: Bytes,
    copy_stalled: bool,
    suspicion: Suspicion,
    /// Until when silences are excused, as nobody looked.
    excused_until: Instant,
    /// When the receiving program last told what it has, had that come over the quickest path.
    reported_at: Instant,
    paths: Vec<Path>,
    views: Vec<PathView>,
    /// Produced by the application, and on no path.
    unassigned: RangeSet<u64>,
    /// Where the application's data ends so far.
    produced: u64,
    /// Where groups of data end that stay together, from the first that has not arrived on.
    groups: VecDeque<u64>,
    /// Data that has not arrived and goes before all other.
    urgent: RangeSet<u64>,
    /// Of it, data that goes over two paths.
    twice: RangeSet<u64>,
    /// Bytes that went over a second path before theirs had stalled.
    copied: Bytes,
    /// The data under way, with a bit for each path that carries it.
    outstanding: RangeMap<u64, u64>,
    feedback: Feedback,
}

#[derive(Debug)]
struct Path {
    state: PathState,
    status: Option<PathStatus>,
    /// Data given to the connection and not acknowledged, oldest first.
    given: VecDeque<Given>,
    /// Bytes in `given`.
    unacknowledged: u64,
    /// When something was acknowledged last, or there was nothing to acknowledge.
    progress_at: Instant,
    /// The time from giving data to the receiving program's report of it. The report comes over the quickest path, so this is less than
    /// the round-trip time of a long one, and no receiver delays it as it may an acknowledgement.
    reports: Option<Rtt>,
    /// When the path was last taken to have stalled.
    stalled_at: Instant,
    pauses: Pauses,
}

/// Data that a connection was given, and when.
#[derive(Debug)]
struct Given {
    range: Range<u64>,
    at: Instant,
}

/// When a path that acknowledges nothing is taken to have stalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Suspicion {
    /// After a retransmission timeout (RFC 6298 §2, with Linux's bounds).
    #[default]
    Timeout,
    /// Once the oldest data is late by four mean deviations of the round-trip time, and nothing was acknowledged for as long:
    /// RFC 6298's timeout without a lower bound. Its granularity G is [`LATE`], and [`LATE_ALONE`] where so little is under
    /// way that the receiver may delay its acknowledgement. Takes an ACK for each segment or two to be seen. Where this
    /// program itself looks late, the path has up to as long again: an end that stands still is no path
    /// that fails. After a pause in which nothing was lost, the path may be silent for as long: radio links pause, and what goes over
    /// another path meanwhile arrives twice. As in RFC 8985 §6.2, where a spurious retransmission widens the time for reordering.
    Late,
}

/// What data waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Urgency {
    /// Its turn, and the scheduler's choice of a path.
    #[default]
    None,
    /// Nothing: it goes before all other data, over the path on which it arrives first. Where that path turns out to be late, it
    /// goes over a second one as well.
    First,
    /// As `First`, and always over a second path too: over the two on which it arrives first, of those that have nothing unsent.
    Twice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathState {
    Down,
    Up,
    /// Nothing was acknowledged for a retransmission timeout, though there is something to acknowledge.
    Stalled,
}

impl AggregateSender {
    /// An aggregate over `paths` connections, all of them down, that hands over `chunk` bytes at a time.
    /// With `copy_stalled`, data of a path that makes no progress is given to others too.
    ///
    /// # Panics
    /// With more than 64 paths or an empty chunk.
    #[must_use]
    pub fn new(scheduler: Box<dyn PathScheduler>, paths: usize, chunk: Bytes, copy_stalled: bool) -> Self {
        assert!(
            paths <= MAX_PATHS && chunk > Bytes::ZERO,
            "at most {MAX_PATHS} paths, and chunks of something"
        );
        let path = || Path {
            state: PathState::Down,
            status: None,
            given: VecDeque::new(),
            unacknowledged: 0,
            progress_at: Instant::ZERO,
            reports: None,
            stalled_at: Instant::ZERO,
            pauses: Pauses::default(),
        };
        Self {
            scheduler,
            chunk,
            copy_stalled,
            suspicion: Suspicion::Timeout,
            excused_until: Instant::ZERO,
            reported_at: Instant::ZERO,
            paths: (0..paths).map(|_| path()).collect(),
            views: Vec::with_capacity(paths),
            unassigned: RangeSet::new(),
            produced: 0,
            groups: VecDeque::new(),
            urgent: RangeSet::new(),
            twice: RangeSet::new(),
            copied: Bytes::ZERO,
            outstanding: RangeMap::new(),
            feedback: Feedback::default(),
        }
    }

    /// The application has produced `end` bytes in all.
    pub fn produce(&mut self, end: u64) {
        if end > self.produced {
            self.unassigned.insert(self.produced..end);
            self.produced = end;
        }
    }

    /// The application has produced `end` bytes in all; the last of them stay together, in one chunk, however long they are.
    pub fn produce_group(&mut self, end: u64, urgency: Urgency) {
        if end > self.produced {
            if urgency != Urgency::None {
                self.urgent.insert(self.produced..end);
            }
            if urgency == Urgency::Twice {
                self.twice.insert(self.produced..end);
            }
            self.produce(end);
            self.groups.push_back(end);
        }
    }

    /// From now on paths are taken to have stalled by another rule.
    pub fn set_suspicion(&mut self, suspicion: Suspicion) {
        self.suspicion = suspicion;
    }

    /// The connection over `path` is established, with nothing in it.
    pub fn path_up(&mut self, now: Instant, path: PathId) {
        let path = &mut self.paths[path.0];
        path.state = PathState::Up;
        path.progress_at = now;
        path.reports = None;
        path.pauses = Pauses::default();
    }

    /// The connection over `path` is gone. Its unacknowledged data is given to others.
    pub fn path_down(&mut self, path: PathId) {
        self.release(path, self.paths[path.0].carried());
        let carried: Vec<_> = (self.outstanding.iter())
            .filter(|(_, carriers)| *carriers & 1 << path.0 != 0)
            .map(|(range, carriers)| (range.clone(), carriers ^ 1 << path.0))
            .collect();
        for (range, others) in carried {
            self.outstanding.insert(range, others);
        }
        let path = &mut self.paths[path.0];
        path.state = PathState::Down;
        path.status = None;
        path.given.clear();
        path.unacknowledged = 0;
    }

    /// The latest reading of the connection over `path`, where the data that it no longer holds was delivered.
    pub fn on_status(&mut self, now: Instant, path: PathId, status: PathStatus) {
        let state = &mut self.paths[path.0];
        let delivered = state.unacknowledged.saturating_sub(status.buffered.get());
        state.status = Some(status);
        let moves = delivered > 0 || state.unacknowledged == 0;
        let had_stalled = state.state == PathState::Stalled;
        if moves {
            state.moves(now);
        }
        self.on_delivered(now, path, Bytes::new(delivered));
        if moves && had_stalled {
            self.reclaim(path);
        }
    }

    /// The latest reading of the connection over `path`, which proves no delivery: a kernel
    /// acknowledges data that no program has read, and may lose it. Where the kernel `acknowledged` data since
    /// the reading before, the path moves all the same.
    pub fn on_occupancy(&mut self, now: Instant, path: PathId, status: PathStatus, acknowledged: bool) {
        let moves = acknowledged || status.buffered == Bytes::ZERO;
        // By what was known before: a pause makes the round-trip time vary.
        let pause = if moves { self.pause_before(now, path) } else { None };
        let state = &mut self.paths[path.0];
        state.status = Some(status);
        if moves {
            // Before a retransmission timeout, which each acknowledgement begins anew (RFC 6298 §5.3), a connection has taken nothing for
            // lost: all that it carries is on its way.
            let lost_nothing = now < state.progress_at + state.timeout() && !status.is_recovering;
            let had_stalled = state.state == PathState::Stalled;
            if lost_nothing && let Some(pause) = pause {
                state.pauses.add(now, pause);
            }
            state.moves(now);
            if lost_nothing && had_stalled {
                self.reclaim(path);
            }
        }
    }

    /// The next `delivered` bytes that the connection over `path` was given have reached the receiver. The report of them may have come over
    /// another path, after a cut of this one, and tell of data that arrived before the cut. So it does not show that the path moves.
    pub fn on_delivered(&mut self, now: Instant, path: PathId, delivered: Bytes) {
        let state = &mut self.paths[path.0];
        let mut delivered = delivered.get().min(state.unacknowledged);
        state.unacknowledged -= delivered;
        state.on_report(now, delivered);
        while delivered > 0
            && let Some(oldest) = self.paths[path.0].given.front_mut()
        {
            let range = &mut oldest.range;
            let arrived = range.start..range.end.min(range.start + delivered);
            delivered -= arrived.end - arrived.start;
            range.start = arrived.end;
            if range.is_empty() {
                self.paths[path.0].given.pop_front();
            }
            self.arrived(arrived);
        }
    }

    /// The receiving program has told what it has, by `on_delivered` and `on_feedback`. The news came over `path`, so it is older than news over
    /// the quickest one.
    pub fn on_report(&mut self, now: Instant, path: PathId) {
        let way_back = |path: &Path| path.status?.rtt_min.map(|rtt_min| rtt_min / 2);
        let least = self.paths.iter().filter_map(way_back).min().unwrap_or_default();
        let age = way_back(&self.paths[path.0]).unwrap_or_default().saturating_sub(least);
        // No earlier than the beginning of time.
        self.reported_at = self.reported_at.max(Instant::ZERO + now.saturating_since(Instant::ZERO + age));
        for index in 0..self.paths.len() {
            if self.copy_stalled && self.paths[index].state == PathState::Stalled {
                self.release_lost(PathId(index));
            }
        }
    }

    /// Feedback of the receiving end came; old feedback changes nothing.
    pub fn on_feedback(&mut self, feedback: Feedback) {
        self.feedback.edge = self.feedback.edge.max(feedback.edge);
        if feedback.next > self.feedback.next {
            self.arrived(self.feedback.next..feedback.next);
            self.feedback.next = feedback.next;
            while self.groups.front().is_some_and(|end| *end <= feedback.next) {
                self.groups.pop_front();
            }
        }
    }

    /// The next chunk to write, if any.
    pub fn next(&mut self, now: Instant) -> Option<Chunk> {
        self.notice_stalls(now);
        if let Some(range) = self.first_urgent()
            && let Some(path) =
                self.path_for(now, Bytes::new(range.end - range.start), self.urgency_at(range.start))
        {
            return Some(self.give(now, path, range));
        }
        if let Some((path, range)) = self.second_copy(now) {
            self.copied += Bytes::new(range.end - range.start);
            return Some(self.give(now, path, range));
        }
        self.look(now);
        let first = self.unassigned.first().map_or(self.produced, |first| first.start);
        let first_len = self.unassigned.first().map_or(0, |first| first.end - first.start);
        let state = SendState {
            paths: &self.views,
            chunk: if first_len == 0 { self.chunk } else { self.chunk.min(Bytes::new(first_len)) },
            unassigned: self.unassigned(),
            window: Bytes::new((self.feedback.edge - self.reserve()).saturating_sub(first)),
            buffer: Bytes::new(self.feedback.edge - self.feedback.next),
        };
        let Placement { path, data } = self.scheduler.place(now, &state)?;
        let range = match data {
            Data::Next => self.unassigned_at(0)?,
            Data::Ahead(offset) => self.unassigned_at(offset.get())?,
            Data::Copy => self.first_not_on(path)?,
        };
        Some(self.give(now, path, range))
    }

    /// Whether the data at `place` has not arrived yet, as far as this end knows.
    #[must_use]
    pub fn is_missing(&self, place: u64) -> bool {
        self.outstanding.contains_key(&place) || self.unassigned.contains(&place)
    }

    /// Whether the data at `place` goes before all other and has not arrived.
    #[must_use]
    pub fn is_urgent(&self, place: u64) -> bool {
        self.urgent.contains(&place)
    }

    /// Bytes that the application has produced.
    #[must_use]
    pub fn produced(&self) -> u64 {
        self.produced
    }

    /// Of these, bytes that no path has.
    #[must_use]
    pub fn unassigned(&self) -> Bytes {
        Bytes::new(self.unassigned.iter().map(|range| range.end - range.start).sum())
    }

    /// All before it has arrived.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.feedback.next
    }

    /// First byte that the receiver has no room for.
    #[must_use]
    pub fn edge(&self) -> u64 {
        self.feedback.edge
    }

    /// Whether data is under way over `path` and none of it arrived for a retransmission timeout.
    #[must_use]
    pub fn is_stalled(&self, path: PathId) -> bool {
        self.paths[path.0].state == PathState::Stalled
    }

    /// From now on hands over `chunk` bytes at a time.
    ///
    /// # Panics
    /// With an empty chunk.
    pub fn set_chunk(&mut self, chunk: Bytes) {
        assert!(chunk > Bytes::ZERO, "chunks of something");
        self.chunk = chunk;
    }

    /// The size of a chunk.
    #[must_use]
    pub fn chunk(&self) -> Bytes {
        self.chunk
    }

    /// When to ask again though nothing happened: a path may have stalled by then, or be late with urgent data.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let stalls = self.paths.iter().filter_map(|path| self.stalls_at(path));
        stalls.chain(self.copies_at()).min().filter(|_| self.copy_stalled)
    }

    /// When the connection over `path` had better be given up and made anew, if nothing is acknowledged until
    /// then: it was silent for `patience`, and for two retransmission timeouts. `None` while nothing is under
    /// way, or there is no connection.
    #[must_use]
    pub fn dead_at(&self, path: PathId, patience: Duration) -> Option<Instant> {
        let path = &self.paths[path.0];
        let waits = path.state != PathState::Down && path.unacknowledged > 0;
        waits.then(|| path.progress_at + patience.max(path.timeout() * 2))
    }

    /// All that the application produced has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unassigned.is_empty() && self.outstanding.is_empty()
    }

    /// Tells the inner values that are worth plotting.
    pub fn probe(&self, out: &mut dyn Probe) {
        self.scheduler.probe(out);
    }

    fn notice_stalls(&mut self, now: Instant) {
        if !self.copy_stalled {
            return;
        }
        self.notice_standstill(now);
        for index in 0..self.paths.len() {
            if self.stalls_at(&self.paths[index]).is_some_and(|at| at <= now) {
                self.paths[index].state = PathState::Stalled;
                self.paths[index].stalled_at = now;
                self.release_lost(PathId(index));
            }
        }
    }

    /// When a path will have stalled, if nothing is acknowledged until then.
    fn stalls_at(&self, path: &Path) -> Option<Instant> {
        if !path.carries() {
            return None;
        }
        match (self.suspicion, path.status.and_then(|status| status.rtt)) {
            (Suspicion::Late, Some(rtt)) => {
                let slack = path.slack(rtt).max(path.pauses.longest(path.progress_at));
                let late_at = path.late_by(rtt, slack);
                Some((self.excused_until + slack).clamp(late_at, late_at + slack))
            }
            _ => Some(path.progress_at + path.timeout()),
        }
    }

    /// Where this program looks long after a path was to be suspected, it stood still itself, and others perhaps too.
    fn notice_standstill(&mut self, now: Instant) {
        if self.suspicion != Suspicion::Late {
            return;
        }
        let due = self.paths.iter().filter_map(|path| self.stalls_at(path)).min();
        if due.is_some_and(|due| now.saturating_since(due) > LATE_LOOK) {
            self.excused_until = now;
        }
    }

    /// The pause of `path` that an acknowledgement ends now, unless this program stood still meanwhile.
    fn pause_before(&mut self, now: Instant, path: PathId) -> Option<Duration> {
        self.notice_standstill(now);
        let path = &self.paths[path.0];
        path.pause(now).filter(|_| self.excused_until <= path.progress_at)
    }

    /// Brings the schedulers' view of the paths up to date.
    fn look(&mut self, now: Instant) {
        self.views.clear();
        let first = self.outstanding.first_range_value().map_or(0, |(_, carriers)| *carriers);
        for (index, path) in self.paths.iter().enumerate() {
            let bit = 1 << index;
            let can_copy = self.outstanding.iter().any(|(_, carriers)| carriers & bit == 0);
            let view = path.view(now, can_copy, first & bit != 0);
            let silent = if self.suspicion == Suspicion::Late { path.silent(now) } else { view.silent };
            self.views.push(PathView { silent, ..view });
        }
    }

    /// Where a chunk ends that begins with `range`: as many whole groups as a chunk takes, and one at least.
    fn cut(&self, range: Range<u64>) -> u64 {
        let most = range.end.min(range.start + self.chunk.get());
        let group = self.groups.partition_point(|end| *end <= most);
        match group.checked_sub(1).map(|last| self.groups[last]) {
            Some(end) if end > range.start => end,
            _ => match self.groups.get(group) {
                Some(end) => range.end.min(*end),
                // Data that need not stay together.
                None => most,
            },
        }
    }

    /// `path` and the data from `start` on, up to a chunk of it, are bound to each other.
    fn give(&mut self, now: Instant, path: PathId, range: Range<u64>) -> Chunk {
        let len = Bytes::new(range.end - range.start);
        self.unassigned.remove(range.clone());
        let others: Vec<_> =
            self.outstanding.overlapping(range.clone()).map(|(_, carriers)| *carriers).collect();
        let carriers = others.into_iter().fold(1 << path.0, |all, carriers| all | carriers);
        self.outstanding.insert(range.clone(), carriers);
        let start = range.start;
        let state = &mut self.paths[path.0];
        state.unacknowledged += len.get();
        state.given.push_back(Given { range, at: now });
        if let Some(status) = &mut state.status {
            status.buffered += len;
            status.unsent += len;
        }
        Chunk { path, start, len }
    }

    /// Up to a chunk of data that no path has, `offset` of its bytes behind the first, where it fits the
    /// receiver's buffer.
    fn unassigned_at(&self, mut offset: u64) -> Option<Range<u64>> {
        for range in self.unassigned.iter() {
            let len = range.end - range.start;
            if offset < len {
                let start = self.start_of_group(range.start + offset).max(range.start);
                let end = self.cut(start..range.end);
                return (end <= self.feedback.edge).then_some(start..end);
            }
            offset -= len;
        }
        None
    }

    /// The first byte of the group that `place` lies in.
    fn start_of_group(&self, place: u64) -> u64 {
        let group = self.groups.partition_point(|end| *end <= place);
        match group.checked_sub(1) {
            _ if group == self.groups.len() => place,
            Some(before) => self.groups[before],
            None => self.feedback.next,
        }
    }

    fn first_not_on(&self, path: PathId) -> Option<Range<u64>> {
        let bit = 1 << path.0;
        let (range, _) = self.outstanding.iter().find(|(_, carriers)| *carriers & bit == 0)?;
        Some(range.start..self.cut(range.clone()))
    }

    /// Gives back what a stalled `path` has lost, as far as can be told.
    fn release_lost(&mut self, path: PathId) {
        let state = &self.paths[path.0];
        let lost = match self.suspicion {
            Suspicion::Timeout => state.carried(),
            Suspicion::Late => state.lost(self.reported_at).map(|given| given.range.clone()).collect(),
        };
        self.release(path, lost);
    }

    /// Gives back the `lost` data that only `path` and other hopeless paths carry, for others to take.
    fn release(&mut self, path: PathId, lost: Vec<Range<u64>>) {
        let hopeful: u64 = (0..self.paths.len())
            .filter(|index| *index != path.0 && self.paths[*index].state == PathState::Up)
            .map(|index| 1 << index)
            .sum();
        for given in lost {
            let alone: Vec<_> = (self.outstanding.overlapping(given.clone()))
                .filter(|(_, carriers)| *carriers & hopeful == 0)
                .map(|(range, _)| within(range, &given))
                .collect();
            for range in alone {
                self.outstanding.remove(range.clone());
                self.unassigned.insert(range);
            }
        }
    }

    /// The data that `path` still carries is under way after all, and need not be given to others if it is not yet, nor to this path a second
    /// time. What is urgent stays on offer: a copy of it costs little.
    fn reclaim(&mut self, path: PathId) {
        let bit = 1 << path.0;
        for Given { range: given, .. } in &self.paths[path.0].given {
            let shared: Vec<_> = (self.outstanding.overlapping(given.clone()))
                .map(|(range, carriers)| (within(range, given), carriers | bit))
                .collect();
            let lent: Vec<_> = (self.unassigned.overlapping(given.clone()))
                .map(|range| within(range, given))
                .filter(|range| !self.urgent.overlaps(range))
                .collect();
            for (range, carriers) in shared {
                self.outstanding.insert(range, carriers);
            }
            for range in lent {
                self.unassigned.remove(range.clone());
                self.outstanding.insert(range, bit);
            }
        }
    }

    /// `range` has reached the receiver.
    fn arrived(&mut self, range: Range<u64>) {
        self.unassigned.remove(range.clone());
        self.urgent.remove(range.clone());
        self.twice.remove(range.clone());
        self.outstanding.remove(range);
    }
}

impl Path {
    /// The receiver has `delivered` bytes more, the oldest of what it was given.
    fn on_report(&mut self, now: Instant, delivered: u64) {
        // What a path had when it stalled tells how long it stood still (RFC 6298 §3).
        let is_sample = |oldest: &&Given| delivered > 0 && oldest.at >= self.stalled_at;
        let Some(oldest) = self.given.front().filter(is_sample) else { return };
        let sample = now.saturating_since(oldest.at);
        // RFC 6298 §2.2 and §2.3.
        self.reports = Some(match self.reports {
            None => Rtt { srtt: sample, rttvar: sample / 2 },
            Some(Rtt { srtt, rttvar }) => {
                let deviation = srtt.saturating_sub(sample).max(sample.saturating_sub(srtt));
                Rtt { srtt: (srtt * 7 + sample) / 8, rttvar: (rttvar * 3 + deviation) / 4 }
            }
        });
    }

    /// All that it carries, as far as is known.
    fn carried(&self) -> Vec<Range<u64>> {
        self.given.iter().map(|given| given.range.clone()).collect()
    }

    /// What of that is lost, where the path is late.
    fn lost(&self, reported_at: Instant) -> impl Iterator<Item = &Given> {
        let mut behind = self.unacknowledged;
        self.given.iter().filter(move |given| {
            behind -= given.range.end - given.range.start;
            self.has_lost(given, behind, reported_at)
        })
    }

    /// Whether what was `given` to a path that is late has not arrived, with `behind` bytes given after it. A cut takes the last acknowledgements
    /// and reports with it, so much that is missing here has arrived there, and a copy of it would hold up what has not. What was on its way to
    /// the receiver when the last acknowledgement came is lost, and what is missing in a report that should have it. Two estimates tell what
    /// was on its way: when it was given, and the bytes given since, of which the path carries some in half of its least round-trip
    /// time while the acknowledgement comes. Where they differ, it is lost: a needless copy takes a little of another path's time, and
    /// a missing one a round trip.
    fn has_lost(&self, given: &Given, behind: u64, reported_at: Instant) -> bool {
        let known = self.status.and_then(|status| Some((status, status.rtt?, status.rtt_min?)));
        let (Some((status, rtt, rtt_min)), Some(reports)) = (known, self.reports) else {
            return true;
        };
        // A queue lies on the way there.
        let one_way = rtt.srtt.saturating_sub(rtt_min / 2);
        let on_the_way_back = status.delivery_rate.map(|rate| rate.amount_in(rtt_min / 2));
        given.at + one_way + rtt.rttvar * 4 >= self.progress_at
            || on_the_way_back.is_some_and(|bytes| {
                behind + bytes.get() < status.buffered.get() + (status.mss * ACKED_SEGMENTS).get()
            })
            || given.at + reports.srtt + urgent::slack(reports) <= reported_at
    }

    /// Something was acknowledged, or there is nothing to acknowledge.
    fn moves(&mut self, now: Instant) {
        self.progress_at = now;
        if self.state == PathState::Stalled {
            self.state = PathState::Up;
        }
    }

    /// The time without an acknowledgement, where that is longer than it ought to be. Where something was late before, as after a cut, it is
    /// being sent again, which takes a round trip.
    fn pause(&self, now: Instant) -> Option<Duration> {
        let rtt = self.status.and_then(|status| status.rtt)?;
        let slack = self.slack(rtt);
        let was_late = self.given.front()?.at + rtt.srtt + slack < self.progress_at;
        let is_late = self.unacknowledged > 0 && self.late_by(rtt, slack) <= now;
        (is_late && !was_late).then(|| now.saturating_since(self.progress_at))
    }

    /// How late an acknowledgement may be, where the path never pauses.
    fn slack(&self, rtt: Rtt) -> Duration {
        (rtt.rttvar * 4).max(if self.is_busy() { LATE } else { LATE_ALONE })
    }

    /// Established, with something under way and no stall.
    fn carries(&self) -> bool {
        self.state == PathState::Up && self.unacknowledged > 0
    }

    /// When what it carries is late by `slack`, if nothing is acknowledged until then.
    fn late_by(&self, rtt: Rtt, slack: Duration) -> Instant {
        let oldest = self.given.front().map_or(self.progress_at, |given| given.at);
        (self.progress_at + slack).max(oldest + rtt.srtt + slack)
    }

    /// The time without an acknowledgement while data is under way. Bytes that are no data, such as reports, may have been under way
    /// before it, and their acknowledgement be delayed.
    fn silent(&self, now: Instant) -> Duration {
        let oldest = self.given.front().map_or(now, |given| given.at);
        now.saturating_since(self.progress_at.max(oldest))
    }

    /// So much is under way that the receiver does not delay its acknowledgement.
    fn is_busy(&self) -> bool {
        self.status.is_some_and(|status| self.unacknowledged > 4 * status.mss.get())
    }

    /// Established, and neither stalled nor unknown. A connection that has a stall behind it sends first what was lost, from a window of
    /// one segment on, which takes several round trips and may have gone over other paths since.
    fn is_usable(&self) -> bool {
        self.state == PathState::Up && self.status.is_some_and(|status| !status.is_recovering)
    }

    /// The retransmission timeout before any back-off.
    fn timeout(&self) -> Duration {
        let rtt = self.status.and_then(|status| status.rtt);
        // RFC 6298 §2, with Linux's bounds.
        rtt.map_or(RTO_INITIAL, |rtt| (rtt.srtt + rtt.rttvar * 4).max(RTO_MIN))
    }

    fn view(&self, now: Instant, can_copy: bool, holds_first: bool) -> PathView {
        PathView {
            usable: self.is_usable(),
            silent: now.saturating_since(self.progress_at),
            can_copy,
            holds_first,
            status: self.status.unwrap_or_default(),
        }
    }
}

/// The part of `range` within `bounds`.
fn within(range: &Range<u64>, bounds: &Range<u64>) -> Range<u64> {
    range.start.max(bounds.start)..range.end.min(bounds.end)
}

/// Paths are bits of a word.
const MAX_PATHS: usize = 64;
/// RFC 6298 §2.1.
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Linux's `TCP_RTO_MIN`.
const RTO_MIN: Duration = Duration::from_millis(200);
/// Two turns of the programs at both ends on busy machines.
pub const LATE: Duration = Duration::from_millis(25);
/// Programs look again within a timer's tick and a turn of the processor.
const LATE_LOOK: Duration = Duration::from_millis(5);
/// Linux delays an acknowledgement by 40 ms (`TCP_DELACK_MIN`).
pub const LATE_ALONE: Duration = Duration::from_millis(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::AggregateReceiver;
    use proptest::prelude::*;
    use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
    use suimon_units::Rate;

    const CHUNK: Bytes = Bytes::new(1_000);

    fn scheduler(name: &str) -> Box<dyn PathScheduler> {
        AlgorithmSpec::parse(Role::Path, name).unwrap().build_path()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn status(buffered: u64, srtt_ms: u64) -> PathStatus {
        PathStatus {
            buffered: Bytes::new(buffered),
            unsent: Bytes::ZERO,
            send_buffer: Bytes::new(16_384),
            cwnd: Bytes::new(10_000),
            mss: CHUNK,
            rtt: Some(Rtt { srtt: Duration::from_millis(srtt_ms), rttvar: Duration::ZERO }),
            rtt_min: Some(Duration::from_millis(srtt_ms)),
            delivery_rate: None,
            is_recovering: false,
        }
    }

    /// Two paths that are up, 100 kB of data, room for all of it at the receiver.
    fn sender(name: &str) -> AggregateSender {
        let mut sender = AggregateSender::new(scheduler(name), 2, CHUNK, true);
        sender.produce(100_000);
        sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
        for path in [PathId(0), PathId(1)] {
            sender.path_up(at(0), path);
            sender.on_status(at(0), path, status(0, 50));
        }
        sender
    }

    fn starts_on(sender: &mut AggregateSender, now: Instant, path: usize) -> Vec<u64> {
        let chunks = std::iter::from_fn(|| sender.next(now)).filter(|chunk| chunk.path.0 == path);
        chunks.map(|chunk| chunk.start).collect()
    }

    #[test]
    fn data_goes_out_in_order_over_both_paths_until_their_buffers_are_full() {
        let mut sender = sender("least-buffered");
        let chunks: Vec<_> = std::iter::from_fn(|| sender.next(at(0))).collect();
        assert_eq!(chunks.len(), 32, "16 of 1000 bytes fit each buffer");
        assert!(chunks.iter().map(|chunk| chunk.start).eq((0..32).map(|i| i * 1_000)));
        assert!(chunks.iter().enumerate().all(|(i, chunk)| chunk.path.0 == i % 2));
    }

    #[test]
    fn the_edge_of_the_receivers_buffer_is_never_crossed() {
        let mut sender = AggregateSender::new(scheduler("least-buffered"), 1, CHUNK, true);
        sender.produce(100_000);
        sender.path_up(at(0), PathId(0));
        sender.on_status(at(0), PathId(0), status(0, 50));
        assert_eq!(sender.next(at(0)), None, "nothing is known of the receiver");
        sender.on_feedback(Feedback { next: 0, edge: 2_500 });
        assert_eq!(starts_on(&mut sender, at(0), 0), [0, 1_000]);
        sender.on_feedback(Feedback { next: 1_000, edge: 3_500 });
        assert_eq!(starts_on(&mut sender, at(0), 0), [2_000]);
    }

    #[test]
    fn what_a_lost_connection_had_not_acknowledged_goes_over_the_other() {
        let mut sender = sender("round-robin");
        while sender.next(at(0)).is_some() {}
        // Path 1 carried 1000, 3000, ... 31000; the first five arrived.
        sender.on_status(at(10), PathId(1), status(11_000, 50));
        sender.path_down(PathId(1));
        sender.on_status(at(10), PathId(0), status(0, 50));
        let resent = starts_on(&mut sender, at(10), 0);
        assert_eq!(resent[..11], (5..16).map(|i| 2_000 * i + 1_000).collect::<Vec<_>>());
        assert_eq!(resent[11], 32_000, "then new data");
    }

    #[test]
    fn a_path_without_progress_for_a_timeout_lends_its_data_once_and_is_used_again_when_it_moves() {
        let mut sender = sender("least-buffered");
        while sender.next(at(0)).is_some() {}
        // Path 0 moves on at 100 ms, path 1 is silent.
        sender.on_status(at(100), PathId(0), status(0, 50));
        while sender.next(at(100)).is_some() {}
        assert_eq!(sender.next_wakeup(), Some(at(200)), "RTO_MIN after the last progress of path 1");
        sender.on_status(at(199), PathId(0), status(0, 50));
        assert_eq!(sender.next(at(199)).map(|chunk| chunk.start), Some(48_000), "not yet");
        let lent = starts_on(&mut sender, at(200), 0);
        assert_eq!(lent[..3], [1_000, 3_000, 5_000]);
        sender.on_status(at(210), PathId(0), status(0, 50));
        while let Some(chunk) = sender.next(at(210)) {
            assert_eq!(chunk.path, PathId(0), "nothing goes over a stalled path");
        }
        sender.on_status(at(220), PathId(1), status(15_000, 50));
        assert_eq!(sender.next(at(220)).map(|chunk| chunk.path), Some(PathId(1)));
    }

    #[test]
    fn a_path_that_moves_again_takes_back_what_no_other_has() {
        let mut sender = sender("least-buffered");
        while sender.next(at(0)).is_some() {}
        sender.on_status(at(200), PathId(0), status(14_000, 50));
        assert_eq!(starts_on(&mut sender, at(200), 0), [1_000, 3_000], "two fit, path 1 is silent");
        sender.on_status(at(210), PathId(1), status(15_000, 50));
        sender.on_status(at(210), PathId(0), status(0, 50));
        let resent = starts_on(&mut sender, at(210), 0);
        assert_eq!(resent[..2], [32_000, 33_000], "path 1 has the rest of the lent data itself");
    }

    /// Its kernel or stack still sends all of it, unless it has taken it for lost.
    #[test]
    fn a_path_that_moves_again_soon_is_not_given_its_own_data_a_second_time() {
        for (moves_at, is_recovering, urgency, takes_back) in [
            (150, false, Urgency::None, true),
            (208, false, Urgency::None, true),
            (209, false, Urgency::None, false),
            (150, true, Urgency::None, false),
            (150, false, Urgency::First, false),
        ] {
            let mut sender = AggregateSender::new(scheduler("lowest-rtt"), 2, CHUNK, true);
            sender.set_suspicion(Suspicion::Late);
            sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
            sender.path_up(at(0), PathId(0));
            // The last acknowledgement comes at 9 ms, and the retransmission timeout is 200 ms.
            for ms in 0..10 {
                sender.on_occupancy(at(ms), PathId(0), status(1, 20), true);
                sender.produce_group((ms + 1) * 1_000, urgency);
                assert!(sender.next(at(ms)).is_some());
            }
            assert_eq!(sender.next(at(140)), None, "there is no other path");
            assert!(sender.is_stalled(PathId(0)) && sender.unassigned() > Bytes::ZERO);
            let status = PathStatus { is_recovering, ..status(1, 20) };
            sender.on_occupancy(at(moves_at), PathId(0), status, true);
            assert_eq!(
                sender.unassigned() == Bytes::ZERO,
                takes_back,
                "{moves_at} ms, {is_recovering}, {urgency:?}"
            );
        }
    }

    fn with_one_path() -> AggregateSender {
        let mut sender = AggregateSender::new(scheduler("lowest-rtt"), 1, CHUNK, true);
        sender.set_suspicion(Suspicion::Late);
        sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
        sender.path_up(at(1), PathId(0));
        sender
    }

    /// A chunk goes out with an acknowledgement, and the next one comes after a silence. Whether the path was taken to have stalled, where
    /// this program looks each millisecond.
    fn stalls_in_silence(
        sender: &mut AggregateSender,
        from: u64,
        ms: u64,
        looks: bool,
        after: PathStatus,
    ) -> bool {
        sender.on_occupancy(at(from), PathId(0), status(1, 20), true);
        sender.produce(sender.produced() + 1_000);
        assert!(sender.next(at(from)).is_some());
        for ms in (0..ms).filter(|_| looks) {
            let _ = sender.next(at(from + ms));
        }
        let stalls = sender.is_stalled(PathId(0));
        sender.on_occupancy(at(from + ms), PathId(0), after, true);
        sender.on_delivered(at(from + ms), PathId(0), CHUNK);
        stalls
    }

    #[test]
    fn a_path_that_paused_and_lost_nothing_may_pause_for_as_long_again_for_some_seconds() {
        for (is_recovering, after_ms, stalls_early) in
            [(false, 1_000, false), (true, 1_000, true), (false, 11_000, true)]
        {
            let mut sender = with_one_path();
            let mut stalls = |from, ms| {
                let after = PathStatus { is_recovering, ..status(1, 20) };
                stalls_in_silence(&mut sender, from, ms, true, after)
            };
            assert!(stalls(1, 100));
            assert_eq!(stalls(101 + after_ms, 100), stalls_early, "{is_recovering}, {after_ms} ms");
            assert!(stalls(301 + after_ms, 130), "20 ms are the path's length");
        }
    }

    #[test]
    fn a_silence_that_varies_round_trips_or_was_allowed_is_a_pause_and_one_of_this_program_is_none() {
        let pauses = |sender: &AggregateSender, ms| {
            let pauses = &sender.paths[0].pauses;
            (pauses.longest(at(ms)), pauses.longest_of_many(at(ms)))
        };
        let varies = Some(Rtt { srtt: Duration::from_millis(40), rttvar: Duration::from_millis(40) });
        let after = PathStatus { rtt: varies, ..status(1, 20) };
        let (none, longest) = (Duration::ZERO, Duration::from_millis(100));
        let mut sender = with_one_path();
        stalls_in_silence(&mut sender, 1, 100, false, after);
        assert_eq!(pauses(&sender, 101), (none, none), "nobody looked");
        assert!(stalls_in_silence(&mut sender, 1_000, 100, true, after));
        for (from, of_many) in [(2_000, none), (3_000, none), (4_000, none), (5_000, longest)] {
            assert!(!stalls_in_silence(&mut sender, from, 90, true, after));
            assert_eq!(pauses(&sender, from + 90), (longest, of_many));
        }
        assert_eq!(pauses(&sender, 11_100), (Duration::from_millis(90), none), "the first is long ago");
    }

    #[test]
    fn a_round_trip_in_which_what_a_cut_took_is_sent_again_is_no_pause() {
        let mut sender = with_one_path();
        sender.on_occupancy(at(1), PathId(0), status(1, 20), true);
        sender.produce(1_000);
        for silence in [1..1_500, 1_500..1_590] {
            let end = silence.end;
            for ms in silence {
                let _ = sender.next(at(ms));
            }
            sender.on_occupancy(at(end), PathId(0), status(1, 20), true);
        }
        assert_eq!(sender.paths[0].pauses.longest(at(1_590)), Duration::ZERO);
    }

    #[test]
    fn a_connection_is_dead_after_the_patience_and_two_timeouts() {
        let mut sender = sender("least-buffered");
        let dead_at = |sender: &AggregateSender, ms| {
            sender.dead_at(PathId(0), Duration::from_millis(ms)).map(|at| at.saturating_since(Instant::ZERO))
        };
        assert_eq!(dead_at(&sender, 3_000), None, "nothing is under way");
        while sender.next(at(0)).is_some() {}
        sender.on_status(at(100), PathId(0), status(15_000, 50));
        assert_eq!(dead_at(&sender, 3_000), Some(Duration::from_millis(3_100)));
        assert_eq!(dead_at(&sender, 10), Some(Duration::from_millis(500)), "two timeouts of 200 ms");
        let _ = starts_on(&mut sender, at(400), 0);
        assert_eq!(dead_at(&sender, 10), Some(Duration::from_millis(500)), "stalled, and waiting still");
        sender.path_down(PathId(0));
        assert_eq!(dead_at(&sender, 10), None);
    }

    #[test]
    fn without_copying_a_silent_path_keeps_its_data() {
        let mut sender = sender("least-buffered");
        sender.copy_stalled = false;
        while sender.next(at(0)).is_some() {}
        assert_eq!(sender.next_wakeup(), None);
        sender.on_status(at(60_000), PathId(0), status(0, 50));
        assert_eq!(sender.next(at(60_000)).map(|chunk| chunk.start), Some(32_000));
    }

    #[test]
    fn what_a_kernel_acknowledged_and_nobody_read_is_not_lost_with_the_connection() {
        let mut sender = sender("round-robin");
        while sender.next(at(0)).is_some() {}
        // The kernel at the other end has all of path 1's; the program there has read the first two chunks.
        sender.on_occupancy(at(5), PathId(1), status(0, 50), true);
        sender.on_delivered(at(10), PathId(1), Bytes::new(2_000));
        sender.path_down(PathId(1));
        sender.on_status(at(10), PathId(0), status(0, 50));
        assert_eq!(starts_on(&mut sender, at(10), 0)[..3], [5_000, 7_000, 9_000]);
    }

    /// Two paths of 20 and 50 ms, 10 kB under way over both, and 500 bytes that are urgent.
    fn urgent(urgency: Urgency) -> AggregateSender {
        let mut sender = AggregateSender::new(scheduler("lowest-rtt"), 2, CHUNK, true);
        sender.set_suspicion(Suspicion::Late);
        sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
        for (path, rtt) in [(PathId(0), 20), (PathId(1), 50)] {
            sender.path_up(at(0), path);
            sender.on_occupancy(at(0), path, status(0, rtt), true);
        }
        for start in (0..10_000).step_by(1_000) {
            sender.produce_group(start + 1_000, Urgency::None);
            assert_eq!(sender.next(at(0)).map(|chunk| (chunk.path, chunk.start)), Some((PathId(0), start)));
            sender.on_occupancy(at(0), PathId(0), status(start + 1_000, 20), true);
        }
        sender.produce_group(10_500, urgency);
        let first = sender.next(at(0)).unwrap();
        assert_eq!((first.path, first.start, first.len.get()), (PathId(0), 10_000, 500));
        sender
    }

    #[test]
    fn what_is_wanted_twice_goes_over_the_second_best_path_too_and_once() {
        let mut sender = urgent(Urgency::Twice);
        let copy = sender.next(at(0)).unwrap();
        assert_eq!((copy.path, copy.start, copy.len.get()), (PathId(1), 10_000, 500));
        assert_eq!((sender.next(at(0)), sender.copied().get()), (None, 500));
    }

    #[test]
    fn what_is_wanted_twice_waits_for_no_path_that_has_something_unsent() {
        for (urgency, path) in [(Urgency::First, None), (Urgency::Twice, Some(PathId(1)))] {
            let mut sender = urgent(urgency);
            let asked = |sender: &AggregateSender| sender.path_for(at(1), Bytes::new(500), urgency);
            let unsent = PathStatus { unsent: CHUNK, ..status(10_500, 20) };
            sender.on_occupancy(at(1), PathId(0), unsent, true);
            assert_eq!(asked(&sender), path, "{urgency:?}");
            sender.on_occupancy(at(1), PathId(0), status(9_000, 20), true);
            assert_eq!(
                asked(&sender),
                Some(PathId(0)),
                "{urgency:?}: the best one, once it has sent what it has"
            );
        }
    }

    #[test]
    fn a_copy_beats_a_retransmission_where_the_second_path_is_less_than_a_round_trip_longer() {
        for (second_rtt, beaten) in [(50, Some(PathId(0))), (59, Some(PathId(0))), (60, None), (200, None)] {
            let mut sender = sender("lowest-rtt");
            for (path, rtt) in [(PathId(0), 20), (PathId(1), second_rtt)] {
                sender.on_occupancy(at(0), path, status(0, rtt), true);
            }
            assert_eq!(sender.beaten_by_a_copy(at(0), Bytes::new(100)), beaten, "{second_rtt} ms");
        }
        let mut alone = sender("lowest-rtt");
        alone.path_down(PathId(1));
        assert_eq!(alone.beaten_by_a_copy(at(0), CHUNK), None);
    }

    #[test]
    fn urgent_and_missing_data_goes_over_a_second_path_once_late_and_the_rest_as_far_as_there_is_room() {
        let mut sender = urgent(Urgency::First);
        assert_eq!(sender.next(at(29)), None);
        assert_eq!(sender.next_wakeup(), Some(at(30)), "a round trip and twice the time of a report");
        let copy = sender.next(at(30)).unwrap();
        assert_eq!((copy.path, copy.start, copy.len.get()), (PathId(1), 10_000, 500));
        sender.on_occupancy(at(31), PathId(1), status(500, 50), false);
        let first = sender.next(at(31)).unwrap();
        assert_eq!(
            (first.path, first.start, first.len.get()),
            (PathId(1), 0, 1_000),
            "the receiver lacks it"
        );
        let with = |buffered: u64| PathStatus { send_buffer: Bytes::new(2_500), ..status(buffered, 50) };
        sender.on_occupancy(at(31), PathId(1), with(1_501), false);
        assert_eq!(
            sender.next(at(31)),
            None,
            "one copy of the first is enough, and there is no room for more"
        );
        sender.on_occupancy(at(31), PathId(1), with(1_500), false);
        let rest = sender.next(at(31)).unwrap();
        assert_eq!((rest.path, rest.start, rest.len.get()), (PathId(1), 1_000, 1_000));
        assert_eq!(sender.copied().get(), 2_500);
    }

    #[test]
    fn a_path_that_pauses_is_late_at_once_with_urgent_data_and_after_its_pause_with_what_can_wait() {
        for (pauses, late_at, rest_at) in [(0, 31, 31), (1, 31, 120), (4, 31, 120), (5, 120, 120)] {
            let mut sender = urgent(Urgency::First);
            (0..pauses).for_each(|_| sender.paths[0].pauses.add(at(0), Duration::from_millis(100)));
            let copy = sender.next(at(30)).unwrap();
            assert_eq!((copy.path, copy.start), (PathId(1), 10_000));
            let mut came = Vec::new();
            // Twice a millisecond, as one copy has to be sent before the second path gets another.
            for ms in (31..200).flat_map(|ms| [ms, ms]) {
                sender.on_occupancy(at(ms), PathId(1), status(500, 50), true);
                came.extend(sender.next(at(ms)).map(|chunk| (ms, chunk.path, chunk.start)));
            }
            let expected = [(late_at, PathId(1), 0), (rest_at, PathId(1), 1_000)];
            assert_eq!(came[..2], expected, "{pauses} pauses");
        }
    }

    #[test]
    fn a_long_path_is_late_once_a_report_over_a_quick_one_is() {
        let mut sender = AggregateSender::new(scheduler("lowest-rtt"), 2, CHUNK, true);
        sender.set_suspicion(Suspicion::Late);
        sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
        for path in [PathId(0), PathId(1)] {
            sender.path_up(at(0), path);
        }
        // Data takes 50 ms over path 1, as does its acknowledgement, and a report over path 0 takes 10 ms.
        let (full, rounds) = (16_384, 20);
        for round in 0..=rounds {
            let began = round * 200;
            sender.on_occupancy(at(began), PathId(0), status(full, 20), true);
            sender.on_occupancy(at(began), PathId(1), status(0, 100), true);
            sender.produce((round + 1) * 1_000);
            assert_eq!(sender.next(at(began)).map(|chunk| chunk.path), Some(PathId(1)));
            if round < rounds {
                sender.on_delivered(at(began + 60), PathId(1), CHUNK);
            }
        }
        let began = rounds * 200;
        sender.on_occupancy(at(began), PathId(0), status(0, 20), true);
        assert_eq!(sender.next_wakeup(), Some(at(began + 70)), "twice the time of a report later");
        assert_eq!(sender.next(at(began + 69)), None);
        let copy = sender.next(at(began + 70)).unwrap();
        assert_eq!((copy.path, copy.start), (PathId(0), rounds * 1_000));
        // A cut of seconds tells nothing of that time.
        sender.on_delivered(at(began + 100), PathId(0), CHUNK);
        sender.next(at(began + 160));
        assert!(sender.is_stalled(PathId(1)));
        let again = began + 5_000;
        sender.on_delivered(at(again), PathId(1), CHUNK);
        sender.on_occupancy(at(again), PathId(0), status(full, 20), true);
        sender.on_occupancy(at(again), PathId(1), status(0, 100), true);
        sender.produce((rounds + 2) * 1_000);
        assert_eq!(sender.next(at(again)).map(|chunk| chunk.path), Some(PathId(1)));
        assert_eq!(sender.next_wakeup(), Some(at(again + 70)));
    }

    /// A path of 20 ms is given a chunk each millisecond. It is cut both ways at 100 ms, so what was given since 90 ms is lost, and
    /// acknowledgements and reports of what was given since 80 ms as well.
    #[test]
    fn what_arrived_before_a_cut_is_sent_again_only_if_a_later_report_lacks_it() {
        let (steady, varies) = (Duration::ZERO, Duration::from_millis(2));
        let chunk_per_ms = Some(Rate::of(CHUNK, Duration::from_millis(1)));
        // Of 20 ms there and back, 10 or 16 are on the way there: a queue lies on that. Where they vary, what had been given by
        // 81 ms may be lost. By the bytes it is what was given since 88 ms: ten chunks were on the way back, and an acknowledgement is for two.
        let cases = [
            (20, steady, None, 89),
            (8, steady, None, 83),
            (20, varies, None, 81),
            (20, steady, chunk_per_ms, 88),
        ];
        for (rtt_min_ms, rttvar, delivery_rate, first_lost) in cases {
            let mut sender = AggregateSender::new(scheduler("lowest-rtt"), 2, CHUNK, true);
            sender.set_suspicion(Suspicion::Late);
            sender.on_feedback(Feedback { next: 0, edge: 1_000_000 });
            for path in [PathId(0), PathId(1)] {
                sender.path_up(at(0), path);
            }
            for ms in 0..100 {
                if ms >= 20 {
                    sender.on_delivered(at(ms), PathId(0), CHUNK);
                    sender.on_feedback(Feedback { next: (ms - 19) * 1_000, edge: 1_000_000 });
                    sender.on_report(at(ms), PathId(0));
                }
                let rtt_min = Some(Duration::from_millis(rtt_min_ms));
                let rtt = Some(Rtt { srtt: Duration::from_millis(20), rttvar });
                let under_way = status(ms.min(19) * 1_000, 20);
                let quick = PathStatus { rtt, rtt_min, delivery_rate, send_buffer: CHUNK * 20, ..under_way };
                sender.on_occupancy(at(ms), PathId(0), quick, true);
                sender.on_occupancy(at(ms), PathId(1), status(0, 80), true);
                sender.produce((ms + 1) * 1_000);
                assert_eq!(sender.next(at(ms)).map(|chunk| chunk.path), Some(PathId(0)));
            }
            let copies = |sender: &mut AggregateSender, ms: u64| -> Vec<u64> {
                let mut sent = || {
                    sender.on_occupancy(at(ms), PathId(1), status(0, 80), true);
                    sender.next(at(ms))
                };
                std::iter::from_fn(&mut sent).map(|chunk| chunk.start).collect()
            };
            assert_eq!(copies(&mut sender, 108), [], "it is not late yet");
            let lost: Vec<_> = (first_lost..100).map(|chunk| chunk * 1_000).collect();
            assert_eq!(copies(&mut sender, 112), lost);
            // The other end wrote it 40 ms ago, when it had nothing of what seems to be missing.
            sender.on_report(at(125), PathId(1));
            assert_eq!(copies(&mut sender, 126), [], "nothing more once the path has stalled");
            assert!(sender.is_stalled(PathId(0)));
            // A report over the other path tells of five more chunks, which arrived before the cut, and lacks others that it should have.
            sender.on_delivered(at(160), PathId(0), Bytes::new(5_000));
            sender.on_feedback(Feedback { next: 85_000, edge: 1_000_000 });
            sender.on_report(at(160), PathId(1));
            assert!(sender.is_stalled(PathId(0)), "it does not move by this");
            let missing: Vec<_> = (85..first_lost.max(85)).map(|chunk| chunk * 1_000).collect();
            assert_eq!(copies(&mut sender, 160), missing);
        }
    }

    #[test]
    fn where_this_program_looks_late_a_path_has_as_long_again_and_no_longer() {
        for (looks, lent_at) in [(&[74][..], 80), (&[74, 81, 99], 100), (&[74, 90, 98], 106)] {
            let mut sender = sender("least-buffered");
            sender.set_suspicion(Suspicion::Late);
            while sender.next(at(0)).is_some() {}
            // Path 1 is silent since 0 ms, path 0 moves, and both have 50 ms.
            let stalls = |sender: &mut AggregateSender, ms: u64| {
                sender.on_occupancy(at(ms), PathId(0), status(0, 50), true);
                sender.next(at(ms));
                sender.is_stalled(PathId(1))
            };
            for ms in looks {
                assert!(!stalls(&mut sender, *ms), "{looks:?}: not at {ms} ms");
            }
            assert!(stalls(&mut sender, lent_at), "{looks:?}: at {lent_at} ms");
        }
    }

    #[test]
    fn redundant_paths_both_carry_everything() {
        let mut sender = sender("redundant");
        let mut by_path = [vec![], vec![]];
        for round in 0..10 {
            while let Some(chunk) = sender.next(at(round)) {
                by_path[chunk.path.0].push(chunk.start);
            }
            // All of it is on the wire, nothing is acknowledged.
            let in_flight = by_path.each_ref().map(|starts| starts.len() as u64 * 1_000);
            sender.on_status(at(round), PathId(0), status(in_flight[0], 50));
            sender.on_status(at(round), PathId(1), status(in_flight[1], 50));
        }
        assert_eq!(by_path[0], by_path[1]);
        assert!(by_path[0].iter().copied().eq((0..by_path[0].len() as u64).map(|i| i * 1_000)));
    }

    /// An event between sender and receiver.
    #[derive(Debug, Clone)]
    enum Step {
        /// Connection `path` carries so many bytes to the other end.
        Deliver { path: usize, bytes: u64 },
        /// The connection breaks, and the data in it is lost.
        Break { path: usize },
        /// The connection is established again.
        Mend { path: usize },
        /// Time passes.
        Wait { ms: u64 },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0..3_usize, 1..5_000_u64).prop_map(|(path, bytes)| Step::Deliver { path, bytes }),
            1 => (0..3_usize).prop_map(|path| Step::Break { path }),
            2 => (0..3_usize).prop_map(|path| Step::Mend { path }),
            3 => (1..400_u64).prop_map(|ms| Step::Wait { ms }),
        ]
    }

    /// A reliable, ordered connection: its data, from the first byte not yet delivered on.
    #[derive(Debug, Default)]
    struct Connection {
        up: bool,
        pipe: VecDeque<(u64, u64)>,
    }

    impl Connection {
        fn buffered(&self) -> u64 {
            self.pipe.iter().map(|(_, len)| len).sum()
        }

        fn deliver(&mut self, mut bytes: u64, receiver: &mut AggregateReceiver) -> u64 {
            let mut in_order = 0;
            while bytes > 0
                && let Some((start, len)) = self.pipe.front_mut()
            {
                let part = bytes.min(*len);
                in_order += receiver.on_chunk(*start, Bytes::new(part)).in_order.get();
                (*start, *len, bytes) = (*start + part, *len - part, bytes - part);
                if *len == 0 {
                    self.pipe.pop_front();
                }
            }
            in_order
        }
    }

    /// After a cut: its kernel sends again what was lost, and a chunk given to it now would hold up its stream.
    #[test]
    fn a_connection_that_recovers_from_a_timeout_is_given_nothing() {
        let mut sender = sender("look-ahead");
        let recovering = PathStatus { is_recovering: true, ..status(10_000, 20) };
        sender.on_occupancy(at(0), PathId(0), recovering, true);
        assert!(starts_on(&mut sender, at(0), 0).is_empty());
        assert_ne!(sender.path_for(at(0), CHUNK, Urgency::First), Some(PathId(0)));
        sender.on_occupancy(at(1), PathId(0), status(0, 20), true);
        assert!(!starts_on(&mut sender, at(1), 0).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        /// Whatever paths do, every byte comes once and in order, within the reorder buffer; and once some
        /// path works again, everything comes.
        #[test]
        fn every_byte_is_delivered_once_in_order(
            steps in prop::collection::vec(step(), 1..300),
            buffer in 2_000..40_000_u64,
        ) {
            const TOTAL: u64 = 60_500;
            for description in descriptions(Role::Path) {
                let mut sender = AggregateSender::new(scheduler(description.name), 3, CHUNK, true);
                let mut receiver = AggregateReceiver::new(Bytes::new(buffer));
                let mut paths: [Connection; 3] = Default::default();
                let (mut now, mut delivered) = (Instant::ZERO, 0);
                sender.produce(TOTAL);
                let last = [Step::Mend { path: 0 }];
                let drain = (0..400).map(|_| Step::Deliver { path: 0, bytes: 5_000 });
                let tail: Vec<_> = last.into_iter().chain(drain).collect();
                for step in steps.iter().chain(&tail) {
                    match *step {
                        Step::Deliver { path, bytes } => delivered += paths[path].deliver(bytes, &mut receiver),
                        Step::Break { path } if paths[path].up => {
                            paths[path] = Connection::default();
                            sender.path_down(PathId(path));
                        }
                        Step::Mend { path } if !paths[path].up => {
                            paths[path].up = true;
                            sender.path_up(now, PathId(path));
                        }
                        Step::Wait { ms } => now += Duration::from_millis(ms),
                        _ => {}
                    }
                    now += Duration::from_millis(20);
                    sender.on_feedback(receiver.feedback());
                    for (index, path) in paths.iter_mut().enumerate().filter(|(_, path)| path.up) {
                        sender.on_status(now, PathId(index), status(path.buffered(), 10 + 90 * index as u64));
                    }
                    while let Some(chunk) = sender.next(now) {
                        prop_assert!(paths[chunk.path.0].up, "{}", description.name);
                        prop_assert!(chunk.start + chunk.len.get() <= receiver.feedback().edge);
                        paths[chunk.path.0].pipe.push_back((chunk.start, chunk.len.get()));
                    }
                    prop_assert_eq!(delivered, receiver.next());
                    prop_assert!(receiver.held().get() <= buffer, "{}: {}", description.name, receiver.held());
                }
                prop_assert_eq!(delivered, TOTAL, "{}", description.name);
            }
        }
    }
}
