//! Both ends of a stream in one process, and its measurements: alike in simulations and on a real kernel.

mod measured;

use std::collections::VecDeque;

use suimon_algorithms::Probe;
use suimon_algorithms::path::{PathId, PathScheduler, PathStatus, Rtt};
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::measured::{Held, Stalls};
use crate::meter::{Occupancy, RateMeter, WindowedMin};
use crate::receiver::{AggregateReceiver, Feedback};
use crate::sender::{AggregateSender, Chunk};

/// The settings of a stream.
#[derive(Debug)]
pub struct StreamOptions {
    /// The choice of a connection for each chunk.
    pub scheduler: Box<dyn PathScheduler>,
    /// Bytes of a chunk: a full segment of each connection.
    pub chunk: Bytes,
    /// Whether data of a connection that makes no progress is given to others too.
    pub copy_stalled: bool,
    /// Most that a connection may hold, unsent or unacknowledged.
    pub send_buffer: Bytes,
    /// Most that may wait at the receiver for data of other connections.
    pub reorder_buffer: Bytes,
    /// A connection that is silent for so long is to be made anew; none leaves it to TCP.
    pub reconnect: Option<Duration>,
    /// For each connection, whether a gateway splits it.
    pub is_split: Vec<bool>,
}

/// A connection as its sender reads it.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Bytes acknowledged since it began.
    pub acknowledged: Bytes,
    /// Bytes that it holds and never sent.
    pub unsent: Bytes,
    /// What it may have in flight.
    pub cwnd: Bytes,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Its smoothed round-trip time.
    pub rtt: Option<Rtt>,
    /// A round-trip time of late.
    pub rtt_sample: Option<Duration>,
}

/// The totals of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamTotals {
    /// Payload delivered in order to the application while measured.
    pub delivered: Bytes,
    /// The rate of that, until the stream was complete.
    pub goodput: Rate,
    /// Payload that arrived a second time.
    pub duplicates: Bytes,
    /// Bytes that waited at the receiver for others: mean over time.
    pub reorder_mean_bytes: f64,
    /// Most that waited at once.
    pub reorder_max: Bytes,
    /// Longest time in which nothing reached the application.
    pub longest_stall: Duration,
    /// How often a connection was made anew.
    pub reconnections: u64,
}

/// One stream over several connections.
#[derive(Debug)]
pub struct Stream {
    sender: AggregateSender,
    receiver: AggregateReceiver,
    send_buffer: Bytes,
    reconnect: Option<Duration>,
    reconnections: u64,
    paths: Vec<Path>,
    /// The receiving end's feedback since these times, oldest first.
    said: VecDeque<(Instant, Feedback)>,
    /// The same as gateways have heard it, since these times.
    passed_on: VecDeque<(Instant, Feedback)>,
    started: Option<Instant>,
    completed: Option<Instant>,
    held: Held,
    stalls: Stalls,
    duplicates: Bytes,
    before_measuring: Before,
    /// Delivered at the sample before.
    sampled: u64,
}

/// Counts at the end of the warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    delivered: u64,
    duplicates: Bytes,
    reconnections: u64,
}

#[derive(Debug, Default)]
struct Path {
    /// A gateway splits the connection.
    is_split: bool,
    /// The time when the connection was begun.
    opened: Option<Instant>,
    established: bool,
    /// Bytes ever written to the connection.
    written: u64,
    /// Bytes that the connection has delivered.
    delivered: u64,
    /// Data written and not yet delivered: first byte of the stream and length.
    under_way: VecDeque<(u64, u64)>,
    rate: RateMeter,
    rtt_min: WindowedMin,
}

