//! One run in one row: the first part of every view.

use std::collections::HashMap;

use suimon_results::{
    AggregateResult, ApplicationKind, ApplicationResult, FlowResult, QueueResult, RunResult, jain_index,
};
use suimon_units::{Bytes, Duration, Rate};

use crate::advice::CHANGE_AXIS;
use crate::grade::Grade;
use crate::streams::{Alone, StreamTotals};

/// The totals of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSummary<'a> {
    /// The run.
    pub run: &'a RunResult,
    /// The name that tells it from the other runs of the same report; unique among them.
    pub name: String,
    /// The algorithm that the run is about: of the flow that a label names, else of the first flow.
    pub algorithm: String,
    /// The colour of the algorithm.
    pub colour: String,
    /// All flows together.
    pub total: FlowTotals,
    /// Flows by algorithm where there are several algorithms, else empty.
    pub parts: Vec<FlowTotals>,
    /// The reported link whose packets wait longest, by the 95th percentile.
    pub slowest: Option<&'a QueueResult>,
    /// The direction of a call that has the worse grade, where there is a call.
    pub call: Option<&'a ApplicationResult>,
    /// Latency under load: of the call where there is one, else at that link.
    pub grade: Option<Grade>,
}

/// Totals over several flows.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowTotals {
    /// The flow and its algorithm, or how many flows of an algorithm.
    pub name: String,
    /// Colour of the first flow.
    pub colour: String,
    /// The number of flows.
    pub flows: u64,
    /// The goodput of one flow; of several, their goodput together over the time measured.
    pub goodput: Rate,
    /// Mean of the flows' mean round-trip times, weighted by packets sent.
    pub rtt_mean: Option<Duration>,
    /// Largest round-trip time of any flow.
    pub rtt_max: Option<Duration>,
    /// Data packets sent.
    pub packets_sent: u64,
    /// Data packets lost.
    pub packets_lost: u64,
    /// Data packets marked.
    pub packets_marked: u64,
    /// Data packets retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Unnecessary timeouts and recoveries.
    pub spurious: u64,
    /// Window cuts by congestion control.
    pub window_cuts: u64,
    /// Jain's index over the goodputs of flows with congestion control, where there are at least two.
    pub jain_index: Option<f64>,
    /// The totals of a stream over several flows, and of a run with one such stream.
    pub stream: Option<StreamTotals>,
    /// The share of a flow in the bytes that all flows of its stream carried.
    pub carried_share: Option<f64>,
}

/// Summarises `runs` in order.
#[must_use]
pub fn summarise(runs: &[RunResult]) -> Vec<RunSummary<'_>> {
    let names = names(runs);
    let alone = Alone::of(runs);
    runs.iter().zip(names).map(|(run, name)| RunSummary::new(run, name, &alone)).collect()
}

/// Runs that differ by their seed alone.
pub(crate) struct SeedGroup<'a> {
    /// What tells the group from others: the name of its runs without their seeds.
    pub(crate) name: String,
    pub(crate) runs: Vec<&'a RunSummary<'a>>,
}

/// The label that tells seeds apart.
const SEED_AXIS: &str = "seed";

