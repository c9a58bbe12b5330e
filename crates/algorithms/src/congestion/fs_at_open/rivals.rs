//! Senders that fill the queue: how a flow knows that they are there, competes, and knows that they have left.

use suimon_units::Bytes;

use super::path::clock;
use super::{FsAtOpen, Mode};
use crate::congestion::{Ack, Congestion, CongestionControl, CongestionKind, Limits};

/// A queue is full from 7/8 of its longest on, and far from full below 5/8 (10).
const FULL: u64 = 7;
const FAR: u64 = 5;
/// Rounds that the queue takes from far to full where others fill it: flows of this kind that come back from a drain take
/// fewer.
const ROUNDS_TO_FILL: u64 = 4;
/// So many times in a row the queue becomes full again where others fill it, with no longer between than this many periods.
const RETURNS: u64 = 2;
const PERIODS_BETWEEN: u64 = 4;
/// Rounds after a drain or a cut of its own in which a flow knows why the queue is short.
const ROUNDS_TO_SETTLE: u64 = 8;
/// Others fill a queue that is longer than ever in so many rounds (14), by 1 over this of its length, while the window falls by
/// a quarter. Below three quarters of the longest, or this short, the count begins anew.
const ROUNDS_OF_GROWTH: u64 = 12;
const LONGER: u64 = 64;
const LEAST_LONGEST: u64 = 1_000;
/// While the window is held, others fill a queue that grows by 1 over this of its full length, and by so much.
const GROWTH: u64 = 8;
const LEAST_GROWTH: u64 = 2_000;
/// The window is held for so many times as long as it was from one loss to the next, and for so many periods at most.
const LOSSES_TO_WAIT: u64 = 4;
const PERIODS_TO_WAIT: u64 = 6;
/// Competition goes on for this long before a drain asks whether it is still needed.
const COMPETE: u64 = 3_000_000;
/// The same in periods, once the window was held and the queue became full, or the queue marks.
pub(super) const COMPETE_ON: u64 = 3;

/// The queue's length as others move it. Times are in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Rivals {
    /// Rounds since the flow itself made the queue shorter, and how many there were when the queue was last far from full.
    rounds: u64,
    far_at: Option<u64>,
    /// Times in a row that it became full again, and when it last did.
    returns: u64,
    returned: u64,
    /// (14): the longest queueing delay since the count began, zero for no count; the window then; the rounds that counted.
    longest: u64,
    window: u64,
    growths: u64,
    /// Round trip through the full queue.
    full: u64,
    /// The shortest queueing delay while the window is held.
    held: u64,
    /// A drain follows the first loss from then on, and such a loss has come.
    drain_from: u64,
    pub(super) is_due: bool,
    /// When the last loss came, and how long after the one before.
    lost: u64,
    between_losses: u64,
}

impl Rivals {
    /// The flow itself makes the queue shorter.
    pub(super) fn settle(&mut self) {
        (self.rounds, self.far_at, self.longest) = (0, None, 0);
    }

    /// (10), once a round of the steady mode: true where the queue has become full again and again. `longest` is its longest
    /// of late, `memory` how long a return counts.
    pub(super) fn fill(&mut self, now: u64, q: u64, longest: u64, memory: u64) -> bool {
        self.rounds += 1;
        if q < longest / 8 * FAR {
            if self.rounds > ROUNDS_TO_SETTLE {
                self.far_at = Some(self.rounds);
            }
        } else if q >= longest / 8 * FULL
            && let Some(far_at) = self.far_at.take()
            && self.rounds - far_at >= ROUNDS_TO_FILL
        {
            let in_a_row = now.saturating_sub(self.returned) <= memory;
            self.returns = if in_a_row { self.returns + 1 } else { 1 };
            self.returned = now;
        }
        self.returns >= RETURNS
    }

