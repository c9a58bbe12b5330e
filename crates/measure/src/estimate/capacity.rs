//! What a line carries: what arrives while packets wait for it.

use serde::Serialize;

use super::clocks::Clocks;
use super::series::{Delays, Wait, last_of_flows, percentile, receiver_time};
use crate::recording::{Direction, Loaded, Recording, Sample};

/// What arrived around a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Seconds since the load began.
    pub at_s: f64,
    /// IP bytes of the load.
    pub mbps: f64,
}

/// The capacity of one direction, in bits per second of IP packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Capacity {
    pub(super) mean_bps: f64,
    pub(super) p10_bps: f64,
    pub(super) p90_bps: f64,
    pub(super) varies: bool,
    pub(super) goodput_bps: f64,
    pub(super) points: Vec<Point>,
    arrivals: Vec<Arrivals>,
}

/// The least window of time over which arrivals are counted, in microseconds.
const WINDOW_US: f64 = 100e3;
/// Packets in a window, so that one more or less is 1 %.
const PACKETS: f64 = 100.0;
/// So many windows of a full queue tell whether the line varies.
const BUSY: usize = 10;
/// The most windows of a load.
const MOST: usize = 10_000;
/// The size of a packet, in bits.
const PACKET_BITS: f64 = 12_000.0;
/// Windows within so much of the fastest are as fast.
const NEAR: f64 = 0.03;
/// Windows slower than that are slower by more than chance.
const SLOW: f64 = 0.1;
/// Where that many windows of a full queue are slow, the line varies.
const VARYING: f64 = 0.25;
/// A queue in which packets wait longer than that is not empty in between, in milliseconds.
const FULL_MS: f64 = 10.0;

impl Capacity {
    pub(super) fn of(
        load: &Loaded,
        clocks: &Clocks,
        direction: Direction,
        recording: &Recording,
        probes: &Delays,
    ) -> Option<Self> {
        let flows = Arrivals::of_flows(load, clocks, direction, recording.is_ipv6);
        let (from, to) = (load.span.from_us as f64, load.span.to_us as f64);
        if to <= from {
            return None;
        }
        let short = WINDOW_US.min(to - from);
        let all = windows(&flows, from, to, short);
        // The first byte can take seconds from a busy host, and the line has nothing to carry until then.
        let loaded = &all[all.iter().position(|window| window.bps > 0.0)?..];
        let began = loaded[0].from;
        let rough = percentile(&rates(loaded), 0.9)?;
        if rough <= 0.0 {
            return None;
        }
        let length = (PACKETS * PACKET_BITS / rough * 1e6).min((to - began) / 5.0).max(short);
        let longer = windows(&flows, began, to, length);
        // What probes take of the line themselves.
        let probing = probing_bps(probes, began, to, recording.probe_bytes());
        let fast = percentile(&rates(&longer), 0.9)?;
        let near: Vec<_> = longer.iter().filter(|window| (window.bps / fast - 1.0).abs() <= NEAR).collect();
        let busy: Vec<_> = loaded.iter().filter(|window| window.is_busy(probes)).collect();
        let slow = busy.iter().filter(|window| window.bps < fast * (1.0 - SLOW)).count();
        let varies = busy.len() >= BUSY && slow as f64 > VARYING * busy.len() as f64;
        let chosen = if varies { &busy } else { &near };
        let mean = |windows: &[&Window]| {
            windows.iter().map(|window| window.bps).sum::<f64>() / windows.len().max(1) as f64 + probing
        };
        let of_busy: Vec<_> = chosen.iter().map(|window| window.bps + probing).collect();
        let received: f64 = last_of_flows(&load.receiver).map(|sample| sample.received as f64).sum();
        Some(Self {
            mean_bps: mean(chosen),
            p10_bps: percentile(&of_busy, 0.1)?,
            p90_bps: percentile(&of_busy, 0.9)?,
            varies,
            goodput_bps: received * 8.0 / (to - from) * 1e6,
            points: all
                .iter()
                .map(|window| Point {
                    at_s: (window.from + short / 2.0 - from) / 1e6,
                    mbps: window.bps / 1e6,
                })
                .collect(),
            arrivals: flows,
        })
    }

    /// What arrived between a probe's time without a queue and its own: what waited before it, in bytes.
    pub(super) fn before(&self, probe: &Wait) -> f64 {
        let until = |time| self.arrivals.iter().map(|flow| flow.until(time)).sum::<f64>();
        until(probe.arrived_us) - until(probe.arrived_us - probe.ms * 1e3)
    }
}

