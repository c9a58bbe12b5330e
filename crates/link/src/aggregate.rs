//! Streams over several flows, as a scenario has them and as results show them.

use suimon_aggregation::{Stream, StreamOptions};
use suimon_model::{Aggregate, Flow, Traffic};
use suimon_results::AggregateResult;
use suimon_units::{Bytes, Instant};

/// The stream of `spec` over `flows`, each with whether a gateway splits it.
#[must_use]
pub fn stream_of(spec: &Aggregate, flows: &[(&Flow, bool)]) -> Stream {
    let mss = |(flow, _): &(&Flow, bool)| match &flow.traffic {
        Traffic::Tcp(tcp) => tcp.profile.mss,
        Traffic::Udp(_) => Bytes::ZERO,
    };
    Stream::new(StreamOptions {
        scheduler: spec.scheduler.build_path(),
        chunk: flows.iter().map(mss).min().unwrap_or_default(),
        copy_stalled: spec.copy_stalled,
        send_buffer: spec.send_buffer,
        reorder_buffer: spec.reorder_buffer,
        reconnect: spec.reconnect,
        is_split: flows.iter().map(|(_, is_split)| *is_split).collect(),
    })
}

/// The row of `spec` in a run measured from one time to another, `stream` being its stream.
pub fn stream_result(
    spec: &Aggregate,
    stream: &mut Stream,
    (measured_from, end): (Instant, Instant),
) -> AggregateResult {
    let totals = stream.totals(measured_from, end);
    AggregateResult {
        name: spec.name.clone(),
        scheduler: spec.scheduler.label().to_owned(),
        colour: spec.scheduler.colour().to_owned(),
        flows: spec.flows.clone(),
        completed: stream.completed(),
        delivered: totals.delivered,
        goodput: totals.goodput,
        duplicates: totals.duplicates,
        reorder_mean_bytes: totals.reorder_mean_bytes,
        reorder_max: totals.reorder_max,
        longest_stall: totals.longest_stall,
        reconnections: totals.reconnections,
    }
}
