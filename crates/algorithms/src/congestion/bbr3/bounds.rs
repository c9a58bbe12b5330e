//! What losses tell of the path: for this probing cycle, and for longer (§5.5.10, §5.5.11).

use suimon_units::{Bytes, Rate};

use super::{Bbr3, Sample, State};
use crate::congestion::Limits;

/// `BBR.Beta`: no more than this is given up in a round.
const BETA: f64 = 0.7;
/// `BBRStartupFullLossCnt`: ranges lost in a round that end Startup (§5.3.1.3).
const STARTUP_LOSSES: u32 = 6;

/// The bounds on bandwidth and flight, the largest values where there are none, and the signals of this round.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: Rate,
    pub(super) inflight_shortterm: Bytes,
    pub(super) inflight_longterm: Bytes,
    bw_latest: Rate,
    pub(super) inflight_latest: Bytes,
    loss_round_delivered: Bytes,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// ACKs of this round that told of a loss.
    losses_in_round: u32,
    undo: Undo,
}

/// `BBR.undo_*`.
#[derive(Debug, Clone)]
struct Undo {
    state: Option<State>,
    bw_shortterm: Rate,
    inflight_shortterm: Bytes,
    inflight_longterm: Bytes,
}

impl Default for Bounds {
    fn default() -> Self {
        let undo = Undo {
            state: None,
            bw_shortterm: Rate::ZERO,
            inflight_shortterm: Bytes::ZERO,
            inflight_longterm: Bytes::ZERO,
        };
        Self {
            bw_shortterm: Rate::MAX,
            inflight_shortterm: Bytes::MAX,
            inflight_longterm: Bytes::MAX,
            bw_latest: Rate::ZERO,
            inflight_latest: Bytes::ZERO,
            loss_round_delivered: Bytes::ZERO,
            loss_round_start: false,
            is_loss_in_round: false,
            losses_in_round: 0,
            undo,
        }
    }
}

impl Bounds {
    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (Rate::MAX, Bytes::MAX);
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (Rate::ZERO, Bytes::ZERO);
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest(&mut self, rs: &Sample) {
        self.bw_latest = self.bw_latest.max(rs.rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered());
        self.loss_round_start = rs.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = rs.total;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest(&mut self, rs: &Sample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.rate, rs.delivered());
        }
    }

    /// `SaveStateUponLoss`, but for the window.
    fn save(&mut self) {
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }
}

impl Bbr3 {
    /// `NoteLoss`.
    pub(super) fn note_loss(&mut self, limits: &Limits) {
        if !self.bounds.is_loss_in_round {
            self.bounds.loss_round_delivered = self.rounds.delivered;
            self.save_state_upon_loss(limits);
        }
        self.bounds.is_loss_in_round = true;
    }

    /// `SaveStateUponLoss`.
    pub(super) fn save_state_upon_loss(&mut self, limits: &Limits) {
        self.save_cwnd(limits);
        self.bounds.save();
    }

    /// `HandleLostPacket` for each of the packets that were lost with this ACK. They count as sent when the newest
    /// delivered one was.
    pub(super) fn handle_losses(&mut self, rs: &mut Sample, limits: &Limits) {
        self.note_loss(limits);
        self.bounds.losses_in_round += 1;
        let mut left = rs.newly_lost;
        rs.lost = rs.lost.saturating_sub(left);
        while left > Bytes::ZERO {
            let size = left.min(rs.mss);
            left -= size;
            rs.lost += size;
            if self.cycle.is_bw_probe_sample && self.is_inflight_too_high(rs) {
                let in_flight = self.inflight_at_loss(rs, size);
                self.handle_inflight_too_high(in_flight, rs, limits);
            }
        }
    }

    /// `IsInflightTooHigh`, for connections with selective acknowledgements.
    pub(super) fn is_inflight_too_high(&self, rs: &Sample) -> bool {
        rs.lost.as_f64() > rs.tx_in_flight.as_f64() * self.loss_thresh
    }

    /// `InflightAtLoss`: where in the lost packet of `size` the losses passed the threshold.
    pub(super) fn inflight_at_loss(&self, rs: &Sample, size: Bytes) -> Bytes {
        let inflight_prev = rs.tx_in_flight.saturating_sub(size).as_f64();
        let lost_prev = rs.lost.saturating_sub(size).as_f64();
        let lost_prefix = (self.loss_thresh * inflight_prev - lost_prev) / (1.0 - self.loss_thresh);
        Bytes::from_f64((inflight_prev + lost_prefix).max(0.0))
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, in_flight: Bytes, rs: &Sample, limits: &Limits) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !rs.app_limited {
            let least = Bytes::from_f64(self.target_inflight(limits).as_f64() * BETA);
            self.bounds.inflight_longterm = in_flight.max(least);
        }
        if self.state == State::Up {
            self.bounds.undo.state = Some(State::Up);
            self.start_down(rs.now);
        }
    }

    /// `UpdateCongestionSignals`, but for the bandwidth.
    pub(super) fn update_congestion_signals(&mut self, limits: &Limits) {
        if !self.bounds.loss_round_start {
            return;
        }
        self.adapt_lower_bounds(limits);
        self.bounds.is_loss_in_round = false;
    }

    /// `AdaptLowerBoundsFromCongestion`.
    fn adapt_lower_bounds(&mut self, limits: &Limits) {
        let is_probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        if is_probing || !self.bounds.is_loss_in_round {
            return;
        }
        let max_bw = self.max_bw();
        let bounds = &mut self.bounds;
        // InitLowerBounds, LossLowerBounds.
        if bounds.bw_shortterm == Rate::MAX {
            bounds.bw_shortterm = max_bw;
        }
        if bounds.inflight_shortterm == Bytes::MAX {
            bounds.inflight_shortterm = limits.cwnd;
        }
        bounds.bw_shortterm = bounds.bw_latest.max(bounds.bw_shortterm.scaled(BETA));
        let kept = Bytes::from_f64(bounds.inflight_shortterm.as_f64() * BETA);
        bounds.inflight_shortterm = bounds.inflight_latest.max(kept);
    }

    /// `CheckStartupHighLoss` (§5.3.1.3), once a round in recovery.
    pub(super) fn check_startup_high_loss(&mut self, rs: &Sample) {
        if !self.bounds.loss_round_start {
            return;
        }
        let losses = core::mem::take(&mut self.bounds.losses_in_round);
        let is_high = rs.in_recovery && losses >= STARTUP_LOSSES && self.is_inflight_too_high(rs);
        if self.state == State::Startup && is_high {
            self.bounds.undo.state = Some(State::Startup);
            self.full_pipe.reached = true;
            let bdp = self.bdp(self.bw, 1.0);
            self.bounds.inflight_longterm = bdp.max(self.bounds.inflight_latest);
        }
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss(&mut self, limits: &mut Limits) {
        limits.cwnd = limits.cwnd.max(self.prior_cwnd);
        self.full_pipe.reset();
        let bounds = &mut self.bounds;
        bounds.is_loss_in_round = false;
        bounds.bw_shortterm = bounds.bw_shortterm.max(bounds.undo.bw_shortterm);
        bounds.inflight_shortterm = bounds.inflight_shortterm.max(bounds.undo.inflight_shortterm);
        bounds.inflight_longterm = bounds.inflight_longterm.max(bounds.undo.inflight_longterm);
        match bounds.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if !self.is_probing_rtt() {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && !self.is_probing_rtt() => self.start_refill(),
            _ => {}
        }
    }
}
