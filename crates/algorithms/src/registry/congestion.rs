//! Congestion controls.

use alloc::boxed::Box;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::congestion::*;
use crate::parameters::Arguments;
use crate::user_defined::Build;

/// Builds a congestion control.
pub type BuildCongestion = fn(&Arguments) -> Box<dyn CongestionControl>;
/// Builds a congestion control around another.
pub type BuildWrapper = fn(&Arguments, Box<dyn CongestionControl>) -> Box<dyn CongestionControl>;

/// Congestion controls.
pub const CONGESTION: &[(Description, BuildCongestion)] = &[
    (reno::DESCRIPTION, reno::build),
    (cubic::DESCRIPTION, cubic::build),
    (cubic_2_1::DESCRIPTION, cubic_2_1::build),
    (cubic_linux::DESCRIPTION, cubic_linux::build),
    (bic::DESCRIPTION, bic::build),
    (vegas::DESCRIPTION, vegas::build),
    (vegas_linux::DESCRIPTION, vegas_linux::build),
    (compound::DESCRIPTION, compound::build),
    (highspeed::DESCRIPTION, highspeed::build),
    (scalable::DESCRIPTION, scalable::build),
    (htcp::DESCRIPTION, htcp::build),
    (bbr::DESCRIPTION, bbr::build),
    (westwood::DESCRIPTION, westwood::build),
    (veno::DESCRIPTION, veno::build),
    (illinois::DESCRIPTION, illinois::build),
    (hybla::DESCRIPTION, hybla::build),
    (yeah::DESCRIPTION, yeah::build),
    (copa::DESCRIPTION, copa::build),
    (ledbat_plus_plus::DESCRIPTION, ledbat_plus_plus::build),
    (cdg::DESCRIPTION, cdg::build),
    (bbr3::DESCRIPTION, bbr3::build),
    (vivace::DESCRIPTION, vivace::build),
    (verus::DESCRIPTION, verus::build),
    (sprout_ewma::DESCRIPTION, sprout_ewma::build),
    (nv::DESCRIPTION, nv::build),
    (lp::DESCRIPTION, lp::build),
    (lia::DESCRIPTION, lia::build),
    (dctcp::DESCRIPTION, dctcp::build),
    (prague::DESCRIPTION, prague::build),
];

/// Congestion controls that work over another: `fs-at+cubic`.
pub const WRAPPERS: &[(Description, BuildWrapper)] = &[
    (fs_at::DESCRIPTION, fs_at::build),
    (fs_at_open::DESCRIPTION, fs_at_open::build),
    (hystart_plus_plus::DESCRIPTION, hystart_plus_plus::build),
    (abe::DESCRIPTION, abe::build),
];

/// The algorithm below `wrapper` where the name gives none.
pub(super) fn below(wrapper: &str) -> &'static str {
    // Beside others the open mode is what most of them are.
    if wrapper == fs_at_open::DESCRIPTION.name { cubic::DESCRIPTION.name } else { reno::DESCRIPTION.name }
}

impl AlgorithmSpec {
    /// Builds the congestion control.
    ///
    /// # Panics
    /// When this is not a congestion control.
    #[must_use]
    pub fn build_congestion(&self) -> Box<dyn CongestionControl> {
        let (wrappers, inner) = self.wrappers_and_inner(Role::Congestion);
        let innermost = match inner.user_defined() {
            Some(Build::Congestion(build)) => build(&inner.arguments),
            _ => {
                let build = builder(CONGESTION, inner.description());
                build.expect("parse puts a registered congestion control last")(&inner.arguments)
            }
        };
        wrappers.iter().rev().fold(innermost, |below, wrapper| {
            let build = builder(WRAPPERS, wrapper.description());
            build.expect("parse puts only registered wrappers before the last")(&wrapper.arguments, below)
        })
    }
}
