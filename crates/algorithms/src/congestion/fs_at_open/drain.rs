//! How flows leave the queue together, and what its floor tells them.

use suimon_units::Bytes;

use super::path::{clock, share};
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, CongestionControl, Limits};

/// A drain leaves so many times the flow's own backlog less in flight than `rcv_bytes`, for a queue up to `rtt_min` over
/// the other. That backlog itself goes too, so that the queue empties though three flows in four do not drain.
const DRAIN: u64 = 3;
const MOST_QUEUE: u64 = 4;
/// Longest wait at the floor of a drain for others to join it, beside `rtt_min`.
const DRAIN_WAIT: u64 = 100_000;
/// Rounds that a drain lasts at most while round-trip times still fall by a sixteenth.
const FALLING_ROUNDS: u64 = 8;
/// Queueing delay that only senders that fill the queue hold over several drains; half of it, or `rtt_min` over the second, may
/// remain in a drain.
const LONG_QUEUE: u64 = 50_000;
const LONG_PART: u64 = 4;
/// A queue that such senders hold is never shorter than its longest over this, for long.
const LONGEST_PART: u64 = 8;
/// A flow judges by a drain whether the queue stays where it has so many segments, since fewer take little out. A window that
/// has fallen to 1 over the second since a drain last emptied the queue may be smaller: a queue that grew so much meanwhile is
/// not of a few new flows. The queue stays where a drain leaves more than so many quarters of it, longer than this in
/// microseconds and than `rtt_min` over the last.
const LEAST_SEGMENTS: u64 = 8;
const FALLEN_PART: u64 = 8;
const STAYING_QUARTERS: u64 = 3;
const STAYING_QUEUE: u64 = 15_000;
const STAYING_PART: u64 = 8;
/// A queue that becomes longer than so many quarters in a drain is that of a slow start.
const GROWN_QUARTERS: u64 = 5;
/// So many drains in a row that did not empty the queue, these tenths of a period apart, tell of senders that hold it.
const DIRTY_DRAINS: u64 = 3;
const RETRY_TENTHS: u64 = 7;
/// Rounds after a drain in which the window stays as it was: the queue is filling again.
const ROUNDS_TO_REFILL: u64 = 2;
/// Where the round trip falls by 1 over this in a round, a queue is being left.
const FALL: u64 = 16;
/// The second drain comes this part of a period after slow start, whatever the flow has seen.
const SECOND: u64 = 4;
/// Periods between drains where the link varies (12): its queue is short again and again by itself.
const PERIODS_VARYING: u64 = 3;
/// For so many periods after slow start a flow is young. It gives way to the drains of others, and its own begin with a round:
/// with drains within a round, flows that start together were measured to keep more of a queue. If it began in a queue, it does
/// not know how deep to drain, and leaves as little as it can.
const YOUNG: u64 = 3;
/// A queue that comes down to its mean over this is left by others. The next drain is timed from when it was last so low,
/// around a drain: the queue fills so fast then that all flows see this moment within a few packets.
const LOW_PART: u64 = 4;
/// Where a drain is due within this part of a period, and the queue falls below so many quarters, others begin to leave it.
const SOON: u64 = 32;
const LEFT_QUARTERS: u64 = 3;

/// A time in which the flow leaves the queue, so that all see the path's own round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drain {
    /// The first one, right after slow start.
    first: bool,
    /// The flow competed before.
    pub(super) competing: bool,
    /// What it leaves in flight.
    pub(super) target: u64,
    /// The round trip before it, where the flow joined the drain of others.
    joined: Option<u64>,
    /// When the flight was down, and the smallest round trip of each round since.
    reached: Option<u64>,
    rounds: u64,
    before: u64,
    floor: u64,
}

/// What drains so far have told.
#[derive(Debug, Clone, Default)]
pub(super) struct Drains {
    pub(super) last: u64,
    /// Rounds in which the window still rests.
    pub(super) resting: u64,
    /// Drains in a row that did not empty the queue, and the mean queueing delay before the last of them.
    pub(super) dirty: u64,
    dirty_queueing: u64,
    /// The window when a drain last emptied the queue.
    pub(super) emptied: u64,
    /// Drains found the senders that the flow competes with, by a queue that stayed.
    pub(super) found: bool,
    /// The last round trip told that others begin to leave the queue, shortly before this flow does.
    others_leave: bool,
    /// Others left the queue since the last drain.
    others_left: bool,
    /// When slow start ended, and whether the second drain is still to come.
    pub(super) grown: u64,
    pub(super) awaits_second: bool,
}

