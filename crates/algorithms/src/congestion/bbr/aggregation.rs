//! ACK aggregation: the data that ACKs bring at once beyond the bandwidth (Linux since 4.20; not in the draft).

use suimon_units::{Bytes, Duration, Instant, Rate};

/// The window has room for the data that arrives in this time at most.
const MAX_EXTRA: Duration = Duration::from_millis(100);
/// Rounds of a maximum; the maximum before it counts as well.
const ROUNDS: u32 = 5;

/// `extra_acked`: data of a burst of ACKs beyond the bandwidth, the maximum over five to ten rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Aggregation {
    /// The start of the burst under way, and the data that it has brought.
    since: Instant,
    acked: u64,
    /// The maxima in segments, the one under way first, and its age.
    most: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    /// An ACK confirms `delivered` at `bandwidth`; a window of `cwnd` cannot have brought more than that.
    pub(super) fn update(
        &mut self,
        now: Instant,
        round_start: bool,
        delivered: Bytes,
        bandwidth: Rate,
        (cwnd, mss): (Bytes, Bytes),
    ) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                (self.rounds, self.most) = (0, [0, self.most[0]]);
            }
        }
        let mut expected = bandwidth.amount_in(now.saturating_since(self.since)).whole(mss);
        if self.acked <= expected {
            (self.since, self.acked, expected) = (now, 0, 0);
        }
        self.acked += delivered.get().div_ceil(mss.get());
        self.most[0] = self.most[0].max((self.acked - expected).min(cwnd.whole(mss)));
    }

    /// Segments that the window has room for beyond the model's.
    pub(super) fn room(&self, bandwidth: Rate, mss: Bytes) -> u64 {
        self.most[0].max(self.most[1]).min(bandwidth.amount_in(MAX_EXTRA).whole(mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::MSS;

    /// One segment each millisecond.
    const RATE: Rate = Rate::from_bps(11_584_000);

    fn take(aggregation: &mut Aggregation, millis: u64, round_start: bool, segments: u64) {
        let now = Instant::ZERO + Duration::from_millis(millis);
        aggregation.update(now, round_start, MSS * segments, RATE, (MSS * 60, MSS));
    }

    #[test]
    fn the_room_is_the_largest_burst_of_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        for millis in (2..=100).step_by(2) {
            take(&mut aggregation, millis, false, 2);
        }
        assert_eq!(aggregation.room(RATE, MSS), 2, "delayed acknowledgements");
        // Forty segments within 4 ms: all but the data that arrives in the meantime is in excess.
        for millis in 110..114 {
            take(&mut aggregation, millis, false, 10);
        }
        assert_eq!(aggregation.room(RATE, MSS), 37);
        let mut rounds = 0;
        while aggregation.room(RATE, MSS) == 37 {
            rounds += 1;
            take(&mut aggregation, 1_000 + 50 * rounds, true, 1);
        }
        assert_eq!(rounds, 10);
    }

    #[test]
    fn the_room_is_never_more_than_a_tenth_of_a_second_or_the_window() {
        let mut aggregation = Aggregation::default();
        take(&mut aggregation, 1_000, false, 500);
        assert_eq!(aggregation.room(RATE, MSS), 60);
        assert_eq!(aggregation.room(Rate::from_bps(384_000), MSS), 3);
    }
}
