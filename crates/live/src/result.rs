//! The statistics of a run: flows window by window and sample by sample, and the result at the end.

use std::sync::atomic::Ordering;

use suimon_algorithms::Probe;
use suimon_emulator::LinkReport;
use suimon_link::{Crossing, FlowSums, FlowTally, FlowTimes, SeriesBuilder};
use suimon_linux::tcp::{SenderState, TcpState, tcp_state};
use suimon_model::{Flow, Link, Scenario, Traffic};
use suimon_results::{EmulatedLink, Event, EventKind, FlowResult, RunResult, Series, WindowResult};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::endpoints::Shared;
use crate::plan::{Plan, PlannedFlow};

/// The statistics of all flows of a run so far.
#[derive(Debug)]
pub(crate) struct Statistics<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    flows: Vec<Entry<'a>>,
    windows: Vec<OpenWindow>,
    next_sample: Instant,
    measuring: bool,
    /// The time of the last entry.
    until: Instant,
    events: Vec<Event>,
    events_not_kept: u64,
    notes: Vec<String>,
}

/// The statistics of one flow.
#[derive(Debug)]
struct Entry<'a> {
    flow: &'a Flow,
    planned: &'a PlannedFlow,
    shared: &'a Shared,
    last: Option<TcpState>,
    started: Option<Instant>,
    completed: Option<Instant>,
    tally: FlowTally,
    /// The tally when the warm-up ended.
    before: FlowTally,
    rtt_least: Option<Duration>,
    rtt_most: Option<Duration>,
    series: SeriesBuilder,
    /// Delivered at the sample before.
    sampled: u64,
}

/// A window that is open or will be: for each reported link, the sums of its flows.
#[derive(Debug)]
struct OpenWindow {
    window: usize,
    next_sample: Instant,
    links: Vec<Across>,
    closed: bool,
}

#[derive(Debug)]
struct Across {
    crossing: Crossing,
    last: FlowSums,
}

impl<'a> Statistics<'a> {
    pub(crate) fn new(scenario: &'a Scenario, plan: &'a Plan, shared: &'a [Shared]) -> Self {
        let entry = |((flow, planned), shared): ((&'a Flow, &'a PlannedFlow), &'a Shared)| Entry {
            flow,
            planned,
            shared,
            last: None,
            started: None,
            completed: None,
            tally: FlowTally::default(),
            before: FlowTally::default(),
            rtt_least: None,
            rtt_most: None,
            series: SeriesBuilder::new(&flow.name),
            sampled: 0,
        };
        let window = |(index, window): (usize, &suimon_model::Window)| OpenWindow {
            window: index,
            next_sample: window.from,
            links: Vec::new(),
            closed: false,
        };
        Self {
            scenario,
            plan,
            flows: scenario.flows.iter().zip(&plan.flows).zip(shared).map(entry).collect(),
            windows: scenario.record.windows.iter().enumerate().map(window).collect(),
            next_sample: scenario.record.interval.map_or(Instant::MAX, |interval| Instant::ZERO + interval),
            measuring: scenario.record.warmup == Duration::ZERO,
            until: Instant::ZERO,
            events: Vec::new(),
            events_not_kept: 0,
            notes: plan.notes.clone(),
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// When [`Statistics::keep`] has something to do that should not wait.
    pub(crate) fn next(&self) -> Instant {
        let windows = self.windows.iter().filter(|window| !window.closed).map(|window| window.next_sample);
        windows.min().unwrap_or(Instant::MAX).min(self.next_sample)
    }

    /// True once every flow that has a size is complete, where the run ends then.
    pub(crate) fn is_complete(&self) -> bool {
        let sized = |entry: &&Entry<'_>| match &entry.flow.traffic {
            Traffic::Tcp(tcp) => tcp.size.is_some(),
            Traffic::Udp(udp) => udp.size.is_some(),
        };
        let mut sized = self.flows.iter().filter(sized).peekable();
        self.scenario.stop_when_complete
            && sized.peek().is_some()
            && sized.all(|entry| entry.completed.is_some())
    }

    /// Looks at all flows.
    pub(crate) fn keep(&mut self, now: Instant) {
        self.until = now;
        for index in 0..self.flows.len() {
            let noted = self.flows[index].keep(now);
            noted.into_iter().flatten().for_each(|kind| self.record(now, index, kind));
        }
        if !self.measuring && now >= Instant::ZERO + self.scenario.record.warmup {
            self.measuring = true;
            self.flows.iter_mut().for_each(Entry::begin_measuring);
        }
        for index in 0..self.windows.len() {
            self.keep_window(now, index);
        }
        if now >= self.next_sample {
            let interval = self.scenario.record.interval.unwrap_or(Duration::MAX);
            self.flows.iter_mut().for_each(|flow| flow.sample(now, interval));
            while self.next_sample <= now {
                self.next_sample += interval;
            }
        }
    }

    fn keep_window(&mut self, now: Instant, index: usize) {
        let open = &self.windows[index];
        if open.closed || now < open.next_sample {
            return;
        }
        let spec = &self.scenario.record.windows[open.window];
        let sums: Vec<_> = self.reported().map(|(link, _)| self.sums(link)).collect();
        let open = &mut self.windows[index];
        if open.links.is_empty() {
            open.links =
                sums.iter().map(|sums| Across { crossing: Crossing::new(*sums), last: *sums }).collect();
        } else {
            for (across, sums) in open.links.iter_mut().zip(sums) {
                // The last part of a window may be shorter than a sample.
                if open.next_sample < spec.to || spec.to.saturating_since(spec.from) == spec.sample {
                    across.crossing.sample(sums);
                }
                across.last = sums;
            }
            open.closed = now >= spec.to;
        }
        open.next_sample = spec.to.min(open.next_sample + spec.sample);
    }

    /// Closes the windows that are still open.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.keep(now);
        for index in 0..self.windows.len() {
            let sums: Vec<_> = self.reported().map(|(link, _)| self.sums(link)).collect();
            let open = &mut self.windows[index];
            if !open.closed {
                open.links.iter_mut().zip(sums).for_each(|(across, sums)| across.last = sums);
            }
        }
    }

