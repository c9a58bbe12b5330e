//! How fast segments are delivered (draft-cheng-iccrg-delivery-rate-estimation-00).
//!
//! Kept beside the scoreboard, so that connections whose congestion control does not ask pay nothing.

use std::collections::VecDeque;

use suimon_algorithms::congestion::Delivery;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::tcp::ranges::RangeSet;

/// The state of a segment when it was last sent (§3.1.2). Names follow the draft.
#[derive(Debug, Clone, Copy)]
struct Record {
    seq: u64,
    end: u64,
    /// `P.delivered`, `P.delivered_time`, `P.first_sent_time`, `P.sent_time`, `P.is_app_limited`.
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    sent_time: Instant,
    is_app_limited: bool,
    was_retransmitted: bool,
    is_delivered: bool,
}

/// The state of the connection (§3.1.1).
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    /// The records in order of position.
    records: VecDeque<Record>,
    sacked: RangeSet,
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    /// Samples count as limited by the application until so much was delivered.
    app_limited_until: Option<u64>,
    min_rtt: Option<Duration>,
}

impl Deliveries {
    /// The handshake took `rtt`.
    pub(super) fn on_established(&mut self, now: Instant, rtt: Duration) -> Delivery {
        self.min_rtt = Some(rtt);
        Delivery {
            total: Bytes::ZERO,
            total_when_sent: Bytes::ZERO,
            rate: None,
            app_limited: false,
            rtt: Some(rtt),
            ts_val: None,
            next_departure: now,
        }
    }

    /// A segment is about to be sent, for the first time or again, while `flight_size` is in flight (§3.2).
    pub(super) fn on_sent(&mut self, now: Instant, seq: u64, len: u32, flight_size: Bytes) {
        if flight_size == Bytes::ZERO {
            (self.first_sent_time, self.delivered_time) = (now, now);
        }
        let known = self.records.partition_point(|record| record.seq < seq);
        let record = Record {
            seq,
            end: seq + u64::from(len),
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            sent_time: now,
            is_app_limited: self.app_limited_until.is_some(),
            was_retransmitted: known < self.records.len(),
            is_delivered: false,
        };
        match self.records.get_mut(known) {
            Some(earlier) => *earlier = record,
            None => self.records.push_back(record),
        }
    }

    /// The application has nothing to send, and the window would let it (§3.4).
    pub(super) fn on_application_limited(&mut self, flight_size: Bytes) {
        self.app_limited_until = Some((self.delivered + flight_size.get()).max(1));
    }

    /// Everything below `ack` and in `blocks` has arrived (§3.3).
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Delivery> {
        // The segment among those delivered now that was sent last.
        let mut newest: Option<Record> = None;
        let before = self.delivered;
        while let Some(record) = self.records.front().copied()
            && record.end <= ack
        {
            self.records.pop_front();
            self.take(record, &mut newest);
        }
        self.sacked.remove_below(ack);
        for (start, end) in blocks {
            self.take_block(start.max(ack), end, &mut newest);
        }
        if self.delivered == before {
            return None;
        }
        self.delivered_time = now;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        newest.map(|newest| self.sample(now, &newest))
    }

    fn take_block(&mut self, start: u64, end: u64, newest: &mut Option<Record>) {
        if start >= end || self.sacked.containing(start).is_some_and(|known| end <= known.1) {
            return;
        }
        let index_of = |records: &VecDeque<Record>, position| {
            records.partition_point(|record: &Record| record.end <= position)
        };
        let mut index = index_of(&self.records, start);
        while let Some(record) = self.records.get(index).copied()
            && record.end <= end
        {
            if record.is_delivered {
                // Blocks grow by a segment at a time, so known ranges are passed over at once.
                let known = self.sacked.containing(record.seq);
                index = known.map_or(index + 1, |(_, end)| index_of(&self.records, end));
                continue;
            }
            self.take(record, newest);
            self.records[index].is_delivered = true;
            index += 1;
        }
        self.sacked.insert(start, end);
    }

    /// `UpdateRateSample` of the draft.
    fn take(&mut self, record: Record, newest: &mut Option<Record>) {
        if record.is_delivered {
            return;
        }
        self.delivered += record.end - record.seq;
        if newest
            .is_none_or(|newest| (newest.delivered, newest.sent_time) <= (record.delivered, record.sent_time))
        {
            *newest = Some(record);
        }
    }

