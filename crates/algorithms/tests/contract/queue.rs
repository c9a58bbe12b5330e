//! Queue disciplines, driven as a link drives them.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use suimon_algorithms::queue::policy::{Arrival, ArrivalPolicy, Verdict};
use suimon_algorithms::queue::{Backlog, Buffer, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use suimon_algorithms::random::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, EARLY, EARLY_WRAPPERS, QUEUES, Queue, Role, build_queue};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{config, duration, spec};

/// Every queue discipline, and every wrapper over each that it works over.
fn queue_disciplines() -> Vec<AlgorithmSpec> {
    let early = || EARLY.iter().map(|(d, _)| d.name.to_owned());
    let wrapped = EARLY_WRAPPERS.iter().flat_map(|(w, _)| early().map(|name| format!("{}+{name}", w.name)));
    let plain = QUEUES.iter().map(|d| d.name.to_owned());
    plain.chain(early()).chain(wrapped).map(|name| spec(Role::Queue, &name)).collect()
}

/// A packet with an identity and a place within its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestPacket {
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

#[derive(Debug, Clone)]
enum Step {
    Enqueue { flow: u32, size: u64, ecn: Ecn },
    LinkRate(Rate),
    Dequeue,
    Wait(Duration),
}

fn ecn() -> impl Strategy<Value = Ecn> {
    prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable), Just(Ecn::L4s), Just(Ecn::CongestionExperienced)]
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

fn build(spec: &AlgorithmSpec, buffer: Buffer) -> Queue<TestPacket> {
    build_queue(spec, buffer, RandomStream::new(1, "queue"))
}

/// A policy whose packets the driver keeps, and which learns of departures as late as the driver may tell it.
#[derive(Debug)]
struct KeptByDriver {
    policy: Box<dyn ArrivalPolicy>,
    waiting: VecDeque<TestPacket>,
    untold: Vec<(Instant, Bytes, Backlog)>,
}

impl QueueDiscipline<TestPacket> for KeptByDriver {
    fn enqueue(&mut self, now: Instant, mut packet: TestPacket, dropped: &mut Vec<Dropped<TestPacket>>) {
        for (at, size, left) in self.untold.drain(..) {
            self.policy.on_departure(at, size, left);
        }
        match self.policy.judge(&Arrival::of(&packet, now, self.backlog())) {
            Verdict::Pass => {}
            Verdict::Mark => packet.mark_congestion_experienced(),
            Verdict::Drop(reason) => return dropped.push(Dropped { packet, reason }),
        }
        self.waiting.push_back(packet);
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Dropped<TestPacket>>) -> Option<TestPacket> {
        let packet = self.waiting.pop_front()?;
        self.untold.push((now, packet.size, self.backlog()));
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|packet| packet.size).sum();
        Backlog { packets: self.waiting.len() as u64, bytes }
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.policy.on_link_rate(now, rate);
    }
}

/// A discipline that is shown a packet whenever it is empty, as if the link were idle.
#[derive(Debug)]
struct ShownIdle(Box<dyn QueueDiscipline<TestPacket>>);

impl QueueDiscipline<TestPacket> for ShownIdle {
    fn enqueue(&mut self, now: Instant, packet: TestPacket, dropped: &mut Vec<Dropped<TestPacket>>) {
        if self.0.backlog().packets == 0 {
            let passing = TestPacket { id: u64::MAX, flow: 9, size: Bytes::new(1_500), ecn: Ecn::Capable };
            self.0.enqueue(now, passing.clone(), dropped);
            assert_eq!(self.0.dequeue(now, dropped), Some(passing));
        }
        self.0.enqueue(now, packet, dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<TestPacket>>) -> Option<TestPacket> {
        self.0.dequeue(now, dropped)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.0.on_link_rate(now, rate);
    }
}

/// The outcome of `steps`, with every packet accounted for.
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
            Step::Wait(time) => now += time,
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
            let first = outcome(&spec, build(&spec, buffer).into_discipline(), buffer, &steps)?;
            let again = outcome(&spec, build(&spec, buffer).into_discipline(), buffer, &steps)?;
            prop_assert_eq!(&first, &again, "{}: same in, same out", spec);
            let capabilities = build(&spec, buffer).capabilities();
            if let (Queue::Policy(policy), false) = (build(&spec, buffer), capabilities.marks_departures) {
                let kept = KeptByDriver { policy, waiting: VecDeque::new(), untold: Vec::new() };
                let kept = outcome(&spec, Box::new(kept), buffer, &steps)?;
                prop_assert_eq!(&first, &kept, "{}: the same whoever keeps the packets", spec);
            }
            if capabilities.tail_drop && buffer == Buffer::Unbounded {
                let marked = first.0.iter().filter(|(_, ecn)| *ecn == Ecn::CongestionExperienced).count();
                let came_marked = |step: &&Step| matches!(step, Step::Enqueue { ecn: Ecn::CongestionExperienced, .. });
                prop_assert!(first.1.is_empty() && marked <= steps.iter().filter(came_marked).count(), "{}", spec);
            }
            if capabilities.idle_passes {
                let shown = ShownIdle(build(&spec, buffer).into_discipline());
                let shown = outcome(&spec, Box::new(shown), buffer, &steps)?;
                prop_assert_eq!(&first, &shown, "{}: the same where it sees what finds the link idle", spec);
            }
        }
    }
}