    /// (14), once a round of the steady mode, after [`Self::fill`]: true where the queue grows on and on while the window `w`
    /// falls.
    fn keeps_growing(&mut self, q: u64, w: u64) -> bool {
        if self.rounds <= ROUNDS_TO_SETTLE {
            return false;
        }
        if self.longest == 0 {
            (self.longest, self.window, self.growths) = (q.max(LEAST_LONGEST), w, 0);
        } else if q > self.longest + self.longest / LONGER {
            self.longest = q;
            self.growths += 1;
        } else if q < self.longest / 4 * 3 {
            (self.longest, self.growths) = (0, 0);
        }
        self.growths >= ROUNDS_OF_GROWTH && w <= self.window / 4 * 3
    }

    /// (8), once a round of a held window with the queueing delay `q`: true where it grew since, once what a drain took out is
    /// back.
    fn grows(&mut self, q: u64, full: u64) -> bool {
        self.rounds += 1;
        self.held = if self.rounds <= ROUNDS_TO_FILL { q } else { self.held.min(q) };
        q > self.held + full / GROWTH + LEAST_GROWTH
    }

    /// A loss in competition: the queue is full.
    fn lose(&mut self, now: u64, low: u64) {
        self.full = self.full.max(low);
        (self.between_losses, self.lost) = (now.saturating_sub(self.lost), now);
        self.is_due |= now >= self.drain_from;
    }

    /// Whether a loss within `memory` has told that the queue was full.
    pub(super) fn was_full(&self, now: u64, memory: u64) -> bool {
        self.lost > 0 && now.saturating_sub(self.lost) <= memory
    }

    /// No drain before `from`.
    pub(super) fn put_off(&mut self, from: u64) {
        (self.drain_from, self.is_due) = (from, false);
    }
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// (10) and (14) for a round with the queueing delay `q`; beside nobody (15) neither tells of others.
    pub(super) fn others_fill(&mut self, now: u64, q: u64) -> bool {
        let (longest, memory) = (self.longest[0].max(self.longest[1]), PERIODS_BETWEEN * self.period());
        let returns = self.rivals.fill(now, q, longest, memory);
        let grows = !self.varies() && self.rivals.keeps_growing(q, self.window);
        (returns || grows) && self.compete && !self.alone.is_known
    }

    /// Longest time for which the window is held, and for which a loss tells that others fill the queue.
    pub(super) fn longest_wait(&self) -> u64 {
        PERIODS_TO_WAIT * self.period()
    }

    fn is_full(&self, low: u64) -> bool {
        self.path.queueing(low) >= self.path.queueing(self.rivals.full) / 8 * FULL
    }

    /// The smallest round trip of this round so far, or of the last.
    pub(super) fn low_now(&self) -> u64 {
        if self.round.low == u64::MAX { self.low } else { self.round.low }
    }

    /// Competition begins, in a queue that is taken to have been full when it was longest.
    pub(super) fn begin_competition(&mut self, ack: &Ack, now: u64, limits: &mut Limits) {
        self.rivals.full = self.path.rtt_min() + self.longest[0].max(self.longest[1]);
        (self.rivals.returns, self.drains.found) = (0, false);
        self.window = self.window.max(4 * ack.mss.get());
        self.take_up(ack, now, limits);
    }

    /// The algorithm below rules, with a curve that begins at the window, as after a loss: that of its last competition
    /// would be steep by now.
    pub(super) fn take_up(&mut self, ack: &Ack, now: u64, limits: &mut Limits) {
        self.mode = Mode::Competing;
        self.drains.last = now;
        self.rivals.put_off(now.saturating_add(COMPETE));
        if ack.newly_acked > Bytes::ZERO {
            limits.cwnd = Bytes::new(self.window.saturating_add(self.received()));
        }
        limits.pacing = None;
        let window = limits.cwnd;
        self.inner.on_congestion(
            &Congestion {
                now: ack.now,
                kind: CongestionKind::Loss,
                flight_size: ack.flight_size,
                used_window: ack.flight_size,
                snd_nxt: ack.snd_nxt,
                mss: ack.mss,
            },
            limits,
        );
        // Verus answers with a window of its own.
        limits.cwnd = limits.cwnd.min(window);
        limits.ssthresh = limits.cwnd.max(ack.mss * 2);
    }

