//! A description of a line, out of what both ends saw of it: nothing here has a clock or a socket.

mod capacity;
mod clocks;
mod kind;
mod series;

use std::net::Ipv4Addr;

use serde::Serialize;

use self::capacity::Capacity;
pub use self::capacity::Point;
pub(crate) use self::clocks::Clocks;
pub use self::kind::QueueKind;
use self::kind::Signs;
use self::series::{Delays, last_of_flows, percentile};
use crate::recording::{Direction, Loaded, Recording, Span};
use crate::responsiveness::Responsiveness;

/// A line as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Without load.
    pub idle: Idle,
    /// Toward the client, where it was loaded.
    pub download: Option<Way>,
    /// From the client, where it was loaded.
    pub upload: Option<Way>,
    /// To the first hop, where it takes pings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_hop: Option<FirstHop>,
}

/// Round trips to the first hop, the gateway: over the Wi-Fi, where there is one, and not over the access line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FirstHop {
    /// The gateway.
    pub address: Ipv4Addr,
    /// Median round-trip time without load.
    pub rtt_ms: f64,
    /// 95th percentile without load.
    pub rtt_p95_ms: f64,
    /// 95th percentile beside the download.
    pub download_rtt_p95_ms: Option<f64>,
    /// 95th percentile beside the upload.
    pub upload_rtt_p95_ms: Option<f64>,
    /// Share of all pings that did not come back.
    pub loss_percent: f64,
}

impl FirstHop {
    fn of(recording: &Recording) -> Option<Self> {
        let hop = recording.first_hop.as_ref()?;
        let within = |spans: &[Span]| -> Vec<f64> {
            let sent = hop.pings.iter().filter(|(sent, _)| spans.iter().any(|span| span.has(*sent)));
            sent.filter_map(|(sent, back)| Some(back.as_ref()?.saturating_sub(*sent) as f64 / 1e3)).collect()
        };
        let idle = within(&recording.idle);
        let loaded = |direction| percentile(&within(&[settled(recording.load(direction)?.span)]), 0.95);
        let lost = hop.pings.iter().filter(|(_, back)| back.is_none()).count();
        Some(Self {
            address: hop.address,
            rtt_ms: percentile(&idle, 0.5)?,
            rtt_p95_ms: percentile(&idle, 0.95)?,
            download_rtt_p95_ms: loaded(Direction::Download),
            upload_rtt_p95_ms: loaded(Direction::Upload),
            loss_percent: 100.0 * lost as f64 / hop.pings.len().max(1) as f64,
        })
    }

    /// What waits at the first hop beside a load, by the 95th percentile, in milliseconds.
    #[must_use]
    pub fn added_ms(&self, direction: Direction) -> Option<f64> {
        let loaded = match direction {
            Direction::Download => self.download_rtt_p95_ms,
            Direction::Upload => self.upload_rtt_p95_ms,
        };
        loaded.map(|loaded| (loaded - self.rtt_ms).max(0.0))
    }
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
    /// Share of the probes that did not come back, before, between and after loads.
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
    /// Round trips a minute beside and in the load, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsiveness: Option<Responsiveness>,
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
/// A load that is shorter has no part to spare.
const SHORT_US: u64 = 1_000_000;
/// The share of waits that is not longer than the longest that counts.
const LONGEST: f64 = 0.99;

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
        let bits = recording.probe_bytes() as f64 * 8.0;
        let on_wire = |way: &Option<Way>| way.as_ref().map_or(0.0, |way| bits / way.capacity_mbps / 1e3);
        let propagation_ms = (idle.rtt_min_ms - on_wire(&download) - on_wire(&upload)).max(0.0);
        let first_hop = FirstHop::of(recording);
        Some(Self { idle: Idle { propagation_ms, ..idle }, download, upload, first_hop })
    }

    /// Whether all that is told of it are numbers, which a report of a browser need not bring about.
    pub(crate) fn is_finite(&self) -> bool {
        let of_way = |way: &Way| {
            [way.capacity_mbps, way.capacity_p10_mbps, way.capacity_p90_mbps, way.goodput_mbps]
                .into_iter()
                .chain([way.rtt_p99_ms, way.queue_p95_ms, way.own_queue_p95_ms])
                .all(f64::is_finite)
        };
        let idle = [self.idle.rtt_ms, self.idle.rtt_min_ms, self.idle.jitter_ms, self.idle.propagation_ms];
        idle.into_iter().all(f64::is_finite)
            && [&self.download, &self.upload].into_iter().flatten().all(of_way)
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
        loss_percent: loss_percent(recording, &recording.idle),
        propagation_ms: rtt_min_ms,
    })
}

