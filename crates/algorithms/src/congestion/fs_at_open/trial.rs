//! A trial of the queue (11): whether others fill it while the flow keeps no backlog there. A managed queue keeps them short, so
//! neither its length nor its losses tell of them.

use super::path::share;
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, CongestionControl, Limits};

/// Rounds that a trial lasts at most; a queue in so many of them is that of others.
const ROUNDS: u64 = 10;
const ROUNDS_FILLED: u64 = 3;
/// Such a queue is longer than this in microseconds and `rtt_min` over the other.
const QUEUE: u64 = 2_000;
const QUEUE_PART: u64 = 16;
/// Losses before a trial at least: slow start that fills the queue loses in several rounds, and tells of nobody else.
const LEAST_LOSSES: u64 = 5;
/// Windows of more segments count as this: the square takes 64 bits.
const MOST_SEGMENTS: u64 = 1 << 20;

/// What came since the last trial, and the trial that is on.
#[derive(Debug, Clone, Default)]
pub(super) struct Trial {
    began: u64,
    /// Bytes confirmed, and losses.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Rounds left, and how many saw a queue.
    pub(super) left: u64,
    filled: u64,
    /// A trial found the senders that the flow competes with.
    pub(super) found: bool,
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// Once a period, where more is lost than lets Reno have this window: `w = sqrt(3 / 2p)` (Mathis, Semke, Mahdavi, Ott:
    /// The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997, Eq. 3).
    pub(super) fn is_trial_due(&self, now: u64, mss: u64) -> bool {
        let (segments, trial) = ((self.window / mss).min(MOST_SEGMENTS), &self.trial);
        self.compete
            && trial.lost >= LEAST_LOSSES
            && segments * segments >= share(trial.delivered / mss, 3, 2 * trial.lost)
            && now.saturating_sub(trial.began) >= self.period()
    }

    /// The window keeps no backlog, while the queue is empty or should be.
    pub(super) fn begin_trial(&mut self, now: u64, mss: u64) {
        self.trial = Trial { began: now, left: ROUNDS, found: self.trial.found, ..Trial::default() };
        self.window = self.window.min(self.rcv_bytes.max(2 * mss));
    }

    /// A round of a trial.
    pub(super) fn end_trial_round(&mut self, ack: &Ack, now: u64, q: u64, limits: &mut Limits) {
        self.longest[0] = self.longest[0].max(q);
        self.trial.left -= 1;
        self.trial.filled += u64::from(q > QUEUE + self.path.rtt_min() / QUEUE_PART);
        let is_filled = self.trial.filled >= ROUNDS_FILLED;
        if is_filled {
            self.begin_competition(ack, now, limits);
        }
        if is_filled || self.trial.left == 0 {
            (self.trial.left, self.trial.found) = (0, is_filled);
        }
    }

    /// Whether a trial follows a drain that ended, in place of holding the window.
    pub(super) fn tries_after_drain(&self, now: u64, mss: u64) -> bool {
        self.mode == Mode::Steady && (self.trial.found || self.is_trial_due(now, mss))
    }
}
