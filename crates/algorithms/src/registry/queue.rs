//! Queue disciplines.

use alloc::boxed::Box;

use suimon_units::Bytes;

use super::{AlgorithmSpec, Description, Role, builder};
use crate::parameters::Arguments;
use crate::queue::early::{Early, EarlyDetection, EarlyPolicy};
use crate::queue::policy::{ArrivalPolicy, PolicyQueue};
use crate::queue::tbf::{Peeked, PeekedPolicy};
use crate::queue::*;
use crate::random::RandomStream;
use crate::user_defined::{Build, over_tickets};

/// Builds early detection for a queue with room for the buffer.
pub type BuildEarly = fn(&Arguments, Buffer) -> Early<Box<dyn EarlyDetection>>;
/// Builds early detection around another.
pub type BuildEarlyWrapper = fn(&Arguments, Early<Box<dyn EarlyDetection>>) -> Early<Box<dyn EarlyDetection>>;

/// A queue as it was built: a policy for packets that its driver keeps, or a discipline that keeps its own.
#[derive(Debug)]
pub enum Queue<P> {
    /// A policy judges arrivals, and packets leave in the order in which they came.
    Policy(Box<dyn ArrivalPolicy>),
    /// A discipline holds the packets and orders them.
    Discipline(Box<dyn QueueDiscipline<P>>),
}

impl<P: Packet + Send + 'static> Queue<P> {
    fn policy(policy: impl ArrivalPolicy + 'static) -> Self {
        Self::Policy(Box::new(policy))
    }

    /// `policy`, below a token bucket where the arguments ask for one.
    fn shaped_policy(arguments: &Arguments, policy: impl ArrivalPolicy + Clone + 'static) -> Self {
        if tbf::is_asked_for(arguments) {
            Self::policy(PeekedPolicy::new(policy))
        } else {
            Self::policy(policy)
        }
    }

    /// The discipline that `build` gives for a buffer, below a token bucket where the arguments ask for one.
    fn shaped<D: QueueDiscipline<P> + 'static>(
        arguments: &Arguments,
        buffer: Buffer,
        build: impl FnOnce(Buffer) -> D,
    ) -> Self {
        if tbf::is_asked_for(arguments) {
            Self::discipline(Peeked::new(buffer, build))
        } else {
            Self::discipline(build(buffer))
        }
    }

    fn discipline(discipline: impl QueueDiscipline<P> + 'static) -> Self {
        Self::Discipline(Box::new(discipline))
    }

    /// The same with the packets: a policy stands in front of a first-in, first-out queue.
    #[must_use]
    pub fn into_discipline(self) -> Box<dyn QueueDiscipline<P>> {
        match self {
            Self::Policy(policy) => Box::new(PolicyQueue::new(policy)),
            Self::Discipline(discipline) => discipline,
        }
    }

    /// See [`QueueDiscipline::capabilities`].
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        match self {
            Self::Policy(policy) => policy.capabilities(),
            Self::Discipline(discipline) => discipline.capabilities(),
        }
    }
}

/// One line each for queues whose builders are generic over the packet, and so no constants.
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
        ) -> Result<Queue<P>, RandomStream> {
            $(if name == $module::DESCRIPTION.name {
                return Ok($queue);
            })*
            Err($random)
        }
    };
}

queues! { |arguments, buffer, random|
    drop_tail => Queue::policy(drop_tail::DropTail(buffer)),
    codel => Queue::shaped(arguments, buffer, |buffer| codel::CoDelQueue::new(arguments, buffer)),
    fq_codel => Queue::shaped(arguments, buffer, |buffer| fq_codel::FqCoDel::new(arguments, buffer, random)),
    pie => Queue::policy(pie::Pie::new(arguments, buffer, random)),
    pie_linux => Queue::shaped_policy(arguments, pie_linux::PieLinux::new(arguments, buffer, random)),
    fq_pie => Queue::shaped(arguments, buffer, |buffer| fq_pie::FqPie::new(arguments, buffer, random)),
    sfq => Queue::shaped(arguments, buffer, |buffer| sfq::Sfq::new(arguments, buffer, random)),
    choke => Queue::discipline(choke::Choke::new(arguments, buffer, random)),
    dualpi2 => Queue::discipline(dualpi2::DualPi2::new(arguments, buffer)),
    cake => Queue::discipline(cake::Cake::new(arguments, buffer, random)),
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

/// The algorithm below a wrapper where the name gives none.
pub(super) const BELOW: &str = red::DESCRIPTION.name;

/// Builds the queue that `spec` names, with room for `buffer`.
///
/// # Panics
/// When `spec` is not of a queue discipline.
#[must_use]
pub fn build_queue<P: Packet + Send + 'static>(
    spec: &AlgorithmSpec,
    buffer: Buffer,
    random: RandomStream,
) -> Queue<P> {
    let layer = spec.outermost(Role::Queue);
    let (name, arguments) = (layer.description().name, &layer.arguments);
    if let Some(Build::Queue(build)) = layer.user_defined() {
        return Queue::Discipline(over_tickets(build(arguments, buffer), buffer));
    }
    let random = match plain(name, arguments, buffer, random) {
        Ok(queue) => return queue,
        Err(random) => random,
    };
    if name == red::DESCRIPTION.name {
        // As a type of its own it costs no indirect call a packet.
        return Queue::policy(EarlyPolicy::new(red::early(arguments, buffer), buffer, random));
    }
    Queue::policy(EarlyPolicy::new(spec.build_early(buffer), buffer, random))
}

impl AlgorithmSpec {
    /// The shortcuts that the queue of this name allows its driver.
    ///
    /// # Panics
    /// When this is not of a queue discipline.
    #[must_use]
    pub fn queue_capabilities(&self) -> Capabilities {
        /// A packet of which there is none.
        #[derive(Debug)]
        enum Never {}

        impl Packet for Never {
            fn size(&self) -> Bytes {
                match *self {}
            }
            fn flow(&self) -> FlowId {
                match *self {}
            }
            fn ecn(&self) -> Ecn {
                match *self {}
            }
            fn mark_congestion_experienced(&mut self) {
                match *self {}
            }
        }
        if self.outermost(Role::Queue).user_defined().is_some() {
            return Capabilities::default();
        }
        build_queue::<Never>(self, Buffer::Unbounded, RandomStream::new(0, "")).capabilities()
    }

    /// Builds the early detection of a queue with room for `buffer`.
    fn build_early(&self, buffer: Buffer) -> Early<Box<dyn EarlyDetection>> {
        let (wrappers, inner) = self.wrappers_and_inner(Role::Queue);
        let build = builder(EARLY, inner.description())
            .expect("what is none of QUEUES and no wrapper is early detection");
        wrappers.iter().rev().fold(build(&inner.arguments, buffer), |early, wrapper| {
            let build = builder(EARLY_WRAPPERS, wrapper.description());
            build.expect("parse puts only registered wrappers before the last")(&wrapper.arguments, early)
        })
    }
}
