//! The thread that moves the packets of one link.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex};

use suimon_link::SeriesBuilder;
use suimon_linux::schedule::{self, Scheduling, wait_readable};
use suimon_linux::tun::LONGEST_READ;
use suimon_linux::wake::Wakeable;
use suimon_linux::{Clock, LinuxError, Tun};
use suimon_results::DelayHistogram;
use suimon_scenario::Capacity;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::direction::{Direction, State};
use crate::radios::Radios;
use crate::segment::split;
use crate::statistics::{DirectionStatistics, Lateness, LinkReport, LinkStatistics};

/// What is to change in a direction of a link.
#[derive(Debug)]
pub(crate) enum Change {
    State(State),
    Capacity(Capacity),
    Delay(Duration),
}

/// What the thread is told.
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
}

/// Wakes up so much before something is due, and looks again and again until it is: the kernel wakes a thread
/// some 10 us late.
const EARLY: Duration = Duration::from_micros(50);

/// Of its time the thread spends at most half so, or a busy link would take a core from those who send over it.
const MOST_EARLY: Duration = Duration::from_millis(1);

/// Packets read from one device before the rest is looked at.
const BATCH: usize = 64;

impl Forwarder {
    /// Moves packets until told to stop.
    pub(crate) fn run(mut self, scheduling: Scheduling) -> Result<LinkReport, LinuxError> {
        schedule::wake_exactly();
        // Without the right to, it runs as others do, and says so.
        if scheduling == Scheduling::RealTime && schedule::become_real_time().is_ok() {
            self.scheduling = Scheduling::RealTime;
        }
        let mut buffer = vec![0; LONGEST_READ];
        let mut scratch = Vec::with_capacity(LONGEST_READ);
        let mut series = [0, 1].map(|direction| SeriesBuilder::new(self.subject(direction)));
        let mut next_sample = self.began + self.interval;
        let mut sampled = [(Bytes::ZERO, 0, Duration::ZERO); 2];
        let mut budget = Budget::new(self.clock.now());
        loop {
            if self.take_orders() {
                let statistics = self.statistics(self.clock.now(), &mut sampled);
                return Ok(LinkReport { statistics, series: series.map(SeriesBuilder::finish) });
            }
            let now = self.clock.now();
            self.proceed(now);
            self.deliver(now);
            let read = self.read(0, &mut buffer, &mut scratch) | self.read(1, &mut buffer, &mut scratch);
            let now = self.clock.now();
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
            let next = self.next_event().min(next_sample);
            let left = next.saturating_since(self.clock.now());
            if left == Duration::ZERO || budget.allows(left, self.clock.now()) {
                continue;
            }
            let wait = if left > EARLY { left.saturating_sub(EARLY) } else { left };
            let sources = [self.tuns[0].as_fd(), self.tuns[1].as_fd(), self.woken.as_fd()];
            wait_readable(sources, Some(wait))?;
        }
    }

    fn subject(&self, direction: usize) -> &str {
        self.directions[direction].meter.name()
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

    /// Gives the hosts what is due.
    fn deliver(&mut self, now: Instant) {
        for (direction, tun) in self.directions.iter_mut().zip([&self.tuns[1], &self.tuns[0]]) {
            while let Some(packet) = direction.pop_due(now) {
                // A device that is down takes nothing, as a host that is off.
                let _ = tun.write(packet.for_device(self.segmentation));
                self.lateness.record(self.clock.now().saturating_since(packet.time));
            }
        }
    }

    /// Takes in what a host has sent; true where there may be more.
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
        there.next_event().min(back.next_event()).min(self.radios.next_event())
    }

    fn sample(&mut self, now: Instant, series: &mut [SeriesBuilder; 2]) {
        for (direction, series) in self.directions.iter_mut().zip(series) {
            series.begin(now);
            direction.meter.sample(self.interval, series);
            direction.queue().probe(series);
        }
    }

    /// `sampled` holds bytes, packets and waiting time of each direction at the last call.
    fn statistics(&self, now: Instant, sampled: &mut [(Bytes, u64, Duration); 2]) -> LinkStatistics {
        let of = |direction: &Direction, sampled: &mut (Bytes, u64, Duration)| {
            let potential = |from, to| direction.potential(from, to);
            let totals = direction.meter.clone().result(now, potential);
            let waited = totals.delay_mean * totals.packets;
            let (bytes, packets) = (totals.bytes.get() - sampled.0.get(), totals.packets - sampled.1);
            let sojourn = (packets > 0).then(|| waited.saturating_sub(sampled.2) / packets);
            *sampled = (totals.bytes, totals.packets, waited);
            DirectionStatistics {
                backlog: direction.backlog(),
                throughput: Rate::of(Bytes::new(bytes), self.interval),
                sojourn,
                totals,
                refused: direction.refused,
                flows: direction.flows.largest(SHOWN),
                flow_count: direction.flows.count(),
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

/// How long the thread may still look again and again rather than sleep.
#[derive(Debug)]
struct Budget {
    left: Duration,
    asked: Instant,
    looking: bool,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { left: MOST_EARLY, asked: now, looking: false }
    }

    /// True where something is due so soon, in `ahead`, that it is worth looking again.
    fn allows(&mut self, ahead: Duration, now: Instant) -> bool {
        let since = now.saturating_since(self.asked);
        self.asked = now;
        self.left =
            if self.looking { self.left.saturating_sub(since) } else { (self.left + since).min(MOST_EARLY) };
        self.looking = ahead <= EARLY && self.left > Duration::ZERO;
        self.looking
    }
}
