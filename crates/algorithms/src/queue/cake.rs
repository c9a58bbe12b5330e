//! CAKE without its shaper: a queue for each flow without hash collisions in practice, deficit round robin
//! with care for sparse flows, and COBALT in each (Høiland-Jørgensen, Täht, Morton: Piece of CAKE, 2018).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::cobalt::{Cobalt, Settings};
use super::codel::{ECN, MTU, TARGET};
use super::flows::{FlowHash, FlowQueues, Rings, place_of};
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Packet, QueueDiscipline};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cake",
    summary: "a queue for each flow, served in turn, sparse flows first, with CoDel and BLUE in each",
    source: "Høiland-Jørgensen, Täht, Morton: Piece of CAKE, 2018; Linux 4.19",
    colour: "#9c755f",
    parameters: &[
        TARGET,
        Parameter {
            name: "rtt",
            help: "for how long delay must stay above the target before the first signal; about the longest round-trip time",
            default: Value::Duration(Duration::from_millis(100)),
            range: Range::Any,
        },
        MTU,
        ECN,
        Parameter {
            name: "flows",
            help: "number of queues, in sets of eight",
            default: Value::Count(1_024),
            range: Range::Between(8.0, 32_768.0),
        },
        Parameter {
            name: "isolation",
            help: "equal shares for each flow; or first for each source, each destination, or both (triple)",
            default: Value::Choice("triple"),
            range: Range::OneOf(&["flows", "dual-src", "dual-dst", "triple"]),
        },
    ],
};

/// Places that a flow or a host may have (CAKE_SET_WAYS).
const WAYS: usize = 8;

/// Lists of flows.
const NEW: usize = 0;
const OLD: usize = 1;
const DECAYING: usize = 2;

/// A queue's part in the round.
#[derive(Debug, Clone, Default)]
struct Flow {
    /// The hash of the flow that has the queue.
    tag: u64,
    state: State,
    deficit: i64,
    cobalt: Cobalt,
    /// Places of its hosts.
    source: u16,
    destination: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Nobody's.
    #[default]
    Idle,
    /// Has not yet used up its turn.
    Sparse,
    /// The same, and empty, but among the old ones so that others have their turn before.
    SparseWait,
    /// Has used up its turn and had more.
    Bulk,
    /// Empty, but COBALT has not yet come to rest.
    Decaying,
}

/// The sides of a flow whose hosts are told apart: the flows of a host share the turn of one flow.
#[derive(Debug, Clone, Copy)]
struct Isolation {
    sources: bool,
    destinations: bool,
}

/// The number of bulky flows of each host.
#[derive(Debug, Clone)]
struct Hosts(Box<[Host]>);

#[derive(Debug, Clone, Default)]
struct Host {
    tag: u64,
    bulk_flows: u32,
}

impl Hosts {
    /// The place of the host with this hash: its own, or one without bulky flows, or a shared one.
    fn place(&mut self, tag: u64) -> u16 {
        let hosts = &self.0;
        let at = way(place_of(tag, hosts.len()), |at| hosts[at].tag == tag, |at| hosts[at].bulk_flows == 0);
        self.0[at].tag = tag;
        at as u16
    }
}

/// One of the places of the set that `first` is in: its own, else a free one, else `first`.
fn way(first: usize, is_user_defined: impl Fn(usize) -> bool, is_free: impl Fn(usize) -> bool) -> usize {
    let set = first / WAYS * WAYS;
    let ways = || (0..WAYS).map(|way| set + (first + way) % WAYS);
    ways().find(|at| is_user_defined(*at)).or_else(|| ways().find(|at| is_free(*at))).unwrap_or(first)
}

/// Flows in turn, COBALT in each.
#[derive(Debug, Clone)]
pub struct Cake<P> {
    queues: FlowQueues<P>,
    flows: Box<[Flow]>,
    sources: Hosts,
    destinations: Hosts,
    isolation: Isolation,
    lists: Rings,
    hash: FlowHash,
    random: RandomStream,
    quantum: i64,
    settings: Settings,
    /// As asked for, before the link's rate is allowed for.
    asked: Settings,
    mtu: Bytes,
}

