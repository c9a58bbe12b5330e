//! The rate at which packets arrive.

use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::parameters::{Arguments, Parameter, Range, Value};

/// The parameter `rate` of a queue that measures the arrival rate.
pub(crate) const RATE: Parameter = Parameter {
    name: "rate",
    help: "X: the bytes of the last window over its length, or an exponential average",
    default: Value::Choice("window"),
    range: Range::OneOf(&["window", "average"]),
};

/// The parameter `window` of a queue that measures the arrival rate.
pub(crate) const WINDOW: Parameter = Parameter {
    name: "window",
    help: "time over which the arrival rate X is measured; its time constant where it is averaged",
    default: Value::Duration(Duration::from_millis(10)),
    range: Range::Any,
};

/// The arrival rate of late: the bytes of the last window over its length, or an exponential average.
#[derive(Debug, Clone)]
pub struct ArrivalRate {
    window: Duration,
    recent: Recent,
}

#[derive(Debug, Clone)]
enum Recent {
    /// Bytes by the time of the first of them, and their sum.
    ///
    /// Memory is fixed at any rate: packets closer together than a thousandth of the window count as one.
    Window(VecDeque<(Instant, u64)>, u64),
    /// The average in bytes per second, and the time that it is of.
    Average(f64, Instant),
}

impl ArrivalRate {
    /// Over `window`, taken as 1 us at least.
    #[must_use]
    pub fn new(window: Duration) -> Self {
        Self { window: window.max(Duration::from_micros(1)), recent: Recent::Window(VecDeque::new(), 0) }
    }

    /// The average with the time constant `tau`, taken as 1 us at least.
    #[must_use]
    pub fn averaged(tau: Duration) -> Self {
        Self { window: tau.max(Duration::from_micros(1)), recent: Recent::Average(0.0, Instant::ZERO) }
    }

    /// As [`RATE`] and [`WINDOW`] say.
    pub(crate) fn build(arguments: &Arguments) -> Self {
        let window = arguments.duration("window");
        if arguments.choice("rate") == "average" { Self::averaged(window) } else { Self::new(window) }
    }

    /// `size` arrives.
    pub fn on_packet(&mut self, now: Instant, size: Bytes) {
        match &mut self.recent {
            Recent::Window(recent, total) => {
                *total += size.get();
                let apart = Duration::from_nanos(self.window.as_nanos() >> RESOLUTION);
                match recent.back_mut() {
                    Some((at, bytes)) if now.saturating_since(*at) < apart => *bytes += size.get(),
                    _ => recent.push_back((now, size.get())),
                }
            }
            Recent::Average(..) => {
                let before = self.bytes_per_second(now);
                self.recent = Recent::Average(before + size.as_f64() / self.window.as_secs_f64(), now);
            }
        }
    }

    /// The rate at `now`, not earlier than the last packet.
    pub fn at(&mut self, now: Instant) -> Rate {
        Rate::from_bps(libm::round(self.bytes_per_second(now) * 8.0) as u64)
    }

    /// The memory that it holds beside itself.
    pub(crate) fn memory(&self) -> Bytes {
        match &self.recent {
            Recent::Window(recent, _) => Bytes::new((recent.capacity() * size_of::<(Instant, u64)>()) as u64),
            Recent::Average(..) => Bytes::ZERO,
        }
    }

    /// The rate as a number.
    pub(crate) fn bytes_per_second(&mut self, now: Instant) -> f64 {
        match &mut self.recent {
            Recent::Window(recent, total) => {
                while let Some((at, bytes)) = recent.front()
                    && now.saturating_since(*at) >= self.window
                {
                    *total -= bytes;
                    recent.pop_front();
                }
                *total as f64 / self.window.as_secs_f64()
            }
            Recent::Average(rate, at) => {
                *rate * libm::exp(-(now.saturating_since(*at).as_secs_f64() / self.window.as_secs_f64()))
            }
        }
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

    /// A step to a constant rate is followed as 1 - exp(-t / tau), and silence as exp(-t / tau).
    #[test]
    fn the_average_follows_a_step_with_its_time_constant() {
        let mut rate = ArrivalRate::averaged(Duration::from_millis(20));
        // 100 bytes every 0.1 ms: 8 Mbit/s, for one time constant.
        for packet in 0..200 {
            rate.on_packet(at(100 * packet), Bytes::new(100));
        }
        let reached = |rate: &mut ArrivalRate, now| rate.at(now).as_bps_f64() / 8e6;
        assert!((reached(&mut rate, at(20_000)) - 0.632).abs() < 0.005);
        assert!((reached(&mut rate, at(40_000)) - 0.632 * 0.368).abs() < 0.005);
        assert_eq!(rate.memory(), Bytes::ZERO);
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
