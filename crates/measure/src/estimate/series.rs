//! Delays over time.

use super::clocks::Clocks;
use crate::recording::{Direction, Loaded, Recording, Sample, Span};

/// Waiting times in one direction, by the client's clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Delays {
    /// When a packet came to the queue, in microseconds, and how long it waited, in milliseconds; in order of time.
    pub(super) all: Vec<(f64, f64)>,
}

impl Delays {
    /// What probes waited in `direction`: what they took longer than the one that took least.
    pub(super) fn of_probes(recording: &Recording, clocks: &Clocks, direction: Direction) -> Self {
        let one_way = recording.probes.iter().filter_map(|probe| {
            let (server, back) = probe.answer?;
            let (sent, back) = (probe.sent_us as f64, back as f64);
            let at_server = clocks.of_client(server as f64);
            Some(match direction {
                Direction::Upload => (sent, (at_server - sent) / 1e3),
                Direction::Download => (at_server, (back - at_server) / 1e3),
            })
        });
        Self { all: one_way.collect() }.above_least()
    }

    /// What packets of the load waited: their smoothed round-trip times without the idle one, when they were sent.
    pub(super) fn of_load(load: &Loaded, clocks: &Clocks, direction: Direction, rtt_min_ms: f64) -> Self {
        let seen = load.sender.iter().filter(|sample| sample.srtt_us > 0);
        let delays = seen.map(|sample| {
            let (at, srtt) = (sender_time(sample, clocks, direction), sample.srtt_us as f64);
            (at - srtt, srtt / 1e3 - rtt_min_ms)
        });
        let mut all: Vec<_> = delays.collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { all }
    }

    fn above_least(mut self) -> Self {
        let least = self.all.iter().map(|(_, delay)| *delay).fold(f64::INFINITY, f64::min);
        self.all.iter_mut().for_each(|(_, delay)| *delay -= least);
        self
    }

    /// Each less by `ms`, and none below nothing.
    pub(super) fn less(mut self, ms: f64) -> Self {
        self.all.iter_mut().for_each(|(_, delay)| *delay = (*delay - ms).max(0.0));
        self
    }

    /// The waiting times of `span`, in milliseconds.
    pub(super) fn within(&self, span: Span) -> Vec<f64> {
        self.between(span.from_us as f64, span.to_us as f64).iter().map(|(_, delay)| *delay).collect()
    }

    /// What came to the queue from one time to another.
    pub(super) fn between(&self, from_us: f64, to_us: f64) -> &[(f64, f64)] {
        let first = self.all.partition_point(|(at, _)| *at < from_us);
        let end = self.all.partition_point(|(at, _)| *at < to_us);
        &self.all[first..end.max(first)]
    }
}

/// The client's time of a look by the sender of a load.
pub(super) fn sender_time(sample: &Sample, clocks: &Clocks, direction: Direction) -> f64 {
    match direction {
        Direction::Download => clocks.of_client(sample.at_us as f64),
        Direction::Upload => sample.at_us as f64,
    }
}

/// The same by the receiver.
pub(super) fn receiver_time(sample: &Sample, clocks: &Clocks, direction: Direction) -> f64 {
    match direction {
        Direction::Download => sample.at_us as f64,
        Direction::Upload => clocks.of_client(sample.at_us as f64),
    }
}

/// The last look at each connection.
pub(super) fn last_of_flows(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    (0..=u8::MAX).filter_map(|flow| samples.iter().rev().find(|sample| sample.flow == flow))
}

/// The value that `share` of the values do not exceed, by the nearest rank.
pub(super) fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}
