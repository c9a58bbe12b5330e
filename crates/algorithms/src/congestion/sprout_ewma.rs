//! Sprout-EWMA: lets as much be in flight as the link will deliver in the next 100 ms, if it goes on as of late
//! (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 5.3).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, Delivery, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "sprout-ewma",
    summary: "lets in flight what a cellular link will deliver in 100 ms at its mean rate of late",
    source: "Winstein, Sivaraman, Balakrishnan: Sprout, NSDI 2013",
    colour: "#bd9e39",
    parameters: &[
        Parameter {
            name: "horizon",
            help: "time within which all that is in flight shall be delivered",
            default: Value::Duration(Duration::from_millis(100)),
            range: Range::Any,
        },
        Parameter {
            name: "gain",
            help: "weight of a new tick in the mean",
            default: Value::Number(0.125),
            range: Range::Between(0.001, 1.0),
        },
    ],
};

/// Builds it with `horizon` and `gain`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(SproutEwma::new(arguments.duration("horizon"), arguments.number("gain")))
}

/// Arrivals are counted over this time (section 3.2).
const TICK: Duration = Duration::from_millis(20);
/// A sender that has filled its window is silent for so long at most, so a silence says nothing of the link before (the
/// authors' `fallback_interval`).
const SILENCE: Duration = Duration::from_millis(50);
/// The smallest window, in segments.
const MIN_WINDOW: u64 = 2;

#[derive(Debug, Clone)]
struct SproutEwma {
    horizon: Duration,
    gain: f64,
    /// The tick under way ends then; bytes that it brought.
    tick_ends: Instant,
    arrived: Bytes,
    last_arrival: Instant,
    min_rtt: Option<Duration>,
    /// Mean of what a tick brings, in bytes.
    mean: f64,
    delivery: Option<Delivery>,
}

impl SproutEwma {
    fn new(horizon: Duration, gain: f64) -> Self {
        Self {
            horizon,
            gain,
            tick_ends: Instant::ZERO,
            arrived: Bytes::ZERO,
            last_arrival: Instant::ZERO,
            min_rtt: None,
            mean: 0.0,
            delivery: None,
        }
    }

    /// Ticks that ended until `now`. Those without an arrival count once a round trip passed without one: before, all that was
    /// sent may have arrived.
    fn advance(&mut self, now: Instant, app_limited: bool) {
        if now < self.tick_ends {
            return;
        }
        if self.arrived > Bytes::ZERO {
            self.observe(self.arrived.as_f64());
        }
        self.arrived = Bytes::ZERO;
        let silence = now.saturating_since(self.last_arrival);
        let excused = self.min_rtt.unwrap_or(Duration::ZERO).max(SILENCE);
        let empty = silence.saturating_sub(excused).as_nanos() / TICK.as_nanos();
        if !app_limited {
            self.mean *= libm::pow(1.0 - self.gain, empty as f64);
        }
        let late = now.saturating_since(self.tick_ends).as_nanos() % TICK.as_nanos();
        self.tick_ends = now + TICK.saturating_sub(Duration::from_nanos(late));
    }

    fn observe(&mut self, bytes: f64) {
        self.mean += self.gain * (bytes - self.mean);
    }

    /// The forecast for the horizon (section 3.4): each of its ticks brings the mean.
    fn forecast(&self) -> Bytes {
        Bytes::from_f64(self.mean * self.horizon.as_secs_f64() / TICK.as_secs_f64())
    }
}

impl CongestionControl for SproutEwma {
    fn on_established(&mut self, now: Instant, _limits: &mut Limits) {
        self.min_rtt = self.delivery.take().and_then(|delivery| delivery.rtt);
        (self.tick_ends, self.last_arrival) = (now + TICK, now);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let delivery = self.delivery.take();
        if ack.delivered == Bytes::ZERO {
            return;
        }
        if let Some(rtt) = delivery.and_then(|delivery| delivery.rtt).or(ack.rtt) {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        self.advance(ack.now, ack.app_limited);
        self.arrived = self.arrived.saturating_add(ack.delivered);
        self.last_arrival = ack.now;
        if self.mean > 0.0 {
            limits.cwnd = self.forecast().max(ack.mss * MIN_WINDOW);
        }
    }

    /// Lost data is no longer in flight, and says nothing of the link's rate.
    fn on_congestion(&mut self, _event: &Congestion, _limits: &mut Limits) {}

    fn models_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.delivery = Some(*delivery);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mean_bps", self.mean * 8.0 / TICK.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    fn arrive(sprout: &mut SproutEwma, limits: &mut Limits, millis: u64, segments: u64) {
        let now = Instant::ZERO + Duration::from_millis(millis);
        sprout.on_ack(&Ack { now, rtt: Some(Duration::from_millis(40)), ..ack(segments) }, limits);
    }

    fn sprout() -> (SproutEwma, Limits) {
        let mut limits = Limits::initial(MSS * 10);
        let mut sprout = SproutEwma::new(Duration::from_millis(100), 0.125);
        sprout.on_established(Instant::ZERO, &mut limits);
        (sprout, limits)
    }

    #[test]
    fn the_window_is_five_ticks_of_the_mean() {
        let (mut sprout, mut limits) = sprout();
        // Sixteen segments in each tick: the mean is 16 (1 - (7/8)^n) after n ticks.
        for tick in 0..4 {
            arrive(&mut sprout, &mut limits, 20 * tick + 10, 16);
        }
        let mean = 16.0 * (1.0 - libm::pow(0.875, 3.0));
        assert!((sprout.mean / MSS.as_f64() - mean).abs() < 1e-9);
        assert_eq!(limits.cwnd, Bytes::from_f64(5.0 * mean * MSS.as_f64()));
        for tick in 4..200 {
            arrive(&mut sprout, &mut limits, 20 * tick + 10, 16);
        }
        assert_eq!(limits.cwnd.get().div_ceil(MSS.get()), 80);
    }

    #[test]
    fn a_silence_counts_behind_50_ms_and_a_round_trip() {
        for (silence, rtt, ticks) in [(50, 40, 0), (69, 40, 0), (70, 40, 1), (150, 40, 5), (150, 120, 1)] {
            let (mut sprout, _) = sprout();
            sprout.mean = 800.0;
            sprout.min_rtt = Some(Duration::from_millis(rtt));
            sprout.last_arrival = Instant::ZERO + Duration::from_millis(1_000);
            sprout.advance(Instant::ZERO + Duration::from_millis(1_000 + silence), false);
            assert!(
                (sprout.mean - 800.0 * libm::pow(0.875, f64::from(ticks))).abs() < 1e-9,
                "{silence} ms, {rtt} ms"
            );
        }
    }
}