/// Round-trip times of probes sent in `span`, in milliseconds.
fn round_trips(recording: &Recording, span: Span) -> Vec<f64> {
    let sent = recording.probes.iter().filter(|probe| span.has(probe.sent_us));
    sent.filter_map(|probe| Some((probe.answer?.1.saturating_sub(probe.sent_us)) as f64 / 1e3)).collect()
}

/// The share of probes sent in these times that did not come back.
fn loss_percent(recording: &Recording, spans: &[Span]) -> f64 {
    let each = spans.iter().map(|span| lost(recording, *span));
    let (lost, all) = each.fold((0, 0), |(lost, all), (more, sent)| (lost + more, all + sent));
    100.0 * f64::from(lost) / f64::from(all.max(1))
}

/// The probes sent in `span` that did not come back, and all. The last of a recording may not have had the time.
fn lost(recording: &Recording, span: Span) -> (u32, u32) {
    let last = recording.probes.iter().rev().find(|probe| probe.answer.is_some());
    let until = last.map_or(0, |probe| probe.sent_us);
    let sent = recording.probes.iter().filter(|probe| span.has(probe.sent_us) && probe.sent_us <= until);
    sent.fold((0, 0), |(lost, all), probe| (lost + u32::from(probe.answer.is_none()), all + 1))
}

fn way(
    recording: &Recording,
    clocks: &Clocks,
    idle: &Idle,
    direction: Direction,
    load: &Loaded,
) -> Option<Way> {
    let span = load.span;
    let warm = settled(span);
    let probes = Delays::of_probes(recording, clocks, direction);
    let own = Delays::of_load(load, clocks, direction, idle.rtt_min_ms);
    let capacity = Capacity::of(load, clocks, direction, recording, &probes)?;
    // A full segment takes longer on the wire than a probe.
    let own = own.less(1_440.0 * 8.0 / capacity.mean_bps * 1e3);
    let rtts = round_trips(recording, warm);
    let beside = probes.within(warm);
    let of_load = own.within(warm);
    let signs = Signs::of(&probes, &own, load, warm, (clocks, direction), loses_idle(recording));
    let queue = QueueKind::of(&signs);
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
        loss_percent: loss_percent(recording, &[warm]),
        retransmitted_percent: retransmitted_percent(load),
        buffer: buffer(recording, (&probes, &own), load, queue, &capacity),
        queue,
        responsiveness: Responsiveness::of(load, &recording.foreign),
        capacity: capacity.points,
    })
}

/// The part of a load that counts: all but the beginning, unless it is too short for that.
fn settled(span: Span) -> Span {
    let length_us = span.to_us.saturating_sub(span.from_us);
    if length_us < SHORT_US {
        return span;
    }
    Span { from_us: span.from_us.saturating_add((length_us as f64 * WARM_UP) as u64), ..span }
}

fn retransmitted_percent(load: &Loaded) -> f64 {
    let last = last_of_flows(&load.sender);
    let (again, all) = last.fold((0.0, 0.0), |(again, all), sample| {
        (again + sample.retransmissions as f64, all + sample.segments as f64)
    });
    100.0 * again / f64::max(all, 1.0)
}

/// Whether probes got lost without load, more often than once.
fn loses_idle(recording: &Recording) -> bool {
    recording.idle.iter().map(|span| lost(recording, *span).0).sum::<u32>() > 1
}

/// The longest wait of what was sent in a time: but for one of a hundred, which this host may have delayed.
fn longest(delays: &Delays, span: Span) -> Option<f64> {
    percentile(&delays.within(span), LONGEST)
}

