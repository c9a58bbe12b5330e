//! ProbeBW: down, cruise, refill, up (§5.3.3).

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{Bbr3, MIN_PIPE_CWND, Sample, State};
use crate::congestion::Limits;
use crate::random::RandomStream;

/// `BBR.Headroom`: of the long-term flight, the part that is left to others.
const HEADROOM: f64 = 0.15;
/// Round trips after which Reno would have the bandwidth back (§5.3.3.5.3).
const RENO_ROUNDS: u64 = 63;
/// Least time between probes; up to a second more by chance.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// `BBR.bw_probe_up_rounds` at most.
const UP_ROUNDS: u32 = 30;

/// `BBR.ack_phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Where in the cycle the flow is.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// `BBR.cycle_stamp`, `BBR.bw_probe_wait`, and the count that began `BBR.rounds_since_probe_up`.
    stamp: Instant,
    wait: Duration,
    probed_up: u64,
    /// `BBR.bw_probe_up_rounds`, `BBR.bw_probe_up_acked`, and `BBR.probe_up_acked_per_inc`.
    up_rounds: u32,
    up_acked: Bytes,
    acked_per_increase: Bytes,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            stamp: Instant::ZERO,
            wait: Duration::ZERO,
            probed_up: 0,
            up_rounds: 0,
            up_acked: Bytes::ZERO,
            acked_per_increase: Bytes::MAX,
        }
    }
}

impl Bbr3 {
    pub(super) fn is_probing_bandwidth(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.bounds.reset_signals();
        // PickProbeWait. The time decides, as good as chance and the same on every run.
        let mut random = RandomStream::new(now.as_nanos(), "bbr3");
        let begun = random.below(2);
        self.cycle.wait = PROBE_WAIT + Duration::from_secs_f64(random.uniform());
        self.cycle.probed_up = self.rounds.count.saturating_sub(begun);
        self.cycle.acked_per_increase = Bytes::MAX;
        self.cycle.stamp = now;
        self.cycle.ack_phase = AckPhase::Stopping;
        self.rounds.begin();
        self.state = State::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, Bytes::ZERO);
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.begin();
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, rs: &Sample, limits: &Limits) {
        self.cycle.is_bw_probe_sample = true;
        self.cycle.ack_phase = AckPhase::Starting;
        self.rounds.begin();
        self.full_pipe.restart(rs.rate);
        self.state = State::Up;
        self.raise_slope(rs, limits);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, rs: &Sample, limits: &Limits) {
        if !self.full_pipe.reached || self.adapt_long_term_model(rs, limits) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(rs, limits) => self.start_refill(),
            State::Down if self.is_time_to_cruise(rs) => self.state = State::Cruise,
            State::Refill if self.rounds.start => self.start_up(rs, limits),
            State::Up if self.is_time_to_go_down(rs, limits) => {
                self.cycle.prev_probe_too_high = false;
                self.start_down(rs.now);
            }
            _ => {}
        }
    }

    /// `AdaptLongTermModel`; true where it has changed the state.
    fn adapt_long_term_model(&mut self, rs: &Sample, limits: &Limits) -> bool {
        if self.cycle.ack_phase == AckPhase::Starting && self.rounds.start {
            self.cycle.ack_phase = AckPhase::Feedback;
        }
        if self.cycle.ack_phase == AckPhase::Stopping && self.rounds.start {
            self.cycle.is_bw_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.is_probing_bandwidth() && !rs.app_limited {
                // AdvanceMaxBwFilter.
                self.bw_filter = [Rate::ZERO, self.bw_filter[0]];
            }
            let was_careful = self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
            if self.is_probing_bandwidth() && was_careful {
                self.start_refill();
                return true;
            }
        }
        if !self.is_inflight_too_high(rs) && self.bounds.inflight_longterm != Bytes::MAX {
            self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_upward(rs, limits);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, rs: &Sample, limits: &Limits) {
        if !rs.cwnd_limited || limits.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(rs.newly_acked);
        let delta = cycle.up_acked.whole(cycle.acked_per_increase);
        cycle.up_acked -= cycle.acked_per_increase * delta;
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.saturating_add(rs.mss * delta);
        if self.rounds.start {
            self.raise_slope(rs, limits);
        }
    }

    /// `RaiseInflightLongtermSlope`: one segment a round, then two, four and so on.
    fn raise_slope(&mut self, rs: &Sample, limits: &Limits) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(UP_ROUNDS);
        self.cycle.acked_per_increase = (limits.cwnd / growth).max(rs.mss);
    }

    /// `IsTimeToProbeBW` (§5.3.3.5.3): after two to three seconds, or when Reno would.
    fn is_time_to_probe(&self, rs: &Sample, limits: &Limits) -> bool {
        let reno_rounds = self.target_inflight(limits).whole(rs.mss).min(RENO_ROUNDS);
        rs.now.saturating_since(self.cycle.stamp) > self.cycle.wait
            || self.rounds.count - self.cycle.probed_up >= reno_rounds
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, rs: &Sample) -> bool {
        rs.inflight <= self.inflight_with_headroom(rs.mss)
            && rs.inflight <= self.quantization_budget(self.bdp(self.max_bw(), 1.0), rs.mss)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, rs: &Sample, limits: &Limits) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.cycle.prev_probe_too_high && rs.inflight >= longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if rs.cwnd_limited && limits.cwnd >= longterm {
            self.full_pipe.restart(rs.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self, mss: Bytes) -> Bytes {
        let longterm = self.bounds.inflight_longterm;
        if longterm == Bytes::MAX {
            return longterm;
        }
        let headroom = Bytes::from_f64(longterm.as_f64() * HEADROOM).max(mss);
        longterm.saturating_sub(headroom).max(mss * MIN_PIPE_CWND)
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self, limits: &Limits) -> Bytes {
        self.bdp(self.bw, 1.0).min(limits.cwnd)
    }
}
