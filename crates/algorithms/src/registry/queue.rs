//! Queue disciplines.

use super::{AlgorithmSpec, Description, Role, builder};
use crate::own;
use crate::parameters::Arguments;
use crate::queue::early::{Early, EarlyDetection, EarlyQueue};
use crate::queue::*;
use crate::random::RandomStream;

/// Builds early detection for a queue with room for the buffer.
pub type BuildEarly = fn(&Arguments, Buffer) -> Early<Box<dyn EarlyDetection>>;
/// Builds early detection around another.
pub type BuildEarlyWrapper = fn(&Arguments, Early<Box<dyn EarlyDetection>>) -> Early<Box<dyn EarlyDetection>>;

/// One line each for disciplines that are generic over the packet, so that their builders are no constants.
macro_rules! queues {
    (|$arguments:ident, $buffer:ident, $random:ident| $($module:ident => $queue:expr,)*) => {
        /// Queue disciplines beside [`EARLY`] and [`EARLY_WRAPPERS`].
        pub const QUEUES: &[Description] = &[$($module::DESCRIPTION),*];

        /// Builds the one of [`QUEUES`] that `name` names; hands `random` back where there is none.
        fn plain<P: Packet + Send + 'static>(
            name: &str,
            $arguments: &Arguments,
            $buffer: Buffer,
            $random: RandomStream,
        ) -> Result<Box<dyn QueueDiscipline<P>>, RandomStream> {
            $(if name == $module::DESCRIPTION.name {
                return Ok(Box::new($queue));
            })*
            Err($random)
        }
    };
}

queues! { |arguments, buffer, random|
    drop_tail => drop_tail::DropTail::new(buffer),
    codel => codel::CoDelQueue::new(arguments, buffer),
    fq_codel => fq_codel::FqCoDel::new(arguments, buffer, random),
    pie => pie::Pie::new(arguments, buffer, random),
    dualpi2 => dualpi2::DualPi2::new(arguments, buffer),
    cake => cake::Cake::new(arguments, buffer, random),
}

/// Queue disciplines that are early detection, which others may work over.
pub const EARLY: &[(Description, BuildEarly)] = &[
    (red::DESCRIPTION, |arguments, buffer| red::early(arguments, buffer).boxed()),
    (ared::DESCRIPTION, |arguments, buffer| ared::early(arguments, buffer).boxed()),
    (rem::DESCRIPTION, |arguments, buffer| rem::early(arguments, buffer).boxed()),
    (sred::DESCRIPTION, |arguments, buffer| sred::early(arguments, buffer).boxed()),
    (shyu::DESCRIPTION, |arguments, buffer| shyu::early(arguments, buffer).boxed()),
    (rtt_aqm::DESCRIPTION, |arguments, buffer| rtt_aqm::early(arguments, buffer).boxed()),
];

/// Queue disciplines that work over early detection: `dpd+red`.
pub const EARLY_WRAPPERS: &[(Description, BuildEarlyWrapper)] =
    &[(dpd::DPD, dpd::build_dpd), (dpd::DPD_QT, dpd::build_dpd_qt), (even::DESCRIPTION, even::build)];

/// What a wrapper works over where nothing else is said.
pub(super) const BELOW: &str = red::DESCRIPTION.name;

/// Builds the queue discipline that `spec` names, with room for `buffer`.
///
/// # Panics
/// When `spec` is not of a queue discipline.
#[must_use]
pub fn build_queue<P: Packet + Send + 'static>(
    spec: &AlgorithmSpec,
    buffer: Buffer,
    random: RandomStream,
) -> Box<dyn QueueDiscipline<P>> {
    let (description, arguments) = spec.outermost(Role::Queue);
    let random = match plain(description.name, arguments, buffer, random) {
        Ok(queue) => return queue,
        Err(random) => random,
    };
    if description.name == red::DESCRIPTION.name {
        // As a type of its own it costs no indirect call a packet.
        return Box::new(EarlyQueue::new(red::early(arguments, buffer), buffer, random));
    }
    own::queue(description, arguments, buffer)
        .unwrap_or_else(|| Box::new(EarlyQueue::new(spec.build_early(buffer), buffer, random)))
}

impl AlgorithmSpec {
    /// Builds the early detection of a queue with room for `buffer`.
    fn build_early(&self, buffer: Buffer) -> Early<Box<dyn EarlyDetection>> {
        let (wrappers, (inner, arguments)) = self.wrappers_and_inner(Role::Queue);
        let build = builder(EARLY, inner).expect("what is none of QUEUES and no wrapper is early detection");
        wrappers.iter().rev().fold(build(arguments, buffer), |early, (wrapper, arguments)| {
            let build = builder(EARLY_WRAPPERS, wrapper)
                .expect("parse puts only registered wrappers before the last");
            build(arguments, early)
        })
    }
}