    /// A round of competition.
    pub(super) fn end_competing_round(&mut self, ack: &Ack, now: u64, low: u64, limits: &Limits) {
        let (queueing, full) = (self.path.queueing(low), self.path.queueing(self.rivals.full));
        if queueing > full / 4 * 5 && !self.trial.found && !self.drains.found {
            // The queue was not full, so nothing tells of others: drains are counted anew.
            self.drains.dirty = 0;
            self.window = self.forward_part(limits.cwnd).min(self.rcv_bytes.max(2 * ack.mss.get()));
            self.begin_drain(ack, false, false);
            return;
        }
        let last = self.drains.last.max(self.rivals.lost);
        if self.rivals.is_due || now.saturating_sub(last) > 2 * self.period() {
            self.window = self.forward_part(limits.cwnd);
            self.begin_drain(ack, false, true);
        }
    }

    /// A round in which the window is held: others fill the queue if it grows all the same.
    pub(super) fn end_held_round(&mut self, ack: &Ack, now: u64, low: u64, limits: &mut Limits) {
        let wait = (LOSSES_TO_WAIT * self.rivals.between_losses).clamp(self.period(), self.longest_wait());
        let full = self.path.queueing(self.rivals.full);
        if self.rivals.grows(self.path.queueing(low), full) || self.is_full(low) {
            self.take_up(ack, now, limits);
            self.rivals.put_off(now.saturating_add(COMPETE_ON * self.period()));
        } else if now.saturating_sub(self.drains.last) > wait {
            self.mode = Mode::Steady;
            self.mean_queueing = 0;
            self.window = self.window.min(self.rcv_bytes.max(2 * ack.mss.get()));
        } else if self.path.is_near_min(low) {
            // The link has room: a queue that is empty isn't what the window is held for.
            self.window = self.window.saturating_add(ack.mss.get());
        }
    }

    /// (6): under (1) to (3) a loss is the queue's only where that is about as long as it gets.
    pub(super) fn judge_loss(&mut self, mss: u64) {
        let q = self.path.queueing(self.low_now());
        if q > 2_000 && q * 4 >= self.longest[0].max(self.longest[1]) * 3 {
            self.window = (self.window / 8 * 7).max(2 * mss);
            self.rivals.settle();
        }
    }

    /// A radio that was silent goes on as before: no more than it is known to hold.
    pub(super) fn bear_timeout(&mut self, mss: u64, limits: &mut Limits) {
        self.window = self.window.min(self.rcv_bytes.max(2 * mss));
        limits.ssthresh = Bytes::new(self.window.max(2 * mss));
    }

    /// Congestion while the window is held.
    pub(super) fn lose_held(&mut self, event: &Congestion, limits: &mut Limits) {
        match event.kind {
            CongestionKind::Timeout => self.bear_timeout(event.mss.get(), limits),
            CongestionKind::Loss if !self.is_full(self.low_now()) => {
                limits.ssthresh = limits.cwnd.max(event.mss * 2);
            }
            _ => {
                let now = clock(event.now);
                self.mode = Mode::Competing;
                limits.pacing = None;
                self.drains.last = now;
                self.lose_competing(event, limits);
                self.rivals.put_off(now.saturating_add(COMPETE_ON * self.period()));
            }
        }
    }

    /// The algorithm below answers, and the window follows at once: recovery leaves it to congestion control.
    pub(super) fn tell_inner(&mut self, event: &Congestion, limits: &mut Limits) {
        self.inner.on_congestion(event, limits);
        limits.cwnd = limits.cwnd.min(limits.ssthresh).max(event.mss);
    }

    /// Congestion in competition, which the algorithm below answers.
    pub(super) fn lose_competing(&mut self, event: &Congestion, limits: &mut Limits) {
        if event.kind == CongestionKind::Loss {
            let low = self.low_now();
            self.rivals.lose(clock(event.now), low);
        }
        self.tell_inner(event, limits);
    }
}
