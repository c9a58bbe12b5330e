//! A link of the simulator between two ends of a QUIC connection, with a clock of its own.

use std::collections::{BTreeMap, VecDeque};
use std::time;

use suimon_algorithms::queue::{Backlog, Dropped, Ecn, FlowId, Packet};
use suimon_link::{Observer, Port, QueueMeter, Service, Transit};
use suimon_results::QueueResult;
use suimon_scenario::Link;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::peer::Peer;

/// What a download over the link came to.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    /// Of the stream's bytes, over the whole run.
    pub(crate) goodput: Rate,
    /// The queue before the bottleneck.
    pub(crate) queue: QueueResult,
    /// When each packet of the server left it, and its bytes.
    pub(crate) sent: Vec<(Instant, usize)>,
}

/// IP version 4 and UDP.
const HEADERS: u64 = 28;

#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    ecn: Ecn,
    came_marked: bool,
    time: Instant,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes::new(self.bytes.len() as u64 + HEADERS)
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
    }
}

impl Transit for Datagram {
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

/// What is on its way, and what was measured.
#[derive(Debug)]
struct Wire {
    meter: QueueMeter,
    /// By arrival, in the order of departure where that is the same.
    under_way: BTreeMap<Instant, VecDeque<Datagram>>,
    dropped: Vec<Dropped<Datagram>>,
}

impl Observer<Datagram> for Wire {
    fn on_sent(&mut self, packet: &Datagram, _service: Service, waited: Duration, newly_marked: bool) {
        self.meter.on_sent(packet.size().get() as u32, waited, newly_marked);
    }
    fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
        self.meter.on_backlog(now, backlog);
    }
    fn dropped(&mut self) -> &mut Vec<Dropped<Datagram>> {
        &mut self.dropped
    }
    fn on_dropped(&mut self, _now: Instant) {
        self.dropped.drain(..).for_each(|dropped| self.meter.on_dropped(dropped.reason));
    }
    fn on_departure(&mut self, packet: Datagram) {
        self.under_way.entry(packet.time).or_default().push_back(packet);
    }
}

/// One direction.
struct Way {
    port: Port<Datagram>,
    wire: Wire,
}

impl Way {
    fn new(link: &Link, seed: u64) -> Self {
        let wire = Wire { meter: QueueMeter::new(link), under_way: BTreeMap::new(), dropped: Vec::new() };
        Self { port: Port::new(link, seed), wire }
    }

    fn next(&self) -> Instant {
        let arrival = self.wire.under_way.keys().next().copied();
        arrival.unwrap_or(Instant::MAX).min(self.port.next_turn())
    }

    /// What has arrived by `now`.
    fn arrived(&mut self, now: Instant) -> Vec<Datagram> {
        self.port.proceed(now, &mut self.wire);
        let mut arrived = Vec::new();
        while let Some(first) = self.wire.under_way.first_entry()
            && *first.key() <= now
        {
            arrived.extend(first.remove());
        }
        arrived
    }
}

/// Downloads for `duration` over the two ways of a link; `pair` makes the server and the client.
pub(crate) fn download(
    links: &[Link; 2],
    seed: u64,
    duration: Duration,
    pair: impl FnOnce(time::Instant) -> [Box<dyn Peer>; 2],
) -> Download {
    // The stacks take the system's instants, of which only differences count.
    let zero = time::Instant::now();
    let theirs =
        |at: Instant| zero + time::Duration::from_nanos(at.saturating_since(Instant::ZERO).as_nanos());
    let ours = |at: time::Instant| Instant::ZERO + Duration::from_nanos((at - zero).as_nanos() as u64);
    let mut ends = pair(zero);
    let mut ways = links.each_ref().map(|link| Way::new(link, seed));
    let mut sent = Vec::new();
    let end = Instant::ZERO + duration;
    let mut now = Instant::ZERO;
    while now < end {
        for (from, to) in [(0, 1), (1, 0)] {
            for datagram in ways[from].arrived(now) {
                ends[to].receive(theirs(now), &datagram.bytes, datagram.ecn);
            }
        }
        for peer in &mut ends {
            if peer.timeout().is_some_and(|at| ours(at) <= now) {
                peer.on_timeout(theirs(now));
            }
        }
        for (from, peer) in ends.iter_mut().enumerate() {
            while let Some((bytes, ecn)) = peer.transmit(theirs(now)) {
                if from == 0 {
                    sent.push((now, bytes.len()));
                }
                let Way { port, wire } = &mut ways[from];
                port.offer(Datagram { bytes, ecn, came_marked: false, time: now }, wire);
            }
        }
        let timers = ends.iter_mut().filter_map(|peer| peer.timeout()).map(ours);
        let next = timers.chain(ways.iter().map(Way::next)).min().unwrap_or(end);
        // A timer that is due again at once counts as due a moment later.
        now = next.max(now + Duration::from_nanos(1));
    }
    let [Way { port, wire }, _] = ways;
    Download {
        goodput: Rate::of(Bytes::new(ends[1].read()), duration),
        queue: wire.meter.result(end, |from, to| port.transmitter().potential(from, to)),
        sent,
    }
}
