//! A monitor interval, and what it was worth.

use suimon_units::{Bytes, Instant};

/// Equation (1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Utility {
    pub(super) exponent: f64,
    pub(super) latency_weight: f64,
    pub(super) loss_weight: f64,
    pub(super) latency_filter: f64,
}

impl Utility {
    /// `x^t - b x dRTT/dT - c x L` of the rate `x`.
    pub(super) fn of(&self, rate: f64, gradient: f64, loss: f64) -> f64 {
        let gradient = if gradient.abs() < self.latency_filter { 0.0 } else { gradient };
        libm::pow(rate, self.exponent)
            - self.latency_weight * rate * gradient
            - self.loss_weight * rate * loss
    }
}

/// A line through round-trip times over the time when their segments were sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Line {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// Its slope, by least squares; zero where there is none.
    pub(super) fn slope(&self) -> f64 {
        let spread = self.count * self.xx - self.x * self.x;
        if spread > 0.0 { (self.count * self.xy - self.x * self.y) / spread } else { 0.0 }
    }
}

/// Why an interval has its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// Doubling.
    Start,
    Faster,
    Slower,
    /// Waiting for the results of both.
    Rest,
}

/// A monitor interval: what became of the segments that were sent in it.
#[derive(Debug, Clone)]
pub(super) struct Interval {
    pub(super) begin: Instant,
    /// Where it is over.
    pub(super) end: Option<Instant>,
    pub(super) rate: f64,
    pub(super) trial: Trial,
    pub(super) delivered: Bytes,
    pub(super) lost: Bytes,
    pub(super) app_limited: bool,
    pub(super) rtt: Line,
}

impl Interval {
    /// One that begins now.
    pub(super) fn begin(now: Instant, trial: Trial, rate: f64) -> Self {
        Self {
            begin: now,
            end: None,
            rate,
            trial,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            app_limited: false,
            rtt: Line::default(),
        }
    }

    pub(super) fn utility(&self, utility: &Utility) -> f64 {
        let all = (self.delivered + self.lost).as_f64();
        let loss = if all > 0.0 { self.lost.as_f64() / all } else { 0.0 };
        utility.of(self.rate, self.rtt.slope(), loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_utility_is_that_of_equation_1() {
        let utility =
            Utility { exponent: 0.9, latency_weight: 900.0, loss_weight: 11.35, latency_filter: 0.05 };
        for (rate, gradient, loss, expected) in [
            (10.0, 0.0, 0.0, 7.943_282_347),
            // 900 * 10 * 0.1 = 900 less.
            (10.0, 0.1, 0.0, -892.056_717_653),
            // 11.35 * 10 * 0.02 = 2.27 less.
            (10.0, 0.0, 0.02, 5.673_282_347),
            // Below the filter nothing grows.
            (10.0, 0.049, 0.0, 7.943_282_347),
        ] {
            assert!((utility.of(rate, gradient, loss) - expected).abs() < 1e-6, "{rate} {gradient} {loss}");
        }
    }

    #[test]
    fn the_slope_is_that_of_least_squares() {
        let mut line = Line::default();
        // By hand: x = 0, 1, 2, 3 and y = 1, 3, 2, 4 give 0.8.
        for (x, y) in [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 4.0)] {
            line.add(x, y);
        }
        assert!((line.slope() - 0.8).abs() < 1e-12);
        assert_eq!(Line::default().slope(), 0.0);
    }
}
