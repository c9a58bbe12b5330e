//! Quantities of networking as types, so that a byte count is never taken for a rate or a time.
//!
//! Every type parses and prints text with a unit (`"90ms"`, `"96kB"`, `"3.6Mbit"`, `"0.5%"`); text
//! without a unit is refused, since guessing one is how bits become bytes.

#![forbid(unsafe_code)]

mod bytes;
mod decibels;
mod parse;
mod probability;
mod rate;
mod time;

pub use bytes::Bytes;
pub use decibels::Decibels;
pub use parse::ParseUnitError;
pub use probability::Probability;
pub use rate::Rate;
pub use time::{Duration, Instant};
