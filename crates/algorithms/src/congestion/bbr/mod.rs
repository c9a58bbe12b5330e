//! BBR, version 1: sends at the measured rate of delivery and keeps about one bandwidth-delay product in
//! flight (draft-cardwell-iccrg-bbr-congestion-control-00, as Linux does it).
//!
//! Section numbers are the draft's.

mod aggregation;
mod delivery;
mod full_pipe;
mod max_filter;
mod policer;
mod window;

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant, Rate};

use self::aggregation::Aggregation;
use self::delivery::Deliveries;
use self::full_pipe::FullPipe;
use self::policer::{Policer, Seen};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "bbr",
    summary: "paces at the measured delivery rate, keeps about one bandwidth-delay product in flight",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6",
    colour: "#b6992d",
    parameters: &[
        Parameter {
            name: "min_rtt_window",
            help: "time after which the smallest RTT is looked for anew",
            default: Value::Duration(Duration::from_secs(10)),
            range: Range::Any,
        },
        Parameter {
            name: "probe_rtt_time",
            help: "how long at least the flight is kept at four segments for that",
            default: Value::Duration(Duration::from_millis(200)),
            range: Range::Any,
        },
        Parameter {
            name: "cwnd_gain",
            help: "window in bandwidth-delay products once the bandwidth is known",
            default: Value::Number(2.0),
            range: Range::Between(1.0, 10.0),
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Bbr::new(
        arguments.duration("min_rtt_window"),
        arguments.duration("probe_rtt_time"),
        arguments.number("cwnd_gain"),
    ))
}

/// `BBRHighGain`, 2 / ln 2: the smallest gain that doubles the rate each round (§4.1.1).
const HIGH_GAIN: f64 = 2.885_390_081_777_927;
/// The gains of ProbeBW, each for about one smallest RTT (§4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `BBRMinPipeCwnd`, in segments (§4.2.3.2).
const MIN_WINDOW: u64 = 4;
/// Linux paces one hundredth below the bandwidth, so that a queue drains whatever the clocks say.
const PACING_MARGIN: f64 = 0.99;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBandwidth { phase: usize, since: Instant },
    ProbeRtt { until: Option<Instant>, round_done: bool },
}

#[derive(Debug, Clone)]
struct Bbr {
    min_rtt_window: Duration,
    probe_rtt_time: Duration,
    cwnd_gain: f64,
    mode: Mode,
    deliveries: Deliveries,
    pipe: FullPipe,
    aggregation: Aggregation,
    policer: Policer,
    /// `BBR.RTprop`, and when it was measured.
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    idle_restart: bool,
    initial_cwnd: Bytes,
    /// The window before the last loss, timeout or ProbeRTT (§4.2.3.4).
    prior_cwnd: Bytes,
    /// Recovering from a loss or timeout until this byte is acknowledged.
    episode: Option<u64>,
    /// In the first round the sender sends no more than is delivered (§4.2.3.4).
    conserve: bool,
    pacing: Rate,
    /// The sample that the next acknowledgement goes with.
    delivery: Option<Delivery>,
}

