//! The thread that moves the packets of a link, or of several that share a radio.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex};

use suimon_link::SeriesBuilder;
use suimon_linux::schedule::{self, Scheduling, Urgency, wait_any_readable};
use suimon_linux::tun::MAX_READ;
use suimon_linux::wake::Wakeable;
use suimon_linux::{Clock, LinuxError, Tun, guest};
use suimon_model::{Capacity, Link};
use suimon_results::{DelayHistogram, Series};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::direction::{Direction, State};
use crate::gate::Gate;
use crate::marks::Marks;
use crate::packet::WirePacket;
use crate::radios::Radios;
use crate::segment::split;
use crate::statistics::{DirectionStatistics, Lateness, LinkReport, LinkStatistics};

/// A change of a direction of a link.
#[derive(Debug)]
pub(crate) enum Change {
    State(State),
    Capacity(Capacity),
    Delay(Duration),
}

/// An order to the thread.
#[derive(Debug)]
pub(crate) enum Order {
    Change { direction: usize, change: Change },
    Stop,
}

/// Moves packets between two devices for each of its links.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) clock: Clock,
    pub(crate) links: Vec<Moved>,
    /// The ends of the first link, of the second, and so on.
    pub(crate) tuns: Vec<Tun>,
    /// The directions that begin at these.
    pub(crate) directions: Vec<Direction>,
    pub(crate) segmentation: bool,
    pub(crate) radios: Radios,
    pub(crate) orders: Receiver<Order>,
    pub(crate) woken: Wakeable,
    pub(crate) interval: Duration,
    /// When the latest samples were taken: at its beginning, and about each `interval`.
    pub(crate) sampled_at: Instant,
    pub(crate) scheduling: Scheduling,
    /// The gate that packets to the second ends wait for.
    pub(crate) gate: Option<Arc<Gate>>,
}

/// What a forwarder has of each link beside its directions.
#[derive(Debug)]
pub(crate) struct Moved {
    name: String,
    published: Arc<Mutex<Option<LinkStatistics>>>,
    lateness: DelayHistogram,
    /// Packets that wait for the gate.
    gated: VecDeque<WirePacket>,
    marks: Marks,
    series: [SeriesBuilder; 2],
    /// Bytes, packets and waiting time of each direction at the latest statistics.
    sampled: [(Bytes, u64, Duration); 2],
}

impl Moved {
    pub(crate) fn new(
        directions: &[Link; 2],
        marks: Marks,
        published: Arc<Mutex<Option<LinkStatistics>>>,
    ) -> Self {
        Self {
            name: directions[0].name.clone(),
            published,
            lateness: DelayHistogram::default(),
            gated: VecDeque::new(),
            marks,
            series: directions.each_ref().map(|link| SeriesBuilder::new(&link.name)),
            sampled: [(Bytes::ZERO, 0, Duration::ZERO); 2],
        }
    }
}

/// The most packets that may wait for a listener; more are given to the host as it is.
const MAX_GATED: usize = 1_024;

/// How often is looked whether somebody listens, where a packet waits for it.
const GATE_LOOK: Duration = Duration::from_micros(200);

/// Packets read from one device before the rest is looked at.
const BATCH: usize = 64;

impl Forwarder {
    /// Moves packets until told to stop.
    pub(crate) fn run(mut self, scheduling: Scheduling) -> Result<Vec<LinkReport>, LinuxError> {
        schedule::wake_exactly();
        // Without the right to, it runs as others do, and says so.
        if scheduling == Scheduling::RealTime && schedule::become_real_time(Urgency::Link).is_ok() {
            self.scheduling = Scheduling::RealTime;
        }
        let mut buffer = vec![0; MAX_READ];
        let mut scratch = Vec::with_capacity(MAX_READ);
        let mut early = Early::new(self.clock.now(), guest::here().is_some());
        loop {
            if self.take_orders() {
                return Ok(self.reports());
            }
            let now = self.clock.now();
            self.proceed(now);
            self.deliver(now);
            let mut read = false;
            for direction in 0..self.directions.len() {
                read |= self.read(direction, &mut buffer, &mut scratch);
            }
            let now = self.clock.now();
            self.pass_marks(now);
            if now >= self.sampled_at + self.interval {
                self.publish(now);
            }
            if read {
                continue;
            }
            let next = self.next_event().min(self.sampled_at + self.interval);
            let now = self.clock.now();
            let left = next.saturating_since(now);
            if left == Duration::ZERO || early.looks_again(left, now) {
                continue;
            }
            let wait =
                if left > early.time { left.saturating_sub(early.time) } else { left.max(Early::REST) };
            let sources = self.tuns.iter().map(AsFd::as_fd).chain([self.woken.as_fd()]);
            if wait_any_readable(sources, wait)? {
                // Not with the orders: a wake may come after its order was taken. Left there, it ends each later wait at once.
                self.woken.clear();
            } else {
                early.woke(self.clock.now().saturating_since(now + wait));
            }
        }
    }

