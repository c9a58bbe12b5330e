//! Delays over time.

use super::clocks::Clocks;
use crate::recording::{Direction, Loaded, Recording, Sample, Span};

/// What a packet waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wait {
    /// When it was sent, by the client's clock, in microseconds.
    pub(super) sent_us: f64,
    /// When it arrived.
    pub(super) arrived_us: f64,
    /// How long it waited, in milliseconds.
    pub(super) ms: f64,
}

/// Waiting times in one direction, in the order of sending.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Delays(Vec<Wait>);

impl Delays {
    /// What probes waited in `direction`: what they took longer than the one that took least.
    pub(super) fn of_probes(recording: &Recording, clocks: &Clocks, direction: Direction) -> Self {
        let one_way = recording.probes.iter().filter_map(|probe| {
            let (server, back) = probe.answer?;
            let at_server = clocks.of_client(server as f64);
            Some(match direction {
                Direction::Upload => (probe.sent_us as f64, at_server),
                Direction::Download => (at_server, back as f64),
            })
        });
        let one_way: Vec<_> = one_way.collect();
        let least = one_way.iter().map(|(sent, arrived)| arrived - sent).fold(f64::INFINITY, f64::min);
        let wait =
            |(sent_us, arrived_us)| Wait { sent_us, arrived_us, ms: (arrived_us - sent_us - least) / 1e3 };
        Self(one_way.into_iter().map(wait).collect())
    }

    /// What packets of the load waited: their smoothed round-trip times without the idle one.
    pub(super) fn of_load(load: &Loaded, clocks: &Clocks, direction: Direction, rtt_min_ms: f64) -> Self {
        let seen = load.sender.iter().filter(|sample| sample.srtt_us > 0);
        let waits = seen.map(|sample| {
            let (at, srtt) = (sender_time(sample, clocks, direction), sample.srtt_us as f64);
            Wait { sent_us: at - srtt, arrived_us: at, ms: srtt / 1e3 - rtt_min_ms }
        });
        let mut waits: Vec<_> = waits.collect();
        waits.sort_by(|a, b| a.sent_us.total_cmp(&b.sent_us));
        Self(waits)
    }

    /// Each less by `ms`, and none below nothing.
    pub(super) fn less(mut self, ms: f64) -> Self {
        self.0.iter_mut().for_each(|wait| wait.ms = (wait.ms - ms).max(0.0));
        self
    }

    /// The waiting times of what was sent in `span`, in milliseconds.
    pub(super) fn within(&self, span: Span) -> Vec<f64> {
        self.between(span.from_us as f64, span.to_us as f64).iter().map(|wait| wait.ms).collect()
    }

    /// What was sent from one time to another.
    pub(super) fn between(&self, from_us: f64, to_us: f64) -> &[Wait] {
        let first = self.0.partition_point(|wait| wait.sent_us < from_us);
        let end = self.0.partition_point(|wait| wait.sent_us < to_us);
        &self.0[first..end.max(first)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(50.0));
        assert_eq!(percentile(&values, 0.95), Some(95.0));
        assert_eq!(percentile(&values, 1.0), Some(100.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
