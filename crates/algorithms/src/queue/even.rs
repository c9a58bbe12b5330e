//! Even shares: early detection gives the rate of losses, shares give the flow that loses, and no flow loses
//! twice before it could have slowed down. The law is of this project, over DPD-QT.

use alloc::boxed::Box;

use suimon_units::{Duration, Instant, Probability};

use super::early::{Advice, Early, EarlyDetection};
use super::over::{Over, Preference};
use super::policy::{Arrival, Verdict};
use super::spacing::{Distances, Spacing};
use crate::estimate::heaviest::Heaviest;
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "even",
    summary: "over RED or a relative: who sends more than others loses more, one packet at a time",
    source: "This project, from share-weighted RED; Suzuki, Akiyama, Kozu, Yamaguchi",
    colour: "#4e79a7",
    parameters: &[
        Parameter {
            name: "exponent",
            help: "a flow with twice the share loses 2 to the power of this as often, packet for packet",
            default: Value::Number(20.0),
            range: Range::Between(0.0, 100.0),
        },
        Parameter {
            name: "window",
            help: "over how long shares are counted, some round-trip times of the longest path",
            default: Value::Duration(Duration::from_millis(320)),
            range: Range::Any,
        },
        Parameter {
            name: "hold",
            help: "how long a flow that lost a packet is left alone at most, for it to slow down",
            default: Value::Duration(Duration::from_millis(48)),
            range: Range::Any,
        },
    ],
};

/// The losses of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    /// Packets that it is to lose; at one, the next one goes.
    debt: f32,
    /// Mean time between losses, in seconds; zero where there was none yet.
    interval: f32,
    /// The time of its last loss, or of its first packet.
    last: Option<Instant>,
}

impl Losses {
    /// A packet passes: that is how long a flow without a loss is known.
    fn on_passed(&mut self, now: Instant) {
        self.last.get_or_insert(now);
    }

    /// A packet was lost or marked.
    fn on_loss(&mut self, now: Instant) {
        let since = self.last.map_or(0.0, |last| now.saturating_since(last).as_secs_f64()) as f32;
        let first = self.interval == 0.0;
        self.interval = if first { since } else { self.interval + (since - self.interval) / SMOOTHING };
        self.last = Some(now);
        self.debt = 0.0;
    }

    fn since(&self, now: Instant) -> f64 {
        self.last.map_or(f64::INFINITY, |last| now.saturating_since(last).as_secs_f64())
    }
}

/// Weighs the probability by the flow's share, and spaces each flow's losses apart.
#[derive(Debug, Clone)]
struct Even {
    exponent: f64,
    hold: f64,
    shares: Heaviest<Losses>,
    /// Mean over packets of `x`, the power of the flow's share relative to the largest.
    mean: f64,
}

impl Even {
    fn new(arguments: &Arguments) -> Self {
        Self {
            exponent: arguments.number("exponent"),
            hold: arguments.duration("hold").as_secs_f64(),
            shares: Heaviest::new(arguments.duration("window")),
            mean: 1.0,
        }
    }

    /// Equation (1): one on average over packets, so that as many are lost as without.
    fn weight(&mut self, arrival: &Arrival) -> f64 {
        let largest = self.shares.flow().map_or(0.0, |flow| self.shares.share(flow));
        let share = self.shares.share(arrival.flow);
        let x = if largest > 0.0 { libm::pow((share / largest).min(1.0), self.exponent) } else { 1.0 };
        self.mean += (x - self.mean) / PACKETS;
        if x > 0.0 { x / self.mean } else { 0.0 }
    }
}

impl Preference for Even {
    fn revise(&mut self, advice: Advice, arrival: &Arrival, below: &impl EarlyDetection) -> Advice {
        let weight = self.weight(arrival);
        let (p, chosen) = match advice {
            Advice::Calm => return advice,
            Advice::Choose(p) => (p.get(), Advice::Choose(Probability::ONE)),
            // Losing everything teaches no more than losing one packet each, and costs timeouts.
            Advice::Drop => (1.0, Advice::Drop),
        };
        let passes = Advice::Choose(Probability::ZERO);
        let Some(losses) = self.shares.note(arrival.flow) else { return passes };
        let interval = f64::from(losses.interval);
        // (2): a flow that loses ever more often does not slow down, and is left alone ever shorter.
        if losses.since(arrival.now) < self.hold.min(interval / LEFT_ALONE) {
            return passes;
        }
        // (3): a flow that loses more often than it is left alone does not slow down either.
        let gain = if interval > 0.0 { (self.hold / interval).max(1.0) } else { 1.0 };
        losses.debt += (p * weight * gain) as f32;
        let due = losses.debt >= 1.0 && !below.is_short(arrival.backlog);
        if due { chosen } else { passes }
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        if !matches!(verdict, Verdict::Drop(_)) {
            self.shares.on_packet(arrival.now, arrival.flow, arrival.size);
        }
        let Some(losses) = self.shares.note(arrival.flow) else { return };
        match verdict {
            Verdict::Pass => losses.on_passed(arrival.now),
            Verdict::Mark | Verdict::Drop(_) => losses.on_loss(arrival.now),
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("heaviest_share", self.shares.flow().map_or(0.0, |flow| self.shares.share(flow)));
    }
}

/// Even shares over `inner`, with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn build(arguments: &Arguments, inner: Early<Box<dyn EarlyDetection>>) -> Early<Box<dyn EarlyDetection>> {
    let early = inner.map(|inner| Over::new(Even::new(arguments), inner)).boxed();
    // Even shares space each flow's losses themselves: every probability is zero or one.
    Early { spacing: Spacing::new(Distances::Independent), ..early }
}

