//! `BBR.extra_acked`: data that ACKs bring at once beyond the bandwidth (§5.5.9).

use alloc::collections::VecDeque;

use suimon_units::{Bytes, Instant, Rate};

/// `BBR.ExtraAckedFilterLen`, in rounds; one in Startup.
const ROUNDS: u64 = 10;

/// The burst under way, and the largest of late.
#[derive(Debug, Clone, Default)]
pub(super) struct Aggregation {
    /// `BBR.extra_acked_interval_start` and `BBR.extra_acked_delivered`.
    since: Instant,
    delivered: Bytes,
    /// `BBR.extra_acked_filter`: rounds and values, each smaller than those before it.
    largest: VecDeque<(u64, Bytes)>,
}

impl Aggregation {
    /// Nothing was in flight until `now`.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
    }

    /// `UpdateACKAggregation` with an ACK for `acked` in `round`.
    pub(super) fn update(
        &mut self,
        now: Instant,
        acked: Bytes,
        bandwidth: Rate,
        cwnd: Bytes,
        round: (u64, bool),
    ) {
        let mut expected = bandwidth.amount_in(now.saturating_since(self.since));
        if self.delivered <= expected {
            (self.since, self.delivered, expected) = (now, Bytes::ZERO, Bytes::ZERO);
        }
        self.delivered = self.delivered.saturating_add(acked);
        self.add(round, self.delivered.saturating_sub(expected).min(cwnd));
    }

    fn add(&mut self, (round, full_bw_reached): (u64, bool), extra: Bytes) {
        let length = if full_bw_reached { ROUNDS } else { 1 };
        while self.largest.back().is_some_and(|(_, value)| *value <= extra) {
            self.largest.pop_back();
        }
        if self.largest.back().is_none_or(|(last, _)| *last < round) {
            self.largest.push_back((round, extra));
        }
        while self.largest.front().is_some_and(|(at, _)| at + length < round) {
            self.largest.pop_front();
        }
    }

    /// `BBR.extra_acked`.
    pub(super) fn extra_acked(&self) -> Bytes {
        self.largest.front().map_or(Bytes::ZERO, |(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::Duration;

    use super::*;
    use crate::congestion::testing::MSS;

    /// One segment each millisecond.
    const RATE: Rate = Rate::from_bps(11_584_000);

    #[test]
    fn the_largest_burst_counts_for_ten_rounds_and_for_one_in_startup() {
        for (full, rounds) in [(true, 10), (false, 1)] {
            let mut aggregation = Aggregation::default();
            let mut at = |millis, segments, round| {
                let now = Instant::ZERO + Duration::from_millis(millis);
                aggregation.update(now, MSS * segments, RATE, MSS * 60, (round, full));
                aggregation.extra_acked()
            };
            // Twenty segments at once, and twenty more 5 ms later: all but five are in excess.
            at(100, 20, 0);
            assert_eq!(at(105, 20, 0), MSS * 35, "full: {full}");
            assert_eq!(at(1_000, 1, rounds), MSS * 35, "full: {full}");
            assert_eq!(at(1_100, 1, rounds + 1), MSS, "full: {full}");
            assert_eq!(at(1_200, 500, rounds + 2), MSS * 60, "no more than the window");
        }
    }
}
