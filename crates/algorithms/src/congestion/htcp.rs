//! H-TCP: the longer since the last loss, the faster the growth; the cut leaves the queue just empty
//! (Leith and Shorten 2004).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "htcp",
    summary: "grows faster the longer since the last loss, and cuts to the ratio of smallest to largest RTT",
    source: "Leith, Shorten: H-TCP: TCP for High-Speed and Long-Distance Networks, 2004",
    colour: "#8cd17d",
    parameters: &[
        Parameter {
            name: "delta_l",
            help: "time after a loss in which it grows as Reno does",
            default: Value::Duration(Duration::from_secs(1)),
            range: Range::Any,
        },
        Parameter {
            name: "adaptive_backoff",
            help: "cut to the ratio of smallest to largest RTT rather than to one half",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "rtt_scaling",
            help: "grow in proportion to the RTT, so that flows of unequal RTT grow alike in time",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Htcp::new(
        arguments.duration("delta_l"),
        arguments.flag("adaptive_backoff"),
        arguments.flag("rtt_scaling"),
    ))
}

/// Bounds of the window after a loss, relative to the window before.
const BETA: (f64, f64) = (0.5, 0.8);
/// Change of throughput between two losses from which on the network is another.
const THROUGHPUT_CHANGE: f64 = 0.2;
/// Share of the queueing time in `rtt_max` that remains at each loss, so that a route that got shorter shows.
const RTT_MAX_KEPT: f64 = 0.95;
/// The RTT that scaling leaves alone, and how far it may go.
const REFERENCE_RTT: f64 = 0.1;
const RTT_SCALE: (f64, f64) = (0.1, 2.0);

#[derive(Debug, Clone)]
struct Htcp {
    delta_l: Duration,
    adaptive_backoff: bool,
    rtt_scaling: bool,
    increase: AdditiveIncrease,
    rtt_min: Option<Duration>,
    rtt_max: Option<Duration>,
    meter: Meter,
    epoch: Epoch,
    /// The epoch before the last congestion event, should that turn out spurious.
    undo: Option<Epoch>,
}

/// The state that a congestion event changes.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// Last congestion event.
    began: Option<Instant>,
    beta: f64,
    /// Throughput just before that event.
    throughput: Option<Rate>,
}

/// Throughput over intervals of one smallest RTT, smoothed.
#[derive(Debug, Clone, Default)]
struct Meter {
    began: Option<Instant>,
    delivered: Bytes,
    throughput: Option<Rate>,
}

impl Meter {
    fn on_ack(&mut self, ack: &Ack, rtt_min: Duration) {
        let began = *self.began.get_or_insert(ack.now);
        self.delivered += ack.delivered;
        let elapsed = ack.now.saturating_since(began);
        if elapsed < rtt_min || elapsed == Duration::ZERO {
            return;
        }
        let sample = Rate::of(self.delivered, elapsed).as_bps_f64();
        let smoothed = self.throughput.map_or(sample, |known| 0.75 * known.as_bps_f64() + 0.25 * sample);
        self.throughput = Some(Rate::from_bps(smoothed as u64));
        (self.began, self.delivered) = (Some(ack.now), Bytes::ZERO);
    }
}

impl Htcp {
    fn new(delta_l: Duration, adaptive_backoff: bool, rtt_scaling: bool) -> Self {
        Self {
            delta_l,
            adaptive_backoff,
            rtt_scaling,
            increase: AdditiveIncrease::default(),
            rtt_min: None,
            rtt_max: None,
            meter: Meter::default(),
            epoch: Epoch { began: None, beta: BETA.0, throughput: None },
            undo: None,
        }
    }

    /// Segments that the window grows by in one round trip.
    fn alpha(&self, now: Instant) -> f64 {
        let delta = self.epoch.began.map_or(Duration::ZERO, |began| now.saturating_since(began));
        let beyond = delta.saturating_sub(self.delta_l).as_secs_f64();
        let mut factor = 1.0 + 10.0 * beyond + (beyond / 2.0) * (beyond / 2.0);
        if let Some(rtt_min) = self.rtt_min.filter(|_| self.rtt_scaling) {
            let scale = (rtt_min.as_secs_f64() / REFERENCE_RTT).clamp(RTT_SCALE.0, RTT_SCALE.1);
            factor = (factor * scale).max(1.0);
        }
        // With this factor the average window, at a given loss rate, does not depend on beta.
        2.0 * (1.0 - self.epoch.beta) * factor
    }

    /// The window after this event, relative to the window before.
    fn backoff(&self) -> f64 {
        let (Some(rtt_min), Some(rtt_max)) = (self.rtt_min, self.rtt_max) else { return BETA.0 };
        let (Some(now), Some(before)) = (self.meter.throughput, self.epoch.throughput) else { return BETA.0 };
        let change = (now.as_bps_f64() - before.as_bps_f64()).abs();
        if !self.adaptive_backoff || change > THROUGHPUT_CHANGE * before.as_bps_f64() {
            return BETA.0;
        }
        (rtt_min.as_secs_f64() / rtt_max.as_secs_f64().max(1e-9)).clamp(BETA.0, BETA.1)
    }
}