/// After a loss a flow is left alone for this part of its usual interval between losses: 1/8.
const LEFT_ALONE: f64 = 8.0;
/// Losses over which the usual interval is smoothed.
const SMOOTHING: f32 = 4.0;
/// Packets over which the mean weight is smoothed: some per flow, of as many flows as shares tell apart.
const PACKETS: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use suimon_units::Bytes;

    use super::*;
    use crate::queue::{Backlog, DropReason, Ecn, FlowId};
    use crate::random::RandomStream;

    /// Gives the same advice for every arrival.
    #[derive(Debug, Clone)]
    struct Constant(Advice);

    impl EarlyDetection for Constant {
        fn advise(&mut self, _arrival: &Arrival, _random: &mut RandomStream) -> Advice {
            self.0
        }

        fn is_short(&self, backlog: Backlog) -> bool {
            backlog.packets < 10
        }
    }

    const GAP: Duration = Duration::from_micros(24);

    /// When `flow` lost a packet, where flows take turns as in `turns` and send on whatever they lose.
    fn losses(advice: Advice, turns: &[u32], packets: usize, flow: u32) -> Vec<Instant> {
        let arguments = Arguments::defaults(DESCRIPTION.parameters);
        let mut detection = Over::new(Even::new(&arguments), Constant(advice));
        let mut random = RandomStream::new(1, "even");
        let mut losses = Vec::new();
        for (nth, whose) in (1..=packets).zip(turns.iter().cycle()) {
            let arrival = Arrival {
                now: Instant::ZERO + GAP * nth as u64,
                flow: FlowId(*whose),
                size: Bytes::new(1_500),
                ecn: Ecn::NotCapable,
                opens_connection: false,
                backlog: Backlog { packets: 50, bytes: Bytes::new(75_000) },
            };
            let advice = detection.advise(&arrival, &mut random);
            let lost = advice == Advice::Choose(Probability::ONE);
            assert!(lost || matches!(advice, Advice::Calm | Advice::Choose(Probability::ZERO)), "{advice:?}");
            let verdict = if lost { Verdict::Drop(DropReason::Early) } else { Verdict::Pass };
            detection.on_verdict(&arrival, verdict);
            if lost && *whose == flow {
                losses.push(arrival.now);
            }
        }
        losses
    }

    fn choose(p: f64) -> Advice {
        Advice::Choose(Probability::clamped(p))
    }

    /// Seldom enough for no flow to be suspected: one loss in 4000 packets is one in 96 ms.
    const SELDOM: f64 = 1.0 / 2_000.0;

    #[test]
    fn equal_flows_lose_equally_often_and_together_as_often_as_below() {
        let turns = [1, 2];
        for flow in turns {
            let lost = losses(choose(SELDOM), &turns, 400_000, flow).len();
            // Of 100, an eighth of each interval passes before the next one begins.
            assert!((84..=100).contains(&lost), "{flow}: {lost}");
        }
    }

    #[test]
    fn who_sends_twice_as_much_loses_all() {
        let turns = [1, 2, 2];
        assert!(losses(choose(SELDOM), &turns, 400_000, 2).len() > 100);
        assert!(losses(choose(SELDOM), &turns, 400_000, 1).len() <= 1);
    }

    #[test]
    fn losses_of_a_flow_are_evenly_spaced() {
        let lost = losses(choose(SELDOM), &[1, 2], 400_000, 1);
        let gaps: Vec<_> = lost.windows(2).map(|pair| pair[1].saturating_since(pair[0])).collect();
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(most.as_secs_f64() < 1.3 * least.as_secs_f64(), "{least} {most}");
    }

    #[test]
    fn a_flow_that_just_lost_a_packet_is_left_alone() {
        // Known for 24 ms when it loses its first packet: left alone for an eighth of that.
        let arguments = Arguments::defaults(DESCRIPTION.parameters);
        let mut detection = Over::new(Even::new(&arguments), Constant(Advice::Drop));
        let mut random = RandomStream::new(1, "even");
        let mut at = |micros: u64, packets: u64| {
            let arrival = Arrival {
                now: Instant::ZERO + Duration::from_micros(micros),
                flow: FlowId(7),
                size: Bytes::new(1_500),
                ecn: Ecn::NotCapable,
                opens_connection: false,
                backlog: Backlog { packets, bytes: Bytes::new(1_500 * packets) },
            };
            let advice = detection.advise(&arrival, &mut random);
            let lost = advice == Advice::Drop;
            let verdict = if lost { Verdict::Drop(DropReason::Early) } else { Verdict::Pass };
            detection.on_verdict(&arrival, verdict);
            lost
        };
        assert!(!at(0, 50), "nobody knows it yet");
        assert!(!at(23_000, 9), "the queue is short");
        assert!(at(24_000, 10));
        assert!(!at(24_100, 50));
        assert!(!at(26_999, 50));
        assert!(at(27_001, 50));
    }

    #[test]
    fn a_flow_that_does_not_slow_down_loses_more_and_more() {
        let lost = losses(choose(0.02), &[1], 100_000, 1);
        let late = lost.iter().filter(|at| **at > Instant::ZERO + GAP * 90_000).count();
        assert!(late > 3_000, "of 10 000: {late}");
    }

    #[test]
    fn a_calm_queue_stays_so() {
        assert_eq!(losses(Advice::Calm, &[1, 2, 2], 1_000, 2), []);
    }
}
