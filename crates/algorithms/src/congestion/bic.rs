//! BIC: binary search for the window at which the last loss came (Xu, Harfoush and Rhee, 2004), as Linux
//! 2.6 does it.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::window::{CountedIncrease, DelayedAckRatio, scaled_down, slow_start_through_ssthresh};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "bic",
    summary: "binary search toward the window of the last loss, then slowly faster beyond it",
    source: "Xu, Harfoush and Rhee 2004; Linux 2.6.16",
    colour: "#76b7b2",
    parameters: &[
        Parameter {
            name: "beta",
            help: "window after a loss, relative to the window before",
            default: Value::Number(819.0 / 1024.0),
            range: Range::Between(0.1, 0.99),
        },
        Parameter {
            name: "low_window",
            help: "segments up to which it behaves like Reno",
            default: Value::Count(14),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "max_increment",
            help: "segments that the window may grow by in one RTT (S_max)",
            default: Value::Count(16),
            range: Range::Between(1.0, 1e6),
        },
        Parameter {
            name: "smooth_part",
            help: "RTTs spent on the last segments before the window of the last loss",
            default: Value::Count(20),
            range: Range::Between(1.0, 1e6),
        },
        Parameter {
            name: "fast_convergence",
            help: "aim lower where the window did not get back to that of the loss before",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Bic {
        beta: arguments.number("beta"),
        low_window: arguments.count("low_window"),
        max_increment: arguments.count("max_increment"),
        smooth_part: arguments.count("smooth_part"),
        fast_convergence: arguments.flag("fast_convergence"),
        search: Search::default(),
        increase: CountedIncrease::default(),
        recovering: false,
    })
}

/// The search goes a quarter of the way at each step (B of the paper's implementation).
const B: u64 = 4;

/// Most segments per segment of growth until the first loss: the window is far from anything known.
const MAX_SEGMENTS_BEFORE_A_LOSS: u64 = 20;

/// A count is kept this long where the window stays as it is (HZ / 32 of Linux).
const UPDATE_INTERVAL: Duration = Duration::from_micros(31_250);

#[derive(Debug, Clone)]
struct Bic {
    beta: f64,
    low_window: u64,
    max_increment: u64,
    smooth_part: u64,
    fast_convergence: bool,
    search: Search,
    increase: CountedIncrease,
    recovering: bool,
}

/// The state that a timeout resets. Windows are in segments.
#[derive(Debug, Clone, Default)]
struct Search {
    /// ACKs for one segment of growth.
    cnt: u64,
    last_max_cwnd: u64,
    had_loss: bool,
    /// Window and time of the last computation of `cnt`.
    last_update: Option<(u64, Instant)>,
    delayed_ack: DelayedAckRatio,
}

impl Bic {
    /// Acknowledged segments after which a window of `cwnd` segments grows by one.
    fn segments_per_increase(&self, cwnd: u64) -> u64 {
        if cwnd <= self.low_window {
            return cwnd;
        }
        let last_max_cwnd = self.search.last_max_cwnd;
        let smoothly = cwnd * self.smooth_part / B;
        let linearly = cwnd / self.max_increment;
        if cwnd < last_max_cwnd {
            match (last_max_cwnd - cwnd) / B {
                dist if dist > self.max_increment => linearly,
                0 | 1 => smoothly,
                dist => cwnd / dist,
            }
        } else if cwnd < last_max_cwnd + B {
            smoothly
        } else if cwnd < last_max_cwnd + self.max_increment * (B - 1) {
            cwnd * (B - 1) / (cwnd - last_max_cwnd)
        } else {
            linearly
        }
    }

    fn update(&mut self, now: Instant, cwnd: u64) {
        if let Some((last_cwnd, last_time)) = self.search.last_update
            && last_cwnd == cwnd
            && now.saturating_since(last_time) <= UPDATE_INTERVAL
        {
            return;
        }
        self.search.last_update = Some((cwnd, now));
        let mut segments = self.segments_per_increase(cwnd);
        // Linux leaves the Reno part before this bound and the scaling below; both count ACKs there.
        if cwnd <= self.low_window {
            self.search.cnt = segments;
            return;
        }
        if !self.search.had_loss {
            segments = segments.min(MAX_SEGMENTS_BEFORE_A_LOSS);
        }
        self.search.cnt = self.search.delayed_ack.acks_for(segments);
    }
}