    /// Reported directions of links, in the scenario's order, each with its place in the plan.
    fn reported(&self) -> impl Iterator<Item = (&'a Link, (usize, usize))> + use<'a> {
        let plan = self.plan;
        self.scenario.links.iter().filter(|link| link.reported).filter_map(move |link| {
            let of = |(index, planned): (usize, &crate::plan::PlannedLink)| {
                let way = planned.directions.iter().position(|direction| direction.name == link.name)?;
                Some((index, way))
            };
            Some((link, plan.links.iter().enumerate().find_map(of)?))
        })
    }

    /// The sums over the flows across `link` so far.
    fn sums(&self, link: &Link) -> FlowSums {
        let crosses = |entry: &&Entry<'_>| {
            let mut crossed = entry.planned.crosses.iter();
            crossed.any(|(index, way)| self.plan.links[*index].directions[*way].name == link.name)
        };
        self.flows.iter().filter(crosses).fold(FlowSums::default(), |sum, entry| sum + entry.sums())
    }

    fn record(&mut self, time: Instant, flow: usize, kind: EventKind) {
        if self.events.len() < self.scenario.record.events {
            self.events.push(Event { time, flow: flow as u32, kind });
        } else {
            self.events_not_kept += 1;
        }
    }

    /// The result, `reports` being those of the links.
    pub(crate) fn result(mut self, labels: &[(String, String)], reports: &[LinkReport]) -> RunResult {
        let end = self.until;
        let measured_from = (Instant::ZERO + self.scenario.record.warmup).min(end);
        let queues: Vec<_> = self.reported().collect();
        let windows = self.window_results(reports, end);
        let flows = self.flows.iter().map(|entry| entry.result(reports, measured_from, end)).collect();
        let with_series = self.scenario.record.interval.is_some();
        let flow_series: Vec<Series> =
            std::mem::take(&mut self.flows).into_iter().map(|entry| entry.series.finish()).collect();
        let series_of = |(_, (link, way)): &(&Link, (usize, usize))| reports[*link].series[*way].clone();
        RunResult {
            scenario: self.scenario.name.clone(),
            labels: labels.to_vec(),
            seed: self.scenario.seed,
            duration: end.saturating_since(Instant::ZERO),
            measured: end.saturating_since(measured_from),
            flows,
            aggregates: Vec::new(),
            applications: Vec::new(),
            queues: queues
                .iter()
                .map(|(_, (link, way))| reports[*link].statistics.directions[*way].totals.clone())
                .collect(),
            events: self.events,
            events_not_kept: self.events_not_kept,
            windows,
            flow_series: if with_series { flow_series } else { Vec::new() },
            aggregate_series: Vec::new(),
            queue_series: if with_series { queues.iter().map(series_of).collect() } else { Vec::new() },
            emulated: reports.iter().map(|report| EmulatedLink::from(&report.statistics)).collect(),
            notes: self.notes,
        }
    }

    fn window_results(&self, reports: &[LinkReport], end: Instant) -> Vec<WindowResult> {
        let mut rows = Vec::new();
        for open in &self.windows {
            let name = &self.scenario.record.windows[open.window].name;
            for ((link, (index, way)), across) in self.reported().zip(&open.links) {
                let closed = reports[index].windows[way].iter().find(|closed| closed.window == open.window);
                if let Some(closed) = closed {
                    let names = (name.clone(), link.name.clone());
                    let time = (closed.from, closed.to.min(end.max(closed.from)));
                    rows.push(across.crossing.result(names, time, &closed.queue, across.last));
                }
            }
        }
        rows
    }
}

