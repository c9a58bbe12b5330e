//! TCP-LP: takes what others leave, and gives way to a delay near the smallest (Kuzmanovic and Knightly 2003).
//!
//! Names are those of Linux, `net/ipv4/tcp_lp.c`; delays are in microseconds.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::reno::{AdditiveIncrease, halved, slow_start};
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "lp",
    summary: "Reno that gives way to others as soon as the mean delay leaves the smallest",
    source: "Kuzmanovic and Knightly 2003",
    colour: "#cedb9c",
    parameters: &[Parameter {
        name: "threshold",
        help: "of the range between the smallest and the largest delay, where the mean is early congestion",
        default: Value::Number(0.15),
        range: Range::Between(0.0, 1.0),
    }],
};

/// Builds it with `threshold`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Lp::new(arguments.number("threshold")))
}

/// `inference`, in round trips: congestion that lasts so long is others' traffic.
const INFERENCE: u64 = 3;
/// What is left then, in segments. In the paper it is one, whose delayed acknowledgement would be congestion again.
const MIN_WINDOW: u64 = 2;

#[derive(Debug, Clone)]
struct Lp {
    threshold: f64,
    /// Smoothed delay times eight.
    sowd: u64,
    owd_min: u64,
    owd_max: u64,
    /// The largest of all: `owd_max` is the one below it.
    owd_max_rsv: u64,
    last_drop: Option<Instant>,
    within_inference: bool,
    reno: AdditiveIncrease,
}

impl Lp {
    fn new(threshold: f64) -> Self {
        Self {
            threshold,
            sowd: 0,
            owd_min: u64::MAX,
            owd_max: 0,
            owd_max_rsv: 0,
            last_drop: None,
            within_inference: false,
            reno: AdditiveIncrease::default(),
        }
    }

    /// `tcp_lp_rtt_sample`.
    fn sample(&mut self, owd: u64) {
        self.owd_min = self.owd_min.min(owd);
        if owd > self.owd_max_rsv {
            self.owd_max = if self.owd_max_rsv == 0 { owd } else { self.owd_max_rsv };
            self.owd_max_rsv = owd;
        } else {
            self.owd_max = self.owd_max.max(owd);
        }
        self.sowd = if self.sowd == 0 { owd * 8 } else { self.sowd - self.sowd / 8 + owd };
    }

    /// The early congestion indication.
    fn is_early_congestion(&self) -> bool {
        let range = self.owd_max.saturating_sub(self.owd_min) as f64;
        self.sowd / 8 > self.owd_min.saturating_add((self.threshold * range) as u64)
    }

    /// `tcp_lp_pkts_acked`.
    fn judge(&mut self, ack: &Ack, rtt: Duration, limits: &mut Limits) {
        let since = |drop: Instant| ack.now.saturating_since(drop) < rtt * INFERENCE;
        self.within_inference = self.last_drop.is_some_and(since);
        if !self.is_early_congestion() {
            return;
        }
        // As in Linux, what is waited for now is the least from here on, and up to as much again may come.
        self.owd_min = self.sowd / 8;
        (self.owd_max, self.owd_max_rsv) = (self.sowd / 4, self.sowd / 4);
        let kept = if self.within_inference { MIN_WINDOW } else { limits.cwnd.whole(ack.mss) / 2 };
        limits.cwnd = limits.cwnd.min(ack.mss * kept.max(MIN_WINDOW));
        // Or slow start would take it straight back.
        limits.ssthresh = limits.cwnd.max(ack.mss * 2);
        self.last_drop = Some(ack.now);
    }
}

impl CongestionControl for Lp {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.newly_acked == Bytes::ZERO {
            return;
        }
        if let Some(rtt) = ack.rtt {
            self.sample((rtt.as_nanos() / 1_000).clamp(1, 1 << 40));
            self.judge(ack, rtt, limits);
        }
        if !self.within_inference && !ack.in_recovery && ack.cwnd_limited && slow_start(ack, limits) {
            self.reno.apply(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.reno = AdditiveIncrease::default();
        limits.ssthresh = halved(event);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("delay_ms", self.sowd as f64 / 8e3);
        if self.owd_min < u64::MAX {
            out.value("smallest_delay_ms", self.owd_min as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    #[test]
    fn the_largest_delay_is_the_one_below_the_largest_of_all() {
        let mut lp = Lp::new(0.15);
        let mut found = Vec::new();
        for owd in [100, 200, 400, 300, 500] {
            lp.sample(owd);
            found.push((lp.owd_max, lp.owd_max_rsv));
        }
        assert_eq!(found, [(100, 100), (100, 200), (200, 400), (300, 400), (400, 500)]);
        assert_eq!(lp.owd_min, 100);
        // 7/8 of the old and 1/8 of the new, times eight: 800, 900, 1188, 1340, 1673.
        assert_eq!(lp.sowd, 1_673);
    }

    #[test]
    fn early_congestion_halves_the_window_and_again_within_three_round_trips_leaves_two_segments() {
        // Delays from 100 to 200 ms: the mean may be up to 115 ms.
        for (mean_ms, since_drop_ms, left) in
            [(115, None, 20), (116, None, 10), (116, Some(349), 2), (116, Some(350), 10)]
        {
            let mut lp = Lp::new(0.15);
            (lp.owd_min, lp.owd_max, lp.sowd) = (100_000, 200_000, mean_ms * 8_000);
            let now = Instant::ZERO + Duration::from_secs(10);
            lp.last_drop = since_drop_ms.map(|millis| Instant::ZERO + Duration::from_millis(10_000 - millis));
            let mut limits = Limits::initial(MSS * 20);
            let rtt = Duration::from_micros(116_500);
            lp.judge(&Ack { now, ..ack(1) }, rtt, &mut limits);
            assert_eq!(limits.cwnd, MSS * left, "{mean_ms} ms, {since_drop_ms:?}");
            let range = if left < 20 { (116_000, 232_000) } else { (100_000, 200_000) };
            assert_eq!((lp.owd_min, lp.owd_max), range, "{mean_ms} ms");
        }
    }

    #[test]
    fn within_the_inference_nothing_grows() {
        for (since_drop, grows) in [(Duration::from_millis(299), false), (Duration::from_millis(301), true)] {
            let mut lp = Lp::new(1.0);
            (lp.owd_min, lp.owd_max) = (90_000, 200_000);
            lp.last_drop = Some(ack(1).now);
            let mut limits = Limits::initial(MSS * 20);
            let sample = Ack { now: ack(1).now + since_drop, ..ack(1) };
            lp.on_ack(&sample, &mut limits);
            assert_eq!(limits.cwnd > MSS * 20, grows, "{since_drop}");
        }
    }
}
