//! What a link does to packets beside delaying them.

use std::fmt;

use suimon_units::{Duration, Instant, Probability};

/// Random loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet alone.
    Random(Probability),
    /// Two states that lose differently and change from packet to packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// From the good state to the bad one, per packet.
        to_bad: Probability,
        /// From the bad state to the good one, per packet.
        to_good: Probability,
        /// Loss in the good state.
        loss_good: Probability,
        /// Loss in the bad state.
        loss_bad: Probability,
    },
}

/// Packets held back so that later ones overtake them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reordering {
    /// Share of the packets.
    pub probability: Probability,
    /// For how long.
    pub delay: Duration,
}

/// A time in which a link carries nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Since then.
    pub from: Instant,
    /// It is over then; [`Instant::MAX`] where it lasts.
    pub to: Instant,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.from.saturating_since(Instant::ZERO))?;
        if self.to < Instant::MAX {
            write!(f, "{}", self.to.saturating_since(Instant::ZERO))?;
        }
        Ok(())
    }
}
