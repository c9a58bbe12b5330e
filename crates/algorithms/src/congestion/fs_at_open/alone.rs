//! A flow that has a link of its own, whose rate varies: its flight is limited as FS-AT's (15).
//!
//! What others have of the link shows between a flow's own segments. Where a segment comes to the queue while the one before it
//! still waits, the queue serves between the two what others sent between them. So the time between the acknowledgements of the
//! two grows with the time between their departures, by the part of the link that others have, and not at all where the flow is
//! alone. This needs departures at uneven distances, which a link whose rate varies gives.

use suimon_units::{Bytes, Duration};

use super::path::{MOST_BYTES, MOST_RTT};
use super::{FsAtOpen, Mode};
use crate::congestion::fs_at::{self, FlightLimit};
use crate::congestion::{Ack, CongestionControl, Limits};

/// The sums lose 1 over two to the power of this in a round.
const MEMORY_BITS: u32 = 6;
/// A round tells by so many pairs of segments at least, and so many rounds tell enough.
const LEAST_PAIRS: u64 = 4;
const LEAST_ROUNDS: u64 = 32;
/// Times between segments count up to this, in microseconds.
const LONGEST_GAP: u64 = 1 << 20;
/// A flow becomes alone where others have less than 1 over the first of the link, and stays so while they have less than 1 over the
/// second, and the queueing delay moves by so many eighths of its length.
const BEGINS: i64 = 8;
const STAYS: i64 = 4;
const MOVES_EIGHTHS: u64 = 1;
/// For so many rounds after that the link is taken to vary: on a longer route no segment waits behind another, which looks as if
/// others had the link.
const ROUNDS_SINCE: u64 = 128;
/// A round trip with a queueing delay up to `rtt_min` over this is close to it.
const CLOSE: u64 = 4;
/// The target of FS-AT never falls below this.
const MIN_TARGET: Bytes = Bytes::new(8_000);

/// The times between a flow's segments, as they left and as they were acknowledged, in microseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    /// When the last segment left and was acknowledged, and how long it waited in the queue.
    last: Option<(u64, u64, u64)>,
    /// Of this round: the pairs of segments, and sums over them of both times, of the first one's square and of their product.
    pairs: u64,
    sent: u64,
    acked: u64,
    sent_squared: u64,
    product: u64,
    /// Of all rounds: sums of the covariance of both times, and of the first one's variance.
    covariance: i64,
    variance: i64,
    rounds: u64,
}

impl Gaps {
    /// An acknowledgement at `acked` of a segment that left at `sent` and waited in the queue for `q`.
    pub(super) fn count(&mut self, sent: u64, acked: u64, q: u64) {
        if let Some((last_sent, last_acked, last_q)) = self.last {
            if sent < last_sent {
                return;
            }
            let (sent, acked) = (sent - last_sent, acked.saturating_sub(last_acked));
            let is_short = sent < LONGEST_GAP && acked < LONGEST_GAP;
            if sent < last_q && is_short && self.sent.max(self.acked) < MOST_RTT {
                self.pairs += 1;
                self.sent += sent;
                self.acked += acked;
                self.sent_squared += sent * sent;
                self.product += sent * acked;
            }
        }
        self.last = Some((sent, acked, q));
    }

    /// Means are those of a round, so that a rate that changes more slowly is not taken for others.
    pub(super) fn end_round(&mut self) {
        if self.pairs >= LEAST_PAIRS {
            let of_means = |sum: u64| (self.sent * sum / self.pairs) as i64;
            let covariance = self.product as i64 - of_means(self.acked);
            let variance = self.sent_squared as i64 - of_means(self.sent);
            self.covariance += covariance - (self.covariance >> MEMORY_BITS);
            self.variance += variance - (self.variance >> MEMORY_BITS);
            self.rounds += 1;
        }
        (self.pairs, self.sent, self.acked, self.sent_squared, self.product) = (0, 0, 0, 0, 0);
    }

    /// Whether others are known to have less than 1 over `parts` of the link.
    pub(super) fn others_have_less(&self, parts: i64) -> bool {
        self.rounds >= LEAST_ROUNDS && parts * self.covariance < self.variance
    }
}

/// Whether the flow is alone, and FS-AT's limit for one that is.
#[derive(Debug, Clone)]
pub(super) struct Alone {
    pub(super) gaps: Gaps,
    pub(super) is_known: bool,
    /// Rounds for which the link is taken to vary, since the flow was alone.
    pub(super) rounds_since: u64,
    /// When a round trip was last close to `rtt_min`.
    pub(super) close: u64,
    limit: FlightLimit,
}

impl Default for Alone {
    fn default() -> Self {
        let limit = FlightLimit::new(fs_at::Mode::Printed, false, MIN_TARGET);
        Self { gaps: Gaps::default(), is_known: false, rounds_since: 0, close: 0, limit }
    }
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// A round trip without its wait (13).
    pub(super) fn count_gap(&mut self, now: u64, rtt: u64) {
        let (acked, q) = (self.way_back.unwaited(now), self.path.queueing(rtt));
        self.alone.gaps.count(acked.saturating_sub(rtt), acked, q);
        if q <= self.path.rtt_min() / CLOSE {
            self.alone.close = now;
        }
    }

    /// Once a round: whether the flow is alone (15).
    pub(super) fn judge_alone(&mut self) {
        self.alone.gaps.end_round();
        self.alone.is_known = if self.alone.is_known {
            self.variation.moves(MOVES_EIGHTHS) && self.alone.gaps.others_have_less(STAYS)
        } else {
            self.varies() && self.alone.gaps.others_have_less(BEGINS)
        };
        self.alone.rounds_since =
            if self.alone.is_known { ROUNDS_SINCE } else { self.alone.rounds_since.saturating_sub(1) };
    }

    /// FS-AT's limit, which is the window where the flow is alone.
    pub(super) fn follow_alone(&mut self, ack: &Ack, limits: &Limits) {
        self.alone.limit.judge(Duration::from_micros(self.path.rtt_min()), ack, limits);
        if self.alone.is_known && self.mode == Mode::Steady && self.trial.left == 0 {
            self.alone.limit.space = Bytes::new(self.window);
            self.alone.limit.move_space(ack);
            self.window = self.alone.limit.space.get().min(MOST_BYTES);
        }
    }
}
