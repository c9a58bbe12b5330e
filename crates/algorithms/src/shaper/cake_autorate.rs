//! The rules of cake-autorate: a shaper's rate from the delay of sparse probes (Lynx and others: cake-autorate, 3.2).
//!
//! Probes go to several reflectors in turn. Where most of the latest ones came late, the rate falls; where none did, and
//! the shaper is busy, it rises; where the shaper is idle, it returns to a base rate. Three rates are given by hand.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{Observed, RateController};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cake-autorate",
    summary: "the rate falls where probes come late, and rises where the shaper is busy and they do not",
    source: "cake-autorate 3.2",
    colour: "#b07aa1",
    parameters: &[
        Parameter {
            name: "min",
            help: "the lowest rate, min_ul_shaper_rate_kbps",
            default: Value::Rate(Rate::from_bps(5_000_000)),
            range: Range::Any,
        },
        Parameter {
            name: "base",
            help: "the rate to begin with and to return to, base_ul_shaper_rate_kbps",
            default: Value::Rate(Rate::from_bps(20_000_000)),
            range: Range::Any,
        },
        Parameter {
            name: "max",
            help: "the highest rate, max_ul_shaper_rate_kbps",
            default: Value::Rate(Rate::from_bps(35_000_000)),
            range: Range::Any,
        },
        Parameter {
            name: "late",
            help: "how much later than usual a probe is late, ul_owd_delta_delay_thr_ms",
            default: Value::Duration(Duration::from_millis(30)),
            range: Range::Any,
        },
    ],
};

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RateController> {
    let bps = |name| arguments.rate(name).as_bps_f64().max(8_000.0);
    let (min, max) = (bps("min"), bps("max").max(bps("min")));
    Box::new(CakeAutorate {
        min,
        base: bps("base").clamp(min, max),
        max,
        late_ms: arguments.duration("late").as_millis_f64(),
        rate: bps("base").clamp(min, max),
        baseline_ms: None,
        delta_ms: 0.0,
        delayed: VecDeque::new(),
        monitored: (Duration::ZERO, Bytes::ZERO),
        achieved: 0.0,
        last_bufferbloat: None,
        last_decay: None,
    })
}

/// Names are the script's; rates are in bits per second.
#[derive(Debug, Clone)]
struct CakeAutorate {
    min: f64,
    base: f64,
    max: f64,
    /// `owd_delta_delay_thr_ms`.
    late_ms: f64,
    rate: f64,
    baseline_ms: Option<f64>,
    /// The average by which probes come later than the baseline.
    delta_ms: f64,
    /// Whether each of the latest probes was late.
    delayed: VecDeque<bool>,
    /// Since when the achieved rate is measured, and what was sent since.
    monitored: (Duration, Bytes),
    achieved: f64,
    last_bufferbloat: Option<Instant>,
    last_decay: Option<Instant>,
}

impl CakeAutorate {
    fn measure(&mut self, seen: &Observed) {
        self.monitored.0 += seen.elapsed;
        self.monitored.1 += seen.sent;
        if self.monitored.0 >= MONITOR_INTERVAL {
            self.achieved = Rate::of(self.monitored.1, self.monitored.0).as_bps_f64();
            self.monitored = (Duration::ZERO, Bytes::ZERO);
        }
    }

    /// A probe has come back. Of a round-trip time half is taken for the way there.
    fn on_probe(&mut self, rtt: Duration) {
        let owd = rtt.as_millis_f64() / 2.0;
        let baseline = self.baseline_ms.unwrap_or(owd);
        let alpha = if owd >= baseline { ALPHA_BASELINE_INCREASE } else { ALPHA_BASELINE_DECREASE };
        let baseline = (1.0 - alpha) * baseline + alpha * owd;
        self.baseline_ms = Some(baseline);
        let delta = owd - baseline;
        self.delta_ms = (1.0 - ALPHA_DELTA_EWMA) * self.delta_ms + ALPHA_DELTA_EWMA * delta;
        if self.delayed.len() == DETECTION_WINDOW {
            self.delayed.pop_front();
        }
        self.delayed.push_back(delta > self.threshold(self.late_ms));
    }

    /// `milliseconds`, and the time that the largest packet takes at the rate.
    fn threshold(&self, milliseconds: f64) -> f64 {
        milliseconds + LARGEST_PACKET_BITS / self.rate * 1e3
    }

    /// How far the average lies from one threshold to another, from zero to one.
    fn between(&self, from: f64, to: f64) -> f64 {
        let (from, to) = (self.threshold(from), self.threshold(to));
        if to <= from { 1.0 } else { ((self.delta_ms - from) / (to - from)).clamp(0.0, 1.0) }
    }

