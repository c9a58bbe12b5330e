//! Sprout-EWMA: lets as much be in flight as the link will deliver in the next 100 ms, if it goes on as of late
//! (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 5.3).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, Delivery, Limits, MarkResponse};
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

    /// `bytes` that the link took `busy` to deliver. Whole ticks without another arrival have an equal share of them each;
    /// where there is none, they belong to the tick under way.
    fn arrive(&mut self, now: Instant, bytes: Bytes, busy: Duration) {
        if now >= self.tick_ends {
            if self.arrived > Bytes::ZERO {
                self.observe(self.arrived.as_f64(), 1);
            }
            self.arrived = Bytes::ZERO;
            let late = now.saturating_since(self.tick_ends).as_nanos() % TICK.as_nanos();
            self.tick_ends = now + TICK.saturating_sub(Duration::from_nanos(late));
        }
        let ticks = busy.as_nanos() / TICK.as_nanos();
        if ticks == 0 {
            self.arrived = self.arrived.saturating_add(bytes);
        } else {
            self.observe(bytes.as_f64() * TICK.as_secs_f64() / busy.as_secs_f64(), ticks);
        }
        self.last_arrival = now;
    }

    /// So many ticks brought `bytes` each.
    fn observe(&mut self, bytes: f64, ticks: u64) {
        self.mean = bytes + (self.mean - bytes) * libm::pow(1.0 - self.gain, ticks as f64);
    }

    /// How long the link was busy with a segment that took `rtt`: since the arrival before it, or since an idle link would have
    /// begun to deliver it, whichever was later. Before, the link may have had nothing to do.
    fn busy(&self, now: Instant, rtt: Option<Duration>) -> Duration {
        let waited = rtt.unwrap_or_default().saturating_sub(self.min_rtt.unwrap_or_default());
        now.saturating_since(self.last_arrival).min(waited)
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
        let rtt = delivery.and_then(|delivery| delivery.rtt).or(ack.rtt);
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        self.arrive(ack.now, ack.delivered, self.busy(ack.now, rtt));
        if self.mean > 0.0 {
            limits.cwnd = self.forecast().max(ack.mss * MIN_WINDOW);
        }
    }

    /// Lost data is no longer in flight, and says nothing of the link's rate.
    fn on_congestion(&mut self, _event: &Congestion, _limits: &mut Limits) {}

    fn models_delivery(&self) -> bool {
        true
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::Never
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
    fn a_slow_link_is_told_from_a_window_that_was_too_small() {
        let ms = Duration::from_millis;
        let second = Instant::ZERO + ms(1_000);
        // The silence before a segment, its round trip where 40 ms are the smallest, and the time for which the link was busy.
        for (silence, rtt, busy) in [(60, 40, 0), (60, 55, 15), (60, 100, 60), (60, 500, 60), (5, 500, 5)] {
            let (mut sprout, _) = sprout();
            (sprout.min_rtt, sprout.last_arrival) = (Some(ms(40)), second);
            assert_eq!(sprout.busy(second + ms(silence), Some(ms(rtt))), ms(busy), "{silence} ms, {rtt} ms");
        }
    }

    #[test]
    fn on_a_link_slower_than_its_acks_the_window_is_what_100_ms_bring() {
        let (mut sprout, mut limits) = sprout();
        // 400 kbit/s, whose ACKs are for two segments each and 60 ms apart, as segments of 1500 B; all of them waited.
        sprout.min_rtt = Some(Duration::from_millis(20));
        for number in 1..200 {
            let now = Instant::ZERO + Duration::from_millis(60 * number);
            sprout.on_ack(&Ack { now, rtt: Some(Duration::from_millis(120)), ..ack(2) }, &mut limits);
        }
        let error = limits.cwnd.as_f64() / (MSS * 10 / 3).as_f64() - 1.0;
        assert!(error.abs() < 0.01, "{}", limits.cwnd);
    }
}
