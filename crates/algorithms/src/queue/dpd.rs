//! DPD, dynamic preferential dropping (Akiyama, Oura, Kozu, Yamaguchi: IEICE Technical Report
//! NS2012-149, 2012), and DPD-QT, the same with queue transition (Suzuki, Akiyama, Kozu, Yamaguchi: Packet
//! Dropping Considering Queue Length Transition for Improving Performance Fairness).
//!
//! Both work over any early detection: the flow that uses most bandwidth is chosen more often.

use alloc::boxed::Box;

use suimon_units::{Duration, Probability};

use super::Backlog;
use super::early::{Advice, Early, EarlyDetection};
use super::over::{Over, Preference};
use super::policy::{Arrival, Verdict};
use crate::estimate::heaviest::Heaviest;
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// DPD's name, summary, source and parameters.
pub const DPD: Description = Description {
    name: "dpd",
    summary: "over RED or a relative: drops the flow that uses most bandwidth ten times as often",
    source: "Akiyama, Oura, Kozu, Yamaguchi, NS2012-149, 2012",
    colour: "#e15759",
    parameters: PARAMETERS,
};

/// DPD-QT's name, summary, source and parameters.
pub const DPD_QT: Description = Description {
    name: "dpd-qt",
    summary: "DPD, but only for arrivals that find the queue longer than the arrival before did",
    source: "Suzuki, Akiyama, Kozu, Yamaguchi: Packet Dropping Considering Queue Length Transition",
    colour: "#59a14f",
    parameters: PARAMETERS,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "multiplier",
        help: "how many times as likely the flow that uses most bandwidth is chosen",
        default: Value::Number(10.0),
        range: Range::Between(1.0, 1e6),
    },
    Parameter {
        name: "window",
        help: "over how long bandwidth is counted, a few round-trip times",
        default: Value::Duration(Duration::from_millis(80)),
        range: Range::Any,
    },
];

/// Multiplies the probability of the flow that uses most bandwidth.
#[derive(Debug, Clone)]
struct Dpd {
    multiplier: f64,
    heaviest: Heaviest,
    /// Packets that the previous arrival found, where only a queue that grows counts.
    previous: Option<u64>,
}

impl Dpd {
    fn new(arguments: &Arguments, previous: Option<u64>) -> Self {
        let heaviest = Heaviest::new(arguments.duration("window"));
        Self { multiplier: arguments.number("multiplier"), heaviest, previous }
    }

    /// §5: the queue is longer than at the previous arrival. Without queue transition, always.
    fn enabled(&mut self, backlog: Backlog) -> bool {
        let Some(previous) = &mut self.previous else { return true };
        let grew = backlog.packets > *previous;
        *previous = backlog.packets;
        grew
    }
}

impl Preference for Dpd {
    fn revise(&mut self, advice: Advice, arrival: &Arrival, _below: &impl EarlyDetection) -> Advice {
        let enabled = self.enabled(arrival.backlog);
        match advice {
            // §4: the drop probability of the connection that consumes most bandwidth is multiplied.
            Advice::Choose(p) if enabled && self.heaviest.flow() == Some(arrival.flow) => {
                Advice::Choose(Probability::clamped(self.multiplier * p.get()))
            }
            other => other,
        }
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        if !matches!(verdict, Verdict::Drop(_)) {
            self.heaviest.on_packet(arrival.now, arrival.flow, arrival.size);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("heaviest_share", self.heaviest.flow().map_or(0.0, |flow| self.heaviest.share(flow)));
    }
}

/// DPD over `inner`, with `arguments` as [`DPD`] declares them.
#[must_use]
pub fn build_dpd(
    arguments: &Arguments,
    inner: Early<Box<dyn EarlyDetection>>,
) -> Early<Box<dyn EarlyDetection>> {
    inner.map(|inner| Over::new(Dpd::new(arguments, None), inner)).boxed()
}

/// DPD-QT over `inner`, with `arguments` as [`DPD_QT`] declares them.
#[must_use]
pub fn build_dpd_qt(
    arguments: &Arguments,
    inner: Early<Box<dyn EarlyDetection>>,
) -> Early<Box<dyn EarlyDetection>> {
    inner.map(|inner| Over::new(Dpd::new(arguments, Some(0)), inner)).boxed()
}

#[cfg(test)]
mod tests {
    use suimon_units::{Bytes, Instant};

    use super::*;
    use crate::queue::{DropReason, Ecn, FlowId};
    use crate::random::RandomStream;

