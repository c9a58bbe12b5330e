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
        // A connection that held less than a bandwidth-delay product was not asked for more; what it
        // did then says only how much it can do at least.
        let needed = rate / 8.0 * rtt_min.unwrap_or_default().as_secs_f64();
        if bps > rate || sample.buffered as f64 >= needed {
            self.rate = Some(rate + (bps - rate) / 4.0);
        }
    }

    /// The rate; `None` until measured.
    #[must_use]
    pub fn get(&self) -> Option<Rate> {
        self.rate.map(|rate| Rate::from_bps(rate as u64)).filter(|rate| *rate > Rate::ZERO)
    }
}

/// Shorter times than this give no rate worth the name where ACKs come in bursts.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(20);

/// The least of the samples of the last ten to twenty seconds.
#[derive(Debug, Default)]
pub struct MinOfLate {
    begun: Instant,
    current: Option<Duration>,
    before: Option<Duration>,
}

impl MinOfLate {
    /// A round-trip time was measured.
    pub fn on_sample(&mut self, now: Instant, sample: Duration) {
        if now.saturating_since(self.begun) > Duration::from_secs(10) {
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
