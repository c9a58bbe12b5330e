//! TCP Westwood+: after a loss the window is what the measured rate of acknowledgements needs at the smallest round-trip
//! time (Grieco and Mascolo 2004, as Linux has it).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::reno::{Reno, halved};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "westwood",
    summary: "Reno's growth; a loss leaves what the measured rate needs at the smallest RTT",
    source: "Grieco, Mascolo 2004; Linux 6.18",
    colour: "#59a14f",
    parameters: &[Parameter {
        name: "min_sample",
        help: "the shortest time over which a sample of the rate is taken",
        default: Value::Duration(Duration::from_millis(50)),
        range: Range::Any,
    }],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Westwood { min_sample: arguments.duration("min_sample"), ..Westwood::default() })
}

/// Westwood+'s state. Rates are in bytes per second.
#[derive(Debug, Clone, Default)]
struct Westwood {
    min_sample: Duration,
    reno: Reno,
    /// The sample under way: when it began, and the bytes acknowledged since.
    began: Option<Instant>,
    acked: Bytes,
    /// The rate after one filter, and after two (`bw_ns_est`, `bw_est`).
    filtered: Option<(f64, f64)>,
    rtt: Option<Duration>,
    rtt_min: Option<Duration>,
    /// After a timeout the smallest round trip is measured anew.
    forget_rtt_min: bool,
}

impl Westwood {
    fn measure(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            let kept = self.rtt_min.filter(|_| !core::mem::take(&mut self.forget_rtt_min));
            self.rtt_min = Some(kept.map_or(rtt, |min| min.min(rtt)));
        }
        let began = *self.began.get_or_insert(ack.now);
        let elapsed = ack.now.saturating_since(began);
        if let Some(rtt) = self.rtt
            && elapsed > rtt.max(self.min_sample)
            && elapsed > Duration::ZERO
        {
            self.filter(self.acked.as_f64() / elapsed.as_secs_f64());
            (self.began, self.acked) = (Some(ack.now), Bytes::ZERO);
        }
        self.acked += ack.delivered;
    }

    /// `westwood_filter()` of Linux: two low-pass filters with gain 1/8, one after the other.
    fn filter(&mut self, sample: f64) {
        self.filtered = Some(match self.filtered {
            None => (sample, sample),
            Some((first, second)) => {
                let first = (7.0 * first + sample) / 8.0;
                (first, (7.0 * second + first) / 8.0)
            }
        });
    }

    /// The window that the measured rate needs, at least two segments (Grieco and Mascolo 2004, section 2: `ssthresh =
    /// BWE RTT_min / seg_size`).
    fn needed(&self, mss: Bytes) -> Option<Bytes> {
        let (_, rate) = self.filtered?;
        let segments = Bytes::from_f64(rate * self.rtt_min?.as_secs_f64()).whole(mss);
        Some(mss * segments.max(2))
    }
}

impl CongestionControl for Westwood {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.measure(ack);
        self.reno.on_ack(ack, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.reno.on_congestion(event, limits);
        limits.ssthresh = self.needed(event.mss).unwrap_or_else(|| halved(event));
        if event.kind == CongestionKind::Timeout {
            self.forget_rtt_min = true;
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        if let Some((_, rate)) = self.filtered {
            out.value("bandwidth_bps", rate * 8.0);
        }
        if let Some(rtt_min) = self.rtt_min {
            out.value("min_rtt_ms", rtt_min.as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const RTT: Duration = Duration::from_millis(100);

    /// Acknowledges one segment a millisecond for `millis`, each with the round trip `rtt`.
    fn fed(millis: u64, rtt: Duration) -> Westwood {
        let mut westwood = Westwood { min_sample: Duration::from_millis(50), ..Westwood::default() };
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
        for nth in 1..=millis {
            let now = Instant::ZERO + Duration::from_millis(nth);
            westwood.on_ack(&Ack { now, rtt: Some(rtt), cwnd_limited: false, ..ack(1) }, &mut limits);
        }
        westwood
    }

    /// A thousand segments a second at 100 ms are 100 segments, however large the flight was.
    #[test]
    fn a_loss_leaves_the_bandwidth_delay_product() {
        for flight in [100, 150, 400] {
            let mut limits = Limits::initial(MSS * flight);
            fed(2_000, RTT).on_congestion(&loss(flight), &mut limits);
            assert_eq!(limits.ssthresh, MSS * 100, "{flight}");
        }
    }

    #[test]
    fn the_smallest_round_trip_counts_until_a_timeout() {
        let mut westwood = fed(2_000, RTT);
        let mut limits = Limits::initial(MSS * 200);
        let slower = |millis| Ack {
            now: Instant::ZERO + Duration::from_millis(millis),
            rtt: Some(RTT * 2),
            cwnd_limited: false,
            ..ack(1)
        };
        (2_001..2_010).for_each(|millis| westwood.on_ack(&slower(millis), &mut limits));
        westwood.on_congestion(&Congestion { kind: CongestionKind::Timeout, ..loss(200) }, &mut limits);
        assert_eq!(limits.ssthresh.whole(MSS), 100);
        westwood.on_ack(&slower(2_011), &mut limits);
        westwood.on_congestion(&loss(200), &mut limits);
        assert_eq!(limits.ssthresh.whole(MSS), 200);
    }

    /// Two filters with gain 1/8 in a row: 1 - 7/8 = 1/8 of a step, and 1/8 of that, after one sample.
    #[test]
    fn a_step_passes_two_filters() {
        let mut westwood = Westwood { filtered: Some((1_000.0, 1_000.0)), ..Westwood::default() };
        westwood.filter(1_640.0);
        assert_eq!(westwood.filtered, Some((1_080.0, 1_010.0)));
    }

    #[test]
    fn without_a_sample_a_loss_halves() {
        let mut limits = Limits::initial(MSS * 40);
        Westwood::default().on_congestion(&loss(40), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 20);
    }
}
