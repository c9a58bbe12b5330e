//! Small results for the tests of this crate.

use suimon_results::{AggregateResult, Column, Event, EventKind, FlowResult, QueueResult, RunResult, Series};
use suimon_units::{Bytes, Duration, Instant, Rate};

pub(crate) fn run(labels: &[(&str, &str)], flows: Vec<FlowResult>, queues: Vec<QueueResult>) -> RunResult {
    RunResult {
        scenario: "dsl".to_owned(),
        labels: labels.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect(),
        seed: 7,
        duration: Duration::from_secs(10),
        measured: Duration::from_secs(8),
        flows,
        aggregates: vec![],
        applications: vec![],
        queues,
        events: vec![],
        events_not_kept: 0,
        windows: Vec::new(),
        flow_series: vec![],
        aggregate_series: vec![],
        queue_series: vec![],
        emulated: vec![],
        notes: vec![],
    }
}

pub(crate) fn flow(name: &str, algorithm: &str, goodput_bps: u64) -> FlowResult {
    let goodput = Rate::from_bps(goodput_bps);
    let udp = algorithm == "udp";
    FlowResult {
        name: name.to_owned(),
        algorithm: algorithm.to_owned(),
        colour: if algorithm == "cubic" { "#cc3311" } else { "#0077bb" }.to_owned(),
        start: Instant::from_nanos(500_000_000),
        completed: None,
        delivered: goodput.amount_in(Duration::from_secs(8)),
        goodput,
        packets_sent: 100,
        retransmissions: 4,
        packets_lost: 3,
        packets_marked: 2,
        window_cuts: 1,
        timeouts: 0,
        spurious: 0,
        rtt_min: (!udp).then(|| Duration::from_millis(90)),
        rtt_mean: (!udp).then(|| Duration::from_micros(120_500)),
        rtt_max: (!udp).then(|| Duration::from_millis(300)),
        rate_spread: None,
        datagrams: None,
    }
}

/// A stream over `flows`.
pub(crate) fn stream(scheduler: &str, flows: &[&str], goodput_bps: u64) -> AggregateResult {
    AggregateResult {
        name: "bulk".to_owned(),
        scheduler: scheduler.to_owned(),
        colour: "#f28e2b".to_owned(),
        flows: flows.iter().map(|flow| (*flow).to_owned()).collect(),
        completed: None,
        delivered: Bytes::ZERO,
        goodput: Rate::from_bps(goodput_bps),
        duplicates: Bytes::ZERO,
        reorder_mean_bytes: 0.0,
        reorder_max: Bytes::ZERO,
        longest_stall: Duration::ZERO,
        reconnections: 0,
    }
}

pub(crate) fn queue(name: &str, delay_p95_ms: f64) -> QueueResult {
    let delay = |share: f64| Duration::from_secs_f64(delay_p95_ms * share / 1e3);
    QueueResult {
        name: name.to_owned(),
        discipline: "droptail".to_owned(),
        colour: "#888888".to_owned(),
        packets: 2_000,
        bytes: Bytes::new(3_000_000),
        utilisation: Some(0.985),
        backlog_mean_packets: 12.25,
        backlog_mean_bytes: 18_375.0,
        backlog_max_packets: 65,
        backlog_max_bytes: Bytes::new(97_500),
        delay_mean: delay(0.6),
        delay_p50: delay(0.5),
        delay_p95: delay(1.0),
        delay_p99: delay(1.25),
        delay_max: delay(1.5),
        dropped_overflow: 3,
        dropped_early: 0,
        lost_on_link: 0,
        marked: 2,
    }
}

/// Two runs of a comparison with events and short series, one value of them missing.
pub(crate) fn comparison() -> Vec<RunResult> {
    [("fs-at", 3_400_000, 12.0), ("cubic", 3_500_000, 480.0)]
        .into_iter()
        .map(|(algorithm, goodput, delay)| {
            let mut result = run(
                &[("cc", algorithm), ("queue", "droptail")],
                vec![flow("web", algorithm, goodput)],
                vec![queue("downlink", delay)],
            );
            let times = vec![Instant::ZERO, Instant::from_nanos(100_000_000)];
            result.events = vec![Event { time: times[1], flow: 0, kind: EventKind::Recovery }];
            let column =
                |name: &str, values: [f64; 2]| Column { name: name.to_owned(), values: values.to_vec() };
            result.flow_series = vec![Series {
                subject: "web".to_owned(),
                times: times.clone(),
                columns: vec![
                    column("goodput_bps", [0.0, 3.25e6]),
                    column("cwnd_bytes", [14_480.0, 28_960.0]),
                    column("srtt_ms", [f64::NAN, 91.25]),
                ],
            }];
            result.queue_series = vec![Series {
                subject: "downlink".to_owned(),
                times,
                columns: vec![column("backlog_packets", [0.0, 9.0])],
            }];
            result
        })
        .collect()
}
