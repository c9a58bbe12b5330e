//! The thread that moves the packets of one link.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex};

use suimon_link::SeriesBuilder;
use suimon_linux::schedule::{self, Scheduling, Urgency, wait_readable};
use suimon_linux::tun::MAX_READ;
use suimon_linux::wake::Wakeable;
use suimon_linux::{Clock, LinuxError, Tun};
use suimon_model::Capacity;
use suimon_results::DelayHistogram;
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

/// Moves packets between two devices.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) name: String,
    pub(crate) clock: Clock,
    pub(crate) tuns: [Tun; 2],
    pub(crate) segmentation: bool,
    pub(crate) directions: [Direction; 2],
    pub(crate) radios: Radios,
    pub(crate) orders: Receiver<Order>,
    pub(crate) woken: Wakeable,
    pub(crate) interval: Duration,
    pub(crate) published: Arc<Mutex<Option<LinkStatistics>>>,
    pub(crate) began: Instant,
    pub(crate) lateness: DelayHistogram,
    pub(crate) scheduling: Scheduling,
    /// The gate that packets to the second end wait for.
    pub(crate) gate: Option<Arc<Gate>>,
    /// Packets that wait for the gate.
    pub(crate) gated: VecDeque<WirePacket>,
    pub(crate) marks: Marks,
}

/// The most packets that may wait for a listener; more are given to the host as it is.
const MAX_GATED: usize = 1_024;

/// How often is looked whether somebody listens, where a packet waits for it.
const GATE_LOOK: Duration = Duration::from_micros(200);

/// Packets read from one device before the rest is looked at.
const BATCH: usize = 64;

impl Forwarder {
    /// Moves packets until told to stop.
    pub(crate) fn run(mut self, scheduling: Scheduling) -> Result<LinkReport, LinuxError> {
        schedule::wake_exactly();
        // Without the right to, it runs as others do, and says so.
        if scheduling == Scheduling::RealTime && schedule::become_real_time(Urgency::Link).is_ok() {
            self.scheduling = Scheduling::RealTime;
        }
        let mut buffer = vec![0; MAX_READ];
        let mut scratch = Vec::with_capacity(MAX_READ);
        let mut series = [0, 1].map(|direction| SeriesBuilder::new(self.subject(direction)));
        let mut next_sample = self.began + self.interval;
        let mut sampled = [(Bytes::ZERO, 0, Duration::ZERO); 2];
        let mut early = Early::new(self.clock.now());
        loop {
            if self.take_orders() {
                let flow_series =
                    self.directions.each_mut().map(|direction| direction.passing.flows.take_series());
                let now = self.clock.now();
                self.marks.close_all(now, &mut self.directions);
                let statistics = self.statistics(now, &mut sampled);
                return Ok(LinkReport {
                    statistics,
                    series: series.map(SeriesBuilder::finish),
                    flow_series,
                    windows: self.marks.closed,
                    flows: self.directions.map(|direction| direction.passing.flows.largest(usize::MAX)),
                });
            }
            let now = self.clock.now();
            self.proceed(now);
            self.deliver(now);
            let read = self.read(0, &mut buffer, &mut scratch) | self.read(1, &mut buffer, &mut scratch);
            let now = self.clock.now();
            if now >= self.marks.next() {
                self.marks.proceed(now, &mut self.directions);
            }
            if now >= next_sample {
                self.sample(now, &mut series);
                let statistics = self.statistics(now, &mut sampled);
                // Packets wait for nobody: a reader that holds this gets the next one.
                if let Ok(mut published) = self.published.try_lock() {
                    *published = Some(statistics);
                }
                next_sample = now + self.interval;
            }
            if read {
                continue;
            }
            let next = self.next_event().min(next_sample).min(self.marks.next());
            let now = self.clock.now();
            let left = next.saturating_since(now);
            if left == Duration::ZERO || early.looks_again(left, now) {
                continue;
            }
            let wait =
                if left > early.time { left.saturating_sub(early.time) } else { left.max(Early::REST) };
            let sources = [self.tuns[0].as_fd(), self.tuns[1].as_fd(), self.woken.as_fd()];
            if wait_readable(sources, Some(wait))? == [false; 3] {
                early.woke(self.clock.now().saturating_since(now + wait));
            }
        }
    }

    fn subject(&self, direction: usize) -> &str {
        self.directions[direction].passing.meter.name()
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
        self.woken.clear();
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
        for _ in 0..self.gated.len() {
            if let Some(packet) = self.gated.pop_front() {
                self.give(0, packet);
            }
        }
        for direction in [0, 1] {
            while let Some(packet) = self.directions[direction].pop_due(now) {
                self.lateness.record(self.clock.now().saturating_since(packet.time));
                self.give(direction, packet);
            }
        }
    }

    /// Gives a packet to the host at the end of `direction`, or keeps it until somebody listens there.
    fn give(&mut self, direction: usize, packet: WirePacket) {
        if direction == 0
            && let Some(gate) = &self.gate
            && self.gated.len() < MAX_GATED
            && packet.opens_flow()
            && !gate.admits(&packet.key())
        {
            self.gated.push_back(packet);
            return;
        }
        // A device that is down takes nothing, as a host that is off.
        let _ = self.tuns[1 - direction].write(packet.for_device(self.segmentation));
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
        let [there, back] = &self.directions;
        if !self.gated.is_empty() {
            return self.clock.now() + GATE_LOOK;
        }
        there.next_event().min(back.next_event()).min(self.radios.next_event())
    }

    fn sample(&mut self, now: Instant, series: &mut [SeriesBuilder; 2]) {
        for (direction, series) in self.directions.iter_mut().zip(series) {
            series.begin(now);
            direction.passing.meter.sample(self.interval, series);
            direction.probe(series);
            direction.passing.flows.sample(now, self.interval);
        }
    }

    /// `sampled` holds bytes, packets and waiting time of each direction at the last call.
    fn statistics(&self, now: Instant, sampled: &mut [(Bytes, u64, Duration); 2]) -> LinkStatistics {
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
                throughput: Rate::of(Bytes::new(bytes), self.interval),
                sojourn,
                totals,
                refused: direction.refused,
                flows: direction.passing.flows.largest(SHOWN),
                flow_count: direction.passing.flows.count(),
            }
        };
        let [there, back] = sampled;
        LinkStatistics {
            name: self.name.clone(),
            at: now,
            rtt: self.directions.iter().fold(Duration::ZERO, |sum, direction| sum + direction.delay()),
            directions: [of(&self.directions[0], there), of(&self.directions[1], back)],
            lateness: Lateness::of(&self.lateness),
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
#[derive(Debug)]
struct Early {
    time: Duration,
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

    fn new(now: Instant) -> Self {
        Self { time: Self::MAX, budget: Self::BUDGET, asked: now, looking: false }
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
        self.time = wanted.max(Self::MIN).min(Self::MAX);
    }
}
