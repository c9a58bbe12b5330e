//! Path schedulers.

use alloc::boxed::Box;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::parameters::Arguments;
use crate::path::*;
use crate::user_defined::Build;

/// Builds a path scheduler.
pub type BuildPath = fn(&Arguments) -> Box<dyn PathScheduler>;

/// Path schedulers.
pub const PATHS: &[(Description, BuildPath)] = &[
    (least_buffered::DESCRIPTION, |_| Box::new(least_buffered::LeastBuffered)),
    (look_ahead::DESCRIPTION, |arguments| Box::new(look_ahead::LookAhead::new(arguments))),
    (round_robin::DESCRIPTION, |arguments| Box::new(round_robin::RoundRobin::new(arguments))),
    (lowest_rtt::DESCRIPTION, |_| Box::new(lowest_rtt::LowestRtt)),
    (blest::DESCRIPTION, |arguments| Box::new(blest::Blest::new(arguments))),
    (ecf::DESCRIPTION, |arguments| Box::new(ecf::Ecf::new(arguments))),
    (redundant::DESCRIPTION, |_| Box::new(redundant::Redundant)),
];

impl AlgorithmSpec {
    /// Builds the path scheduler.
    ///
    /// # Panics
    /// When this is not a path scheduler.
    #[must_use]
    pub fn build_path(&self) -> Box<dyn PathScheduler> {
        let layer = self.outermost(Role::Path);
        match layer.user_defined() {
            Some(Build::Path(build)) => build(&layer.arguments),
            _ => {
                let build = builder(PATHS, layer.description());
                build.expect("parse accepts only registered path schedulers for this role")(&layer.arguments)
            }
        }
    }
}
