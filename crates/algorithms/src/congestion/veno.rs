//! TCP Veno: Reno that takes a loss with a short queue of its own for the radio's, and gives up a fifth rather than half
//! (Fu and Liew 2003, as Linux has it).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::{AdditiveIncrease, slow_start};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "veno",
    summary: "Reno that gives up a fifth where fewer than three of its segments wait, and then grows half as fast",
    source: "Fu, Liew 2003; Linux 6.18",
    colour: "#9c755f",
    parameters: &[Parameter {
        name: "beta",
        help: "segments of its own in the queue from which on a loss is congestion",
        default: Value::Number(3.0),
        range: Range::Between(0.0, 1000.0),
    }],
};

/// Builds it with `beta`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Veno {
        beta: arguments.number("beta"),
        base_rtt: None,
        samples: 0,
        backlog: 0.0,
        skip: false,
        increase: AdditiveIncrease::default(),
    })
}

/// Samples before the backlog is judged (Linux's `cntrtt`).
const ENOUGH_SAMPLES: u32 = 2;
/// What a loss leaves where the queue was short: four fifths (section III-B).
const RANDOM_LOSS_KEEPS: f64 = 0.8;

#[derive(Debug, Clone)]
struct Veno {
    beta: f64,
    base_rtt: Option<Duration>,
    samples: u32,
    /// `N`, the backlog in segments (section III-A, equation 1).
    backlog: f64,
    /// The next segment of growth is left out.
    skip: bool,
    increase: AdditiveIncrease,
}

impl Veno {
    fn judge(&mut self, rtt: Duration, limits: &Limits, mss: Bytes) {
        let base = self.base_rtt.map_or(rtt, |base| base.min(rtt));
        self.base_rtt = Some(base);
        self.samples = self.samples.saturating_add(1);
        let window = limits.cwnd.whole(mss) as f64;
        let queueing = rtt.saturating_sub(base).as_secs_f64();
        self.backlog = window * queueing / rtt.as_secs_f64().max(1e-9);
    }

    fn queue_is_long(&self) -> bool {
        self.samples > ENOUGH_SAMPLES && self.backlog >= self.beta
    }
}

impl CongestionControl for Veno {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt.filter(|_| !ack.in_recovery) {
            self.judge(rtt, limits, ack.mss);
        }
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO || !slow_start(ack, limits)
        {
            return;
        }
        let before = limits.cwnd;
        self.increase.apply(ack, limits);
        // Section III-B: one segment every other round trip while the bandwidth is fully used.
        if limits.cwnd > before && self.queue_is_long() {
            self.skip = !self.skip;
            if self.skip {
                limits.cwnd = before;
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        let from_radio =
            self.samples > 0 && self.backlog < self.beta && event.kind != CongestionKind::Timeout;
        limits.ssthresh = scaled_down(limits, if from_radio { RANDOM_LOSS_KEEPS } else { 0.5 }, event.mss);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("backlog_segments", self.backlog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn veno() -> Box<dyn CongestionControl> {
        build(&Arguments::defaults(DESCRIPTION.parameters))
    }

    /// The window after a loss at 40 segments, where round trips grew from 100 ms to `millis`.
    fn after_loss(millis: u64) -> u64 {
        let mut veno = veno();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 40) };
        for rtt in [100, 100, 100, millis] {
            let rtt = Some(Duration::from_millis(rtt));
            veno.on_ack(&Ack { rtt, cwnd_limited: false, ..ack(1) }, &mut limits);
        }
        veno.on_congestion(&loss(40), &mut limits);
        limits.ssthresh.whole(MSS)
    }

    /// 40 segments at 108 ms are 2.96 waiting, at 109 ms 3.3.
    #[test]
    fn a_loss_costs_a_fifth_below_three_segments_of_backlog_and_half_above() {
        assert_eq!((after_loss(108), after_loss(109)), (32, 20));
    }

    #[test]
    fn growth_takes_two_round_trips_a_segment_where_the_queue_is_long() {
        let grown = |rtt| {
            let mut veno = veno();
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 20) };
            for nth in 0..20 * 10 {
                let rtt = Some(Duration::from_millis(if nth < 3 { 100 } else { rtt }));
                veno.on_ack(&Ack { rtt, ..ack(1) }, &mut limits);
            }
            limits.cwnd.whole(MSS) - 20
        };
        // Ten windows of 20: windows grow meanwhile, so eight fit.
        assert_eq!((grown(100), grown(150)), (8, 4));
    }

    #[test]
    fn a_timeout_halves_whatever_the_backlog() {
        let mut veno = veno();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 40) };
        veno.on_ack(&Ack { cwnd_limited: false, ..ack(1) }, &mut limits);
        veno.on_congestion(&Congestion { kind: CongestionKind::Timeout, ..loss(40) }, &mut limits);
        assert_eq!(limits.ssthresh, MSS * 20);
    }
}