impl<P: Packet> Cake<P> {
    /// Empty queues with room for `buffer` in all and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, mut random: RandomStream) -> Self {
        let flows = arguments.count("flows") as usize / WAYS * WAYS;
        let settings = Settings {
            target: arguments.duration("target"),
            interval: arguments.duration("rtt"),
            mtu_time: Duration::ZERO,
            ecn: arguments.flag("ecn"),
        };
        Self {
            queues: FlowQueues::new(flows, buffer),
            flows: vec![Flow::default(); flows].into(),
            sources: Hosts(vec![Host::default(); flows].into()),
            destinations: Hosts(vec![Host::default(); flows].into()),
            isolation: match arguments.choice("isolation") {
                "dual-src" => Isolation { sources: true, destinations: false },
                "dual-dst" => Isolation { sources: false, destinations: true },
                "triple" => Isolation { sources: true, destinations: true },
                _ => Isolation { sources: false, destinations: false },
            },
            lists: Rings::new(flows, 3),
            hash: FlowHash::new(&mut random),
            random,
            quantum: MAX_QUANTUM,
            settings,
            asked: settings,
            mtu: arguments.bytes("mtu"),
        }
    }

    /// The queue of the flow with this hash.
    fn queue_of(&self, tag: u64) -> usize {
        let flows = &self.flows;
        let is_user_defined = |at: usize| flows[at].tag == tag && flows[at].state != State::Idle;
        way(place_of(tag, flows.len()), is_user_defined, |at| flows[at].state == State::Idle)
    }

    /// Bytes that a flow may send in its turn: a host's bulky flows share one flow's.
    fn turn(&self, at: usize) -> i64 {
        let Flow { source, destination, .. } = self.flows[at];
        let of = |hosts: &Hosts, at: u16, counts: bool| {
            if counts { hosts.0[usize::from(at)].bulk_flows } else { 1 }
        };
        let load = of(&self.sources, source, self.isolation.sources)
            .max(of(&self.destinations, destination, self.isolation.destinations))
            .max(1);
        // Rounded up, so that no flow waits for ever.
        (self.quantum + i64::from(load) - 1) / i64::from(load)
    }

    /// The flow is in `state` from now on, and its hosts have one bulky flow more or less.
    fn enter(&mut self, at: usize, state: State) {
        let flow = &mut self.flows[at];
        let was_bulk = core::mem::replace(&mut flow.state, state) == State::Bulk;
        let is_bulk = state == State::Bulk;
        if was_bulk != is_bulk {
            let hosts = [(&mut self.sources, flow.source), (&mut self.destinations, flow.destination)];
            for (hosts, place) in hosts {
                let host = &mut hosts.0[usize::from(place)];
                host.bulk_flows = if is_bulk { host.bulk_flows + 1 } else { host.bulk_flows - 1 };
            }
        }
    }

    /// Makes room at the head of the fattest queue.
    #[cold]
    fn drop_one(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) {
        let active = self.lists.members(NEW).chain(self.lists.members(OLD));
        let fattest = active.max_by_key(|at| self.queues.backlog_of(*at).bytes);
        let Some(fattest) = fattest else { return };
        let packet = self.queues.pop(fattest).map(|timed| timed.packet);
        dropped.extend(packet.map(|packet| Dropped { packet, reason: DropReason::Overflow }));
        self.flows[fattest].cobalt.on_overflow(&self.settings, now);
    }

    /// The next packet of a flow whose turn it is; none where the flow has no more.
    fn take(&mut self, at: usize, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        let flow = &mut self.flows[at];
        loop {
            let mut timed = self.queues.pop(at)?;
            let drop = flow.cobalt.drops(&self.settings, now, &mut timed, &mut self.random);
            // The last packet of a flow is never dropped.
            if !drop || self.queues.backlog_of(at).packets == 0 {
                flow.deficit -= timed.size().get() as i64;
                return Some(timed.packet);
            }
            dropped.push(Dropped { packet: timed.packet, reason: DropReason::Early });
        }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        let tag = self.hash.of(packet.flow().0);
        let at = self.queue_of(tag);
        match self.flows[at].state {
            State::Idle | State::Decaying => {
                let hosts = packet.hosts();
                let source = self.sources.place(self.hash.of(hosts.source));
                let destination = self.destinations.place(self.hash.of(hosts.destination));
                let flow = &mut self.flows[at];
                (flow.tag, flow.source, flow.destination) = (tag, source, destination);
                self.enter(at, State::Sparse);
                self.flows[at].deficit = self.turn(at);
                self.lists.move_to(at, NEW);
            }
            State::SparseWait => self.enter(at, State::Bulk),
            State::Sparse | State::Bulk => {}
        }
        self.queues.push(at, Timed { packet, since: now });
        while self.queues.overflows() {
            self.drop_one(now, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        // Each time one of those that decay gets its turn, so that they come to rest.
        let mut next = self.lists.first(DECAYING);
        while self.queues.backlog().packets > 0 {
            let at = next.take().or_else(|| self.lists.first(NEW)).or_else(|| self.lists.first(OLD))?;
            if self.flows[at].deficit <= 0 {
                if self.flows[at].state == State::Sparse {
                    let is_empty = self.queues.backlog_of(at).packets == 0;
                    self.enter(at, if is_empty { State::SparseWait } else { State::Bulk });
                }
                self.flows[at].deficit += self.turn(at);
                self.lists.move_to(at, OLD);
                continue;
            }
            let packet = self.take(at, now, dropped);
            if packet.is_some() {
                return packet;
            }
            let cobalt = &mut self.flows[at].cobalt;
            cobalt.on_empty(&self.settings, now);
            if cobalt.is_at_rest(now) {
                self.enter(at, State::Idle);
                self.lists.remove(at);
            } else {
                self.enter(at, State::Decaying);
                self.lists.move_to(at, DECAYING);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn on_link_rate(&mut self, _now: Instant, rate: Rate) {
        // A slow link needs a target above the time of a packet, and small turns.
        let mtu_time = rate.transmission_time(self.mtu);
        let target = self.asked.target.max(mtu_time * 3 / 2);
        let interval = (self.asked.interval + target.saturating_sub(self.asked.target)).max(target * 2);
        self.settings = Settings { target, interval, mtu_time, ..self.asked };
        self.quantum = ((rate.as_bps() / 8 / 4_096) as i64).clamp(MIN_QUANTUM, MAX_QUANTUM);
    }

    fn probe(&self, out: &mut dyn Probe) {
        let members = || (NEW..=DECAYING).flat_map(|list| self.lists.members(list));
        let blue = members().map(|at| self.flows[at].cobalt.blue()).fold(0.0, f64::max);
        out.value("blue_probability", blue);
        let bulky = members().filter(|at| self.flows[*at].state == State::Bulk);
        out.value("bulky_flows", bulky.count() as f64);
    }
}

/// Bytes of a flow's turn, on a slow link and on a fast one.
const MIN_QUANTUM: i64 = 300;
const MAX_QUANTUM: i64 = 1_514;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{FlowPacket, drain};
    use crate::registry::{AlgorithmSpec, Role};

    const MS: Duration = Duration::from_millis(1);

    fn cake(settings: &str, buffer: Buffer) -> Cake<FlowPacket> {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("cake{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        spec.arguments().for_each(|(name, value)| arguments.set(name, value));
        Cake::new(&arguments, buffer, RandomStream::new(1, "cake"))
    }

    fn enqueue(queue: &mut Cake<FlowPacket>, flow: u32, size: u64) -> Vec<Dropped<FlowPacket>> {
        let mut dropped = Vec::new();
        queue.enqueue(Instant::ZERO, FlowPacket::new(flow, size), &mut dropped);
        dropped
    }

    #[test]
    fn flows_that_meet_in_a_set_get_queues_of_their_own() {
        let mut queue = cake("", Buffer::Unbounded);
        (0..300).for_each(|flow| drop(enqueue(&mut queue, flow, 100)));
        let plain: std::collections::BTreeSet<_> =
            (0..300).map(|flow| place_of(queue.hash.of(flow), 1_024)).collect();
        let own: std::collections::BTreeSet<_> =
            (0..300).map(|flow| queue.queue_of(queue.hash.of(flow))).collect();
        assert!(plain.len() < 270 && own.len() == 300, "{} {}", plain.len(), own.len());
    }

    #[test]
    fn in_a_full_set_flows_share() {
        let mut queue = cake(":flows=8", Buffer::Unbounded);
        (0..20).for_each(|flow| drop(enqueue(&mut queue, flow, 100)));
        assert_eq!(drain(&mut queue).count(), 20);
    }

    #[test]
    fn flows_get_equal_bytes_and_a_sparse_one_goes_first() {
        let mut queue = cake("", Buffer::Unbounded);
        for _ in 0..200 {
            enqueue(&mut queue, 1, 1_500);
            (0..15).for_each(|_| drop(enqueue(&mut queue, 2, 100)));
        }
        let mut bytes = [0; 3];
        drain(&mut queue).take(1_600).for_each(|packet| bytes[packet.flow as usize] += packet.size);
        assert!(bytes[1].abs_diff(bytes[2]) <= 2 * 1_514 + 1_500, "{bytes:?}");
        enqueue(&mut queue, 3, 100);
        assert!(drain(&mut queue).take(2).any(|packet| packet.flow == 3));
    }

    #[test]
    fn hosts_get_equal_bytes_whatever_the_number_of_their_flows() {
        // Flows 0 to 8 are of one host and flow 9 of another; all go to a host each.
        let share_of_the_one = |isolation| {
            let mut queue = cake(&format!(":isolation={isolation}"), Buffer::Unbounded);
            for _ in 0..300 {
                for flow in 0..10 {
                    let packet = FlowPacket { source: u32::from(flow == 9), ..FlowPacket::new(flow, 1_000) };
                    queue.enqueue(Instant::ZERO, packet, &mut Vec::new());
                }
            }
            // Past the first turn of each, in which none is bulky yet.
            let sent = drain(&mut queue).skip(100).take(300).filter(|packet| packet.flow == 9).count();
            sent as f64 / 300.0
        };
        for (isolation, share) in [("flows", 0.1), ("dual-dst", 0.1), ("dual-src", 0.5), ("triple", 0.5)] {
            let measured = share_of_the_one(isolation);
            assert!((measured - share).abs() < 0.02, "{isolation}: {measured}");
        }
    }

    #[test]
    fn hosts_have_no_bulky_flows_once_all_is_sent() {
        let mut queue = cake("", Buffer::Unbounded);
        (0..3_000).for_each(|n| drop(enqueue(&mut queue, n % 100, 1_500)));
        let bulky = |hosts: &Hosts| hosts.0.iter().map(|host| host.bulk_flows).sum::<u32>();
        drain(&mut queue).take(1_000).for_each(drop);
        assert_eq!((bulky(&queue.sources), bulky(&queue.destinations)), (100, 100));
        drain(&mut queue).for_each(drop);
        enqueue(&mut queue, 1_000, 100);
        enqueue(&mut queue, 1_000, 100);
        drain(&mut queue).for_each(drop);
        let active = queue.flows.iter().filter(|flow| flow.state == State::Bulk).count() as u32;
        assert_eq!((bulky(&queue.sources), bulky(&queue.destinations)), (active, active));
    }

    #[test]
    fn overflow_takes_from_the_fattest_and_wakes_its_blue() {
        let mut queue = cake("", Buffer::Bytes(Bytes::new(10_000)));
        (0..6).for_each(|_| drop(enqueue(&mut queue, 1, 1_500)));
        let dropped: Vec<_> = (0..10).flat_map(|_| enqueue(&mut queue, 2, 200)).collect();
        assert!(!dropped.is_empty() && dropped.iter().all(|d| d.packet.flow == 1));
        assert!(dropped.iter().all(|d| d.reason == DropReason::Overflow));
    }

    #[test]
    fn a_slow_link_has_a_longer_target_and_a_smaller_quantum() {
        let mut queue = cake("", Buffer::Unbounded);
        queue.on_link_rate(Instant::ZERO, Rate::from_bps(1_000_000));
        assert_eq!((queue.settings.target, queue.settings.interval), (MS * 18, MS * 113));
        assert_eq!(queue.quantum, 300);
        queue.on_link_rate(Instant::ZERO, Rate::from_bps(1_000_000_000));
        assert_eq!((queue.settings.target, queue.settings.interval), (MS * 5, MS * 100));
        assert_eq!(queue.quantum, 1_514);
    }

    #[test]
    fn an_outage_or_no_limit_as_a_rate_does_no_harm() {
        for rate in [Rate::ZERO, Rate::MAX] {
            let mut queue = cake("", Buffer::Unbounded);
            queue.on_link_rate(Instant::ZERO, rate);
            (0..10).for_each(|flow| drop(enqueue(&mut queue, flow, 1_500)));
            assert_eq!(drain(&mut queue).count(), 10);
        }
    }

    #[test]
    fn a_queue_is_given_back_once_cobalt_is_at_rest() {
        let mut queue = cake("", Buffer::Unbounded);
        let mut now = Instant::ZERO;
        (0..100).for_each(|_| drop(enqueue(&mut queue, 1, 1_500)));
        for step in 0..3_000 {
            now += MS * 10;
            // Another flow keeps the link busy.
            queue.enqueue(now, FlowPacket::new(2, 100), &mut Vec::new());
            queue.dequeue(now, &mut Vec::new());
            if step == 500 {
                assert_ne!(queue.flows[queue.queue_of(queue.hash.of(1))].tag, 0);
            }
        }
        let tag = queue.hash.of(1);
        assert!(queue.flows.iter().all(|flow| flow.tag != tag || flow.state == State::Idle));
    }
}
