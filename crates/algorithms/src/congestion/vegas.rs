//! Vegas: keeps between `alpha` and `beta` segments of its own in the queue (Brakmo and Peterson, 1995),
//! as Linux 2.6.13 to 2.6.22 has it.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::AdditiveIncrease;
use super::window::{scaled_down, slow_start_through_ssthresh};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "vegas",
    summary: "holds its own backlog between alpha and beta segments, judged once per RTT",
    source: "Brakmo and Peterson 1995; Linux 2.6.16",
    colour: "#0a6e5f",
    parameters: &[
        Parameter {
            name: "alpha",
            help: "segments in the queue below which the window grows",
            default: Value::Number(1.0),
            range: Range::Between(0.0, 1000.0),
        },
        Parameter {
            name: "beta",
            help: "segments in the queue above which the window shrinks",
            default: Value::Number(3.0),
            range: Range::Between(0.0, 1000.0),
        },
        Parameter {
            name: "gamma",
            help: "segments in the queue above which slow start ends",
            default: Value::Number(1.0),
            range: Range::Between(0.0, 1000.0),
        },
    ],
};

/// Builds it with `alpha`, `beta` and `gamma`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Vegas {
        alpha: arguments.number("alpha"),
        beta: arguments.number("beta"),
        gamma: arguments.number("gamma"),
        base_rtt: None,
        min_rtt: None,
        samples: 0,
        beg_snd_una: 0,
        beg_snd_nxt: 0,
        beg_snd_cwnd: 0,
        recovering: false,
        diff: 0.0,
        reno: AdditiveIncrease::default(),
    })
}

/// RTT samples in a round needed for a judgement: with fewer, all of them may be of delayed ACKs.
const ENOUGH_SAMPLES: u64 = 3;

/// The smallest window that Vegas sets, in segments.
const MIN_WINDOW: u64 = 2;

#[derive(Debug, Clone)]
struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Smallest RTT since the sender last started from nothing in flight.
    base_rtt: Option<Duration>,
    /// Smallest RTT of this round, and how many there were.
    min_rtt: Option<Duration>,
    samples: u64,
    /// The data sent in the round before this one: from `beg_snd_una` to `beg_snd_nxt`.
    beg_snd_una: u64,
    beg_snd_nxt: u64,
    /// The window when this round began, in segments.
    beg_snd_cwnd: u64,
    recovering: bool,
    /// The last round's estimate of the backlog, in segments.
    diff: f64,
    /// Reno takes over where samples are too few.
    reno: AdditiveIncrease,
}

impl Vegas {
    /// A new round begins, and the samples of the one before are void.
    fn enable(&mut self, snd_nxt: u64) {
        self.beg_snd_nxt = snd_nxt;
        self.min_rtt = None;
        self.samples = 0;
    }

    fn sample(&mut self, rtt: Duration) {
        let smaller = |known: Option<Duration>| Some(known.map_or(rtt, |known| known.min(rtt)));
        self.base_rtt = smaller(self.base_rtt);
        self.min_rtt = smaller(self.min_rtt);
        self.samples += 1;
    }

    fn reno(&mut self, ack: &Ack, limits: &mut Limits) {
        if !ack.cwnd_limited {
            return;
        }
        if slow_start_through_ssthresh(ack, limits) {
            self.reno.grow(ack, limits);
        } else {
            self.reno = AdditiveIncrease::default();
        }
    }

    /// The flight at the begin of this round is acknowledged: judge the round, and begin the next one.
    fn end_round(&mut self, ack: &Ack, limits: &mut Limits) {
        let old_wnd = self.beg_snd_nxt.saturating_sub(self.beg_snd_una) / ack.mss.get();
        let old_snd_cwnd = self.beg_snd_cwnd;
        self.beg_snd_una = self.beg_snd_nxt;
        self.beg_snd_cwnd = limits.cwnd.whole(ack.mss);
        match (self.base_rtt, self.min_rtt) {
            (Some(base_rtt), Some(rtt)) if self.samples >= ENOUGH_SAMPLES => {
                let target_halves = in_half_segments(old_wnd, base_rtt, rtt);
                self.diff = (2 * old_wnd - target_halves) as f64 / 2.0;
                self.judge(old_snd_cwnd, target_halves / 2, ack, limits);
            }
            _ => self.reno(ack, limits),
        }
        self.enable(ack.snd_nxt);
    }