/// The bits per second of probes that arrived in the time.
fn probing_bps(probes: &Delays, from: f64, to: f64, bytes: u64) -> f64 {
    let count = probes.between(from, to).len() as f64;
    count * bytes as f64 * 8.0 / (to - from) * 1e6
}

/// What arrived from a time on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    from: f64,
    to: f64,
    bps: f64,
}

impl Window {
    /// Whether packets waited all the time.
    fn is_busy(&self, probes: &Delays) -> bool {
        let here = probes.between(self.from, self.to);
        !here.is_empty() && here.iter().all(|wait| wait.ms > FULL_MS)
    }
}

fn rates(windows: &[Window]) -> Vec<f64> {
    windows.iter().map(|window| window.bps).collect()
}

/// The whole windows of `length` between two times.
fn windows(flows: &[Arrivals], from: f64, to: f64, length: f64) -> Vec<Window> {
    let count = (((to - from) / length) as usize).min(MOST);
    let at = |nth: usize| from + nth as f64 * length;
    let total = |time: f64| flows.iter().map(|flow| flow.until(time)).sum::<f64>();
    let bps = |nth| (total(at(nth + 1)) - total(at(nth))) * 8.0 / length * 1e6;
    (0..count).map(|nth| Window { from: at(nth), to: at(nth + 1), bps: bps(nth) }).collect()
}

/// What arrived of one connection: IP bytes over time.
#[derive(Debug, Clone, PartialEq)]
struct Arrivals(Vec<(f64, f64)>);

impl Arrivals {
    fn of_flows(load: &Loaded, clocks: &Clocks, direction: Direction, is_ipv6: bool) -> Vec<Self> {
        let numbers: Vec<u8> = last_of_flows(&load.receiver).map(|sample| sample.flow).collect();
        let samples = |flow| load.receiver.iter().filter(move |sample| sample.flow == flow);
        let of_flow = |flow| {
            let first = samples(flow).next().copied().unwrap_or_default();
            let bytes = |sample: &Sample| ip_bytes(&first, sample, is_ipv6);
            Self(
                samples(flow)
                    .map(|sample| (receiver_time(sample, clocks, direction), bytes(sample)))
                    .collect(),
            )
        };
        numbers.into_iter().map(of_flow).collect()
    }

    /// The bytes until a time, by a straight line between looks.
    fn until(&self, time: f64) -> f64 {
        let next = self.0.partition_point(|(at, _)| *at < time);
        match (next.checked_sub(1).map(|before| self.0[before]), self.0.get(next)) {
            (Some((from, start)), Some((to, end))) => {
                start + (end - start) * (time - from) / (to - from).max(1.0)
            }
            (Some((_, bytes)), None) => bytes,
            (None, _) => 0.0,
        }
    }
}

/// The IP bytes of a connection since the first look, before which it said what it is for by segments that are not full.
/// Segments are counted as they come, so that data that waits for an earlier segment counts when it arrives, and data that
/// comes twice counts twice.
fn ip_bytes(first: &Sample, sample: &Sample, is_ipv6: bool) -> f64 {
    let ip = if is_ipv6 { 40 } else { 20 };
    let header = ip + 20 + if sample.has_timestamps { 12 } else { 0 };
    let payload = sample.received_segment.max(1) as f64;
    let since = |now: u64, then: u64| now.saturating_sub(then) as f64;
    let segments = since(sample.received_segments, first.received_segments)
        .max(since(sample.received, first.received) / payload);
    segments * (payload + f64::from(header))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_open_a_connection_are_no_full_ones() {
        let opening = Sample {
            received: 29,
            received_segments: 8,
            received_segment: 536,
            has_timestamps: true,
            ..Sample::default()
        };
        let full = |segments: u64| Sample {
            received: 29 + 1_448 * segments,
            received_segments: 8 + segments,
            received_segment: 1_448,
            ..opening
        };
        assert_eq!(ip_bytes(&opening, &opening, false), 0.0);
        assert_eq!(ip_bytes(&opening, &full(100), false), 150_000.0);
        // Data that comes twice takes the line twice; a kernel that does not count segments counts data.
        assert_eq!(ip_bytes(&opening, &Sample { received_segments: 118, ..full(100) }, false), 165_000.0);
        assert_eq!(ip_bytes(&opening, &Sample { received_segments: 0, ..full(100) }, false), 150_000.0);
    }
}
