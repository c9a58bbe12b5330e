//! The clocks of client and server beside each other.

use crate::recording::{Probe, Recording, Span};

/// How far the server's clock is ahead of the client's, over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clocks {
    /// At times of the client's clock, in microseconds; at least one.
    known: Vec<(f64, f64)>,
}

/// Clocks of computers drift by 50 parts in a million and more; in a shorter time they need not be compared again.
const APART_US: f64 = 2e6;

impl Clocks {
    /// The offset is half way in the probe of each idle time that took least, as in RFC 5905 §8: nothing waited then.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        let mut known: Vec<(f64, f64)> = Vec::new();
        for (at, offset) in recording.idle.iter().filter_map(|span| least(&recording.probes, *span)) {
            if known.last().is_none_or(|(before, _)| at - before >= APART_US) {
                known.push((at, offset));
            }
        }
        (!known.is_empty()).then_some(Self { known })
    }

    /// How far the server's clock is ahead when the client's shows `at_us`: as between, before and behind known times.
    pub(crate) fn ahead_us(&self, at_us: f64) -> f64 {
        let next = self.known.partition_point(|(known, _)| *known < at_us);
        match (next.checked_sub(1).map(|before| self.known[before]), self.known.get(next).copied()) {
            (Some((from, start)), Some((to, end))) => start + (end - start) * (at_us - from) / (to - from),
            (Some((_, offset)), None) | (None, Some((_, offset))) => offset,
            // There is at least one.
            (None, None) => 0.0,
        }
    }

    /// The client's time when the server's clock shows `server_us`.
    pub(crate) fn of_client(&self, server_us: f64) -> f64 {
        // The offset changes by less than a thousandth of a second from one guess to the next.
        let guess = server_us - self.known.first().map_or(0.0, |(_, offset)| *offset);
        server_us - self.ahead_us(guess)
    }
}

/// The middle of the probe in `span` that took least, and the offset there.
fn least(probes: &[Probe], span: Span) -> Option<(f64, f64)> {
    let answered = probes.iter().filter(|probe| span.has(probe.sent_us));
    let (sent, (server, back)) = answered
        .filter_map(|probe| Some((probe.sent_us, probe.answer?)))
        .min_by_key(|(sent, (_, back))| back.saturating_sub(*sent))?;
    let middle = (sent as f64 + back as f64) / 2.0;
    Some((middle, server as f64 - middle))
}
