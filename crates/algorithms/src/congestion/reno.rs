//! Reno: additive increase, multiplicative decrease (RFC 5681).

use suimon_units::Bytes;

use super::{Ack, Congestion, CongestionControl, Limits};
use crate::parameters::Arguments;
use crate::registry::Description;

/// What users see of it.
pub const DESCRIPTION: Description = Description {
    name: "reno",
    summary: "additive increase by one segment per RTT, halving at a loss",
    source: "RFC 5681",
    colour: "#4e79a7",
    parameters: &[],
};

/// Builds it; there is nothing to set.
#[must_use]
pub fn build(_arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::<Reno>::default()
}

/// Reno's state: what congestion avoidance has saved up toward the next segment.
#[derive(Debug, Clone, Default)]
pub struct Reno {
    increase: AdditiveIncrease,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        let beyond = slow_start(ack, limits);
        if beyond {
            self.increase.apply(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.increase = AdditiveIncrease::default();
        limits.ssthresh = halved(event);
    }
}

/// Grows `cwnd` in slow start (RFC 5681 §3.1, eq. 2), up to `ssthresh` and not beyond, however much one
/// ACK covers; true once slow start is over, when this ACK belongs to congestion avoidance.
pub(crate) fn slow_start(ack: &Ack, limits: &mut Limits) -> bool {
    if !limits.in_slow_start() {
        return true;
    }
    limits.cwnd += ack.slow_start_credit().min(limits.ssthresh - limits.cwnd);
    false
}

/// `ssthresh` after a congestion event: half of what was in flight, at least two segments (RFC 5681
/// §3.1, eq. 4).
pub(crate) fn halved(event: &Congestion) -> Bytes {
    (event.flight_size / 2).max(event.mss * 2)
}

/// Growth by one segment for every `cwnd` of acknowledged bytes (RFC 5681 §3.1, eq. 3 in the
/// byte-counting form of RFC 3465 §2.1).
#[derive(Debug, Clone, Default)]
pub(crate) struct AdditiveIncrease {
    bytes_acked: Bytes,
}

impl AdditiveIncrease {
    pub(crate) fn apply(&mut self, ack: &Ack, limits: &mut Limits) {
        self.count(ack);
        self.grow(ack, limits);
    }

    /// Saves up what `ack` covers.
    pub(crate) fn count(&mut self, ack: &Ack) {
        self.bytes_acked += ack.avoidance_credit();
    }

    /// Grows by `segments` rather than one for every `cwnd` of acknowledged bytes, and no faster than slow
    /// start would.
    pub(crate) fn apply_times(&mut self, segments: f64, ack: &Ack, limits: &mut Limits) {
        let segments = segments.min(limits.cwnd.as_f64() / ack.mss.as_f64());
        self.bytes_acked += Bytes::from_f64(ack.avoidance_credit().as_f64() * segments);
        self.grow(ack, limits);
    }

    /// Grows `cwnd` by a segment where enough is saved up.
    pub(crate) fn grow(&mut self, ack: &Ack, limits: &mut Limits) {
        if self.bytes_acked >= limits.cwnd {
            self.bytes_acked -= limits.cwnd;
            limits.cwnd += ack.mss;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};
    use crate::congestion::{AckCounting, CongestionKind};

    #[test]
    fn slow_start_doubles_the_window_in_one_round() {
        let mut reno = Reno::default();
        let mut limits = Limits::initial(MSS * 4);
        for _ in 0..4 {
            reno.on_ack(&ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 8);
    }

    #[test]
    fn one_ack_for_a_filled_hole_counts_only_what_is_news_and_ends_slow_start_at_ssthresh() {
        let hole = |delivered| Ack {
            newly_acked: MSS * 41,
            delivered: MSS * delivered,
            counting: AckCounting::Bytes { limit: 64 },
            ..ack(1)
        };
        let mut limits = Limits { ssthresh: MSS * 20, ..Limits::initial(MSS) };
        Reno::default().on_ack(&hole(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 2);
        Reno::default().on_ack(&hole(41), &mut limits);
        assert_eq!(limits.cwnd, MSS * 20);
    }

    #[test]
    fn an_ack_of_two_segments_counts_as_the_stack_counts() {
        let growth = |counting| {
            let mut limits = Limits::initial(MSS * 4);
            Reno::default().on_ack(&Ack { counting, ..ack(2) }, &mut limits);
            (limits.cwnd - MSS * 4).whole(MSS)
        };
        assert_eq!(growth(AckCounting::PerAck), 1);
        assert_eq!(growth(AckCounting::Bytes { limit: 1 }), 1);
        assert_eq!(growth(AckCounting::Bytes { limit: 2 }), 2);
    }

    #[test]
    fn congestion_avoidance_adds_one_segment_per_window_and_not_earlier() {
        let mut reno = Reno::default();
        let mut limits = Limits { ssthresh: MSS * 10, ..Limits::initial(MSS * 10) };
        for _ in 0..9 {
            reno.on_ack(&ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 10);
        reno.on_ack(&ack(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 11);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut limits = Limits::initial(MSS * 4);
        Reno::default().on_ack(&Ack { cwnd_limited: false, ..ack(1) }, &mut limits);
        Reno::default().on_ack(&Ack { in_recovery: true, ..ack(1) }, &mut limits);
        assert_eq!(limits.cwnd, MSS * 4);
    }

    #[test]
    fn what_a_large_ack_left_over_waits_for_the_next_that_covers_something() {
        let mut reno = Reno::default();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 4) };
        let counting = AckCounting::Bytes { limit: 2 };
        reno.on_ack(&Ack { counting, ..ack(20) }, &mut limits);
        assert_eq!(limits.cwnd, MSS * 5);
        reno.on_ack(&Ack { counting, ..ack(0) }, &mut limits);
        assert_eq!(limits.cwnd, MSS * 5);
        reno.on_ack(&Ack { counting, ..ack(1) }, &mut limits);
        assert_eq!(limits.cwnd, MSS * 6);
    }

    #[test]
    fn a_loss_halves_the_flight_but_keeps_two_segments() {
        let mut limits = Limits::initial(MSS * 40);
        Reno::default().on_congestion(&loss(20), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 10);
        let timeout = Congestion { kind: CongestionKind::Timeout, ..loss(3) };
        Reno::default().on_congestion(&timeout, &mut limits);
        assert_eq!(limits.ssthresh, MSS * 2);
    }
}
