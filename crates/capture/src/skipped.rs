//! Packets that a capture holds and that say nothing here, counted by reason.

use strum::VariantArray;

/// Why a packet was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, VariantArray)]
pub enum SkipReason {
    /// The packet's interface has a link type that is not known here.
    LinkType,
    /// The packet names an interface that the capture does not describe.
    NoInterface,
    /// The packet has no time (pcapng's simple packets), or one that cannot be read.
    NoTime,
    /// Something other than IPv4 and IPv6, such as ARP.
    NotIp,
    /// A fragment of an IP packet.
    Fragment,
    /// Neither TCP nor UDP.
    OtherTransport,
    /// The capture's length limit cut off its headers.
    HeadersCutOff,
    /// Its headers contradict themselves.
    Malformed,
}

impl SkipReason {
    /// All reasons, in the order of reports.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// In words, as behind "skipped:".
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LinkType => "unknown link type",
            Self::NoInterface => "interface not described",
            Self::NoTime => "without a time",
            Self::NotIp => "not IP",
            Self::Fragment => "IP fragment",
            Self::OtherTransport => "neither TCP nor UDP",
            Self::HeadersCutOff => "headers cut off",
            Self::Malformed => "malformed headers",
        }
    }
}

/// How many packets were skipped for which reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skipped([u64; SkipReason::ALL.len()]);

impl Skipped {
    pub(crate) fn count(&mut self, reason: SkipReason) {
        self.0[reason as usize] += 1;
    }

    /// How many for `reason`.
    #[must_use]
    pub fn of(&self, reason: SkipReason) -> u64 {
        self.0[reason as usize]
    }

    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Reasons that occurred, each with its count.
    pub fn reasons(&self) -> impl Iterator<Item = (SkipReason, u64)> {
        SkipReason::ALL
            .iter()
            .copied()
            .map(|reason| (reason, self.of(reason)))
            .filter(|(_, count)| *count > 0)
    }
}
