//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00), from acknowledgements alone.
//!
//! The draft keeps its values with each packet that is sent. A stack tells a controller the time at which an acknowledged
//! packet was sent, and the values change with acknowledgements only: so those of a packet are the ones that were left by
//! the last acknowledgement before that time.

use std::collections::VecDeque;

use suimon_algorithms::congestion::{Ack, Delivery};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// What one acknowledgement left behind, for the packets that were sent until the next. Names follow the draft.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    began: Instant,
    /// `P.delivered`, `P.delivered_time`, `P.first_sent_time`, `P.is_app_limited`.
    delivered: Bytes,
    delivered_time: Instant,
    first_sent_time: Instant,
    is_app_limited: bool,
}

/// The deliveries of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Deliveries {
    /// In order of time, from the epoch in which the packet was sent that is the newest acknowledged one; never empty.
    epochs: VecDeque<Epoch>,
    delivered: Bytes,
    /// Nothing is in flight.
    is_idle: bool,
    /// Samples count as limited by the application until so much was delivered.
    app_limited_until: Option<Bytes>,
}

impl Deliveries {
    pub(crate) fn new() -> Self {
        let first = Epoch {
            began: Instant::ZERO,
            delivered: Bytes::ZERO,
            delivered_time: Instant::ZERO,
            first_sent_time: Instant::ZERO,
            is_app_limited: false,
        };
        Self {
            epochs: VecDeque::from([first]),
            delivered: Bytes::ZERO,
            is_idle: true,
            app_limited_until: None,
        }
    }

    /// Something is sent (§3.2): where nothing was in flight, time begins anew.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_idle)
            && let Some(last) = self.epochs.back_mut()
        {
            (last.delivered_time, last.first_sent_time) = (now, now);
        }
    }

    /// `ack` arrives, whose newest packet was sent at `sent` (§3.3). Without a round-trip time it tells no rate: a packet
    /// that was sent later had been acknowledged before.
    pub(crate) fn on_ack(&mut self, ack: &Ack, sent: Instant) -> Delivery {
        let Ack { now, rtt, .. } = *ack;
        self.delivered += ack.delivered;
        while self.epochs.get(1).is_some_and(|next| next.began <= sent) {
            self.epochs.pop_front();
        }
        let epoch = self.epochs[0];
        // The slower of sending and delivering counts, since either may be compressed.
        let send_elapsed = sent.saturating_since(epoch.first_sent_time);
        let ack_elapsed = now.saturating_since(epoch.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        // The interval is never shorter than the packet's own round trip, which is unambiguous in QUIC.
        let tells = rtt.is_some() && interval > Duration::ZERO;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if ack.app_limited {
            self.app_limited_until = Some(self.delivered + ack.flight_size);
        }
        self.is_idle = ack.flight_size == Bytes::ZERO;
        let first_sent_time = if rtt.is_some() { sent } else { epoch.first_sent_time };
        self.epochs.push_back(Epoch {
            began: now,
            delivered: self.delivered,
            delivered_time: now,
            first_sent_time,
            is_app_limited: self.app_limited_until.is_some(),
        });
        Delivery {
            total: self.delivered,
            total_when_sent: epoch.delivered,
            rate: tells.then(|| Rate::of(self.delivered.saturating_sub(epoch.delivered), interval)),
            app_limited: epoch.is_app_limited,
            rtt,
            ts_val: None,
            next_departure: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: Bytes = Bytes::new(1_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// The acknowledgement at `now` of a packet that was sent at `sent`, with `left` packets in flight.
    fn acked(now: u64, sent: u64, left: u64) -> Ack {
        let rtt = Some(Duration::from_millis(now - sent));
        Ack { rtt, flight_size: LEN * left, ..Ack::new(at(now), LEN, LEN) }
    }

    fn ack(deliveries: &mut Deliveries, now: u64, sent: u64, left: u64) -> Delivery {
        deliveries.on_ack(&acked(now, sent, left), at(sent))
    }

    #[test]
    fn a_rate_is_what_was_delivered_since_the_packet_was_sent() {
        let mut deliveries = Deliveries::new();
        deliveries.on_sent(at(50));
        // Nothing had been delivered before: 1000 bytes in 100 ms, then 2000 in 101 ms.
        assert_eq!(ack(&mut deliveries, 150, 50, 3).rate, Some(Rate::from_bps(80_000)));
        assert_eq!(ack(&mut deliveries, 151, 50, 2).rate, Some(Rate::from_bps(158_416)));
        ack(&mut deliveries, 152, 50, 2);
        // Sent after the second acknowledgement: 2000 bytes since, in 101 ms of sending.
        let fourth = ack(&mut deliveries, 251, 151, 0);
        assert_eq!((fourth.total, fourth.total_when_sent), (LEN * 4, LEN * 2));
        assert_eq!(fourth.rate, Some(Rate::of(LEN * 2, Duration::from_millis(101))));
        assert_eq!(deliveries.epochs.len(), 3, "what no packet in flight was sent in is forgotten");
    }

    #[test]
    fn a_silence_counts_as_no_time_of_delivery() {
        let mut deliveries = Deliveries::new();
        deliveries.on_sent(at(0));
        ack(&mut deliveries, 100, 0, 0);
        deliveries.on_sent(at(9_000));
        assert_eq!(ack(&mut deliveries, 9_100, 9_000, 0).rate, Some(Rate::from_bps(80_000)));
    }

    #[test]
    fn an_older_packet_than_the_newest_acknowledged_tells_no_rate() {
        let mut deliveries = Deliveries::new();
        deliveries.on_sent(at(0));
        ack(&mut deliveries, 120, 20, 2);
        let late = deliveries.on_ack(&Ack { rtt: None, ..acked(130, 10, 1) }, at(10));
        assert_eq!((late.rate, late.rtt, late.total), (None, None, LEN * 2));
    }

    #[test]
    fn samples_are_limited_by_the_application_until_what_was_in_flight_has_arrived() {
        let mut deliveries = Deliveries::new();
        deliveries.on_sent(at(0));
        let first = deliveries.on_ack(&Ack { app_limited: true, ..acked(100, 0, 1) }, at(0));
        assert!(!first.app_limited, "it was sent before");
        assert!(ack(&mut deliveries, 200, 100, 1).app_limited);
        ack(&mut deliveries, 300, 200, 1);
        assert!(!ack(&mut deliveries, 400, 300, 0).app_limited);
    }
}
