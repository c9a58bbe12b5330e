//! Vegas as Linux has it today (6.1, `tcp_vegas.c`): the backlog follows from the window of now.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "vegas-linux",
    summary: "Vegas as the kernel of today has it: between two and four segments in the queue",
    source: "Brakmo and Peterson 1995; Linux 6.1",
    colour: "#bab0ac",
    parameters: &[
        Parameter {
            name: "alpha",
            help: "segments in the queue below which the window grows",
            default: Value::Number(2.0),
            range: Range::Between(0.0, 1000.0),
        },
        Parameter {
            name: "beta",
            help: "segments in the queue above which the window shrinks",
            default: Value::Number(4.0),
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
    Box::new(VegasLinux {
        alpha: arguments.number("alpha"),
        beta: arguments.number("beta"),
        gamma: arguments.number("gamma"),
        base_rtt: None,
        min_rtt: None,
        samples: 0,
        beg_snd_nxt: 0,
        recovering: false,
        diff: 0,
        reno: AdditiveIncrease::default(),
    })
}

/// Samples of a round with which it is judged: with fewer, all of them may be of delayed ACKs.
const ENOUGH_SAMPLES: u64 = 3;
/// The smallest window that Vegas sets, in segments.
const MIN_WINDOW: u64 = 2;

#[derive(Debug, Clone)]
struct VegasLinux {
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Smallest round-trip time since the sender last started from nothing in flight.
    base_rtt: Option<Duration>,
    /// Smallest round-trip time of this round, and how many there were.
    min_rtt: Option<Duration>,
    samples: u64,
    /// The round ends once more than this is acknowledged.
    beg_snd_nxt: u64,
    recovering: bool,
    /// The last round's estimate of the backlog, in segments.
    diff: u64,
    /// Reno takes over where samples are too few.
    reno: AdditiveIncrease,
}

impl VegasLinux {
    /// A new round begins, and the samples of the one before are void.
    fn enable(&mut self, snd_nxt: u64) {
        (self.beg_snd_nxt, self.min_rtt, self.samples) = (snd_nxt, None, 0);
    }

    fn sample(&mut self, rtt: Duration) {
        let smaller = |known: Option<Duration>| Some(known.map_or(rtt, |known| known.min(rtt)));
        self.base_rtt = smaller(self.base_rtt);
        self.min_rtt = smaller(self.min_rtt);
        self.samples += 1;
    }

    fn end_round(&mut self, ack: &Ack, limits: &mut Limits) {
        match (self.base_rtt, self.min_rtt) {
            (Some(base), Some(rtt)) if self.samples >= ENOUGH_SAMPLES => self.judge(ack, base, rtt, limits),
            _ if ack.cwnd_limited && slow_start(ack, limits) => self.reno.apply(ack, limits),
            _ => {}
        }
        self.enable(ack.snd_nxt);
    }

    fn judge(&mut self, ack: &Ack, base_rtt: Duration, rtt: Duration, limits: &mut Limits) {
        let (base, rtt) = (base_rtt.as_nanos().max(1), rtt.as_nanos().max(1));
        let share = |of: u64, whole: u64| {
            let segments = u128::from(limits.cwnd.whole(ack.mss)) * u128::from(of) / u128::from(whole);
            u64::try_from(segments).unwrap_or(u64::MAX)
        };
        let target = share(base, rtt);
        self.diff = share(rtt - base, base);
        let (diff, smallest) = (self.diff as f64, ack.mss * MIN_WINDOW);
        if limits.in_slow_start() {
            if diff > self.gamma {
                // One segment more than the rate calls for, since rounding down took up to one.
                limits.cwnd = limits.cwnd.min((ack.mss * target.saturating_add(1)).max(smallest));
                limits.ssthresh = limits.ssthresh.min(limits.cwnd);
            } else if ack.cwnd_limited {
                slow_start(ack, limits);
            }
        } else if diff > self.beta {
            limits.cwnd = limits.cwnd.min(limits.cwnd.saturating_sub(ack.mss).max(smallest));
            limits.ssthresh = limits.ssthresh.min(limits.cwnd);
        } else if diff < self.alpha && ack.cwnd_limited {
            limits.cwnd += ack.mss;
        }
        limits.ssthresh = limits.ssthresh.max(limits.cwnd * 3 / 4).max(smallest);
    }
}

impl CongestionControl for VegasLinux {
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
            if ack.snd_una > self.beg_snd_nxt {
                self.end_round(ack, limits);
            } else if ack.cwnd_limited {
                slow_start(ack, limits);
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
        out.value("diff_segments", self.diff as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const BASE: Duration = Duration::from_millis(100);

    fn vegas() -> VegasLinux {
        let [alpha, beta, gamma] = [2.0, 4.0, 1.0];
        let reno = AdditiveIncrease::default();
        let (base_rtt, min_rtt) = (Some(BASE), None);
        VegasLinux {
            alpha,
            beta,
            gamma,
            base_rtt,
            min_rtt,
            samples: 0,
            beg_snd_nxt: 0,
            recovering: false,
            diff: 0,
            reno,
        }
    }

    /// The window and the threshold after a round of `segments` that showed `rtt`, in segments.
    fn round(segments: u64, ssthresh: u64, rtt: Duration) -> (u64, u64) {
        let mut limits = Limits { ssthresh: MSS * ssthresh, ..Limits::initial(MSS * segments) };
        vegas().judge(&ack(1), BASE, rtt, &mut limits);
        (limits.cwnd.whole(MSS), limits.ssthresh.whole(MSS))
    }

    /// 40 segments and 5 ms more than 100 ms are 2 segments, 10 ms are 4.
    #[test]
    fn the_window_moves_by_a_segment_below_alpha_and_above_beta() {
        for (millis, after) in [(104, 41), (105, 40), (110, 40), (112, 40), (113, 39)] {
            assert_eq!(round(40, 20, Duration::from_millis(millis)).0, after, "{millis} ms");
        }
    }

    /// 40 segments at 125 ms are 32 of 100 ms.
    #[test]
    fn slow_start_ends_at_the_window_that_the_rate_calls_for() {
        assert_eq!(round(40, 1_000, Duration::from_millis(125)), (33, 33));
        assert_eq!(round(40, 1_000, Duration::from_millis(104)), (41, 1_000));
    }

    #[test]
    fn the_threshold_follows_at_three_quarters_of_the_window() {
        assert_eq!(round(40, 20, Duration::from_millis(105)).1, 30);
    }

    #[test]
    fn a_round_of_two_samples_grows_as_reno_does_and_one_of_three_is_judged() {
        for (samples, grown) in [(2, 0), (3, 1)] {
            let mut vegas = vegas();
            let mut limits = Limits { ssthresh: MSS * 20, ..Limits::initial(MSS * 40) };
            for nth in 1..=samples {
                let snd_una = if nth == samples { 1 } else { 0 };
                vegas.on_ack(&Ack { snd_una, rtt: Some(BASE), ..ack(1) }, &mut limits);
            }
            assert_eq!(limits.cwnd.whole(MSS), 40 + grown, "{samples}");
        }
    }

    #[test]
    fn a_loss_halves_the_window_in_whole_segments() {
        let mut limits = Limits::initial(MSS * 41);
        build(&Arguments::defaults(DESCRIPTION.parameters)).on_congestion(&loss(41), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 20);
    }
}
