//! The smallest round-trip time, and ProbeRTT (§5.3.4, §5.5.7).

use suimon_units::{Bytes, Duration, Instant};

use super::{Bbr3, MIN_PIPE_CWND, Sample, State};
use crate::congestion::Limits;
use crate::congestion::bbr3::cycle::AckPhase;

/// `BBR.MinRTTFilterLen`.
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTCwndGain`.
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// `BBR.min_rtt` and the clock of ProbeRTT.
#[derive(Debug, Clone, Default)]
pub(super) struct MinRtt {
    pub(super) min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    /// `BBR.probe_rtt_done_stamp`, none until the flight is small.
    done_stamp: Option<Instant>,
    round_done: bool,
}

impl MinRtt {
    /// The handshake took `rtt`.
    pub(super) fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        (self.min_rtt, self.min_rtt_stamp) = (rtt, now);
        (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (rtt, now);
    }

    /// `UpdateMinRTT`.
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>, interval: Duration) {
        self.probe_rtt_expired = now.saturating_since(self.probe_rtt_min_stamp) > interval;
        if let Some(rtt) = rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (Some(rtt), now);
        }
        let min_rtt_expired = now.saturating_since(self.min_rtt_stamp) > MIN_RTT_FILTER;
        if let Some(least) = self.probe_rtt_min_delay
            && (min_rtt_expired || self.min_rtt.is_none_or(|min_rtt| least < min_rtt))
        {
            (self.min_rtt, self.min_rtt_stamp) = (Some(least), self.probe_rtt_min_stamp);
        }
    }
}

impl Bbr3 {
    pub(super) fn is_probing_rtt(&self) -> bool {
        self.state == State::ProbeRtt
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample, limits: &mut Limits) {
        if !self.is_probing_rtt() && self.rtt.probe_rtt_expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd(limits);
            self.rtt.done_stamp = None;
            self.cycle.ack_phase = AckPhase::Stopping;
            self.rounds.begin();
        }
        if self.is_probing_rtt() {
            self.handle_probe_rtt(rs, limits);
        }
        self.idle_restart = false;
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, rs: &Sample, limits: &mut Limits) {
        self.rounds.hold_back(rs.inflight);
        if self.rtt.done_stamp.is_some() {
            self.rtt.round_done |= self.rounds.start;
            if self.rtt.round_done {
                self.check_probe_rtt_done(rs.now, limits);
            }
        } else if rs.inflight <= self.probe_rtt_cwnd(rs.mss) {
            self.rtt.done_stamp = Some(rs.now + self.probe_rtt_time);
            self.rtt.round_done = false;
            self.rounds.begin();
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant, limits: &mut Limits) {
        if self.rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.rtt.probe_rtt_min_stamp = now;
        limits.cwnd = limits.cwnd.max(self.prior_cwnd);
        self.bounds.reset_short_term();
        if self.full_pipe.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self, mss: Bytes) -> Bytes {
        self.bdp(self.bw, PROBE_RTT_CWND_GAIN).max(mss * MIN_PIPE_CWND)
    }
}
