//! From a request to findings: what the command and the Python package have in common.
//!
//! A [`Comparison`] is of senders over a link or of path schedulers over several, [`paper`] re-runs a published
//! evaluation and judges it, and `sweep` makes more runs than fit a screen. All simulate by [`simulate`], and
//! [`Findings`] are what they yield. `estimate` reads a packet capture. Nothing here prints, asks for the time, or ends the process.

#![forbid(unsafe_code)]

pub mod attack;
pub mod championship;
pub mod comparison;
mod error;
#[cfg(feature = "capture")]
pub mod estimate;
mod findings;
pub mod numbers;
pub mod paper;
#[cfg(feature = "capture")]
mod pcapng;
mod request;
mod shaping;
mod simulate;
#[cfg(feature = "parquet")]
pub mod sweep;
mod topology;
mod worlds;

pub use comparison::Comparison;
pub use error::{StudyError, problem_of_link};
pub use findings::{Findings, quoted, write_tables};
#[cfg(feature = "capture")]
pub use pcapng::write_pcapng;
pub use request::defaults;
pub use shaping::{Shaped, Shaping, duration_of_shaping, misses, simulate_shaping};
pub use simulate::{Observer, Unobserved, simulate, simulate_one, simulate_totals, total_duration};
pub use topology::topology;
pub use worlds::{Pair, compare_windows, compare_worlds, in_both_worlds};

/// The version that made the results, for their header: the release, and the commit that it was built from with a mark
/// where the sources differed from it, as in `0.1.0+59807616e.dirty`.
pub const VERSION: &str = env!("SUIMON_VERSION");
