//! Classes of service (RFC 4594): what a flow's data waits for.

use strum::{EnumCount, VariantArray};

/// The class of a stream or of a datagram, in the order of the numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, VariantArray, EnumCount)]
pub enum ServiceClass {
    /// Takes turns with all others of this class.
    #[default]
    Default,
    /// Goes before all else, over the path on which it arrives first.
    Realtime,
    /// As `Realtime`, and over the second-best path too: the first copy counts.
    Redundant,
}

/// What a group of frames is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Flows of the class [`ServiceClass::Redundant`].
    Redundant,
    /// Flows of the class [`ServiceClass::Realtime`].
    Realtime,
    /// What waits for no other of its class: control, and flows that are young or send little.
    Urgent,
    /// The rest.
    Bulk,
}

impl Class {
    /// The flows that a group of it is made of.
    pub(super) fn service(self) -> ServiceClass {
        match self {
            Self::Redundant => ServiceClass::Redundant,
            Self::Realtime => ServiceClass::Realtime,
            Self::Urgent | Self::Bulk => ServiceClass::Default,
        }
    }
}
