//! How a sender goes through congestion: recovery, timeouts, and mistakes about either.

use suimon_algorithms::congestion::{Congestion, CongestionKind};
use suimon_algorithms::queue::Ecn;
use suimon_model::{CwndValidation, LossDetection};
use suimon_results::EventKind;
use suimon_units::{Bytes, Instant};

use super::{Connection, Sender, StoppedBy};
use crate::packet::Packet;
use crate::tcp::recovery::{Progress, Reduction};
use crate::tcp::scoreboard::Update;

/// New segments that F-RTO sends to find out (RFC 5682 §3.1, step 2b).
pub(super) const F_RTO_PROBES: u64 = 2;

/// Where the connection stands with congestion.
#[derive(Debug)]
pub(super) enum Phase {
    /// All is well.
    Open,
    /// The window shrinks for a mark, until all that was sent before is acknowledged.
    Cut { until: u64, reduction: Reduction },
    /// Lost segments are being retransmitted, likewise.
    Recovery { until: u64, reduction: Reduction },
    /// After a timeout, beginning anew, likewise until. It may turn out to be a mistake (F-RTO with SACK, RFC 5682 §3.1).
    Loss { until: u64, una_at_timeout: u64, f_rto: bool },
}

impl Sender {
    /// Moves from phase to phase as the acknowledgement asks for.
    pub(super) fn advance_phase(
        &mut self,
        now: Instant,
        packet: &Packet,
        update: &Update,
        prior_flight_size: Bytes,
        was_unnecessary: bool,
    ) {
        if self.first_retransmission.is_some()
            && matches!(self.phase, Phase::Open)
            && !self.board.has_retransmissions_out()
        {
            self.first_retransmission = None;
        }
        if was_unnecessary {
            if matches!(self.phase, Phase::Recovery { .. }) {
                self.board.saw_late(self.board.snd_una() - update.newly_acked, self.profile.mss);
            }
            if !self.waits_for_copies() {
                self.restore(now);
            }
        }
        match &self.phase {
            Phase::Open => {
                if packet.ecn_flag && self.ecn != Ecn::NotCapable {
                    self.begin_cut(now, prior_flight_size, self.progress(update));
                }
            }
            Phase::Cut { .. } | Phase::Recovery { .. } => self.advance_reduction(update),
            Phase::Loss { .. } => self.advance_loss(now, update),
        }
        if matches!(self.phase, Phase::Loss { .. }) && update.lost_copy && self.board.has_clock() {
            // As in Linux, which takes this for congestion anew (`FLAG_LOST_RETRANS` in `tcp_fastretrans_alert`).
            self.begin_recovery(now, prior_flight_size, self.progress(update));
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
    pub(super) fn was_unnecessary(&self, packet: &Packet, update: &Update) -> bool {
        !matches!(self.phase, Phase::Open)
            && self.profile.timestamps
            && update.newly_acked > 0
            && self.undo.is_some()
            && self.first_retransmission.is_some_and(|at| packet.ts_ecr < at)
    }

    /// Within a recovery the window is not restored before all retransmissions were answered, and nothing more is
    /// retransmitted until then (`tcp_try_undo_partial` of Linux).
    pub(super) fn waits_for_copies(&self) -> bool {
        let is_under_way = match &self.phase {
            Phase::Recovery { until, .. } => self.board.snd_una() < *until,
            _ => false,
        };
        is_under_way && self.board.has_copies_in_flight()
    }

    fn restore(&mut self, now: Instant) {
        let Some(undo) = self.undo.take() else { return };
        self.limits.cwnd = self.limits.cwnd.max(undo.cwnd);
        self.limits.ssthresh = undo.ssthresh;
        self.board.forgive();
        self.phase = Phase::Open;
        if self.board.has_clock() {
            self.board.detect_by_time(&self.look(now));
        }
        self.cc.on_spurious(now, &mut self.limits);
        self.counters.spurious += 1;
        self.counters.event = Some(EventKind::Spurious);
    }

    pub(super) fn notify(&mut self, now: Instant, kind: CongestionKind, flight_size: Bytes) {
        // A reduction of any kind ends the search for a loss at the tail.
        self.probe = None;
        let snd_nxt = self.board.snd_nxt();
        let mss = self.profile.mss;
        let used_window = match self.profile.cwnd_validation {
            CwndValidation::Flight => flight_size,
            // An even number of segments, since Linux halves to whole ones (`tcp_reno_ssthresh`). With half a segment left over,
            // a round would confirm less than `cwnd`, and the window would grow by less than a segment in it.
            CwndValidation::Window => mss * (self.limits.cwnd.whole(mss) & !1),
        };
        let event = Congestion { now, kind, flight_size, used_window, snd_nxt, mss };
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
                self.undo = Some(self.limits);
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

    /// RFC 5682 §3.1, steps 2 and 3, as Linux has them (`tcp_process_loss`).
    fn advance_loss(&mut self, now: Instant, update: &Update) {
        let &Phase::Loss { until, una_at_timeout, f_rto } = &self.phase else { return };
        let is_over = self.board.snd_una() >= until;
        let has_probed = self.board.snd_nxt() > until;
        let advanced = update.newly_acked > 0;
        if f_rto && update.first_original.is_some_and(|end| end <= until) {
            // (3b) What arrived was sent before the timeout, and once only.
            self.restore(now);
        } else if is_over {
            self.board.on_recovered();
            self.phase = Phase::Open;
        } else if f_rto && !has_probed && advanced {
            // (2b) New data tells, unless there is none.
            let may_probe = self.new_segment(now, self.board.flight_size());
            let goes_on = !matches!(may_probe, Err(StoppedBy::Application | StoppedBy::PeerWindow));
            self.new_data_first = goes_on;
            self.phase = Phase::Loss { until, una_at_timeout, f_rto: goes_on };
        } else if f_rto && has_probed && (update.sacked || !advanced) {
            // (3a) The new data arrived, and nothing of before.
            self.phase = Phase::Loss { until, una_at_timeout, f_rto: false };
        }
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
        let snd_una = self.board.snd_una();
        // As in Linux: within a recovery the window was cut for this flight already, and after another timeout there is
        // congestion anew only if something got through between.
        let (is_news, in_doubt) = match &self.phase {
            Phase::Open => (true, true),
            Phase::Cut { .. } => (false, true),
            Phase::Recovery { .. } => (false, false),
            Phase::Loss { una_at_timeout, .. } => (snd_una > *una_at_timeout, snd_una == *una_at_timeout),
        };
        if is_news {
            self.undo = Some(self.limits);
            self.notify(now, CongestionKind::Timeout, self.board.flight_size());
        }
        self.board.on_timeout(now);
        self.limits.cwnd = self.board.flight_size() + self.profile.mss;
        let f_rto = self.profile.f_rto && in_doubt;
        let until = self.board.snd_nxt();
        self.phase = Phase::Loss { until, una_at_timeout: snd_una, f_rto };
    }
}
