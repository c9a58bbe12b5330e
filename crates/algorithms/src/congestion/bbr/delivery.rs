//! Round trips, and the bandwidth, from deliveries (§4.1.1).

use suimon_units::{Bytes, Rate};

use super::max_filter::MaxFilter;
use crate::congestion::Delivery;

/// Rounds and bandwidth.
#[derive(Debug, Clone, Default)]
pub(super) struct Deliveries {
    /// `BBR.BtlBw`.
    bandwidth: MaxFilter,
    /// Packet-timed round trips, the total that ends this one, and whether the last sample began one (§4.1.1.3).
    rounds: u64,
    round_ends: Bytes,
    round_start: bool,
    /// Total delivered, as of the last sample.
    total: Bytes,
    /// Totals between which segments were sent that ProbeRTT held back: they show no bandwidth.
    held_back: Option<(Bytes, Bytes)>,
}

impl Deliveries {
    /// Takes the sample of an ACK.
    pub(super) fn update(&mut self, delivery: &Delivery) {
        self.total = delivery.total;
        self.round_start = false;
        let Some(rate) = delivery.rate else { return };
        self.round_start = delivery.total_when_sent >= self.round_ends;
        if self.round_start {
            self.round_ends = delivery.total;
            self.rounds += 1;
        }
        if rate >= self.bandwidth.max() || !self.says_little(delivery) {
            self.bandwidth.update(self.rounds, rate);
        }
    }

    /// True for a sample of segments that were held back by something else than the path.
    fn says_little(&self, delivery: &Delivery) -> bool {
        let held_back = |(from, to)| (from..=to).contains(&delivery.total_when_sent);
        delivery.app_limited || self.held_back.is_some_and(held_back)
    }

    /// Data sent from here on is held back by something else than the path.
    pub(super) fn hold_back(&mut self) {
        self.held_back = Some((self.total, self.total));
    }

    /// The data in flight by now is held back too.
    pub(super) fn still_held_back(&mut self, flight_size: Bytes) {
        if let Some((_, to)) = &mut self.held_back {
            *to = self.total.saturating_add(flight_size);
        }
    }

    /// The round under way ends here.
    pub(super) fn begin_round(&mut self) {
        self.round_ends = self.total;
    }

    /// Whether the last sample began a round.
    pub(super) fn round_start(&self) -> bool {
        self.round_start
    }

    pub(super) fn bandwidth(&self) -> Rate {
        self.bandwidth.max()
    }

    pub(super) fn total(&self) -> Bytes {
        self.total
    }

    #[cfg(test)]
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::Instant;

    use super::*;
    use crate::congestion::testing::MSS;

    #[test]
    fn what_was_sent_while_held_back_lowers_no_bandwidth() {
        let delivery = |total, rate| Delivery {
            total: MSS * total,
            total_when_sent: MSS * (total - 1),
            rate: Some(Rate::from_bps(rate)),
            app_limited: true,
            rtt: None,
            ts_val: None,
            next_departure: Instant::ZERO,
        };
        let mut deliveries = Deliveries::default();
        deliveries.update(&Delivery { app_limited: false, ..delivery(1, 1_000) });
        for total in 2..30 {
            deliveries.update(&delivery(total, 10));
        }
        assert_eq!(deliveries.bandwidth().as_bps(), 1_000);
        deliveries.update(&delivery(30, 1_001));
        assert_eq!(deliveries.bandwidth().as_bps(), 1_001, "more is more");
        for total in 31..42 {
            deliveries.update(&Delivery { app_limited: false, ..delivery(total, 10) });
        }
        assert_eq!(deliveries.bandwidth().as_bps(), 10);
    }
}
