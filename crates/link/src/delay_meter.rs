//! The time that datagrams take.

use suimon_results::{DatagramDelay, DelayHistogram};
use suimon_units::{Duration, Instant};

/// Measures the time that datagrams take: to the receiver, or there and back.
#[derive(Debug, Default)]
pub struct DelayMeter {
    measured_from: Instant,
    delays: DelayHistogram,
    differences: DelayHistogram,
    last: Option<Duration>,
}

impl DelayMeter {
    /// Begins anew: datagrams sent earlier do not count.
    pub fn begin_measuring(&mut self, now: Instant) {
        *self = Self { measured_from: now, ..Self::default() };
    }

    /// A datagram that was `sent` then has arrived, or come back.
    pub fn record(&mut self, now: Instant, sent: Instant) {
        if sent < self.measured_from {
            return;
        }
        let delay = now.saturating_since(sent);
        if let Some(last) = self.last.replace(delay) {
            self.differences.record(delay.max(last) - delay.min(last));
        }
        self.delays.record(delay);
    }

    /// What was measured; none where nothing arrived.
    #[must_use]
    pub fn result(&self) -> Option<DatagramDelay> {
        (self.delays.count() > 0).then(|| DatagramDelay {
            packets: self.delays.count(),
            p50: self.delays.quantile(0.5),
            p95: self.delays.quantile(0.95),
            p99: self.delays.quantile(0.99),
            max: self.delays.max(),
            jitter: self.differences.mean(),
        })
    }
}
