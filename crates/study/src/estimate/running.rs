//! An estimator at work on a capture, and how far from the truth it is.

use suimon_algorithms::RandomStream;
use suimon_algorithms::estimate::representative::Representative;
use suimon_algorithms::estimate::{RttEstimator, RttSample, Seen};
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_results::EstimatorResult;
use suimon_units::{Bytes, Duration};

/// Errors of single estimates that are kept for their median.
const KEPT_ERRORS: usize = 1_000_000;

/// One estimator with what it said.
pub(super) struct Running {
    name: String,
    colour: String,
    estimator: Box<dyn RttEstimator>,
    random: RandomStream,
    pub(super) representative: Representative,
    estimates: u64,
    judged: u64,
    /// Estimate less truth, over truth.
    errors: Vec<f32>,
    /// Over the intervals in which both are known.
    intervals: u64,
    representative_sum: Duration,
    true_sum: Duration,
    error_sum: f64,
    memory: Bytes,
}

impl Running {
    pub(super) fn new(spec: &AlgorithmSpec, seed: u64) -> Self {
        Self {
            name: spec.label().to_owned(),
            colour: spec.colour().to_owned(),
            estimator: spec.build_estimator(),
            random: RandomStream::new(seed, spec.label()),
            representative: Representative::new(None),
            estimates: 0,
            judged: 0,
            errors: Vec::new(),
            intervals: 0,
            representative_sum: Duration::ZERO,
            true_sum: Duration::ZERO,
            error_sum: 0.0,
            memory: Bytes::ZERO,
        }
    }

    /// Its column in a series.
    pub(super) fn column(&self) -> String {
        format!("{}_ms", self.name)
    }

    pub(super) fn on_packet(&mut self, seen: &Seen) -> Option<RttSample> {
        let sample = self.estimator.on_packet(seen, &mut self.random)?;
        self.estimates += 1;
        self.representative.on_estimate(sample.rtt);
        Some(sample)
    }

    pub(super) fn judge(&mut self, estimate: Duration, truth: Duration) {
        self.judged += 1;
        if self.errors.len() < KEPT_ERRORS && truth > Duration::ZERO {
            self.errors.push((estimate.as_secs_f64() / truth.as_secs_f64() - 1.0) as f32);
        }
    }

    pub(super) fn finish_interval(&mut self, truth: Option<Duration>) {
        self.memory = self.memory.max(self.estimator.memory());
        let (Some(representative), Some(truth)) = (self.representative.get(), truth) else { return };
        self.intervals += 1;
        self.representative_sum += representative;
        self.true_sum += truth;
        self.error_sum += representative.abs_diff(truth).as_secs_f64() / truth.as_secs_f64();
    }

    pub(super) fn finish(mut self) -> EstimatorResult {
        let known = self.intervals > 0;
        let bias_median = median(&mut self.errors);
        self.errors.iter_mut().for_each(|error| *error = error.abs());
        EstimatorResult {
            name: self.name,
            colour: self.colour,
            estimates: self.estimates,
            judged: self.judged,
            bias_median,
            error_median: median(&mut self.errors),
            representative_mean: known.then(|| self.representative_sum / self.intervals),
            true_mean: known.then(|| self.true_sum / self.intervals),
            representative_error: known.then(|| self.error_sum / self.intervals as f64),
            memory: self.memory,
        }
    }
}

/// The lower of the two in the middle, where their number is even.
fn median(values: &mut [f32]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(f64::from(*values.select_nth_unstable_by(middle, f32::total_cmp).1))
}