    fn judge(&mut self, old_snd_cwnd: u64, target_cwnd: u64, ack: &Ack, limits: &mut Limits) {
        if limits.cwnd <= limits.ssthresh {
            if self.diff > self.gamma {
                let smallest = ack.mss * MIN_WINDOW;
                // The threshold is so low that slow start comes back after a loss only.
                limits.ssthresh = smallest;
                // One segment more than the rate calls for, since rounding down took up to one.
                limits.cwnd = limits.cwnd.min((ack.mss * (target_cwnd + 1)).max(smallest));
            }
            // The ACK that ends slow start grows the window like those before it.
            self.slow_start(ack, limits);
        } else {
            // Relative to the window that was judged, not to that of now: the answer to a change is seen
            // one round late, and this keeps Vegas from giving it twice.
            let next_snd_cwnd = if self.diff > self.beta {
                old_snd_cwnd.saturating_sub(1)
            } else if self.diff < self.alpha {
                old_snd_cwnd + 1
            } else {
                old_snd_cwnd
            };
            let snd_cwnd = limits.cwnd.whole(ack.mss);
            if next_snd_cwnd < snd_cwnd && snd_cwnd > MIN_WINDOW {
                limits.cwnd -= ack.mss;
            } else if next_snd_cwnd > snd_cwnd && ack.cwnd_limited {
                limits.cwnd += ack.mss;
            }
        }
    }

    /// Growth by an ACK that comes in slow start.
    fn slow_start(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.cwnd_limited {
            limits.cwnd += ack.slow_start_credit();
            self.reno = AdditiveIncrease::default();
        }
    }
}

