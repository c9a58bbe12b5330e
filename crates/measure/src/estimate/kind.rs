//! Which kind of queue packets wait in.

use serde::Serialize;

use super::clocks::Clocks;
use super::series::{Delays, last_of_flows, percentile, sender_time};
use crate::recording::{Direction, Loaded, Sample, Span};

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

/// What tells the kinds apart. Delays are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Signs {
    /// What nine of ten probes beside the settled load do not exceed.
    pub(super) probes: f64,
    /// The same of the load itself. A managed queue is empty half of the time, so that medians say little.
    pub(super) own: f64,
    /// The longest wait of probes from the beginning on.
    pub(super) peak: f64,
    /// The same of the load itself.
    pub(super) own_peak: f64,
    /// Median wait of probes around the settled load's losses, where there are enough of them.
    pub(super) at_losses: Option<f64>,
    /// Whether packets were marked (ECN), which no drop-tail queue does.
    pub(super) marks: bool,
    /// Whether the line loses packets while it is idle, so that losses say nothing of its queue.
    pub(super) loses_idle: bool,
}

/// Waits below that are chance.
const LEAST_MS: f64 = 1.5;
/// Where probes wait less than so much of what the load waits, flows wait apart.
const APART: f64 = 0.45;
/// Where losses happen below so much of the longest wait, the queue drops before it is full.
const EARLY: f64 = 0.4;
/// So many looks with losses make a pattern.
const LOSSES: usize = 3;

impl QueueKind {
    pub(super) fn of(signs: &Signs) -> Self {
        // Both, since a load that comes in bursts waits for itself where a probe comes in between.
        let is_apart = signs.probes < APART * signs.own && signs.peak < APART * signs.own_peak;
        if signs.own < LEAST_MS && signs.peak < LEAST_MS {
            return Self::Unknown;
        }
        if is_apart && signs.own >= LEAST_MS {
            return Self::Fair;
        }
        let is_early = signs.at_losses.is_some_and(|wait| wait < EARLY * signs.peak) && !signs.loses_idle;
        if signs.marks || is_early { Self::Aqm } else { Self::DropTail }
    }
}

impl Signs {
    /// The signs of a load, of which `settled` is what counts, beside its probes.
    pub(super) fn of(
        probes: &Delays,
        own: &Delays,
        load: &Loaded,
        settled: Span,
        (clocks, direction): (&Clocks, Direction),
        loses_idle: bool,
    ) -> Self {
        let most = |values: &[f64]| percentile(values, 0.9).unwrap_or_default();
        Self {
            probes: most(&probes.within(settled)),
            own: most(&own.within(settled)),
            peak: super::longest(probes, load.span).unwrap_or_default(),
            own_peak: super::longest(own, load.span).unwrap_or_default(),
            at_losses: at_losses(probes, load, settled, clocks, direction),
            marks: last_of_flows(&load.sender).any(|sample| sample.marked > 0),
            loses_idle,
        }
    }
}

/// Median over looks that found new losses of the longest wait before them: of the round-trip times in which the loss
/// happened, was noticed and was repaired.
fn at_losses(
    probes: &Delays,
    load: &Loaded,
    settled: Span,
    clocks: &Clocks,
    direction: Direction,
) -> Option<f64> {
    const ROUND_TRIPS: f64 = 3.0;
    let lost = |flow| {
        let samples: Vec<&Sample> = load.sender.iter().filter(|sample| sample.flow == flow).collect();
        let new: Vec<_> = samples
            .windows(2)
            .filter(|pair| pair[1].retransmissions > pair[0].retransmissions)
            .map(|pair| (sender_time(pair[1], clocks, direction), pair[1].srtt_us as f64))
            .collect();
        new
    };
    let flows = last_of_flows(&load.sender).map(|sample| sample.flow);
    let waits: Vec<_> = flows
        .flat_map(lost)
        .filter(|(at, _)| settled.has(*at as u64))
        .filter_map(|(at, srtt)| {
            let before = probes.between(at - ROUND_TRIPS * srtt, at);
            before.iter().map(|wait| wait.ms).reduce(f64::max)
        })
        .collect();
    if waits.len() < LOSSES { None } else { percentile(&waits, 0.5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEEP: Signs = Signs {
        probes: 90.0,
        own: 91.0,
        peak: 120.0,
        own_peak: 120.0,
        at_losses: Some(115.0),
        marks: false,
        loses_idle: false,
    };

    const APART_FLOWS: Signs = Signs { probes: 3.0, peak: 9.0, ..DEEP };

    #[test]
    fn each_kind_has_its_signs() {
        for (signs, kind) in [
            (DEEP, QueueKind::DropTail),
            (Signs { at_losses: None, ..DEEP }, QueueKind::DropTail),
            (Signs { probes: 3.0, own: 4.0, at_losses: Some(20.0), ..DEEP }, QueueKind::Aqm),
            (Signs { marks: true, ..DEEP }, QueueKind::Aqm),
            (Signs { probes: 1.0, own: 10.0, ..APART_FLOWS }, QueueKind::Fair),
            // Bursts of a load that does not fill the line.
            (Signs { probes: 1.0, own: 10.0, ..DEEP }, QueueKind::DropTail),
            (Signs { probes: 1.0, own: 10.0, marks: true, ..APART_FLOWS }, QueueKind::Fair),
            // Random losses come at any wait.
            (Signs { at_losses: Some(20.0), loses_idle: true, ..DEEP }, QueueKind::DropTail),
            (Signs { probes: 0.1, own: 0.4, peak: 0.9, ..DEEP }, QueueKind::Unknown),
        ] {
            assert_eq!(QueueKind::of(&signs), kind, "{signs:?}");
        }
    }

    #[test]
    fn a_share_holds_just_below_it_and_not_at_it() {
        let apart = |probes| QueueKind::of(&Signs { probes, own: 100.0, at_losses: None, ..APART_FLOWS });
        assert_eq!((apart(44.9), apart(45.0)), (QueueKind::Fair, QueueKind::DropTail));
        let early = |wait| QueueKind::of(&Signs { at_losses: Some(wait), ..DEEP });
        assert_eq!((early(47.9), early(48.0)), (QueueKind::Aqm, QueueKind::DropTail));
    }
}
