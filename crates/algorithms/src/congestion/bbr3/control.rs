//! What the model means for the pacing rate and the window (§5.6).

use suimon_units::{Bytes, Duration, Rate};

use super::probe_rtt::PROBE_RTT_CWND_GAIN;
use super::{Bbr3, Sample, State};
use crate::congestion::Limits;

/// `BBR.MinPipeCwnd`, in segments.
pub(super) const MIN_PIPE_CWND: u64 = 4;
/// `BBR.PacingMarginPercent`: paced at one hundredth less.
const PACING_MARGIN: f64 = 0.99;
/// `BBR.StartupPacingGain`, 4 ln 2.
pub(super) const STARTUP_PACING_GAIN: f64 = 2.772_588_722_239_781;
/// `BBR.DefaultCwndGain`.
const DEFAULT_CWND_GAIN: f64 = 2.0;
/// The largest `C.send_quantum`.
const MAX_QUANTUM: Bytes = Bytes::new(64 * 1_024);
/// `BBR.offload_budget` of TCP, in quanta (§5.5.8.1).
const BUDGET_QUANTA: u64 = 3;

impl State {
    /// `BBR.pacing_gain` (§5.6.1).
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    /// `BBR.cwnd_gain` (§5.6.1).
    fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => DEFAULT_CWND_GAIN,
        }
    }
}

impl Bbr3 {
    /// `BDPMultiple`.
    pub(super) fn bdp(&self, bandwidth: Rate, gain: f64) -> Bytes {
        match self.rtt.min_rtt {
            Some(min_rtt) => Bytes::from_f64(bandwidth.amount_in(min_rtt).as_f64() * gain),
            None => self.initial_cwnd,
        }
    }

    /// `SetSendQuantum`: a millisecond of the pacing rate.
    pub(super) fn send_quantum(&self, mss: Bytes) -> Bytes {
        self.pacing.amount_in(Duration::from_millis(1)).min(MAX_QUANTUM).max(mss * 2)
    }

    /// `QuantizationBudget`.
    pub(super) fn quantization_budget(&self, inflight_cap: Bytes, mss: Bytes) -> Bytes {
        let cap = inflight_cap.max(self.send_quantum(mss) * BUDGET_QUANTA).max(mss * MIN_PIPE_CWND);
        if self.state == State::Up { cap.saturating_add(mss * 2) } else { cap }
    }

    /// `InitPacingRate`.
    pub(super) fn init_pacing(&mut self, rtt: Option<Duration>) {
        let rtt = rtt.filter(|rtt| *rtt > Duration::ZERO).unwrap_or(Duration::from_millis(1));
        self.pacing = Rate::of(self.initial_cwnd, rtt).scaled(STARTUP_PACING_GAIN);
    }

    /// `SetPacingRateWithGain`.
    pub(super) fn set_pacing(&mut self, gain: f64) {
        let rate = self.bw.scaled(gain * PACING_MARGIN);
        if rate > Rate::ZERO && (self.full_pipe.reached || rate > self.pacing) {
            self.pacing = rate;
        }
    }

    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self, limits: &Limits) {
        let undisturbed = self.recovers_at.is_none() && !self.is_probing_rtt();
        self.prior_cwnd = if undisturbed { limits.cwnd } else { self.prior_cwnd.max(limits.cwnd) };
    }

    /// `SetCwnd`.
    pub(super) fn set_cwnd(&mut self, rs: &Sample, limits: &mut Limits) {
        let wanted = self.bdp(self.bw, self.state.cwnd_gain()).saturating_add(self.aggregation.extra_acked());
        let max_inflight = self.quantization_budget(wanted, rs.mss);
        let grown = limits.cwnd.saturating_add(rs.newly_acked);
        if self.full_pipe.reached {
            limits.cwnd = grown.min(max_inflight);
        } else if limits.cwnd < max_inflight || rs.total < self.initial_cwnd {
            limits.cwnd = grown;
        }
        limits.cwnd = limits.cwnd.max(rs.mss * MIN_PIPE_CWND);
        if self.is_probing_rtt() {
            limits.cwnd = limits.cwnd.min(self.probe_rtt_cwnd(rs.mss));
        }
        self.bound_cwnd(rs.mss, limits);
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd(&self, mss: Bytes, limits: &mut Limits) {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(mss),
            State::Startup | State::Drain => Bytes::MAX,
        };
        let cap = cap.min(self.bounds.inflight_shortterm).max(mss * MIN_PIPE_CWND);
        limits.cwnd = limits.cwnd.min(cap);
    }
}
