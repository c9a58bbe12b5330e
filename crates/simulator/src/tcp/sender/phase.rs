//! How a sender goes through congestion: recovery, timeouts, and mistakes about either.

use suimon_algorithms::congestion::{Congestion, CongestionKind, Limits};
use suimon_algorithms::queue::Ecn;
use suimon_model::{CwndValidation, LossDetection};
use suimon_results::EventKind;
use suimon_units::{Bytes, Instant};

use super::{Connection, Sender, StoppedBy};
use crate::packet::Packet;
use crate::tcp::recovery::{Progress, Reduction};
use crate::tcp::scoreboard::Update;

/// Congestion window after a timeout that F-RTO found to be real (RFC 5682 §2.1, step 3).
const WINDOW_AFTER_REAL_TIMEOUT: u64 = 3;
/// New segments that F-RTO sends to find out (RFC 5682 §2.1, step 2b).
const F_RTO_PROBES: u64 = 2;

/// Where the connection stands with congestion.
#[derive(Debug)]
pub(super) enum Phase {
    /// All is well.
    Open,
    /// The window shrinks for a mark, until all that was sent before is acknowledged.
    Cut { until: u64, reduction: Reduction },
    /// Lost segments are being retransmitted, likewise.
    Recovery { until: u64, reduction: Reduction },
    /// After a timeout, finding out whether it was a mistake (RFC 5682).
    ForwardRto { until: u64, probing: bool },
    /// After a timeout, beginning anew, likewise until.
    Loss { until: u64, una_at_timeout: u64 },
}

/// How things were before the first retransmission of an episode, in case it was a mistake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Undo {
    limits: Limits,
    pub(super) first_retransmission: Option<Instant>,
}

impl Sender {
    /// Moves from phase to phase as the acknowledgement asks for.
    pub(super) fn advance_phase(
        &mut self,
        now: Instant,
        packet: &Packet,
        update: &Update,
        prior_flight_size: Bytes,
    ) {
        if self.was_unnecessary(packet, update) {
            self.restore(now, update);
        }
        match &self.phase {
            Phase::Open => {
                if packet.ecn_flag && self.ecn != Ecn::NotCapable {
                    self.begin_cut(now, prior_flight_size, self.progress(update));
                }
            }
            Phase::Cut { .. } | Phase::Recovery { .. } => self.advance_reduction(update),
            Phase::ForwardRto { until, probing } => {
                let (until, probing) = (*until, *probing);
                self.advance_forward_rto(now, until, probing, update);
            }
            Phase::Loss { until, .. } => {
                if self.board.snd_una() >= *until {
                    self.board.on_recovered();
                    self.phase = Phase::Open;
                }
            }
        }
        if matches!(self.phase, Phase::Open | Phase::Cut { .. }) && self.board.has_lost() {
            self.begin_recovery(now, prior_flight_size, self.progress(update));
        }
    }

    /// Moves the window on its way to `ssthresh`, or ends the reduction.
    fn advance_reduction(&mut self, update: &Update) {
        let progress = self.progress(update);
        let is_recovery = matches!(self.phase, Phase::Recovery { .. });
        let (Phase::Cut { until, reduction } | Phase::Recovery { until, reduction }) = &mut self.phase else {
            return;
        };
        // Without SACK the first acknowledgement of new data ends fast recovery (RFC 5681 §3.2, step 6).
        let ends_with_any_ack = self.profile.loss_detection == LossDetection::DuplicateAcks;
        if self.board.snd_una() < *until && !(is_recovery && ends_with_any_ack && update.newly_acked > 0) {
            self.limits.cwnd = reduction.on_ack(self.limits.cwnd, progress, self.profile.mss);
            return;
        }
        self.limits.cwnd = reduction.exit(self.limits.cwnd);
        if is_recovery {
            self.board.on_recovered();
        }
        self.phase = Phase::Open;
    }

