//! A description of a line, out of what both ends saw of it: nothing here has a clock or a socket.

mod capacity;
mod clocks;
mod kind;
mod series;

use serde::Serialize;

use self::capacity::Capacity;
pub use self::capacity::Point;
use self::clocks::Clocks;
pub use self::kind::QueueKind;
use self::series::{Delays, percentile};
use crate::recording::{Direction, Loaded, Recording, Span};

/// A line as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Without load.
    pub idle: Idle,
    /// Toward the client, where it was loaded.
    pub download: Option<Way>,
    /// From the client, where it was loaded.
    pub upload: Option<Way>,
}

/// A line without load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Idle {
    /// Median round-trip time.
    pub rtt_ms: f64,
    /// Least round-trip time of all, also between loads.
    pub rtt_min_ms: f64,
    /// 95th percentile of the round-trip time.
    pub rtt_p95_ms: f64,
    /// Mean difference of round-trip times one after the other.
    pub jitter_ms: f64,
    /// Share of the probes that did not come back.
    pub loss_percent: f64,
    /// Round-trip time of packets without length, as a scenario has it; like the least one where no capacity is known.
    pub propagation_ms: f64,
}

/// One direction under load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Way {
    /// What the line carries while packets wait for it, in IP bytes.
    pub capacity_mbps: f64,
    /// The 10th and 90th percentile of that over time.
    pub capacity_p10_mbps: f64,
    /// The same.
    pub capacity_p90_mbps: f64,
    /// Whether the capacity varies by more than chance.
    pub varies: bool,
    /// Payload that arrived in order, from the start of the load to its end.
    pub goodput_mbps: f64,
    /// Round-trip times of probes beside the load.
    pub rtt_p50_ms: f64,
    /// 95th percentile.
    pub rtt_p95_ms: f64,
    /// 99th percentile.
    pub rtt_p99_ms: f64,
    /// Time that probes, which are of another flow, wait in this direction.
    pub queue_p50_ms: f64,
    /// 95th percentile.
    pub queue_p95_ms: f64,
    /// Median time that packets of the load itself wait.
    pub own_queue_p50_ms: f64,
    /// 95th percentile.
    pub own_queue_p95_ms: f64,
    /// Share of the probes that did not come back.
    pub loss_percent: f64,
    /// Share of the load's segments that were sent again.
    pub retransmitted_percent: f64,
    /// What the buffer was seen to hold.
    pub buffer: Option<Buffer>,
    /// The kind of queue.
    pub queue: QueueKind,
    /// What arrived over time.
    pub capacity: Vec<Point>,
}

/// What a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Buffer {
    /// In time, at the capacity.
    pub ms: f64,
    /// In bytes.
    pub bytes: u64,
    /// Whether the load did not fill it, so that it may hold more.
    pub is_at_least: bool,
}

/// Loads need so much of their time to settle.
const WARM_UP: f64 = 0.3;
/// What leaves a load's last packets time to arrive.
const GRACE_US: u64 = 100_000;

impl Line {
    /// The line of a recording; none where no probe came back while it was idle.
    #[must_use]
    pub fn of(recording: &Recording) -> Option<Self> {
        let clocks = Clocks::of(recording)?;
        let idle = idle(recording)?;
        let way = |direction| {
            let load = recording.load(direction)?;
            way(recording, &clocks, &idle, direction, load)
        };
        let (download, upload) = (way(Direction::Download), way(Direction::Upload));
        // A probe takes its own time on the wire, each way.
        let bits = crate::datagram::on_the_wire(recording.is_ipv6) as f64 * 8.0;
        let on_wire = |way: &Option<Way>| way.as_ref().map_or(0.0, |way| bits / way.capacity_mbps / 1e3);
        let propagation_ms = (idle.rtt_min_ms - on_wire(&download) - on_wire(&upload)).max(0.0);
        Some(Self { idle: Idle { propagation_ms, ..idle }, download, upload })
    }

    /// The direction, where it was loaded.
    #[must_use]
    pub const fn way(&self, direction: Direction) -> Option<&Way> {
        match direction {
            Direction::Download => self.download.as_ref(),
            Direction::Upload => self.upload.as_ref(),
        }
    }
}

