//! Network algorithms as pure state machines: no I/O, no clock, no randomness of their own.
//!
//! `now` and a random stream are handed in; limits and verdicts come out. The same object therefore
//! runs in the simulator, on an emulated link, and against a recording of a real kernel.
//!
//! To add an algorithm: write its file, add its line to [`registry`], write its page under
//! `docs/algorithms/`. The contract tests then run over it.

#![forbid(unsafe_code)]

pub mod congestion;
pub mod estimate;
pub mod parameters;
pub mod path;
pub mod probe;
pub mod queue;
pub mod random;
pub mod receiver;
pub mod registry;
pub mod user_defined;

pub use parameters::{Arguments, ParameterError, Value};
pub use probe::Probe;
pub use random::RandomStream;
