//! HighSpeed TCP: the larger the window, the faster it grows and the less it gives up (RFC 3649).

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "highspeed",
    summary: "faster growth and smaller cuts the larger the window, Reno up to 38 segments",
    source: "RFC 3649",
    colour: "#499894",
    parameters: &[Parameter {
        name: "rules",
        help: "linux: as its tcp_highspeed, the table of RFC 3649 in steps, and growth with each ACK, whatever it covers",
        default: Value::Choice("rfc-3649"),
        range: Range::OneOf(&["rfc-3649", "linux"]),
    }],
};

/// Builds it with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    match arguments.choice("rules") {
        "linux" => Box::<LinuxHighSpeed>::default(),
        _ => Box::<HighSpeed>::default(),
    }
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

/// Growth and decrease of the table in RFC 3649 appendix B, as Linux reads it (`net/ipv4/tcp_highspeed.c`): a window
/// between two rows has the values of the upper one, and each ACK counts once.
#[derive(Debug, Clone, Default)]
struct LinuxHighSpeed {
    /// The row above the last window of congestion avoidance, which is also its growth less one: `ai`.
    row: u64,
    /// `snd_cwnd_cnt`.
    count: u64,
}

/// a(w) in whole segments; just above `LOW_WINDOW` the formula gives a little less than one.
fn whole_increase(w: u64) -> u64 {
    increase(w as f64).max(1.0) as u64
}

/// The row of the table that a window of `w` segments falls under: the first of those with a window of at least `w`.
fn row(w: u64) -> u64 {
    if w <= LOW_WINDOW as u64 { 0 } else { whole_increase(w - 1) }
}

/// The window of a row: the first whose growth is a segment more than the row's number.
fn window_of(row: u64) -> u64 {
    let (mut below, mut at) = (LOW_WINDOW as u64 - 1, 100_000);
    while at - below > 1 {
        let middle = below.midpoint(at);
        if whole_increase(middle) > row { at = middle } else { below = middle }
    }
    at
}

/// What a loss takes of a window under `row`, in 256th parts: `md`.
fn decrease_of(row: u64) -> u64 {
    (decrease(window_of(row) as f64) * 256.0) as u64
}

/// The table's last row.
const LAST_ROW: u64 = 72;

impl CongestionControl for LinuxHighSpeed {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if slow_start(ack, limits) {
            let window = limits.cwnd.whole(ack.mss);
            self.row = row(window).min(LAST_ROW);
            self.count += self.row + 1;
            if self.count >= window {
                self.count -= window;
                limits.cwnd += ack.mss;
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let w = limits.cwnd.whole(event.mss);
        limits.ssthresh = event.mss * (w - ((w * decrease_of(self.row)) >> 8)).max(2);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("a_segments", (self.row + 1) as f64);
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

    /// Rows of RFC 3649 appendix B: window, growth, and decrease in 256th parts, rounded down.
    #[test]
    fn the_rows_are_those_of_the_table_in_appendix_b() {
        let table = [
            (38, 1, 128),
            (118, 2, 112),
            (221, 3, 104),
            (347, 4, 98),
            (851, 7, 86),
            (2_378, 13, 72),
            (24_402, 45, 41),
            (84_035, 71, 25),
        ];
        for (w, a, md) in table {
            let window = window_of(a - 1);
            // The RFC's table was computed in larger steps.
            assert!(window.abs_diff(w) * 100 <= w, "{w}: {window}");
            assert_eq!((row(window) + 1, row(window + 1) + 1), (a, a + 1));
            assert_eq!(decrease_of(a - 1), md);
        }
    }

    /// Above 38 segments two for each `cwnd` ACKs, however much each covers, and a loss takes 112 of 256.
    #[test]
    fn as_linux_each_ack_counts_once_and_the_upper_row_holds() {
        for segments in [1, 2] {
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
            let mut cc = LinuxHighSpeed::default();
            for _ in 0..50 {
                cc.on_ack(&ack(segments), &mut limits);
            }
            assert_eq!(limits.cwnd, MSS * 101);
            cc.on_congestion(&loss(100), &mut limits);
            assert_eq!(limits.ssthresh, MSS * (101 - 44));
        }
    }

    #[test]
    fn a_loss_in_slow_start_halves_the_window_as_linux_has_it() {
        let mut limits = Limits::initial(MSS * 10);
        let mut cc = LinuxHighSpeed::default();
        (0..90).for_each(|_| cc.on_ack(&ack(1), &mut limits));
        cc.on_congestion(&loss(100), &mut limits);
        assert_eq!((limits.cwnd, limits.ssthresh), (MSS * 100, MSS * 50));
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
