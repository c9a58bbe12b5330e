//! One experiment, and what is recorded of it.

use suimon_algorithms::RandomStream;
use suimon_units::{Duration, Instant};

use crate::flow::{Aggregate, Flow};
use crate::link::Link;

/// One experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Short name, used in tables and file names.
    pub name: String,
    /// What it is about, for the report.
    pub description: String,
    /// All randomness derives from it.
    pub seed: u64,
    /// When the run ends at the latest.
    pub duration: Duration,
    /// End early, once every flow that has a size is complete.
    pub stop_when_complete: bool,
    /// Unidirectional links. Hosts and routers are the names that they connect.
    pub links: Vec<Link>,
    /// The flows, in order.
    pub flows: Vec<Flow>,
    /// Flows that carry one stream together.
    pub aggregates: Vec<Aggregate>,
    /// What to record.
    pub record: Record,
}

impl Scenario {
    /// When `flow` starts, the first that is drawn of its [`Flow::random`]. An application opens all connections of a
    /// stream at once: flows of an aggregate that start between the same times start together, as its first one does.
    pub fn drawn_start(&self, flow: &Flow, random: &mut RandomStream) -> Instant {
        let own = flow.start.drawn(random);
        let aggregate = self.aggregates.iter().find(|aggregate| aggregate.flows.contains(&flow.name));
        let first =
            aggregate.and_then(|aggregate| self.flows.iter().find(|one| one.name == aggregate.flows[0]));
        match first {
            Some(first) if first.start == flow.start => first.start.drawn(&mut first.random(self.seed)),
            _ => own,
        }
    }
}

/// What a run records beside totals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Sample every flow and queue this often; `None` records no series.
    pub interval: Option<Duration>,
    /// Totals and percentiles count from here on; what happens earlier is warm-up.
    pub warmup: Duration,
    /// Statistics of every reported queue over these.
    pub windows: Vec<Window>,
    /// How many events are kept; the others are only counted.
    pub events: usize,
    /// Tell how the rate of each flow varies, over samples of so many packets received, at least one.
    pub rate_spread: Option<u64>,
}

impl Record {
    /// How many events are kept unless the scenario says otherwise.
    pub const EVENTS: usize = 10_000;
}

impl Default for Record {
    /// Totals of the whole run and its events, no series.
    fn default() -> Self {
        Self {
            interval: None,
            warmup: Duration::ZERO,
            windows: Vec::new(),
            events: Self::EVENTS,
            rate_spread: None,
        }
    }
}

/// A window of time, of which statistics are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Unique name.
    pub name: String,
    /// When it opens.
    pub from: Instant,
    /// When it closes.
    pub to: Instant,
    /// How often goodput is sampled in it.
    pub sample: Duration,
}
