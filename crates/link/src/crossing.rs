//! The flows across a link in a window of time.

use std::ops::Add;

use suimon_results::WindowResult;
use suimon_units::{Bytes, Instant, Rate};

use crate::window::QueueWindow;

/// Sums over flows up to some time.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowSums {
    /// First transmissions, in payload bytes.
    pub entered: u64,
    /// Payload that reached the receiving application.
    pub delivered: u64,
    /// Segments sent again.
    pub retransmissions: u64,
}

impl Add for FlowSums {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            entered: self.entered + more.entered,
            delivered: self.delivered + more.delivered,
            retransmissions: self.retransmissions + more.retransmissions,
        }
    }
}

/// The flows across one link, in one window.
#[derive(Debug)]
pub struct Crossing {
    first: FlowSums,
    last: FlowSums,
    entered: Spread,
    delivered: Spread,
}

impl Crossing {
    /// The window of flows that had done `sums` when it opened.
    #[must_use]
    pub fn new(sums: FlowSums) -> Self {
        Self { first: sums, last: sums, entered: Spread::default(), delivered: Spread::default() }
    }

    /// A sample of the window ends, at which they have done `sums`.
    pub fn sample(&mut self, sums: FlowSums) {
        self.entered.add((sums.entered - self.last.entered) as f64);
        self.delivered.add((sums.delivered - self.last.delivered) as f64);
        self.last = sums;
    }

    /// The row of a window and link by name, open so long, in which `queue` was measured and which left the flows
    /// with `sums`.
    #[must_use]
    pub fn result(
        &self,
        (window, link): (String, String),
        (from, to): (Instant, Instant),
        queue: &QueueWindow,
        sums: FlowSums,
    ) -> WindowResult {
        let time = to.saturating_since(from);
        let mean = queue.lengths.mean();
        let (least, most) = queue.lengths.extremes.unwrap_or_default();
        let rate = |bytes| Rate::of(Bytes::new(bytes), time);
        WindowResult {
            window,
            link,
            from,
            to,
            backlog_records: queue.lengths.count,
            backlog_mean_bytes: mean,
            backlog_cov: queue.lengths.variance().sqrt() / mean,
            backlog_min_bytes: Bytes::new(least),
            backlog_max_bytes: Bytes::new(most),
            backlog_time_mean_bytes: queue.byte_time as f64 / time.as_nanos().max(1) as f64,
            dropped_overflow: queue.overflow,
            dropped_early: queue.early,
            marked: queue.marked,
            entered: rate(sums.entered - self.first.entered),
            entered_cov: self.entered.cov(),
            goodput: rate(sums.delivered - self.first.delivered),
            goodput_cov: self.delivered.cov(),
            retransmissions: sums.retransmissions - self.first.retransmissions,
        }
    }
}

/// Mean and standard deviation of samples (Welford 1962).
#[derive(Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }

    /// Standard deviation over mean; NaN without samples.
    fn cov(&self) -> f64 {
        (self.squares / self.count).sqrt() / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_spread_around_their_mean() {
        let mut spread = Spread::default();
        assert!(spread.cov().is_nan());
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| spread.add(value));
        assert!((spread.cov() - 0.4).abs() < 1e-12);
    }
}
