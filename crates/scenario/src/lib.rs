//! Experiments as data: readers of what people write, and comparisons.
//!
//! A [`Scenario`] is what the simulator runs; `suimon-model` has it, and this crate passes it on. It is validated
//! where it is made, so whoever runs one need not doubt it: [`Document`] reads scenario files, [`LinkSpec`] a link in
//! one line, [`Comparison`] makes one from a link and a list of algorithms, and [`trace`] reads links whose rate
//! varies.

#![forbid(unsafe_code)]

mod comparison;
mod error;
mod path_comparison;
mod reader;
mod run;
mod scheme;
mod shorthand;
mod text;
pub mod trace;

pub use comparison::{Comparison, FlowCounts};
pub use error::{Problem, ScenarioError};
pub use path_comparison::PathComparison;
pub use reader::{Document, Plan, print_defaults};
pub use scheme::Scheme;
pub use shorthand::LinkSpec;
pub use suimon_model::{
    Aggregate, Buffer, Capacity, Cell, Flow, Hsdpa, Impairments, Link, Loss, LossDetection, Medium, OnOff,
    Outage, Record, RecoveryAlgorithm, Reordering, RtoMinimum, RttSample, Run, Scenario, StackProfile, Start,
    TcpFlow, Traffic, UdpFlow, Window, radio,
};
