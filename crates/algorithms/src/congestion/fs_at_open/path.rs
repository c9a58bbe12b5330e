//! The measurements of the open mode: the path's smallest round trip, and a round.

use suimon_units::{Duration, Instant};

use super::alone::Alone;
use super::course::Course;
use super::drain::Drains;
use super::reverse::WayBack;
use super::rivals::Rivals;
use super::trial::Trial;
use super::varying::Variation;
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, Limits};

/// Bytes that count at most, a terabyte, and round trips, 16.8 s: their product takes 64 bits, and a kernel has no more.
pub(super) const MOST_BYTES: u64 = 1 << 40;
pub(super) const MOST_RTT: u64 = (1 << 24) - 1;

/// Whole microseconds of `time`.
pub(super) fn micros(time: Duration) -> u64 {
    time.as_nanos() / 1_000
}

/// `now` in microseconds from the start.
pub(super) fn clock(now: Instant) -> u64 {
    micros(now.saturating_since(Instant::ZERO))
}

/// A sample of the round trip, in microseconds; none of no time.
pub(super) fn sample_of(rtt: Option<Duration>) -> Option<u64> {
    rtt.map(|rtt| micros(rtt).min(MOST_RTT)).filter(|rtt| *rtt > 0)
}

/// `value` in bytes, of which [`MOST_BYTES`] count, times `part`, a round trip or (2)'s constant for one segment, over
/// `whole`.
pub(super) fn share(value: u64, part: u64, whole: u64) -> u64 {
    value.min(MOST_BYTES).saturating_mul(part) / whole.max(1)
}

/// The smallest round trip of this period and the two before, in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    /// Smallest of each period, this one first; none without a sample.
    periods: [Option<u64>; 3],
    began: u64,
    /// When a round trip near the smallest was last seen.
    pub(super) renewed: u64,
    /// The first round trip, zero before it.
    first: u64,
    /// Shorter round trips in a row, and the smallest before them.
    shorter: u64,
    least_before: u64,
}

/// Where a round loses more than 1 over this of its bytes, the queue is full: a radio loses less.
pub(super) const FULL_LOSES: u64 = 16;
/// Round trips up to 1/32 above the smallest count as that, and those further below it as shorter.
pub(super) const NEAR: u64 = 32;
/// So many shorter ones in a row are not of jitter, which seldom has two below all of the last fifteen seconds.
const SHORTER: u64 = 2;
/// Where the queue is seldom empty, the path is remembered for so many times as long.
const PERIODS_LONG: u64 = 24;
/// Where a flow is alone, and for so many periods no round trip was close to `rtt_min`, the path may be another.
const PERIODS_FAR: u64 = 3;

impl Path {
    /// The path of this round trip, known from `now` on.
    pub(super) fn of(rtt: u64, now: u64) -> Self {
        Self { periods: [Some(rtt), None, None], began: now, renewed: now, ..Self::default() }
    }

    /// Takes a sample; a period lasts `period`.
    pub(super) fn sample(&mut self, now: u64, rtt: u64, period: u64) {
        if self.first == 0 {
            self.first = rtt;
        }
        if self.shorter == 0 {
            self.least_before = self.rtt_min();
        }
        let is_shorter = rtt < self.least_before - self.least_before / NEAR;
        self.shorter = if is_shorter { self.shorter + 1 } else { 0 };
        if now.saturating_sub(self.began) > period && self.periods[0].is_some() {
            self.periods = [None, self.periods[0], self.periods[1]];
            self.began = now;
        }
        self.periods[0] = Some(self.periods[0].map_or(rtt, |min| min.min(rtt)));
        if self.is_near_min(rtt) {
            self.renewed = now;
        }
    }

    /// Whether the queue has just become shorter than it was known to be: others leave it.
    pub(super) fn has_become_shorter(&mut self) -> bool {
        let has_become_shorter = self.shorter == SHORTER;
        if has_become_shorter {
            self.shorter = 0;
        }
        has_become_shorter
    }

    /// Whether the first round trip is taken to have had a queue in it, since a shorter one came later.
    pub(super) fn began_in_queue(&self) -> bool {
        self.rtt_min() < self.first - self.first / NEAR
    }

    /// The smallest, zero before the first sample.
    pub(super) fn rtt_min(&self) -> u64 {
        self.periods.iter().flatten().copied().min().unwrap_or(0)
    }

    pub(super) fn queueing(&self, rtt: u64) -> u64 {
        rtt.saturating_sub(self.rtt_min())
    }

    pub(super) fn is_near_min(&self, rtt: u64) -> bool {
        self.queueing(rtt) <= self.rtt_min() / NEAR
    }
}

/// A round trip that became longer at once, for as long as it stays (9). Zero stands for none.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    /// Half way up, below which the step is undone.
    half: u64,
    /// The round trip that stays, and the window when it was first seen.
    stays: u64,
    window: u64,
    /// The longest round trip that fell at once by as much, since the queue was last empty: a queue can be so long.
    queue: u64,
}

