//! 802.11 a, b and g: stations that contend for one medium by the distributed coordination function (DCF).
//!
//! The timing and its sources are in `docs/links.md`.

mod medium;
mod timing;

use suimon_units::{Duration, Probability, Rate};

pub use medium::{Medium, Totals};
pub use timing::{Preamble, Standard};

/// A medium and the parameters that all stations on it share.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Physical layer.
    pub standard: Standard,
    /// Rate of data frames, one of [`Standard::rates`].
    pub rate: Rate,
    /// Rate of acknowledgements, one of [`Standard::rates`].
    pub control_rate: Rate,
    /// Preamble of 802.11b.
    pub preamble: Preamble,
    /// Length of a backoff slot.
    pub slot: Duration,
    /// Short interframe space, between a frame and its acknowledgement.
    pub sifs: Duration,
    /// From the decision to send a data frame to its first bit.
    pub turnaround: Duration,
    /// From one station to another.
    pub propagation: Duration,
    /// Backoff is drawn from zero to this at first.
    pub cw_min: u32,
    /// And to this at most.
    pub cw_max: u32,
    /// Most transmissions of a frame.
    pub retry_limit: u32,
    /// Share of data frames that noise destroys.
    pub frame_loss: Probability,
}

impl Parameters {
    /// A medium of this `standard` whose data frames have this `rate`, all else as the standard has it, but for two
    /// values that were fitted to a published measurement: acknowledgements of 802.11b at 1 Mbit/s and the turnaround.
    #[must_use]
    pub fn new(standard: Standard, rate: Rate) -> Self {
        Self {
            standard,
            rate,
            control_rate: standard.control_rate(rate),
            preamble: Preamble::Long,
            slot: standard.slot(),
            sifs: standard.sifs(),
            turnaround: standard.turnaround(),
            propagation: Duration::from_micros(1),
            cw_min: standard.cw_min(),
            cw_max: 1_023,
            retry_limit: 7,
            frame_loss: Probability::ZERO,
        }
    }
}
