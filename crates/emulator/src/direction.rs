//! One direction of a link in real time: a port, and the packets in flight behind it.

use std::collections::{HashMap, VecDeque};

use suimon_algorithms::Probe;
use suimon_algorithms::queue::{Backlog, DropReason, Dropped, FlowId, Packet as _};
use suimon_link::{Observer, Port, QueueMeter, Service, Transit};
use suimon_model::{Capacity, Link};
use suimon_units::{Bytes, Duration, Instant};

use crate::flows::FlowTable;
use crate::log::{Fate, PacketLog};
use crate::packet::{FlowKey, WirePacket};

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    port: Port<WirePacket>,
    state: State,
    numbered: u64,
    pub(crate) passing: Passing,
    pub(crate) refused: Refused,
}

/// The packets in a direction of a link, and their outcome.
#[derive(Debug)]
pub(crate) struct Passing {
    /// The delay of some flows beside the link's.
    flow_delays: HashMap<FlowId, Duration>,
    /// Packets between transmission and arrival, by arrival.
    in_flight: VecDeque<WirePacket>,
    /// Bytes of memory that packets take here.
    held: usize,
    dropped: Vec<Dropped<WirePacket>>,
    pub(crate) meter: QueueMeter,
    pub(crate) flows: FlowTable,
    pub(crate) log: Option<PacketLog>,
}

/// Whether anything gets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// Waiting packets go on waiting, and new ones may join them.
    Held,
    /// All packets, new, waiting or in flight, are lost.
    Cut,
}

/// Packets that never came to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refused {
    /// Not whole IP packets.
    pub malformed: u64,
    /// The link held [`MAX_MEMORY`](crate::MAX_MEMORY) already.
    pub for_memory: u64,
}

/// Most memory that the packets in one direction of a link take, whatever its buffer may hold.
pub const MAX_MEMORY: Bytes = Bytes::new(256 * 1024 * 1024);

/// The memory of a packet beside its bytes: its record in a queue, and the allocator's part.
const RECORD: usize = 160;

impl Direction {
    pub(crate) fn new(link: &Link, seed: u64) -> Self {
        Self {
            port: Port::new(link, seed),
            state: State::Open,
            numbered: 0,
            passing: Passing {
                flow_delays: HashMap::new(),
                in_flight: VecDeque::new(),
                held: 0,
                dropped: Vec::new(),
                meter: QueueMeter::new(link),
                flows: FlowTable::default(),
                log: None,
            },
            refused: Refused::default(),
        }
    }

    /// Changes the capacity. A packet in transmission goes on as it began.
    pub(crate) fn set_capacity(&mut self, now: Instant, capacity: &Capacity) {
        self.port.set_capacity(now, capacity);
    }

    pub(crate) fn delay(&self) -> Duration {
        self.port.transmitter().delay()
    }

    pub(crate) fn set_flow_delays(&mut self, delays: &[(FlowKey, Duration)]) {
        self.passing.flow_delays = delays.iter().map(|(key, delay)| (key.id(), *delay)).collect();
    }

