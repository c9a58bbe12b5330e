//! Packet-timed round trips (§5.5.1), and what was sent while the algorithm itself held back.

use suimon_units::Bytes;

use crate::congestion::Delivery;

/// The round under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// `BBR.round_count`.
    pub(super) count: u64,
    /// `BBR.round_start`.
    pub(super) start: bool,
    /// `BBR.next_round_delivered`.
    ends: Bytes,
    /// `C.delivered`.
    pub(super) delivered: Bytes,
    /// `C.delivered` between which segments count as limited by the application, since ProbeRTT held them back.
    held_back: Option<(Bytes, Bytes)>,
}

impl Rounds {
    /// `UpdateRound`.
    pub(super) fn update(&mut self, delivery: &Delivery) {
        self.delivered = delivery.total;
        self.start = delivery.total_when_sent >= self.ends;
        if self.start {
            self.begin();
            self.count += 1;
        }
    }

    /// `StartRound`.
    pub(super) fn begin(&mut self) {
        self.ends = self.delivered;
    }

    /// `MarkConnectionAppLimited` while `flight_size` is in flight.
    pub(super) fn hold_back(&mut self, flight_size: Bytes) {
        let from =
            self.held_back.map_or(
                self.delivered,
                |(from, until)| {
                    if until < self.delivered { self.delivered } else { from }
                },
            );
        self.held_back = Some((from, self.delivered.saturating_add(flight_size)));
    }

    /// `RS.is_app_limited`.
    pub(super) fn is_app_limited(&self, delivery: &Delivery) -> bool {
        let held_back = |(from, until)| (from..=until).contains(&delivery.total_when_sent);
        delivery.app_limited || self.held_back.is_some_and(held_back)
    }
}