impl Entry<'_> {
    /// Looks at the flow; gives the events since the last time.
    fn keep(&mut self, now: Instant) -> [Option<EventKind>; 4] {
        let mut events = [None; 4];
        if self.started.is_none() && now >= self.planned.start {
            self.started = Some(self.planned.start);
            events[0] = Some(EventKind::Started);
        }
        self.tally.delivered = self.shared.delivered.load(Ordering::Relaxed);
        match &self.flow.traffic {
            Traffic::Udp(udp) => {
                self.tally.sent = self.shared.datagrams.load(Ordering::Relaxed);
                let sent = self.shared.datagram_bytes.load(Ordering::Relaxed);
                if self.completed.is_none() && udp.size.is_some_and(|size| sent >= size.get()) {
                    self.completed = Some(now);
                    events[3] = Some(EventKind::Completed);
                }
            }
            Traffic::Tcp(tcp) => {
                let Some(state) = self.shared.socket.get().and_then(|socket| tcp_state(socket).ok()) else {
                    return events;
                };
                events[1] = self.on_state(&state);
                if self.completed.is_none() && tcp.size.is_some_and(|size| state.acknowledged >= size) {
                    self.completed = Some(now);
                    events[3] = Some(EventKind::Completed);
                }
                self.last = Some(state);
            }
        }
        events
    }

    /// Takes the state of the connection into the tally; gives the event since the last time.
    fn on_state(&mut self, state: &TcpState) -> Option<EventKind> {
        let tally = &mut self.tally;
        let timeout = state.timeouts > tally.timeouts;
        (tally.sent, tally.retransmissions) = (state.segments, state.retransmissions);
        tally.timeouts = state.timeouts;
        let before = self.last.map_or(SenderState::Open, |last| last.state);
        if let Some(srtt) = state.srtt.filter(|srtt| self.last.is_none_or(|last| last.srtt != Some(*srtt))) {
            tally.rtt_samples += 1;
            tally.rtt_sum += srtt;
            self.rtt_most = Some(self.rtt_most.map_or(srtt, |most| most.max(srtt)));
        }
        self.rtt_least = state.rtt_min;
        // A cut begins a reduction, or sets the threshold anew in one that began unseen; slow start's end by itself
        // leaves the window where it was.
        let cut = is_reducing(state.state) && !is_reducing(before)
            || self.last.is_some_and(|last| {
                state.ssthresh.is_some_and(|ssthresh| Some(ssthresh) != last.ssthresh && ssthresh < last.cwnd)
            });
        tally.window_cuts += u64::from(cut);
        let entered = (state.state != before).then_some(state.state);
        match entered {
            _ if timeout => Some(EventKind::Timeout),
            Some(SenderState::Recovery) => Some(EventKind::Recovery),
            Some(SenderState::WindowReduction) => Some(EventKind::EcnCut),
            _ => None,
        }
    }

    fn begin_measuring(&mut self) {
        self.before = self.tally;
        self.rtt_most = None;
    }

    fn sums(&self) -> FlowSums {
        let entered = match self.last {
            Some(state) => state.sent.saturating_sub(state.sent_again).get(),
            None => self.shared.datagram_bytes.load(Ordering::Relaxed),
        };
        FlowSums { entered, delivered: self.tally.delivered, retransmissions: self.tally.retransmissions }
    }

    fn sample(&mut self, now: Instant, interval: Duration) {
        if self.started.is_none() {
            return;
        }
        let delivered = self.tally.delivered;
        let goodput = Rate::of(Bytes::new(delivered - self.sampled), interval);
        self.sampled = delivered;
        self.series.begin(now);
        self.series.value("goodput_bps", goodput.as_bps_f64());
        if let Some(state) = &self.last {
            let limit = state.ssthresh.map_or(f64::NAN, Bytes::as_f64);
            let srtt = state.srtt.map_or(f64::NAN, Duration::as_millis_f64);
            self.series.value("cwnd_bytes", state.cwnd.as_f64());
            self.series.value("ssthresh_bytes", limit);
            self.series.value("flight_bytes", state.flight.as_f64());
            self.series.value("srtt_ms", srtt);
        }
    }

    fn result(&self, reports: &[LinkReport], measured_from: Instant, end: Instant) -> FlowResult {
        let key = self.planned.key();
        let shares = self
            .planned
            .crosses
            .iter()
            .filter_map(|(link, way)| reports[*link].flows[*way].iter().find(|share| share.key == key));
        // Links begin to count when the warm-up ends, so there is nothing from before to leave out.
        let (lost, marked) = shares.fold((0, 0), |sum, share| (sum.0 + share.dropped, sum.1 + share.marked));
        let times = FlowTimes {
            started: self.started,
            completed: self.completed,
            last_delivery: Instant::from_nanos(self.shared.last_delivery.load(Ordering::Relaxed)),
        };
        let now = FlowTally { lost, marked, ..self.tally };
        FlowResult {
            rtt_min: self.rtt_least,
            rtt_max: self.rtt_most,
            ..now.result(&self.before, self.flow, times, (measured_from, end))
        }
    }
}

/// Whether the window is being cut, or was and has yet to be acknowledged whole.
fn is_reducing(state: SenderState) -> bool {
    matches!(state, SenderState::WindowReduction | SenderState::Recovery | SenderState::Loss)
}