    /// Forgets all measurements so far.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.passing.meter.restart(now);
        self.passing.flows.restart();
    }

    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.port.set_delay(delay);
    }

    pub(crate) fn set_state(&mut self, now: Instant, state: State) {
        match state {
            State::Open => self.port.release(now),
            State::Held | State::Cut => self.port.hold(),
        }
        if state == State::Cut {
            let in_flight = self.passing.in_flight.drain(..);
            let lost = in_flight.map(|packet| Dropped { packet, reason: DropReason::Link });
            self.passing.dropped.extend(lost);
            self.port.lose_all(now, &mut self.passing);
        }
        self.state = state;
    }

    /// Takes in a packet that comes now. All that was due before has been seen to.
    pub(crate) fn arrive(&mut self, now: Instant, ip: &[u8]) {
        let memory = ip.len() + RECORD;
        if (self.passing.held + memory) as u64 > MAX_MEMORY.get() {
            self.refused.for_memory += 1;
            return;
        }
        let Ok(packet) = WirePacket::new(ip, now, self.numbered) else {
            self.refused.malformed += 1;
            return;
        };
        self.numbered += 1;
        self.passing.held += memory;
        self.passing.flows.on_arrival(now, &packet);
        self.passing.record(now, &packet, Fate::Arrived);
        if self.state == State::Cut {
            self.passing.dropped.push(Dropped { packet, reason: DropReason::Link });
            self.passing.on_dropped(now);
        } else {
            self.port.offer(packet, &mut self.passing);
        }
    }

    /// Sends the packets that had their turn by `now`, each at its time.
    pub(crate) fn proceed(&mut self, now: Instant) {
        self.port.proceed(now, &mut self.passing);
    }

    /// When [`Direction::proceed`] or [`Direction::pop_due`] has something to do, if nothing comes.
    pub(crate) fn next_event(&self) -> Instant {
        let arrival = self.passing.in_flight.front().map_or(Instant::MAX, |packet| packet.time);
        self.port.next_turn().min(arrival)
    }

    /// Gives a packet that arrives at the far end by `now`; its `time` is when it should.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<WirePacket> {
        let packet = self.passing.in_flight.pop_front_if(|packet| packet.time <= now)?;
        self.passing.held -= packet.ip().len() + RECORD;
        let late = now.saturating_since(packet.time);
        self.passing.record(packet.time, &packet, Fate::Delivered { late });
        Some(packet)
    }

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        self.port.waiting() > 0 && self.state == State::Open
    }

    /// Gives the next packet to the radio that serves the link, and returns the bytes that it takes.
    pub(crate) fn hand_over(&mut self, now: Instant) -> Option<Bytes> {
        self.port.hand_over(now, &mut self.passing)
    }

    /// The radio has carried the oldest of its packets by `at`, if a cut has left it one.
    pub(crate) fn carried(&mut self, at: Instant) {
        self.port.carried(at, &mut self.passing);
    }

    /// The radio has given up the oldest of its packets, if a cut has left it one.
    pub(crate) fn not_carried(&mut self, now: Instant) {
        self.port.not_carried(now, &mut self.passing);
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.port.backlog()
    }

    /// Tells the queue's inner values.
    pub(crate) fn probe(&self, out: &mut dyn Probe) {
        self.port.probe(out);
    }

    pub(crate) fn is_radio(&self) -> bool {
        self.port.transmitter().is_radio()
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.port.transmitter().potential(from, to)
    }
}

impl Passing {
    fn record(&mut self, at: Instant, packet: &WirePacket, fate: Fate) {
        if let Some(log) = &mut self.log {
            log.record(at, packet, fate);
        }
    }
}

impl Observer<WirePacket> for Passing {
    fn on_sent(&mut self, packet: &WirePacket, service: Service, waited: Duration, newly_marked: bool) {
        self.meter.on_sent(packet.size().get() as u32, waited, newly_marked);
        self.flows.on_sent(packet, newly_marked);
        self.record(service.starts, packet, Fate::Sent { waited, marked: newly_marked });
    }

    fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
        self.meter.on_backlog(now, backlog);
    }

    fn dropped(&mut self) -> &mut Vec<Dropped<WirePacket>> {
        &mut self.dropped
    }

    fn on_dropped(&mut self, now: Instant) {
        let mut dropped = std::mem::take(&mut self.dropped);
        for Dropped { packet, reason } in dropped.drain(..) {
            self.held -= packet.ip().len() + RECORD;
            self.meter.on_dropped(reason);
            self.flows.on_dropped(&packet);
            self.record(now, &packet, Fate::Dropped(reason));
        }
        self.dropped = dropped;
    }

    fn delayed(&self, packet: &WirePacket, arrival: Instant) -> Instant {
        match self.flow_delays.is_empty() {
            true => arrival,
            false => arrival + self.flow_delays.get(&packet.flow()).copied().unwrap_or(Duration::ZERO),
        }
    }

    fn on_departure(&mut self, packet: WirePacket) {
        match self.in_flight.back() {
            Some(last) if last.time > packet.time => {
                let place = self.in_flight.partition_point(|other| other.time <= packet.time);
                self.in_flight.insert(place, packet);
            }
            _ => self.in_flight.push_back(packet),
        }
    }
}

impl Transit for WirePacket {
    fn time(&self) -> Instant {
        self.time
    }

    fn set_time(&mut self, time: Instant) {
        self.time = time;
    }

