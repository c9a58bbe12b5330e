//! Adaptive RED (Floyd, Gummadi, Shenker: Adaptive RED: An Algorithm for Increasing the Robustness of
//! RED's Active Queue Management, ICSI, 2001): RED whose `max_p` follows the queue.

use suimon_units::{Bytes, Duration, Instant, Probability};

use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::{Arrival, Verdict};
use super::red::{self, Red};
use super::{Backlog, Buffer};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "ared",
    summary: "RED that adapts max_p, so that the average queue stays in the middle of its thresholds",
    source: "Floyd, Gummadi, Shenker: Adaptive RED, 2001",
    colour: "#59a14f",
    parameters: &[
        red::MODE,
        red::MIN_TH,
        red::MAX_TH,
        Parameter { help: "probability of a mark at max_th to begin with", ..red::MAX_P },
        Parameter { default: Value::Number(0.0), ..red::W_Q },
        Parameter {
            name: "interval",
            help: "least time between two changes of max_p",
            default: Value::Duration(Duration::from_millis(500)),
            range: Range::Any,
        },
        Parameter {
            name: "alpha",
            help: "added to max_p above the target, but no more than a quarter of max_p",
            default: Value::Number(0.01),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "beta",
            help: "factor of max_p below the target",
            default: Value::Number(0.9),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "bottom",
            help: "max_p is not lowered below this",
            default: Value::Number(0.01),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "top",
            help: "max_p is not raised above this",
            default: Value::Number(0.5),
            range: Range::Between(0.0, 1.0),
        },
        red::GENTLE,
        early::ECN,
        red::WAIT,
        red::WEIGH_SIZES,
        red::MEAN_PACKET,
    ],
};

/// RED's probability with a slope that keeps the average in the middle of the thresholds.
#[derive(Debug, Clone)]
pub struct AdaptiveRed {
    red: Red,
    interval: Duration,
    alpha: f64,
    beta: f64,
    bottom: f64,
    top: f64,
    last_change: Instant,
}

impl AdaptiveRed {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        Self {
            red: Red::new(arguments, buffer),
            interval: arguments.duration("interval"),
            alpha: arguments.number("alpha"),
            beta: arguments.number("beta"),
            bottom: arguments.number("bottom"),
            top: arguments.number("top"),
            last_change: Instant::ZERO,
        }
    }

    /// Fig. 1 of the paper: additive increase above the target range, multiplicative decrease below it.
    fn adapt(&mut self, now: Instant) {
        if now.saturating_since(self.last_change) < self.interval {
            return;
        }
        let avg = self.red.average();
        let thresholds = self.red.thresholds_mut();
        // §3: the target lies within [min_th + 0.4 (max_th - min_th), min_th + 0.6 (max_th - min_th)].
        let margin = 0.4 * (thresholds.max_th - thresholds.min_th);
        let max_p = thresholds.max_p.get();
        let changed = if avg > thresholds.max_th - margin && max_p < self.top {
            (max_p + self.alpha.min(max_p / 4.0)).min(self.top)
        } else if avg < thresholds.min_th + margin && max_p > self.bottom {
            (max_p * self.beta).max(self.bottom)
        } else {
            return;
        };
        thresholds.max_p = Probability::clamped(changed);
        self.last_change = now;
    }
}

impl EarlyDetection for AdaptiveRed {
    fn advise(&mut self, arrival: &Arrival, _random: &mut RandomStream) -> Advice {
        self.red.on_arrival(arrival);
        self.adapt(arrival.now);
        self.red.advice(arrival)
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        self.red.on_verdict(arrival, verdict);
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.red.on_departure(now, size, left);
    }

    fn is_short(&self, backlog: Backlog) -> bool {
        self.red.is_short(backlog)
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.red.probe(out);
        out.value("max_p", self.red.thresholds().max_p.get());
    }
}

