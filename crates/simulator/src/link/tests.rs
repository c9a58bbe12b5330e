//! Whatever shortcut a link takes, its packets fare as on a port.

use proptest::prelude::*;
use suimon_algorithms::queue::{Backlog, Buffer, DropReason};
use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
use suimon_link::{Observer, QueueMeter, Service};
use suimon_model::{Capacity, Impairments, Loss, Reordering};
use suimon_units::{Probability, Rate};

use super::*;

const SEED: u64 = 7;

/// The fate of all packets: those that arrived, with time and mark, those dropped, and the statistics.
#[derive(Debug, PartialEq)]
struct Fate {
    arrived: Vec<(u32, Instant, Ecn)>,
    dropped: Vec<(u32, DropReason)>,
    statistics: String,
}

/// The observer of a port alone.
#[derive(Debug)]
struct Record {
    arriving: Vec<Frame>,
    dropped: Vec<Dropped<Frame>>,
    meter: QueueMeter,
}

impl Observer<Frame> for Record {
    fn on_sent(&mut self, frame: &Frame, _: Service, waited: Duration, newly_marked: bool) {
        self.meter.on_sent(frame.size, waited, newly_marked);
    }

    fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
        self.meter.on_backlog(now, backlog);
    }

    fn dropped(&mut self) -> &mut Vec<Dropped<Frame>> {
        &mut self.dropped
    }

    fn on_departure(&mut self, frame: Frame) {
        self.arriving.push(frame);
    }
}

fn sorted(dropped: &[Dropped<Frame>], meter: &mut QueueMeter) -> Vec<(u32, DropReason)> {
    let mut gone: Vec<_> = dropped.iter().map(|each| (each.packet.packet, each.reason)).collect();
    gone.iter().for_each(|(_, reason)| meter.on_dropped(*reason));
    gone.sort_unstable_by_key(|(packet, _)| *packet);
    gone
}

fn on_a_port(link: &model::Link, frames: &[Frame], end: Instant) -> Fate {
    let mut record = Record { arriving: Vec::new(), dropped: Vec::new(), meter: QueueMeter::new(link) };
    let mut port = Port::new(link, SEED);
    for frame in frames {
        port.proceed(frame.time, &mut record);
        let was_marked = frame.ecn == Ecn::CongestionExperienced;
        port.offer(Frame { was_marked, ..*frame }, &mut record);
    }
    port.proceed(end, &mut record);
    record.arriving.sort_by_key(|frame| frame.time);
    let arrived = record.arriving.iter().map(|frame| (frame.packet, frame.time, frame.ecn)).collect();
    let dropped = sorted(&record.dropped, &mut record.meter);
    let potential = |from, to| port.transmitter().potential(from, to);
    Fate { arrived, dropped, statistics: format!("{:?}", record.meter.result(end, potential)) }
}

/// The same on the simulator's link, which is told of each packet so long `ahead` of its time.
fn on_a_link(link: &model::Link, frames: &[Frame], ahead: Duration, end: Instant) -> Fate {
    let mut context =
        Context { events: EventQueue::default(), routes: Routes::of_one_link(), dropped: Vec::new() };
    let mut subject = Link::new(0, link, SEED, Duration::ZERO);
    for (index, frame) in frames.iter().enumerate() {
        let told = Instant::ZERO + frame.time.saturating_since(Instant::ZERO).saturating_sub(ahead);
        context.events.schedule(told, Event::FlowStart, index as u32);
    }
    let (mut arrived, mut dropped) = (Vec::new(), Vec::new());
    while let Some((now, event, index)) = context.events.pop(end) {
        match event {
            Event::LinkArrival => {
                let frame = subject.arrive(now, &mut context);
                arrived.extend(frame.map(|frame| (frame.packet, now, frame.ecn)));
            }
            Event::LinkService => subject.on_service(now, &mut context),
            _ if frames[index as usize].time == now => {
                subject.offer(now, frames[index as usize], &mut context);
            }
            _ => assert!(subject.expects(now, &frames[index as usize], &mut context), "they come in order"),
        }
        dropped.append(&mut context.dropped);
    }
    subject.catch_up(end, &mut context);
    dropped.append(&mut context.dropped);
    let mut meter = subject.meter_mut().take().expect("the link is reported");
    meter.settle(end);
    let dropped = sorted(&dropped, &mut meter.statistics);
    let result = meter.statistics.result(end, |from, to| subject.potential(from, to));
    Fate { arrived, dropped, statistics: format!("{result:?}") }
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let rate = || (100_000..100_000_000_u64).prop_map(Rate::from_bps);
    let steps = prop::collection::vec(rate(), 1..5).prop_map(|rates| {
        let every = Duration::from_millis(20);
        let steps = rates.iter().enumerate().map(|(step, rate)| (every * step as u64, *rate)).collect();
        Capacity::Steps { steps, period: every * rates.len() as u64 }
    });
    let times = prop::collection::vec(1..50_u64, 1..20).prop_map(|millis| {
        let mut times: Vec<_> = millis.into_iter().map(Duration::from_millis).collect();
        times.sort_unstable();
        Capacity::Opportunities { times: times.into(), period: Duration::from_millis(50) }
    });
    prop_oneof![
        4 => rate().prop_map(Capacity::Rate),
        1 => Just(Capacity::Rate(Rate::MAX)),
        1 => steps,
        1 => times,
    ]
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let millis = |limit| (0..limit).prop_map(Duration::from_millis);
    let reordering = (millis(20_u64), 0.0..1.0_f64)
        .prop_map(|(delay, p)| Reordering { probability: Probability::clamped(p), delay });
    let loss = (0.0..0.2_f64).prop_map(|p| Loss::Random(Probability::clamped(p)));
    let some =
        (prop_oneof![3 => Just(Loss::None), 1 => loss], millis(5), prop::option::of(reordering)).prop_map(
            |(loss, jitter, reordering)| Impairments { loss, jitter, reordering, ..Impairments::default() },
        );
    prop_oneof![Just(Impairments::default()), some]
}

