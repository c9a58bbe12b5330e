//! The rate at which packets arrive.

use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Rate};

/// The arrival rate over the last `window`: the bytes that arrived in it over its length.
///
/// Memory is fixed at any rate: packets closer together than a thousandth of the window count as one.
#[derive(Debug, Clone)]
pub struct ArrivalRate {
    window: Duration,
    /// Bytes by the time of the first of them.
    recent: VecDeque<(Instant, u64)>,
    total: u64,
}

impl ArrivalRate {
    /// Over `window`, taken as 1 us at least.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        Self { window: window.max(Duration::from_micros(1)), recent: VecDeque::new(), total: 0 }
    }

    /// `size` arrives.
    pub fn on_packet(&mut self, now: Instant, size: Bytes) {
        self.total += size.get();
        let apart = Duration::from_nanos(self.window.as_nanos() >> RESOLUTION);
        match self.recent.back_mut() {
            Some((at, bytes)) if now.saturating_since(*at) < apart => *bytes += size.get(),
            _ => self.recent.push_back((now, size.get())),
        }
    }

    /// The rate at `now`, not earlier than the last packet.
    pub fn at(&mut self, now: Instant) -> Rate {
        Rate::from_bps(libm::round(self.bytes_per_second(now) * 8.0) as u64)
    }

    /// The memory that it holds beside itself.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes::new((self.recent.capacity() * size_of::<(Instant, u64)>()) as u64)
    }

    /// The rate as a number.
    pub(crate) fn bytes_per_second(&mut self, now: Instant) -> f64 {
        while let Some((at, bytes)) = self.recent.front()
            && now.saturating_since(*at) >= self.window
        {
            self.total -= bytes;
            self.recent.pop_front();
        }
        self.total as f64 / self.window.as_secs_f64()
    }
}

/// The window is halved this many times: 1024 parts.
const RESOLUTION: u32 = 10;

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
                assert!(error.abs() < 0.8 / 10.0, "{packet}: {error}");
            }
        }
    }

    #[test]
    fn what_is_older_than_the_window_no_longer_counts() {
        let mut rate = ArrivalRate::new(Duration::from_millis(16));
        assert_eq!(rate.at(at(0)), Rate::ZERO);
        rate.on_packet(at(0), Bytes::new(1_600));
        rate.on_packet(at(1_500), Bytes::new(800));
        assert_eq!(rate.at(at(10_000)).as_bps(), 1_200_000);
        assert_eq!(rate.at(at(15_999)).as_bps(), 1_200_000);
        assert_eq!(rate.at(at(16_000)).as_bps(), 400_000);
        assert_eq!(rate.at(at(17_500)), Rate::ZERO);
        rate.on_packet(at(10_000_000), Bytes::new(1_600));
        assert_eq!(rate.at(at(10_008_000)).as_bps(), 800_000);
    }

    #[test]
    fn memory_is_fixed_at_any_rate_and_nothing_is_lost_by_that() {
        let mut rate = ArrivalRate::new(Duration::from_millis(10));
        // 1 000 bytes every 80 ns: 100 Gbit/s.
        for packet in 0..500_000 {
            rate.on_packet(Instant::from_nanos(80 * packet), Bytes::new(1_000));
            rate.at(Instant::from_nanos(80 * packet));
        }
        let error = rate.at(Instant::from_nanos(80 * 499_999)).as_bps_f64() / 100e9 - 1.0;
        assert!(error.abs() < 1.0 / 1_024.0, "{error}");
        assert!(rate.memory() <= Bytes::new(2_048 * 16), "{}", rate.memory());
    }
}
