//! A link whose rate varies, as a radio's does: a flow keeps room in the queue for the next rise (12).

use super::path::{MOST_BYTES, MOST_RTT, share};
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, CongestionControl};

/// The sums lose 1 over this a round.
const MEMORY: u64 = 64;
/// The link varies where the queueing delay moves by so many eighths of its own length from round to round, and has moved by so
/// many `rtt_min` in all: flows that share a steady link move it by less, but for their first seconds.
const MOVED_EIGHTHS: u64 = 3;
const MOVED_RTTS: u64 = 8;
/// Room in the queue is so many times the part by which round trips change, of `rtt_min`, and `rtt_min` at most.
const ROOM: u64 = 3;
/// A round moves the window by one over this of the way.
const WAY: u64 = 2;
/// It grows by no more than one over this of itself.
const MOST_GROWN: u64 = 4;

/// How round trips change from one round to the next, summed up. Times are in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Variation {
    /// The queueing delay of the last round, if that counted.
    last: Option<u64>,
    /// Sums of the changes of the queueing delay, of queueing delays, and of round trips.
    moved: u64,
    queued: u64,
    round_trips: u64,
}

impl Variation {
    /// The queueing delay of the last round, if that counted. Each round takes it, since one that does not count, as that of a
    /// drain, parts those before and after it.
    pub(super) fn take_last(&mut self) -> Option<u64> {
        self.last.take()
    }

    /// Counts a round with the round trip `low` and the queueing delay `q`, which came after one with the queueing delay `last`.
    pub(super) fn count(&mut self, last: Option<u64>, low: u64, q: u64) {
        if let Some(last) = last {
            let add = |sum: &mut u64, more: u64| *sum = *sum - *sum / MEMORY + more;
            add(&mut self.moved, q.abs_diff(last));
            add(&mut self.queued, q);
            add(&mut self.round_trips, low);
        }
        self.last = Some(q);
    }

    /// Whether the queueing delay moves by so many eighths of its own length from round to round.
    pub(super) fn moves(&self, eighths: u64) -> bool {
        8 * self.moved >= eighths * self.queued
    }

    fn is_of_link(&self, rtt_min: u64) -> bool {
        self.moves(MOVED_EIGHTHS) && self.moved >= MOVED_RTTS * rtt_min
    }

    /// The queueing delay that (12) makes room for.
    fn room(&self, rtt_min: u64) -> u64 {
        (ROOM * self.moved * rtt_min / self.round_trips.max(1)).min(rtt_min)
    }
}

impl<C> FsAtOpen<C> {
    /// Whether the link varies (12). One that a flow had for itself (15) goes on doing so while a longer route looks like a queue.
    pub(super) fn varies(&self) -> bool {
        self.alone.rounds_since > 0 || self.variation.is_of_link(self.path.rtt_min())
    }
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// (12), for a round with the queueing delay `q` that took `elapsed`.
    pub(super) fn follow_link(&mut self, mss: u64, q: u64, elapsed: u64) {
        let (w, rtt_min) = (self.window, self.path.rtt_min());
        let time = (rtt_min + self.variation.room(rtt_min)).min(MOST_RTT);
        let fit = share(self.round.delivered, time, elapsed).saturating_add(self.backlog(mss, q));
        let moved = if fit > w { w + ((fit - w) / WAY).min(w / MOST_GROWN) } else { w - (w - fit) / WAY };
        self.set_window(mss, moved);
    }

    /// An acknowledgement whose round trip tells of an empty queue: the link may carry more by now.
    pub(super) fn follow_rise(&mut self, ack: &Ack, rtt: u64) {
        let is_steady = self.mode == Mode::Steady && self.trial.left == 0 && !ack.app_limited;
        if is_steady && !self.alone.is_known && self.path.is_near_min(rtt) && self.varies() {
            self.window = self.window.saturating_add(ack.delivered.get()).min(MOST_BYTES);
        }
    }
}
