//! A trial of the queue (11): whether others fill it while the flow keeps no backlog there, and whether the flow loses less
//! then. In the first case it competes, in the second it goes on without a backlog. Elsewhere the losses are a radio's. A managed
//! queue is short, and its losses come at any length, so neither tells of others before.

use super::path::{NEAR, share};
use super::rivals::COMPETE_ON;
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, CongestionControl, Limits};

/// Rounds of a trial, of which the last so many are judged: a managed queue drops for a while after it was left. Where a trial
/// goes on, it does so by as many rounds as are judged.
const ROUNDS: u64 = 20;
const JUDGED: u64 = 10;
/// Samples of such a round: jitter hides the queue from fewer. In any other, with fewer than the second, all may be of delayed ACKs.
const SAMPLES_IN_TRIAL: u64 = 8;
const ENOUGH_SAMPLES: u64 = 4;
/// A queue in so many of them is that of others.
const ROUNDS_FILLED: u64 = 3;
/// Such a queue is longer than `rtt_min` over the first and the time of so many segments of the flow together. This time counts
/// as one between the last two, in microseconds: flows that share a link know only their own rate.
const QUEUE_PART: u64 = 16;
const SEGMENTS: u64 = 3;
const MIN_QUEUE: u64 = 2_000;
const MAX_QUEUE: u64 = 6_000;
/// Losses and marks before a trial at least: slow start that fills the queue loses in several rounds, and tells of nobody else.
const LEAST_CONGESTIONS: u64 = 5;
/// Windows of more segments count as this: their squares take 64 bits.
const MOST_SEGMENTS: u64 = 1 << 20;
/// Parts of what is confirmed that a rate of loss is counted in.
const WHOLE: u64 = 1 << 20;
/// Where a trial goes on, a round with a queue takes 1 over this of the window.
const GIVES_WAY: u64 = 16;
/// Where no more than 1 over this is left of the window that it began with, others fill the queue, however short they keep it.
const LEFT_PART: u64 = 4;

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
    /// The window at its begin.
    pub(super) window: u64,
    /// Rounds left, and how many saw a queue.
    pub(super) left: u64,
    filled: u64,
    /// The smallest round trip in it. `rtt_min` may be that of the handshake, whose segments are shorter.
    pub(super) low: u64,
    /// It goes on, since the flow loses less without a backlog.
    pub(super) goes_on: bool,
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

    /// Less than half of what was lost before: a radio loses the same without a backlog, a managed queue does not.
    fn loses_less(&self) -> bool {
        self.lost_bytes < share(self.delivered, self.loss_before, 2 * WHOLE)
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
            self.begin_competition(ack, now, limits);
            // The length of a managed queue tells of nobody: nothing but time tells when others have left.
            self.rivals.put_off(now.saturating_add(COMPETE_ON * self.period()));
            return;
        }
        let loss_before = share(self.trial.lost_bytes, WHOLE, self.trial.delivered).min(WHOLE);
        self.window = self.window.min(self.rcv_bytes.max(2 * ack.mss.get()));
        self.trial = Trial {
            began: now,
            window: self.window,
            left: ROUNDS,
            found: self.trial.found,
            loss_before,
            low: u64::MAX,
            ..Trial::default()
        };
    }

    /// A round of a trial.
    pub(super) fn end_trial_round(&mut self, ack: &Ack, now: u64, q: u64, limits: &mut Limits) {
        let mss = ack.mss.get();
        self.longest[0] = self.longest[0].max(q);
        self.trial.low = self.trial.low.min(self.low);
        self.trial.left -= 1;
        if self.trial.left >= JUDGED {
            (self.trial.delivered, self.trial.lost_bytes) = (0, 0);
            return;
        }
        if self.trial.goes_on {
            self.keep_empty(mss);
        }
        let segments = (SEGMENTS * self.segment_time(mss)).clamp(MIN_QUEUE, MAX_QUEUE);
        self.trial.filled += u64::from(q > segments + self.path.rtt_min() / QUEUE_PART);
        let gave_way = self.trial.goes_on && self.window <= self.trial.window / LEFT_PART;
        let is_filled = gave_way || self.trial.filled >= ROUNDS_FILLED;
        if is_filled {
            self.begin_competition(ack, now, limits);
        } else if self.trial.left > 0 {
            return;
        } else if self.trial.loses_less() && now.saturating_sub(self.trial.began) < self.longest_wait() {
            (self.trial.left, self.trial.filled, self.trial.goes_on) = (JUDGED, 0, true);
            return;
        }
        (self.trial.left, self.trial.found) = (0, is_filled);
    }

    /// How long a segment takes at the flow's own rate, in microseconds.
    fn segment_time(&self, mss: u64) -> u64 {
        share(mss, self.path.rtt_min(), self.rcv_bytes)
    }

    /// The window of a trial that goes on, after a round: an empty queue tells of room, and any other is of others.
    fn keep_empty(&mut self, mss: u64) {
        let near = (self.path.rtt_min() / NEAR).min(MIN_QUEUE.max(self.segment_time(mss)));
        self.window = if self.low <= self.trial.low + near {
            self.window.saturating_add(mss)
        } else {
            (self.window - self.window / GIVES_WAY).max(2 * mss)
        };
    }

    /// Whether a trial follows a drain that ended, in place of holding the window.
    pub(super) fn tries_after_drain(&self, now: u64, mss: u64) -> bool {
        self.mode == Mode::Steady && (self.trial.found || self.is_trial_due(now, mss))
    }
}