    fn pass_marks(&mut self, now: Instant) {
        for (link, directions) in self.links.iter_mut().zip(self.directions.chunks_exact_mut(2)) {
            if now >= link.marks.next() {
                link.marks.proceed(now, directions);
            }
        }
    }

    /// The reports of all links, at the end.
    fn reports(mut self) -> Vec<LinkReport> {
        let now = self.clock.now();
        let flow_series: Vec<Vec<Series>> =
            self.directions.iter_mut().map(|direction| direction.passing.flows.take_series()).collect();
        let mut flow_series = flow_series.into_iter();
        for (link, directions) in self.links.iter_mut().zip(self.directions.chunks_exact_mut(2)) {
            link.marks.close_all(now, directions);
        }
        let over = now.saturating_since(self.sampled_at);
        let statistics: Vec<_> = (0..self.links.len()).map(|link| self.statistics(now, over, link)).collect();
        let mut directions = self.directions.into_iter();
        let mut reports = Vec::new();
        for (link, statistics) in self.links.into_iter().zip(statistics) {
            let mut flows = [Vec::new(), Vec::new()];
            for (flows, direction) in flows.iter_mut().zip(directions.by_ref()) {
                *flows = direction.passing.flows.largest(usize::MAX);
            }
            reports.push(LinkReport {
                statistics,
                series: link.series.map(SeriesBuilder::finish),
                flow_series: [0, 1].map(|_| flow_series.next().unwrap_or_default()),
                windows: link.marks.closed,
                flows,
            });
        }
        reports
    }

    /// Does as told; true where that is to stop.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(Order::Change { direction, change }) => self.change(direction, change),
                Ok(Order::Stop) | Err(TryRecvError::Disconnected) => return true,
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    fn change(&mut self, direction: usize, change: Change) {
        let now = self.clock.now();
        self.proceed(now);
        let changed = &mut self.directions[direction];
        match change {
            Change::State(state) => changed.set_state(now, state),
            Change::Capacity(capacity) => changed.set_capacity(now, &capacity),
            Change::Delay(delay) => changed.set_delay(delay),
        }
        if changed.is_radio() && changed.is_waiting() {
            self.radios.on_waiting(now, direction);
        }
    }

    fn proceed(&mut self, now: Instant) {
        self.radios.proceed(now, &mut self.directions);
        for direction in &mut self.directions {
            direction.proceed(now);
        }
    }

    /// Gives the hosts the packets that are due.
    fn deliver(&mut self, now: Instant) {
        for link in 0..self.links.len() {
            for _ in 0..self.links[link].gated.len() {
                if let Some(packet) = self.links[link].gated.pop_front() {
                    self.give(2 * link, packet);
                }
            }
        }
        for direction in 0..self.directions.len() {
            while let Some(packet) = self.directions[direction].pop_due(now) {
                self.links[direction / 2].lateness.record(self.clock.now().saturating_since(packet.time));
                self.give(direction, packet);
            }
        }
    }

    /// Gives a packet to the host at the end of `direction`, or keeps it until somebody listens there.
    fn give(&mut self, direction: usize, packet: WirePacket) {
        let gated = &mut self.links[direction / 2].gated;
        if direction.is_multiple_of(2)
            && let Some(gate) = &self.gate
            && gated.len() < MAX_GATED
            && packet.opens_flow()
            && !gate.admits(&packet.key())
        {
            gated.push_back(packet);
            return;
        }
        // A device that is down takes nothing, as a host that is off.
        let _ = self.tuns[direction ^ 1].write(packet.for_device(self.segmentation));
    }

    /// Takes in the packets that a host has sent; true where there may be more.
    fn read(&mut self, direction: usize, buffer: &mut [u8], scratch: &mut Vec<u8>) -> bool {
        for _ in 0..BATCH {
            let length = match self.tuns[direction].read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let now = self.clock.now();
            self.proceed(now);
            let to = &mut self.directions[direction];
            let was_waiting = to.is_waiting();
            let handed = &mut buffer[..length];
            if self.segmentation {
                if split(handed, scratch, |packet| to.arrive(now, packet)).is_err() {
                    to.refused.malformed += 1;
                }
            } else {
                to.arrive(now, handed);
            }
            if to.is_radio() && !was_waiting && to.is_waiting() {
                self.radios.on_waiting(now, direction);
            }
        }
        true
    }

    fn next_event(&self) -> Instant {
        let is_gated = self.links.iter().any(|link| !link.gated.is_empty());
        let look = if is_gated { self.clock.now() + GATE_LOOK } else { Instant::MAX };
        let of_directions = self.directions.iter().map(Direction::next_event);
        let marks = self.links.iter().map(|link| link.marks.next());
        of_directions.chain(marks).fold(self.radios.next_event().min(look), Instant::min)
    }