    /// Gives the same advice for every arrival.
    #[derive(Debug, Clone)]
    struct Constant(Advice);

    impl EarlyDetection for Constant {
        fn advise(&mut self, _arrival: &Arrival, _random: &mut RandomStream) -> Advice {
            self.0
        }
    }

    fn choose(p: f64) -> Advice {
        Advice::Choose(Probability::clamped(p))
    }

    struct Router {
        detection: Over<Dpd, Constant>,
        random: RandomStream,
        now: Instant,
    }

    impl Router {
        fn new(multiplier: f64, previous: Option<u64>, advice: Advice) -> Self {
            let mut arguments = Arguments::defaults(PARAMETERS);
            arguments.set("multiplier", Value::Number(multiplier));
            let detection = Over::new(Dpd::new(&arguments, previous), Constant(advice));
            Self { detection, random: RandomStream::new(1, "dpd"), now: Instant::ZERO }
        }

        /// The advice for a packet of `flow` that finds `packets`; then it passes or not.
        fn arrives(&mut self, flow: u32, packets: u64, verdict: Verdict) -> Advice {
            self.now += Duration::from_micros(100);
            let arrival = Arrival {
                now: self.now,
                flow: FlowId(flow),
                size: Bytes::new(1_500),
                ecn: Ecn::NotCapable,
                opens_connection: false,
                backlog: Backlog { packets, bytes: Bytes::new(1_500 * packets) },
            };
            let advice = self.detection.advise(&arrival, &mut self.random);
            self.detection.on_verdict(&arrival, verdict);
            advice
        }

        /// Flow 1 sends two packets for each of flow 2; the queue stays as it is.
        fn with_heaviest_1(mut self) -> Self {
            for flow in [1, 1, 2].repeat(100) {
                self.arrives(flow, 5, Verdict::Pass);
            }
            self
        }
    }

    #[test]
    fn only_the_heaviest_flow_is_chosen_ten_times_as_often() {
        let mut router = Router::new(10.0, None, choose(0.02)).with_heaviest_1();
        assert_eq!(router.arrives(1, 5, Verdict::Pass), choose(0.2));
        assert_eq!(router.arrives(2, 5, Verdict::Pass), choose(0.02));
        assert_eq!(router.arrives(3, 5, Verdict::Pass), choose(0.02));
    }

    #[test]
    fn the_probability_is_at_most_one() {
        let mut router = Router::new(60.0, None, choose(0.02)).with_heaviest_1();
        assert_eq!(router.arrives(1, 5, Verdict::Pass), Advice::Choose(Probability::ONE));
    }

    #[test]
    fn a_multiplier_of_one_changes_nothing() {
        let mut router = Router::new(1.0, None, choose(0.02)).with_heaviest_1();
        assert_eq!(router.arrives(1, 5, Verdict::Pass), choose(0.02));
    }

    #[test]
    fn a_calm_queue_and_one_that_drops_all_stay_so() {
        for advice in [Advice::Calm, Advice::Drop] {
            let mut router = Router::new(10.0, None, advice).with_heaviest_1();
            assert_eq!(router.arrives(1, 5, Verdict::Pass), advice);
        }
    }

    #[test]
    fn with_queue_transition_it_counts_only_while_the_queue_grows() {
        let mut router = Router::new(10.0, Some(0), choose(0.02)).with_heaviest_1();
        let often = choose(0.2);
        assert_eq!(router.arrives(1, 6, Verdict::Pass), often, "longer");
        assert_eq!(router.arrives(1, 6, Verdict::Pass), choose(0.02), "as long");
        assert_eq!(router.arrives(1, 5, Verdict::Pass), choose(0.02), "shorter");
        // The previous arrival is one of any flow.
        router.arrives(2, 9, Verdict::Pass);
        assert_eq!(router.arrives(1, 8, Verdict::Pass), choose(0.02));
        router.arrives(2, 3, Verdict::Pass);
        assert_eq!(router.arrives(1, 4, Verdict::Pass), often);
    }

    #[test]
    fn what_is_dropped_uses_no_bandwidth() {
        let mut router = Router::new(10.0, None, choose(0.02)).with_heaviest_1();
        for _ in 0..1_000 {
            router.arrives(2, 5, Verdict::Drop(DropReason::Overflow));
        }
        assert_eq!(router.arrives(2, 5, Verdict::Pass), choose(0.02));
    }
}
