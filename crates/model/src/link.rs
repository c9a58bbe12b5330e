//! Links.

use suimon_algorithms::queue::Buffer;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_units::{Bytes, Duration, Rate};

use crate::capacity::Capacity;
use crate::impairments::Impairments;

/// A unidirectional link with the queue in front of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Unique name.
    pub name: String,
    /// The node whose packets it takes.
    pub from: String,
    /// The node that it leads to.
    pub to: String,
    /// How fast it sends.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Duration,
    /// What each packet costs on the link beside its own bytes.
    pub overhead: Bytes,
    /// How much may wait, without the packet that is being sent.
    pub buffer: Buffer,
    /// The queue discipline.
    pub queue: AlgorithmSpec,
    /// What it does to packets beside delaying them.
    pub impairments: Impairments,
    /// What estimates round-trip times from the packets that come to it.
    pub estimator: Option<AlgorithmSpec>,
    /// Whether results show it; access links of a comparison are not worth a row.
    pub reported: bool,
}

impl Link {
    /// The other direction of the duplex link that `name` is one direction of.
    #[must_use]
    pub fn other_direction(name: &str) -> String {
        match name.strip_suffix(REVERSE) {
            Some(forward) => forward.to_owned(),
            None => format!("{name}{REVERSE}"),
        }
    }

    /// One that does nothing but delay, and that no result shows.
    ///
    /// # Panics
    ///
    /// Never: drop tail is registered.
    #[must_use]
    pub fn delaying(name: String, from: &str, to: &str, delay: Duration) -> Self {
        Self {
            name,
            from: from.to_owned(),
            to: to.to_owned(),
            capacity: Capacity::Rate(Rate::MAX),
            delay,
            overhead: Bytes::ZERO,
            buffer: Buffer::Unbounded,
            queue: AlgorithmSpec::parse(Role::Queue, "droptail").expect("drop tail is registered"),
            impairments: Impairments::default(),
            estimator: None,
            reported: false,
        }
    }
}

/// How the way back of a duplex link is called, behind the link's name.
const REVERSE: &str = "-reverse";
