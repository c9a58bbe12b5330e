//! Aggregates in the simulated world: streams of [`suimon_aggregation`] over simulated connections.

use suimon_aggregation::{Reading, Stream};
use suimon_algorithms::congestion::Siblings;
use suimon_model::{self as model, Scenario};
use suimon_units::{Bytes, Instant};

use crate::flow::{Endpoints, Flow};
use crate::gateway::Half;
use crate::tcp::{Sender, Source};

/// One stream over several flows.
#[derive(Debug)]
pub(crate) struct Multipath {
    /// Indices of the flows, in the order of the paths; of a split one that of the half from the sender.
    pub(crate) flows: Vec<usize>,
    /// The time of the event that counts; others are stale.
    pub(crate) timer: Instant,
    source: Source,
    pub(crate) stream: Stream,
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

impl Multipath {
    /// The aggregate of `spec`, one of those of `scenario`; these flows are `halves` of split connections.
    pub(crate) fn new(spec: &model::Aggregate, scenario: &Scenario, halves: &[Option<Half>]) -> Self {
        let index = |name: &String| {
            let position = scenario.flows.iter().rposition(|flow| flow.name == *name);
            position.expect("a validated scenario has the flows that its aggregates name")
        };
        let flows: Vec<_> = spec.flows.iter().map(index).collect();
        let is_split = |flow: &usize| matches!(halves[*flow], Some(Half::Inward { .. }));
        let subflows: Vec<_> = flows.iter().map(|flow| (&scenario.flows[*flow], is_split(flow))).collect();
        let stream = suimon_link::stream_of(spec, &subflows);
        let source = Source::new(spec.size, spec.application_rate);
        Self { flows, timer: Instant::MAX, source, stream }
    }

    /// The flow of `path` starts.
    pub(crate) fn start(&mut self, now: Instant, path: usize) {
        if !self.stream.has_started() {
            self.source.resume(now);
        }
        self.stream.start(now, path);
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
        let reading = Reading {
            acknowledged: Bytes::new(connection.snd_una()),
            unsent: Bytes::new(self.stream.written(path) - connection.taken()),
            cwnd: connection.limits().cwnd.min(connection.limits().space),
            mss: connection.mss(),
            rtt: connection.rtt(),
            rtt_sample: connection.counters.rtt_last,
        };
        self.stream.on_reading(now, path, reading, heard);
    }

    /// Shows the connection of `path` the others, for a congestion control that couples them.
    pub(crate) fn couple(&self, flows: &mut [Flow], path: usize) {
        let others = self.flows.iter().filter(|flow| **flow != self.flows[path]);
        let siblings = others.fold(Siblings::default(), |siblings, flow| match &flows[*flow].endpoints {
            Endpoints::Tcp { sender, .. } if sender.is_established() => match sender.rtt() {
                Some(rtt) => siblings.with(sender.limits().cwnd, rtt.srtt),
                None => siblings,
            },
            _ => siblings,
        });
        if let Endpoints::Tcp { sender, .. } = &mut flows[self.flows[path]].endpoints {
            sender.siblings = siblings;
        }
    }

    /// True once: when all of a stream with a size has arrived, and whoever sent it to the receiver knows.
    pub(crate) fn completes(&mut self, now: Instant) -> bool {
        self.stream.completes(now, self.source.end_position())
    }

    /// The next write: path and length.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(usize, Bytes)> {
        self.stream.produce(self.source.available(now));
        self.stream.next(now)
    }

    /// The time to look again though nothing arrives.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let produced = self.source.more_at(self.stream.produced(), self.stream.chunk().get());
        self.stream.next_wakeup().into_iter().chain(produced).min()
    }
}
