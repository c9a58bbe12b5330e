//! Every algorithm there is: one line each, in the file of its role.

mod congestion;
mod estimate;
mod path;
mod queue;
mod receiver;
mod spec;

use alloc::vec::Vec;
use core::fmt;

use strum::VariantArray;

pub use self::congestion::{BuildCongestion, BuildWrapper, CONGESTION, WRAPPERS};
pub use self::estimate::{BuildEstimator, ESTIMATORS};
pub use self::path::{BuildPath, PATHS};
pub use self::queue::{BuildEarly, BuildEarlyWrapper, EARLY, EARLY_WRAPPERS, QUEUES, Queue, build_queue};
pub use self::receiver::{BuildReceiver, RECEIVERS};
pub use self::spec::{AlgorithmSpec, SpecError};
use crate::parameters::Parameter;
use crate::user_defined;

/// What users see of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// As written in scenarios and on the command line.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The paper or RFC that defines it.
    pub source: &'static str,
    /// Its colour in every chart, as `#rrggbb`.
    pub colour: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// What an algorithm is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum Role {
    /// Congestion control at the sender.
    Congestion,
    /// Window advertisement at the receiver.
    Receiver,
    /// Queue discipline at a link.
    Queue,
    /// Choice of the connection, where several carry one stream.
    Path,
    /// Estimator of round-trip times from passing packets.
    Estimator,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Congestion => "congestion control",
            Self::Receiver => "receive window",
            Self::Queue => "queue discipline",
            Self::Path => "path scheduler",
            Self::Estimator => "round-trip time estimator",
        })
    }
}

/// Every algorithm of a role, in the order of the registry; behind them those that the program brought along.
pub fn descriptions(role: Role) -> Vec<&'static Description> {
    let mut all = built_in(role);
    all.extend(user_defined::descriptions(role));
    all
}

/// Every algorithm of a role that has its line here.
pub(crate) fn built_in(role: Role) -> Vec<&'static Description> {
    match role {
        Role::Congestion => described(CONGESTION).chain(described(WRAPPERS)).collect(),
        Role::Receiver => described(RECEIVERS).collect(),
        Role::Queue => QUEUES.iter().chain(described(EARLY)).chain(described(EARLY_WRAPPERS)).collect(),
        Role::Path => described(PATHS).collect(),
        Role::Estimator => described(ESTIMATORS).collect(),
    }
}

fn described<B>(lines: &'static [(Description, B)]) -> impl Iterator<Item = &'static Description> {
    lines.iter().map(|(description, _)| description)
}

/// What builds the algorithm that `description` names.
fn builder<B: Copy>(lines: &[(Description, B)], description: &Description) -> Option<B> {
    lines.iter().find(|(known, _)| known.name == description.name).map(|(_, build)| *build)
}
