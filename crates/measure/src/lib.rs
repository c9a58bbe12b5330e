//! A line as it is, measured from both ends: what it carries each way, how long packets take idle and loaded, what its
//! buffer holds, what it loses, and what kind of queue it has.
//!
//! The [`server`] answers; the [`client`] opens every connection, so that it works behind NAT. What they see is a
//! [`Recording`]; [`estimate`](mod@estimate) makes the description of a [`Line`] of it, and asks nobody else.

#![forbid(unsafe_code)]

mod arrivals;
pub mod browser;
pub mod client;
mod clock;
pub mod datagram;
pub mod estimate;
pub mod first_hop;
mod load;
mod probe;
pub mod protocol;
mod record;
mod recording;
pub mod responsiveness;
mod saturator;
pub mod server;

pub use arrivals::{Arrivals, MAX_MS};
pub use estimate::Line;
pub use record::{RecordPlan, Recorded, Watch, record};
pub use recording::{Direction, Loaded, Probe, Recording, Sample, Span};

/// The port of a server where nobody says another.
pub const PORT: u16 = 7423;
