//! Percentiles of delays in fixed memory.

use suimon_units::Duration;

/// Buckets per doubling. A bucket is 1/128 of its octave wide, so its middle is at most 0.4 % off.
const SUB_BUCKETS: u64 = 128;
/// Delays below `SUB_BUCKETS << SHIFT` ns (131 µs) fall into buckets of `1 << SHIFT` ns.
const SHIFT: u32 = 10;

/// Counts of delays on a log-linear scale: exact count, mean and maximum, percentiles within 0.4 %.
///
/// The histogram allocates only when a delay is the longest so far by a factor of two, so steady recording is
/// free of allocation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DelayHistogram {
    counts: Vec<u64>,
    total: u64,
    sum_nanos: u128,
    max: Duration,
}

impl DelayHistogram {
    /// Counts one `delay`.
    #[inline]
    pub fn record(&mut self, delay: Duration) {
        match self.counts.first_mut() {
            // Most packets do not wait at all.
            Some(none) if delay == Duration::ZERO => {
                *none += 1;
                self.total += 1;
            }
            _ => self.record_wait(delay),
        }
    }

    fn record_wait(&mut self, delay: Duration) {
        let bucket = Self::bucket(delay);
        if bucket >= self.counts.len() {
            let octaves = bucket as u64 / SUB_BUCKETS + 1;
            self.counts.resize((octaves * SUB_BUCKETS) as usize, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.sum_nanos += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    /// How many were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Their sum; the longest duration there is where it is longer.
    #[must_use]
    pub fn sum(&self) -> Duration {
        u64::try_from(self.sum_nanos).map_or(Duration::MAX, Duration::from_nanos)
    }

    /// Their mean; zero where none was recorded.
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = self.sum_nanos / u128::from(self.total.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The longest; zero where none was recorded.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The delay that `share` (0 to 1) of those recorded do not exceed; zero where none was recorded.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Self::middle(bucket as u64).min(self.max);
            }
        }
        Duration::ZERO
    }

    fn bucket(delay: Duration) -> usize {
        let scaled = delay.as_nanos() >> SHIFT;
        if scaled < SUB_BUCKETS {
            return scaled as usize;
        }
        let octave = u64::from(scaled.ilog2() - SUB_BUCKETS.ilog2());
        // The top bit names the octave, the next seven the bucket in it.
        (octave * SUB_BUCKETS + (scaled >> octave)) as usize
    }

    fn middle(bucket: u64) -> Duration {
        let octave = (bucket / SUB_BUCKETS).saturating_sub(1);
        let scaled = bucket - octave * SUB_BUCKETS;
        Duration::from_nanos((((2 * scaled + 1) << octave) << SHIFT) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_half_a_percent_over_nine_decades() {
        for exponent in 0..9 {
            let unit = 10_u64.pow(exponent) * 1_000;
            let mut histogram = DelayHistogram::default();
            for i in 1..=1_000 {
                histogram.record(Duration::from_nanos(i * unit));
            }
            for share in [0.05, 0.5, 0.95, 0.99] {
                let exact = share * 1_000.0 * unit as f64;
                let got = histogram.quantile(share).as_nanos() as f64;
                assert!(
                    (got - exact).abs() <= 0.004 * exact + 1_024.0,
                    "{share} of {unit}: {got} vs {exact}"
                );
            }
        }
    }

    #[test]
    fn mean_and_maximum_are_exact() {
        let mut histogram = DelayHistogram::default();
        for nanos in [3, 5, 1_000_003] {
            histogram.record(Duration::from_nanos(nanos));
        }
        assert_eq!(histogram.mean(), Duration::from_nanos(333_337));
        assert_eq!(histogram.max(), Duration::from_nanos(1_000_003));
        assert_eq!(histogram.quantile(1.0), Duration::from_nanos(1_000_003));
    }

    #[test]
    fn nothing_recorded_is_zero_everywhere() {
        let histogram = DelayHistogram::default();
        assert_eq!(histogram.quantile(0.5), Duration::ZERO);
        assert_eq!(histogram.mean(), Duration::ZERO);
    }
}