/// A step is longer than this in microseconds, and than `rtt_min` over this.
const STEP: u64 = 10_000;
const STEP_PART: u64 = 4;
/// Round trips that differ by no more than 1 over this are the same.
const SAME: u64 = 64;

impl Step {
    /// The question ends: the step was a queue.
    pub(super) fn end(&mut self) {
        *self = Self { queue: self.queue, ..Self::default() };
    }

    /// (9) for a round with the round trip `low`, after one with `last`, at the window `w`: true where a path other than
    /// `path` is the cause, since the window has come down to half and the round trip is the same.
    pub(super) fn is_other_path(&mut self, last: u64, low: u64, path: &Path, w: u64) -> bool {
        let step = STEP.max(path.rtt_min() / STEP_PART);
        if path.is_near_min(low) {
            self.queue = 0;
        } else if low.saturating_add(step) < last {
            self.queue = self.queue.max(last);
        }
        if last > 0 && low > last.max(self.queue).saturating_add(step) {
            *self = Self { half: last.midpoint(low), stays: low, window: w, queue: self.queue };
        } else if low < self.half {
            self.end();
        } else if low.abs_diff(self.stays) > low / SAME {
            (self.stays, self.window) = (low, w);
        }
        self.half > 0 && w <= self.window / 2
    }
}

/// From a time until all that was in flight then is acknowledged, or as much has left the flight: in a long recovery
/// `snd_una` waits for a segment that was lost.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) began: u64,
    pub(super) end: u64,
    flight_size: u64,
    /// Bytes confirmed and lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Smallest round trip; the largest number without one.
    pub(super) low: u64,
    pub(super) samples: u64,
    pub(super) app_limited: bool,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            began: 0,
            end: 0,
            flight_size: 0,
            delivered: 0,
            lost: 0,
            low: u64::MAX,
            samples: 0,
            app_limited: false,
        }
    }
}

impl Round {
    fn begin(&mut self, began: u64, ack: &Ack) {
        *self = Self { began, end: ack.snd_nxt, flight_size: ack.flight_size.get(), ..Self::default() };
    }

    pub(super) fn is_over(&self, ack: &Ack) -> bool {
        ack.snd_una >= self.end || self.delivered.saturating_add(self.lost) >= self.flight_size
    }

    pub(super) fn sample(&mut self, rtt: u64) {
        self.low = self.low.min(rtt);
        self.samples += 1;
    }

    pub(super) fn count(&mut self, ack: &Ack) {
        self.delivered = self.delivered.saturating_add(ack.delivered.get());
        // What left the flight and was not confirmed is lost.
        let left = ack.prior_flight_size.saturating_sub(ack.flight_size);
        self.lost = self.lost.saturating_add(left.saturating_sub(ack.delivered).get());
        self.app_limited |= ack.app_limited;
    }

    /// More than 1 over `part` of its bytes were lost, and more than two segments.
    pub(super) fn loses(&self, part: u64, mss: u64) -> bool {
        self.lost > 2 * mss && self.lost > share(self.delivered.saturating_add(self.lost), 1, part)
    }
}

impl<C> FsAtOpen<C> {
    /// A round begins with this acknowledgement.
    pub(super) fn begin_round(&mut self, ack: &Ack) {
        self.round.begin(self.way_back.unwaited(clock(ack.now)), ack);
    }

    /// Time between drains: long round trips make them dear.
    pub(super) fn period(&self) -> u64 {
        self.age.max(self.path.rtt_min() * 40)
    }

    /// Whether a flow that is alone has to look for `rtt_min`, since no round trip since `since` was close to it for long.
    pub(super) fn is_far_since(&self, now: u64, since: u64) -> bool {
        now.saturating_sub(since.max(self.alone.close)) > PERIODS_FAR * self.period()
    }

    /// A period of the path's measurement. Beside others, and where the flow is alone and seldom drains, the queue is seldom
    /// empty.
    pub(super) fn period_of_memory(&self, now: u64) -> u64 {
        let is_beside = matches!(self.mode, Mode::Competing | Mode::Holding) || self.drains.dirty > 0;
        let is_long = if self.alone.is_known { !self.is_far_since(now, 0) } else { is_beside };
        if is_long { PERIODS_LONG * self.period() } else { self.period() }
    }

    /// The path may be another: measurements of the old one are void, and the window stays. The kernel calls this where a
    /// route leaves by another device, or after long silence; the simulator never does.
    pub fn forget_path(&mut self, limits: &Limits) {
        if self.mode == Mode::Competing {
            self.window = limits.cwnd.get();
        }
        if self.mode != Mode::Startup {
            self.mode = Mode::Steady;
        }
        self.path = Path::default();
        self.way_back = WayBack::default();
        self.round = Round::default();
        self.drains = Drains::default();
        self.course = Course::default();
        self.step = Step::default();
        self.rivals = Rivals::default();
        self.trial = Trial::default();
        self.variation = Variation::default();
        self.alone = Alone::default();
        (self.low, self.queueing, self.mean_queueing, self.longest) = (0, 0, 0, [0; 2]);
    }
}
