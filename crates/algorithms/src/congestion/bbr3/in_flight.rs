//! What a segment's sender knew when it sent the segment: `P.tx_in_flight` and `P.lost` (§4.1.2.1.2).

use alloc::collections::VecDeque;

use suimon_units::Bytes;

/// What holds for the segments that were sent between two acknowledgements.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// `P.delivered`.
    delivered: Bytes,
    /// `P.lost`.
    pub(super) lost: Bytes,
    /// `P.tx_in_flight` of the last of them.
    pub(super) in_flight: Bytes,
}

/// The segments in flight, by the time when they were sent.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight {
    sent: VecDeque<Sent>,
    /// `C.lost`.
    lost: Bytes,
}

impl InFlight {
    /// An ACK arrived that found `flight_size` in flight: all that was sent since the last one is in it.
    pub(super) fn on_arrival(&mut self, flight_size: Bytes) {
        if let Some(last) = self.sent.back_mut() {
            last.in_flight = last.in_flight.max(flight_size);
        }
    }

    /// `C.lost` grows.
    pub(super) fn lose(&mut self, lost: Bytes) {
        self.lost = self.lost.saturating_add(lost);
    }

    /// Segments are sent from here on with `delivered` confirmed and `flight_size` in flight.
    pub(super) fn begin(&mut self, delivered: Bytes, flight_size: Bytes) {
        self.sent.push_back(Sent { delivered, lost: self.lost, in_flight: flight_size });
    }

    /// The segment that was sent with `delivered` confirmed arrived, and no earlier one is asked for.
    pub(super) fn take(&mut self, delivered: Bytes) -> Sent {
        while self.sent.get(1).is_some_and(|next| next.delivered <= delivered) {
            self.sent.pop_front();
        }
        self.sent.front().copied().unwrap_or_default()
    }

    /// `C.lost` now.
    pub(super) fn lost(&self) -> Bytes {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_known_by_what_was_delivered_when_it_was_sent() {
        let mut flight = InFlight::default();
        flight.begin(Bytes::ZERO, Bytes::ZERO);
        flight.on_arrival(Bytes::new(10));
        flight.lose(Bytes::new(3));
        flight.begin(Bytes::new(4), Bytes::new(6));
        flight.on_arrival(Bytes::new(12));
        flight.lose(Bytes::new(2));
        let first = flight.take(Bytes::ZERO);
        assert_eq!((first.in_flight, flight.lost() - first.lost), (Bytes::new(10), Bytes::new(5)));
        let second = flight.take(Bytes::new(4));
        assert_eq!((second.in_flight, flight.lost() - second.lost), (Bytes::new(12), Bytes::new(2)));
    }
}
