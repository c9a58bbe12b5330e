//! Experiments as data: readers of what people write.
//!
//! A [`Scenario`] is what the simulator runs; `suimon-model` has it, and this crate passes it on. It is validated
//! where it is made, so whoever runs one need not doubt it: [`Document`] reads scenario files, [`LinkSpec`] a link in
//! one line, and [`trace`] reads links whose rate varies.

#![forbid(unsafe_code)]

mod error;
mod reader;
mod run;
mod scheme;
mod shorthand;
mod text;
pub mod trace;

pub use error::{Problem, ScenarioError};
pub use reader::{Document, Plan, print_defaults};
pub use run::Runs;
pub use scheme::{Scheme, algorithm};
pub use shorthand::{LinkSpec, drop_tail};
pub use suimon_model::{
    Aggregate, Buffer, Capacity, Cell, Flow, Gateway, Hsdpa, Impairments, Link, Loss, LossDetection, Medium,
    OnOff, Outage, Record, RecoveryAlgorithm, Reordering, RtoMinimum, RttSample, Run, Scenario, StackProfile,
    Start, TcpFlow, Traffic, UdpFlow, Window, radio,
};
pub use text::{DEFAULT_PATIENCE, DEFAULT_STREAM_BUFFER, DEFAULT_WINDOW, parse_buffer};
