//! What every algorithm in the registry must keep, whatever it does beyond that. A new registry line is
//! covered without a change here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError};
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Delivery, Limits,
};
use suimon_algorithms::parameters::{Range, Value};
use suimon_algorithms::queue::{Backlog, Buffer, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::receiver::Received;
use suimon_algorithms::registry::{
    AlgorithmSpec, CONGESTION, EARLY, EARLY_WRAPPERS, QUEUES, Role, WRAPPERS, build_queue, descriptions,
};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// The same cases on every run: a failure here is to be repeatable by anyone.
fn config() -> Config {
    Config { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..Config::default() }
}

/// Every congestion control, and every wrapper over each of them.
fn congestion_controls() -> Vec<AlgorithmSpec> {
    let plain: Vec<_> = CONGESTION.iter().map(|(d, _)| d.name.to_owned()).collect();
    let wrapped = WRAPPERS.iter().flat_map(|(w, _)| plain.iter().map(|name| format!("{}+{name}", w.name)));
    plain.iter().cloned().chain(wrapped).map(|name| spec(Role::Congestion, &name)).collect()
}

/// Every queue discipline, and every wrapper over each that it works over.
fn queue_disciplines() -> Vec<AlgorithmSpec> {
    let early = || EARLY.iter().map(|(d, _)| d.name.to_owned());
    let wrapped = EARLY_WRAPPERS.iter().flat_map(|(w, _)| early().map(|name| format!("{}+{name}", w.name)));
    let plain = QUEUES.iter().map(|d| d.name.to_owned());
    plain.chain(early()).chain(wrapped).map(|name| spec(Role::Queue, &name)).collect()
}

fn spec(role: Role, name: &str) -> AlgorithmSpec {
    AlgorithmSpec::parse(role, name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

mod registry {
    use super::*;

    #[test]
    fn everything_builds_with_its_defaults_and_its_label_is_its_name() {
        for &role in Role::ALL {
            for description in descriptions(role) {
                let spec = spec(role, description.name);
                assert_eq!(spec.label(), description.name);
                match role {
                    Role::Congestion => drop(spec.build_congestion()),
                    Role::Receiver => drop(spec.build_receiver(Bytes::new(96_000))),
                    Role::Path => drop(spec.build_path()),
                    Role::Queue => {
                        drop(build_queue::<TestPacket>(&spec, Buffer::Packets(10), RandomStream::new(1, "")));
                    }
                    Role::Estimator => drop(spec.build_estimator()),
                }
            }
        }
    }

    #[test]
    fn parameters_have_help_a_default_in_range_and_a_name_of_their_own() {
        for description in Role::ALL.iter().copied().flat_map(descriptions) {
            let mut names = BTreeSet::new();
            for parameter in description.parameters {
                let place = format!("{}:{}", description.name, parameter.name);
                assert!(!parameter.help.is_empty(), "{place}");
                assert!(names.insert(parameter.name), "{place} twice");
                assert_eq!(parameter.parse(&parameter.default.to_string()), Ok(parameter.default), "{place}");
                let one_of = matches!(parameter.range, Range::OneOf(_));
                let between = matches!(parameter.range, Range::Between(..));
                match parameter.default {
                    Value::Choice(_) => assert!(one_of, "{place}: a choice has words"),
                    Value::Count(_) | Value::Number(_) => assert!(!one_of, "{place}: a number has no words"),
                    _ => assert!(!one_of && !between, "{place}: the range would not be checked"),
                }
            }
        }
    }

    #[test]
    fn the_bounds_of_every_range_build_too() {
        for &role in Role::ALL {
            for description in descriptions(role) {
                for parameter in description.parameters {
                    let values: Vec<String> = match parameter.range {
                        Range::Between(low, high) => vec![low.to_string(), high.to_string()],
                        Range::OneOf(words) => words.iter().map(ToString::to_string).collect(),
                        Range::Any => continue,
                    };
                    for value in values {
                        let spec = spec(role, &format!("{}:{}={value}", description.name, parameter.name));
                        if role == Role::Congestion {
                            let mut endpoint = Endpoint::new(&spec, 10);
                            for step in 0..2_000 {
                                endpoint.apply(&Event::plain_ack(step % 97 == 96)).unwrap();
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_unique_within_a_role() {
        for &role in Role::ALL {
            let mut names = BTreeSet::new();
            for description in descriptions(role) {
                assert!(names.insert(description.name), "{role} {} twice", description.name);
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
                assert!(description.name.chars().all(plain), "{}", description.name);
                assert!(!description.summary.is_empty() && !description.source.is_empty());
            }
        }
    }

    #[test]
    fn colours_tell_congestion_controls_apart() {
        let mut colours = BTreeMap::new();
        for &role in Role::ALL {
            for description in descriptions(role) {
                let digits = description.colour.strip_prefix('#').unwrap_or_default();
                let valid = digits.len() == 6
                    && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
                assert!(valid, "{}: {}", description.name, description.colour);
                if role == Role::Congestion {
                    let other = colours.insert(description.colour, description.name);
                    assert_eq!(other, None, "{} has the same colour", description.name);
                }
            }
        }
    }
}

/// What may happen to a sender.
#[derive(Debug, Clone)]
enum Event {
    Ack {
        segments: u64,
        after: Duration,
        rtt: Option<Duration>,
        cwnd_limited: bool,
        marked: bool,
        counting: AckCounting,
    },
    Congestion(CongestionKind),
    Spurious,
}

impl Event {
    /// A steady ACK 10 ms after the last, or now and then a loss.
    fn plain_ack(loss: bool) -> Self {
        if loss {
            return Self::Congestion(CongestionKind::Loss);
        }
        Self::Ack {
            segments: 1,
            after: Duration::from_millis(10),
            rtt: Some(Duration::from_millis(100)),
            cwnd_limited: true,
            marked: false,
            counting: AckCounting::PerAck,
        }
    }
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        2 => Just(Duration::from_micros(1)),
        8 => (1..500_u64).prop_map(Duration::from_millis),
        1 => Just(Duration::from_secs(10 * 24 * 3_600)),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let segments = prop_oneof![1 => Just(0), 8 => 1..4_u64, 1 => 1..10_000_u64];
    let counting = prop_oneof![
        Just(AckCounting::PerAck),
        Just(AckCounting::Bytes { limit: 1 }),
        Just(AckCounting::Bytes { limit: 2 })
    ];
    let ack = (
        segments,
        duration(),
        prop::option::weighted(0.9, duration()),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        counting,
    )
        .prop_map(|(segments, after, rtt, cwnd_limited, marked, counting)| Event::Ack {
            segments,
            after,
            rtt,
            cwnd_limited,
            marked,
            counting,
        });
    prop_oneof![
        40 => ack,
        2 => Just(Event::Congestion(CongestionKind::Loss)),
        1 => Just(Event::Congestion(CongestionKind::Ecn)),
        1 => Just(Event::Congestion(CongestionKind::Timeout)),
        1 => Just(Event::Spurious),
    ]
}

/// The least of an endpoint that obeys the limits: it recovers in one round and undoes what was spurious.
struct Endpoint {
    algorithm: Box<dyn CongestionControl>,
    label: String,
    limits: Limits,
    before_congestion: Option<Limits>,
    /// In recovery until this byte is acknowledged.
    recovers_at: Option<u64>,
    now: Instant,
    snd_una: u64,
    snd_nxt: u64,
    /// For each time something was sent: `snd_nxt` after it, `snd_una` and the time.
    sent: VecDeque<(u64, u64, Instant)>,
}

impl Endpoint {
    const MSS: Bytes = Bytes::new(1_448);

    fn new(spec: &AlgorithmSpec, segments: u64) -> Self {
        let mut algorithm = spec.build_congestion();
        let mut limits = Limits::initial(Self::MSS * segments);
        algorithm.on_established(Instant::ZERO, &mut limits);
        let mut endpoint = Self {
            algorithm,
            label: spec.label().to_owned(),
            limits,
            before_congestion: None,
            recovers_at: None,
            now: Instant::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            sent: VecDeque::new(),
        };
        endpoint.send();
        endpoint
    }

    fn send(&mut self) {
        let window = self.limits.cwnd.min(self.limits.space).whole(Self::MSS).max(1);
        self.snd_nxt = self.snd_nxt.max(self.snd_una + (Self::MSS * window).get());
        self.sent.push_back((self.snd_nxt, self.snd_una, self.now));
    }

    /// Measured from when the last segment acknowledged by now was sent.
    fn delivery(&mut self, rtt: Option<Duration>, app_limited: bool) -> Option<Delivery> {
        let mut newest = None;
        while let Some(sent) = self.sent.front().copied().filter(|sent| sent.0 <= self.snd_una) {
            newest = self.sent.pop_front().map(|_| sent);
        }
        let (_, una_when_sent, at) = newest?;
        let (total, total_when_sent) = (Bytes::new(self.snd_una), Bytes::new(una_when_sent));
        let elapsed = self.now.saturating_since(at);
        let rate = (elapsed > Duration::ZERO).then(|| Rate::of(total - total_when_sent, elapsed));
        Some(Delivery { total, total_when_sent, rate, app_limited, rtt })
    }

    fn flight_size(&self) -> Bytes {
        Bytes::new(self.snd_nxt - self.snd_una)
    }

    fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match *event {
            Event::Ack { segments, after, rtt, cwnd_limited, marked, counting } => {
                self.now += after;
                let prior_flight_size = self.flight_size();
                let newly_acked = (Self::MSS * segments).min(prior_flight_size);
                self.snd_una += newly_acked.get();
                if self.recovers_at.is_some_and(|recover| self.snd_una >= recover) {
                    self.recovers_at = None;
                }
                let in_recovery = self.recovers_at.is_some();
                let models_delivery = self.algorithm.models_delivery();
                if let Some(delivery) = self.delivery(rtt, !cwnd_limited).filter(|_| models_delivery) {
                    self.algorithm.on_delivery(&delivery);
                }
                let ack = Ack {
                    now: self.now,
                    newly_acked,
                    delivered: newly_acked,
                    marked: if marked { newly_acked } else { Bytes::ZERO },
                    rtt,
                    snd_una: self.snd_una,
                    snd_nxt: self.snd_nxt,
                    flight_size: self.flight_size(),
                    prior_flight_size,
                    snd_wnd: Bytes::new(1 << 30),
                    mss: Self::MSS,
                    cwnd_limited,
                    app_limited: !cwnd_limited,
                    in_recovery,
                    counting,
                };
                let cwnd = self.limits.cwnd;
                self.algorithm.on_ack(&ack, &mut self.limits);
                // Where the rate of delivery is known, it bounds the window.
                if (!cwnd_limited || in_recovery) && !models_delivery {
                    prop_assert!(self.limits.cwnd <= cwnd, "{}: grew a window not used: {ack:?}", self.label);
                }
                if newly_acked == Bytes::ZERO {
                    prop_assert!(
                        self.limits.cwnd <= cwnd,
                        "{}: grew without data acked: {ack:?}",
                        self.label
                    );
                }
                self.check()?;
                self.send();
            }
            Event::Congestion(kind) => {
                self.before_congestion = Some(self.limits);
                let event = Congestion {
                    now: self.now,
                    kind,
                    flight_size: self.flight_size(),
                    snd_nxt: self.snd_nxt,
                    mss: Self::MSS,
                };
                self.algorithm.on_congestion(&event, &mut self.limits);
                self.check()?;
                self.recovers_at = Some(self.snd_nxt);
                self.limits.cwnd = match kind {
                    CongestionKind::Timeout => Self::MSS,
                    CongestionKind::Loss | CongestionKind::Ecn => self.limits.cwnd.min(self.limits.ssthresh),
                };
            }
            Event::Spurious => {
                if let Some(before) = self.before_congestion.take() {
                    self.limits = before;
                    self.recovers_at = None;
                    self.algorithm.on_spurious(self.now, &mut self.limits);
                    self.check()?;
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Self { label, limits, .. } = self;
        prop_assert!(limits.cwnd >= Self::MSS, "{label}: {limits:?}");
        prop_assert!(limits.ssthresh >= Self::MSS * 2, "{label}: {limits:?}");
        prop_assert!(limits.space >= Self::MSS, "{label}: {limits:?}");
        let mut values = Vec::new();
        self.algorithm.probe(&mut values);
        let mut names = BTreeSet::new();
        for (name, value) in values {
            prop_assert!(value.is_finite(), "{label}: {name} is {value}");
            prop_assert!(names.insert(name), "{label}: {name} twice");
        }
        Ok(())
    }
}

mod congestion {
    use super::*;

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn limits_stay_sane_whatever_happens(
            segments in prop_oneof![4 => 1..100_u64, 1 => Just(1_000_000_000 / 1_448)],
            events in prop::collection::vec(event(), 1..400),
        ) {
            for spec in congestion_controls() {
                let mut endpoint = Endpoint::new(&spec, segments);
                for event in &events {
                    endpoint.apply(event)?;
                }
            }
        }

        #[test]
        fn the_same_events_give_the_same_limits(
            segments in 1..100_u64,
            events in prop::collection::vec(event(), 1..200),
        ) {
            for spec in congestion_controls() {
                let history = || {
                    let mut endpoint = Endpoint::new(&spec, segments);
                    let limits = events.iter().map(|event| endpoint.apply(event).map(|()| endpoint.limits));
                    limits.collect::<Result<Vec<_>, _>>()
                };
                prop_assert_eq!(history()?, history()?, "{}", spec);
            }
        }
    }

    /// Goodput over capacity on a path of `bdp` segments and 100 ms with a buffer of `buffer`, round by
    /// round: a round that overflows the buffer loses what does not fit, and is a congestion event.
    fn utilisation(spec: &AlgorithmSpec, bdp: u64, buffer: u64) -> f64 {
        const MSS: Bytes = Endpoint::MSS;
        let base_rtt = Duration::from_millis(100);
        let mut algorithm = spec.build_congestion();
        let mut limits = Limits::initial(MSS * 2);
        algorithm.on_established(Instant::ZERO, &mut limits);
        let (mut now, mut snd_una, mut delivered) = (Instant::ZERO, 0, 0);
        let (mut in_recovery, mut rtt) = (false, base_rtt);
        let begin = Instant::ZERO + Duration::from_secs(20);
        let end = Instant::ZERO + Duration::from_secs(120);
        while now < end {
            let paced = limits.pacing.map_or(Bytes::MAX, |pacing| pacing.amount_in(rtt));
            let window = limits.cwnd.min(limits.space).min(paced).whole(MSS).max(1);
            let arriving = window.min(bdp + buffer);
            rtt = base_rtt.max(base_rtt * arriving / bdp);
            let begun = (now, snd_una);
            for segment in 1..=arriving {
                now += rtt / arriving;
                snd_una += MSS.get();
                let flight_size = MSS * (arriving - 1);
                let ack = Ack {
                    now,
                    newly_acked: MSS,
                    delivered: MSS,
                    marked: Bytes::ZERO,
                    rtt: Some(rtt),
                    snd_una,
                    snd_nxt: snd_una + flight_size.get(),
                    flight_size,
                    prior_flight_size: MSS * arriving,
                    snd_wnd: Bytes::new(1 << 30),
                    mss: MSS,
                    cwnd_limited: limits.cwnd <= limits.space,
                    app_limited: false,
                    in_recovery: in_recovery && segment < arriving,
                    counting: AckCounting::PerAck,
                };
                // What the whole round was delivered at, once it is over.
                if algorithm.models_delivery() && segment == arriving {
                    algorithm.on_delivery(&Delivery {
                        total: Bytes::new(snd_una),
                        total_when_sent: Bytes::new(begun.1),
                        rate: Some(Rate::of(MSS * arriving, now.saturating_since(begun.0))),
                        app_limited: false,
                        rtt: Some(rtt),
                    });
                }
                algorithm.on_ack(&ack, &mut limits);
                delivered += u64::from(begin <= now && now < end);
            }
            in_recovery = window > arriving;
            if in_recovery {
                let kind = CongestionKind::Loss;
                let snd_nxt = snd_una + (MSS * arriving).get();
                let loss = Congestion { now, kind, flight_size: MSS * window, snd_nxt, mss: MSS };
                algorithm.on_congestion(&loss, &mut limits);
                limits.cwnd = limits.cwnd.min(limits.ssthresh);
            }
        }
        delivered as f64 / (bdp as f64 * 1_000.0)
    }

    #[test]
    fn one_flow_fills_nine_tenths_of_its_path() {
        for spec in congestion_controls() {
            for (bdp, buffer) in [(10, 10), (50, 50), (50, 500), (200, 200)] {
                let utilisation = utilisation(&spec, bdp, buffer);
                assert!((0.9..1.01).contains(&utilisation), "{spec}, {bdp} + {buffer}: {utilisation}");
            }
        }
    }
}

/// A packet with an identity and a place within its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TestPacket {
    id: u64,
    flow: u32,
    size: Bytes,
    ecn: Ecn,
}

impl Packet for TestPacket {
    fn size(&self) -> Bytes {
        self.size
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
    }
}

mod queue {
    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Enqueue { flow: u32, size: u64, ecn: Ecn },
        LinkRate(Rate),
        Dequeue,
        Wait(Duration),
    }

    fn ecn() -> impl Strategy<Value = Ecn> {
        prop_oneof![
            Just(Ecn::NotCapable),
            Just(Ecn::Capable),
            Just(Ecn::L4s),
            Just(Ecn::CongestionExperienced)
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            12 => (0..4_u32, 40..1_501_u64, ecn())
                .prop_map(|(flow, size, ecn)| Step::Enqueue { flow, size, ecn }),
            1 => prop_oneof![Just(0), 1..1_000_000_000_u64].prop_map(|bps| Step::LinkRate(Rate::from_bps(bps))),
            8 => Just(Step::Dequeue),
            6 => duration().prop_map(Step::Wait),
        ]
    }

    fn buffer() -> impl Strategy<Value = Buffer> {
        prop_oneof![
            (1..50_u64).prop_map(Buffer::Packets),
            (1_500..50_000_u64).prop_map(|bytes| Buffer::Bytes(Bytes::new(bytes))),
            Just(Buffer::Unbounded),
        ]
    }

    /// Id and ECN field of each packet sent, and id of each packet dropped.
    type Outcome = (Vec<(u64, Ecn)>, Vec<u64>);

    fn build(spec: &AlgorithmSpec, buffer: Buffer) -> Box<dyn QueueDiscipline<TestPacket>> {
        build_queue(spec, buffer, RandomStream::new(1, "queue"))
    }

    /// A discipline that is only asked about arrivals and told of departures.
    #[derive(Debug)]
    struct KeptByDriver {
        asked: Box<dyn QueueDiscipline<TestPacket>>,
        waiting: VecDeque<TestPacket>,
    }

    impl QueueDiscipline<TestPacket> for KeptByDriver {
        fn enqueue(&mut self, now: Instant, mut packet: TestPacket, dropped: &mut Vec<Dropped<TestPacket>>) {
            match self.asked.judge(now, &mut packet, self.backlog()) {
                Ok(()) => self.waiting.push_back(packet),
                Err(reason) => dropped.push(Dropped { packet, reason }),
            }
        }

        fn dequeue(&mut self, now: Instant, _: &mut Vec<Dropped<TestPacket>>) -> Option<TestPacket> {
            let packet = self.waiting.pop_front()?;
            self.asked.on_departure(now, packet.size, self.backlog());
            Some(packet)
        }

        fn backlog(&self) -> Backlog {
            let bytes = self.waiting.iter().map(|packet| packet.size).sum();
            Backlog { packets: self.waiting.len() as u64, bytes }
        }

        fn on_link_rate(&mut self, now: Instant, rate: Rate) {
            self.asked.on_link_rate(now, rate);
        }
    }

    /// What happens, with nothing lost from sight.
    fn outcome(
        spec: &AlgorithmSpec,
        mut queue: Box<dyn QueueDiscipline<TestPacket>>,
        buffer: Buffer,
        steps: &[Step],
    ) -> Result<Outcome, TestCaseError> {
        let mut now = Instant::ZERO;
        let mut waiting = BTreeMap::new();
        let mut last_of_flow = BTreeMap::new();
        let (mut sent, mut gone, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        prop_assert_eq!(queue.dequeue(now, &mut dropped), None, "{}: an empty queue gives nothing", spec);
        for (id, step) in (0..).zip(steps) {
            match *step {
                Step::LinkRate(rate) => queue.on_link_rate(now, rate),
                Step::Enqueue { flow, size, ecn } => {
                    let packet = TestPacket { id, flow, size: Bytes::new(size), ecn };
                    waiting.insert(id, packet.clone());
                    queue.enqueue(now, packet, &mut dropped);
                }
                Step::Dequeue => {
                    let had = queue.backlog().packets;
                    let packet = queue.dequeue(now, &mut dropped);
                    prop_assert_eq!(
                        packet.is_none() && dropped.is_empty(),
                        had == 0,
                        "{}: work conserving",
                        spec
                    );
                    if let Some(packet) = packet {
                        let entered = waiting.remove(&packet.id).expect("sent once, after it came");
                        prop_assert_eq!((entered.flow, entered.size), (packet.flow, packet.size));
                        let marked = packet.ecn == Ecn::CongestionExperienced;
                        prop_assert!(packet.ecn == entered.ecn || (marked && entered.ecn != Ecn::NotCapable));
                        // A discipline may tell L4S packets from others by the ECN field (RFC 9332 §2.3), which
                        // no flow changes under way.
                        let is_l4s = matches!(entered.ecn, Ecn::L4s | Ecn::CongestionExperienced);
                        let before = last_of_flow.insert((packet.flow, is_l4s), packet.id);
                        prop_assert!(before < Some(packet.id), "{spec}: order within flow {}", packet.flow);
                        sent.push((packet.id, packet.ecn));
                    }
                }
                Step::Wait(time) => {
                    now += time;
                    if queue.next_wakeup().is_some_and(|at| at <= now) {
                        queue.on_wakeup(now);
                        prop_assert!(queue.next_wakeup().is_none_or(|at| at > now), "{spec}: wakes for ever");
                    }
                }
            }
            for packet in dropped.drain(..).map(|dropped| dropped.packet) {
                prop_assert!(waiting.remove(&packet.id).is_some(), "{spec}: dropped once, after it came");
                gone.push(packet.id);
            }
            let bytes = waiting.values().map(|packet| packet.size).sum();
            let backlog = Backlog { packets: waiting.len() as u64, bytes };
            prop_assert_eq!(queue.backlog(), backlog, "{}: neither lost nor made up", spec);
            match buffer {
                Buffer::Packets(limit) => prop_assert!(backlog.packets <= limit, "{spec}: {backlog:?}"),
                Buffer::Bytes(limit) => prop_assert!(backlog.bytes <= limit, "{spec}: {backlog:?}"),
                Buffer::Unbounded => {}
            }
            let mut values = Vec::new();
            queue.probe(&mut values);
            prop_assert!(values.iter().all(|(_, value)| value.is_finite()), "{spec}: {values:?}");
        }
        Ok((sent, gone))
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn packets_are_conserved_and_flows_keep_their_order(
            buffer in buffer(),
            steps in prop::collection::vec(step(), 1..400),
        ) {
            for spec in queue_disciplines() {
                let first = outcome(&spec, build(&spec, buffer), buffer, &steps)?;
                let again = outcome(&spec, build(&spec, buffer), buffer, &steps)?;
                prop_assert_eq!(&first, &again, "{}: same in, same out", spec);
                let asked = build(&spec, buffer);
                if asked.judges_arrivals() {
                    let kept = Box::new(KeptByDriver { asked, waiting: VecDeque::new() });
                    let other = outcome(&spec, kept, buffer, &steps)?;
                    prop_assert_eq!(&first, &other, "{}: the same whoever keeps the packets", spec);
                }
            }
        }
    }
}

mod receiver {
    use super::*;

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn the_window_stays_within_the_buffer_and_its_right_edge_never_retreats(
            buffer in 1_448..10_000_000_u64,
            steps in prop::collection::vec(
                (duration(), prop::option::weighted(0.8, duration()), 0..20_u64, 0..30_u64),
                1..300,
            ),
        ) {
            for description in descriptions(Role::Receiver) {
                let spec = spec(Role::Receiver, description.name);
                let buffer = Bytes::new(buffer);
                let mut receiver = spec.build_receiver(buffer);
                let mss = Bytes::new(1_448);
                let (mut now, mut rcv_nxt, mut read) = (Instant::ZERO, 0, 0);
                let mut advertised = receiver.buffer().get();
                for &(after, timestamp_rtt, arrived, consumed) in &steps {
                    now += after;
                    rcv_nxt = (rcv_nxt + (mss * arrived).get()).min(advertised);
                    read = (read + (mss * consumed).get()).min(rcv_nxt);
                    let segment =
                        Received { now, rcv_nxt, advertised, read, timestamp_rtt, mss, header: Bytes::new(52) };
                    receiver.on_segment(&segment);
                    prop_assert!(receiver.buffer() <= buffer, "{}: {}", spec, receiver.buffer());
                    // RFC 9293 §3.8.6: a receiver should not take back what it has advertised.
                    let right_edge = rcv_nxt + receiver.buffer().get();
                    prop_assert!(right_edge >= advertised, "{}: {} < {}", spec, right_edge, advertised);
                    advertised = right_edge;
                    let mut values = Vec::new();
                    receiver.probe(&mut values);
                    prop_assert!(values.iter().all(|(_, value)| value.is_finite()), "{}: {:?}", spec, values);
                }
            }
        }
    }
}

mod estimator {
    use super::*;

    use suimon_algorithms::estimate::{RttSample, Seen};

    /// Time since the packet before, flow, size, whether it opens a connection.
    type Step = (Duration, u32, u64, bool);

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // Few values of the time between packets, so that patterns come again.
        let after = prop_oneof![Just(0), Just(1), Just(30), 0..50_u64, 0..100_000_u64]
            .prop_map(Duration::from_millis);
        let burst = (after, 0..4_u32, 40..1_500_u64, prop::bool::weighted(0.05));
        (prop::collection::vec(burst, 1..60), 1..20_usize).prop_map(|(burst, times)| burst.repeat(times))
    }

    fn estimates(spec: &AlgorithmSpec, steps: &[Step]) -> Vec<RttSample> {
        let mut random = RandomStream::new(1, "estimator");
        let mut estimator = spec.build_estimator();
        let mut now = Instant::ZERO + Duration::from_secs(5);
        let mut found = Vec::new();
        for &(after, flow, size, opens_connection) in steps {
            now += after;
            let seen = Seen { now, flow: FlowId(flow), size: Bytes::new(size), opens_connection };
            if let Some(sample) = estimator.on_packet(&seen, &mut random) {
                assert_eq!((sample.flow, sample.at), (seen.flow, seen.now), "{spec}");
                found.push(sample);
            }
            assert!(estimator.memory() > Bytes::ZERO);
        }
        found
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn an_estimate_is_positive_and_no_longer_than_its_flow_was_seen(steps in steps()) {
            for description in descriptions(Role::Estimator) {
                let spec = spec(Role::Estimator, description.name);
                let found = estimates(&spec, &steps);
                for sample in &found {
                    let mut now = Instant::ZERO + Duration::from_secs(5);
                    let first = steps.iter().find_map(|&(after, flow, ..)| {
                        now += after;
                        (FlowId(flow) == sample.flow).then_some(now)
                    });
                    let seen_for = sample.at.saturating_since(first.expect("an estimate is of a flow that was seen"));
                    prop_assert!(sample.rtt > Duration::ZERO && sample.rtt <= seen_for, "{}: {:?}", spec, sample);
                }
                prop_assert_eq!(found, estimates(&spec, &steps), "{}: same in, same out", spec);
            }
        }
    }
}
