//! Statistics of queues, and of the flows that cross them, over named windows of time.

use suimon_link::QueueWindow;
use suimon_results::WindowResult;
use suimon_scenario::{Scenario, Window};
use suimon_units::{Bytes, Instant, Rate};

use crate::events::{Event, EventQueue};
use crate::flow::Flow;
use crate::link::meter::Meters;

/// What flows had sent and received by some time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowSums {
    /// First transmissions, in payload bytes.
    pub(crate) entered: u64,
    /// Payload that reached the receiving application.
    pub(crate) delivered: u64,
    pub(crate) retransmissions: u64,
}

/// The windows of a scenario.
#[derive(Debug)]
pub(crate) struct Windows<'a> {
    windows: &'a [Window],
    /// Reported links, each with the flows whose data crosses it.
    links: Vec<(usize, Vec<usize>)>,
    open: Vec<OpenWindow>,
    closed: Vec<WindowResult>,
}

/// A window that is open: what the flows across each reported link do.
#[derive(Debug)]
struct OpenWindow {
    window: usize,
    since: Instant,
    last_sample: Instant,
    links: Vec<Crossing>,
}

#[derive(Debug)]
struct Crossing {
    first: FlowSums,
    last: FlowSums,
    entered: Spread,
    delivered: Spread,
}

impl<'a> Windows<'a> {
    /// Schedules the opening of every window; `crossing` tells which flows cross a link.
    pub(crate) fn new(
        scenario: &'a Scenario,
        events: &mut EventQueue,
        crossing: impl Fn(u32) -> Vec<usize>,
    ) -> Self {
        let windows = scenario.record.windows.as_slice();
        for (index, window) in windows.iter().enumerate() {
            events.schedule(window.from, Event::Window, index as u32);
        }
        let reported = scenario.links.iter().enumerate().filter(|(_, link)| link.reported);
        let links = reported.filter(|_| !windows.is_empty());
        Self {
            windows,
            links: links.map(|(index, _)| (index, crossing(index as u32))).collect(),
            open: Vec::new(),
            closed: Vec::new(),
        }
    }

    /// What the flows across each link have done so far, all together.
    fn sums(&self, flows: &[Flow]) -> Vec<FlowSums> {
        let add = |sum: FlowSums, &flow: &usize| {
            let more = flows[flow].sums();
            FlowSums {
                entered: sum.entered + more.entered,
                delivered: sum.delivered + more.delivered,
                retransmissions: sum.retransmissions + more.retransmissions,
            }
        };
        self.links.iter().map(|(_, crossing)| crossing.iter().fold(FlowSums::default(), add)).collect()
    }

    /// The window of this index opens, takes a sample or closes; the queues are up to date.
    pub(crate) fn on_event(
        &mut self,
        now: Instant,
        index: usize,
        meters: &mut Meters<'_>,
        flows: &[Flow],
        events: &mut EventQueue,
    ) {
        let window = &self.windows[index];
        let sums = self.sums(flows);
        match self.open.iter_mut().find(|open| open.window == index) {
            None => {
                for (link, _) in &self.links {
                    if let Some(meter) = meters.of(*link) {
                        meter.books.open_window(now, index);
                    }
                }
                self.open.push(OpenWindow::new(now, index, &sums));
            }
            Some(open) => {
                if open.last_sample + window.sample == now {
                    open.sample(now, &sums);
                }
                if now >= window.to {
                    self.close(now, index, meters, &sums);
                    return;
                }
            }
        }
        events.schedule(window.to.min(now + window.sample), Event::Window, index as u32);
    }

    fn close(&mut self, now: Instant, index: usize, meters: &mut Meters<'_>, sums: &[FlowSums]) {
        let Some(position) = self.open.iter().position(|open| open.window == index) else { return };
        let open = self.open.remove(position);
        for (((link, _), crossing), sums) in self.links.iter().zip(&open.links).zip(sums) {
            if let Some((name, queue)) =
                meters.of(*link).and_then(|meter| meter.books.close_window(now, index))
            {
                let window = self.windows[index].name.clone();
                self.closed.push(crossing.result((window, name), (open.since, now), &queue, *sums));
            }
        }
    }

    /// Closes what is still open at the end of the run, and gives the rows of all.
    pub(crate) fn finish(
        &mut self,
        end: Instant,
        meters: &mut Meters<'_>,
        flows: &[Flow],
    ) -> Vec<WindowResult> {
        let sums = self.sums(flows);
        while let Some(open) = self.open.first() {
            self.close(end, open.window, meters, &sums);
        }
        std::mem::take(&mut self.closed)
    }
}

impl OpenWindow {
    fn new(now: Instant, window: usize, sums: &[FlowSums]) -> Self {
        let crossing = |sums: &FlowSums| Crossing {
            first: *sums,
            last: *sums,
            entered: Spread::default(),
            delivered: Spread::default(),
        };
        Self { window, since: now, last_sample: now, links: sums.iter().map(crossing).collect() }
    }

    fn sample(&mut self, now: Instant, sums: &[FlowSums]) {
        for (link, sums) in self.links.iter_mut().zip(sums) {
            link.entered.add((sums.entered - link.last.entered) as f64);
            link.delivered.add((sums.delivered - link.last.delivered) as f64);
            link.last = *sums;
        }
        self.last_sample = now;
    }
}

impl Crossing {
    fn result(
        &self,
        (window, link): (String, String),
        (from, to): (Instant, Instant),
        queue: &QueueWindow,
        sums: FlowSums,
    ) -> WindowResult {
        let time = to.saturating_since(from);
        let mean = queue.lengths.mean();
        let (least, most) = queue.lengths.extremes.unwrap_or_default();
        let rate = |bytes| Rate::of(Bytes::new(bytes), time);
        WindowResult {
            window,
            link,
            from,
            to,
            backlog_records: queue.lengths.count,
            backlog_mean_bytes: mean,
            backlog_cov: queue.lengths.variance().sqrt() / mean,
            backlog_min_bytes: Bytes::new(least),
            backlog_max_bytes: Bytes::new(most),
            backlog_time_mean_bytes: queue.byte_time as f64 / time.as_nanos().max(1) as f64,
            dropped_overflow: queue.overflow,
            dropped_early: queue.early,
            marked: queue.marked,
            entered: rate(sums.entered - self.first.entered),
            entered_cov: self.entered.cov(),
            goodput: rate(sums.delivered - self.first.delivered),
            goodput_cov: self.delivered.cov(),
            retransmissions: sums.retransmissions - self.first.retransmissions,
        }
    }
}

/// Mean and standard deviation of samples (Welford 1962).
#[derive(Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    /// Standard deviation over mean; NaN without samples.
    fn cov(&self) -> f64 {
        (self.squares / self.count).sqrt() / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_spread_around_their_mean() {
        let mut spread = Spread::default();
        assert!(spread.cov().is_nan());
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| spread.add(value));
        assert!((spread.cov() - 0.4).abs() < 1e-12);
    }
}
