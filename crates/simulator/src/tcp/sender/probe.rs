//! The sender's timer: retransmission timeout, tail loss probe (RFC 8985 §7) or reordering window (RFC 8985 §6.3), as
//! Linux 6 has them.

use suimon_algorithms::congestion::CongestionKind;
use suimon_units::{Bytes, Duration, Instant};

use super::{Phase, Sender};
use crate::packet::Packet;
use crate::tcp::scoreboard::{Look, Update};

/// Linux adds two ticks to such a wait (`TCP_TIMEOUT_MIN`), 4 ms each where a second has 250.
const TIMEOUT_MIN: Duration = Duration::from_millis(8);

/// When the timer runs out, and for what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    pub(super) at: Instant,
    pub(super) purpose: Purpose,
}

/// What the timer is for. A sender has one timer, as in Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Nothing was acknowledged for a retransmission timeout.
    Retransmission,
    /// Nothing was heard for two round-trip times.
    LossProbe,
    /// Segments that were overtaken may still come.
    Reordering,
}

/// A tail loss probe without an answer yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// `snd_nxt` once it was sent (`TLP.end_seq`).
    end: u64,
    /// It was a segment sent before (`TLP.is_retrans`).
    is_retransmission: bool,
}

impl Sender {
    pub(super) fn wait_for_timeout(&mut self, now: Instant) {
        self.timer = Some(Timer { at: self.rto.deadline(now), purpose: Purpose::Retransmission });
    }

    /// Waits for the rest of the timeout that began at `since`.
    fn resume_timeout(&mut self, now: Instant, since: Instant) {
        let at = self.rto.deadline(since).max(now);
        self.timer = Some(Timer { at, purpose: Purpose::Retransmission });
    }

    pub(super) fn waits_for_reordered(&self) -> bool {
        self.timer.is_some_and(|timer| timer.purpose == Purpose::Reordering)
    }

    /// Segments count as lost unless they come within `wait`.
    pub(super) fn wait_for_reordered(&mut self, now: Instant, wait: Duration) {
        let at = (now + wait + TIMEOUT_MIN).min(self.rto.deadline(now));
        self.timer = Some(Timer { at, purpose: Purpose::Reordering });
    }

    /// Schedules a probe where the flight may end in a loss that nothing tells of (RFC 8985 §7.2), no later than the
    /// timeout that began to run at `since`.
    #[inline(always)]
    pub(super) fn wait_for_probe(&mut self, now: Instant, since: Instant) {
        if self.profile.tail_loss_probe && !self.board.is_empty() {
            self.schedule_probe(now, since);
        }
    }

    fn schedule_probe(&mut self, now: Instant, since: Instant) {
        let is_quiet = match self.phase {
            Phase::Open => !self.board.has_sacked(),
            Phase::Cut { .. } => true,
            _ => false,
        };
        if !is_quiet {
            if self.timer.is_some_and(|timer| timer.purpose == Purpose::LossProbe) {
                self.resume_timeout(now, since);
            }
            return;
        }
        let Some(srtt) = self.rto.srtt() else { return };
        let is_single = self.board.snd_nxt() - self.board.snd_una() <= self.profile.mss.get();
        // The answer to a single segment may be held back.
        let margin = if is_single { self.profile.rto_min } else { TIMEOUT_MIN };
        let (probe, timeout) = (now + srtt * 2 + margin, self.rto.deadline(since));
        let at = if timeout > now { probe.min(timeout) } else { probe };
        self.timer = Some(Timer { at, purpose: Purpose::LossProbe });
    }

    /// Nothing was heard for long: one segment goes out, new data if there is any (RFC 8985 §7.3).
    pub(super) fn send_probe(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.resume_timeout(now, self.board.first_sent_at().unwrap_or(now));
        if self.probe.is_some() {
            return;
        }
        // The congestion window does not hold a probe back.
        let is_retransmission = match self.new_segment(now, Bytes::ZERO) {
            Ok(len) => {
                self.send_new(now, len, out);
                false
            }
            Err(_) => {
                let Some(last) = self.board.last() else { return };
                let mut packet = self.data_packet(now, last.seq, last.len);
                packet.ecn = self.ecn_of_control();
                self.board.on_probed(now);
                self.counters.retransmissions += 1;
                self.account(now, &packet);
                out.push(packet);
                true
            }
        };
        self.probe = Some(Probe { end: self.board.snd_nxt(), is_retransmission });
        self.wait_for_timeout(now);
    }

    /// Reads from an acknowledgement whether the probe repaired a loss, which is congestion (RFC 8985 §7.4.2).
    pub(super) fn judge_probe(
        &mut self,
        now: Instant,
        probe: Probe,
        update: &Update,
        prior_flight_size: Bytes,
    ) {
        let snd_una = self.board.snd_una();
        if snd_una < probe.end {
            return;
        }
        // Where the original came too, its acknowledgement came before one that moves nothing.
        let both_came = update.newly_acked == 0 && update.delivered == 0;
        if !probe.is_retransmission || both_came {
            self.probe = None;
        } else if snd_una > probe.end {
            self.notify(now, CongestionKind::Loss, prior_flight_size);
            if self.deliveries.is_none() {
                self.limits.cwnd = self.limits.cwnd.min(self.limits.ssthresh);
            }
        }
    }

    /// Those overtaken have had their time: what has not come is lost.
    pub(super) fn on_reordering_timeout(&mut self, now: Instant) {
        let prior_flight_size = self.board.flight_size();
        self.board.detect_by_time(&self.look(now));
        let flight_size = self.board.flight_size();
        if flight_size < prior_flight_size && !matches!(self.phase, Phase::Recovery { .. }) {
            let update = Update { delivered: self.profile.mss.get(), ..Update::default() };
            let progress = self.progress(&update);
            self.begin_recovery(now, prior_flight_size, progress);
        }
        self.resume_timeout(now, self.board.first_sent_at().unwrap_or(now));
    }

    pub(super) fn look(&self, now: Instant) -> Look {
        let snd_una = self.board.snd_una();
        Look {
            now,
            mss: self.profile.mss,
            in_recovery: match &self.phase {
                Phase::Recovery { until, .. } | Phase::Loss { until, .. } => snd_una < *until,
                Phase::Open | Phase::Cut { .. } => false,
            },
            srtt: self.rto.srtt().unwrap_or_default(),
        }
    }
}