    /// `GenerateRateSample` of the draft: the slower of sending and delivering counts, since either may be
    /// compressed.
    fn sample(&mut self, now: Instant, newest: &Record) -> Delivery {
        self.first_sent_time = newest.sent_time;
        let rtt = (!newest.was_retransmitted).then(|| now.saturating_since(newest.sent_time));
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        }
        let send_elapsed = newest.sent_time.saturating_since(newest.first_sent_time);
        let ack_elapsed = now.saturating_since(newest.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        let long_enough = interval > Duration::ZERO && self.min_rtt.is_some_and(|min| interval >= min);
        Delivery {
            total: Bytes::new(self.delivered),
            total_when_sent: Bytes::new(newest.delivered),
            rate: long_enough.then(|| Rate::of(Bytes::new(self.delivered - newest.delivered), interval)),
            app_limited: newest.is_app_limited,
            rtt,
            ts_val: None,
            next_departure: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter::empty;

    use super::*;

    const LEN: u64 = 1_000;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Segments sent at these times in ms, all in one flight.
    fn sent(times: &[u64]) -> Deliveries {
        let mut deliveries = Deliveries::default();
        for (nth, time) in (0..).zip(times) {
            deliveries.on_sent(ms(*time), nth * LEN, LEN as u32, Bytes::new(nth * LEN));
        }
        deliveries
    }

    fn bps(delivery: Option<Delivery>) -> Option<u64> {
        delivery.unwrap().rate.map(Rate::as_bps)
    }

    #[test]
    fn a_rate_is_what_was_delivered_since_the_segment_was_sent() {
        let mut deliveries = sent(&[0, 0, 0, 0]);
        // Nothing had been delivered before: 1000 bytes in 100 ms, then 2000 in 101 ms.
        assert_eq!(bps(deliveries.on_ack(ms(100), LEN, empty())), Some(80_000));
        assert_eq!(bps(deliveries.on_ack(ms(101), 2 * LEN, empty())), Some(158_416));
        deliveries.on_sent(ms(101), 4 * LEN, LEN as u32, Bytes::new(2 * LEN));
        let third = deliveries.on_ack(ms(102), 4 * LEN, empty()).unwrap();
        assert_eq!((third.total, third.total_when_sent), (Bytes::new(4_000), Bytes::ZERO));
        // 3000 bytes, delivered between 101 and 201 ms, sent between 0 and 101 ms: the slower counts.
        let fifth = deliveries.on_ack(ms(201), 5 * LEN, empty()).unwrap();
        assert_eq!(fifth.total_when_sent, Bytes::new(2_000));
        assert_eq!(fifth.rate, Some(Rate::of(Bytes::new(3_000), Duration::from_millis(101))));
        assert_eq!(fifth.rtt, Some(Duration::from_millis(100)));
    }

    #[test]
    fn acknowledgements_that_come_close_together_do_not_speed_up_what_was_sent_slowly() {
        // Sent over 300 ms, acknowledged within 2 ms: 2000 bytes more in the 200 ms of sending.
        let mut deliveries = sent(&[0, 100, 200, 300]);
        deliveries.on_ack(ms(400), LEN, empty());
        deliveries.on_ack(ms(401), 2 * LEN, empty());
        deliveries.on_sent(ms(401), 4 * LEN, LEN as u32, Bytes::new(2 * LEN));
        deliveries.on_sent(ms(601), 5 * LEN, LEN as u32, Bytes::new(3 * LEN));
        let last = deliveries.on_ack(ms(602), 6 * LEN, empty()).unwrap();
        // Sending took from 100 ms, when the segment delivered last at that time had been sent.
        assert_eq!(last.total_when_sent, Bytes::new(2_000));
        assert_eq!(last.rate, Some(Rate::of(Bytes::new(4_000), Duration::from_millis(501))));
    }

    #[test]
    fn an_interval_below_the_smallest_round_trip_is_no_sample() {
        let mut deliveries = sent(&[0]);
        assert!(bps(deliveries.on_ack(ms(100), LEN, empty())).is_some());
        deliveries.on_sent(ms(100), LEN, LEN as u32, Bytes::ZERO);
        deliveries.on_sent(ms(150), 2 * LEN, LEN as u32, Bytes::new(LEN));
        // A retransmission, answered by the late original.
        deliveries.on_sent(ms(180), LEN, LEN as u32, Bytes::new(LEN));
        let late = deliveries.on_ack(ms(190), 2 * LEN, empty()).unwrap();
        assert_eq!((late.rate, late.rtt), (None, None));
    }

    #[test]
    fn what_is_confirmed_selectively_counts_once() {
        let mut deliveries = sent(&[0; 8]);
        let total = |delivery: Option<Delivery>| delivery.map(|delivery| delivery.total.get() / LEN);
        assert_eq!(total(deliveries.on_ack(ms(100), 0, [(LEN, 3 * LEN)].into_iter())), Some(2));
        assert_eq!(total(deliveries.on_ack(ms(100), 0, [(LEN, 3 * LEN)].into_iter())), None);
        let two = [(5 * LEN, 6 * LEN), (LEN, 4 * LEN)].into_iter();
        assert_eq!(total(deliveries.on_ack(ms(101), 0, two)), Some(4));
        // The gap between the two blocks closes.
        assert_eq!(total(deliveries.on_ack(ms(102), 0, [(LEN, 6 * LEN)].into_iter())), Some(5));
        assert_eq!(total(deliveries.on_ack(ms(103), 6 * LEN, empty())), Some(6));
        assert_eq!(total(deliveries.on_ack(ms(104), 8 * LEN, empty())), Some(8));
        assert!(deliveries.records.is_empty());
    }

    #[test]
    fn samples_are_limited_by_the_application_until_what_was_in_flight_has_arrived() {
        let mut deliveries = sent(&[0, 0]);
        deliveries.on_application_limited(Bytes::new(2 * LEN));
        assert!(!deliveries.on_ack(ms(100), LEN, empty()).unwrap().app_limited, "it was sent before");
        deliveries.on_sent(ms(100), 2 * LEN, LEN as u32, Bytes::new(LEN));
        assert!(!deliveries.on_ack(ms(101), 2 * LEN, empty()).unwrap().app_limited);
        assert!(deliveries.on_ack(ms(200), 3 * LEN, empty()).unwrap().app_limited);
        deliveries.on_sent(ms(200), 3 * LEN, LEN as u32, Bytes::ZERO);
        assert!(!deliveries.on_ack(ms(300), 4 * LEN, empty()).unwrap().app_limited);
    }
}