    pub(super) fn progress(&self, update: &Update) -> Progress {
        Progress {
            delivered: Bytes::new(update.delivered),
            flight_size: self.board.flight_size(),
            ssthresh: self.limits.ssthresh,
            is_safe: update.newly_acked > 0 && !update.lost,
        }
    }

    /// The Eifel detection algorithm (RFC 3522): the acknowledged segment was sent before the retransmission.
    fn was_unnecessary(&self, packet: &Packet, update: &Update) -> bool {
        let retransmitted = self.undo.and_then(|undo| undo.first_retransmission);
        self.profile.timestamps
            && update.newly_acked > 0
            && !matches!(self.phase, Phase::Open)
            && retransmitted.is_some_and(|at| packet.ts_ecr < at)
    }

    fn restore(&mut self, now: Instant, update: &Update) {
        let Some(undo) = self.undo.take() else { return };
        self.limits.cwnd = match self.phase {
            // The probes' part is no window that was ever earned.
            Phase::ForwardRto { .. } => undo.limits.cwnd,
            _ => self.limits.cwnd.max(undo.limits.cwnd),
        };
        self.limits.ssthresh = undo.limits.ssthresh;
        self.board.forgive(self.board.snd_una() - update.newly_acked, self.profile.mss);
        self.phase = Phase::Open;
        self.cc.on_spurious(now, &mut self.limits);
        self.counters.spurious += 1;
        self.counters.event = Some(EventKind::Spurious);
    }

    pub(super) fn notify(&mut self, now: Instant, kind: CongestionKind, flight_size: Bytes) {
        // A reduction of any kind ends the search for a loss at the tail.
        self.probe = None;
        let snd_nxt = self.board.snd_nxt();
        let used_window = match self.profile.cwnd_validation {
            CwndValidation::Flight => flight_size,
            CwndValidation::Window => self.limits.cwnd,
        };
        let event = Congestion { now, kind, flight_size, used_window, snd_nxt, mss: self.profile.mss };
        self.cc.on_congestion(&event, &mut self.limits);
        // Whatever the reason (RFC 3168 §6.1.2), or the receiver would echo a mark beyond this cut.
        self.announce_cut = true;
        self.counters.window_cuts += 1;
        self.counters.event = Some(match kind {
            CongestionKind::Loss => EventKind::Recovery,
            CongestionKind::Ecn => EventKind::EcnCut,
            CongestionKind::Timeout => EventKind::Timeout,
        });
    }

    fn begin_cut(&mut self, now: Instant, prior_flight_size: Bytes, progress: Progress) {
        self.notify(now, CongestionKind::Ecn, prior_flight_size);
        self.undo = None;
        let target = self.window_after_mark(prior_flight_size);
        let mut reduction = self.reduction(target, prior_flight_size);
        if self.hears_shares {
            // The whole cut comes at once (RFC 8257 §3.3): later segments would be marked too, and cut once more.
            self.limits.cwnd = self.limits.cwnd.min(self.limits.ssthresh);
            reduction = reduction.done();
        }
        self.limits.cwnd = reduction.on_ack(self.limits.cwnd, progress, self.profile.mss);
        self.phase = Phase::Cut { until: self.board.snd_nxt(), reduction };
    }

    pub(super) fn begin_recovery(&mut self, now: Instant, prior_flight_size: Bytes, progress: Progress) {
        let mss = self.profile.mss;
        let reduction = match std::mem::replace(&mut self.phase, Phase::Open) {
            // A mark has cut the window for this flight already.
            Phase::Cut { reduction, .. } if !self.hears_shares => reduction,
            _ => {
                // While older retransmissions are out, an echo older than the next one proves nothing.
                let provable = !self.board.has_retransmissions_in_flight();
                self.undo = provable.then_some(Undo { limits: self.limits, first_retransmission: None });
                self.notify(now, CongestionKind::Loss, prior_flight_size);
                let mut reduction = self.reduction(self.limits.ssthresh, prior_flight_size);
                self.limits.cwnd = reduction.on_ack(self.limits.cwnd, progress, mss);
                reduction
            }
        };
        // Fast retransmit sends the first lost segment whatever the window says.
        self.limits.cwnd = self.limits.cwnd.max(progress.flight_size + mss);
        self.phase = Phase::Recovery { until: self.board.snd_nxt(), reduction };
    }

