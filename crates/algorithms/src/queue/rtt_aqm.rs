//! RTT-AQM (Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT Estimation).
//!
//! A mark set now changes the arrival rate one round-trip time later. RTT-AQM predicts the queue one
//! round-trip time ahead, chooses the rate that brings it to a target within another, and marks the share of
//! the flows whose halving gives this rate. No state is kept for a flow.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use super::Buffer;
use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::Arrival;
use super::spacing::{Distances, Spacing};
use crate::estimate::arrival_rate::{self, ArrivalRate};
use crate::estimate::segment_size::SegmentSize;
use crate::estimate::{RttEstimator, Seen, bursts, representative::Representative, zombies::Zombies};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "rtt-aqm",
    summary: "marks so that the queue is at a target two round-trip times ahead, as estimated from what passes",
    source: "Hoshihara, Koga, Watanabe: A New AQM Algorithm Exploiting Passive RTT Estimation",
    colour: "#ff9da7",
    parameters: &[
        Parameter {
            name: "mode",
            help: "literal: p as computed, each packet alone; smoothed: p low-passed, marks spaced evenly",
            default: Value::Choice("smoothed"),
            range: Range::OneOf(&["smoothed", "literal"]),
        },
        Parameter {
            name: "target",
            help: "b*, the queue aimed at; 0: half of the buffer",
            default: Value::Bytes(Bytes::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "increase",
            help: "eq. 9: N segments as printed, or N segments per round-trip time",
            default: Value::Choice("printed"),
            range: Range::OneOf(&["printed", "per-rtt"]),
        },
        arrival_rate::RATE,
        arrival_rate::WINDOW,
        Parameter {
            name: "interval",
            help: "time between computations of p; 0: at every packet",
            default: Value::Duration(Duration::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "smoothing",
            help: "time constant of p in round-trip times, where smoothed",
            default: Value::Number(8.0),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "rtt",
            help: "use this round-trip time instead of estimating; 0: estimate",
            default: Value::Duration(Duration::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "initial_rtt",
            help: "the representative round-trip time to begin with",
            default: Value::Duration(Duration::from_millis(100)),
            range: Range::Any,
        },
        Parameter {
            name: "dt",
            help: "as of the estimator bursts: a gap above this ends a burst; 0: adaptive",
            default: Value::Duration(Duration::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "tries",
            help: "as of the estimator bursts: flows under observation at once",
            default: Value::Count(2),
            range: Range::Between(1.0, 1_000.0),
        },
        Parameter {
            name: "zombies",
            help: "M, the length of the list that counts flows",
            default: Value::Count(1_000),
            range: Range::Between(1.0, 1e6),
        },
        Parameter {
            name: "overwrite",
            help: "p of that list: how likely a packet that misses its flow overwrites it",
            default: Value::Number(0.25),
            range: Range::Between(0.0, 1.0),
        },
        early::mark("departure"),
        early::ECN,
    ],
};

/// RTT-AQM's probability, from what it estimates and the queue that an arrival finds.
#[derive(Debug, Clone)]
pub struct RttAqm {
    target: Target,
    increase: Increase,
    interval: Duration,
    /// Time constant in round-trip times, where `p` is low-passed.
    smoothing: Option<f64>,
    /// `C` in bytes per second, once known.
    link_rate: Option<f64>,
    arrivals: ArrivalRate,
    segment: SegmentSize,
    flows: Zombies,
    round_trip: RoundTrip,
    /// `RTT` in seconds.
    rtt: f64,
    p: f64,
    computed_at: Option<Instant>,
}

/// `b*`.
#[derive(Debug, Clone, Copy)]
enum Target {
    Bytes(f64),
    /// Packets of the mean size that is measured.
    Packets(f64),
}

/// The increase of all flows together in a round-trip time without marks: the two readings of eq. 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Increase {
    /// `N (MSS + IH)`, as bytes per second.
    Printed,
    /// `N (MSS + IH) / RTT`, which is a rate.
    PerRtt,
}

/// The source of the round-trip time.
#[derive(Debug, Clone)]
enum RoundTrip {
    Forced(Duration),
    Estimated { estimator: Box<dyn RttEstimator>, representative: Representative },
}

/// The inputs of `p`; bytes and seconds.
#[derive(Debug, Clone, Copy)]
struct Congestion {
    /// `Q`.
    queue: f64,
    /// `b*`.
    target: f64,
    /// `X`.
    arrival_rate: f64,
    /// `C`.
    link_rate: f64,
    rtt: f64,
    /// `N`.
    flows: f64,
    /// `MSS + IH`.
    segment: f64,
}

impl Congestion {
    /// `p` (§3.3, Fig 3).
    fn probability(&self, increase: Increase) -> f64 {
        let Self { queue, target, arrival_rate: x, link_rate: c, rtt, flows: n, segment } = *self;
        let predicted = queue + (x - c) * rtt; // Eq. 3.
        if predicted <= target {
            return 0.0;
        }
        let wanted = c + (target - predicted) / rtt; // Eq. 5.
        let gained = match increase {
            Increase::Printed => n * segment,
            Increase::PerRtt => n * segment / rtt,
        };
        let (max, min) = (x + gained, x / 2.0); // Eq. 9.
        if wanted >= max {
            return 0.0; // Eq. 10.
        }
        if wanted <= min {
            return 1.0;
        }
        let alpha = (max - wanted) / (max - min); // Eq. 11.
        // Eq. 13. Below one packet a round trip a flow is told by one packet at most.
        let avg_w = (x / segment * rtt / n).max(1.0);
        // Eq. 14, 1 - (1 - alpha)^(1 / avgW).
        1.0 - libm::exp(libm::log(1.0 - alpha) / avg_w)
    }
}

impl RttAqm {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        let given = arguments.bytes("target");
        let target = match buffer {
            _ if given > Bytes::ZERO => Target::Bytes(given.as_f64()),
            Buffer::Bytes(limit) => Target::Bytes(limit.as_f64() / 2.0),
            Buffer::Packets(limit) => Target::Packets(limit as f64 / 2.0),
            Buffer::Unbounded => Target::Packets(UNBOUNDED_TARGET),
        };
        let overwrite = Probability::clamped(arguments.number("overwrite"));
        let forced = arguments.duration("rtt");
        let round_trip = if forced > Duration::ZERO {
            RoundTrip::Forced(forced)
        } else {
            let mut settings = Arguments::defaults(bursts::DESCRIPTION.parameters);
            settings.set("dt", Value::Duration(arguments.duration("dt")));
            settings.set("tries", Value::Count(arguments.count("tries")));
            RoundTrip::Estimated {
                estimator: bursts::build(&settings),
                representative: Representative::new(Some(arguments.duration("initial_rtt"))),
            }
        };
        Self {
            target,
            increase: match arguments.choice("increase") {
                "printed" => Increase::Printed,
                _ => Increase::PerRtt,
            },
            interval: arguments.duration("interval"),
            smoothing: (arguments.choice("mode") == "smoothed").then(|| arguments.number("smoothing")),
            link_rate: None,
            arrivals: ArrivalRate::build(arguments),
            segment: SegmentSize::default(),
            flows: Zombies::new(arguments.count("zombies"), overwrite),
            rtt: round_trip.seconds(),
            round_trip,
            p: 0.0,
            computed_at: None,
        }
    }

    /// The memory of the law, with everything that it holds.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let estimator = match &self.round_trip {
            RoundTrip::Forced(_) => Bytes::ZERO,
            RoundTrip::Estimated { estimator, .. } => estimator.memory(),
        };
        Bytes::new(size_of::<Self>() as u64) + self.arrivals.memory() + self.flows.memory() + estimator
    }

    fn observe(&mut self, arrival: &Arrival, random: &mut RandomStream) {
        self.arrivals.on_packet(arrival.now, arrival.size);
        self.segment.on_packet(arrival.size, random);
        self.flows.on_packet(arrival.flow, random);
        if let RoundTrip::Estimated { estimator, representative } = &mut self.round_trip
            && let Some(sample) = estimator.on_packet(&Seen::from(arrival), random)
        {
            representative.on_estimate(sample.rtt);
            self.rtt = self.round_trip.seconds();
        }
    }

    fn compute(&mut self, now: Instant, queue: Bytes, link_rate: f64) {
        let since = self.computed_at.map(|at| now.saturating_since(at));
        if since.is_some_and(|since| since < self.interval) {
            return;
        }
        self.computed_at = Some(now);
        let rtt = self.rtt;
        let segment = self.segment.bytes();
        let congestion = Congestion {
            queue: queue.as_f64(),
            target: match self.target {
                Target::Bytes(bytes) => bytes,
                Target::Packets(packets) => packets * segment,
            },
            arrival_rate: self.arrivals.bytes_per_second(now),
            link_rate,
            rtt,
            flows: self.flows.flows(),
            segment,
        };
        let p = congestion.probability(self.increase);
        self.p = match self.smoothing {
            None => p,
            Some(rtts) => {
                // The exact solution takes 1 - exp(-dt / tau), which this is for packets that are many.
                let dt = since.unwrap_or_default().as_secs_f64();
                self.p + (p - self.p) * dt / (dt + rtts * rtt).max(f64::MIN_POSITIVE)
            }
        };
    }
}