/// The runs by what they have in common but for the seed, in order; `None` where no two differ by it alone, or where a
/// run has parts, which a table shows by themselves.
pub(crate) fn groups_of_seeds<'a>(summaries: &'a [RunSummary<'a>]) -> Option<Vec<SeedGroup<'a>>> {
    let mut groups: Vec<(Vec<&(String, String)>, SeedGroup<'a>)> = Vec::new();
    for summary in summaries {
        if !summary.parts.is_empty() {
            return None;
        }
        let own = summary.run.labels.iter().filter(|(axis, _)| axis != SEED_AXIS);
        let own: Vec<&(String, String)> = own.collect();
        match groups.iter_mut().find(|(labels, _)| *labels == own) {
            Some((_, group)) => group.runs.push(summary),
            None => {
                let name = own.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
                let name = if name.is_empty() { summary.algorithm.clone() } else { name };
                groups.push((own, SeedGroup { name, runs: vec![summary] }));
            }
        }
    }
    let groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    let seeds = |group: &SeedGroup<'_>| group.runs.iter().all(|summary| has_seed(summary.run));
    groups.iter().any(|group| group.runs.len() > 1 && seeds(group)).then_some(groups)
}

fn has_seed(run: &RunResult) -> bool {
    run.labels.iter().any(|(axis, _)| axis == SEED_AXIS)
}

impl<'a> RunSummary<'a> {
    /// The application of this kind.
    #[must_use]
    pub fn application(&self, kind: ApplicationKind) -> Option<&'a ApplicationResult> {
        self.run.applications.iter().find(|application| application.kind == kind)
    }

    /// The delay that the grade follows: the 95th percentile of the time that packets wait in queues, those of the call
    /// where there is one.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        match self.call {
            Some(call) => Some(call.waiting_p95().unwrap_or(Duration::MAX)),
            None => self.slowest.map(|queue| queue.delay_p95),
        }
    }

    fn new(run: &'a RunResult, name: String, alone: &Alone<'a>) -> Self {
        let all: Vec<&FlowResult> = run.flows.iter().collect();
        let mut algorithms: Vec<&str> = Vec::new();
        for flow in &run.flows {
            if !algorithms.contains(&flow.algorithm.as_str()) {
                algorithms.push(&flow.algorithm);
            }
        }
        let parts = if !run.aggregates.is_empty() {
            aggregates_and_paths(run, alone)
        } else if algorithms.len() < 2 {
            Vec::new()
        } else {
            let of = |algorithm: &&str| {
                let flows: Vec<&FlowResult> =
                    all.iter().copied().filter(|flow| flow.algorithm == **algorithm).collect();
                FlowTotals::of(&flows, run.measured)
            };
            algorithms.iter().map(of).collect()
        };
        let mut total = FlowTotals::of(&all, run.measured);
        if !run.aggregates.is_empty() {
            // Flows of one stream do not compete, and their bytes may come twice.
            total.goodput = goodput_in_order(run);
            total.jain_index = None;
            if let [only] = run.aggregates.as_slice() {
                total.stream = Some(alone.totals(run, only));
            }
        }
        let (algorithm, colour) = main_algorithm(run);
        let slowest = slowest_queue(run);
        let call = worse_call(run);
        Self {
            run,
            name,
            algorithm,
            colour,
            total,
            parts,
            slowest,
            call,
            grade: match call {
                Some(call) => Some(grade_of_call(call)),
                None => slowest.map(|queue| Grade::of(queue.delay_p95)),
            },
        }
    }
}

impl FlowTotals {
    fn of(flows: &[&FlowResult], measured: Duration) -> Self {
        let first = flows.first();
        let name = match (flows, first) {
            ([flow], _) => format!("{} ({})", flow.name, flow.algorithm),
            (_, Some(flow)) => format!("{} × {}", flows.len(), flow.algorithm),
            (_, None) => String::new(),
        };
        let goodput = match flows {
            [flow] => flow.goodput,
            _ => Rate::of(flows.iter().map(|flow| flow.delivered).sum::<Bytes>(), measured),
        };
        let controlled: Vec<f64> = flows
            .iter()
            .filter(|flow| flow.algorithm != "udp")
            .map(|flow| flow.goodput.as_bps_f64())
            .collect();
        let sum = |count: fn(&FlowResult) -> u64| flows.iter().map(|flow| count(flow)).sum();
        Self {
            name,
            colour: first.map_or_else(|| NO_COLOUR.to_owned(), |flow| flow.colour.clone()),
            flows: flows.len() as u64,
            goodput,
            rtt_mean: weighted_rtt(flows),
            rtt_max: flows.iter().filter_map(|flow| flow.rtt_max).max(),
            packets_sent: sum(|flow| flow.packets_sent),
            packets_lost: sum(|flow| flow.packets_lost),
            packets_marked: sum(|flow| flow.packets_marked),
            retransmissions: sum(|flow| flow.retransmissions),
            timeouts: sum(|flow| flow.timeouts),
            spurious: sum(|flow| flow.spurious),
            window_cuts: sum(|flow| flow.window_cuts),
            jain_index: (controlled.len() > 1).then(|| jain_index(&controlled)),
            stream: None,
            carried_share: None,
        }
    }
}