impl Bbr {
    fn new(min_rtt_window: Duration, probe_rtt_time: Duration, cwnd_gain: f64) -> Self {
        Self {
            min_rtt_window,
            probe_rtt_time,
            cwnd_gain,
            mode: Mode::Startup,
            deliveries: Deliveries::default(),
            pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            idle_restart: false,
            initial_cwnd: Bytes::ZERO,
            prior_cwnd: Bytes::ZERO,
            episode: None,
            conserve: false,
            pacing: Rate::ZERO,
            delivery: None,
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => 1.0 / HIGH_GAIN,
            Mode::ProbeBandwidth { .. } if self.policer.rate().is_some() => 1.0,
            Mode::ProbeBandwidth { phase, .. } => CYCLE[phase],
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth { .. } => self.cwnd_gain,
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// The bandwidth of the path: the policer's rate, where there is one.
    fn bandwidth(&self) -> Rate {
        self.policer.rate().unwrap_or_else(|| self.deliveries.bandwidth())
    }

    /// `BBRUpdateModelAndState` (§4.1).
    fn update_model(&mut self, ack: &Ack, delivery: &Delivery, lost: Bytes, limits: &mut Limits) {
        self.deliveries.update(delivery);
        let round_start = self.deliveries.round_start();
        self.conserve &= !round_start;
        let seen = Seen {
            now: ack.now,
            delivered: delivery.total,
            lost,
            app_limited: delivery.app_limited,
            round_start,
            probing: matches!(self.mode, Mode::ProbeBandwidth { .. }),
        };
        if self.policer.update(&seen) {
            self.probe_bandwidth(ack.now);
        }
        if delivery.rate.is_some() {
            let sizes = (limits.cwnd, ack.mss);
            self.aggregation.update(ack.now, round_start, ack.delivered, self.bandwidth(), sizes);
        }
        self.update_cycle(ack, delivery, lost);
        self.check_full_pipe(ack, delivery);
        self.update_min_rtt(ack, delivery, limits);
    }

    /// `BBRCheckCyclePhase` (§4.3.4.3).
    fn update_cycle(&mut self, ack: &Ack, delivery: &Delivery, lost: Bytes) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let full_length = ack.now.saturating_since(since) > self.min_rtt.unwrap_or(Duration::ZERO);
        let flight = || self.flight_at_departure(ack.prior_flight_size, ack, delivery);
        let next = match self.pacing_gain() {
            1.0 => full_length,
            gain if gain > 1.0 => {
                full_length && (lost > Bytes::ZERO || flight() >= self.inflight(gain, ack.mss))
            }
            _ => full_length || flight() <= self.inflight(1.0, ack.mss),
        };
        if next {
            self.mode = Mode::ProbeBandwidth { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    /// `BBRCheckFullPipe` (§4.3.2.2) and `BBRCheckDrain` (§4.3.3).
    fn check_full_pipe(&mut self, ack: &Ack, delivery: &Delivery) {
        if self.deliveries.round_start() && !delivery.app_limited {
            self.pipe.on_round(self.deliveries.bandwidth());
        }
        if self.mode == Mode::Startup && self.pipe.is_full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.flight_at_departure(ack.flight_size, ack, delivery) <= self.inflight(1.0, ack.mss)
        {
            self.probe_bandwidth(ack.now);
        }
    }

    /// Begins anywhere in the cycle but at 3/4, so that flows take turns (§4.3.4.3). The time decides, as
    /// good as chance and the same on every run.
    fn probe_bandwidth(&mut self, now: Instant) {
        let back = RandomStream::new(now.as_nanos(), "bbr").below(CYCLE.len() as u64 - 1) as usize;
        self.mode = Mode::ProbeBandwidth { phase: (CYCLE.len() - back) % CYCLE.len(), since: now };
    }

    /// `BBRUpdateRTprop` and `BBRCheckProbeRTT` (§4.1.2.3, §4.3.5).
    fn update_min_rtt(&mut self, ack: &Ack, delivery: &Delivery, limits: &mut Limits) {
        let expired = ack.now.saturating_since(self.min_rtt_at) > self.min_rtt_window;
        if let Some(rtt) = delivery.rtt
            // As in Linux since 4.19, an equal sample does not put the next look off.
            && (expired || self.min_rtt.is_none_or(|min| rtt < min))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), ack.now);
        }
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if expired && !probing && !self.idle_restart {
            self.save_cwnd(limits);
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
            self.deliveries.hold_back();
        }
        self.advance_probe_rtt(ack, limits);
    }

    fn advance_probe_rtt(&mut self, ack: &Ack, limits: &mut Limits) {
        let Mode::ProbeRtt { until, round_done } = &mut self.mode else { return };
        self.deliveries.still_held_back(ack.flight_size);
        let Some(end) = *until else {
            if ack.flight_size <= ack.mss * MIN_WINDOW {
                *until = Some(ack.now + self.probe_rtt_time);
                self.deliveries.begin_round();
            }
            return;
        };
        *round_done |= self.deliveries.round_start();
        if *round_done && ack.now >= end {
            self.min_rtt_at = ack.now;
            limits.cwnd = limits.cwnd.max(self.prior_cwnd);
            if self.pipe.is_full() {
                self.probe_bandwidth(ack.now);
            } else {
                self.mode = Mode::Startup;
            }
        }
    }

    /// `BBRSetPacingRate` (§4.2.1).
    fn set_pacing(&mut self, gain: f64) {
        let rate = self.bandwidth().scaled(gain * PACING_MARGIN);
        if rate > Rate::ZERO && (self.pipe.is_full() || rate > self.pacing) {
            self.pacing = rate;
        }
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.initial_cwnd = limits.cwnd;
        // The handshake's round trip is the first.
        (self.min_rtt, self.min_rtt_at) = (self.delivery.take().and_then(|delivery| delivery.rtt), now);
        // The initial window over a millisecond, until a round trip of data was measured (§4.2.1).
        self.pacing = Rate::of(limits.cwnd, Duration::from_millis(1)).scaled(HIGH_GAIN * PACING_MARGIN);
        limits.pacing = Some(self.pacing);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let Some(delivery) = &self.delivery.take() else { return };
        // Segments that left the flight without being delivered were marked lost with this ACK.
        let lost = ack.prior_flight_size.saturating_sub(ack.flight_size.saturating_add(ack.delivered));
        if self.deliveries.total() == Bytes::ZERO
            && let Some(rtt) = self.min_rtt.or(delivery.rtt)
        {
            self.pacing = Rate::of(self.initial_cwnd, rtt).scaled(HIGH_GAIN * PACING_MARGIN);
        }
        self.update_model(ack, delivery, lost, limits);
        self.idle_restart = ack.app_limited && ack.flight_size == Bytes::ZERO;
        // Data after an idle time goes out at the bandwidth, in any phase (§4.4.3).
        self.set_pacing(if self.idle_restart && self.pipe.is_full() { 1.0 } else { self.pacing_gain() });
        self.set_cwnd(ack, lost, limits);
        limits.pacing = Some(self.pacing);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        match event.kind {
            // A mark says nothing that the model would hold.
            CongestionKind::Ecn => return,
            CongestionKind::Loss => {
                self.save_cwnd(limits);
                self.conserve = true;
                // The first round of recovery begins now, and the window is the flight.
                self.deliveries.begin_round();
                limits.cwnd = limits.cwnd.min(event.flight_size).max(event.mss);
            }
            CongestionKind::Timeout => {
                self.save_cwnd(limits);
                self.conserve = false;
                self.pipe.forget_bandwidth();
            }
        }
        self.episode = Some(event.snd_nxt);
    }

    fn on_spurious(&mut self, _now: Instant, _limits: &mut Limits) {
        self.episode = None;
        self.conserve = false;
        self.pipe.forget();
        self.policer.forget();
    }

    fn models_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.delivery = Some(*delivery);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("bandwidth_bps", self.deliveries.bandwidth().as_bps_f64());
        if let Some(min_rtt) = self.min_rtt {
            out.value("min_rtt_ms", min_rtt.as_millis_f64());
        }
        out.value("pacing_gain", self.pacing_gain());
        out.value("pacing_bps", self.pacing.as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{self, MSS, at, loss};

    type Path = testing::Path<Bbr>;

    const RTT: Duration = Path::RTT;
    const RATE: Rate = Path::RATE;
    const BDP: u64 = Path::BDP;

    fn bbr() -> Bbr {
        let mut bbr = Bbr::new(Duration::from_secs(10), Duration::from_millis(200), 2.0);
        bbr.initial_cwnd = MSS * 10;
        bbr
    }

    impl Path {
        fn in_startup() -> Self {
            Self::new(bbr(), BDP)
        }

        fn in_probe_bandwidth() -> Self {
            let mut path = Self::in_startup();
            for _ in 0..1_000 {
                path.ack(0);
            }
            assert!(matches!(path.cc.mode, Mode::ProbeBandwidth { .. }), "{:?}", path.cc.mode);
            path
        }

        fn gain(&self) -> f64 {
            self.cc.pacing_gain()
        }

        /// In segments, without the two that a probe adds.
        fn window(&self) -> u64 {
            self.limits.cwnd.whole(MSS) - if self.gain() > 1.0 { 2 } else { 0 }
        }
    }

    #[test]
    fn startup_ends_after_three_rounds_without_a_quarter_more() {
        let mut path = Path::in_startup();
        assert!((path.gain() - 2.885).abs() < 0.001);
        // Each round of 50 segments brings the same rate: the first sets it, three more do not raise it.
        for _ in 0..BDP * 4 {
            path.ack(0);
            if path.cc.mode != Mode::Startup {
                break;
            }
        }
        assert_eq!(path.cc.deliveries.rounds(), 4);
        // A flight of one bandwidth-delay product drains at once.
        assert!(matches!(path.cc.mode, Mode::ProbeBandwidth { .. }));
    }

    #[test]
    fn startup_drains_before_it_probes() {
        let mut path = Path::in_startup();
        path.flight = 140;
        while path.cc.mode == Mode::Startup {
            path.ack(0);
        }
        assert_eq!(path.cc.mode, Mode::Drain);
        assert!((path.gain() - 0.3466).abs() < 0.001);
        path.ack(0);
        assert_eq!(path.cc.mode, Mode::Drain);
        // One product and room for three times two segments.
        path.flight = 58;
        path.ack(0);
        assert_eq!(path.cc.mode, Mode::Drain);
        path.flight = 57;
        path.ack(0);
        assert!(matches!(path.cc.mode, Mode::ProbeBandwidth { .. }));
    }

    #[test]
    fn the_gains_follow_the_cycle_one_round_trip_each() {
        let mut path = Path::in_probe_bandwidth();
        // Enough in flight that 5/4 is believed to have filled the pipe and 3/4 not to have drained it.
        path.flight = 70;
        let mut changes = Vec::new();
        let mut last = (path.gain(), path.millis);
        for _ in 0..1_200 {
            path.ack(0);
            if path.gain() != last.0 {
                changes.push((last.0, path.millis - last.1));
                last = (path.gain(), path.millis);
            }
        }
        let cycle = &changes[1..];
        assert!(cycle.len() > 6);
        let begin = cycle.iter().position(|change| change.0 == 1.25).unwrap();
        for three in cycle[begin..].chunks_exact(3) {
            // A phase ends with the first ACK more than a round trip after its beginning.
            assert_eq!(three, [(1.25, 51), (0.75, 51), (1.0, 6 * 51)]);
        }
    }

    #[test]
    fn the_cycle_never_begins_with_draining() {
        let mut seen = [false; CYCLE.len()];
        for millis in 0..200 {
            let mut bbr = bbr();
            bbr.probe_bandwidth(at(millis));
            let Mode::ProbeBandwidth { phase, .. } = bbr.mode else { panic!("it probes") };
            seen[phase] = true;
        }
        assert_eq!(seen, [true, false, true, true, true, true, true, true]);
    }

    #[test]
    fn the_window_is_two_bandwidth_delay_products_and_room_for_what_is_held_back() {
        let path = Path::in_probe_bandwidth();
        // Twice the product, an acknowledgement's segment, three bursts of two, an even number.
        assert_eq!(path.window(), 2 * BDP + 8);
        let rate = path.limits.pacing.unwrap().as_bps_f64() / RATE.as_bps_f64();
        assert!((rate - 0.99 * path.gain()).abs() < 1e-6, "{rate}");
    }

    #[test]
    fn after_ten_seconds_without_a_smaller_rtt_four_segments_are_left_for_a_fifth_of_a_second() {
        let mut path = Path::in_probe_bandwidth();
        let measured_at = path.cc.min_rtt_at;
        assert_eq!(measured_at, at(1), "equal samples do not count");
        path.rtt = RTT * 2;
        while !matches!(path.cc.mode, Mode::ProbeRtt { .. }) {
            path.ack(0);
        }
        assert_eq!(path.millis, 10_002);
        assert_eq!(path.limits.cwnd, MSS * 4);
        assert_eq!(path.cc.min_rtt, Some(RTT * 2), "the old one is void");
        for _ in 0..100 {
            path.ack(0);
        }
        // The time counts from when the flight is down.
        (path.flight, path.rtt) = (5, RTT);
        let begin = path.millis;
        while matches!(path.cc.mode, Mode::ProbeRtt { .. }) {
            path.ack(0);
        }
        assert_eq!(path.millis - begin, 201);
        assert_eq!(path.cc.min_rtt, Some(RTT));
        assert!(path.limits.cwnd >= MSS * (2 * BDP), "{}", path.limits.cwnd);
    }

    #[test]
    fn for_one_round_of_recovery_it_sends_what_is_delivered_and_then_the_window_is_as_before() {
        let mut path = Path::in_probe_bandwidth();
        let before = path.window();
        let event =
            Congestion { flight_size: MSS * BDP, snd_nxt: (MSS * (path.delivered + BDP)).get(), ..loss(BDP) };
        path.cc.on_congestion(&event, &mut path.limits);
        path.ack(3);
        // 50 in flight, of which one arrived and three were lost.
        assert_eq!(path.limits.cwnd, MSS * 47);
        path.flight = 47;
        path.ack(0);
        assert_eq!(path.limits.cwnd, MSS * 47);
        for _ in 2..BDP {
            path.ack(0);
        }
        assert_eq!(path.window(), before);
    }

    #[test]
    fn the_handshakes_round_trip_is_the_first() {
        let delivery = Delivery {
            total: Bytes::ZERO,
            total_when_sent: Bytes::ZERO,
            rate: None,
            app_limited: false,
            rtt: Some(RTT / 2),
            ts_val: None,
            next_departure: at(0),
        };
        let mut limits = Limits::initial(MSS * 10);
        let mut bbr = bbr();
        bbr.on_delivery(&delivery);
        bbr.on_established(at(0), &mut limits);
        let mut path = Path { cc: bbr, limits, flight: BDP / 2, ..Path::in_startup() };
        for _ in 0..1_000 {
            path.ack(0);
        }
        assert_eq!(path.cc.min_rtt, Some(RTT / 2));
        // Twice half the product, and 7 to the next even number.
        assert_eq!(path.window(), BDP + 8);
    }

    #[test]
    fn a_mark_changes_nothing() {
        let mut path = Path::in_probe_bandwidth();
        let before = path.limits;
        let event = Congestion { kind: CongestionKind::Ecn, ..loss(50) };
        path.cc.on_congestion(&event, &mut path.limits);
        assert_eq!(path.limits, before);
        assert_eq!(path.cc.episode, None);
    }
}
