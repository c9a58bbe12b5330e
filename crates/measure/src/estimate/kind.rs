//! Which kind of queue packets wait in.

use serde::Serialize;

use super::clocks::Clocks;
use super::series::{Delays, percentile};
use crate::recording::{Direction, Loaded, Span};

/// A kind of queue, by what it does to others and to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// First come, first served, and what finds no room is lost.
    DropTail,
    /// Active queue management: it drops or marks early, so that the queue shrinks while the load goes on.
    Aqm,
    /// Flows wait apart: a packet of another flow does not wait behind the load.
    Fair,
    /// Nothing waited long enough to tell.
    Unknown,
}

impl QueueKind {
    /// The kind in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DropTail => "drop tail",
            Self::Aqm => "AQM",
            Self::Fair => "fair",
            Self::Unknown => "not known",
        }
    }
}

/// What tells the kinds apart, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Signs {
    /// The longest wait of a probe.
    pub(super) peak: f64,
    /// The longest wait of a probe in the second half of the load.
    pub(super) late_peak: f64,
    /// The median wait of probes beside the settled load.
    pub(super) probe: f64,
    /// The median wait of the load itself.
    pub(super) own: f64,
    /// The longest wait of the load itself.
    pub(super) own_peak: f64,
    /// Whether the load lost anything in its second half.
    pub(super) loses_late: bool,
}

impl Signs {
    pub(super) fn of(
        probes: &Delays,
        own: &Delays,
        load: &Loaded,
        span: Span,
        clocks: &Clocks,
        direction: Direction,
    ) -> Self {
        let late = Span { from_us: (span.from_us + span.to_us) / 2, ..span };
        let largest = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
        let median = |values: &[f64]| percentile(values, 0.5).unwrap_or_default();
        let lost = |from: f64| -> u64 {
            let flows = super::series::last_of_flows(&load.sender);
            flows
                .map(|last| {
                    let before = load.sender.iter().rev().find(|sample| {
                        sample.flow == last.flow
                            && super::series::sender_time(sample, clocks, direction) < from
                    });
                    last.retransmissions - before.map_or(0, |sample| sample.retransmissions)
                })
                .sum()
        };
        Self {
            peak: largest(probes.within(span)),
            late_peak: largest(probes.within(late)),
            probe: median(&probes.within(late)),
            own: median(&own.within(late)),
            own_peak: largest(own.within(span)),
            loses_late: lost(late.from_us as f64) > 0,
        }
    }
}

impl QueueKind {
    pub(super) fn of(signs: &Signs) -> Self {
        let Signs { peak, late_peak, probe, own, own_peak, loses_late } = *signs;
        if own_peak < 4.0 && peak < 4.0 {
            return Self::Unknown;
        }
        if peak < 0.4 * own_peak && probe < 0.5 * own {
            return Self::Fair;
        }
        if late_peak < 0.5 * peak && loses_late { Self::Aqm } else { Self::DropTail }
    }
}