/// Adaptive RED for a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<AdaptiveRed> {
    Early {
        detection: AdaptiveRed::new(arguments, buffer),
        spacing: red::spacing(arguments),
        ecn: arguments.flag("ecn"),
        marks_departures: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::arguments;

    /// Thresholds of 40 and 120 kB, every arrival is the average: the target is 72 to 88 kB.
    fn ared(settings: &str) -> AdaptiveRed {
        let settings = format!(":min_th=40kB:max_th=120kB:w_q=1{settings}");
        AdaptiveRed::new(&arguments(&DESCRIPTION, &settings), Buffer::Unbounded)
    }

    /// `max_p` after an arrival at `tenths` of a second that finds `bytes` waiting.
    fn max_p(ared: &mut AdaptiveRed, tenths: u64, bytes: u64) -> f64 {
        let now = Instant::ZERO + Duration::from_millis(100 * tenths);
        let backlog = Backlog { packets: bytes.div_ceil(1_000), bytes: Bytes::new(bytes) };
        let arrival = Arrival { backlog, ..Arrival::at_empty_queue(now) };
        // The first arrival of a queue counts as after idle time, which clears the average.
        ared.red.on_departure(now, Bytes::ZERO, backlog);
        ared.advise(&arrival, &mut RandomStream::new(1, ""));
        ared.red.thresholds().max_p.get()
    }

    fn assert_close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-12, "{left} {right}");
    }

    #[test]
    fn within_the_middle_fifth_of_the_thresholds_nothing_changes() {
        for bytes in [72_000, 80_000, 88_000] {
            assert_close(max_p(&mut ared(""), 6, bytes), 0.1);
        }
        assert_close(max_p(&mut ared(""), 6, 88_001), 0.11);
        assert_close(max_p(&mut ared(""), 6, 71_999), 0.09);
    }

    #[test]
    fn above_the_target_max_p_grows_by_a_hundredth_or_a_quarter_and_below_it_loses_a_tenth() {
        let mut ared = ared(":max_p=0.02");
        // 0.02 / 4 < 0.01, then 0.025 / 4 and so on; from 0.04 on the hundredth is less.
        let mut expected: f64 = 0.02;
        for step in 1..=6 {
            expected += f64::min(0.01, expected / 4.0);
            assert_close(max_p(&mut ared, 5 * step, 100_000), expected);
        }
        for step in 7..=9 {
            expected *= 0.9;
            assert_close(max_p(&mut ared, 5 * step, 50_000), expected);
        }
    }

    #[test]
    fn changes_are_half_a_second_apart_and_stay_between_bottom_and_top() {
        let mut quick = ared("");
        assert_close(max_p(&mut quick, 4, 100_000), 0.1);
        assert_close(max_p(&mut quick, 5, 100_000), 0.11);
        assert_close(max_p(&mut quick, 9, 100_000), 0.11);
        assert_close(max_p(&mut quick, 10, 100_000), 0.12);
        let mut long = ared("");
        (1..200).for_each(|step| _ = max_p(&mut long, 5 * step, 100_000));
        assert_close(max_p(&mut long, 1_000, 100_000), 0.5);
        (201..400).for_each(|step| _ = max_p(&mut long, 5 * step, 50_000));
        assert_close(max_p(&mut long, 2_000, 50_000), 0.01);
    }

    #[test]
    fn the_probability_has_the_slope_that_max_p_gives_it() {
        let mut ared = ared("");
        let backlog = Backlog { packets: 100, bytes: Bytes::new(100_000) };
        max_p(&mut ared, 5, 100_000);
        let later = Instant::ZERO + Duration::from_millis(600);
        let arrival = Arrival { backlog, ..Arrival::at_empty_queue(later) };
        // 0.11 (100 - 40) / (120 - 40)
        let Advice::Choose(p) = ared.advise(&arrival, &mut RandomStream::new(1, "")) else { panic!() };
        assert_close(p.get(), 0.0825);
    }
}