    fn came_marked(&self) -> bool {
        self.came_marked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
    use suimon_scenario::LinkSpec;
    use suimon_units::Rate;

    use super::*;
    use crate::packet::tests::datagram;

    fn direction(link: &str, queue: &str) -> Direction {
        let queue = AlgorithmSpec::parse(Role::Queue, queue).unwrap();
        let [link, _] = LinkSpec::parse(link).unwrap().links(&queue);
        Direction::new(&link, 1)
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// When each packet that is due by `now` should arrive.
    fn due(direction: &mut Direction, now: Instant) -> Vec<Instant> {
        direction.proceed(now);
        std::iter::from_fn(|| direction.pop_due(now)).map(|packet| packet.time).collect()
    }

    #[test]
    fn packets_arrive_at_the_links_rate_and_delay_however_late_one_looks() {
        // 1000 bytes take 8 ms at 1 Mbit/s.
        let mut punctual = direction("1Mbit 20ms", "droptail");
        let mut late = direction("1Mbit 20ms", "droptail");
        for _ in 0..5 {
            punctual.arrive(at(0), &datagram(1, 1_000, 0));
            late.arrive(at(0), &datagram(1, 1_000, 0));
        }
        let expected = [18_000, 26_000, 34_000, 42_000, 50_000].map(at);
        let seen: Vec<_> = (0..60).flat_map(|ms| due(&mut punctual, at(ms * 1_000))).collect();
        assert_eq!(seen, expected);
        assert_eq!(due(&mut late, at(60_000)), expected);
        assert_eq!((late.next_event(), late.passing.held), (Instant::MAX, 0));
    }

    #[test]
    fn a_held_link_lets_packets_wait_and_a_cut_one_loses_them() {
        let mut link = direction("1Mbit 20ms", "droptail");
        link.arrive(at(0), &datagram(1, 1_000, 0));
        link.set_state(at(1_000), State::Held);
        link.arrive(at(2_000), &datagram(1, 1_000, 0));
        assert_eq!(due(&mut link, at(100_000)), [at(18_000)], "what was on its way arrives");
        link.set_state(at(100_000), State::Open);
        assert_eq!(due(&mut link, at(200_000)), [at(118_000)]);
        link.arrive(at(200_000), &datagram(1, 1_000, 0));
        link.arrive(at(200_000), &datagram(1, 1_000, 0));
        link.set_state(at(201_000), State::Cut);
        link.arrive(at(202_000), &datagram(1, 1_000, 0));
        link.set_state(at(203_000), State::Open);
        assert_eq!((due(&mut link, at(900_000)), link.passing.held), (vec![], 0));
        assert_eq!(link.passing.meter.clone().result(at(900_000), |_, _| None).lost_on_link, 3);
    }

    #[test]
    fn a_rate_may_change_while_packets_wait() {
        let mut link = direction("1Mbit 20ms", "droptail");
        for _ in 0..3 {
            link.arrive(at(0), &datagram(1, 1_000, 0));
        }
        link.set_capacity(at(1_000), &Capacity::Rate(Rate::from_bps(8_000_000)));
        assert_eq!(due(&mut link, at(90_000)), [at(18_000), at(19_000), at(20_000)]);
    }

    #[test]
    fn a_flood_of_small_packets_takes_no_more_memory_than_allowed() {
        let mut link = direction("64kbit 20ms unbounded", "droptail");
        let packet = datagram(1, 64, 0);
        for _ in 0..2_000_000 {
            link.arrive(at(0), &packet);
        }
        assert!(link.passing.held as u64 <= MAX_MEMORY.get());
        assert!(link.refused.for_memory > 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_packet_arrives_once_in_order_or_is_counted(
            packets in proptest::collection::vec((0_u64..3_000, 64_usize..1_500, 0_u16..5, 0_u8..4), 1..200), queue in any::<proptest::sample::Index>(),
        ) {
            let queues = descriptions(Role::Queue);
            let mut link = direction("10Mbit 10ms 20packets loss=5%", queues[queue.index(queues.len())].name);
            let (mut now, mut arrived) = (0, Vec::new());
            for (gap, size, port, ecn) in &packets {
                now += gap;
                arrived.extend(due(&mut link, at(now)));
                link.arrive(at(now), &datagram(*port, *size, *ecn));
            }
            arrived.extend(due(&mut link, at(now + 10_000_000)));
            prop_assert!(arrived.is_sorted());
            let totals = link.passing.meter.clone().result(at(now), |_, _| None);
            let lost = totals.dropped_overflow + totals.dropped_early + totals.lost_on_link;
            prop_assert_eq!(arrived.len() as u64 + lost, packets.len() as u64);
            prop_assert_eq!((link.passing.held, link.backlog().packets), (0, 0));
        }
    }
}
