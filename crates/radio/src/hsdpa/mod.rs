//! HSDPA: the shared downlink of a UMTS cell (3GPP release 5).
//!
//! In every TTI of 2 ms a cell sends a block to one terminal. The size of the block follows the terminal's
//! report of its fading channel; its decoding follows the channel itself. A block that does not decode is sent again
//! and combined (HARQ), and data out of order waits at the terminal for the missing data (RLC).
//!
//! The equations and their calibration are in `docs/links.md`.

mod adaptation;
mod cell;
mod channel;
mod fading;
mod handover;
mod harq;
mod profile;
mod scheduler;

use suimon_units::{Decibels, Duration, Probability};

pub use adaptation::{Category, Cqi};
pub use cell::{Cell, Totals};
pub use channel::{Channel, Reception, Report};
pub use fading::Fading;
pub use profile::{ACCEPTED as ACCEPTED_PROFILES, Environment, Profile, UnknownProfile};
pub use scheduler::Policy;

/// Transmission time interval.
pub const TTI: Duration = Duration::from_millis(2);

/// Processes of the hybrid ARQ, and so TTIs from a transmission to the next of the same block.
pub const PROCESSES: usize = 6;

/// One terminal in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct UserParameters {
    /// Paths and speed.
    pub profile: Profile,
    /// G: power received from this cell over that of other cells and noise, averaged over fading.
    pub geometry: Decibels,
    /// rho: power of the data channel over that of the cell.
    pub power: Decibels,
    /// kappa: self-interference beyond that of the other paths, as a share of the cell's power; `None` for
    /// the value that fits the environment.
    pub self_interference: Option<Probability>,
    /// Standard deviation of the error of a report.
    pub cqi_error: Decibels,
    /// How long an error lasts.
    pub cqi_error_hold: Duration,
    /// From the measurement to the first block that follows it.
    pub cqi_delay: Duration,
    /// From one report to the next.
    pub cqi_period: Duration,
    /// The terminal's UE category.
    pub category: Category,
    /// Most transmissions of a block.
    pub harq_transmissions: u32,
    /// From the last failed transmission of a block until its content is sent anew.
    pub rlc_resend: Duration,
    /// How decoded blocks become packets.
    pub delivery: Delivery,
    /// Mean time from one change of cell to the next, exponentially distributed; `None` for a terminal that stays.
    pub handover_every: Option<Duration>,
    /// The time without transmissions while the cell changes. Packets wait on.
    pub handover_gap: Duration,
}

/// How decoded blocks become packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// As RLC in acknowledged mode does: a block is part of certain packets, and whatever follows a missing one waits.
    InOrder,
    /// In order, and no more in a TTI than the largest block of the terminal's category carries: what waited for a
    /// missing block leaves no faster than the radio could bring it.
    Paced,
}

impl UserParameters {
    /// A terminal as in the re-run of the FS-AT paper, which calibrated the other parameters: rho = -0.95 dB,
    /// reports without delay in every TTI with an error of 0.5 dB that lasts 10 ms, category 6.
    #[must_use]
    pub fn new(profile: Profile, geometry: Decibels) -> Self {
        Self {
            profile,
            geometry,
            power: Decibels::new(-0.95),
            self_interference: None,
            cqi_error: Decibels::new(0.5),
            cqi_error_hold: Duration::from_millis(10),
            cqi_delay: Duration::ZERO,
            cqi_period: TTI,
            category: Category::SIX,
            harq_transmissions: 4,
            rlc_resend: Duration::from_millis(100),
            delivery: Delivery::InOrder,
            handover_every: None,
            handover_gap: Duration::from_millis(200),
        }
    }

    /// kappa, or the value that fits the environment.
    #[must_use]
    pub fn self_interference(&self) -> f64 {
        let of_environment = self.profile.environment.self_interference();
        self.self_interference.unwrap_or(of_environment).get()
    }
}
