//! Reno: additive increase, multiplicative decrease (RFC 5681).

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "reno",
    summary: "additive increase by one segment per RTT, halving at a loss",
    source: "RFC 5681",
    colour: "#4e79a7",
    parameters: &[Parameter {
        name: "window",
        help: "segments: whole ones, at least two; fractions: as ns-2's one-way TCP, down to one",
        default: Value::Choice("segments"),
        range: Range::OneOf(&["segments", "fractions"]),
    }],
};

/// Builds it with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    match arguments.choice("window") {
        "fractions" => Box::new(FractionalReno),
        _ => Box::<Reno>::default(),
    }
}

/// Reno's state: the growth that congestion avoidance has saved up toward the next segment.
#[derive(Debug, Clone, Default)]
pub struct Reno {
    increase: AdditiveIncrease,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if !may_grow(ack) {
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

/// Reno with a window that is no whole number of segments, as in ns-2's one-way TCP: it grows a little more
/// slowly, and a mark may leave it one segment. With windows of three or four segments both matter.
#[derive(Debug, Clone, Default)]
struct FractionalReno;

impl CongestionControl for FractionalReno {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if !may_grow(ack) {
            return;
        }
        if limits.in_slow_start() {
            // Beyond `ssthresh`, where that is less than a segment away.
            limits.cwnd += ack.slow_start_credit();
        } else {
            // RFC 5681 §3.1, eq. 3, as printed.
            let credit = ack.avoidance_credit().as_f64();
            limits.cwnd += Bytes::from_f64(credit * ack.mss.as_f64() / limits.cwnd.as_f64());
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let half = limits.cwnd / 2;
        limits.ssthresh = half.max(event.mss * 2);
        if event.kind == CongestionKind::Ecn {
            // RFC 3168 §6.1.2: halved, but no less than a segment.
            limits.cwnd = half.max(event.mss);
        }
    }
}

/// Only a window that holds the sender back grows, and none in recovery.
fn may_grow(ack: &Ack) -> bool {
    !ack.in_recovery && ack.cwnd_limited && ack.newly_acked > Bytes::ZERO
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

/// `ssthresh` after a congestion event: half of the flight, or of Linux's window, at least two segments (RFC 5681
/// §3.1, eq. 4).
pub(crate) fn halved(event: &Congestion) -> Bytes {
    (event.used_window / 2).max(event.mss * 2)
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

    /// Saves up the bytes that `ack` covers.
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
        assert_eq!(growth(AckCounting::Delivered), 2);
    }

    #[test]
    fn what_was_selectively_acknowledged_before_grows_no_window_where_the_stack_counts_what_is_delivered() {
        let growth = |counting| {
            let mut limits = Limits { ssthresh: MSS * 10, ..Limits::initial(MSS * 10) };
            let end_of_recovery = Ack { newly_acked: MSS * 20, delivered: MSS, counting, ..ack(1) };
            Reno::default().on_ack(&end_of_recovery, &mut limits);
            (limits.cwnd - MSS * 10).whole(MSS)
        };
        assert_eq!(growth(AckCounting::Bytes { limit: 64 }), 1);
        assert_eq!(growth(AckCounting::Delivered), 0);
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

    /// By hand, in segments: 2 + 1/2 = 2.5, + 1/2.5 = 2.9, + 1/2.9 = 3.2448: three ACKs rather than two.
    #[test]
    fn a_window_of_fractions_grows_by_its_inverse_for_each_ack() {
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 2) };
        for expected in [2.5, 2.9, 3.244_8] {
            FractionalReno.on_ack(&ack(1), &mut limits);
            let segments = limits.cwnd.as_f64() / MSS.as_f64();
            assert!((segments - expected).abs() < 1e-3, "{segments} {expected}");
        }
    }

    #[test]
    fn a_mark_halves_a_window_of_fractions_down_to_one_segment() {
        let after = |bytes| {
            let mut limits = Limits::initial(Bytes::new(bytes));
            FractionalReno.on_congestion(&Congestion { kind: CongestionKind::Ecn, ..loss(1) }, &mut limits);
            (limits.cwnd.get(), limits.ssthresh.get())
        };
        let mss = MSS.get();
        assert_eq!(after(11 * mss), (11 * mss / 2, 11 * mss / 2));
        assert_eq!(after(3 * mss), (3 * mss / 2, 2 * mss));
        assert_eq!(after(mss), (mss, 2 * mss));
        // From below ssthresh the next ACK adds a whole segment.
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 3 / 2) };
        FractionalReno.on_ack(&ack(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 5 / 2);
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
