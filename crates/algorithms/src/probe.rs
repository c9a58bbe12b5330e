//! Inner values of an algorithm, named and with a unit, for plots and traces.

use alloc::vec::Vec;

/// Receives the inner values of an algorithm.
pub trait Probe {
    /// Takes the current `value` of the quantity `name`. A name ends in its unit: `target_bytes`,
    /// `base_rtt_ms`.
    fn value(&mut self, name: &'static str, value: f64);
}

impl Probe for Vec<(&'static str, f64)> {
    fn value(&mut self, name: &'static str, value: f64) {
        self.push((name, value));
    }
}
