//! FS-AT, Flight Size Auto Tuning (Igarashi, Yamazaki): limits the flight to the measured
//! bandwidth-delay product, over whatever congestion avoidance runs below.
//!
//! Equation numbers are the paper's. Two modes, since no single reading of its equations gives all of
//! its numbers: `printed` takes them as they stand, `fit` is the probable behaviour of the authors' code.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "fs-at",
    summary: "limits the flight to the measured bandwidth-delay product, spares the window at radio losses",
    source: "Igarashi, Yamazaki: Flight Size Auto Tuning for High Speed Wireless Access Networks",
    colour: "#e15759",
    parameters: &[
        Parameter {
            name: "mode",
            help: "the equations as printed, or as the authors' code probably had them",
            default: Value::Choice("printed"),
            range: Range::OneOf(&["printed", "fit"]),
        },
        Parameter {
            name: "interpolate",
            help: "count an interval to its exact end, between two ACKs",
            default: Value::Flag(false),
            range: Range::Any,
        },
        Parameter {
            name: "min_target",
            help: "the target never falls below this",
            default: Value::Bytes(Bytes::new(8_000)),
            range: Range::Any,
        },
    ],
};

/// Builds it over `inner`.
#[must_use]
pub fn build(arguments: &Arguments, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
    let mode = if arguments.choice("mode") == "fit" { Mode::Fit } else { Mode::Printed };
    Box::new(FsAt::new(inner, mode, arguments.flag("interpolate"), arguments.bytes("min_target")))
}

/// A reading of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The equations as they stand.
    Printed,
    /// (7) halves toward twice `rcv_bytes`, the ACK that closes an interval counts in the next one
    /// too, and `flight_size_n` is that of (4).
    Fit,
}

/// Binary digits of `s_rcv_bytes` and `dev_rcv_bytes` below the byte, and the bound that keeps their sums within 64.
const FRACTION: u32 = 16;
const MAX_BYTES: u64 = 1 << 40;

/// FS-AT over another congestion control.
#[derive(Debug, Clone)]
pub struct FsAt<C> {
    inner: C,
    rtt_min: Option<Duration>,
    flight: FlightLimit,
    /// The last congestion event was passed on to the inner algorithm.
    inner_knows: bool,
}

/// The limit of the flight: `target`, which intervals of length `rtt_min` give, and `space`, which approaches it.
#[derive(Debug, Clone)]
pub(super) struct FlightLimit {
    mode: Mode,
    interpolate: bool,
    min_target: Bytes,
    interval: Option<Interval>,
    average: Confirmed,
    /// `flight_size_n` and `rcv_bytes_n-(m)` of the last complete interval.
    complete: Option<(Bytes, Bytes)>,
    /// `None` while control is off, which the paper writes as `snd_cwnd_max`.
    target: Option<Bytes>,
    pub(super) space: Bytes,
}

/// The running mean and mean deviation of the bytes that are confirmed in an interval of length `rtt_min`: `s_rcv_bytes` and
/// `dev_rcv_bytes`, in fractions of a byte. In integers, so that the kernel's twin of this (`bpf/fs_at.h`) gives the same to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Confirmed(Option<(u64, u64)>);

impl Confirmed {
    /// Takes in the `rcv_bytes` of an interval, and gives the mean and four deviations: the first term of (9).
    pub fn update(&mut self, rcv_bytes: Bytes) -> Bytes {
        let rcv = rcv_bytes.get().min(MAX_BYTES) << FRACTION;
        let (s, dev) = match self.0 {
            // The paper gives no start; RFC 6298 §2.2 starts its deviation at half the first sample.
            None => (rcv, rcv / 2),
            Some((s, dev)) => ((7 * s + rcv) / 8, (3 * dev + s.abs_diff(rcv)) / 4),
        };
        self.0 = Some((s, dev));
        Bytes::new((s + 4 * dev + (1 << (FRACTION - 1))) >> FRACTION)
    }
}

/// One interval of length `rtt_min`.
#[derive(Debug, Clone, Copy)]
struct Interval {
    began: Instant,
    flight_size: Bytes,
    /// `rcv_bytes_n-(p)`: confirmed so far.
    received: Bytes,
    last_ack: Instant,
    app_limited: bool,
}

impl<C: CongestionControl> FsAt<C> {
    /// FS-AT over `inner`; `min_target` keeps the first segments from being held back.
    #[must_use]
    pub fn new(inner: C, mode: Mode, interpolate: bool, min_target: Bytes) -> Self {
        let flight = FlightLimit::new(mode, interpolate, min_target);
        Self { inner, rtt_min: None, flight, inner_knows: false }
    }

