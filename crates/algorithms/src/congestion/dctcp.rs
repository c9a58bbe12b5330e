//! DCTCP: cuts the window by half the share of marked bytes (RFC 8257).

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::reno::{Reno, halved};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::queue::Ecn;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "dctcp",
    summary: "cuts by half the share of marked segments, for queues that mark from a few packets on",
    source: "RFC 8257",
    colour: "#86bcb6",
    parameters: &[G],
};

/// The weight of one window in the share of marked segments.
pub(super) const G: Parameter = Parameter {
    name: "g",
    help: "weight of one window in the average share of marked segments",
    default: Value::Number(0.0625),
    range: Range::Between(0.001, 1.0),
};

/// Builds it with `g`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Dctcp { share: MarkedShare::new(arguments.number("g")), reno: Reno::default() })
}

/// The smoothed share of marked bytes, `DCTCP.Alpha`, from one window to the next (RFC 8257 §3.3).
#[derive(Debug, Clone)]
pub(super) struct MarkedShare {
    g: f64,
    alpha: f64,
    delivered: Bytes,
    marked: Bytes,
    /// `DCTCP.WindowEnd`.
    window_end: u64,
}

impl MarkedShare {
    /// The first mark halves the window: nothing is known yet.
    pub(super) fn new(g: f64) -> Self {
        Self { g, alpha: 1.0, delivered: Bytes::ZERO, marked: Bytes::ZERO, window_end: 0 }
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Counts the bytes of `ack`, and the marked ones.
    pub(super) fn count(&mut self, ack: &Ack) {
        self.delivered += ack.delivered;
        self.marked += ack.marked;
    }

    /// True once all that was in flight at the last update is acknowledged.
    pub(super) fn window_is_over(&self, ack: &Ack) -> bool {
        ack.snd_una > self.window_end
    }

    /// Takes the window's share into the average, and begins the next one.
    pub(super) fn update(&mut self, ack: &Ack) {
        if self.delivered > Bytes::ZERO {
            let share = (self.marked.as_f64() / self.delivered.as_f64()).min(1.0);
            self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        }
        (self.delivered, self.marked) = (Bytes::ZERO, Bytes::ZERO);
        self.window_end = ack.snd_nxt;
    }

    /// `ssthresh` at an event: `cwnd (1 - alpha / 2)` for marks, half of the flight for losses, which it
    /// takes as any TCP does (§3.5).
    pub(super) fn ssthresh(&self, event: &Congestion, limits: &Limits) -> Bytes {
        match event.kind {
            // Not in whole segments: small cuts of small windows would be rounded to one or none.
            CongestionKind::Ecn => {
                let cut = Bytes::from_f64(limits.cwnd.as_f64() * self.alpha / 2.0);
                limits.cwnd.saturating_sub(cut).max(event.mss * 2)
            }
            CongestionKind::Loss | CongestionKind::Timeout => halved(event),
        }
    }
}

#[derive(Debug, Clone)]
struct Dctcp {
    share: MarkedShare,
    reno: Reno,
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.share.count(ack);
        if self.share.window_is_over(ack) {
            self.share.update(ack);
        }
        self.reno.on_ack(ack, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.reno.on_congestion(event, limits);
        limits.ssthresh = self.share.ssthresh(event, limits);
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::ByShare(Ecn::Capable)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("alpha", self.share.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn dctcp() -> Dctcp {
        Dctcp { share: MarkedShare::new(1.0 / 16.0), reno: Reno::default() }
    }

    /// A window of ten segments, `marked` of them marked.
    fn window(cc: &mut Dctcp, nth: u64, marked: u64) {
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 10) };
        for segment in 0..10 {
            let snd_una = (MSS * (nth * 10 + segment + 1)).get();
            let of_this = if segment < marked { MSS } else { Bytes::ZERO };
            let snd_nxt = snd_una + (MSS * 9).get();
            cc.on_ack(&Ack { snd_una, snd_nxt, marked: of_this, ..ack(1) }, &mut limits);
        }
    }

    #[test]
    fn alpha_approaches_the_share_of_marks_by_a_sixteenth_of_the_distance_each_window() {
        let mut cc = dctcp();
        window(&mut cc, 0, 0);
        let first = cc.share.alpha;
        for nth in 1..=40 {
            window(&mut cc, nth, 3);
        }
        // The window before is updated by the first ACK of the next.
        let expected = 0.3 + (first - 0.3) * libm::pow(15.0 / 16.0, 39.0);
        assert!((cc.share.alpha - expected).abs() < 0.01, "{} {expected}", cc.share.alpha);
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha_and_a_loss_by_half() {
        let cut = |alpha, kind| {
            let mut cc = dctcp();
            cc.share.alpha = alpha;
            let mut limits = Limits::initial(MSS * 100);
            cc.on_congestion(&Congestion { kind, ..loss(100) }, &mut limits);
            limits.ssthresh.whole(MSS)
        };
        assert_eq!(cut(1.0, CongestionKind::Ecn), 50);
        assert_eq!(cut(0.1, CongestionKind::Ecn), 95);
        assert_eq!(cut(0.0, CongestionKind::Ecn), 100);
        assert_eq!(cut(0.1, CongestionKind::Loss), 50);
        assert_eq!(cut(0.1, CongestionKind::Timeout), 50);
    }

    #[test]
    fn without_marks_it_is_reno() {
        let mut cc = dctcp();
        let mut limits = Limits { ssthresh: MSS * 10, ..Limits::initial(MSS * 10) };
        for _ in 0..10 {
            cc.on_ack(&ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 11);
    }
}
