//! How fast packets arrive.

use suimon_units::{Bytes, Duration, Instant, Rate};

/// The arrival rate over the last `window`, in slots of a sixteenth of it: fixed memory at any rate.
///
/// It counts from the start of the oldest slot that is still within the window, so between fifteen and
/// sixteen sixteenths of it, and divides by that time.
#[derive(Debug, Clone)]
pub struct ArrivalRate {
    slot: Duration,
    /// Bytes of the slots, the one under way at `slots[current % SLOTS]`.
    slots: [u64; SLOTS as usize],
    total: u64,
    /// Number of the slot under way, counted from time zero.
    current: u64,
    /// First slot that was observed.
    first: Option<u64>,
}

const SLOTS: u64 = 16;

impl ArrivalRate {
    /// Over `window`, taken as 16 ns at least.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        let slot = Duration::from_nanos((window.as_nanos() / SLOTS).max(1));
        Self { slot, slots: [0; SLOTS as usize], total: 0, current: 0, first: None }
    }

    /// `size` arrives.
    pub fn on_packet(&mut self, now: Instant, size: Bytes) {
        self.advance(now);
        self.first.get_or_insert(self.current);
        self.slots[(self.current % SLOTS) as usize] += size.get();
        self.total += size.get();
    }

    /// The rate at `now`, not earlier than the last packet.
    pub fn at(&mut self, now: Instant) -> Rate {
        self.advance(now);
        let Some(first) = self.first else { return Rate::ZERO };
        let oldest = first.max((self.current + 1).saturating_sub(SLOTS));
        let elapsed = now.as_nanos() - oldest * self.slot.as_nanos();
        // A packet at the very start of what is counted has no time to be divided by.
        let elapsed = Duration::from_nanos(elapsed).max(self.slot);
        Rate::of(Bytes::new(self.total), elapsed)
    }

    fn advance(&mut self, now: Instant) {
        let slot = now.as_nanos() / self.slot.as_nanos();
        for passed in (self.current + 1..=slot).take(SLOTS as usize) {
            self.total -= std::mem::take(&mut self.slots[(passed % SLOTS) as usize]);
        }
        self.current = self.current.max(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    #[test]
    fn a_constant_rate_is_found_within_one_packet_of_the_window() {
        let mut rate = ArrivalRate::new(Duration::from_millis(10));
        // 1 000 bytes every 0.8 ms: 10 Mbit/s.
        for packet in 0..100 {
            let now = at(800 * packet);
            rate.on_packet(now, Bytes::new(1_000));
            if packet > 20 {
                let error = rate.at(now).as_bps_f64() / 10e6 - 1.0;
                assert!(error.abs() < 0.8 / (10.0 * 15.0 / 16.0), "{packet}: {error}");
            }
        }
    }

    #[test]
    fn what_is_older_than_the_window_no_longer_counts() {
        let mut rate = ArrivalRate::new(Duration::from_millis(16));
        rate.on_packet(at(500), Bytes::new(1_600));
        assert_eq!(rate.at(at(10_000)).as_bps(), 1_280_000);
        assert_eq!(
            rate.at(at(15_999)).as_bps(),
            Rate::of(Bytes::new(1_600), Duration::from_micros(15_999)).as_bps()
        );
        assert_eq!(rate.at(at(16_000)), Rate::ZERO);
        rate.on_packet(at(10_000_000), Bytes::new(1_600));
        assert_eq!(
            rate.at(at(10_008_000)).as_bps(),
            Rate::of(Bytes::new(1_600), Duration::from_millis(15)).as_bps()
        );
    }

    #[test]
    fn the_first_packets_count_over_the_time_since_them() {
        let mut rate = ArrivalRate::new(Duration::from_millis(16));
        assert_eq!(rate.at(at(5_000)), Rate::ZERO);
        rate.on_packet(at(100_000), Bytes::new(1_000));
        rate.on_packet(at(102_000), Bytes::new(1_000));
        assert_eq!(rate.at(at(102_000)).as_bps(), 8_000_000);
    }
}
