//! TCP Illinois: growth and cut follow the queueing delay, fast and gentle where it is short (Liu, Başar and Srikant 2008,
//! as Linux has it).

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
    name: "illinois",
    summary: "grows by up to ten segments a round trip and gives up an eighth where the queue is short",
    source: "Liu, Basar, Srikant 2008; Linux 6.18",
    colour: "#b07aa1",
    parameters: &[
        Parameter {
            name: "alpha_max",
            help: "segments of growth a round trip where the queue is short",
            default: Value::Number(10.0),
            range: Range::Between(1.0, 100.0),
        },
        Parameter {
            name: "win_thresh",
            help: "segments below which it is Reno",
            default: Value::Count(15),
            range: Range::Between(1.0, 10_000.0),
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Illinois::new(arguments.number("alpha_max"), arguments.count("win_thresh")))
}

/// The least growth, and the bounds of the cut (section 3 of the paper; Linux's `ALPHA_MIN`, `BETA_MIN`, `BETA_MAX`).
const ALPHA_MIN: f64 = 0.3;
const BETA: (f64, f64) = (0.125, 0.5);
/// Round trips with a short queue before growth is the largest again (Linux's `theta`).
const THETA: u32 = 5;

#[derive(Debug, Clone)]
struct Illinois {
    alpha_max: f64,
    win_thresh: u64,
    alpha: f64,
    beta: f64,
    base_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Samples of this round, which ends once `end` is acknowledged.
    sum: Duration,
    samples: u64,
    end: u64,
    /// The queue was long once, and so many rounds with a short one followed.
    was_long: bool,
    rounds_short: u32,
    increase: AdditiveIncrease,
}

impl Illinois {
    fn new(alpha_max: f64, win_thresh: u64) -> Self {
        Self {
            alpha_max,
            win_thresh,
            alpha: alpha_max,
            beta: BETA.1,
            base_rtt: None,
            max_rtt: Duration::ZERO,
            sum: Duration::ZERO,
            samples: 0,
            end: 0,
            was_long: false,
            rounds_short: 0,
            increase: AdditiveIncrease::default(),
        }
    }

    fn begin_round(&mut self, snd_nxt: u64) {
        (self.end, self.sum, self.samples) = (snd_nxt, Duration::ZERO, 0);
    }

    fn end_round(&mut self, ack: &Ack, limits: &Limits) {
        if limits.cwnd.whole(ack.mss) < self.win_thresh {
            (self.alpha, self.beta) = (1.0, BETA.1);
        } else if let Some(base) = self.base_rtt.filter(|_| self.samples > 0) {
            let longest = self.max_rtt.saturating_sub(base).as_secs_f64();
            let mean = (self.sum / self.samples).saturating_sub(base).as_secs_f64();
            self.alpha = self.alpha(mean, longest);
            self.beta = beta(mean, longest);
        }
        self.begin_round(ack.snd_nxt);
    }

    /// Growth in segments a round trip, of the mean and the longest queueing delay (equation 3 of the paper).
    fn alpha(&mut self, mean: f64, longest: f64) -> f64 {
        let low = longest / 100.0;
        if mean <= low {
            if !self.was_long {
                return self.alpha_max;
            }
            self.rounds_short += 1;
            if self.rounds_short < THETA {
                return self.alpha;
            }
            (self.rounds_short, self.was_long) = (0, false);
            return self.alpha_max;
        }
        self.was_long = true;
        let (beyond, range) = (mean - low, longest - low);
        range * self.alpha_max / (range + beyond * (self.alpha_max - ALPHA_MIN) / ALPHA_MIN)
    }
}

/// The share of the window that a loss costs (equation 4): a line between a tenth and four fifths of the longest delay.
fn beta(mean: f64, longest: f64) -> f64 {
    let (low, high) = (longest / 10.0, longest * 0.8);
    if mean <= low {
        BETA.0
    } else if mean >= high {
        BETA.1
    } else {
        BETA.0 + (BETA.1 - BETA.0) * (mean - low) / (high - low)
    }
}

impl CongestionControl for Illinois {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        if ack.in_recovery {
            return;
        }
        if ack.snd_una > self.end {
            self.end_round(ack, limits);
        }
        if ack.cwnd_limited && ack.newly_acked > Bytes::ZERO && slow_start(ack, limits) {
            self.increase.apply_times(self.alpha, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        limits.ssthresh = scaled_down(limits, 1.0 - self.beta, event.mss);
        if event.kind == CongestionKind::Timeout {
            (self.alpha, self.beta, self.rounds_short, self.was_long) = (1.0, BETA.1, 0, false);
            self.begin_round(event.snd_nxt);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("alpha_segments", self.alpha);
        out.value("beta", self.beta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, loss};

    fn illinois() -> Illinois {
        Illinois::new(10.0, 15)
    }

    /// The paper's kappas give 10 at one hundredth of the longest delay and 0.3 at all of it.
    #[test]
    fn growth_falls_from_ten_segments_to_three_tenths_as_the_queue_grows() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        near(illinois().alpha(0.001, 0.1), 10.0);
        near(illinois().alpha(0.1, 0.1), 0.3);
        // Half of the range: 1 / (1 + 0.5 * 9.7 / 0.3) of ten.
        near(illinois().alpha(0.0505, 0.1), 10.0 / (1.0 + 0.5 * 9.7 / 0.3));
    }

    #[test]
    fn a_cut_grows_on_a_line_from_an_eighth_to_a_half() {
        for (mean, expected) in [(0.010, 0.125), (0.045, 0.3125), (0.080, 0.5), (0.1, 0.5)] {
            assert!((beta(mean, 0.1) - expected).abs() < 1e-9, "{mean}");
        }
    }

    #[test]
    fn after_a_long_queue_growth_waits_for_five_good_rounds() {
        let mut illinois = illinois();
        illinois.alpha = illinois.alpha(0.1, 0.1);
        let found: Vec<f64> = (0..6)
            .map(|_| {
                illinois.alpha = illinois.alpha(0.0, 0.1);
                illinois.alpha
            })
            .collect();
        assert!(found[..4].iter().all(|alpha| (alpha - 0.3).abs() < 1e-9), "{found:?}");
        assert_eq!(found[4..], [10.0, 10.0]);
    }

    #[test]
    fn a_loss_costs_its_share_of_the_window_in_whole_segments() {
        let mut illinois = illinois();
        illinois.beta = 0.125;
        let mut limits = Limits::initial(MSS * 100);
        illinois.on_congestion(&loss(100), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 87);
    }
}
