//! Estimators of round-trip times.

use alloc::boxed::Box;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::estimate::*;
use crate::parameters::Arguments;

/// Builds an estimator of round-trip times.
pub type BuildEstimator = fn(&Arguments) -> Box<dyn RttEstimator>;

/// Estimators of round-trip times.
pub const ESTIMATORS: &[(Description, BuildEstimator)] = &[
    (bursts::DESCRIPTION, bursts::build),
    (autocorrelation::DESCRIPTION, autocorrelation::build),
    (handshake::DESCRIPTION, handshake::build),
    (slow_start::DESCRIPTION, slow_start::build),
];

impl AlgorithmSpec {
    /// Builds the estimator of round-trip times.
    ///
    /// # Panics
    /// When this is not an estimator.
    #[must_use]
    pub fn build_estimator(&self) -> Box<dyn RttEstimator> {
        let layer = self.outermost(Role::Estimator);
        let build = builder(ESTIMATORS, layer.description());
        build.expect("parse accepts only registered estimators for this role")(&layer.arguments)
    }
}