    /// The last congestion event was taken for congestion and told to the algorithm below; false where it was judged to
    /// be the radio's.
    #[must_use]
    pub const fn passed_on(&self) -> bool {
        self.inner_knows
    }

    /// The path may be another: measurements of the old one are void, `space` stays. The kernel calls this where
    /// a route leaves by another device, or after long silence; the simulator never does.
    pub fn forget_path(&mut self) {
        self.rtt_min = None;
        self.flight.forget_path();
    }
}

impl FlightLimit {
    pub(super) fn new(mode: Mode, interpolate: bool, min_target: Bytes) -> Self {
        Self {
            mode,
            interpolate,
            min_target,
            interval: None,
            average: Confirmed::default(),
            complete: None,
            target: None,
            space: Bytes::ZERO,
        }
    }

    /// Judge 1 and 2 of the paper's Fig 3: where `target` goes with this ACK.
    pub(super) fn judge(&mut self, rtt_min: Duration, ack: &Ack, limits: &Limits) {
        let Some(mut interval) = self.interval else {
            self.interval = Some(self.begin(ack, limits, ack.now, Bytes::ZERO));
            return;
        };
        let before = interval.received;
        interval.received += ack.delivered;
        interval.app_limited |= ack.app_limited;
        let elapsed = ack.now.saturating_since(interval.began);
        if elapsed < rtt_min {
            interval.last_ack = ack.now;
            self.interval = Some(interval);
            self.follow_growth(interval.received);
            return;
        }
        let (rcv_bytes, next) = if self.interpolate {
            self.split(ack, limits, &interval, before, rtt_min)
        } else {
            let carried = if self.mode == Mode::Fit { ack.delivered } else { Bytes::ZERO };
            (interval.received, self.begin(ack, limits, ack.now, carried))
        };
        // Where the sender had nothing to send, the interval tells nothing, unless more was in flight at its start than came
        // through: then the bottleneck was busy all the time. A receiver may hold back one acknowledgement (RFC 9293
        // §3.8.6.3), of two segments at most.
        if !interval.app_limited || interval.flight_size > rcv_bytes + ack.mss * 2 {
            self.follow_growth(rcv_bytes);
            self.update_target(interval.flight_size, rcv_bytes);
            self.complete = Some((interval.flight_size, rcv_bytes));
        }
        self.interval = Some(next);
    }

    fn begin(&self, ack: &Ack, limits: &Limits, at: Instant, received: Bytes) -> Interval {
        let flight_size = match self.mode {
            Mode::Printed => ack.flight_size,
            // (4)
            Mode::Fit => ack.snd_wnd.min(limits.cwnd).min(self.space),
        };
        Interval { began: at, flight_size, received, last_ack: ack.now, app_limited: ack.app_limited }
    }

    /// Shares the closing ACK out between the interval that it closes and the next, as if its bytes
    /// had been confirmed evenly since the ACK before.
    fn split(
        &self,
        ack: &Ack,
        limits: &Limits,
        interval: &Interval,
        before: Bytes,
        rtt_min: Duration,
    ) -> (Bytes, Interval) {
        let end = interval.began + rtt_min;
        let gap = ack.now.saturating_since(interval.last_ack);
        let inside = end.saturating_since(interval.last_ack);
        let share = if gap == Duration::ZERO { 1.0 } else { inside.as_secs_f64() / gap.as_secs_f64() };
        let own = Bytes::from_f64(ack.delivered.as_f64() * share.min(1.0));
        // After a gap of more than an interval there is no clock to interpolate.
        let (next_began, rest) = if ack.now.saturating_since(end) < rtt_min {
            (end, ack.delivered.saturating_sub(own))
        } else {
            (ack.now, Bytes::ZERO)
        };
        (before + own, self.begin(ack, limits, next_began, rest))
    }

    /// (8): follow a growing BDP within the interval.
    fn follow_growth(&mut self, received: Bytes) {
        if let Some(target) = &mut self.target {
            *target = (*target).max(received * 2);
        }
    }

