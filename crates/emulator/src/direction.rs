//! One direction of a link: queue, server, and the packets in flight, on any clock.

use std::collections::{HashMap, VecDeque};

use suimon_algorithms::RandomStream;
use suimon_algorithms::queue::{Backlog, DropReason, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use suimon_algorithms::registry::build_queue;
use suimon_link::{Impairments, QueueMeter, Server};
use suimon_model::{self as scenario, Capacity};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::flows::FlowTable;
use crate::log::{Fate, PacketLog};
use crate::packet::{FlowKey, WirePacket};

/// One direction of a link.
///
/// It is told what comes and asked what is due; whenever it is asked late, it does what was to be done each at its
/// time, so that lateness adds delay to packets but takes nothing from the link's rate.
#[derive(Debug)]
pub(crate) struct Direction {
    server: Server,
    delay: Duration,
    /// What packets of some flows have beside it.
    flow_delays: HashMap<FlowId, Duration>,
    /// What each packet costs beside its own bytes.
    overhead: Bytes,
    impairments: Option<Impairments>,
    queue: Box<dyn QueueDiscipline<WirePacket>>,
    /// A packet that need not wait need not be shown to the queue.
    idle_passes: bool,
    /// What the queue was last told of the rate, where that changes.
    rate_told: Option<Rate>,
    /// The queue gave nothing of what waits; it is asked again when something comes.
    stalled: bool,
    /// The packet in transmission has left by then.
    free_at: Instant,
    state: State,
    /// Packets that a radio holds, in order.
    on_air: VecDeque<WirePacket>,
    /// Packets between transmission and arrival, by arrival.
    in_flight: VecDeque<WirePacket>,
    /// Bytes of memory that packets take here.
    held: usize,
    numbered: u64,
    pub(crate) meter: QueueMeter,
    pub(crate) flows: FlowTable,
    pub(crate) log: Option<PacketLog>,
    pub(crate) refused: Refused,
    dropped: Vec<Dropped<WirePacket>>,
}

/// Whether anything gets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// What waits goes on waiting, and what comes may wait.
    Held,
    /// What comes, waits or is in flight is lost.
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

/// What a packet takes beside its bytes: its record in a queue, and what the allocator adds.
const RECORD: usize = 160;

impl Direction {
    pub(crate) fn new(link: &scenario::Link, seed: u64) -> Self {
        let random = |what: &str| RandomStream::new(seed, &format!("link {} {what}", link.name));
        let queue = build_queue(&link.queue, link.buffer, random("queue")).into_discipline();
        let mut direction = Self {
            server: Server::Unlimited,
            delay: link.delay,
            flow_delays: HashMap::new(),
            overhead: link.overhead,
            impairments: Impairments::of(link, random("impairments")),
            idle_passes: queue.capabilities().idle_passes,
            queue,
            rate_told: None,
            stalled: false,
            free_at: Instant::ZERO,
            state: State::Open,
            on_air: VecDeque::new(),
            in_flight: VecDeque::new(),
            held: 0,
            numbered: 0,
            meter: QueueMeter::new(link),
            flows: FlowTable::default(),
            log: None,
            refused: Refused::default(),
            dropped: Vec::new(),
        };
        direction.set_capacity(Instant::ZERO, &link.capacity);
        direction
    }

    /// Changes how fast it sends. What is being sent goes on as it began.
    pub(crate) fn set_capacity(&mut self, now: Instant, capacity: &Capacity) {
        self.server = Server::new(capacity);
        // A radio takes packets when it wants, so such a link is never free by itself.
        self.free_at = match self.server {
            Server::Radio => Instant::MAX,
            _ if self.free_at == Instant::MAX => now,
            _ => self.free_at,
        };
        self.rate_told = None;
        self.tell_rate(now);
    }

    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    pub(crate) fn set_flow_delays(&mut self, delays: &[(FlowKey, Duration)]) {
        self.flow_delays = delays.iter().map(|(key, delay)| (key.id(), *delay)).collect();
    }

    /// What was measured so far is forgotten.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.meter.restart(now);
        self.flows.restart();
    }

    pub(crate) fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    pub(crate) fn set_state(&mut self, now: Instant, state: State) {
        if state == State::Cut {
            while let Some(packet) = self.queue.dequeue(now, &mut self.dropped) {
                self.dropped.push(Dropped { packet, reason: DropReason::Link });
            }
            for packet in self.in_flight.drain(..).chain(self.on_air.drain(..)) {
                self.dropped.push(Dropped { packet, reason: DropReason::Link });
            }
            self.account_for_drops(now);
        } else if self.state == State::Held {
            self.free_at = if self.free_at == Instant::MAX { self.free_at } else { self.free_at.max(now) };
        }
        self.state = state;
        self.observe(now);
    }

    /// Takes in a packet that comes now. All that was due before has been seen to.
    pub(crate) fn arrive(&mut self, now: Instant, ip: &[u8]) {
        let memory = ip.len() + RECORD;
        if (self.held + memory) as u64 > MAX_MEMORY.get() {
            self.refused.for_memory += 1;
            return;
        }
        let Ok(packet) = WirePacket::new(ip, now, self.numbered) else {
            self.refused.malformed += 1;
            return;
        };
        self.numbered += 1;
        self.held += memory;
        self.flows.on_arrival(now, &packet);
        self.record(now, &packet, Fate::Arrived);
        if self.state == State::Cut {
            self.dropped.push(Dropped { packet, reason: DropReason::Link });
            self.account_for_drops(now);
            return;
        }
        let idle = self.state == State::Open && now >= self.free_at;
        if idle && (self.idle_passes || matches!(self.server, Server::Unlimited)) {
            self.transmit(now, packet);
            return;
        }
        self.tell_rate(now);
        self.queue.enqueue(now, packet, &mut self.dropped);
        self.stalled = false;
        self.account_for_drops(now);
        if idle {
            self.send_next(now);
        }
        self.observe(now);
    }

    /// Sends what had its turn by `now`, each packet at its time.
    pub(crate) fn proceed(&mut self, now: Instant) {
        loop {
            let turn = self.next_turn();
            if turn > now {
                return;
            }
            self.send_next(turn);
            self.observe(turn);
        }
    }

    /// When [`Direction::proceed`] or [`Direction::pop_due`] has something to do, if nothing comes.
    pub(crate) fn next_event(&self) -> Instant {
        let arrival = self.in_flight.front().map_or(Instant::MAX, |packet| packet.time);
        self.next_turn().min(arrival)
    }

    /// Gives a packet that arrives at the far end by `now`; its `time` is when it should.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<WirePacket> {
        let packet = self.in_flight.pop_front_if(|packet| packet.time <= now)?;
        self.held -= packet.ip().len() + RECORD;
        self.record(packet.time, &packet, Fate::Delivered { late: now.saturating_since(packet.time) });
        Some(packet)
    }

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        self.has_waiting() && self.state == State::Open
    }

    /// Gives the next packet to the radio that serves the link: its size.
    pub(crate) fn hand_over(&mut self, now: Instant) -> Option<Bytes> {
        let packet = self.take_from_queue(now);
        self.observe(now);
        let packet = packet?;
        self.count_sent(&packet, now);
        let size = packet.size() + self.overhead;
        self.on_air.push_back(packet);
        Some(size)
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub(crate) fn carried(&mut self, at: Instant) {
        // A cut takes from the radio what it holds.
        if let Some(packet) = self.on_air.pop_front() {
            self.propagate(at, packet);
        }
    }

    /// The radio has given up the oldest of its packets.
    pub(crate) fn not_carried(&mut self, now: Instant) {
        if let Some(packet) = self.on_air.pop_front() {
            self.dropped.push(Dropped { packet, reason: DropReason::Link });
            self.account_for_drops(now);
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    pub(crate) fn queue(&self) -> &dyn QueueDiscipline<WirePacket> {
        &*self.queue
    }

    pub(crate) fn is_radio(&self) -> bool {
        matches!(self.server, Server::Radio)
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.potential(from, to)
    }

    fn has_waiting(&self) -> bool {
        !self.stalled && self.queue.backlog().packets > 0
    }

    /// When the first that waits can be sent.
    fn next_turn(&self) -> Instant {
        if self.has_waiting() && self.state == State::Open { self.free_at } else { Instant::MAX }
    }

    /// Tells the queue where the rate has changed.
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.server.rate_at(now);
        if let Some(rate) = rate.filter(|_| rate != self.rate_told) {
            self.rate_told = Some(rate);
            self.queue.on_link_rate(now, rate);
        }
    }

    fn send_next(&mut self, now: Instant) {
        if let Some(packet) = self.take_from_queue(now) {
            self.transmit(now, packet);
        }
    }

    fn take_from_queue(&mut self, now: Instant) -> Option<WirePacket> {
        let packet = self.queue.dequeue(now, &mut self.dropped);
        self.account_for_drops(now);
        self.stalled = packet.is_none();
        packet
    }

    fn transmit(&mut self, now: Instant, packet: WirePacket) {
        let service = self.server.send(now, packet.size() + self.overhead);
        self.free_at = service.ends;
        self.count_sent(&packet, service.starts);
        self.propagate(service.ends, packet);
    }

    fn count_sent(&mut self, packet: &WirePacket, starts: Instant) {
        let waited = starts.saturating_since(packet.time);
        let marked = packet.ecn() == Ecn::CongestionExperienced && !packet.came_marked;
        self.meter.on_sent(packet.size().get() as u32, waited, marked);
        self.flows.on_sent(packet, marked);
        self.record(starts, packet, Fate::Sent { waited, marked });
    }

    /// Puts a packet that left at `departure` on its way.
    fn propagate(&mut self, departure: Instant, mut packet: WirePacket) {
        let of_flow = match self.flow_delays.is_empty() {
            true => Duration::ZERO,
            false => self.flow_delays.get(&packet.flow()).copied().unwrap_or(Duration::ZERO),
        };
        packet.time = departure + self.delay + of_flow;
        if let Some(impairments) = &mut self.impairments {
            let Some(arrival) = impairments.apply(departure, packet.time) else {
                self.dropped.push(Dropped { packet, reason: DropReason::Link });
                self.account_for_drops(departure);
                return;
            };
            packet.time = arrival;
        }
        match self.in_flight.back() {
            Some(last) if last.time > packet.time => {
                let place = self.in_flight.partition_point(|other| other.time <= packet.time);
                self.in_flight.insert(place, packet);
            }
            _ => self.in_flight.push_back(packet),
        }
    }

    fn account_for_drops(&mut self, now: Instant) {
        let mut dropped = std::mem::take(&mut self.dropped);
        for Dropped { packet, reason } in dropped.drain(..) {
            self.held -= packet.ip().len() + RECORD;
            self.meter.on_dropped(reason);
            self.flows.on_dropped(&packet);
            self.record(now, &packet, Fate::Dropped(reason));
        }
        self.dropped = dropped;
    }

    fn record(&mut self, at: Instant, packet: &WirePacket, fate: Fate) {
        if let Some(log) = &mut self.log {
            log.record(at, packet, fate);
        }
    }

    /// Keeps the books on what waits.
    fn observe(&mut self, now: Instant) {
        self.meter.on_backlog(now, self.queue.backlog());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suimon_algorithms::registry::{AlgorithmSpec, Role, descriptions};
    use suimon_scenario::LinkSpec;

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
        assert_eq!((late.next_event(), late.held), (Instant::MAX, 0));
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
        assert_eq!((due(&mut link, at(900_000)), link.held), (vec![], 0));
        assert_eq!(link.meter.clone().result(at(900_000), |_, _| None).lost_on_link, 3);
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
        assert!(link.held as u64 <= MAX_MEMORY.get());
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
            let totals = link.meter.clone().result(at(now), |_, _| None);
            let lost = totals.dropped_overflow + totals.dropped_early + totals.lost_on_link;
            prop_assert_eq!(arrived.len() as u64 + lost, packets.len() as u64);
            prop_assert_eq!((link.held, link.backlog().packets), (0, 0));
        }
    }
}
