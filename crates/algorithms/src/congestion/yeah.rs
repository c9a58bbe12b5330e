//! YeAH-TCP: Scalable TCP while the queue is short, Reno while it is long, and queues of its own are taken away before they
//! overflow (Baiocchi, Castellani and Vacirca 2007, as Linux has it).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::{AdditiveIncrease, slow_start};
use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "yeah",
    summary: "Scalable while the queue is short, Reno while it is long, and takes its own queue away",
    source: "Baiocchi, Castellani, Vacirca 2007; Linux 6.18",
    colour: "#fabfd2",
    parameters: &[
        Parameter {
            name: "alpha",
            help: "segments of its own in the queue that it takes away once there are more",
            default: Value::Count(80),
            range: Range::Between(1.0, 10_000.0),
        },
        Parameter {
            name: "phy",
            help: "the queue is long where it takes more than the smallest round trip over this",
            default: Value::Count(8),
            range: Range::Between(1.0, 100.0),
        },
    ],
};

/// Builds it with `alpha` and `phy`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Yeah::new(arguments.count("alpha"), arguments.count("phy")))
}

/// Names and values of Linux: the longest part of the window that is taken away early is a half, the least that a loss
/// takes an eighth.
const EPSILON: u32 = 1;
const DELTA: u32 = 3;
/// Round trips with a long queue after which there are Reno flows beside this one.
const RHO: u64 = 16;
/// Round trips with a short queue after which there are none.
const ZETA: u64 = 50;
/// Samples of a round with which it is judged.
const ENOUGH_SAMPLES: u64 = 3;
/// Scalable TCP's growth: a segment for so many acknowledged.
const SCALABLE: f64 = 100.0;

#[derive(Debug, Clone)]
struct Yeah {
    alpha: u64,
    phy: u64,
    base_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    samples: u64,
    /// The round ends once more than this is acknowledged.
    end: u64,
    /// The backlog that the last round showed, in segments.
    backlog: u64,
    /// Rounds in a row with a long queue, and rounds with a short one.
    long_rounds: u64,
    short_rounds: u64,
    /// The window that Reno would have: what is taken away early leaves this.
    reno_window: u64,
    increase: AdditiveIncrease,
}

impl Yeah {
    fn new(alpha: u64, phy: u64) -> Self {
        Self {
            alpha,
            phy,
            base_rtt: None,
            min_rtt: None,
            samples: 0,
            end: 0,
            backlog: 0,
            long_rounds: 0,
            short_rounds: 0,
            reno_window: 2,
            increase: AdditiveIncrease::default(),
        }
    }

    fn grow(&mut self, ack: &Ack, limits: &mut Limits) {
        if slow_start(ack, limits) {
            let window = limits.cwnd.as_f64() / ack.mss.as_f64();
            let segments = if self.long_rounds == 0 { (window / SCALABLE).max(1.0) } else { 1.0 };
            self.increase.apply_times(segments, ack, limits);
        }
    }

    fn end_round(&mut self, ack: &Ack, limits: &mut Limits) {
        if let (Some(base), Some(rtt)) = (self.base_rtt, self.min_rtt)
            && self.samples >= ENOUGH_SAMPLES
        {
            self.judge(base, rtt, ack.mss, limits);
        }
        (self.end, self.min_rtt, self.samples) = (ack.snd_nxt, None, 0);
    }

    /// Section 2.1 of the paper: `Q = RTT_queue * cwnd / RTT`, `L = RTT_queue / RTT_base`.
    fn judge(&mut self, base: Duration, rtt: Duration, mss: Bytes, limits: &mut Limits) {
        let window = limits.cwnd.whole(mss);
        let queueing = rtt.saturating_sub(base);
        self.backlog =
            (u128::from(window) * u128::from(queueing.as_nanos()) / u128::from(rtt.as_nanos().max(1))) as u64;
        if self.backlog <= self.alpha && queueing <= base / self.phy {
            self.short_rounds += 1;
            if self.short_rounds > ZETA {
                (self.reno_window, self.short_rounds) = (2, 0);
            }
            self.long_rounds = 0;
            return;
        }
        if self.backlog > self.alpha && window > self.reno_window {
            let taken = self.backlog.min(window >> EPSILON);
            limits.cwnd = limits.cwnd.min(mss * (window - taken).max(self.reno_window));
            limits.ssthresh = limits.cwnd.max(mss * 2);
        }
        let window = limits.cwnd.whole(mss);
        self.reno_window = if self.reno_window <= 2 { (window / 2).max(2) } else { self.reno_window + 1 };
        self.long_rounds += 1;
    }
}

impl CongestionControl for Yeah {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
        }
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        self.grow(ack, limits);
        if ack.snd_una > self.end {
            self.end_round(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let window = limits.cwnd.whole(event.mss);
        let half = (window / 2).max(2);
        // Section 2.3: Reno's cut where there are Reno flows, else what waits, between an eighth and a half.
        let cut = if self.long_rounds < RHO { self.backlog.min(half).max(window >> DELTA) } else { half };
        self.short_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(2);
        self.increase = AdditiveIncrease::default();
        limits.ssthresh = event.mss * window.saturating_sub(cut).max(2);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("backlog_segments", self.backlog as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, loss};

    const BASE: Duration = Duration::from_millis(100);

    /// A window of `segments` after a round that showed `millis`.
    fn judged(segments: u64, millis: u64) -> (Yeah, Limits) {
        let mut yeah = Yeah::new(80, 8);
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * segments) };
        yeah.judge(BASE, Duration::from_millis(millis), MSS, &mut limits);
        (yeah, limits)
    }

    /// 1000 segments at 108 ms are 74 waiting; at 110 ms 90, which are taken away.
    #[test]
    fn more_than_eighty_segments_of_backlog_are_taken_away() {
        assert_eq!(judged(1_000, 108).1.cwnd, MSS * 1_000);
        assert_eq!(judged(1_000, 110).1.cwnd, MSS * 910);
    }

    /// An eighth of 100 ms.
    #[test]
    fn a_queue_of_more_than_an_eighth_of_the_round_trip_ends_the_fast_growth() {
        assert_eq!((judged(40, 112).0.long_rounds, judged(40, 113).0.long_rounds), (0, 1));
    }

    /// 100 segments: the backlog of 20 at 125 ms, at least an eighth, and half beside Reno.
    #[test]
    fn a_loss_costs_the_backlog_and_half_beside_reno() {
        for (millis, long_rounds, left) in [(125, 1, 80), (101, 0, 88), (300, 1, 50), (125, 16, 50)] {
            let (mut yeah, mut limits) = judged(100, millis);
            yeah.long_rounds = long_rounds;
            yeah.on_congestion(&loss(100), &mut limits);
            assert_eq!(limits.ssthresh.whole(MSS), left, "{millis} ms");
        }
    }
}
