//! Statistics of queues, and of the flows that cross them, over named windows of time.

use suimon_link::{Crossing, FlowSums};
use suimon_model::{Scenario, Window};
use suimon_results::WindowResult;
use suimon_units::Instant;

use crate::events::{Event, EventQueue};
use crate::flow::Flow;
use crate::link::meter::Meters;

/// The windows of a scenario.
#[derive(Debug)]
pub(crate) struct Windows<'a> {
    windows: &'a [Window],
    /// Reported links, each with the flows whose data crosses it.
    links: Vec<(usize, Vec<usize>)>,
    open: Vec<OpenWindow>,
    closed: Vec<WindowResult>,
}

/// A window that is open: the sums of the flows across each reported link.
#[derive(Debug)]
struct OpenWindow {
    window: usize,
    since: Instant,
    last_sample: Instant,
    links: Vec<Crossing>,
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

    /// The sums over the flows across each link so far.
    fn sums(&self, flows: &[Flow]) -> Vec<FlowSums> {
        let add = |sum, &flow: &usize| sum + flows[flow].sums();
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
                        meter.statistics.open_window(now, index);
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
                meters.of(*link).and_then(|meter| meter.statistics.close_window(now, index))
            {
                let window = self.windows[index].name.clone();
                self.closed.push(crossing.result((window, name), (open.since, now), &queue, *sums));
            }
        }
    }

    /// Closes the windows still open at the end of the run, and gives the rows of all.
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
        Self {
            window,
            since: now,
            last_sample: now,
            links: sums.iter().map(|sums| Crossing::new(*sums)).collect(),
        }
    }

    fn sample(&mut self, now: Instant, sums: &[FlowSums]) {
        for (link, sums) in self.links.iter_mut().zip(sums) {
            link.sample(*sums);
        }
        self.last_sample = now;
    }
}
