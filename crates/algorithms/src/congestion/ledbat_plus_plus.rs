//! LEDBAT++: what nobody else uses, with at most 60 ms of queue (draft-irtf-iccrg-ledbat-plus-plus).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "ledbat-plus-plus",
    summary: "for transfers in the background: gives way to all others, and leaves the queue now and then",
    source: "draft-irtf-iccrg-ledbat-plus-plus",
    colour: "#7f7f7f",
    parameters: &[Parameter {
        name: "target",
        help: "the queueing delay that it aims for",
        default: Value::Duration(Duration::from_millis(60)),
        range: Range::Any,
    }],
};

/// Builds it with the `target` of `arguments`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(LedbatPlusPlus::new(arguments.duration("target")))
}

/// `Constant` of the decrease.
const CONSTANT: f64 = 1.0;
/// No gain is below one over this.
const MAX_DIVISOR: f64 = 16.0;
/// The first slow start ends at this part of the target.
const END_OF_SLOW_START: f64 = 0.75;
/// Round trips from the end of the first slow start to the first slowdown, and of a slowdown at two segments.
const ROUNDS: u64 = 2;
/// A slowdown takes a tenth of the time: the next one begins after nine times what the last one took.
const BETWEEN_SLOWDOWNS: u64 = 9;
/// Samples of which the smallest is the present round-trip time.
const FILTER: usize = 4;
/// The smallest round trip of ten minutes counts, in steps of one minute (RFC 6817, section 2.4.2: `BASE_HISTORY`).
const HISTORY: usize = 10;
const STEP: Duration = Duration::from_secs(60);

/// A time at two segments, and what it takes to get back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Slowdown {
    /// The first slow start is not over.
    None,
    /// The next begins then.
    At(Instant),
    /// It began then, and the window stays as it is for two round trips.
    Frozen(Instant),
    /// It began then; slow start leads back to the window of before.
    Ramp(Instant),
}

#[derive(Debug, Clone)]
struct LedbatPlusPlus {
    target: Duration,
    /// Smallest round trip of each minute, the present one first.
    base: [Option<Duration>; HISTORY],
    minute: Instant,
    recent: [Option<Duration>; FILTER],
    nth: usize,
    slowdown: Slowdown,
    /// Growth of less than a byte.
    fraction: f64,
}

impl LedbatPlusPlus {
    fn new(target: Duration) -> Self {
        Self {
            target,
            base: [None; HISTORY],
            minute: Instant::ZERO,
            recent: [None; FILTER],
            nth: 0,
            slowdown: Slowdown::None,
            fraction: 0.0,
        }
    }

    fn sample(&mut self, now: Instant, rtt: Duration) {
        if now.saturating_since(self.minute) > STEP {
            self.base.rotate_right(1);
            (self.base[0], self.minute) = (None, now);
        }
        self.base[0] = Some(self.base[0].map_or(rtt, |base| base.min(rtt)));
        self.recent[self.nth % FILTER] = Some(rtt);
        self.nth += 1;
    }

    /// The smallest round trip and the present one.
    fn delays(&self) -> Option<(Duration, Duration)> {
        let least = |samples: &[Option<Duration>]| samples.iter().flatten().copied().min();
        Some((least(&self.base)?, least(&self.recent)?))
    }

    /// `GAIN = 1 / min(16, CEIL(2 * TARGET / base))`.
    fn gain(&self, base: Duration) -> f64 {
        let divisor = 2.0 * self.target.as_secs_f64() / base.as_secs_f64().max(1e-6);
        1.0 / libm::ceil(divisor).clamp(1.0, MAX_DIVISOR)
    }

    /// Where a slowdown begins, goes on or ends; true where the window stays as it is.
    fn slow_down(&mut self, ack: &Ack, rtt: Duration, limits: &mut Limits) -> bool {
        match self.slowdown {
            Slowdown::At(begins) if ack.now >= begins => {
                limits.ssthresh = limits.cwnd.max(ack.mss * 2);
                limits.cwnd = limits.cwnd.min(ack.mss * 2);
                self.slowdown = Slowdown::Frozen(ack.now);
                true
            }
            Slowdown::Frozen(began) if ack.now.saturating_since(began) < rtt * ROUNDS => true,
            Slowdown::Frozen(began) => {
                self.slowdown = Slowdown::Ramp(began);
                false
            }
            Slowdown::Ramp(began) if !limits.in_slow_start() => {
                let took = ack.now.saturating_since(began);
                self.slowdown = Slowdown::At(ack.now + took * BETWEEN_SLOWDOWNS);
                false
            }
            _ => false,
        }
    }

    fn grow(&mut self, ack: &Ack, base: Duration, rtt: Duration, limits: &mut Limits) {
        let gain = self.gain(base);
        let delay = rtt.saturating_sub(base).as_secs_f64() / self.target.as_secs_f64().max(1e-6);
        let before = limits.cwnd;
        let (window, mss) = (before.as_f64(), ack.mss.as_f64());
        let acked = ack.slow_start_credit().as_f64();
        if limits.in_slow_start() {
            if self.slowdown == Slowdown::None && delay > END_OF_SLOW_START {
                limits.ssthresh = limits.cwnd.max(ack.mss * 2);
            } else {
                let room = (limits.ssthresh.saturating_sub(limits.cwnd)).as_f64();
                self.add((gain * acked).min(room), limits);
            }
        } else {
            // Of a round trip: W += GAIN below the target, and W += max(GAIN - Constant W (delay / target - 1), -W / 2) above.
            let beyond = (delay - 1.0).max(0.0);
            let round = (gain * mss - CONSTANT * window * beyond).max(-window / 2.0);
            self.add(round * acked / window, limits);
        }
        limits.cwnd = limits.cwnd.max(ack.mss * 2);
        if !ack.cwnd_limited {
            limits.cwnd = limits.cwnd.min(before);
        }
        if self.slowdown == Slowdown::None && !limits.in_slow_start() {
            self.slowdown = Slowdown::At(ack.now + rtt * ROUNDS);
        }
    }

