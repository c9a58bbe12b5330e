//! What both worlds measure of a connection, so that a scheduler sees the same quantities in each.

use suimon_units::{Duration, Instant, Rate};

/// How fast a connection's data gets acknowledged, a sample in each round trip.
#[derive(Debug, Default)]
pub struct RateMeter {
    sample: Option<RateSample>,
    /// In bits per second.
    rate: Option<f64>,
}

/// A sample under way.
#[derive(Debug, Clone, Copy)]
struct RateSample {
    since: Instant,
    acknowledged: u64,
    /// Bytes in the connection when it began.
    buffered: u64,
}

impl RateMeter {
    /// The connection has `acknowledged` bytes behind it and holds `buffered`; its round-trip time is `srtt`,
    /// the least of late `rtt_min`.
    pub fn on_acknowledged(
        &mut self,
        now: Instant,
        acknowledged: u64,
        buffered: u64,
        srtt: Duration,
        rtt_min: Option<Duration>,
    ) {
        let begin = RateSample { since: now, acknowledged, buffered };
        let sample = *self.sample.get_or_insert(begin);
        let time = now.saturating_since(sample.since);
        if time < srtt.max(SHORTEST_SAMPLE) {
            return;
        }
        self.sample = Some(begin);
        let bps = (acknowledged - sample.acknowledged) as f64 * 8.0 / time.as_secs_f64();
        let Some(rate) = self.rate else {
            self.rate = Some(bps);
            return;
        };
        // A connection that held no more than a bandwidth-delay product of what it delivered had no queue: it
        // was not asked for more, and what it did says only how much it can do at least.
        let product = bps / 8.0 * rtt_min.unwrap_or_default().as_secs_f64();
        if sample.buffered as f64 > product * QUEUEING {
            self.rate = Some(rate + (bps - rate) / 4.0);
        } else {
            self.rate = Some(rate.max(bps));
        }
    }

    /// The rate; `None` until measured.
    #[must_use]
    pub fn get(&self) -> Option<Rate> {
        self.rate.map(|rate| Rate::from_bps(rate as u64)).filter(|rate| *rate > Rate::ZERO)
    }
}

/// A path holds a queue where its data takes so many times its least round-trip time.
const QUEUEING: f64 = 1.125;

/// Shorter times than this give no rate worth the name where ACKs come in bursts.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(20);

/// The least of the samples of the last five to ten minutes. Shorter, and a queue that stands becomes the path's
/// length; Linux forgets after five minutes too (`tcp_min_rtt_wlen`).
#[derive(Debug, Default)]
pub struct MinOfLate {
    begun: Instant,
    current: Option<Duration>,
    before: Option<Duration>,
}

const WINDOW: Duration = Duration::from_secs(300);

impl MinOfLate {
    /// A round-trip time was measured.
    pub fn on_sample(&mut self, now: Instant, sample: Duration) {
        if now.saturating_since(self.begun) > WINDOW {
            (self.before, self.current, self.begun) = (self.current, None, now);
        }
        self.current = Some(self.current.map_or(sample, |least| least.min(sample)));
    }

    /// The least; `None` until something was measured.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        [self.current, self.before].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A meter that is told every 100 ms that so many bytes more were acknowledged, and as many are held.
    fn told(samples: &[(u64, u64)]) -> f64 {
        let (mut meter, mut acknowledged) = (RateMeter::default(), 0);
        meter.on_acknowledged(at(0), 0, samples[0].1, RTT, Some(RTT));
        for (nth, (more, held)) in samples.iter().enumerate() {
            acknowledged += more;
            let now = at(100 * (nth as u64 + 1));
            meter.on_acknowledged(now, acknowledged, *held, RTT, Some(RTT));
        }
        meter.get().map_or(0.0, Rate::as_bps_f64)
    }

    #[test]
    fn a_path_without_a_queue_is_as_fast_as_it_ever_was_and_learns_that_at_once() {
        // What was held a round trip before was delivered: no queue, 8 times as much in three round trips.
        let rate = told(&[(10_000, 20_000), (20_000, 40_000), (40_000, 80_000), (80_000, 80_000)]);
        assert_eq!(rate, 80_000.0 * 8.0 / 0.1);
        let rate = told(&[(80_000, 10_000), (10_000, 10_000), (10_000, 10_000)]);
        assert_eq!(rate, 80_000.0 * 8.0 / 0.1, "it was not asked for more");
    }

    #[test]
    fn a_path_with_a_queue_is_as_fast_as_it_was_of_late() {
        let rate = told(&[(80_000, 80_000), (40_000, 80_000), (40_000, 80_000)]);
        let expected = (80_000.0 - 40_000.0 / 4.0 - 30_000.0 / 4.0) * 8.0 / 0.1;
        assert!((rate - expected).abs() < 1.0, "{rate}, not {expected}");
    }

    #[test]
    fn the_least_round_trip_time_outlives_a_standing_queue() {
        let mut least = MinOfLate::default();
        least.on_sample(at(0), RTT);
        for second in 1..=299 {
            least.on_sample(at(1_000 * second), RTT * 3);
        }
        assert_eq!(least.get(), Some(RTT));
        for second in 300..=700 {
            least.on_sample(at(1_000 * second), RTT * 3);
        }
        assert_eq!(least.get(), Some(RTT * 3), "and not the path's change");
    }
}
