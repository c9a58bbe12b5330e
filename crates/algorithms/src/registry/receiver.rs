//! Receive windows.

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::parameters::Arguments;
use crate::receiver::*;

/// Builds a receive window; the first argument is the receive buffer.
pub type BuildReceiver = fn(Bytes, &Arguments) -> Box<dyn ReceiveWindow>;

/// Receive windows.
pub const RECEIVERS: &[(Description, BuildReceiver)] =
    &[(fixed::DESCRIPTION, fixed::build), (drs::DESCRIPTION, drs::build)];

impl AlgorithmSpec {
    /// Builds the receive window over a receive buffer of `buffer`.
    ///
    /// # Panics
    /// When this is not a receive window.
    #[must_use]
    pub fn build_receiver(&self, buffer: Bytes) -> Box<dyn ReceiveWindow> {
        let layer = self.outermost(Role::Receiver);
        let build = builder(RECEIVERS, layer.description());
        build.expect("parse accepts only registered receive windows for this role")(buffer, &layer.arguments)
    }
}