/// `old_wnd` segments per `rtt` times `base_rtt`, in half segments rounded down (Linux's fixed point).
fn in_half_segments(old_wnd: u64, base_rtt: Duration, rtt: Duration) -> u64 {
    let base_rtt = u128::from(base_rtt.as_nanos().max(1));
    let rtt = u128::from(rtt.as_nanos().max(1));
    let halves = u128::from(2 * old_wnd) * base_rtt / rtt;
    u64::try_from(halves).expect("base_rtt is the smallest rtt, so the quotient is at most 2 old_wnd")
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        if ack.in_recovery {
            self.recovering = true;
        } else if self.recovering {
            // The ACK that ends recovery grows nothing; Vegas starts over behind it.
            self.recovering = false;
            self.enable(ack.snd_nxt);
        } else if ack.newly_acked > Bytes::ZERO {
            self.reno.count(ack);
            if ack.snd_una > self.beg_snd_nxt {
                self.end_round(ack, limits);
            } else if limits.cwnd <= limits.ssthresh {
                self.slow_start(ack, limits);
            }
        }
        if ack.flight_size == Bytes::ZERO {
            // The next segment starts from nothing in flight: the path may have changed meanwhile.
            self.base_rtt = None;
            self.enable(ack.snd_nxt);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.recovering = true;
        self.reno = AdditiveIncrease::default();
        if event.kind == CongestionKind::Timeout {
            // All that was in flight counts as lost, so this is a start from nothing in flight too.
            self.base_rtt = None;
        }
        limits.ssthresh = scaled_down(limits, 0.5, event.mss);
    }

    fn probe(&self, out: &mut dyn Probe) {
        if let Some(base_rtt) = self.base_rtt {
            out.value("base_rtt_ms", base_rtt.as_millis_f64());
        }
        out.value("diff_segments", self.diff);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use suimon_units::Instant;

    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const BASE_RTT: Duration = Duration::from_millis(100);

    fn vegas() -> Box<dyn CongestionControl> {
        build(&Arguments::defaults(DESCRIPTION.parameters))
    }

    /// A path that holds `bdp` segments; the flight beyond them waits, and shows in the RTT.
    struct Path {
        bdp: u64,
        in_flight: VecDeque<Duration>,
        now: Instant,
        snd_una: u64,
        limits: Limits,
        vegas: Box<dyn CongestionControl>,
    }

    impl Path {
        fn new(bdp: u64, limits: Limits) -> Self {
            let in_flight = VecDeque::new();
            let mut path = Self { bdp, in_flight, now: Instant::ZERO, snd_una: 0, limits, vegas: vegas() };
            path.send();
            path
        }

        fn send(&mut self) {
            while (self.in_flight.len() as u64) < self.limits.cwnd.whole(MSS) {
                let waiting = (self.in_flight.len() as u64 + 1).saturating_sub(self.bdp);
                self.in_flight.push_back(BASE_RTT + (BASE_RTT / self.bdp) * waiting);
            }
        }

        fn acknowledge(&mut self) {
            let rtt = self.in_flight.pop_front().expect("the window is never empty");
            self.now += BASE_RTT / self.bdp;
            self.snd_una += MSS.get();
            let flight_size = MSS * self.in_flight.len() as u64;
            let event = Ack {
                now: self.now,
                rtt: Some(rtt),
                snd_una: self.snd_una,
                snd_nxt: self.snd_una + flight_size.get(),
                flight_size,
                ..ack(1)
            };
            self.vegas.on_ack(&event, &mut self.limits);
            self.send();
        }

        /// One round trip: all that is in flight now comes back. Gives the window after it.
        fn round(&mut self) -> u64 {
            for _ in 0..self.in_flight.len() {
                self.acknowledge();
            }
            self.limits.cwnd.whole(MSS)
        }
    }

    fn in_avoidance(segments: u64) -> Limits {
        Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * segments) }
    }

    #[test]
    fn the_backlog_comes_to_rest_between_alpha_and_beta() {
        for (bdp, start) in [(20, 10), (20, 60), (64, 10), (64, 80)] {
            let mut path = Path::new(bdp, in_avoidance(start));
            // The smallest RTT has to be seen once, which a start above the BDP hides.
            let uncongested = Ack { rtt: Some(BASE_RTT), newly_acked: Bytes::ZERO, ..ack(1) };
            path.vegas.on_ack(&uncongested, &mut path.limits);
            for _ in 0..300 {
                path.round();
            }
            let backlogs: Vec<_> = (0..20).map(|_| path.round() - bdp).collect();
            assert!(backlogs.iter().all(|backlog| (1..=4).contains(backlog)), "{bdp} {start}: {backlogs:?}");
            assert_eq!(backlogs.iter().min(), backlogs.iter().max(), "{bdp} {start}: it still moves");
        }
    }

    #[test]
    fn a_window_too_large_sheds_one_segment_every_second_round() {
        let mut path = Path::new(20, in_avoidance(40));
        let uncongested = Ack { rtt: Some(BASE_RTT), newly_acked: Bytes::ZERO, ..ack(1) };
        path.vegas.on_ack(&uncongested, &mut path.limits);
        for _ in 0..4 {
            path.round();
        }
        let before = path.limits.cwnd.whole(MSS);
        let windows: Vec<_> = (0..6).map(|_| before - path.round()).collect();
        assert!(windows == [1, 1, 2, 2, 3, 3] || windows == [0, 1, 1, 2, 2, 3], "{windows:?}");
    }

    #[test]
    fn slow_start_overshoots_to_between_4_and_8_bdp_and_ends_within_2() {
        let mut path = Path::new(20, Limits::initial(MSS * 2));
        let mut largest = 0;
        while path.limits.ssthresh == Bytes::MAX {
            largest = largest.max(path.limits.cwnd.whole(MSS));
            path.acknowledge();
        }
        assert_eq!(path.limits.ssthresh, MSS * 2);
        // Between 4 and 8 BDP: the queue begins at 1, shows in the whole of the next round's RTTs at 2, and
        // is judged when that round is acknowledged.
        assert!((80..=160).contains(&largest), "{largest}");
        // The smallest RTT of a round in which the queue doubled shows half of it.
        assert!((20..=41).contains(&path.limits.cwnd.whole(MSS)), "{}", path.limits.cwnd);
    }

    /// Limits after a round of ten segments that began with `limits`, with `samples` RTTs in that round, the
    /// smallest of them `rtt`.
    fn after_round(mut limits: Limits, samples: u64, rtt: Duration) -> Limits {
        let mut vegas = vegas();
        let sample = |snd_una, snd_nxt, rtt| Ack { snd_una, snd_nxt, rtt: Some(rtt), ..ack(1) };
        vegas.on_ack(&sample(MSS.get(), (MSS * 10).get(), BASE_RTT), &mut limits);
        vegas.on_ack(&sample((MSS * 10).get() + 1, (MSS * 20).get(), BASE_RTT), &mut limits);
        for _ in 1..samples {
            vegas.on_ack(&sample((MSS * 12).get(), (MSS * 25).get(), rtt), &mut limits);
        }
        vegas.on_ack(&sample((MSS * 20).get() + 1, (MSS * 30).get(), rtt), &mut limits);
        limits
    }

    fn judged(samples: u64, rtt: Duration) -> u64 {
        after_round(in_avoidance(10), samples, rtt).cwnd.whole(MSS)
    }

    /// The RTT at which ten segments have `diff` in the queue.
    fn rtt_with(diff: f64) -> Duration {
        BASE_RTT.mul_f64(1.0 / (1.0 - diff / 10.0))
    }

    #[test]
    fn two_samples_are_too_few_for_a_judgement() {
        let congested = Duration::from_millis(200);
        assert_eq!(judged(2, congested), 10);
        assert_eq!(judged(3, congested), 9);
    }

    #[test]
    fn the_window_moves_only_outside_alpha_and_beta() {
        assert_eq!(judged(3, BASE_RTT), 11);
        assert_eq!(judged(3, rtt_with(0.4)), 11, "0.4 rounds up to 0.5, below alpha");
        assert_eq!(judged(3, rtt_with(0.9)), 10, "0.9 rounds up to alpha");
        assert_eq!(judged(3, rtt_with(2.9)), 10, "2.9 rounds up to beta");
        assert_eq!(judged(3, rtt_with(3.1)), 9, "3.1 rounds up to 3.5, above beta");
    }

    #[test]
    fn slow_start_ends_above_gamma_at_what_the_path_carries_and_two() {
        let slow_start = Limits::initial(MSS * 10);
        let at_gamma = after_round(slow_start, 3, rtt_with(0.9));
        assert_eq!(at_gamma.ssthresh, Bytes::MAX, "0.9 rounds up to gamma");
        let above = after_round(slow_start, 3, rtt_with(1.1));
        assert_eq!(
            (above.ssthresh, above.cwnd),
            (MSS * 2, MSS * 10),
            "10 - 1.5, rounded down, plus 1 and the ACK's 1"
        );
    }

    #[test]
    fn gamma_counts_in_slow_start_alone() {
        // As after a loss: the threshold is above 2, and the window above the threshold.
        let limits = Limits { ssthresh: MSS * 9, ..in_avoidance(10) };
        let judged = after_round(limits, 3, rtt_with(2.5));
        assert_eq!((judged.ssthresh, judged.cwnd), (MSS * 9, MSS * 10));
    }

    #[test]
    fn the_target_is_rounded_down_to_half_segments() {
        let base = Duration::from_millis(100);
        assert_eq!(in_half_segments(10, base, base), 20);
        assert_eq!(in_half_segments(10, base, Duration::from_millis(101)), 19);
        assert_eq!(in_half_segments(10, base, Duration::from_millis(200)), 10);
        assert_eq!(in_half_segments(10, Duration::ZERO, Duration::ZERO), 20);
    }

    #[test]
    fn a_loss_halves_the_window_and_the_ack_that_ends_recovery_grows_nothing() {
        let mut vegas = vegas();
        let mut limits = Limits::initial(MSS * 21);
        vegas.on_congestion(&loss(21), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 10);
        limits.cwnd = limits.ssthresh;
        vegas.on_ack(&Ack { in_recovery: true, ..ack(1) }, &mut limits);
        vegas.on_ack(&ack(10), &mut limits);
        assert_eq!(limits.cwnd, MSS * 10);
    }

    #[test]
    fn starting_from_nothing_in_flight_forgets_the_base_rtt() {
        let mut vegas = vegas();
        let mut limits = in_avoidance(10);
        let base_rtt = |vegas: &dyn CongestionControl| {
            let mut values = Vec::new();
            vegas.probe(&mut values);
            values.into_iter().find_map(|(name, value)| (name == "base_rtt_ms").then_some(value))
        };
        vegas.on_ack(&ack(1), &mut limits);
        assert_eq!(base_rtt(&*vegas), Some(100.0));
        vegas.on_ack(&Ack { flight_size: Bytes::ZERO, ..ack(1) }, &mut limits);
        assert_eq!(base_rtt(&*vegas), None);
    }
}
