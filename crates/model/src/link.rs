//! Links, and how fast they send.

use std::sync::Arc;

use suimon_algorithms::queue::Buffer;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_radio::{hsdpa, wlan};
use suimon_units::{Bytes, Duration, Rate};

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

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// Always at this rate.
    Rate(Rate),
    /// One opportunity to send 1500 bytes at each of these times, in Mahimahi's way: unused
    /// opportunities are lost, and after `period` the list starts again.
    Opportunities {
        /// When, from the start of the run, ascending, at most `period`.
        times: Arc<[Duration]>,
        /// Length of the list in time, more than zero.
        period: Duration,
    },
    /// At the rate that holds since the latest of these times; after `period` the list starts again.
    Steps {
        /// Since when and which rate, ascending, the first at zero; not all zero.
        steps: Arc<[(Duration, Rate)]>,
        /// Length of the list in time, more than the last step's time.
        period: Duration,
    },
    /// As an HSDPA cell serves one of its terminals.
    Hsdpa(Box<Hsdpa>),
    /// As the station at the link's beginning gets hold of an 802.11 medium, which it shares with all links that
    /// name it. Links from the same node are one station.
    Wifi(Arc<Medium>),
}

impl Capacity {
    /// What one opportunity of a Mahimahi trace carries.
    pub const OPPORTUNITY: Bytes = Bytes::new(1_500);

    /// True where a radio decides when packets leave, not the link by itself.
    #[must_use]
    pub fn is_radio(&self) -> bool {
        matches!(self, Self::Hsdpa(_) | Self::Wifi(_))
    }

    /// What the way back takes beside the propagation delay.
    #[must_use]
    pub fn uplink_delay(&self) -> Duration {
        match self {
            Self::Hsdpa(terminal) => terminal.uplink_delay,
            _ => Duration::ZERO,
        }
    }
}

/// A terminal of an HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Hsdpa {
    /// The terminal and its channel.
    pub user: hsdpa::UserParameters,
    /// The cell that it shares with the others that name it; `None` for one of its own.
    pub cell: Option<Arc<Cell>>,
    /// What the way back takes beside the propagation delay. Readers add it to the delay of the way back where
    /// nothing else is said of that.
    pub uplink_delay: Duration,
}

impl Hsdpa {
    /// A terminal in a cell of its own, with what the way back took in the re-run of the FS-AT paper: 35 ms.
    #[must_use]
    pub fn new(user: hsdpa::UserParameters) -> Self {
        Self { user, cell: None, uplink_delay: Duration::from_millis(35) }
    }
}

/// An 802.11 medium.
#[derive(Debug, Clone, PartialEq)]
pub struct Medium {
    /// Unique name.
    pub name: String,
    /// Timing and options.
    pub parameters: wlan::Parameters,
}

/// An HSDPA cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Unique name.
    pub name: String,
    /// Whom it serves next.
    pub scheduler: hsdpa::Policy,
}