fn link() -> impl Strategy<Value = model::Link> {
    let queues: Vec<_> = descriptions(Role::Queue).iter().map(|each| each.name.to_owned()).collect();
    let queue = prop_oneof![Just("droptail".to_owned()), prop::sample::select(queues)];
    let buffer = prop_oneof![
        Just(Buffer::Unbounded),
        (1..40_u64).prop_map(Buffer::Packets),
        (3_000..60_000_u64).prop_map(|bytes| Buffer::Bytes(Bytes::new(bytes))),
    ];
    let delay = (0..30_000_u64).prop_map(Duration::from_micros);
    (capacity(), delay, 0..60_u64, buffer, queue, impairments()).prop_map(
        |(capacity, delay, overhead, buffer, queue, impairments)| model::Link {
            capacity,
            overhead: Bytes::new(overhead),
            buffer,
            queue: AlgorithmSpec::parse(Role::Queue, &queue).expect("it is registered"),
            impairments,
            reported: true,
            ..model::Link::delaying("link".to_owned(), "a", "b", delay)
        },
    )
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let ecn = || prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable), Just(Ecn::CongestionExperienced)];
    let gap = prop_oneof![2 => Just(0), 5 => 1..2_000_u64, 1 => 1..100_000_u64];
    prop::collection::vec((gap, 40..1_501_u32, 0..4_u32, ecn()), 1..300).prop_map(|packets| {
        let mut time = Instant::ZERO;
        let frame = |(packet, (gap, size, flow, ecn)): (usize, (u64, u32, u32, Ecn))| {
            time += Duration::from_micros(gap);
            Frame {
                time,
                packet: packet as u32,
                flow,
                hop: 0,
                size,
                source: 0,
                destination: 1,
                ecn,
                was_marked: false,
                opens_connection: false,
            }
        };
        packets.into_iter().enumerate().map(frame).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_shortcut_gives_what_the_port_gives(link in link(), frames in frames(), ahead in 0..50_u64) {
        // All has left by then, at 100 kbit/s or one opportunity in 50 ms.
        let end = frames[frames.len() - 1].time + Duration::from_secs(60);
        let expected = on_a_port(&link, &frames, end);
        let seen = on_a_link(&link, &frames, Duration::from_millis(ahead), end);
        prop_assert_eq!(expected, seen);
    }
}

#[test]
fn links_take_the_shortcuts_that_they_may() {
    let kind = |queue: &str, buffer, impairments: Impairments| {
        let queue = AlgorithmSpec::parse(Role::Queue, queue).unwrap();
        let rate = Capacity::Rate(Rate::from_bps(1_000_000));
        let bare = model::Link::delaying("link".to_owned(), "a", "b", Duration::ZERO);
        match Kind::of(&model::Link { queue, buffer, capacity: rate, impairments, ..bare }, SEED) {
            Kind::Wire(_) => "wire",
            Kind::Precomputed(_) => "precomputed",
            Kind::Port(_) => "port",
        }
    };
    let jitter = Impairments { jitter: Duration::from_millis(1), ..Impairments::default() };
    let loss = Impairments { loss: Loss::Random(Probability::ONE), ..Impairments::default() };
    assert_eq!(kind("droptail", Buffer::Unbounded, Impairments::default()), "wire");
    assert_eq!(kind("droptail", Buffer::Packets(9), Impairments::default()), "precomputed");
    assert_eq!(kind("droptail", Buffer::Unbounded, jitter), "precomputed");
    assert_eq!(kind("dpd-qt+red", Buffer::Packets(9), Impairments::default()), "precomputed");
    assert_eq!(kind("pie", Buffer::Packets(9), Impairments::default()), "precomputed");
    assert_eq!(kind("rem", Buffer::Packets(9), Impairments::default()), "port");
    assert_eq!(kind("codel", Buffer::Packets(9), Impairments::default()), "port");
    assert_eq!(kind("red", Buffer::Packets(9), loss), "port");
}