    /// Samples all links, and publishes their statistics.
    fn publish(&mut self, now: Instant) {
        // The thread may have come to it late.
        let over = now.saturating_since(self.sampled_at);
        self.sampled_at = now;
        let series = self.links.iter_mut().flat_map(|link| &mut link.series);
        for (direction, series) in self.directions.iter_mut().zip(series) {
            series.begin(now);
            direction.passing.meter.sample(over, series);
            direction.probe(series);
            direction.passing.flows.sample(now, over);
        }
        for link in 0..self.links.len() {
            let statistics = self.statistics(now, over, link);
            // Packets wait for nobody: a reader that holds this gets the next one.
            if let Ok(mut published) = self.links[link].published.try_lock() {
                *published = Some(statistics);
            }
        }
    }

    /// The statistics of the link at this place, since those before, which were taken `over` ago.
    fn statistics(&mut self, now: Instant, over: Duration, place: usize) -> LinkStatistics {
        let of = |direction: &Direction, sampled: &mut (Bytes, u64, Duration)| {
            let potential = |from, to| direction.potential(from, to);
            let totals = direction.passing.meter.clone().result(now, potential);
            let waited = totals.delay_mean * totals.packets;
            let (bytes, packets) =
                (totals.bytes.saturating_sub(sampled.0).get(), totals.packets.saturating_sub(sampled.1));
            let sojourn = (packets > 0).then(|| waited.saturating_sub(sampled.2) / packets);
            *sampled = (totals.bytes, totals.packets, waited);
            DirectionStatistics {
                backlog: direction.backlog(),
                throughput: Rate::of(Bytes::new(bytes), over),
                sojourn,
                totals,
                refused: direction.refused,
                flows: direction.passing.flows.largest(SHOWN),
                flow_count: direction.passing.flows.count(),
            }
        };
        let link = &mut self.links[place];
        let (there, back) = (&self.directions[2 * place], &self.directions[2 * place + 1]);
        let [sampled_there, sampled_back] = &mut link.sampled;
        LinkStatistics {
            name: link.name.clone(),
            at: now,
            rtt: there.delay() + back.delay(),
            directions: [of(there, sampled_there), of(back, sampled_back)],
            lateness: Lateness::of(&link.lateness),
            scheduling: self.scheduling,
            unseen: 0,
        }
    }
}

/// Flows that statistics name.
const SHOWN: usize = 64;

/// How much before something is due the thread wakes up, to look again and again until it is: the kernel wakes it
/// some time late, which depends on the machine and its load.
///
/// A link with something due all the time is served in bursts instead.
///
/// In a guest whose time is the count of its instructions the thread never looks: the kernel wakes it within some microseconds there, and each
/// look takes time from the programs that send over the link, as all share one processor.
#[derive(Debug)]
struct Early {
    time: Duration,
    /// What `time` may be at most.
    most: Duration,
    /// Time that may still be spent looking. Of all time at most half is, or a busy link would take a core from
    /// those who send over it.
    budget: Duration,
    asked: Instant,
    looking: bool,
}

impl Early {
    const MIN: Duration = Duration::from_micros(20);
    const MAX: Duration = Duration::from_micros(150);
    const BUDGET: Duration = Duration::from_millis(1);
    /// How long the thread sleeps at least, once it has looked for all of its time.
    const REST: Duration = Duration::from_micros(40);

    fn new(now: Instant, is_in_guest: bool) -> Self {
        let most = if is_in_guest { Duration::ZERO } else { Self::MAX };
        Self { time: most, most, budget: Self::BUDGET, asked: now, looking: false }
    }

    /// True where something is due so soon, in `ahead`, that it is worth looking again.
    fn looks_again(&mut self, ahead: Duration, now: Instant) -> bool {
        let since = now.saturating_since(self.asked);
        self.asked = now;
        self.budget = if self.looking {
            self.budget.saturating_sub(since)
        } else {
            (self.budget + since).min(Self::BUDGET)
        };
        self.looking = ahead <= self.time && self.budget > Duration::ZERO;
        self.looking
    }

    /// The kernel woke the thread so much `late`: keeps a quarter more than the most of late, which it forgets slowly.
    fn woke(&mut self, late: Duration) {
        let wanted = late.mul_f64(1.25).max(self.time.mul_f64(0.99));
        self.time = wanted.max(Self::MIN).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_wakes_late_looks_early_but_in_a_guest() {
        for is_in_guest in [false, true] {
            let now = Instant::ZERO + Duration::from_secs(1);
            let mut early = Early::new(now, is_in_guest);
            early.woke(Duration::from_micros(60));
            assert_eq!(early.looks_again(Duration::from_micros(50), now), !is_in_guest);
            assert_eq!(early.time > Duration::ZERO, !is_in_guest);
            assert!(!early.looks_again(Duration::from_millis(1), now));
        }
    }
}
