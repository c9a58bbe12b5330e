//! What programs that carry other programs' traffic share: descriptors and listeners, the server's half of SOCKS,
//! addresses of names,
//! answers to those who ask how it goes.

#![forbid(unsafe_code)]

pub mod control;
pub mod descriptors;
mod metrics;
mod names;
pub mod socks;
mod target;

pub use metrics::Metrics;
pub use names::{Names, UnknownName};
pub use target::{NoTarget, Target};
