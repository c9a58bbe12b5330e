//! Vegas: keeps between `alpha` and `beta` segments of its own in the queue (Brakmo and Peterson, 1995),
//! as Linux 2.6 does it.

use suimon_units::{Bytes, Duration};

use super::reno::AdditiveIncrease;
use super::window::{scaled_down, slow_start_through_ssthresh};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// What users see of it.
pub const DESCRIPTION: Description = Description {
    name: "vegas",
    summary: "holds its own backlog between alpha and beta segments, judged once per RTT",
    source: "Brakmo and Peterson 1995; Linux 2.6.16",
    colour: "#59a14f",
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

/// Linux's threshold once Vegas has left slow start, in segments: low enough never to come back to it.
const SSTHRESH_AFTER_SLOW_START: u64 = 2;

#[derive(Debug)]
struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Smallest RTT since the sender last started from nothing in flight.
    base_rtt: Option<Duration>,
    /// Smallest RTT of this round, and how many there were.
    min_rtt: Option<Duration>,
    samples: u64,
    /// What was sent in the round before this one: from `beg_snd_una` to `beg_snd_nxt`.
    beg_snd_una: u64,
    beg_snd_nxt: u64,
    /// The window when this round began, in segments.
    beg_snd_cwnd: u64,
    recovering: bool,
    /// The last round's estimate of the backlog, in segments.
    diff: f64,
    /// What takes over where samples are too few.
    reno: AdditiveIncrease,
}

impl Vegas {
    /// A new round begins, and what was measured in the one before is void.
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

    /// What was in flight when this round began is acknowledged: judge it, and begin the next one.
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
        let after_slow_start = ack.mss * SSTHRESH_AFTER_SLOW_START;
        if self.diff > self.gamma && limits.ssthresh > after_slow_start {
            limits.ssthresh = after_slow_start;
            // One segment more than the rate calls for, since rounding down took up to one.
            limits.cwnd = limits.cwnd.min(ack.mss * (target_cwnd + 1));
        } else if limits.cwnd <= limits.ssthresh {
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
            if next_snd_cwnd < snd_cwnd {
                limits.cwnd -= ack.mss;
            } else if next_snd_cwnd > snd_cwnd && ack.cwnd_limited {
                limits.cwnd += ack.mss;
            }
        }
        limits.cwnd = limits.cwnd.max(ack.mss * 2);
    }

    fn slow_start(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.cwnd_limited {
            slow_start_through_ssthresh(ack, limits);
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