impl CongestionControl for Bic {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || self.recovering {
            // The ACK that ends recovery covers a whole window and grows nothing.
            self.recovering = ack.in_recovery;
            return;
        }
        if ack.newly_acked == Bytes::ZERO {
            return;
        }
        self.search.delayed_ack.update(ack);
        if ack.cwnd_limited && slow_start_through_ssthresh(ack, limits) {
            self.update(ack.now, limits.cwnd.whole(ack.mss));
            self.increase.apply(self.search.cnt, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let cwnd = limits.cwnd.whole(event.mss);
        let factor = if cwnd <= self.low_window { 0.5 } else { self.beta };
        limits.ssthresh = scaled_down(limits, factor, event.mss);
        self.recovering = true;
        self.increase = CountedIncrease::default();
        if event.kind == CongestionKind::Timeout {
            self.search = Search::default();
            return;
        }
        self.search.last_max_cwnd = if self.fast_convergence && cwnd < self.search.last_max_cwnd {
            (cwnd as f64 * (1.0 + self.beta) / 2.0) as u64
        } else {
            cwnd
        };
        self.search.had_loss = true;
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("last_max_cwnd_segments", self.search.last_max_cwnd as f64);
        out.value("acks_per_segment", self.search.cnt as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn bic(last_max_cwnd: u64) -> Bic {
        let search = Search { last_max_cwnd, had_loss: true, ..Search::default() };
        Bic {
            beta: 819.0 / 1024.0,
            low_window: 14,
            max_increment: 16,
            smooth_part: 20,
            fast_convergence: true,
            search,
            increase: CountedIncrease::default(),
            recovering: false,
        }
    }

    /// Segments of growth per RTT that the count stands for.
    fn per_rtt(last_max_cwnd: u64, cwnd: u64) -> f64 {
        cwnd as f64 / bic(last_max_cwnd).segments_per_increase(cwnd) as f64
    }

    #[test]
    fn it_is_reno_up_to_the_low_window() {
        assert_eq!(per_rtt(100, 13), 1.0);
        assert_eq!(per_rtt(100, 14), 1.0);
        assert!(per_rtt(100, 15) > 14.0, "16 a step is all of so small a window");
    }

    #[test]
    fn the_step_is_a_quarter_of_the_distance_between_its_bounds() {
        // Far away: linear, at most max_increment per RTT. 17 * 4 is the first distance beyond it.
        assert_eq!(bic(1_068).segments_per_increase(1_000), 1_000 / 16);
        assert_eq!(bic(1_064).segments_per_increase(1_000), 1_000 / 16);
        assert_eq!(bic(1_060).segments_per_increase(1_000), 1_000 / 15);
        assert_eq!(bic(1_008).segments_per_increase(1_000), 1_000 / 2);
        // Near: B / smooth_part of a segment per RTT.
        assert_eq!(bic(1_007).segments_per_increase(1_000), 1_000 * 20 / 4);
        assert_eq!(bic(1_001).segments_per_increase(1_000), 1_000 * 20 / 4);
    }

    #[test]
    fn beyond_the_last_maximum_it_starts_slowly_and_ends_linearly() {
        assert_eq!(bic(1_000).segments_per_increase(1_000), 1_000 * 20 / 4);
        assert_eq!(bic(1_000).segments_per_increase(1_003), 1_003 * 20 / 4);
        assert_eq!(bic(1_000).segments_per_increase(1_004), 1_004 * 3 / 4);
        assert_eq!(bic(1_000).segments_per_increase(1_047), 1_047 * 3 / 47);
        assert_eq!(bic(1_000).segments_per_increase(1_048), 1_048 / 16);
    }

    #[test]
    fn a_loss_takes_a_fifth_and_below_the_low_window_a_half() {
        let after = |segments| {
            let mut limits = Limits::initial(MSS * segments);
            bic(0).on_congestion(&loss(segments), &mut limits);
            limits.ssthresh.whole(MSS)
        };
        assert_eq!(after(100), 79);
        assert_eq!(after(15), 11);
        assert_eq!(after(14), 7);
        assert_eq!(after(3), 2);
    }

    #[test]
    fn fast_convergence_aims_lower_only_below_the_last_maximum() {
        let aim = |cwnd| {
            let mut bic = bic(100);
            bic.on_congestion(&loss(cwnd), &mut Limits::initial(MSS * cwnd));
            bic.search.last_max_cwnd
        };
        assert_eq!(aim(99), 89);
        assert_eq!(aim(100), 100);
        assert_eq!(aim(101), 101);
    }

    #[test]
    fn a_timeout_forgets_the_search() {
        let mut bic = bic(100);
        let timeout = Congestion { kind: CongestionKind::Timeout, ..loss(50) };
        let mut limits = Limits::initial(MSS * 50);
        bic.on_congestion(&timeout, &mut limits);
        assert_eq!(limits.ssthresh, MSS * 39);
        assert_eq!(bic.search.last_max_cwnd, 0);
        assert!(!bic.search.had_loss);
    }

    #[test]
    fn before_any_loss_growth_is_at_least_a_twentieth_per_rtt() {
        let mut bic = bic(0);
        bic.search.had_loss = false;
        bic.search.delayed_ack.update(&ack(1));
        bic.update(Instant::ZERO, 1_000);
        assert_eq!(bic.search.cnt, 20 * 16 / 31);
    }

    #[test]
    fn fewer_acks_are_asked_for_where_each_covers_more() {
        let acks_per_segment = |covered| {
            let mut bic = bic(0);
            bic.search.had_loss = false;
            let mut limits = Limits { ssthresh: MSS * 100, ..Limits::initial(MSS * 1_000) };
            for _ in 0..200 {
                bic.on_ack(&ack(covered), &mut limits);
            }
            bic.search.cnt
        };
        assert_eq!(acks_per_segment(2), 10);
        assert_eq!(acks_per_segment(4), 5);
    }

    #[test]
    fn a_count_is_kept_for_a_while_where_the_window_stays() {
        let mut bic = bic(1_000);
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        bic.update(at(0), 900);
        let first = bic.search.cnt;
        bic.search.last_max_cwnd = 901;
        bic.update(at(31_250), 900);
        assert_eq!(bic.search.cnt, first);
        bic.update(at(31_251), 900);
        assert_ne!(bic.search.cnt, first);
    }
}
