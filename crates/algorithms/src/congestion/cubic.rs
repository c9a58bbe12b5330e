//! CUBIC: the window grows as a cubic function of the time since the last loss (RFC 9438).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::reno::slow_start;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cubic",
    summary: "cubic growth around the window of the last loss, at least as fast as Reno",
    source: "RFC 9438",
    colour: "#f28e2b",
    parameters: &[
        Parameter {
            name: "beta",
            help: "window after a loss, relative to the window before (beta_cubic)",
            default: Value::Number(0.7),
            range: Range::Between(0.1, 0.99),
        },
        Parameter {
            name: "c",
            help: "steepness of the cubic curve, in segments per second cubed (C)",
            default: Value::Number(0.4),
            range: Range::Between(0.001, 1000.0),
        },
        Parameter {
            name: "fast_convergence",
            help: "aim lower where the window did not get back to that of the loss before",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "tcp_friendly",
            help: "grow at least as Reno would",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Cubic {
        beta: arguments.number("beta"),
        c: arguments.number("c"),
        fast_convergence: arguments.flag("fast_convergence"),
        tcp_friendly: arguments.flag("tcp_friendly"),
        curve: Curve::default(),
        undo: None,
        srtt: None,
        last_ack: None,
    })
}

#[derive(Debug, Clone)]
struct Cubic {
    beta: f64,
    c: f64,
    fast_convergence: bool,
    tcp_friendly: bool,
    curve: Curve,
    /// The curve before the last congestion event, should that turn out spurious.
    undo: Option<Curve>,
    srtt: Option<Duration>,
    last_ack: Option<LastAck>,
}

/// The state that a congestion event changes. Windows are in segments.
#[derive(Debug, Clone, Default)]
struct Curve {
    /// The window before the last reduction, unset before the first and after a timeout.
    w_max: Option<f64>,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Growth not yet worth a whole segment.
    fraction: f64,
}

/// The current congestion avoidance stage.
#[derive(Debug, Clone)]
struct Epoch {
    t_epoch: Instant,
    k: f64,
    w_max: f64,
    w_est: f64,
}

#[derive(Debug, Clone)]
struct LastAck {
    at: Instant,
    /// The ACK left nothing in flight.
    drained: bool,
}

impl Cubic {
    /// RFC 9438 §4.2, Fig. 1.
    fn w_cubic(&self, epoch: &Epoch, t: f64) -> f64 {
        let offset = t - epoch.k;
        self.c * offset * offset * offset + epoch.w_max
    }

    /// RFC 9438 §4.2, Fig. 2. Without a `w_max`, or beyond it, the stage starts convex from here (§4.8,
    /// §4.10).
    fn begin_epoch(&self, now: Instant, cwnd: f64) -> Epoch {
        let w_max = self.curve.w_max.unwrap_or(cwnd).max(cwnd);
        Epoch { t_epoch: now, k: libm::cbrt((w_max - cwnd) / self.c), w_max, w_est: cwnd }
    }

