//! Alternative Backoff with ECN: a mark costs less than a loss, since queues that mark are short (RFC 8511), over any
//! congestion control.

use alloc::boxed::Box;

use suimon_units::{Bytes, Instant};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "abe",
    summary: "a congestion mark costs less of the window than a loss",
    source: "RFC 8511",
    colour: "#1f77b4",
    parameters: &[Parameter {
        name: "beta_ecn",
        help: "what a mark leaves of the flight; RFC 8511 recommends 0.8 over reno and 0.85 over cubic",
        default: Value::Number(0.8),
        range: Range::Between(0.5, 0.99),
    }],
};

/// Builds it over `inner`.
#[must_use]
pub fn build(arguments: &Arguments, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
    Box::new(Abe { inner, beta_ecn: arguments.number("beta_ecn") })
}

#[derive(Debug, Clone)]
struct Abe<C> {
    inner: C,
    beta_ecn: f64,
}

impl<C: CongestionControl + Clone + 'static> CongestionControl for Abe<C> {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_established(now, limits);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.inner.on_ack(ack, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.inner.on_congestion(event, limits);
        if event.kind == CongestionKind::Ecn {
            // RFC 8511 §3: ssthresh = max(FlightSize * beta_ecn, 2 * SMSS).
            let left = Bytes::from_f64(event.flight_size.as_f64() * self.beta_ecn);
            limits.ssthresh = limits.ssthresh.max(left).max(event.mss * 2);
        }
    }

    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_spurious(now, limits);
    }

    fn models_delivery(&self) -> bool {
        self.inner.models_delivery()
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.inner.on_delivery(delivery);
    }

    fn mark_response(&self) -> MarkResponse {
        self.inner.mark_response()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.inner.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::reno::Reno;
    use crate::congestion::testing::{MSS, loss};

    #[test]
    fn a_mark_leaves_four_fifths_and_a_loss_a_half() {
        let left = |kind, segments| {
            let mut abe = Abe { inner: Reno::default(), beta_ecn: 0.8 };
            let mut limits = Limits::initial(MSS * segments);
            abe.on_congestion(&Congestion { kind, ..loss(segments) }, &mut limits);
            limits.ssthresh
        };
        assert_eq!(left(CongestionKind::Ecn, 40), MSS * 32);
        assert_eq!(left(CongestionKind::Loss, 40), MSS * 20);
        assert_eq!(left(CongestionKind::Ecn, 2), MSS * 2);
    }
}
