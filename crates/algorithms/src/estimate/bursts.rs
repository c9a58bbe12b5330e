//! RTT by self-clocked bursts (Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT
//! Estimation, §3.1.1).
//!
//! ACKs clock a sender, so that a burst of packets comes again one round-trip time later. Two gaps
//! between bursts that are alike, and two bursts that are alike, are taken for that.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant};

use super::handshake::Handshake;
use super::slots::Slots;
use super::{RttEstimator, RttSample, Seen};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::queue::FlowId;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "bursts",
    summary: "time between bursts of one flow at a time that are alike; the state of one flow",
    source: "Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT Estimation",
    colour: "#e15759",
    parameters: &[
        Parameter {
            name: "dt",
            help: "a gap above this ends a burst; 0: the flow's mean gap, measured first",
            default: Value::Duration(Duration::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "gaps",
            help: "gaps that the mean is taken over, where dt is 0",
            default: Value::Count(12),
            range: Range::Between(1.0, 10_000.0),
        },
        Parameter {
            name: "tries",
            help: "flows under observation at once",
            default: Value::Count(2),
            range: Range::Between(1.0, 1_000.0),
        },
        Parameter {
            name: "tolerance",
            help: "share by which gaps, and bursts, may differ and still be alike",
            default: Value::Number(0.1),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "slack",
            help: "time by which bursts may differ in any case",
            default: Value::Duration(Duration::from_millis(2)),
            range: Range::Any,
        },
        Parameter {
            name: "limit",
            help: "time from the end of the first burst after which a flow is given up",
            default: Value::Duration(Duration::from_secs(2)),
            range: Range::Any,
        },
        Parameter {
            name: "check",
            help: "which estimates are used: all; or only of flows whose handshake was seen, and not shorter than that",
            default: Value::Choice("none"),
            range: Range::OneOf(&["none", "handshake"]),
        },
    ],
};

/// Estimates the round-trip time of a few flows at a time, chosen by their packets.
#[derive(Debug, Clone)]
pub struct Bursts {
    rules: Rules,
    tries: Vec<Option<Try>>,
    handshakes: Option<Handshakes>,
}

/// Round-trip times of handshakes, below which no later one of a flow can be: delayed acknowledgements let pairs of packets
/// go, which a sender of few packets spreads over its round trip, and the time between two pairs is not that.
#[derive(Debug, Clone)]
struct Handshakes {
    estimator: Handshake,
    known: Slots<Duration>,
}

/// The settings of every try.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// `dT`; `None`: the flow's mean gap.
    dt: Option<Duration>,
    gaps: u32,
    tolerance: f64,
    slack: Duration,
    limit: Duration,
}

/// One flow under observation.
#[derive(Debug, Clone, Copy)]
struct Try {
    flow: FlowId,
    /// When it is given up.
    deadline: Instant,
    /// The flow's last packet.
    last: Instant,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Taking the mean over gaps, `left` of them yet.
    Pacing { since: Instant, left: u32 },
    /// In the middle of a burst whose start is not known.
    Joining { dt: Duration },
    /// In the first whole burst, since `t0`.
    First { dt: Duration, t0: Instant },
    /// In the second one, since `t2`; the first lasted from `t0` to `t1`.
    Second { dt: Duration, t0: Instant, t1: Instant, t2: Instant },
}

/// The state of a try after one more packet of its flow.
enum Progress {
    Ongoing(Try),
    Failed,
    Measured(Duration),
}

impl Bursts {
    /// With `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        let dt = arguments.duration("dt");
        Self {
            rules: Rules {
                dt: (dt != Duration::ZERO).then_some(dt),
                gaps: arguments.count("gaps") as u32,
                tolerance: arguments.number("tolerance"),
                slack: arguments.duration("slack"),
                limit: arguments.duration("limit"),
            },
            tries: vec![None; arguments.count("tries") as usize],
            handshakes: (arguments.choice("check") == "handshake").then(Handshakes::default),
        }
    }
}

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn RttEstimator> {
    Box::new(Bursts::new(arguments))
}

impl RttEstimator for Bursts {
    fn on_packet(&mut self, seen: &Seen, random: &mut RandomStream) -> Option<RttSample> {
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.on_packet(seen, random);
        }
        let mut measured = None;
        for slot in &mut self.tries {
            let Some(current) = slot else {
                if random.below(CHOICE) == 0 {
                    *slot = Some(self.rules.begin(seen));
                }
                continue;
            };
            if seen.now > current.deadline {
                *slot = None;
            } else if seen.flow == current.flow {
                *slot = match self.rules.advance(*current, seen.now) {
                    Progress::Ongoing(next) => Some(next),
                    Progress::Failed => None,
                    Progress::Measured(rtt) => {
                        measured = Some(RttSample { flow: seen.flow, rtt, at: seen.now });
                        None
                    }
                };
            }
        }
        let tolerance = self.rules.tolerance;
        let handshakes = self.handshakes.as_ref();
        measured.filter(|sample| handshakes.is_none_or(|handshakes| handshakes.allow(sample, tolerance)))
    }

    fn memory(&self) -> Bytes {
        let own = size_of::<Self>() + self.tries.capacity() * size_of::<Option<Try>>();
        let beside = self.handshakes.as_ref().map_or(Bytes::ZERO, Handshakes::memory);
        Bytes::new(own as u64) + beside
    }
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { estimator: Handshake::new(HANDSHAKES), known: Slots::new(HANDSHAKES) }
    }
}

