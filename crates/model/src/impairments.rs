//! What a link does to packets beside delaying them.

use std::fmt;

use suimon_units::{Duration, Instant, Probability};

use crate::check::{Checked, refuse, time};

/// What a link does to packets beside delaying them; nothing by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Impairments {
    /// Random loss, after transmission.
    pub loss: Loss,
    /// Extra delay, uniform from zero to this, that varies from packet to packet but keeps their order.
    pub jitter: Duration,
    /// Packets that are overtaken.
    pub reordering: Option<Reordering>,
    /// When nothing gets through: what leaves the link meanwhile is lost. In order, apart from each other.
    pub outages: Vec<Outage>,
}

impl Impairments {
    /// True where every packet arrives, in order and without further delay.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// True where every packet arrives, if late or overtaken.
    #[must_use]
    pub fn lose_nothing(&self) -> bool {
        self.loss == Loss::None && self.outages.is_empty()
    }

    pub(crate) fn check(&self) -> Checked {
        time("jitter", self.jitter)?;
        if let Some(reordering) = self.reordering {
            time("reordering.delay", reordering.delay)?;
        }
        check_outages(&self.outages)
    }
}

/// Random loss.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Loss {
    /// None.
    #[default]
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

fn check_outages(outages: &[Outage]) -> Checked {
    let mut ended = Instant::ZERO;
    for outage in outages {
        if outage.to <= outage.from {
            return refuse("outages", outage, "does not end after it begins", "such as \"10s..15s\"");
        }
        if outage.from < ended {
            let accepted = "periods in order and apart";
            return refuse("outages", outage, "begins before the one before has ended", accepted);
        }
        ended = outage.to;
    }
    Ok(())
}