/// What waits before a packet that waits longest.
fn buffer(
    recording: &Recording,
    (probes, own): (&Delays, &Delays),
    load: &Loaded,
    queue: QueueKind,
    capacity: &Capacity,
) -> Option<Buffer> {
    if queue == QueueKind::Fair {
        let ms = longest(own, load.span)?;
        let bytes = (ms / 1e3 * capacity.mean_bps / 8.0) as u64;
        return Some(Buffer { ms, bytes, is_at_least: true });
    }
    let ms = longest(probes, load.span)?;
    let bytes = if capacity.varies {
        let sent = probes.between(load.span.from_us as f64, load.span.to_us as f64);
        let before: Vec<_> = sent.iter().map(|probe| capacity.before(probe)).collect();
        percentile(&before, LONGEST)?
    } else {
        ms / 1e3 * capacity.mean_bps / 8.0
    };
    let overflowed = last_of_flows(&load.sender).any(|sample| sample.retransmissions > 0);
    // What gets lost anyway is no sign of a buffer that overflows.
    let is_at_least = queue != QueueKind::DropTail || !overflowed || loses_idle(recording);
    Some(Buffer { ms, bytes: bytes as u64, is_at_least })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Probe, Sample};

    /// A line as the tests make it: a queue that is filled and emptied as `backlog_ms` says, at `mbps` Mbit/s, and 20 ms of
    /// propagation each way. The server's clock is a quarter of an hour ahead, and runs 100 parts in a million fast.
    struct Made {
        mbps: f64,
        /// What the load waits, seconds after it began.
        backlog_ms: fn(f64) -> f64,
        /// The share of that which probes wait.
        beside: f64,
        /// Seconds after the beginning at which a segment gets lost.
        losses: &'static [f64],
        marked: u64,
    }

    const ONE_WAY_US: f64 = 20e3;
    const LOADED: Span = Span { from_us: 3_000_000, to_us: 13_000_000 };
    const END_US: u64 = 15_000_000;
    const SEGMENT: u64 = 1_448;

    fn server_clock(client_us: f64) -> u64 {
        (900e6 + client_us * 1.000_1) as u64
    }

    impl Made {
        fn wait_us(&self, at_us: f64) -> f64 {
            let since_s = (at_us - LOADED.from_us as f64) / 1e6;
            if LOADED.has(at_us as u64) { (self.backlog_ms)(since_s) * 1e3 } else { 0.0 }
        }

        /// A download over it.
        fn recording(&self) -> Recording {
            let probe = |nth: u64| {
                let sent_us = nth * 20_000;
                let at_server = sent_us as f64 + ONE_WAY_US;
                let back = at_server + ONE_WAY_US + self.wait_us(at_server) * self.beside;
                Probe { sent_us, answer: Some((server_clock(at_server), back as u64)) }
            };
            let look = |nth: u64| {
                let at = LOADED.from_us + nth * 20_000;
                let seconds = nth as f64 * 0.02;
                let segments = (self.mbps * 1e6 * seconds / 8.0 / 1_500.0) as u64;
                let lost = self.losses.iter().filter(|loss| **loss <= seconds).count() as u64;
                let srtt = 2.0 * ONE_WAY_US + self.wait_us(at as f64);
                let receiver = Sample {
                    at_us: at,
                    received: segments * SEGMENT,
                    received_segments: segments,
                    received_segment: SEGMENT,
                    has_timestamps: true,
                    ..Sample::default()
                };
                let sender = Sample {
                    at_us: server_clock(at as f64 + srtt),
                    srtt_us: srtt as u64,
                    segments: segments + lost,
                    retransmissions: lost,
                    marked: self.marked,
                    ..Sample::default()
                };
                (sender, receiver)
            };
            let (sender, receiver) = (0..500).map(look).unzip();
            Recording {
                is_ipv6: false,
                is_stream: false,
                probes: (0..END_US / 20_000).map(probe).collect(),
                idle: vec![
                    Span { from_us: 0, to_us: 3_000_000 },
                    Span { from_us: 13_700_000, to_us: END_US },
                ],
                download: Some(Loaded { span: LOADED, sender, receiver }),
                upload: None,
                foreign: Vec::new(),
                first_hop: None,
            }
        }

        fn download(&self) -> Way {
            Line::of(&self.recording()).unwrap().download.unwrap()
        }
    }

    /// From empty to 100 ms in a second, and from then on between 60 and 100 ms.
    fn sawtooth(since_s: f64) -> f64 {
        if since_s < 1.0 { 100.0 * since_s } else { 60.0 + 40.0 * (since_s / 2.0).fract() }
    }

    const DEEP: Made = Made {
        mbps: 20.0,
        backlog_ms: sawtooth,
        beside: 1.0,
        losses: &[1.1, 4.05, 6.05, 8.05, 9.9],
        marked: 0,
    };

    fn near(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() <= share, "{found} instead of {expected}");
    }

    #[test]
    fn a_deep_buffer_is_found_with_its_rate_and_size() {
        let line = Line::of(&DEEP.recording()).unwrap();
        near(line.idle.rtt_ms, 40.0, 0.001);
        assert!(line.idle.jitter_ms < 0.01 && line.idle.loss_percent == 0.0);
        let way = line.download.unwrap();
        near(way.capacity_mbps, 20.0, 0.01);
        near(way.rtt_p95_ms, 138.0, 0.01);
        near(way.queue_p95_ms, 98.0, 0.02);
        near(way.own_queue_p95_ms, 98.0, 0.02);
        let buffer = way.buffer.unwrap();
        near(buffer.bytes as f64, 250_000.0, 0.03);
        assert!(!buffer.is_at_least && !way.varies);
        assert_eq!(way.queue, QueueKind::DropTail);
    }

    #[test]
    fn a_load_whose_first_byte_is_late_has_a_capacity() {
        let mut recording = DEEP.recording();
        let load = recording.download.as_mut().unwrap();
        load.span.to_us = load.span.from_us + 2_000_000;
        let all = load.receiver[50];
        // A second of a 20 Mbit/s line, after 1.6 s and within a tenth of one.
        let at =
            |milliseconds: u64, sample| Sample { at_us: LOADED.from_us + 1_000 * milliseconds, ..sample };
        let none = Sample { received: 0, received_segments: 0, ..all };
        load.receiver = vec![at(0, none), at(1_600, none), at(1_700, all), at(2_000, all)];
        let way = Line::of(&recording).unwrap().download.unwrap();
        near(way.capacity_mbps, 200.0, 0.01);
        near(way.goodput_mbps, 20.0 / 2.0 * 1_448.0 / 1_500.0, 0.01);
    }

    #[test]
    fn a_queue_that_others_do_not_see_is_fair() {
        let way = Made { beside: 0.05, ..DEEP }.download();
        assert_eq!(way.queue, QueueKind::Fair);
        assert!(way.queue_p95_ms < 6.0 && way.own_queue_p95_ms > 90.0);
        assert!(way.buffer.unwrap().is_at_least);
    }

    #[test]
    fn a_queue_that_comes_down_under_load_is_managed() {
        let managed =
            |since_s: f64| if since_s < 1.5 { 100.0 * since_s } else { 6.0 + 4.0 * since_s.fract() };
        let losses = &[3.5, 4.5, 5.5, 6.5, 7.5, 8.5];
        let way = Made { backlog_ms: managed, losses, ..DEEP }.download();
        assert_eq!(way.queue, QueueKind::Aqm);
        assert_eq!(Made { marked: 7, ..DEEP }.download().queue, QueueKind::Aqm);
        // One that nothing was lost in may hold more.
        let way = Made { losses: &[], ..DEEP }.download();
        assert!(way.queue == QueueKind::DropTail && way.buffer.unwrap().is_at_least);
    }

    #[test]
    fn the_first_hop_is_told_beside_the_far_one() {
        let mut recording = DEEP.recording();
        // Pings take 2 ms, and 30 ms beside the download; every tenth gets lost.
        let ping = |nth: u64| {
            let sent = nth * 50_000;
            let took = if LOADED.has(sent) { 30_000 } else { 2_000 };
            (sent, (!nth.is_multiple_of(10)).then_some(sent + took))
        };
        let address = Ipv4Addr::new(192, 168, 1, 1);
        recording.first_hop =
            Some(crate::first_hop::Hop { address, pings: (0..END_US / 50_000).map(ping).collect() });
        let hop = Line::of(&recording).unwrap().first_hop.unwrap();
        assert_eq!((hop.rtt_ms, hop.download_rtt_p95_ms, hop.upload_rtt_p95_ms), (2.0, Some(30.0), None));
        assert_eq!((hop.added_ms(Direction::Download), hop.added_ms(Direction::Upload)), (Some(28.0), None));
        near(hop.loss_percent, 10.0, 0.001);
    }

    #[test]
    fn nothing_is_said_of_what_was_not_seen() {
        assert_eq!(Line::of(&Recording::default()), None);
        let mut recording = DEEP.recording();
        recording.download = None;
        let line = Line::of(&recording).unwrap();
        assert!(line.download.is_none() && line.upload.is_none());
        // Probes that were under way when the recording ended are not lost.
        let mut recording = DEEP.recording();
        recording.probes.iter_mut().rev().take(20).for_each(|probe| probe.answer = None);
        assert!(!loses_idle(&recording));
        recording.probes.iter_mut().take(20).for_each(|probe| probe.answer = None);
        assert!(loses_idle(&recording));
        near(Line::of(&recording).unwrap().idle.loss_percent, 100.0 * 20.0 / 195.0, 0.01);
        let mut recording = DEEP.recording();
        recording.download.as_mut().unwrap().receiver.clear();
        assert_eq!(Line::of(&recording).unwrap().download, None);
        let mut recording = DEEP.recording();
        recording.probes.iter_mut().for_each(|probe| probe.answer = None);
        assert_eq!(Line::of(&recording), None);
    }
}