impl Stream {
    /// A stream of which nothing was sent so far.
    #[must_use]
    pub fn new(options: StreamOptions) -> Self {
        let receiver = AggregateReceiver::new(options.reorder_buffer);
        let paths = options.is_split.len();
        let mut sender = AggregateSender::new(options.scheduler, paths, options.chunk, options.copy_stalled);
        // The receiver's buffer is told as the connections are made.
        sender.on_feedback(receiver.feedback());
        let path = |is_split| Path { is_split, ..Path::default() };
        Self {
            paths: options.is_split.into_iter().map(path).collect(),
            sender,
            receiver,
            send_buffer: options.send_buffer,
            reconnect: options.reconnect,
            reconnections: 0,
            said: VecDeque::new(),
            passed_on: VecDeque::new(),
            started: None,
            completed: None,
            held: Held::default(),
            stalls: Stalls::default(),
            duplicates: Bytes::ZERO,
            before_measuring: Before::default(),
            sampled: 0,
        }
    }

    /// The connection of `path` begins.
    pub fn start(&mut self, now: Instant, path: usize) {
        self.paths[path].opened = Some(now);
        if self.started.is_none() {
            self.started = Some(now);
            self.stalls.restart(now);
        }
    }

    /// Whether the first of its connections has begun.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// When all of it had arrived.
    #[must_use]
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// A path whose connection is to be given up now.
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<usize> {
        (0..self.paths.len()).find(|path| self.dead_at(*path).is_some_and(|at| at <= now))
    }

    fn dead_at(&self, path: usize) -> Option<Instant> {
        let patience = self.reconnect.filter(|_| self.completed.is_none())?;
        let state = &self.paths[path];
        match state.established {
            true => self.sender.dead_at(PathId(path), patience),
            false => Some(state.opened? + patience),
        }
    }

    /// The connection of `path` is given up, and another begun.
    pub fn on_reconnect(&mut self, now: Instant, path: usize) {
        self.reconnections += 1;
        self.sender.path_down(PathId(path));
        self.paths[path] = Path { opened: Some(now), ..Path::default() };
    }

    /// The connection of `path`, which is established, was read; by then the sender has heard what the receiving end, or
    /// the gateway that splits the connection, said until the time `heard`.
    pub fn on_reading(&mut self, now: Instant, path: usize, reading: Reading, heard: Option<Instant>) {
        let said = if self.paths[path].is_split { &mut self.passed_on } else { &mut self.said };
        while let Some(feedback) = next_by(said, heard) {
            self.sender.on_feedback(feedback);
        }
        let state = &mut self.paths[path];
        if !state.established {
            state.established = true;
            self.sender.path_up(now, PathId(path));
        }
        let Reading { acknowledged, unsent, cwnd, mss, rtt, rtt_sample } = reading;
        let buffered = Bytes::new(state.written) - acknowledged;
        if let Some(rtt) = rtt {
            let rtt_min = state.rtt_min.get();
            state.rate.on_acknowledged(now, Occupancy { acknowledged, buffered, srtt: rtt.srtt, rtt_min });
        }
        if let Some(sample) = rtt_sample {
            state.rtt_min.on_sample(now, sample);
        }
        let status = PathStatus {
            buffered,
            unsent,
            send_buffer: self.send_buffer,
            cwnd,
            mss,
            rtt,
            rtt_min: state.rtt_min.get(),
            delivery_rate: state.rate.get(),
            is_recovering: false,
        };
        self.sender.on_status(now, PathId(path), status);
    }

    /// A gateway hears what the receiving end said by the time `heard`.
    pub fn pass_on(&mut self, now: Instant, heard: Instant) {
        while let Some(feedback) = next_by(&mut self.said, Some(heard)) {
            self.passed_on.push_back((now, feedback));
        }
    }

    /// The application has produced `end` bytes in all.
    pub fn produce(&mut self, end: u64) {
        self.sender.produce(end);
    }

    /// Bytes that the application has produced.
    #[must_use]
    pub fn produced(&self) -> u64 {
        self.sender.produced()
    }

    /// Bytes of a chunk.
    #[must_use]
    pub fn chunk(&self) -> Bytes {
        self.sender.chunk()
    }

