//! Rate controllers of shapers.

use alloc::boxed::Box;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::parameters::Arguments;
use crate::shaper::*;

/// Builds the rate controller of a shaper.
pub type BuildShaper = fn(&Arguments) -> Box<dyn RateController>;

/// Rate controllers of shapers.
pub const SHAPERS: &[(Description, BuildShaper)] =
    &[(autorate::DESCRIPTION, autorate::build), (cake_autorate::DESCRIPTION, cake_autorate::build)];

impl AlgorithmSpec {
    /// Builds the rate controller of a shaper.
    ///
    /// # Panics
    /// When this is not one.
    #[must_use]
    pub fn build_shaper(&self) -> Box<dyn RateController> {
        let layer = self.outermost(Role::Shaper);
        let build = builder(SHAPERS, layer.description());
        build.expect("parse accepts only registered shapers for this role")(&layer.arguments)
    }
}
