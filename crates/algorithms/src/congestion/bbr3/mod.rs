//! BBR, version 3: sends at the measured rate of delivery, within bounds that losses set
//! (draft-ietf-ccwg-bbr of August 2026).
//!
//! Section numbers and names in backticks are the draft's.

mod aggregation;
mod bounds;
mod control;
mod cycle;
mod full_pipe;
mod in_flight;
mod probe_rtt;
mod rounds;

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant, Rate};

use self::aggregation::Aggregation;
use self::bounds::Bounds;
use self::control::MIN_PIPE_CWND;
use self::cycle::Cycle;
use self::full_pipe::FullPipe;
use self::in_flight::InFlight;
use self::probe_rtt::MinRtt;
use self::rounds::Rounds;
use super::{Ack, Congestion, CongestionControl, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "bbr3",
    summary: "BBR that lets losses bound its rate and its flight, and probes for more every few seconds",
    source: "draft-ietf-ccwg-bbr",
    colour: "#8c6d31",
    parameters: &[
        Parameter {
            name: "probe_rtt_interval",
            help: "time without a smaller RTT after which the flight is halved to look for one",
            default: Value::Duration(Duration::from_secs(5)),
            range: Range::Any,
        },
        Parameter {
            name: "probe_rtt_time",
            help: "how long at least the flight is kept at half for that",
            default: Value::Duration(Duration::from_millis(200)),
            range: Range::Any,
        },
        Parameter {
            name: "loss_threshold",
            help: "part of a round trip's data that may be lost while it probes for bandwidth",
            default: Value::Number(0.02),
            range: Range::Between(0.001, 0.5),
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Bbr3::new(
        arguments.duration("probe_rtt_interval"),
        arguments.duration("probe_rtt_time"),
        arguments.number("loss_threshold"),
    ))
}

/// Rounds after which Drain ends in any case (§5.3.2).
const DRAIN_ROUNDS: u64 = 3;

/// `BBR.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// An ACK that delivered data: `RS`, and the connection's state (§2.2, §2.3).
#[derive(Debug, Clone, Copy)]
struct Sample {
    now: Instant,
    /// `C.delivered`, and the same when the newest delivered segment was sent.
    total: Bytes,
    prior_delivered: Bytes,
    newly_acked: Bytes,
    newly_lost: Bytes,
    /// `RS.delivery_rate`, zero where there is none.
    rate: Rate,
    rtt: Option<Duration>,
    app_limited: bool,
    tx_in_flight: Bytes,
    /// Lost since that segment was sent.
    lost: Bytes,
    inflight: Bytes,
    cwnd_limited: bool,
    in_recovery: bool,
    mss: Bytes,
}

impl Sample {
    /// `RS.delivered`.
    fn delivered(&self) -> Bytes {
        self.total.saturating_sub(self.prior_delivered)
    }
}

#[derive(Debug, Clone)]
struct Bbr3 {
    probe_rtt_interval: Duration,
    probe_rtt_time: Duration,
    /// `BBR.LossThresh`.
    loss_thresh: f64,
    state: State,
    rounds: Rounds,
    in_flight: InFlight,
    full_pipe: FullPipe,
    /// `BBR.max_bw_filter`: the largest of this cycle and of the one before.
    bw_filter: [Rate; 2],
    bw: Rate,
    bounds: Bounds,
    cycle: Cycle,
    rtt: MinRtt,
    aggregation: Aggregation,
    drain_start_round: u64,
    idle_restart: bool,
    initial_cwnd: Bytes,
    prior_cwnd: Bytes,
    /// In recovery until this byte is acknowledged.
    recovers_at: Option<u64>,
    pacing: Rate,
    /// The sample that the next acknowledgement goes with.
    delivery: Option<Delivery>,
}

impl Bbr3 {
    fn new(probe_rtt_interval: Duration, probe_rtt_time: Duration, loss_thresh: f64) -> Self {
        Self {
            probe_rtt_interval,
            probe_rtt_time,
            loss_thresh,
            state: State::Startup,
            rounds: Rounds::default(),
            in_flight: InFlight::default(),
            full_pipe: FullPipe::default(),
            bw_filter: [Rate::ZERO; 2],
            bw: Rate::ZERO,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            drain_start_round: 0,
            idle_restart: false,
            initial_cwnd: Bytes::ZERO,
            prior_cwnd: Bytes::ZERO,
            recovers_at: None,
            pacing: Rate::ZERO,
            delivery: None,
        }
    }

    /// `BBR.max_bw`.
    fn max_bw(&self) -> Rate {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    /// `GenerateRateSample`.
    fn sample(&mut self, ack: &Ack, delivery: &Delivery) -> Sample {
        // Segments that left the flight without being delivered were marked lost with this ACK.
        let newly_lost = ack.prior_flight_size.saturating_sub(ack.flight_size.saturating_add(ack.delivered));
        self.in_flight.lose(newly_lost);
        let sent = self.in_flight.take(delivery.total_when_sent);
        Sample {
            now: ack.now,
            total: delivery.total,
            prior_delivered: delivery.total_when_sent,
            newly_acked: ack.delivered,
            newly_lost,
            rate: delivery.rate.unwrap_or(Rate::ZERO),
            rtt: delivery.rtt,
            app_limited: self.rounds.is_app_limited(delivery),
            tx_in_flight: sent.in_flight,
            lost: self.in_flight.lost().saturating_sub(sent.lost),
            inflight: ack.flight_size,
            cwnd_limited: ack.cwnd_limited,
            in_recovery: self.recovers_at.is_some(),
            mss: ack.mss,
        }
    }

    /// `UpdateModelAndState` (§5.2.3).
    fn update_model(&mut self, rs: &Sample, delivery: &Delivery, limits: &mut Limits) {
        self.bounds.update_latest(rs);
        self.update_max_bw(rs, delivery);
        self.update_congestion_signals(limits);
        let round = (self.rounds.count, self.full_pipe.reached);
        self.aggregation.update(rs.now, rs.newly_acked, self.bw, limits.cwnd, round);
        if self.rounds.start && !rs.app_limited {
            self.full_pipe.on_round(rs.rate);
        }
        self.check_startup_high_loss(rs);
        self.check_drain(rs);
        self.update_cycle(rs, limits);
        self.rtt.update(rs.now, rs.rtt, self.probe_rtt_interval);
        self.check_probe_rtt(rs, limits);
        self.bounds.advance_latest(rs);
        // BoundBWForModel.
        self.bw = self.max_bw().min(self.bounds.bw_shortterm);
    }

    /// `UpdateMaxBw` (§5.5.5).
    fn update_max_bw(&mut self, rs: &Sample, delivery: &Delivery) {
        self.rounds.update(delivery);
        if rs.rate >= self.max_bw() || !rs.app_limited {
            self.bw_filter[0] = self.bw_filter[0].max(rs.rate);
        }
    }

    /// `CheckStartupDone`, `EnterDrain` and `CheckDrainDone` (§5.3.1, §5.3.2).
    fn check_drain(&mut self, rs: &Sample) {
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
        let is_empty = || rs.inflight <= self.quantization_budget(self.bdp(self.bw, 1.0), rs.mss);
        if self.state == State::Drain
            && (self.rounds.count > self.drain_start_round + DRAIN_ROUNDS || is_empty())
        {
            self.start_down(rs.now);
        }
    }
}

impl CongestionControl for Bbr3 {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.initial_cwnd = limits.cwnd;
        // The handshake's round trip is the first.
        let rtt = self.delivery.take().and_then(|delivery| delivery.rtt);
        self.rtt.begin(now, rtt);
        self.aggregation.restart(now);
        self.in_flight.begin(Bytes::ZERO, Bytes::ZERO);
        self.init_pacing(rtt);
        limits.pacing = Some(self.pacing);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        self.in_flight.on_arrival(ack.prior_flight_size);
        let Some(delivery) = &self.delivery.take() else { return };
        if self.recovers_at.is_some_and(|until| ack.snd_una >= until) {
            self.recovers_at = None;
            limits.cwnd = limits.cwnd.max(self.prior_cwnd);
        }
        if self.rtt.min_rtt.is_none() && delivery.rtt.is_some() {
            self.init_pacing(delivery.rtt);
        }
        let mut rs = self.sample(ack, delivery);
        if rs.newly_lost > Bytes::ZERO {
            self.handle_losses(&mut rs, limits);
        }
        self.update_model(&rs, delivery, limits);
        self.restart_from_idle(ack, limits);
        self.set_cwnd(&rs, limits);
        limits.pacing = Some(self.pacing);
        self.in_flight.begin(delivery.total, ack.flight_size);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.save_state_upon_loss(limits);
        self.note_loss(limits);
        self.recovers_at = Some(event.snd_nxt);
    }

    fn on_spurious(&mut self, _now: Instant, limits: &mut Limits) {
        self.recovers_at = None;
        self.handle_spurious_loss(limits);
    }

    fn models_delivery(&self) -> bool {
        true
    }

    /// The draft leaves marks to the future (§3.8).
    fn mark_response(&self) -> MarkResponse {
        MarkResponse::Never
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.rounds.delivered = delivery.total;
        self.delivery = Some(*delivery);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("bandwidth_bps", self.bw.as_bps_f64());
        out.value("pacing_gain", self.state.pacing_gain());
        out.value("pacing_bps", self.pacing.as_bps_f64());
        if let Some(min_rtt) = self.rtt.min_rtt {
            out.value("min_rtt_ms", min_rtt.as_millis_f64());
        }
        if self.bounds.inflight_longterm < Bytes::MAX {
            out.value("inflight_longterm_bytes", self.bounds.inflight_longterm.as_f64());
        }
    }
}

impl Bbr3 {
    /// `HandleRestartFromIdle` and `SetPacingRate`: nothing is in flight, and the application has nothing to send, so what
    /// is sent next comes from idle (§5.4.1).
    fn restart_from_idle(&mut self, ack: &Ack, limits: &mut Limits) {
        let mut gain = self.state.pacing_gain();
        if ack.app_limited && ack.flight_size == Bytes::ZERO {
            self.idle_restart = true;
            self.aggregation.restart(ack.now);
            if self.is_probing_bandwidth() {
                gain = 1.0;
            } else if self.is_probing_rtt() {
                self.check_probe_rtt_done(ack.now, limits);
            }
        }
        self.set_pacing(gain);
    }
}

#[cfg(test)]
mod tests;
