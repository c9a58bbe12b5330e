//! The links of an emulation, in the form of a simulated run.

use suimon_results::{EmulatedLink, FlowResult, RunResult};
use suimon_units::{Duration, Instant, Rate};

use crate::flows::FlowShare;
use crate::statistics::{LinkReport, LinkStatistics};
use crate::verdict::Verdict;

/// The links of one emulation as a run called `name`: a row a direction of a link and a row a flow.
///
/// A link sees packets, not the state of their senders: window cuts, timeouts and round-trip times are missing, and
/// delivered data is the payload that left the link.
#[must_use]
pub fn run_result(name: &str, seed: u64, reports: &[LinkReport]) -> RunResult {
    let end = reports.iter().map(|report| report.statistics.at).max().unwrap_or(Instant::ZERO);
    let duration = end.saturating_since(Instant::ZERO);
    let directions = || reports.iter().flat_map(|report| &report.statistics.directions);
    let flows = directions().flat_map(|direction| &direction.flows).enumerate();
    RunResult {
        scenario: name.to_owned(),
        labels: Vec::new(),
        seed,
        duration,
        measured: duration,
        flows: flows.map(|(nth, share)| flow_result(nth, share)).collect(),
        aggregates: Vec::new(),
        applications: Vec::new(),
        queues: directions().map(|direction| direction.totals.clone()).collect(),
        events: Vec::new(),
        events_not_kept: 0,
        windows: Vec::new(),
        flow_series: reports.iter().flat_map(|report| report.flow_series.iter().flatten()).cloned().collect(),
        aggregate_series: Vec::new(),
        queue_series: reports.iter().flat_map(|report| report.series.clone()).collect(),
        emulated: reports.iter().map(|report| EmulatedLink::from(&report.statistics)).collect(),
        notes: Vec::new(),
    }
}

impl From<&LinkStatistics> for EmulatedLink {
    fn from(statistics: &LinkStatistics) -> Self {
        let lateness = statistics.lateness;
        Self {
            name: statistics.name.clone(),
            scheduling: statistics.scheduling.to_string(),
            packets: lateness.packets,
            late_p50: lateness.p50,
            late_p99: lateness.p99,
            late_max: lateness.max,
            unseen: statistics.unseen,
            objections: match statistics.verdict() {
                Verdict::Counts => Vec::new(),
                Verdict::DoesNotCount(reasons) => reasons,
            },
        }
    }
}

fn flow_result(nth: usize, share: &FlowShare) -> FlowResult {
    let lasted = share.last.saturating_since(share.first);
    FlowResult {
        name: share.key.to_string(),
        algorithm: share.key.protocol_name(),
        colour: COLOURS[nth % COLOURS.len()].to_owned(),
        start: share.first,
        completed: None,
        delivered: share.payload,
        // A flow of one packet has no rate.
        goodput: if lasted > Duration::ZERO { Rate::of(share.payload, lasted) } else { Rate::ZERO },
        packets_sent: share.packets + share.dropped,
        retransmissions: share.retransmissions,
        packets_lost: share.dropped,
        packets_marked: share.marked,
        window_cuts: 0,
        timeouts: 0,
        spurious: 0,
        rtt_min: None,
        rtt_mean: None,
        rtt_max: None,
        rate_spread: None,
        datagrams: None,
    }
}

/// Flows of programs have no algorithm that could give them a colour (Tableau 10).
const COLOURS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f",
    "#bab0ac",
];
