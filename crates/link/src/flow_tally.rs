//! The counts of a flow, and its row of results.

use suimon_model::Flow;
use suimon_results::FlowResult;
use suimon_units::{Bytes, Duration, Instant, Rate};

/// The counts of a flow up to some time.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowTally {
    /// Data packets lost, by a full buffer or on a link.
    pub lost: u64,
    /// Data packets that got a congestion mark.
    pub marked: u64,
    /// Payload that reached the receiving application, in bytes.
    pub delivered: u64,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// The retransmissions among these.
    pub retransmissions: u64,
    /// Times that the window was cut for a loss or a mark.
    pub window_cuts: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts or recoveries found to have been unnecessary.
    pub spurious: u64,
    /// Round-trip times measured.
    pub rtt_samples: u64,
    /// The sum of the round-trip times.
    pub rtt_sum: Duration,
}

/// The times of a flow.
#[derive(Debug, Clone, Copy)]
pub struct FlowTimes {
    /// The start, if the flow started.
    pub started: Option<Instant>,
    /// The acknowledgement of the last byte, if it came.
    pub completed: Option<Instant>,
    /// The last time when payload reached the receiving application.
    pub last_delivery: Instant,
}

impl FlowTally {
    /// The row of `flow` in a run measured from one time to another, with the counts `before` at the first and these at
    /// the second. The caller adds the extremes of its round-trip times, and how its rate varied.
    #[must_use]
    pub fn result(
        &self,
        before: &Self,
        flow: &Flow,
        times: FlowTimes,
        (measured_from, end): (Instant, Instant),
    ) -> FlowResult {
        let start = times.started.unwrap_or(end);
        // Segments in flight when the application stopped still arrive, and take their time.
        let over = times.completed.or(flow.stop).map(|last| last.max(times.last_delivery));
        let until = over.unwrap_or(end).min(end);
        let delivered = Bytes::new(self.delivered - before.delivered);
        let samples = self.rtt_samples - before.rtt_samples;
        FlowResult {
            name: flow.name.clone(),
            algorithm: flow.traffic.label(),
            colour: flow.traffic.colour().to_owned(),
            start,
            completed: times.completed,
            delivered,
            goodput: Rate::of(delivered, until.saturating_since(start.max(measured_from))),
            packets_sent: self.sent - before.sent,
            retransmissions: self.retransmissions - before.retransmissions,
            packets_lost: self.lost - before.lost,
            packets_marked: self.marked - before.marked,
            window_cuts: self.window_cuts - before.window_cuts,
            timeouts: self.timeouts - before.timeouts,
            spurious: self.spurious - before.spurious,
            rtt_min: None,
            rtt_mean: (samples > 0).then(|| (self.rtt_sum - before.rtt_sum) / samples),
            rtt_max: None,
            rate_spread: None,
            datagrams: None,
        }
    }
}
