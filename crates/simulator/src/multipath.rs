//! Aggregates in the simulated world: the ends of [`suimon_aggregation`] over simulated connections.

use std::collections::VecDeque;

use suimon_aggregation::{
    AggregateReceiver, AggregateSender, Chunk, Feedback, Occupancy, RateMeter, WindowedMin,
};
use suimon_algorithms::Probe;
use suimon_algorithms::path::{PathId, PathStatus};
use suimon_link::SeriesBuilder;
use suimon_model::{self as model, Scenario, Traffic};
use suimon_results::AggregateResult;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::gateway::Half;
use crate::tcp::{Sender, Source};

/// One stream over several flows.
#[derive(Debug)]
pub(crate) struct Multipath {
    /// Indices of the flows, in the order of the paths; of a split one that of the half from the sender.
    pub(crate) flows: Vec<usize>,
    /// The time of the event that counts; others are stale.
    pub(crate) timer: Instant,
    pub(crate) completed: Option<Instant>,
    source: Source,
    sender: AggregateSender,
    receiver: AggregateReceiver,
    send_buffer: Bytes,
    reconnect: Option<Duration>,
    reconnections: u64,
    paths: Vec<Path>,
    /// The feedback that the receiving end sent with every acknowledgement since these times, oldest first: an
    /// acknowledgement's own timestamp tells its feedback.
    said: VecDeque<(Instant, Feedback)>,
    /// The same as gateways have heard it, since these times.
    passed_on: VecDeque<(Instant, Feedback)>,
    started: Option<Instant>,
    held: Held,
    stalls: Stalls,
    duplicates: Bytes,
    before_measuring: Totals,
    /// Delivered at the sample before.
    sampled: u64,
}

/// The place of a flow in an aggregate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subflow {
    pub(crate) aggregate: usize,
    pub(crate) path: usize,
}