impl RoundTrip {
    fn seconds(&self) -> f64 {
        let rtt = match self {
            Self::Forced(rtt) => *rtt,
            Self::Estimated { representative, .. } => {
                representative.get().expect("it begins with an initial value")
            }
        };
        rtt.max(MIN_RTT).as_secs_f64()
    }
}

impl EarlyDetection for RttAqm {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        self.observe(arrival, random);
        if let Some(link_rate) = self.link_rate {
            self.compute(arrival.now, arrival.backlog.bytes, link_rate);
        }
        Advice::Choose(Probability::clamped(self.p))
    }

    fn departure_mark(&self) -> Probability {
        Probability::clamped(self.p)
    }

    fn on_link_rate(&mut self, _now: Instant, rate: Rate) {
        self.link_rate = Some(rate.as_bps_f64() / 8.0);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mark_probability", self.p);
        out.value("representative_rtt_ms", self.rtt * 1e3);
        out.value("flow_count", self.flows.flows());
        out.value("segment_bytes", self.segment.bytes());
    }
}

/// RTT-AQM with `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<RttAqm> {
    let literal = arguments.choice("mode") == "literal";
    let distances = if literal { Distances::Independent } else { Distances::Wait };
    Early {
        detection: RttAqm::new(arguments, buffer),
        spacing: Spacing::new(distances),
        ecn: arguments.flag("ecn"),
        marks_departures: arguments.choice("mark") == "departure",
    }
}