impl Handshakes {
    fn on_packet(&mut self, seen: &Seen, random: &mut RandomStream) {
        if let Some(sample) = self.estimator.on_packet(seen, random) {
            self.known.put(sample.flow, sample.rtt);
        }
    }

    fn allow(&self, sample: &RttSample, tolerance: f64) -> bool {
        self.known.get(sample.flow).is_some_and(|shortest| sample.rtt >= shortest.mul_f64(1.0 - tolerance))
    }

    fn memory(&self) -> Bytes {
        self.estimator.memory() + self.known.memory()
    }
}

impl Rules {
    /// A try whose object is the flow of this packet, `P_beg`.
    fn begin(&self, seen: &Seen) -> Try {
        let phase = match self.dt {
            Some(dt) => Phase::Joining { dt },
            None => Phase::Pacing { since: seen.now, left: self.gaps },
        };
        Try { flow: seen.flow, deadline: seen.now + self.limit, last: seen.now, phase }
    }

    /// The object's next packet, at `now`.
    fn advance(&self, current: Try, now: Instant) -> Progress {
        let Try { flow, deadline, last, phase } = current;
        let gap = now.saturating_since(last);
        let (deadline, phase) = match phase {
            Phase::Pacing { since, left: 1 } => {
                let dt = now.saturating_since(since) / u64::from(self.gaps);
                (now + self.limit, Phase::Joining { dt })
            }
            Phase::Pacing { since, left } => (now + self.limit, Phase::Pacing { since, left: left - 1 }),
            Phase::Joining { dt } | Phase::First { dt, .. } | Phase::Second { dt, .. } if gap <= dt => {
                (deadline, phase)
            }
            Phase::Joining { dt } => (deadline, Phase::First { dt, t0: now }),
            Phase::First { dt, t0 } => (deadline, Phase::Second { dt, t0, t1: last, t2: now }),
            Phase::Second { t0, t1, t2, .. } => return self.judge(t0, t1, t2, last, now),
        };
        Progress::Ongoing(Try { flow, deadline, last: now, phase })
    }

    /// The third burst begins. §3.1.1, conditions 1 and 2.
    fn judge(&self, t0: Instant, t1: Instant, t2: Instant, t3: Instant, t4: Instant) -> Progress {
        let alike = |a: Duration, b: Duration, slack: Duration| {
            a.abs_diff(b) <= a.max(b).mul_f64(self.tolerance) + slack
        };
        let periods = (t2.saturating_since(t0), t4.saturating_since(t2));
        let lengths = (t1.saturating_since(t0), t3.saturating_since(t2));
        if alike(periods.0, periods.1, Duration::ZERO) && alike(lengths.0, lengths.1, self.slack) {
            Progress::Measured(periods.1)
        } else {
            Progress::Failed
        }
    }
}

