//! A trial of the queue (11): whether others fill it while the flow keeps no backlog there, and whether it loses less then. A
//! managed queue is short, and its losses come at any length, so neither tells of others before.

use super::path::share;
use super::rivals::COMPETE_ON;
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, CongestionControl, Limits};

/// Rounds that a trial lasts at most, of which the last so many are judged: a managed queue drops for a while after it was left.
const ROUNDS: u64 = 20;
const JUDGED: u64 = 10;
/// Samples of such a round: jitter hides the queue from fewer. In any other, with fewer than the second, all may be of delayed ACKs.
const SAMPLES_IN_TRIAL: u64 = 8;
const ENOUGH_SAMPLES: u64 = 4;
/// A queue in so many of them is that of others.
const ROUNDS_FILLED: u64 = 3;
/// Such a queue is longer than this in microseconds and `rtt_min` over the other.
const QUEUE: u64 = 2_000;
const QUEUE_PART: u64 = 16;
/// Losses and marks before a trial at least: slow start that fills the queue loses in several rounds, and tells of nobody else.
const LEAST_CONGESTIONS: u64 = 5;
/// Windows and losses of more segments count as this: their squares take 64 bits.
const MOST_SEGMENTS: u64 = 1 << 20;
/// Parts of what is confirmed that a rate of loss is counted in.
const WHOLE: u64 = 1 << 20;
/// So many standard deviations of a count that chance brings (which is its root) below what was expected are no chance.
const DEVIATIONS: u64 = 3;

/// What came since the last trial, and the trial that is on.
#[derive(Debug, Clone, Default)]
pub(super) struct Trial {
    began: u64,
    /// Bytes confirmed and lost, times that the network was congested (losses and marks), and the marks among these.
    pub(super) delivered: u64,
    pub(super) lost_bytes: u64,
    pub(super) congestions: u64,
    pub(super) marks: u64,
    /// What was lost before it, in parts of what was confirmed.
    pub(super) loss_before: u64,
    /// Rounds left, and how many saw a queue.
    pub(super) left: u64,
    filled: u64,
    /// A trial found the senders that the flow competes with.
    pub(super) found: bool,
}

impl Trial {
    /// Takes in a round that confirmed and lost so many bytes.
    pub(super) fn count(&mut self, delivered: u64, lost: u64) {
        self.delivered = self.delivered.saturating_add(delivered);
        self.lost_bytes = self.lost_bytes.saturating_add(lost);
    }

    /// Samples that a round has at least.
    pub(super) const fn samples_of_round(&self) -> u64 {
        if self.left > 0 { SAMPLES_IN_TRIAL } else { ENOUGH_SAMPLES }
    }

    /// Most of what told of congestion were marks, which no radio sets: the queue is managed, and no trial needs to tell.
    fn is_marked(&self) -> bool {
        self.congestions >= LEAST_CONGESTIONS && 2 * self.marks > self.congestions
    }

    /// Less than half of what was lost before, and not by chance: a radio loses the same without a backlog, a queue does not.
    pub(super) fn loses_less(&self, mss: u64) -> bool {
        let expected = (share(self.delivered, self.loss_before, WHOLE) / mss).min(MOST_SEGMENTS);
        let fewer = expected.saturating_sub(self.lost_bytes / mss);
        2 * fewer > expected && fewer * fewer > DEVIATIONS * DEVIATIONS * expected
    }
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// Once a period, where more is lost than lets Reno have this window: `w = sqrt(3 / 2p)` (Mathis, Semke, Mahdavi, Ott:
    /// The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, 1997, Eq. 3).
    pub(super) fn is_trial_due(&self, now: u64, mss: u64) -> bool {
        let (segments, trial) = ((self.window / mss).min(MOST_SEGMENTS), &self.trial);
        self.compete
            && trial.congestions >= LEAST_CONGESTIONS
            && segments * segments >= share(trial.delivered / mss, 3, 2 * trial.congestions)
            && now.saturating_sub(trial.began) >= self.period()
    }

    /// The window keeps no backlog, while the queue is empty or should be. A queue that marks needs no trial.
    pub(super) fn begin_trial(&mut self, ack: &Ack, now: u64, limits: &mut Limits) {
        if self.trial.is_marked() {
            self.trial = Trial { began: now, ..Trial::default() };
            self.compete_in_managed(ack, now, limits);
            return;
        }
        let loss_before = share(self.trial.lost_bytes, WHOLE, self.trial.delivered).min(WHOLE);
        self.trial =
            Trial { began: now, left: ROUNDS, found: self.trial.found, loss_before, ..Trial::default() };
        self.window = self.window.min(self.rcv_bytes.max(2 * ack.mss.get()));
    }

    /// Competition in a queue whose length tells of nobody: nothing but time tells when others have left.
    fn compete_in_managed(&mut self, ack: &Ack, now: u64, limits: &mut Limits) {
        self.begin_competition(ack, now, limits);
        self.rivals.put_off(now.saturating_add(COMPETE_ON * self.period()));
    }

    /// A round of a trial.
    pub(super) fn end_trial_round(&mut self, ack: &Ack, now: u64, q: u64, limits: &mut Limits) {
        self.longest[0] = self.longest[0].max(q);
        self.trial.left -= 1;
        if self.trial.left >= JUDGED {
            (self.trial.delivered, self.trial.lost_bytes) = (0, 0);
            return;
        }
        self.trial.filled += u64::from(q > QUEUE + self.path.rtt_min() / QUEUE_PART);
        let is_filled = self.trial.filled >= ROUNDS_FILLED;
        let loses_less = self.trial.left == 0 && self.trial.loses_less(ack.mss.get());
        if loses_less {
            self.compete_in_managed(ack, now, limits);
        } else if is_filled {
            self.begin_competition(ack, now, limits);
        }
        if is_filled || self.trial.left == 0 {
            (self.trial.left, self.trial.found) = (0, is_filled || loses_less);
        }
    }

    /// Whether a trial follows a drain that ended, in place of holding the window.
    pub(super) fn tries_after_drain(&self, now: u64, mss: u64) -> bool {
        self.mode == Mode::Steady && (self.trial.found || self.is_trial_due(now, mss))
    }
}
