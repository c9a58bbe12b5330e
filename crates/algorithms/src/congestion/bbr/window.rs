//! BBR's window: how much may be in flight.

use suimon_units::{Bytes, Rate};

use super::{Bbr, MIN_WINDOW, Mode};
use crate::congestion::{Ack, Delivery, Limits};

/// Below this rate segments leave one by one, else by two at least (§4.2.2).
const SLOW: Rate = Rate::from_bps(1_200_000);
/// The largest burst that Linux hands to a device: 64 KiB with headers.
const MAX_BURST: u64 = (1 << 16) - 1 - 320;
/// Room in the window for segments that both ends hold back, in bursts: one in the sender, one on its way to
/// the device, one in the receiver.
const BURSTS: u64 = 3;

impl Bbr {
    /// `gain` bandwidth-delay products in segments, rounded up (§4.2.3.2).
    fn bdp(&self, bandwidth: Rate, gain: f64, mss: Bytes) -> u64 {
        match self.min_rtt.filter(|_| bandwidth > Rate::ZERO) {
            Some(min_rtt) => segments(Bytes::from_f64(bandwidth.amount_in(min_rtt).as_f64() * gain), mss),
            None => self.initial_cwnd.whole(mss),
        }
    }

    /// `BBRInflight(gain)` (§4.2.3.2): `gain` bandwidth-delay products, and room for the segments that sender and
    /// receiver hold back.
    pub(super) fn inflight(&self, gain: f64, mss: Bytes) -> Bytes {
        self.with_room(self.bdp(self.deliveries.bandwidth(), gain, mss), mss)
    }

    /// Linux rounds up to whole pairs, for receivers that acknowledge pairs, and probes with two segments more, which
    /// reach beyond the product where it is of few.
    fn with_room(&self, window: u64, mss: Bytes) -> Bytes {
        let even = (window + BURSTS * self.send_quantum(mss)).next_multiple_of(2);
        let probes = matches!(self.mode, Mode::ProbeBandwidth { phase: 0, .. });
        mss * (even + if probes { 2 } else { 0 })
    }

    /// `BBR.send_quantum` (§4.2.2), the segments that Linux's senders hand down at once: a millisecond's worth.
    fn send_quantum(&self, mss: Bytes) -> u64 {
        let least = if self.pacing < SLOW { 1 } else { 2 };
        let burst = (self.pacing.as_bps() >> 13).min(MAX_BURST);
        (burst / mss.get()).clamp(least, 127)
    }

    /// The part of `flight` that will be in the path when pacing lets the next segment out, with that segment where
    /// the flight is to grow (Linux since 5.0).
    pub(super) fn flight_at_departure(&self, flight: Bytes, ack: &Ack, delivery: &Delivery) -> Bytes {
        let waits = delivery.next_departure.saturating_since(ack.now);
        let delivered = self.bandwidth().amount_in(waits).whole(ack.mss);
        let next = if self.pacing_gain() > 1.0 { self.send_quantum(ack.mss) } else { 0 };
        (flight + ack.mss * next).saturating_sub(ack.mss * delivered)
    }

    /// `BBRSaveCwnd` (§4.2.3.4).
    pub(super) fn save_cwnd(&mut self, limits: &Limits) {
        let undisturbed = self.episode.is_none() && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if undisturbed { limits.cwnd } else { self.prior_cwnd.max(limits.cwnd) };
    }

    /// `BBRSetCwnd` (§4.2.3.5).
    pub(super) fn set_cwnd(&mut self, ack: &Ack, lost: Bytes, limits: &mut Limits) {
        limits.cwnd = limits.cwnd.saturating_sub(lost).max(ack.mss);
        if self.episode.is_some_and(|until| ack.snd_una >= until) {
            self.episode = None;
            self.conserve = false;
            limits.cwnd = limits.cwnd.max(self.prior_cwnd);
        }
        if self.conserve {
            limits.cwnd = limits.cwnd.max(ack.flight_size.saturating_add(ack.delivered));
        } else {
            self.grow(ack, limits);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            limits.cwnd = limits.cwnd.min(ack.mss * MIN_WINDOW);
        }
    }

    fn grow(&self, ack: &Ack, limits: &mut Limits) {
        let (bandwidth, mss) = (self.bandwidth(), ack.mss);
        let bursts = if self.pipe.is_full() { self.aggregation.room(bandwidth, mss) } else { 0 };
        let target = self.with_room(self.bdp(bandwidth, self.window_gain(), mss) + bursts, mss);
        let grown = limits.cwnd.saturating_add(ack.delivered);
        if self.pipe.is_full() {
            limits.cwnd = grown.min(target);
        } else if limits.cwnd < target || self.deliveries.total() < self.initial_cwnd {
            limits.cwnd = grown;
        }
        limits.cwnd = limits.cwnd.max(mss * MIN_WINDOW);
    }
}

/// The number of segments for `bytes`.
fn segments(bytes: Bytes, mss: Bytes) -> u64 {
    bytes.get().div_ceil(mss.get())
}

#[cfg(test)]
mod tests {
    use suimon_units::{Duration, Instant};

    use super::*;
    use crate::congestion::testing::{MSS, ack};

    fn bbr(rate: u64) -> Bbr {
        let mut bbr = Bbr::new(Duration::from_secs(10), Duration::from_millis(200), 2.0);
        bbr.pacing = Rate::from_bps(rate);
        bbr
    }

    #[test]
    fn a_burst_is_a_millisecond_of_the_rate_and_no_more_than_64_kibibytes() {
        let quantum = |rate| bbr(rate).send_quantum(MSS);
        assert_eq!(quantum(1_199_999), 1);
        assert_eq!(quantum(1_200_000), 2);
        // 100 Mbit/s are 12207 bytes in 1/1024 s.
        assert_eq!(quantum(100_000_000), 8);
        assert_eq!(quantum(10_000_000_000), 45);
    }

    #[test]
    fn what_arrives_before_the_next_departure_is_not_in_the_path_then() {
        let mut bbr = bbr(1_000_000);
        let now = ack(1).now;
        let mut delivery = Delivery {
            total: MSS * 10,
            total_when_sent: Bytes::ZERO,
            rate: Some(Rate::from_bps(1_158_400)),
            app_limited: false,
            rtt: None,
            ts_val: None,
            next_departure: now + Duration::from_millis(25),
        };
        bbr.deliveries.update(&delivery);
        let at_departure =
            |bbr: &Bbr, delivery: &Delivery| bbr.flight_at_departure(MSS * 6, &ack(1), delivery);
        // Two segments take 20 ms; Startup's gain counts the one that departs.
        assert_eq!(at_departure(&bbr, &delivery), MSS * 5);
        bbr.mode = Mode::Drain;
        assert_eq!(at_departure(&bbr, &delivery), MSS * 4);
        delivery.next_departure = Instant::ZERO;
        assert_eq!(at_departure(&bbr, &delivery), MSS * 6);
    }
}