/// The subflow that the flow called `name` is, if it belongs to an aggregate.
pub(crate) fn subflow_of(scenario: &Scenario, name: &str) -> Option<Subflow> {
    (scenario.aggregates.iter().enumerate()).find_map(|(aggregate, spec)| {
        let path = spec.flows.iter().position(|flow| flow == name)?;
        Some(Subflow { aggregate, path })
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
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

impl Multipath {
    /// The aggregate of `spec`, one of those of `scenario`; these flows are `halves` of split connections.
    pub(crate) fn new(spec: &model::Aggregate, scenario: &Scenario, halves: &[Option<Half>]) -> Self {
        let index = |name: &String| {
            let position = scenario.flows.iter().rposition(|flow| flow.name == *name);
            position.expect("a validated scenario has the flows that its aggregates name")
        };
        let flows: Vec<_> = spec.flows.iter().map(index).collect();
        let is_split = |flow: &usize| matches!(halves[*flow], Some(Half::Inward { .. }));
        let mss = |flow: &usize| match &scenario.flows[*flow].traffic {
            Traffic::Tcp(tcp) => tcp.profile.mss,
            Traffic::Udp(_) => Bytes::ZERO,
        };
        let mss = flows.iter().map(mss).min().unwrap_or_default();
        let receiver = AggregateReceiver::new(spec.reorder_buffer);
        let mut sender =
            AggregateSender::new(spec.scheduler.build_path(), flows.len(), mss, spec.copy_stalled);
        // The receiver's buffer is told as the connections are made.
        sender.on_feedback(receiver.feedback());
        Self {
            paths: flows.iter().map(|flow| Path { is_split: is_split(flow), ..Path::default() }).collect(),
            flows,
            timer: Instant::MAX,
            completed: None,
            source: Source::new(spec.size, spec.application_rate),
            sender,
            receiver,
            send_buffer: spec.send_buffer,
            reconnect: spec.reconnect,
            reconnections: 0,
            said: VecDeque::new(),
            passed_on: VecDeque::new(),
            started: None,
            held: Held::default(),
            stalls: Stalls::default(),
            duplicates: Bytes::ZERO,
            before_measuring: Totals::default(),
            sampled: 0,
        }
    }

    /// The flow of `path` starts.
    pub(crate) fn start(&mut self, now: Instant, path: usize) {
        self.paths[path].opened = Some(now);
        if self.started.is_none() {
            self.started = Some(now);
            self.source.resume(now);
            self.stalls.restart(now);
        }
    }

    /// A path whose connection is to be given up now.
    pub(crate) fn overdue(&self, now: Instant) -> Option<usize> {
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
    pub(crate) fn on_reconnect(&mut self, now: Instant, path: usize) {
        self.reconnections += 1;
        self.sender.path_down(PathId(path));
        self.paths[path] = Path { opened: Some(now), ..Path::default() };
    }

    pub(crate) fn will_complete(&self) -> bool {
        self.source.will_complete()
    }

    /// The connection of `path` has news; an acknowledgement that was sent at `heard` brought the receiving end's
    /// feedback of that time.
    pub(crate) fn on_news(&mut self, now: Instant, path: usize, connection: &Sender, heard: Option<Instant>) {
        if !connection.is_established() {
            return;
        }
        let said = if self.paths[path].is_split { &mut self.passed_on } else { &mut self.said };
        while let Some(feedback) = next_by(said, heard) {
            self.sender.on_feedback(feedback);
        }
        let state = &mut self.paths[path];
        if !state.established {
            state.established = true;
            self.sender.path_up(now, PathId(path));
        }
        let acknowledged = connection.snd_una();
        let rtt = connection.rtt();
        if let Some(rtt) = rtt {
            let [acknowledged, buffered] = [acknowledged, state.written - acknowledged].map(Bytes::new);
            let rtt_min = state.rtt_min.get();
            state.rate.on_acknowledged(now, Occupancy { acknowledged, buffered, srtt: rtt.srtt, rtt_min });
        }
        if let Some(latest) = connection.counters.rtt_last {
            state.rtt_min.on_sample(now, latest);
        }
        let status = PathStatus {
            buffered: Bytes::new(state.written - acknowledged),
            unsent: Bytes::new(state.written - connection.taken()),
            send_buffer: self.send_buffer,
            cwnd: connection.limits().cwnd.min(connection.limits().space),
            mss: connection.mss(),
            rtt,
            rtt_min: state.rtt_min.get(),
            delivery_rate: state.rate.get(),
        };
        self.sender.on_status(now, PathId(path), status);
    }

    /// A gateway hears what the receiving end said by the time `heard`.
    pub(crate) fn pass_on(&mut self, now: Instant, heard: Instant) {
        while let Some(feedback) = next_by(&mut self.said, Some(heard)) {
            self.passed_on.push_back((now, feedback));
        }
    }

    /// True once: when all of a stream with a size has arrived, and whoever sent it to the receiver knows.
    pub(crate) fn completes(&mut self, now: Instant) -> bool {
        let is_split = self.paths.iter().any(|path| path.is_split);
        let complete = self.completed.is_none()
            && self.source.end_position() == Some(self.sender.produced())
            // A gateway acknowledges what the receiver may not have yet.
            && if is_split { self.delivered() == self.sender.produced() } else { self.sender.is_complete() };
        if complete {
            self.completed = Some(now);
        }
        complete
    }

    /// The next write: path and length.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(usize, Bytes)> {
        self.sender.produce(self.source.available(now));
        let Chunk { path: PathId(path), start, len } = self.sender.next(now)?;
        let state = &mut self.paths[path];
        state.written += len.get();
        state.under_way.push_back((start, len.get()));
        Some((path, len))
    }

    /// The time to look again though nothing arrives.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let produced = self.source.more_at(self.sender.produced(), self.sender.chunk().get());
        let dead = (0..self.paths.len()).filter_map(|path| self.dead_at(path));
        dead.chain(produced).chain(self.sender.next_wakeup()).min()
    }

    /// The connection of `path` has delivered `delivered` bytes in all.
    pub(crate) fn on_delivered(&mut self, now: Instant, path: usize, delivered: u64) {
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
    pub(crate) fn delivered(&self) -> u64 {
        self.receiver.next()
    }

    /// Samples the series of this aggregate, after an `interval`.
    pub(crate) fn sample(&mut self, interval: Duration, series: &mut SeriesBuilder) {
        let delivered = self.delivered();
        let before = std::mem::replace(&mut self.sampled, delivered);
        series.value("goodput_bps", Rate::of(Bytes::new(delivered - before), interval).as_bps_f64());
        series.value("reorder_bytes", self.receiver.held().as_f64());
        self.sender.probe(series);
    }

    /// Whether the first flow of the aggregate has started.
    pub(crate) fn has_started(&self) -> bool {
        self.started.is_some()
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.before_measuring = Totals {
            delivered: self.delivered(),
            duplicates: self.duplicates,
            reconnections: self.reconnections,
        };
        self.held.restart(now);
        if self.has_started() {
            self.stalls.restart(now);
        }
    }

    pub(crate) fn result(
        &mut self,
        spec: &model::Aggregate,
        measured_from: Instant,
        end: Instant,
    ) -> AggregateResult {
        let start = self.started.unwrap_or(end);
        let until = self.completed.unwrap_or(end).min(end);
        let delivered = Bytes::new(self.delivered() - self.before_measuring.delivered);
        AggregateResult {
            name: spec.name.clone(),
            scheduler: spec.scheduler.label().to_owned(),
            colour: spec.scheduler.colour().to_owned(),
            flows: spec.flows.clone(),
            completed: self.completed,
            delivered,
            goodput: Rate::of(delivered, until.saturating_since(start.max(measured_from))),
            duplicates: self.duplicates - self.before_measuring.duplicates,
            reorder_mean_bytes: self.held.mean(end),
            reorder_max: self.held.most,
            longest_stall: self.stalls.longest(until),
            reconnections: self.reconnections - self.before_measuring.reconnections,
        }
    }
}

/// The next of what was `said` by the time `heard`.
fn next_by(said: &mut VecDeque<(Instant, Feedback)>, heard: Option<Instant>) -> Option<Feedback> {
    said.pop_front_if(|(since, _)| heard.is_some_and(|heard| *since <= heard)).map(|(_, feedback)| feedback)
}

/// Times in which nothing reaches the application.
#[derive(Debug, Default)]
struct Stalls {
    since: Option<Instant>,
    longest: Duration,
}

impl Stalls {
    fn restart(&mut self, now: Instant) {
        *self = Self { since: Some(now), longest: Duration::ZERO };
    }

    fn end(&mut self, now: Instant) {
        self.longest = self.longest(now);
        self.since = Some(now);
    }

    fn longest(&self, now: Instant) -> Duration {
        let lasts = self.since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.longest.max(lasts)
    }
}

/// Bytes that wait at the receiver, over time.
#[derive(Debug, Default)]
struct Held {
    now: Bytes,
    since: Instant,
    from: Instant,
    /// Byte-seconds from `from` to `since`.
    area: f64,
    most: Bytes,
}

impl Held {
    fn set(&mut self, now: Instant, held: Bytes) {
        self.area += self.now.as_f64() * now.saturating_since(self.since).as_secs_f64();
        (self.now, self.since) = (held, now);
        self.most = self.most.max(held);
    }

    fn restart(&mut self, now: Instant) {
        *self = Self { now: self.now, since: now, from: now, area: 0.0, most: self.now };
    }

    fn mean(&mut self, end: Instant) -> f64 {
        self.set(end, self.now);
        let time = end.saturating_since(self.from).as_secs_f64();
        if time > 0.0 { self.area / time } else { 0.0 }
    }
}
