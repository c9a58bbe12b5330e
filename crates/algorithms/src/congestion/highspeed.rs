//! HighSpeed TCP: the larger the window, the faster it grows and the less it gives up (RFC 3649).

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::Arguments;
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "highspeed",
    summary: "faster growth and smaller cuts the larger the window, Reno up to 38 segments",
    source: "RFC 3649",
    colour: "#499894",
    parameters: &[],
};

/// Builds it; the parameters of its response function are part of the standard.
#[must_use]
pub fn build(_arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::<HighSpeed>::default()
}

/// `Low_Window`, `High_Window` and `High_Decrease` of RFC 3649 §5.
const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

#[derive(Debug, Clone, Default)]
struct HighSpeed {
    increase: AdditiveIncrease,
    /// The window that `a` is of, in segments.
    window: u64,
    a: f64,
}

/// b(w): the share of the window that a loss costs (RFC 3649 §5).
fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    let position = libm::log(w / LOW_WINDOW) / libm::log(HIGH_WINDOW / LOW_WINDOW);
    // Beyond the range that the standard looks at, the decrease stays where that ends.
    ((HIGH_DECREASE - 0.5) * position + 0.5).max(HIGH_DECREASE)
}

/// a(w): segments that the window grows by in one round trip (RFC 3649 §5).
fn increase(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    // p(w): the loss rate at which w is to be the average window.
    let p = 0.078 / libm::pow(w, 1.2);
    let b = decrease(w);
    w * w * p * 2.0 * b / (2.0 - b)
}

impl CongestionControl for HighSpeed {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if slow_start(ack, limits) {
            let window = limits.cwnd.whole(ack.mss);
            if window != self.window {
                (self.window, self.a) = (window, increase(window as f64));
            }
            self.increase.apply_times(self.a, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        let w = limits.cwnd.whole(event.mss) as f64;
        limits.ssthresh = scaled_down(limits, 1.0 - decrease(w), event.mss);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("a_segments", self.a);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    #[test]
    fn increase_and_decrease_are_those_of_the_table_in_appendix_b() {
        // The table prints a(w) rounded down, b(w) to two digits.
        let table = [
            (118, 2.0, 0.44),
            (221, 3.0, 0.41),
            (347, 4.0, 0.38),
            (495, 5.0, 0.37),
            (663, 6.0, 0.35),
            (851, 7.0, 0.34),
            (1_058, 8.0, 0.33),
            (1_284, 9.0, 0.32),
            (1_529, 10.0, 0.31),
            (2_378, 13.0, 0.28),
            (84_035, 71.0, 0.10),
        ];
        for (w, a, b) in table {
            let w = f64::from(w);
            assert!((a..a + 1.0).contains(&increase(w)), "a({w}) = {}", increase(w));
            assert!((decrease(w) - b).abs() <= 0.0051, "b({w}) = {}", decrease(w));
        }
    }

    #[test]
    fn up_to_38_segments_it_is_reno() {
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 38) };
        let mut cc = HighSpeed::default();
        for _ in 0..37 {
            cc.on_ack(&ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 38);
        cc.on_ack(&ack(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 39);
        limits.cwnd = MSS * 38;
        cc.on_congestion(&loss(38), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 19);
    }

    #[test]
    fn the_average_window_follows_the_response_function_of_table_2() {
        // One loss every 1 / p segments; the RFC's windows are 263 and 1795 segments.
        for (segments_per_loss, expected) in [(10_000, 263.0), (100_000, 1_795.0)] {
            let mut cc = HighSpeed::default();
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 400) };
            let (mut rounds, mut acked) = (0.0, 0.0);
            for cycle in 0..25 {
                for _ in 0..segments_per_loss {
                    cc.on_ack(&ack(1), &mut limits);
                    if cycle >= 5 {
                        rounds += MSS.as_f64() / limits.cwnd.as_f64();
                        acked += 1.0;
                    }
                }
                cc.on_congestion(&loss(1), &mut limits);
                limits.cwnd = limits.ssthresh;
            }
            let average = acked / rounds;
            assert!((average / expected - 1.0).abs() < 0.05, "1/{segments_per_loss}: {average}");
        }
    }

    #[test]
    fn a_window_far_beyond_the_range_still_gives_way() {
        assert_eq!(decrease(1e9), HIGH_DECREASE);
        assert!(increase(1e9).is_finite());
    }
}