/// Colour of a run without flows.
const NO_COLOUR: &str = "#888888";

/// Mean round-trip time; a flow counts as often as it sent, since each packet is a sample.
fn weighted_rtt(flows: &[&FlowResult]) -> Option<Duration> {
    let (mut weighted, mut weight) = (0.0, 0.0);
    for flow in flows {
        if let Some(mean) = flow.rtt_mean {
            let packets = flow.packets_sent.max(1) as f64;
            weighted += mean.as_secs_f64() * packets;
            weight += packets;
        }
    }
    (weight > 0.0).then(|| Duration::from_secs_f64(weighted / weight))
}

/// The grade of one direction of a call; F where nothing arrived.
fn grade_of_call(call: &ApplicationResult) -> Grade {
    call.waiting_p95().map_or(Grade::F, |waiting| Grade::of_call(waiting, call.loss()))
}

/// The direction of the call with the worse grade; among equals the one that waits longer.
fn worse_call(run: &RunResult) -> Option<&ApplicationResult> {
    let calls = run.applications.iter().filter(|application| application.kind.is_call());
    calls.max_by_key(|call| (grade_of_call(call), call.waiting_p95()))
}

/// The reported link with the longest 95th percentile; among equals the one most used.
fn slowest_queue(run: &RunResult) -> Option<&QueueResult> {
    let key = |queue: &QueueResult| (queue.delay_p95, queue.utilisation.unwrap_or(0.0));
    run.queues.iter().reduce(|best, queue| if key(queue) > key(best) { queue } else { best })
}

/// Name of an algorithm without its parameters.
fn base(algorithm: &str) -> &str {
    algorithm.split(':').next().unwrap_or(algorithm)
}

/// Algorithm and colour of the run's subject: the one that a label names, be it a queue discipline, else a stream's
/// scheduler, else the first flow's algorithm.
fn main_algorithm(run: &RunResult) -> (String, String) {
    let schedulers = over_several(run).map(|aggregate| (&aggregate.scheduler, &aggregate.colour));
    let flows = run.flows.iter().map(|flow| (&flow.algorithm, &flow.colour));
    let queues = run.queues.iter().map(|queue| (&queue.discipline, &queue.colour));
    let all: Vec<_> = schedulers.chain(flows).chain(queues).collect();
    let labelled = |(algorithm, _): &&(&String, &String)| {
        run.labels.iter().any(|(_, value)| base(value) == base(algorithm))
    };
    match all.iter().find(labelled).or(all.first()) {
        Some((algorithm, colour)) => ((*algorithm).clone(), (*colour).clone()),
        None => (String::new(), NO_COLOUR.to_owned()),
    }
}

/// The goodput of streams, in order, and of flows that stand alone.
fn goodput_in_order(run: &RunResult) -> Rate {
    let alone = run.flows.iter().filter(|flow| !run.aggregates.iter().any(|a| a.flows.contains(&flow.name)));
    let streams = run.aggregates.iter().map(|aggregate| aggregate.goodput);
    streams.chain(alone.map(|flow| flow.goodput)).sum()
}

/// Streams that leave their scheduler a choice.
fn over_several(run: &RunResult) -> impl Iterator<Item = &AggregateResult> {
    run.aggregates.iter().filter(|aggregate| aggregate.flows.len() > 1)
}

