#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod bytes;
mod decibels;
mod parse;
mod probability;
mod rate;
mod round;
mod time;

pub use bytes::Bytes;
pub use decibels::Decibels;
pub use parse::ParseUnitError;
pub use probability::Probability;
pub use rate::Rate;
pub use time::{Duration, Instant};