    fn adjust(&mut self, now: Instant) {
        let passed =
            |since: Option<Instant>, period| since.is_none_or(|at| now.saturating_since(at) > period);
        let is_delayed = self.delayed.iter().filter(|late| **late).count() >= DETECTION_THRESHOLD;
        if is_delayed {
            if passed(self.last_bufferbloat, BUFFERBLOAT_REFRACTORY) {
                let share = self.between(self.late_ms, MAX_ADJUST_DOWN_MS);
                self.rate *= MIN_ADJUST_DOWN - share * (MIN_ADJUST_DOWN - MAX_ADJUST_DOWN);
                self.last_bufferbloat = Some(now);
            }
        } else if self.achieved > HIGH_LOAD * self.rate {
            if passed(self.last_bufferbloat, BUFFERBLOAT_REFRACTORY) {
                let share = self.between(MAX_ADJUST_UP_MS, self.late_ms);
                self.rate *= MAX_ADJUST_UP - share * (MAX_ADJUST_UP - MIN_ADJUST_UP);
            }
        } else if passed(self.last_decay, DECAY_REFRACTORY) {
            self.rate = if self.rate > self.base {
                (self.rate * ADJUST_DOWN_LOW).max(self.base)
            } else {
                (self.rate * ADJUST_UP_LOW).min(self.base)
            };
            self.last_decay = Some(now);
        }
        self.rate = self.rate.clamp(self.min, self.max);
    }
}

impl RateController for CakeAutorate {
    fn initial(&self) -> Rate {
        Rate::from_bps(self.rate as u64)
    }

    fn interval(&self) -> Duration {
        PROBE_INTERVAL
    }

    fn on_interval(&mut self, seen: &Observed) -> Rate {
        self.measure(seen);
        // The script looks whenever a reflector answers.
        if let Some(rtt) = seen.probe_rtt {
            self.on_probe(rtt);
            self.adjust(seen.now);
        }
        Rate::from_bps(self.rate as u64)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("shaper_rate_bps", self.rate);
        out.value("achieved_bps", self.achieved);
        out.value("probe_delay_ms", self.delta_ms);
    }
}

// The values of its `defaults.sh`.
/// `reflector_ping_interval_s` over `no_pingers`.
const PROBE_INTERVAL: Duration = Duration::from_millis(50);
const MONITOR_INTERVAL: Duration = Duration::from_millis(200);
const ALPHA_BASELINE_INCREASE: f64 = 0.001;
const ALPHA_BASELINE_DECREASE: f64 = 0.9;
const ALPHA_DELTA_EWMA: f64 = 0.095;
const DETECTION_WINDOW: usize = 6;
const DETECTION_THRESHOLD: usize = 3;
const MIN_ADJUST_DOWN: f64 = 0.99;
const MAX_ADJUST_DOWN: f64 = 0.75;
const MIN_ADJUST_UP: f64 = 1.0;
const MAX_ADJUST_UP: f64 = 1.04;
const ADJUST_DOWN_LOW: f64 = 0.99;
const ADJUST_UP_LOW: f64 = 1.01;
const HIGH_LOAD: f64 = 0.75;
const BUFFERBLOAT_REFRACTORY: Duration = Duration::from_millis(300);
const DECAY_REFRACTORY: Duration = Duration::from_secs(1);
/// `avg_owd_delta_max_adjust_up_thr_ms`.
const MAX_ADJUST_UP_MS: f64 = 10.0;
/// `avg_owd_delta_max_adjust_down_thr_ms`.
const MAX_ADJUST_DOWN_MS: f64 = 60.0;
const LARGEST_PACKET_BITS: f64 = 1_500.0 * 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{AlgorithmSpec, Role};

    fn controller() -> Box<dyn RateController> {
        AlgorithmSpec::parse(Role::Shaper, "cake-autorate").unwrap().build_shaper()
    }

    /// So many intervals in which this share of the rate was sent and each probe took so long.
    fn after(intervals: u64, load: f64, rtt_ms: u64) -> f64 {
        let mut controller = controller();
        let mut rate = controller.initial();
        let elapsed = controller.interval();
        for number in 0..intervals {
            // The baseline is that of the first probes.
            let rtt = Duration::from_millis(if number < 20 { 40 } else { rtt_ms });
            rate = controller.on_interval(&Observed {
                now: Instant::ZERO + elapsed * number,
                elapsed,
                sent: rate.scaled(load).amount_in(elapsed),
                delivered: Bytes::ZERO,
                in_flight: Bytes::ZERO,
                unacknowledged: Bytes::ZERO,
                base_rtt: None,
                rtt: None,
                probe_rtt: Some(rtt),
            });
        }
        rate.as_bps_f64() / 1e6
    }

    #[test]
    fn a_busy_shaper_rises_to_its_highest_rate_where_no_probe_is_late() {
        assert!((after(100, 1.0, 40) - 35.0).abs() < 1e-3);
    }

    #[test]
    fn late_probes_lower_the_rate_to_its_lowest() {
        assert!((after(400, 1.0, 400) - 5.0).abs() < 1e-3);
    }

    #[test]
    fn an_idle_shaper_stays_at_its_base() {
        assert!((after(400, 0.1, 40) - 20.0).abs() < 1e-3);
    }
}
