//! Slow start, which is that of the algorithm below until the queue begins to stand (7).

use suimon_units::Bytes;

use super::path::{FULL_LOSES, share};
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, Congestion, CongestionControl, CongestionKind, Limits};

/// Samples of a round in slow start after which the queue is looked at (HyStart takes as many).
const SAMPLES_IN_STARTUP: u64 = 8;

impl<C: CongestionControl> FsAtOpen<C> {
    /// The queue begins to stand, so slow start is over.
    fn end_startup(&mut self, ack: &Ack, rcv_bytes: u64, q: u64) {
        let mss = ack.mss.get();
        self.rcv_bytes = rcv_bytes;
        self.window = rcv_bytes.saturating_add(self.backlog(mss, q)).max(4 * mss);
        self.begin_drain(ack, true, false);
    }

    /// In a round, once enough samples came: whether twice (2) waits.
    pub(super) fn look(&mut self, ack: &Ack) {
        if self.round.samples != SAMPLES_IN_STARTUP || self.round.end == 0 || self.round.is_over(ack) {
            return;
        }
        let q = self.path.queueing(self.round.low);
        let rtt = self.round.low + self.way_back.wait();
        let flight = ack.flight_size.get().saturating_add(ack.delivered.get());
        if share(flight, q, rtt) > self.backlog(ack.mss.get(), q).saturating_mul(2) {
            self.end_startup(ack, share(flight, self.path.rtt_min(), rtt), q);
        }
    }

    /// A round with the queueing delay `q`, which took `elapsed`.
    pub(super) fn end_startup_round(&mut self, ack: &Ack, q: u64, elapsed: u64) {
        let mss = ack.mss.get();
        let own = share(self.round.delivered, q, elapsed);
        if self.round.loses(FULL_LOSES, mss) {
            // Lost beyond what a radio loses: the queue is full and too short to be seen.
            self.window = (self.round.delivered * 7 / 8).max(4 * mss);
            self.mode = Mode::Steady;
        } else if own > self.backlog(mss, q).saturating_mul(2) {
            self.end_startup(ack, self.rcv_bytes, q);
        }
    }

    /// A loss, or a mark.
    pub(super) fn lose_in_startup(&mut self, event: &Congestion, limits: &mut Limits) {
        let mss = event.mss.get();
        let q = if self.round.low == u64::MAX { 0 } else { self.path.queueing(self.round.low) };
        if q > self.path.rtt_min() / 4 || event.kind == CongestionKind::Ecn {
            self.window = (self.forward_part(event.flight_size) / 2).max(4 * mss);
            self.mode = Mode::Steady;
            limits.ssthresh = Bytes::new(self.window);
        } else {
            // As (10) of the paper: nothing is queued, so the loss is the radio's.
            self.bears_loss = true;
            limits.ssthresh = limits.ssthresh.max(limits.cwnd).max(event.mss * 2);
        }
    }

    /// The algorithm below stands still in recovery: where the loss was the radio's, the window grows all the same, by what
    /// is confirmed, as RFC 5681 §3.1 has it in slow start.
    pub(super) fn go_on_in_recovery(&mut self, ack: &Ack, limits: &mut Limits) {
        self.bears_loss &= ack.in_recovery && self.mode == Mode::Startup;
        if self.bears_loss && !ack.app_limited {
            limits.cwnd = limits.cwnd.saturating_add(ack.delivered);
        }
    }
}