    /// (5), (6) and (7), once per `rtt_min`.
    fn update_target(&mut self, flight_size: Bytes, rcv_bytes: Bytes) {
        // (9)
        let twrcv_bytes = self.average.update(rcv_bytes).min(rcv_bytes * 2);
        self.target = if flight_size <= rcv_bytes {
            // (5): all that was in flight arrived within rtt_min, so nothing is queued: control off.
            None
        } else {
            let next = match self.target {
                // (6): switch control on, or follow a growing BDP at once.
                None => twrcv_bytes,
                Some(target) if target < twrcv_bytes => twrcv_bytes,
                // (7): the BDP shrank, come down by halves.
                Some(target) => match self.mode {
                    Mode::Printed => (twrcv_bytes + target) / 2,
                    Mode::Fit => (rcv_bytes * 2 + target) / 2,
                },
            };
            Some(next.max(self.min_target))
        };
    }

    fn forget_path(&mut self) {
        self.interval = None;
        self.average = Confirmed::default();
        self.complete = None;
        self.target = None;
    }

    /// `space` approaches `target` step by step: never a burst, never a silence. While control is off, a sender that has
    /// nothing to send has no use for more (RFC 9002 §7.8).
    pub(super) fn move_space(&mut self, ack: &Ack) {
        let target = self.target.unwrap_or(ack.snd_wnd).max(self.min_target);
        if self.space <= target {
            // Up by the bytes that this ACK confirms (RFC 3465).
            let unused = self.target.is_none() && ack.app_limited;
            self.space = (self.space + if unused { Bytes::ZERO } else { ack.delivered }).min(target);
        } else {
            // Down by one segment for every two confirmed, as rate halving does.
            self.space = self.space.saturating_sub(ack.delivered / 2).max(target);
        }
    }
}