/// Each stream, unless the run is nothing else, and each flow with the rest.
fn aggregates_and_paths<'a>(run: &'a RunResult, alone: &Alone<'a>) -> Vec<FlowTotals> {
    let streams = run.aggregates.iter().map(|aggregate| {
        let flows: Vec<_> = run.flows.iter().filter(|flow| aggregate.flows.contains(&flow.name)).collect();
        FlowTotals {
            name: format!("{} ({})", aggregate.name, aggregate.scheduler),
            colour: aggregate.colour.clone(),
            goodput: aggregate.goodput,
            jain_index: None,
            stream: Some(alone.totals(run, aggregate)),
            ..FlowTotals::of(&flows, run.measured)
        }
    });
    let flow = |flow: &FlowResult| FlowTotals {
        carried_share: carried_share(run, flow),
        ..FlowTotals::of(&[flow], run.measured)
    };
    let only = run.aggregates.len() == 1 && run.aggregates[0].flows.len() == run.flows.len();
    if only && run.flows.len() == 1 {
        return Vec::new();
    }
    streams.skip(usize::from(only)).chain(run.flows.iter().map(flow)).collect()
}

/// The share of `flow` in the bytes that the flows of its stream carried.
fn carried_share(run: &RunResult, flow: &FlowResult) -> Option<f64> {
    let stream = run.aggregates.iter().find(|stream| stream.flows.contains(&flow.name))?;
    let carriers = run.flows.iter().filter(|flow| stream.flows.contains(&flow.name));
    let all: Bytes = carriers.map(|flow| flow.delivered).sum();
    (all > Bytes::ZERO).then(|| flow.delivered.as_f64() / all.as_f64())
}

/// All algorithms of a run, each once: `cubic + udp`.
fn algorithms(run: &RunResult) -> String {
    let mut names: Vec<&str> = Vec::new();
    let streams = over_several(run).map(|aggregate| &aggregate.scheduler);
    for algorithm in streams.chain(run.flows.iter().map(|flow| &flow.algorithm)) {
        if !names.contains(&algorithm.as_str()) {
            names.push(algorithm);
        }
    }
    if names.is_empty() { run.scenario.clone() } else { names.join(" + ") }
}