impl CongestionControl for Htcp {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
            if !ack.in_recovery {
                self.rtt_max = Some(self.rtt_max.map_or(rtt, |max| max.max(rtt)));
            }
        }
        if let Some(rtt_min) = self.rtt_min {
            self.meter.on_ack(ack, rtt_min);
        }
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if slow_start(ack, limits) {
            self.increase.apply_times(self.alpha(ack.now), ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.undo = Some(self.epoch);
        let beta = self.backoff();
        self.epoch = Epoch { began: Some(event.now), beta, throughput: self.meter.throughput };
        if let (Some(rtt_min), Some(rtt_max)) = (self.rtt_min, self.rtt_max) {
            self.rtt_max = Some(rtt_min + rtt_max.saturating_sub(rtt_min).mul_f64(RTT_MAX_KEPT));
        }
        self.increase = AdditiveIncrease::default();
        limits.ssthresh = scaled_down(limits, beta, event.mss);
        if event.kind == CongestionKind::Timeout {
            // Measurements before the silence say nothing about the time after.
            self.meter = Meter::default();
        }
    }

    fn on_spurious(&mut self, _now: Instant, _limits: &mut Limits) {
        if let Some(epoch) = self.undo.take() {
            self.epoch = epoch;
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("beta", self.epoch.beta);
        if let Some(throughput) = self.meter.throughput {
            out.value("throughput_bps", throughput.as_bps_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn htcp(rtt_scaling: bool) -> Htcp {
        Htcp::new(Duration::from_secs(1), true, rtt_scaling)
    }

    /// After two losses, each after two seconds at so many segments per 100 ms, with these RTTs in ms.
    fn after_two_losses(rates: [u64; 2], rtts: [u64; 2]) -> (Htcp, Bytes) {
        let mut cc = htcp(false);
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
        for (cycle, rate) in (0..).zip(rates) {
            for step in 0..20 {
                let now = ms(cycle * 2_000 + step * 100);
                let rtt = Some(Duration::from_millis(rtts[usize::from(step % 2 == 1)]));
                cc.on_ack(&Ack { now, rtt, cwnd_limited: false, ..ack(rate) }, &mut limits);
            }
            let event = Congestion { now: ms(cycle * 2_000 + 1_999), ..loss(100) };
            cc.on_congestion(&event, &mut limits);
        }
        (cc, limits.ssthresh)
    }

    #[test]
    fn growth_is_renos_for_a_second_and_then_a_square_of_time() {
        let mut cc = htcp(false);
        cc.epoch.began = Some(ms(10_000));
        let alpha = |after: u64| cc.alpha(ms(10_000 + after));
        assert_eq!((alpha(0), alpha(1_000)), (1.0, 1.0));
        assert_eq!((alpha(2_000), alpha(5_000)), (11.25, 45.0));
        cc.epoch.beta = 0.8;
        assert!((cc.alpha(ms(12_000)) - 0.4 * 11.25).abs() < 1e-9);
    }

    #[test]
    fn scaling_makes_growth_follow_the_rtt_but_never_slower_than_renos() {
        let mut cc = htcp(true);
        cc.epoch.began = Some(ms(0));
        let alpha = |cc: &mut Htcp, rtt| {
            cc.rtt_min = Some(Duration::from_millis(rtt));
            (cc.alpha(ms(500)), cc.alpha(ms(2_000)))
        };
        assert_eq!(alpha(&mut cc, 100), (1.0, 11.25));
        assert_eq!(alpha(&mut cc, 50), (1.0, 5.625));
        assert_eq!(alpha(&mut cc, 1_000), (2.0, 22.5), "at most twice");
        assert_eq!(alpha(&mut cc, 1), (1.0, 1.125), "at least a tenth");
    }

    #[test]
    fn a_cut_leaves_the_ratio_of_smallest_to_largest_rtt_within_its_bounds() {
        // rtt_max has lost a twentieth of the queueing time at the first loss, and found it again.
        for (longest, expected) in [(150, 66), (110, 80), (400, 50)] {
            let (cc, ssthresh) = after_two_losses([10, 10], [100, longest]);
            assert_eq!(ssthresh, MSS * expected, "{longest} ms: {}", cc.epoch.beta);
        }
    }

    #[test]
    fn where_throughput_changed_by_more_than_a_fifth_the_window_is_halved() {
        let (_, ssthresh) = after_two_losses([10, 13], [100, 150]);
        assert_eq!(ssthresh, MSS * 50);
        let (_, ssthresh) = after_two_losses([10, 11], [100, 150]);
        assert_eq!(ssthresh, MSS * 66);
    }

    #[test]
    fn the_first_loss_halves_since_there_is_nothing_to_compare_with() {
        let mut cc = htcp(false);
        let mut limits = Limits::initial(MSS * 100);
        cc.on_congestion(&loss(100), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 50);
    }

    #[test]
    fn a_spurious_loss_gives_the_time_since_the_last_one_back() {
        let (mut cc, _) = after_two_losses([10, 10], [100, 150]);
        let before = cc.alpha(ms(8_000));
        let mut limits = Limits::initial(MSS * 100);
        cc.on_congestion(&Congestion { now: ms(7_900), ..loss(100) }, &mut limits);
        assert!(cc.alpha(ms(8_000)) < before);
        cc.on_spurious(ms(8_000), &mut limits);
        assert_eq!(cc.alpha(ms(8_000)), before);
    }
}