    /// Growth per RTT of the Reno-friendly estimate (RFC 9438 §4.3): below `cwnd_prior` so much that the
    /// mean equals Reno's in spite of the smaller reduction, and Reno's own from there on.
    fn alpha(&self, w_est: f64) -> f64 {
        if w_est < self.curve.cwnd_prior { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) } else { 1.0 }
    }

    /// Shifts the stage by the time in which the window was not put to use (RFC 9438 §5.8).
    fn leave_out_unused_time(&mut self, ack: &Ack) {
        let last = self.last_ack.replace(LastAck { at: ack.now, drained: ack.flight_size == Bytes::ZERO });
        let (Some(last), Some(epoch)) = (last, &mut self.curve.epoch) else { return };
        let since = ack.now.saturating_since(last.at);
        if !ack.cwnd_limited {
            epoch.t_epoch += since;
        } else if last.drained {
            let rtt = ack.rtt.or(self.srtt).unwrap_or(Duration::ZERO);
            epoch.t_epoch += since.saturating_sub(rtt);
        }
    }

    fn update_srtt(&mut self, rtt: Duration) {
        // RFC 6298 §2.3: alpha = 1/8.
        self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
    }

    fn avoid_congestion(&mut self, ack: &Ack, limits: &mut Limits) {
        let mss = ack.mss.as_f64();
        let cwnd = limits.cwnd.as_f64() / mss + self.curve.fraction;
        let segments_acked = ack.avoidance_credit().as_f64() / mss;
        let mut epoch = self.curve.epoch.take().unwrap_or_else(|| self.begin_epoch(ack.now, cwnd));
        // RFC 9438 §4.3, Fig. 4.
        epoch.w_est += self.alpha(epoch.w_est) * segments_acked / cwnd;
        let t = ack.now.saturating_since(epoch.t_epoch).as_secs_f64();
        let grown = if self.tcp_friendly && self.w_cubic(&epoch, t) < epoch.w_est {
            epoch.w_est.max(cwnd)
        } else {
            // RFC 9438 §4.2: where the curve will be in one RTT, but never growing as fast as slow start.
            let rtt = self.srtt.unwrap_or(Duration::ZERO).as_secs_f64();
            let target = self.w_cubic(&epoch, t + rtt).clamp(cwnd, 1.5 * cwnd);
            // RFC 9438 §4.4 and §4.5, for every segment that the ACK covers.
            (cwnd + segments_acked * (target - cwnd) / cwnd).min(target)
        };
        let whole = (grown - limits.cwnd.as_f64() / mss).max(0.0);
        limits.cwnd += ack.mss * whole as u64;
        self.curve.fraction = whole - libm::floor(whole);
        self.curve.epoch = Some(epoch);
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.update_srtt(rtt);
        }
        self.leave_out_unused_time(ack);
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if slow_start(ack, limits) {
            self.avoid_congestion(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let cwnd = limits.cwnd.as_f64() / event.mss.as_f64();
        // RFC 9438 §4.7, Fig. 6, and §4.8: a timeout has the next stage start from where it starts.
        let w_max = match self.curve.w_max {
            _ if event.kind == CongestionKind::Timeout => None,
            Some(w_max) if self.fast_convergence && cwnd < w_max => Some(cwnd * (1.0 + self.beta) / 2.0),
            _ => Some(cwnd),
        };
        let next = Curve { w_max, cwnd_prior: cwnd, epoch: None, fraction: 0.0 };
        self.undo = Some(core::mem::replace(&mut self.curve, next));
        // RFC 9438 §4.6, Fig. 5.
        limits.ssthresh = Bytes::from_f64(event.flight_size.as_f64() * self.beta).max(event.mss * 2);
    }

    fn on_spurious(&mut self, _now: Instant, _limits: &mut Limits) {
        // RFC 9438 §4.9.
        if let Some(curve) = self.undo.take() {
            self.curve = curve;
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        if let Some(w_max) = self.curve.w_max {
            out.value("w_max_segments", w_max);
        }
        if let Some(epoch) = &self.curve.epoch {
            out.value("k_s", epoch.k);
            out.value("w_est_segments", epoch.w_est);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const RTT: Duration = Duration::from_millis(100);

    fn cubic(settings: &[(&'static str, Value)]) -> Box<dyn CongestionControl> {
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        for (name, value) in settings {
            arguments.set(name, *value);
        }
        build(&arguments)
    }

    fn segments(limits: &Limits) -> f64 {
        limits.cwnd.as_f64() / MSS.as_f64()
    }

    /// Loses at `cwnd` segments, goes where the endpoint would go, and gives the limits in avoidance.
    fn after_loss(cubic: &mut dyn CongestionControl, cwnd: u64) -> Limits {
        let mut limits = Limits::initial(MSS * cwnd);
        cubic.on_congestion(&loss(cwnd), &mut limits);
        limits.cwnd = limits.ssthresh;
        limits
    }

    /// Acknowledges a window per RTT from `from`, segment by segment, for `rounds`; gives the time after.
    fn rounds(cubic: &mut dyn CongestionControl, limits: &mut Limits, from: Instant, rounds: u64) -> Instant {
        let mut now = from;
        for _ in 0..rounds {
            let window = limits.cwnd.whole(MSS);
            for _ in 0..window {
                now += RTT / window;
                cubic.on_ack(&Ack { now, rtt: Some(RTT), ..ack(1) }, limits);
            }
        }
        now
    }

    #[test]
    fn the_window_follows_the_closed_form() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = after_loss(&mut *cubic, 100);
        assert!((segments(&limits) - 70.0).abs() < 0.01);
        let k = libm::pow(100.0 * 0.3 / 0.4, 1.0 / 3.0);
        let mut now = Instant::ZERO + RTT;
        let start = now;
        for round in 0..80 {
            now = rounds(&mut *cubic, &mut limits, now, 1);
            let t = now.saturating_since(start).as_secs_f64();
            let w_cubic = 0.4 * (t - k) * (t - k) * (t - k) + 100.0;
            let slope = 1.2 * (t - k) * (t - k);
            // One segment for whole-segment growth, half an RTT of slope for growth spread over the RTT.
            let tolerance = 1.0 + slope * RTT.as_secs_f64();
            assert!((segments(&limits) - w_cubic).abs() <= tolerance, "{round}: {} {w_cubic}", limits.cwnd);
        }
        assert!(segments(&limits) > 115.0, "past the plateau");
    }

    #[test]
    fn the_plateau_is_reached_after_k() {
        let mut cubic = cubic(&[]);
        let mut limits = after_loss(&mut *cubic, 100);
        rounds(&mut *cubic, &mut limits, Instant::ZERO, 1);
        let mut values = Vec::new();
        cubic.probe(&mut values);
        let k = values.iter().find(|(name, _)| *name == "k_s").unwrap().1;
        assert!((0.4 * k * k * k - 30.0).abs() < 0.01, "C K^3 = W_max (1 - beta): {k}");
    }

    #[test]
    fn a_flat_curve_leaves_growth_to_the_reno_friendly_estimate() {
        let mut cubic = cubic(&[("c", Value::Number(0.001))]);
        let mut limits = after_loss(&mut *cubic, 100);
        let now = rounds(&mut *cubic, &mut limits, Instant::ZERO, 50);
        // alpha = 3 * 0.3 / 1.7 = 0.529 per RTT up to the window of the loss, 1 from there.
        assert!((segments(&limits) - (70.0 + 50.0 * 0.529)).abs() < 1.5, "{}", limits.cwnd);
        rounds(&mut *cubic, &mut limits, now, 50);
        let rounds_at_one = 100.0 - 30.0 / 0.529;
        assert!((segments(&limits) - (100.0 + rounds_at_one)).abs() < 2.0, "{}", limits.cwnd);
    }

    #[test]
    fn fast_convergence_aims_lower_only_below_w_max() {
        let aim = |second| {
            let mut cubic = cubic(&[]);
            after_loss(&mut *cubic, 100);
            after_loss(&mut *cubic, second);
            let mut values = Vec::new();
            cubic.probe(&mut values);
            values[0].1
        };
        assert_eq!(aim(99), 99.0 * 0.85);
        assert_eq!(aim(100), 100.0);
        assert_eq!(aim(101), 101.0);
    }

    #[test]
    fn after_a_timeout_the_stage_starts_convex_where_it_starts() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = Limits::initial(MSS * 100);
        let timeout = Congestion { kind: CongestionKind::Timeout, ..loss(100) };
        cubic.on_congestion(&timeout, &mut limits);
        assert_eq!(limits.ssthresh, MSS * 70);
        limits.cwnd = limits.ssthresh;
        rounds(&mut *cubic, &mut limits, Instant::ZERO, 20);
        // 0.4 t^3 in two seconds.
        assert!((segments(&limits) - 73.2).abs() <= 1.5, "{}", limits.cwnd);
    }

    #[test]
    fn growth_stays_below_half_a_window_per_rtt() {
        let mut cubic = cubic(&[("c", Value::Number(1000.0))]);
        let mut limits = after_loss(&mut *cubic, 100);
        for round in 1..20 {
            let before = segments(&limits);
            rounds(&mut *cubic, &mut limits, Instant::ZERO + RTT * (20 * round), 1);
            // Half a segment per segment of the window, as the window grows under way.
            assert!(segments(&limits) <= before * 1.5 + 1.0, "{before} {}", limits.cwnd);
        }
    }

    #[test]
    fn time_without_use_is_left_out_of_the_curve() {
        let grown = |pause: Duration, used: bool| {
            let mut cubic = cubic(&[]);
            let mut limits = after_loss(&mut *cubic, 100);
            let now = rounds(&mut *cubic, &mut limits, Instant::ZERO, 30);
            let last = Ack { now, rtt: Some(RTT), flight_size: Bytes::ZERO, ..ack(1) };
            cubic.on_ack(&last, &mut limits);
            if !used {
                let trickle = Ack { now: now + pause, cwnd_limited: false, ..last };
                cubic.on_ack(&trickle, &mut limits);
            }
            rounds(&mut *cubic, &mut limits, now + pause, 1);
            limits.cwnd
        };
        let steady = grown(Duration::ZERO, true);
        let idle = grown(Duration::from_secs(3_600), true);
        let trickling = grown(Duration::from_secs(3_600), false);
        assert!(idle <= steady + MSS && trickling <= steady + MSS, "{steady} {idle} {trickling}");
    }

    #[test]
    fn a_spurious_event_gives_the_curve_back() {
        let mut with = cubic(&[]);
        let mut without = cubic(&[]);
        let mut limits = after_loss(&mut *with, 100);
        after_loss(&mut *without, 100);
        let now = rounds(&mut *with, &mut limits, Instant::ZERO, 20);
        let mut same = limits;
        same.cwnd = same.ssthresh;
        rounds(&mut *without, &mut same, Instant::ZERO, 20);
        assert_eq!(limits, same);
        let kept = limits;
        with.on_congestion(&loss(80), &mut limits);
        limits = kept;
        with.on_spurious(now, &mut limits);
        rounds(&mut *with, &mut limits, now, 20);
        rounds(&mut *without, &mut same, now, 20);
        assert_eq!(limits, same);
    }

    #[test]
    fn a_loss_keeps_beta_of_the_flight_and_two_segments() {
        let mut limits = Limits::initial(MSS * 100);
        cubic(&[]).on_congestion(&loss(10), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 7);
        cubic(&[]).on_congestion(&loss(2), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 2);
    }
}
