//! Linked increases: the connections of one stream together grow as one TCP does (RFC 6356).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::{AdditiveIncrease, halved, slow_start};
use super::{Ack, Congestion, CongestionControl, Limits, Siblings};
use crate::parameters::Arguments;
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "lia",
    summary: "Reno whose increase is shared by all connections of a stream: together they take what one takes",
    source: "RFC 6356",
    colour: "#17becf",
    parameters: &[],
};

/// Builds it.
#[must_use]
pub fn build(_: &Arguments) -> Box<dyn CongestionControl> {
    Box::<Lia>::default()
}

#[derive(Debug, Clone, Default)]
struct Lia {
    increase: AdditiveIncrease,
    /// The smoothed round-trip time (RFC 6298 §2).
    srtt: Option<Duration>,
    /// The part of Reno's increase at the last ACK.
    part: f64,
}

impl Lia {
    /// The part of Reno's increase, at most all of it. RFC 6356 §3 adds the lesser of `alpha / cwnd_total` and `1 / cwnd_i` for
    /// each acknowledged byte, with alpha = cwnd_total * max(cwnd_i / rtt_i^2) / (sum of cwnd_i / rtt_i)^2 (Eq. 2).
    fn part(&self, siblings: Siblings, cwnd: Bytes) -> f64 {
        let Some(srtt) = self.srtt.filter(|srtt| *srtt > Duration::ZERO) else { return 1.0 };
        let all = siblings.with(cwnd, srtt);
        let alpha_over_total = all.steepest / (all.rate * all.rate);
        (cwnd.as_f64() * alpha_over_total).min(1.0)
    }
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        // RFC 6356 §3: slow start and the response to a loss are those of a single connection.
        if slow_start(ack, limits) {
            self.part = self.part(ack.siblings, limits.cwnd);
            self.increase.apply_times(self.part, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        limits.ssthresh = halved(event);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("increase", self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::reno::Reno;
    use crate::congestion::testing::{MSS, ack};

    /// Segments that a window of 100 grows by while `acks` segments are acknowledged, at a round trip of 100 ms.
    fn growth(cc: &mut dyn CongestionControl, siblings: Siblings, acks: u64) -> u64 {
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
        for _ in 0..acks {
            cc.on_ack(&Ack { siblings, ..ack(1) }, &mut limits);
        }
        limits.cwnd.whole(MSS) - 100
    }

    fn sibling(segments: u64, ms: u64) -> Siblings {
        Siblings::default().with(MSS * segments, Duration::from_millis(ms))
    }

    #[test]
    fn alone_it_is_reno() {
        for acks in [99, 100, 201, 1_000] {
            let alone = growth(&mut Lia::default(), Siblings::default(), acks);
            assert_eq!(alone, growth(&mut Reno::default(), Siblings::default(), acks));
        }
    }

    /// RFC 6356 §3 by hand, for windows of 100 segments. Two with equal round trips: alpha = 200 * 100 / 200^2 = 1/2, so one segment in
    /// four windows. One sibling with four times the round trip: alpha = 200 * 100 / (100 + 25)^2 = 1.28, so 0.64 in a window. One with
    /// a quarter: alpha = 200 * 1600 / (100 + 400)^2 = 1.28.
    #[test]
    fn a_window_grows_by_alpha_over_the_total() {
        let grown = |siblings| {
            let mut lia = Lia::default();
            growth(&mut lia, siblings, 1);
            lia.part
        };
        let near = |part: f64, expected: f64| assert!((part - expected).abs() < 1e-9, "{part} {expected}");
        near(grown(sibling(100, 100)), 0.25);
        near(grown(sibling(100, 400)), 0.64);
        near(grown(sibling(100, 25)), 0.64);
        let two = sibling(100, 100).with(MSS * 100, Duration::from_millis(100));
        near(grown(two), 1.0 / 9.0);
        assert_eq!(growth(&mut Lia::default(), sibling(100, 100), 400), 1);
        assert_eq!(growth(&mut Lia::default(), sibling(100, 100), 399), 0);
    }

    /// The bound that a connection grows no faster than one alone does: the sibling has a small window on a short path.
    #[test]
    fn no_connection_grows_faster_than_alone() {
        let mut lia = Lia::default();
        growth(&mut lia, sibling(10, 10), 1);
        assert_eq!(lia.part, 1.0);
    }
}
