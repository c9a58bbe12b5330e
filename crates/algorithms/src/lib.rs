#![doc = include_str!("../README.md")]
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod congestion;
pub mod estimate;
pub mod parameters;
pub mod path;
pub mod probe;
pub mod queue;
pub mod random;
pub mod receiver;
pub mod registry;
pub mod shaper;
pub mod user_defined;

pub use parameters::{Arguments, ParameterError, Value};
pub use probe::Probe;
pub use random::RandomStream;
