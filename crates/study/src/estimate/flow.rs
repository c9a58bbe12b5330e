//! One direction of a connection in a capture: what it carried, its true round-trip times, and what was estimated.

use suimon_capture::{Endpoints, Packet};
use suimon_results::RttSummary;
use suimon_units::{Bytes, Duration, Instant};

use super::analysis::{FLOW_COLUMNS, millis};

/// One direction of one connection.
pub(super) struct Flow {
    pub(super) endpoints: Endpoints,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) packets: u64,
    pub(super) bytes: Bytes,
    pub(super) payload: Bytes,
    pub(super) rtt: RttSummary,
    pub(super) receiver_side: RttSummary,
    pub(super) sender_side: RttSummary,
    /// The newest one.
    pub(super) latest: Option<Duration>,
    pub(super) estimates: Vec<RttSummary>,
    /// Of the interval under way.
    pub(super) now_packets: u64,
    pub(super) now_rtt: RttSummary,
    pub(super) now_estimates: Vec<RttSummary>,
    pub(super) is_active: bool,
    pub(super) times: Vec<Instant>,
    /// As many as [`super::analysis::Analysis::flow_columns`] names.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Flow {
    pub(super) fn new(first: &Packet, estimators: usize) -> Self {
        Self {
            endpoints: first.endpoints,
            start: first.time,
            end: first.time,
            packets: 0,
            bytes: Bytes::ZERO,
            payload: Bytes::ZERO,
            rtt: RttSummary::default(),
            receiver_side: RttSummary::default(),
            sender_side: RttSummary::default(),
            latest: None,
            estimates: vec![RttSummary::default(); estimators],
            now_packets: 0,
            now_rtt: RttSummary::default(),
            now_estimates: vec![RttSummary::default(); estimators],
            is_active: false,
            times: Vec::new(),
            columns: vec![Vec::new(); FLOW_COLUMNS.len() + estimators],
        }
    }

    pub(super) fn sample(&mut self, at: Instant) {
        self.times.push(at);
        let means = [&self.now_rtt].into_iter().chain(&self.now_estimates);
        let row = [self.now_packets as f64].into_iter().chain(means.map(|summary| millis(summary.mean())));
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    pub(super) fn begin_interval(&mut self) {
        self.now_packets = 0;
        self.now_rtt = RttSummary::default();
        self.now_estimates.fill(RttSummary::default());
        self.is_active = false;
    }
}