    /// `ssthresh` has a floor of two segments (RFC 5681 §3.1, eq. 4); where it lies there, a stack may
    /// halve the window all the same and grow back to it in slow start.
    fn window_after_mark(&self, flight_size: Bytes) -> Bytes {
        let (ssthresh, mss) = (self.limits.ssthresh, self.profile.mss);
        if self.limits.cwnd < ssthresh {
            // Congestion control has lowered it already.
            return self.limits.cwnd;
        }
        let floor = mss * u64::from(self.profile.mark_floor);
        if ssthresh <= mss * 2 { ssthresh.min((flight_size / 2).max(floor)) } else { ssthresh }
    }

    fn reduction(&self, target: Bytes, flight_size: Bytes) -> Reduction {
        let algorithm = self.deliveries.is_none().then_some(self.profile.recovery);
        Reduction::new(algorithm, self.limits.cwnd, target, flight_size)
    }

    /// RFC 5682 §2.1, steps 2 and 3.
    fn advance_forward_rto(&mut self, now: Instant, until: u64, probing: bool, update: &Update) {
        let mss = self.profile.mss;
        let advanced = update.newly_acked > 0;
        if advanced && probing {
            // (3b) What arrived was not retransmitted.
            self.restore(now, update);
        } else if self.board.snd_una() >= until {
            // Everything of before is acknowledged, which says nothing about the timeout.
            self.phase = Phase::Open;
        } else if advanced {
            let flight_size = self.board.flight_size();
            self.limits.cwnd = flight_size + mss * F_RTO_PROBES;
            self.phase = Phase::ForwardRto { until, probing: true };
            let verdict = self.new_segment(now, flight_size);
            if matches!(verdict, Err(StoppedBy::Application | StoppedBy::PeerWindow)) {
                // Nothing to probe with, and waiting for it might take another timeout.
                self.limits.cwnd = mss * 2;
                self.retransmit_rest(until);
            }
        } else {
            self.limits.cwnd = mss * if probing { WINDOW_AFTER_REAL_TIMEOUT } else { 1 };
            self.retransmit_rest(until);
        }
    }

    /// The timeout was real: segments sent before it are lost, but for those retransmitted since.
    fn retransmit_rest(&mut self, until: u64) {
        self.board.mark_lost_below(until);
        self.phase = Phase::Loss { until, una_at_timeout: self.board.snd_una() };
    }

    /// The retransmission timer ran out.
    pub(super) fn on_timeout(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.counters.timeouts += 1;
        self.counters.event = Some(EventKind::Timeout);
        self.rto.back_off();
        self.wait_for_timeout(now);
        self.probe = None;
        if self.connection != Connection::Established {
            self.open_again(now, out);
            return;
        }
        let is_news = match &self.phase {
            Phase::Open => true,
            // As in Linux: the window was cut for this flight already.
            Phase::Cut { .. } | Phase::Recovery { .. } | Phase::ForwardRto { .. } => false,
            // A retransmission was lost too: congestion anew only if something got through between.
            Phase::Loss { una_at_timeout, .. } => self.board.snd_una() > *una_at_timeout,
        };
        let was_open = matches!(self.phase, Phase::Open);
        if was_open {
            self.undo = Some(Undo { limits: self.limits, first_retransmission: None });
        }
        if is_news {
            self.notify(now, CongestionKind::Timeout, self.board.flight_size());
        }
        self.limits.cwnd = self.profile.mss;
        let until = self.board.snd_nxt();
        match self.board.first() {
            Some(first) if self.profile.f_rto && was_open => {
                self.phase = Phase::ForwardRto { until, probing: false };
                self.retransmit(now, first, out);
            }
            _ => {
                self.board.mark_all_lost();
                self.phase = Phase::Loss { until, una_at_timeout: self.board.snd_una() };
            }
        }
    }
}
