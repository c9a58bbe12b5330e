//! The statistics of a run: flows window by window and sample by sample, and the result at the end.

use suimon_emulator::LinkReport;
use suimon_link::{Crossing, FlowSums, SeriesBuilder};
use suimon_model::{Link, Scenario, Traffic};
use suimon_results::{EmulatedLink, Event, EventKind, RunResult, Series, WindowResult};
use suimon_units::{Duration, Instant};

use crate::endpoints::Shared;
use crate::entry::Entry;
use crate::plan::Plan;
use crate::streams::LiveStream;

/// The statistics of all flows of a run so far.
#[derive(Debug)]
pub(crate) struct Statistics<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    flows: Vec<Entry<'a>>,
    streams: &'a [LiveStream<'a>],
    stream_series: Vec<SeriesBuilder>,
    windows: Vec<OpenWindow>,
    next_sample: Instant,
    measuring: bool,
    /// The time of the last entry.
    until: Instant,
    events: Vec<Event>,
    events_not_kept: u64,
    notes: Vec<String>,
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
    pub(crate) fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        shared: &'a [Shared],
        streams: &'a [LiveStream<'a>],
    ) -> Self {
        // The halves toward gateways come behind all others.
        let reported = scenario.flows.len() - plan.halves.len();
        let flows = scenario.flows.iter().zip(&plan.flows).zip(shared).take(reported);
        let window = |(index, window): (usize, &suimon_model::Window)| OpenWindow {
            window: index,
            next_sample: window.from,
            links: Vec::new(),
            closed: false,
        };
        Self {
            scenario,
            plan,
            flows: flows.map(|((flow, planned), shared)| Entry::new(flow, planned, shared)).collect(),
            streams,
            stream_series: streams.iter().map(|stream| SeriesBuilder::new(stream.name())).collect(),
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
        let of_flow = |entry: &Entry<'_>| {
            let size = match &entry.flow.traffic {
                Traffic::Tcp(tcp) => tcp.size,
                Traffic::Udp(udp) => udp.size,
            };
            size.map(|_| entry.completed.is_some())
        };
        let flows = self.flows.iter().filter_map(of_flow);
        let mut sized = flows.chain(self.streams.iter().filter_map(LiveStream::is_complete)).peekable();
        self.scenario.stop_when_complete && sized.peek().is_some() && sized.all(|complete| complete)
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
            self.flows.iter_mut().for_each(|flow| flow.begin_measuring(now));
            self.streams.iter().for_each(|stream| stream.begin_measuring(now));
        }
        for index in 0..self.windows.len() {
            self.keep_window(now, index);
        }
        if now >= self.next_sample {
            let interval = self.scenario.record.interval.unwrap_or(Duration::MAX);
            self.flows.iter_mut().for_each(|flow| flow.sample(now, interval));
            for (stream, series) in self.streams.iter().zip(&mut self.stream_series) {
                if stream.has_started() {
                    series.begin(now);
                    stream.sample(interval, series);
                }
            }
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
        let stream_series =
            std::mem::take(&mut self.stream_series).into_iter().map(SeriesBuilder::finish).collect();
        let series_of = |(_, (link, way)): &(&Link, (usize, usize))| reports[*link].series[*way].clone();
        RunResult {
            scenario: self.scenario.name.clone(),
            labels: labels.to_vec(),
            seed: self.scenario.seed,
            duration: end.saturating_since(Instant::ZERO),
            measured: end.saturating_since(measured_from),
            flows,
            aggregates: self.streams.iter().map(|stream| stream.result((measured_from, end))).collect(),
            applications: Vec::new(),
            queues: queues
                .iter()
                .map(|(_, (link, way))| reports[*link].statistics.directions[*way].totals.clone())
                .collect(),
            events: self.events,
            events_not_kept: self.events_not_kept,
            windows,
            flow_series: if with_series { flow_series } else { Vec::new() },
            aggregate_series: if with_series { stream_series } else { Vec::new() },
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