/// Names that tell runs apart: the labels, and before them the algorithm where it differs and no
/// label says so.
fn names(runs: &[RunResult]) -> Vec<String> {
    let all: Vec<String> = runs.iter().map(algorithms).collect();
    let differ = all.windows(2).any(|pair| pair[0] != pair[1]);
    let named = |run: &RunResult| {
        let (main, _) = main_algorithm(run);
        run.labels.iter().any(|(axis, value)| axis == CHANGE_AXIS || base(value) == base(&main))
    };
    let mut names: Vec<String> = Vec::with_capacity(runs.len());
    let mut seen: HashMap<String, u64> = HashMap::new();
    for (run, algorithm) in runs.iter().zip(all) {
        let mut parts: Vec<&str> = run.labels.iter().map(|(_, value)| value.as_str()).collect();
        if parts.is_empty() || (differ && !named(run)) {
            parts.insert(0, &algorithm);
        }
        let name = parts.join(", ");
        let times = seen.entry(name.clone()).or_insert(0_u64);
        *times += 1;
        let unique = if *times == 1 { name } else { format!("{name} #{times}") };
        names.push(unique);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{flow, queue, run};

    #[test]
    fn a_stream_over_several_flows_counts_once_and_its_flows_stand_below_it() {
        let flows = vec![flow("wlan", "reno", 1_000_000), flow("wired", "reno", 8_000_000)];
        let mut several = run(&[], flows, vec![]);
        several.flows.push(flow("other", "cubic", 500_000));
        several.aggregates.push(AggregateResult {
            name: "bulk".to_owned(),
            scheduler: "ecf".to_owned(),
            colour: "#f28e2b".to_owned(),
            flows: vec!["wlan".to_owned(), "wired".to_owned()],
            completed: None,
            delivered: Bytes::new(8_750_000),
            goodput: Rate::from_bps(8_700_000),
            duplicates: Bytes::new(300_000),
            reorder_mean_bytes: 1e4,
            reorder_max: Bytes::new(40_000),
            longest_stall: Duration::ZERO,
            reconnections: 0,
        });
        let runs = [several];
        let summary = &summarise(&runs)[0];
        assert_eq!((summary.algorithm.as_str(), summary.colour.as_str()), ("ecf", "#f28e2b"));
        assert_eq!(summary.total.goodput, Rate::from_bps(9_200_000), "in order, and what stands alone");
        assert_eq!(summary.total.jain_index, None);
        let shares: Vec<_> = summary.parts.iter().map(|part| part.carried_share).collect();
        assert_eq!(shares, [None, Some(1.0 / 9.0), Some(8.0 / 9.0), None]);
        let parts: Vec<_> = summary.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(parts, ["bulk (ecf)", "wlan (reno)", "wired (reno)", "other (cubic)"]);
    }

    #[test]
    fn labels_name_a_run_and_the_algorithm_is_added_only_where_it_tells_runs_apart() {
        let name = |runs: &[RunResult]| -> Vec<String> {
            summarise(runs).into_iter().map(|summary| summary.name).collect()
        };
        let single = [run(&[], vec![flow("web", "cubic", 3_000_000)], vec![])];
        assert_eq!(name(&single), ["cubic"]);
        let by_algorithm = [
            run(&[("cc", "fs-at")], vec![flow("web", "fs-at:mode=fit", 1)], vec![]),
            run(&[("cc", "cubic")], vec![flow("web", "cubic", 1)], vec![]),
        ];
        assert_eq!(name(&by_algorithm), ["fs-at", "cubic"]);
        let by_queue = [
            run(&[("queue", "red")], vec![flow("web", "cubic", 1)], vec![]),
            run(&[("queue", "codel")], vec![flow("web", "cubic", 1)], vec![]),
        ];
        assert_eq!(name(&by_queue), ["red", "codel"]);
        let by_file = [
            run(&[("rate", "1Mbit")], vec![flow("web", "cubic", 1)], vec![]),
            run(&[("rate", "1Mbit")], vec![flow("web", "reno", 1)], vec![]),
            run(&[("rate", "1Mbit")], vec![flow("web", "reno", 1)], vec![]),
        ];
        assert_eq!(name(&by_file), ["cubic, 1Mbit", "reno, 1Mbit", "reno, 1Mbit #2"]);
    }

    #[test]
    fn several_flows_add_up_and_mixed_algorithms_are_split() {
        let runs = [run(
            &[],
            vec![flow("a", "cubic", 3_000_000), flow("b", "cubic", 1_000_000), flow("c", "udp", 500_000)],
            vec![],
        )];
        let summary = &summarise(&runs)[0];
        assert_eq!(summary.total.goodput, Rate::from_bps(4_500_000));
        assert_eq!(summary.total.jain_index, Some(jain_index(&[3e6, 1e6])));
        let parts: Vec<_> = summary.parts.iter().map(|part| (part.name.as_str(), part.goodput)).collect();
        let expected = [("2 × cubic", Rate::from_bps(4_000_000)), ("c (udp)", Rate::from_bps(500_000))];
        assert_eq!(parts, expected);
    }

    #[test]
    fn the_grade_is_that_of_the_slowest_reported_queue() {
        let queues = vec![queue("uplink", 3.0), queue("downlink", 250.0), queue("core", 1.0)];
        let runs = [run(&[], vec![flow("a", "cubic", 1)], queues), run(&[], vec![], vec![])];
        let summaries = summarise(&runs);
        assert_eq!(summaries[0].slowest.map(|queue| queue.name.as_str()), Some("downlink"));
        assert_eq!(summaries[0].grade, Some(Grade::D));
        assert_eq!(summaries[1].grade, None);
    }
}