impl<C: CongestionControl + Clone + 'static> CongestionControl for FsAt<C> {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_established(now, limits);
        self.flight.space = limits.cwnd.max(self.flight.min_target);
        limits.space = self.flight.space;
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.inner.on_ack(ack, limits);
        if let Some(rtt) = ack.rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
        if let Some(rtt_min) = self.rtt_min {
            self.flight.judge(rtt_min, ack, limits);
        }
        self.flight.move_space(ack);
        limits.space = self.flight.space;
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let (flight_size, rcv_bytes) = self.flight.complete.unwrap_or((event.flight_size, Bytes::ZERO));
        // A mark was set by a queue: the radio does not mark.
        let from_radio = flight_size <= rcv_bytes && event.kind != CongestionKind::Ecn;
        self.inner_knows = !from_radio;
        if from_radio {
            // (10): nothing was queued, so the loss is the radio's.
            limits.ssthresh = limits.ssthresh.max(limits.cwnd);
        } else {
            // (11): over Reno the inner threshold is flight_size / 2.
            self.inner.on_congestion(event, limits);
            limits.ssthresh = limits.ssthresh.max(rcv_bytes);
        }
    }

    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        if core::mem::take(&mut self.inner_knows) {
            self.inner.on_spurious(now, limits);
        }
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
        out.value("space_bytes", self.flight.space.as_f64());
        if let Some(target) = self.flight.target {
            out.value("target_bytes", target.as_f64());
        }
        if let Some((_, rcv_bytes)) = self.flight.complete {
            out.value("rcv_bytes", rcv_bytes.as_f64());
        }
        if let Some(rtt_min) = self.rtt_min {
            out.value("rtt_min_ms", rtt_min.as_millis_f64());
        }
        self.inner.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::reno::Reno;
    use crate::congestion::testing::{MSS, ack, loss};

    const RTT: Duration = Duration::from_millis(100);

    fn fs_at(mode: Mode, interpolate: bool) -> FsAt<Reno> {
        FsAt::new(Reno::default(), mode, interpolate, Bytes::new(8_000))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// An ACK at `millis` that confirms `segments` and leaves `flight` of them in flight.
    fn confirm(millis: u64, segments: u64, flight: u64) -> Ack {
        Ack { now: at(millis), flight_size: MSS * flight, rtt: Some(RTT), ..ack(segments) }
    }

    /// Plays one interval of `rcv` segments with `flight` in flight at its start, from `start` on.
    fn interval(fs_at: &mut FsAt<Reno>, limits: &mut Limits, start: u64, rcv: u64, flight: u64) {
        for i in 1..=rcv {
            fs_at.on_ack(&confirm(start + i * 100 / rcv, 1, flight), limits);
        }
    }

    fn started(mode: Mode) -> (FsAt<Reno>, Limits) {
        let mut fs_at = fs_at(mode, false);
        let mut limits = Limits::initial(MSS * 40);
        fs_at.on_established(at(0), &mut limits);
        fs_at.on_ack(&confirm(0, 1, 20), &mut limits);
        (fs_at, limits)
    }

    #[test]
    fn control_stays_off_while_everything_in_flight_arrives_within_rtt_min() {
        let (mut fs_at, mut limits) = started(Mode::Printed);
        interval(&mut fs_at, &mut limits, 0, 20, 20);
        assert_eq!(fs_at.flight.target, None);
        interval(&mut fs_at, &mut limits, 100, 20, 21);
        assert_eq!(fs_at.flight.target, None);
    }

    #[test]
    fn control_goes_on_at_the_first_segment_too_many() {
        let (mut fs_at, mut limits) = started(Mode::Printed);
        interval(&mut fs_at, &mut limits, 0, 19, 19);
        // s = 19, dev = 9.5: s + 4 dev is more than twice 19, so twice 19 it is.
        assert_eq!(fs_at.flight.target, Some(MSS * 38));
    }

    #[test]
    fn mean_and_deviation_follow_equation_9() {
        let mut average = Confirmed::default();
        let mut update = |bytes| (average.update(Bytes::new(bytes)), average);
        let confirmed = |s: u64, dev: u64| Confirmed(Some((s << FRACTION, dev << FRACTION)));
        assert_eq!(update(10_000), (Bytes::new(30_000), confirmed(10_000, 5_000)));
        assert_eq!(update(12_000), (Bytes::new(27_250), confirmed(10_250, 4_250)));
        let last = (0..200).map(|_| update(12_000)).last().unwrap();
        assert!(last.0.get().abs_diff(12_000) < 10, "no deviation leaves the mean");
        // The target is no more than twice the last.
        let (mut fs_at, rcv_bytes) = (fs_at(Mode::Printed, false), Bytes::new(10_000));
        fs_at.flight.update_target(rcv_bytes * 2, rcv_bytes);
        assert_eq!(fs_at.flight.target, Some(rcv_bytes * 2));
    }

    #[test]
    fn a_shrinking_target_comes_down_by_halves_as_each_mode_reads_equation_7() {
        let halved = |mode| {
            let mut fs_at = fs_at(mode, false);
            fs_at.flight.average = Confirmed(Some((10_000 << FRACTION, 0)));
            fs_at.flight.target = Some(Bytes::new(40_000));
            fs_at.flight.update_target(Bytes::new(30_000), Bytes::new(10_000));
            fs_at.flight.target
        };
        assert_eq!(halved(Mode::Printed), Some(Bytes::new(25_000)));
        assert_eq!(halved(Mode::Fit), Some(Bytes::new(30_000)));
    }

    #[test]
    fn growth_within_an_interval_is_followed_at_once() {
        let (mut fs_at, mut limits) = started(Mode::Printed);
        fs_at.flight.target = Some(Bytes::new(20_000));
        fs_at.on_ack(&confirm(10, 8, 30), &mut limits);
        assert_eq!(fs_at.flight.target, Some(MSS * 16));
    }

    #[test]
    fn space_rises_by_what_is_confirmed_and_falls_by_half_of_it() {
        let mut fs_at = fs_at(Mode::Printed, false);
        fs_at.flight.space = Bytes::new(20_000);
        fs_at.flight.target = Some(Bytes::new(22_000));
        fs_at.flight.move_space(&confirm(0, 1, 10));
        assert_eq!(fs_at.flight.space, Bytes::new(21_448));
        fs_at.flight.move_space(&confirm(0, 1, 10));
        assert_eq!(fs_at.flight.space, Bytes::new(22_000));
        fs_at.flight.target = Some(Bytes::new(21_000));
        fs_at.flight.move_space(&confirm(0, 1, 10));
        assert_eq!(fs_at.flight.space, Bytes::new(21_276));
        fs_at.flight.move_space(&confirm(0, 1, 10));
        assert_eq!(fs_at.flight.space, Bytes::new(21_000));
    }

    #[test]
    fn space_that_the_application_does_not_fill_grows_only_toward_a_target() {
        let mut fs_at = fs_at(Mode::Printed, false);
        fs_at.flight.space = Bytes::new(20_000);
        let idle = Ack { app_limited: true, ..confirm(0, 1, 1) };
        fs_at.flight.move_space(&idle);
        assert_eq!(fs_at.flight.space, Bytes::new(20_000));
        fs_at.flight.target = Some(Bytes::new(22_000));
        fs_at.flight.move_space(&idle);
        assert_eq!(fs_at.flight.space, Bytes::new(21_448));
    }

    #[test]
    fn the_target_has_a_floor_so_that_first_segments_pass() {
        let mut fs_at = fs_at(Mode::Printed, false);
        fs_at.flight.update_target(MSS * 6, MSS);
        assert_eq!(fs_at.flight.target, Some(Bytes::new(8_000)));
    }

    #[test]
    fn a_loss_without_a_queue_is_the_radios_and_cuts_nothing() {
        let mut fs_at = fs_at(Mode::Printed, false);
        let mut limits = Limits { ssthresh: MSS * 10, ..Limits::initial(MSS * 30) };
        fs_at.flight.complete = Some((MSS * 20, MSS * 20));
        fs_at.on_congestion(&loss(20), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 30);
        let mark = Congestion { kind: CongestionKind::Ecn, ..loss(20) };
        fs_at.on_congestion(&mark, &mut limits);
        assert_eq!(limits.ssthresh, MSS * 20, "a mark is a queue's, but the measured BDP stays");
    }

    #[test]
    fn a_loss_with_a_queue_goes_to_the_measured_bdp_or_half_the_flight() {
        let after = |flight, rcv| {
            let mut fs_at = fs_at(Mode::Printed, false);
            let mut limits = Limits::initial(MSS * 60);
            fs_at.flight.complete = Some((MSS * flight, MSS * rcv));
            fs_at.on_congestion(&loss(flight), &mut limits);
            limits.ssthresh
        };
        assert_eq!(after(20, 19), MSS * 19);
        assert_eq!(after(40, 15), MSS * 20);
    }

    #[test]
    fn an_application_limited_interval_changes_nothing() {
        let (mut fs_at, mut limits) = started(Mode::Printed);
        fs_at.flight.target = Some(Bytes::new(30_000));
        fs_at.flight.interval = None;
        fs_at.on_ack(&confirm(0, 1, 2), &mut limits);
        fs_at.on_ack(&Ack { app_limited: true, ..confirm(50, 1, 2) }, &mut limits);
        fs_at.on_ack(&confirm(100, 1, 2), &mut limits);
        assert_eq!((fs_at.flight.target, fs_at.flight.complete), (Some(Bytes::new(30_000)), None));
    }

    #[test]
    fn an_application_limited_interval_counts_where_more_was_in_flight_than_came_through() {
        for (flight, expected) in [(4, None), (5, Some((MSS * 5, MSS * 2)))] {
            let (mut fs_at, mut limits) = started(Mode::Printed);
            fs_at.flight.interval = None;
            fs_at.on_ack(&confirm(0, 1, flight), &mut limits);
            fs_at.on_ack(&Ack { app_limited: true, ..confirm(50, 1, flight) }, &mut limits);
            fs_at.on_ack(&confirm(100, 1, flight), &mut limits);
            assert_eq!(fs_at.flight.complete, expected, "{flight} segments in flight, two of them confirmed");
        }
    }

    #[test]
    fn an_interpolated_interval_shares_its_last_ack_with_the_next() {
        let mut fs_at = fs_at(Mode::Printed, true);
        let mut limits = Limits::initial(MSS * 40);
        fs_at.on_established(at(0), &mut limits);
        fs_at.on_ack(&confirm(0, 1, 20), &mut limits);
        fs_at.on_ack(&confirm(80, 8, 20), &mut limits);
        fs_at.on_ack(&confirm(120, 4, 20), &mut limits);
        assert_eq!(fs_at.flight.complete, Some((MSS * 20, MSS * 10)));
        let next = fs_at.flight.interval.expect("an interval follows");
        assert_eq!((next.began, next.received), (at(100), MSS * 2));
    }

    #[test]
    fn a_mistaken_loss_is_taken_back_below_only_if_it_was_told_there() {
        let mut fs_at = fs_at(Mode::Printed, false);
        let mut limits = Limits::initial(MSS * 30);
        fs_at.flight.complete = Some((MSS * 20, MSS * 20));
        fs_at.on_congestion(&loss(20), &mut limits);
        assert!(!fs_at.inner_knows);
        fs_at.flight.complete = Some((MSS * 20, MSS * 10));
        fs_at.on_congestion(&loss(20), &mut limits);
        assert!(fs_at.inner_knows);
        fs_at.on_spurious(at(0), &mut limits);
        assert!(!fs_at.inner_knows);
    }
}