/// The target of a buffer without limit, in packets.
const UNBOUNDED_TARGET: f64 = 20.0;

/// Keeps divisions by the round-trip time finite.
const MIN_RTT: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::early::EarlyPolicy;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::TestPacket;
    use crate::queue::{Backlog, FlowId, QueueDiscipline};
    use crate::registry::{AlgorithmSpec, Role};

    fn detection(settings: &str, buffer: Buffer) -> RttAqm {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("rtt-aqm{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        for (name, value) in spec.arguments() {
            arguments.set(name, value);
        }
        RttAqm::new(&arguments, buffer)
    }

    /// 10 Mbit/s, 30 flows, 100 ms, 1 000 + 40 bytes, target 100 kB.
    const STEADY: Congestion = Congestion {
        queue: 100e3,
        target: 100e3,
        arrival_rate: 1.25e6,
        link_rate: 1.25e6,
        rtt: 0.1,
        flows: 30.0,
        segment: 1_040.0,
    };

    #[test]
    fn nothing_is_marked_while_the_queue_ahead_is_at_the_target_or_below() {
        for increase in [Increase::Printed, Increase::PerRtt] {
            assert_eq!(STEADY.probability(increase), 0.0);
            // 20 kB more now, and 20 kB less for the rate: Q1 = 120 + (1.05 - 1.25) 0.1 e3 = 100 kB.
            let falling = Congestion { queue: 120e3, arrival_rate: 1.05e6, ..STEADY };
            assert_eq!(falling.probability(increase), 0.0);
        }
    }

    /// By hand: Q1 = 101 kB (3), X* = 1.25e6 - 1e3 / 0.1 = 1.24e6 (5), maxX = 1.25e6 + 31 200 = 1.2812e6,
    /// minX = 0.625e6 (9), alpha = 41 200 / 656 200 = 0.0627857 (11), avgW = 1.25e6 / 1040 * 0.1 / 30 =
    /// 4.0064103 (13), p = 1 - 0.9372143^(1/4.0064103) = 0.0160550 (14).
    #[test]
    fn as_printed_a_queue_one_kilobyte_too_long_gives_what_it_gives_by_hand() {
        let p = Congestion { queue: 101e3, ..STEADY }.probability(Increase::Printed);
        assert!((p - 0.016_055_0).abs() < 1e-6, "{p}");
    }

    /// By hand: maxX = 1.25e6 + 312e3 = 1.562e6, alpha = 322e3 / 937e3 = 0.3436499,
    /// p = 1 - 0.6563501^(1/4.0064103) = 0.0997627.
    #[test]
    fn per_rtt_the_same_queue_gives_more_for_the_flows_gain_more() {
        let p = Congestion { queue: 101e3, ..STEADY }.probability(Increase::PerRtt);
        assert!((p - 0.099_762_7).abs() < 1e-6, "{p}");
    }

    /// X* >= maxX: X = 0.5e6 leaves 75 kB less in 0.1 s, yet a queue of 180 kB is still 5 kB too long:
    /// X* = 1.2e6 >= 0.5312e6. X* <= minX: Q1 = 170 kB, X* = 0.55e6 <= 0.625e6.
    #[test]
    fn a_rate_out_of_reach_gives_none_or_all() {
        let slow = Congestion { queue: 180e3, arrival_rate: 0.5e6, ..STEADY };
        assert_eq!(slow.probability(Increase::Printed), 0.0);
        let long = Congestion { queue: 170e3, ..STEADY };
        assert_eq!(long.probability(Increase::Printed), 1.0);
        let nearly = Congestion { queue: 162e3, ..STEADY };
        assert!((0.3..1.0).contains(&nearly.probability(Increase::Printed)));
    }

    /// Two packets a round trip over 1 000 flows: avgW would be 0.12, and counts as 1, so p = alpha.
    #[test]
    fn a_window_below_one_packet_counts_as_one() {
        let crowded = Congestion { queue: 101e3, flows: 1_000.0, ..STEADY };
        let alpha = (1.25e6 + 1.04e6 - 1.24e6) / (1.25e6 + 1.04e6 - 0.625e6);
        assert!((crowded.probability(Increase::Printed) - alpha).abs() < 1e-12);
    }

    #[test]
    fn the_target_is_half_of_the_buffer_unless_given() {
        let target = |settings, buffer| match detection(settings, buffer).target {
            Target::Bytes(bytes) => (bytes, 0.0),
            Target::Packets(packets) => (0.0, packets),
        };
        assert_eq!(target("", Buffer::Bytes(Bytes::new(150_000))), (75e3, 0.0));
        assert_eq!(target("", Buffer::Packets(144)), (0.0, 72.0));
        assert_eq!(target("", Buffer::Unbounded), (0.0, 20.0));
        assert_eq!(target(":target=100kB", Buffer::Packets(144)), (100e3, 0.0));
    }

    /// Packets of 1 000 bytes at twice the link's rate of 10 Mbit/s that find a queue far above the target.
    fn overloaded(settings: &str, packets: u64) -> RttAqm {
        let mut detection = detection(&format!(":target=10kB:rtt=100ms{settings}"), Buffer::Unbounded);
        detection.on_link_rate(Instant::ZERO, Rate::from_bps(10_000_000));
        let mut random = RandomStream::new(1, "rtt-aqm");
        for packet in 0..packets {
            let now = Instant::from_nanos(400_000 * packet);
            let backlog = Backlog { packets: 500, bytes: Bytes::new(500_000) };
            let flow = FlowId(packet as u32 % 30);
            let arrival = Arrival { now, flow, backlog, ..Arrival::at_empty_queue(now) };
            detection.advise(&arrival, &mut random);
        }
        detection
    }

    #[test]
    fn smoothed_p_rises_with_a_time_constant_of_eight_round_trips_and_literal_p_at_once() {
        assert_eq!(overloaded(":mode=literal", 2).p, 1.0);
        // 2 001 packets are 0.8 s: 1 - 1/e.
        let p = overloaded("", 2_001).p;
        assert!((p - (1.0 - libm::exp(-1.0))).abs() < 0.001, "{p}");
        // 1 251 packets are 0.5 s.
        let p = overloaded(":smoothing=1", 1_251).p;
        assert!((p - (1.0 - libm::exp(-5.0))).abs() < 0.001, "{p}");
    }

    #[test]
    fn p_is_computed_once_an_interval() {
        assert_eq!(overloaded(":mode=literal:interval=10ms", 2).computed_at, Some(Instant::ZERO));
        let next = Instant::from_nanos(10_000_000);
        assert_eq!(overloaded(":mode=literal:interval=10ms", 26).computed_at, Some(next));
        assert_eq!(overloaded(":mode=literal:interval=10ms", 50).computed_at, Some(next));
    }

    #[test]
    fn without_a_link_rate_nothing_is_marked() {
        let settings = Arguments::defaults(DESCRIPTION.parameters);
        let random = RandomStream::new(1, "rtt-aqm");
        let policy = EarlyPolicy::new(early(&settings, Buffer::Unbounded), Buffer::Unbounded, random);
        let mut queue = PolicyQueue::new(policy);
        let mut dropped = Vec::new();
        for id in 0..1_000 {
            queue.enqueue(Instant::from_nanos(id), TestPacket::new(id, 1_000), &mut dropped);
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn memory_is_the_same_for_ten_flows_a_thousand_and_a_million() {
        let memory = |flows: u64| {
            let mut detection = detection("", Buffer::Bytes(Bytes::new(150_000)));
            detection.on_link_rate(Instant::ZERO, Rate::from_bps(10_000_000_000));
            let mut random = RandomStream::new(1, "rtt-aqm");
            for packet in 0..flows.max(10_000) {
                let now = Instant::from_nanos(800 * packet);
                let flow = FlowId((packet % flows) as u32);
                let backlog = Backlog { packets: 80, bytes: Bytes::new(80_000) };
                let arrival = Arrival { now, flow, backlog, ..Arrival::at_empty_queue(now) };
                detection.advise(&arrival, &mut random);
            }
            detection.memory()
        };
        let ten = memory(10);
        assert_eq!(ten, memory(1_000));
        assert_eq!(ten, memory(1_000_000));
        assert!(detection(":rate=average", Buffer::Unbounded).memory() < ten);
        assert!(ten < Bytes::new(40_000), "{ten}");
    }
}