/// Whether round trips fall, from `before` in one round to `low` in the next, as those of a queue do that is being left.
fn falls(before: u64, low: u64) -> bool {
    low < before - before / FALL
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// Begins to leave the queue.
    pub(super) fn begin_drain(&mut self, ack: &Ack, first: bool, competing: bool) {
        let (before, floor) = (self.low_now(), u64::MAX);
        let target = self.drain_target(before, ack);
        self.mode = Mode::Draining(Drain {
            first,
            competing,
            target,
            joined: None,
            reached: None,
            rounds: 0,
            before,
            floor,
        });
        self.begin_round(ack);
    }

    /// What a drain leaves in flight, where round trips of `before` came before it.
    fn drain_target(&self, before: u64, ack: &Ack) -> u64 {
        let (rtt_min, q) = (self.path.rtt_min(), self.path.queueing(before));
        let target = if self.path.began_in_queue() && self.is_young(clock(ack.now)) {
            0
        } else {
            self.rcv_bytes.saturating_sub(share(self.rcv_bytes, DRAIN * q.min(rtt_min / MOST_QUEUE), rtt_min))
        };
        target.max(2 * ack.mss.get())
    }

    /// Long after the last round trip near `rtt_min`, or once soon after slow start, whose drain may have come while others
    /// filled the queue.
    pub(super) fn is_drain_due(&mut self, now: u64) -> bool {
        if self.drains.awaits_second && now >= self.drains.grown.saturating_add(self.period() / SECOND) {
            self.drains.awaits_second = false;
            return true;
        }
        if self.alone.is_known {
            return self.is_far_since(now, self.drains.last);
        }
        let periods = if self.varies() { PERIODS_VARYING } else { 1 };
        now.saturating_sub(self.path.renewed) > periods * self.period()
    }

    fn is_young(&self, now: u64) -> bool {
        now < self.drains.grown.saturating_add(YOUNG * self.period())
    }

    /// Takes a round trip into the path's measurement, and keeps the drains of all flows in step.
    pub(super) fn measure(&mut self, now: u64, rtt: u64) {
        let is_soon = now.saturating_sub(self.path.renewed) > self.period() - self.period() / SOON;
        self.path.sample(now, rtt, self.period_of_memory(now));
        let q = self.path.queueing(rtt);
        self.drains.others_leave = is_soon && !self.varies() && q < self.queueing / 4 * LEFT_QUARTERS;
        if q > self.mean_queueing / LOW_PART {
            return;
        }
        match self.mode {
            Mode::Draining(drain) if !drain.competing => self.path.renewed = now,
            Mode::Steady if self.drains.resting > 0 => self.path.renewed = now,
            Mode::Steady => self.drains.others_left = true,
            _ => {}
        }
    }

    /// Whether a drain begins with this acknowledgement, and not only with a round: it is due, or others begin theirs.
    pub(super) fn drains_at_once(&mut self, now: u64) -> bool {
        self.mode == Mode::Steady
            && self.trial.left == 0
            && self.drains.resting == 0
            && !(self.round.app_limited || self.is_young(now))
            && (self.drains.others_leave || self.is_drain_due(now))
    }

    /// Whether others leave the queue in this round, which had `last` before `low`: a young flow lets them.
    pub(super) fn gives_way(&self, now: u64, last: u64, low: u64) -> bool {
        self.is_young(now) && self.path.is_near_min(low) && falls(last, low)
    }

    /// The window stays while the queue fills again.
    pub(super) fn rest(&mut self) {
        self.drains.resting = ROUNDS_TO_REFILL;
    }

    /// Others leave the queue, which this flow took for a part of the path: it leaves too, and finds anew how deep.
    pub(super) fn join_drain(&mut self, ack: &Ack) {
        if self.low == 0 {
            return;
        }
        if self.mode == Mode::Steady && self.trial.left == 0 {
            self.begin_drain(ack, false, false);
        }
        let Mode::Draining(mut drain) = self.mode else { return };
        if drain.competing {
            return;
        }
        let before = *drain.joined.get_or_insert(self.low);
        self.rcv_bytes = share(self.window, self.path.rtt_min(), before);
        drain.target = self.drain_target(before, ack);
        self.mode = Mode::Draining(drain);
    }

    /// An acknowledgement in a drain.
    pub(super) fn advance_drain(&mut self, mut drain: Drain, ack: &Ack, now: u64, limits: &mut Limits) {
        let Some(reached) = drain.reached else {
            if ack.flight_size.get() <= drain.target.saturating_add(self.received()) {
                drain.reached = Some(now);
                drain.before = drain.before.min(self.round.low);
                self.begin_round(ack);
                self.mode = Mode::Draining(drain);
            }
            return;
        };
        drain.floor = drain.floor.min(self.round.low);
        self.mode = Mode::Draining(drain);
        if !self.round.is_over(ack) {
            return;
        }
        let low = self.round.low;
        if drain.rounds < FALLING_ROUNDS && low != u64::MAX && falls(drain.before, low) {
            // Others leave the queue too: stay with them until it is empty.
            (drain.before, drain.rounds) = (low, drain.rounds + 1);
            self.mode = Mode::Draining(drain);
            self.begin_round(ack);
        } else if (self.path.is_near_min(drain.floor) && drain.joined.is_none())
            || now.saturating_sub(reached) >= DRAIN_WAIT.max(self.path.rtt_min())
        {
            self.end_drain(drain, reached, ack, now, limits);
        }
    }

    /// Whether a long queue was there before a drain that left `left` of it, and remains.
    fn remains_long(&self, drain: &Drain, left: u64) -> bool {
        let was_long =
            self.mean_queueing > LONG_QUEUE.max(self.longest[0].max(self.longest[1]) / LONGEST_PART);
        !drain.first
            && (drain.competing || was_long)
            && left > (LONG_QUEUE / 2).max(self.path.rtt_min() / LONG_PART)
    }

    /// Whether nearly all of the queue stays, `left`, where the flow leaves it: others hold it, which do not drain.
    fn stays(&self, drain: &Drain, left: u64, mss: u64) -> bool {
        !drain.first
            && !drain.competing
            && (self.window >= LEAST_SEGMENTS * mss || FALLEN_PART * self.window <= self.drains.emptied)
            && left > STAYING_QUEUE.max(self.path.rtt_min() / STAYING_PART)
            && 4 * left > STAYING_QUARTERS * self.queueing.min(self.mean_queueing)
    }

    fn end_drain(&mut self, drain: Drain, reached: u64, ack: &Ack, now: u64, limits: &mut Limits) {
        let mss = ack.mss.get();
        let left = if drain.floor == u64::MAX { 0 } else { self.path.queueing(drain.floor) };
        let stays = self.stays(&drain, left, mss);
        let tells_of_others = self.compete && (stays || self.remains_long(&drain, left));
        let grows = 4 * left > GROWN_QUARTERS * self.queueing.max(self.mean_queueing);
        let others_left = core::mem::take(&mut self.drains.others_left);
        self.mode = Mode::Steady;
        if self.path.renewed < reached {
            self.path.renewed = now;
        }
        if let Some(before) = drain.joined.filter(|_| self.path.began_in_queue()) {
            self.window = self.window.min(self.fit(mss, before)).max(2 * mss);
        }
        if !tells_of_others {
            self.drains.dirty = 0;
            if !drain.competing {
                self.drains.emptied = self.window;
            }
            if drain.competing && !self.trial.found {
                self.mode = Mode::Holding;
                if !self.rivals.was_full(now, self.longest_wait()) {
                    // No loss has told that the queue is full: hold no more than the path does.
                    self.window = self.window.min(self.rcv_bytes.max(2 * mss));
                }
            }
        } else if drain.competing {
            self.take_up(ack, now, limits);
        } else if !grows && !others_left && self.is_beside_others() {
            self.begin_competition(ack, now, limits);
            self.drains.found = stays;
        } else {
            self.drain_again(now);
        }
        if self.tries_after_drain(now, mss) {
            self.begin_trial(ack, now, limits);
        }
        limits.ssthresh = Bytes::new(self.window.max(2 * mss));
        limits.cwnd = limits.cwnd.min(limits.ssthresh);
        self.drains.last = now;
        self.rivals.is_due = false;
        self.rivals.settle();
        self.longest = [0, self.longest[0]];
        self.rest();
        self.begin_round(ack);
    }

    /// The next drain comes soon.
    fn drain_again(&mut self, now: u64) {
        self.path.renewed = now.saturating_sub(self.period() / 10 * (10 - RETRY_TENTHS));
    }

    /// Drain after drain the queue stays, and it does not shrink. Where the link varies (12), its gaps do that too.
    pub(super) fn is_beside_others(&mut self) -> bool {
        let shrinks = self.mean_queueing < self.drains.dirty_queueing / 8 * 7;
        self.drains.dirty = if shrinks { 1 } else { self.drains.dirty + 1 };
        self.drains.dirty_queueing = self.mean_queueing;
        self.drains.dirty >= DIRTY_DRAINS && !self.varies()
    }
}