/// One arriving packet in this many chooses the next flow. Were it each, the flow whose burst has just
/// completed an estimate would often be chosen again by the second packet of that burst.
const CHOICE: u64 = 10;
/// Handshakes that are remembered for a check.
const HANDSHAKES: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::super::testing::{bursts, data, ms, multiplexed, samples};
    use super::*;
    use crate::registry::{AlgorithmSpec, Role};

    fn estimator(settings: &str) -> Box<dyn RttEstimator> {
        AlgorithmSpec::parse(Role::Estimator, &format!("bursts{settings}")).unwrap().build_estimator()
    }

    fn estimates(settings: &str, packets: &[Seen]) -> Vec<RttSample> {
        samples(&mut *estimator(settings), packets)
    }

    /// Packets of one flow at these times, after a burst at 0 that is long enough to be chosen.
    fn after_choice(at: &[f64]) -> Vec<Seen> {
        [0.0; 100].iter().chain(at).map(|at| data(0, *at)).collect()
    }

    /// P_beg at 0 in a burst; bursts from 100, 200 and 300 on: t4 - t2 = 100 ms, known at 300.
    #[test]
    fn the_time_between_two_bursts_is_known_when_the_third_begins() {
        let packets = after_choice(&[100.0, 104.0, 200.0, 205.0, 300.0]);
        let expected = RttSample { flow: FlowId(0), rtt: ms(100.0), at: Instant::ZERO + ms(300.0) };
        assert_eq!(estimates(":dt=10ms:tries=1", &packets), [expected]);
        assert_eq!(estimates(":dt=10ms:tries=1", &packets[..104]), []);
    }

    #[test]
    fn gaps_or_bursts_that_are_not_alike_are_discarded() {
        let accepted = |at: [f64; 5]| !estimates(":dt=10ms:tries=1:slack=2ms", &after_choice(&at)).is_empty();
        assert!(accepted([100.0, 104.0, 200.0, 204.0, 300.0]));
        // Condition 1: 100 ms and 111.2 ms differ by a little more than a tenth of the longer.
        assert!(accepted([100.0, 104.0, 200.0, 204.0, 311.0]));
        assert!(!accepted([100.0, 104.0, 200.0, 204.0, 311.2]));
        // Condition 2: 4 ms and 6.7 ms: a tenth and the slack allow 2.67 ms.
        assert!(accepted([100.0, 104.0, 200.0, 206.6, 300.0]));
        assert!(!accepted([100.0, 104.0, 200.0, 206.8, 300.0]));
    }

    #[test]
    fn a_gap_of_exactly_dt_is_within_a_burst() {
        let found = |gap: f64| {
            let packets = after_choice(&[100.0, 100.0 + gap, 200.0, 200.0 + gap, 300.0]);
            estimates(":dt=10ms:tries=1", &packets)
        };
        assert_eq!(found(10.0)[0].rtt, ms(100.0));
        assert_eq!(found(10.1), []);
    }

    /// Twelve packets 4 ms apart fill a round trip of 48 ms evenly: no gap exceeds another.
    #[test]
    fn a_flow_without_gaps_gives_nothing() {
        assert_eq!(estimates("", &bursts(0, 0.0, 48.0, 12, 4.0)), []);
        assert_eq!(estimates(":dt=10ms", &bursts(0, 0.0, 48.0, 12, 4.0)), []);
    }

    #[test]
    fn adaptive_dt_finds_every_round_trip_time_exactly_and_a_fixed_one_does_not() {
        for rtt in [5.0, 10.0, 60.0, 130.0, 300.0, 500.0] {
            // Five packets over a third of the round trip.
            let packets = bursts(0, 3.0, rtt, 5, rtt / 15.0);
            let adaptive = estimates("", &packets);
            assert!(adaptive.len() > 3, "{rtt}: {}", adaptive.len());
            assert!(adaptive.iter().all(|sample| sample.rtt == ms(rtt)), "{rtt}");
            let fixed = estimates(":dt=10ms", &packets);
            let right = !fixed.is_empty() && fixed.iter().all(|sample| sample.rtt == ms(rtt));
            assert_eq!(right, (15.0..=150.0).contains(&rtt), "{rtt}: {fixed:?}");
        }
    }

    #[test]
    fn other_flows_in_between_change_nothing_but_how_often_each_is_chosen() {
        let flows = [(20.0, 4), (70.0, 6), (110.0, 3), (240.0, 8)];
        let train = |flow: usize| {
            let (rtt, window) = flows[flow];
            bursts(flow as u32, 1.7 * flow as f64, rtt, window, 1.0)
        };
        let found = estimates("", &multiplexed(&(0..4).map(train).collect::<Vec<_>>()));
        for (flow, (rtt, _)) in flows.iter().enumerate() {
            let own: Vec<_> = found.iter().filter(|s| s.flow == FlowId(flow as u32)).collect();
            assert!(!own.is_empty(), "{rtt}");
            assert!(own.iter().all(|sample| sample.rtt == ms(*rtt)), "{rtt}");
        }
    }

    #[test]
    fn packets_that_come_up_to_a_twentieth_late_cost_a_tenth_of_accuracy_at_most() {
        let mut random = RandomStream::new(5, "jitter");
        let mut packets = bursts(0, 0.0, 80.0, 5, 3.0);
        for seen in &mut packets {
            seen.now += random.duration_between(Duration::ZERO, ms(4.0));
        }
        packets.sort_by_key(|seen| seen.now);
        let found = estimates("", &packets);
        assert!(found.len() > 20, "{}", found.len());
        assert!(found.iter().all(|sample| sample.rtt.abs_diff(ms(80.0)) <= ms(8.0)), "{found:?}");
    }

    #[test]
    fn a_flow_that_falls_silent_is_given_up_for_another() {
        let mut packets = vec![data(7, 0.0); 100];
        packets.extend(bursts(0, 1.0, 100.0, 3, 1.0));
        let found = estimates(":tries=1:limit=1s", &packets);
        assert!(found[0].at > Instant::ZERO + ms(1_000.0));
        assert!(found.iter().all(|sample| sample.flow == FlowId(0)));
    }

    #[test]
    fn several_tries_watch_several_flows_at_once() {
        let train = |flow| bursts(flow, f64::from(flow), 100.0, 3, 0.1);
        let packets = multiplexed(&(0..10).map(train).collect::<Vec<_>>());
        let counts = [1, 2, 4].map(|tries| estimates(&format!(":tries={tries}"), &packets).len());
        assert!(counts[1] > counts[0] * 3 / 2 && counts[2] > counts[1] * 3 / 2, "{counts:?}");
    }

    #[test]
    fn memory_is_that_of_the_tries() {
        let mut one = estimator(":tries=1");
        let before = one.memory();
        let trains: Vec<_> = (0..100).map(|flow| bursts(flow, 0.0, 100.0, 3, 1.0)).collect();
        samples(&mut *one, &multiplexed(&trains));
        assert_eq!(one.memory(), before);
        assert!(estimator(":tries=1000").memory() > before * 100);
    }
}
