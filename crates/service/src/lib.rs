//! What programs that carry other programs' traffic share: descriptors and listeners, the server's half of SOCKS,
//! answers to those who ask how it goes.

#![forbid(unsafe_code)]

pub mod control;
pub mod descriptors;
pub mod socks;
mod target;

pub use target::{NoTarget, Target};