    fn add(&mut self, bytes: f64, limits: &mut Limits) {
        let sum = limits.cwnd.as_f64() + self.fraction + bytes;
        limits.cwnd = Bytes::from_f64(libm::floor(sum.max(0.0)));
        self.fraction = sum - limits.cwnd.as_f64();
    }
}

impl CongestionControl for LedbatPlusPlus {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.sample(ack.now, rtt);
        }
        let Some((base, rtt)) = self.delays() else { return };
        if ack.in_recovery || self.slow_down(ack, rtt, limits) {
            return;
        }
        // A window that is too large shrinks whether it is used or not.
        if ack.newly_acked > Bytes::ZERO && (ack.cwnd_limited || rtt > base + self.target) {
            self.grow(ack, base, rtt, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        // As RFC 6817, section 2.4.2: halved, once a round trip.
        limits.ssthresh = (limits.cwnd / 2).max(event.mss * 2);
        self.fraction = 0.0;
        if event.kind == CongestionKind::Timeout || matches!(self.slowdown, Slowdown::Frozen(_)) {
            self.slowdown = Slowdown::Ramp(event.now);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        if let Some((base, rtt)) = self.delays() {
            out.value("min_rtt_ms", base.as_millis_f64());
            out.value("queueing_ms", rtt.saturating_sub(base).as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u64, rtt: u64) -> Ack {
        Ack { now: Instant::ZERO + MS * millis, rtt: Some(MS * rtt), ..ack(1) }
    }

    /// After a first round trip of `base` ms: the window of `segments` after ACKs of a round trip of `rtt` ms each.
    fn after_a_round(base: u64, rtt: u64, segments: u64) -> f64 {
        let mut ledbat = LedbatPlusPlus::new(MS * 60);
        let mut limits = Limits { ssthresh: MSS, ..Limits::initial(MSS * segments) };
        ledbat.sample(Instant::ZERO, MS * base);
        (0..FILTER).for_each(|_| ledbat.sample(Instant::ZERO, MS * rtt));
        for _ in 0..segments {
            ledbat.grow(&at(100, rtt), MS * base, MS * rtt, &mut limits);
        }
        limits.cwnd.as_f64() / MSS.as_f64()
    }

    /// 2 * 60 / 100 is 1.2, so the gain is a half; at 5 ms it would be 1/24, and is 1/16.
    #[test]
    fn below_the_target_the_window_grows_by_the_gain_each_round_trip() {
        assert!((after_a_round(100, 120, 40) - 40.5).abs() < 0.01);
        assert!((after_a_round(5, 10, 40) - (40.0 + 1.0 / 16.0)).abs() < 0.01);
    }

    /// 90 ms are half of 60 more than 60: each ACK takes half a segment, and adds a little.
    #[test]
    fn above_the_target_the_window_shrinks_with_the_excess() {
        let left = after_a_round(100, 190, 40);
        assert!((20.0..26.0).contains(&left), "{left}");
        assert!(after_a_round(100, 160, 40) > 40.0);
    }

    #[test]
    fn slow_start_ends_at_three_quarters_of_the_target_and_a_slowdown_follows() {
        let mut ledbat = LedbatPlusPlus::new(MS * 60);
        let mut limits = Limits::initial(MSS * 10);
        (0..20).for_each(|nth| ledbat.on_ack(&at(100 + nth, 100), &mut limits));
        assert!(limits.cwnd > MSS * 19 && limits.in_slow_start());
        (0..4).for_each(|nth| ledbat.on_ack(&at(200 + nth, 146), &mut limits));
        assert!(!limits.in_slow_start());
        let before = limits.cwnd;
        // Two round trips later.
        ledbat.on_ack(&at(203 + 2 * 146, 146), &mut limits);
        assert_eq!(limits.cwnd, MSS * 2);
        assert!(limits.ssthresh >= before);
        ledbat.on_ack(&at(520, 100), &mut limits);
        assert_eq!(limits.cwnd, MSS * 2, "it stays for two round trips");
        (0..200).for_each(|nth| ledbat.on_ack(&at(900 + nth, 100), &mut limits));
        assert!(!limits.in_slow_start(), "slow start led back");
        // It took from 495 ms on; nine times that follow.
        let Slowdown::At(next) = ledbat.slowdown else { panic!("{:?}", ledbat.slowdown) };
        let ended = next.saturating_since(Instant::ZERO);
        assert!((MS * 495 + (MS * 405) * 10..MS * 495 + (MS * 605) * 10).contains(&ended), "{ended}");
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut limits = Limits::initial(MSS * 40);
        LedbatPlusPlus::new(MS * 60).on_congestion(&loss(40), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 20);
    }
}
