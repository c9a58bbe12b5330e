//! Where the window goes, round by round, under (1) to (3).

use super::FsAtOpen;
use super::path::{MOST_BYTES, share};
use crate::congestion::CongestionControl;

/// `K` of (2) in square microseconds: one segment of backlog at a queueing delay of 35 ms, four at 17 ms.
const BACKLOG: u64 = 1_200_000_000;
/// (2) takes a queueing delay below `rtt_min` over this for that.
const LEAST_QUEUE: u64 = 64;
/// (3): a round moves the window by so many eighths of the way, and by no more than a quarter of itself.
const LEAST_EIGHTHS: u64 = 2;
const MOST_EIGHTHS: u64 = 8;
const MOST_MOVED: u64 = 4;
/// After so many rounds in a row that moved it the same way, each moves it by an eighth of the way more.
const ROUNDS_TO_TRUST: u64 = 3;
/// The queueing delay stays where it changes by no more than 1 over this in a round: then the loop around the queue rests, and
/// only shares still move.
const STILL: u64 = 16;
/// `q` over this times `rtt_min` bounds the eighths: where `q` is a large part of the round trip, shares converge soon enough.
const LARGE_PART: u64 = 2;

/// The way that the window takes.
#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    /// Rounds in a row that moved it the same way as the one before, while `queueing` stayed.
    rounds: u64,
    grows: bool,
    queueing: u64,
}

impl Course {
    /// A round with the queueing delay `q`, which makes the window longer or shorter: the eighths of the way that it goes.
    pub(super) fn eighths(&mut self, grows: bool, q: u64, rtt_min: u64) -> u64 {
        let stays = self.grows == grows && q.abs_diff(self.queueing) <= self.queueing / STILL;
        let rounds = if stays { self.rounds.saturating_add(1) } else { 0 };
        *self = Self { rounds, grows, queueing: q };
        let more = rounds.saturating_sub(ROUNDS_TO_TRUST);
        let most = (rtt_min / (LARGE_PART * q).max(1)).clamp(LEAST_EIGHTHS, MOST_EIGHTHS);
        LEAST_EIGHTHS.saturating_add(more).min(most)
    }
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// (2): the backlog of its own that a flow keeps at the queueing delay `q`.
    pub(super) fn backlog(&self, mss: u64, q: u64) -> u64 {
        let q = q.max(self.path.rtt_min() / LEAST_QUEUE).max(1);
        share(mss, BACKLOG, q.saturating_mul(q))
    }

    /// (1) for the round trip `rtt`.
    pub(super) fn fit(&self, mss: u64, rtt: u64) -> u64 {
        let backlog = self.backlog(mss, self.path.queueing(rtt));
        share(self.window, self.path.rtt_min(), rtt).saturating_add(backlog)
    }

    /// (1) and (3), for a round with the smallest round trip `low`, and the queueing delay `q`.
    pub(super) fn move_window(&mut self, mss: u64, low: u64, q: u64) {
        let (w, rtt_min) = (self.window, self.path.rtt_min());
        let fit = self.fit(mss, low);
        let eighths = self.course.eighths(fit > w, q, rtt_min);
        let way = fit.abs_diff(w).saturating_mul(eighths) / 8;
        let moved = if fit > w {
            w.saturating_add(way.clamp(1, (w / MOST_MOVED).max(mss)))
        } else {
            w - way.min(w / MOST_MOVED)
        };
        self.set_window(mss, moved);
    }

    /// The window after a round, which (6) limits where an eighth of the round was lost.
    pub(super) fn set_window(&mut self, mss: u64, window: u64) {
        let most = if self.round.loses(8, mss) { self.round.delivered * 7 / 8 } else { u64::MAX };
        self.window = window.min(most).clamp(2 * mss, MOST_BYTES);
    }
}
