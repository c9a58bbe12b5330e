//! Scalable TCP: growth and cuts in proportion to the window, so that recovery from a loss takes as many
//! round trips at any rate (Kelly 2003).

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "scalable",
    summary: "grows by 1 % and gives up an eighth of its window, Reno while it is small",
    source: "Kelly: Scalable TCP, Improving Performance in Highspeed Wide Area Networks, 2003",
    colour: "#d37295",
    parameters: &[
        Parameter {
            name: "a",
            help: "segments of growth per segment acknowledged",
            default: Value::Number(0.01),
            range: Range::Between(0.0001, 0.5),
        },
        Parameter {
            name: "b",
            help: "share of the window that a loss costs",
            default: Value::Number(0.125),
            range: Range::Between(0.01, 0.9),
        },
        Parameter {
            name: "legacy_window",
            help: "segments up to which it is Reno",
            default: Value::Count(16),
            range: Range::Between(1.0, 10_000.0),
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Scalable {
        a: arguments.number("a"),
        b: arguments.number("b"),
        legacy_window: arguments.count("legacy_window"),
        increase: AdditiveIncrease::default(),
    })
}

#[derive(Debug, Clone)]
struct Scalable {
    a: f64,
    b: f64,
    legacy_window: u64,
    increase: AdditiveIncrease,
}

impl CongestionControl for Scalable {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if !slow_start(ack, limits) {
            return;
        }
        let window = limits.cwnd.as_f64() / ack.mss.as_f64();
        if window <= self.legacy_window as f64 {
            self.increase.apply(ack, limits);
        } else {
            self.increase.apply_times(self.a * window, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        let legacy = limits.cwnd <= event.mss * self.legacy_window;
        limits.ssthresh = scaled_down(limits, if legacy { 0.5 } else { 1.0 - self.b }, event.mss);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn scalable() -> Box<dyn CongestionControl> {
        build(&Arguments::defaults(DESCRIPTION.parameters))
    }

    #[test]
    fn recovery_from_a_loss_takes_as_many_round_trips_at_any_window() {
        // ln(1 / (1 - b)) / ln(1 + a), whatever the window.
        let expected = libm::log(1.0 / 0.875) / libm::log(1.01);
        for window in [200, 2_000, 20_000] {
            let mut cc = scalable();
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * window) };
            cc.on_congestion(&loss(window), &mut limits);
            assert_eq!(limits.ssthresh, MSS * (window * 7 / 8));
            limits.cwnd = limits.ssthresh;
            let mut rounds = 0.0;
            while limits.cwnd < MSS * window {
                rounds += MSS.as_f64() / limits.cwnd.as_f64();
                cc.on_ack(&ack(1), &mut limits);
            }
            assert!((rounds - expected).abs() < 0.6, "{window}: {rounds} rather than {expected}");
        }
    }

    #[test]
    fn up_to_the_legacy_window_it_is_reno() {
        let mut cc = scalable();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 16) };
        for _ in 0..16 {
            cc.on_ack(&ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 17);
        let cut = |segments| {
            let mut limits = Limits::initial(MSS * segments);
            scalable().on_congestion(&loss(segments), &mut limits);
            limits.ssthresh
        };
        assert_eq!((cut(16), cut(24)), (MSS * 8, MSS * 21));
    }

    #[test]
    fn beyond_it_a_hundred_segments_acknowledged_are_worth_one() {
        let mut cc = scalable();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 1_000) };
        for _ in 0..1_000 {
            cc.on_ack(&ack(1), &mut limits);
        }
        assert!((1_009..=1_010).contains(&limits.cwnd.whole(MSS)), "{}", limits.cwnd);
    }
}