    /// True once: when all of a stream that ends at `end` has arrived, and its sender knows.
    pub fn completes(&mut self, now: Instant, end: Option<u64>) -> bool {
        let is_split = self.paths.iter().any(|path| path.is_split);
        let complete = self.completed.is_none()
            && end == Some(self.sender.produced())
            // A gateway acknowledges what the receiver may not have yet.
            && if is_split { self.delivered() == self.sender.produced() } else { self.sender.is_complete() };
        if complete {
            self.completed = Some(now);
        }
        complete
    }

    /// Bytes ever written to the connection of `path`.
    #[must_use]
    pub fn written(&self, path: usize) -> u64 {
        self.paths[path].written
    }

    /// The next write: path and length.
    pub fn next(&mut self, now: Instant) -> Option<(usize, Bytes)> {
        let Chunk { path: PathId(path), start, len } = self.sender.next(now)?;
        let state = &mut self.paths[path];
        state.written += len.get();
        state.under_way.push_back((start, len.get()));
        Some((path, len))
    }

    /// The time to look again though nothing arrives and nothing is produced.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let dead = (0..self.paths.len()).filter_map(|path| self.dead_at(path));
        dead.chain(self.sender.next_wakeup()).min()
    }

    /// The connection of `path` has delivered `delivered` bytes in all.
    pub fn on_delivered(&mut self, now: Instant, path: usize, delivered: u64) {
        let state = &mut self.paths[path];
        let mut news = delivered - state.delivered;
        state.delivered = delivered;
        while news > 0
            && let Some((start, len)) = state.under_way.front_mut()
        {
            let part = news.min(*len);
            let arrived = self.receiver.on_chunk(*start, Bytes::new(part));
            self.duplicates += arrived.duplicate;
            if arrived.in_order > Bytes::ZERO {
                self.stalls.end(now);
            }
            (*start, *len, news) = (*start + part, *len - part, news - part);
            if *len == 0 {
                state.under_way.pop_front();
            }
        }
        self.held.set(now, self.receiver.held());
        self.said.push_back((now, self.receiver.feedback()));
    }

    /// Bytes that the application has, in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.receiver.next()
    }

    /// Tells what is plotted of it, after an `interval`.
    pub fn sample(&mut self, interval: Duration, out: &mut dyn Probe) {
        let delivered = self.delivered();
        let before = std::mem::replace(&mut self.sampled, delivered);
        out.value("goodput_bps", Rate::of(Bytes::new(delivered - before), interval).as_bps_f64());
        out.value("reorder_bytes", self.receiver.held().as_f64());
        self.sender.probe(out);
    }

    /// The warm-up is over.
    pub fn begin_measuring(&mut self, now: Instant) {
        self.before_measuring = Before {
            delivered: self.delivered(),
            duplicates: self.duplicates,
            reconnections: self.reconnections,
        };
        self.held.restart(now);
        if self.has_started() {
            self.stalls.restart(now);
        }
    }

    /// The totals of a run that ended at `end` and was measured from a time on.
    pub fn totals(&mut self, measured_from: Instant, end: Instant) -> StreamTotals {
        let start = self.started.unwrap_or(end);
        let until = self.completed.unwrap_or(end).min(end);
        let delivered = Bytes::new(self.delivered() - self.before_measuring.delivered);
        StreamTotals {
            delivered,
            goodput: Rate::of(delivered, until.saturating_since(start.max(measured_from))),
            duplicates: self.duplicates - self.before_measuring.duplicates,
            reorder_mean_bytes: self.held.mean(end),
            reorder_max: self.held.most(),
            longest_stall: self.stalls.longest(until),
            reconnections: self.reconnections - self.before_measuring.reconnections,
        }
    }
}

/// The next of what was `said` by the time `heard`.
fn next_by(said: &mut VecDeque<(Instant, Feedback)>, heard: Option<Instant>) -> Option<Feedback> {
    said.pop_front_if(|(since, _)| heard.is_some_and(|heard| *since <= heard)).map(|(_, feedback)| feedback)
}