fn idle(recording: &Recording) -> Option<Idle> {
    let first = recording.idle.first()?;
    let rtts = round_trips(recording, *first);
    let all = recording.idle.iter().flat_map(|span| round_trips(recording, *span));
    let steps: Vec<_> = rtts.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let rtt_min_ms = all.fold(f64::INFINITY, f64::min);
    Some(Idle {
        rtt_ms: percentile(&rtts, 0.5)?,
        rtt_min_ms,
        rtt_p95_ms: percentile(&rtts, 0.95)?,
        jitter_ms: steps.iter().sum::<f64>() / steps.len().max(1) as f64,
        loss_percent: loss_percent(recording, *first),
        propagation_ms: rtt_min_ms,
    })
}

/// Round-trip times of probes sent in `span`, in milliseconds.
fn round_trips(recording: &Recording, span: Span) -> Vec<f64> {
    let sent = recording.probes.iter().filter(|probe| span.has(probe.sent_us));
    sent.filter_map(|probe| Some((probe.answer?.1.saturating_sub(probe.sent_us)) as f64 / 1e3)).collect()
}

/// The share of probes sent in `span` that did not come back. The last of a span may not have had the time.
fn loss_percent(recording: &Recording, span: Span) -> f64 {
    let last = recording.probes.iter().rev().find(|probe| probe.answer.is_some());
    let until = last.map_or(0, |probe| probe.sent_us).min(span.to_us);
    let sent = recording.probes.iter().filter(|probe| span.has(probe.sent_us) && probe.sent_us <= until);
    let (lost, all) =
        sent.fold((0_u32, 0_u32), |(lost, all), probe| (lost + u32::from(probe.answer.is_none()), all + 1));
    100.0 * f64::from(lost) / f64::from(all.max(1))
}

fn way(
    recording: &Recording,
    clocks: &Clocks,
    idle: &Idle,
    direction: Direction,
    load: &Loaded,
) -> Option<Way> {
    let span = load.span;
    let warm = Span { from_us: span.from_us + ((span.to_us - span.from_us) as f64 * WARM_UP) as u64, ..span };
    let probes = Delays::of_probes(recording, clocks, direction);
    let own = Delays::of_load(load, clocks, direction, idle.rtt_min_ms);
    let capacity = Capacity::of(load, clocks, direction, recording.is_ipv6, &own, &probes)?;
    // A full segment takes longer on the wire than a probe.
    let own = own.less(1_440.0 * 8.0 / capacity.mean_bps * 1e3);
    let rtts = round_trips(recording, warm);
    let beside = probes.within(warm);
    let of_load = own.within(warm);
    let queue = QueueKind::of(&kind::Signs::of(&probes, &own, load, span, clocks, direction));
    Some(Way {
        capacity_mbps: capacity.mean_bps / 1e6,
        capacity_p10_mbps: capacity.p10_bps / 1e6,
        capacity_p90_mbps: capacity.p90_bps / 1e6,
        varies: capacity.varies,
        goodput_mbps: capacity.goodput_bps / 1e6,
        rtt_p50_ms: percentile(&rtts, 0.5)?,
        rtt_p95_ms: percentile(&rtts, 0.95)?,
        rtt_p99_ms: percentile(&rtts, 0.99)?,
        queue_p50_ms: percentile(&beside, 0.5)?,
        queue_p95_ms: percentile(&beside, 0.95)?,
        own_queue_p50_ms: percentile(&of_load, 0.5).unwrap_or_default(),
        own_queue_p95_ms: percentile(&of_load, 0.95).unwrap_or_default(),
        loss_percent: loss_percent(recording, warm),
        retransmitted_percent: retransmitted_percent(load),
        buffer: buffer(&probes, &own, load, queue, capacity.mean_bps),
        queue,
        capacity: capacity.points,
    })
}

fn retransmitted_percent(load: &Loaded) -> f64 {
    let last = series::last_of_flows(&load.sender);
    let (again, all) =
        last.fold((0, 0), |(again, all), sample| (again + sample.retransmissions, all + sample.segments));
    100.0 * again as f64 / all.max(1) as f64
}

/// The longest wait, as bytes at the capacity.
fn buffer(
    probes: &Delays,
    own: &Delays,
    load: &Loaded,
    queue: QueueKind,
    capacity_bps: f64,
) -> Option<Buffer> {
    let span = Span { to_us: load.span.to_us + GRACE_US, ..load.span };
    let seen = if queue == QueueKind::Fair { own } else { probes };
    let ms = seen.within(span).into_iter().reduce(f64::max)?;
    let lost = series::last_of_flows(&load.sender).any(|sample| sample.retransmissions > 0);
    Some(Buffer {
        ms,
        bytes: (ms / 1e3 * capacity_bps / 8.0) as u64,
        is_at_least: queue != QueueKind::DropTail || !lost,
    })
}
