//! Experiments as data: a topology of hosts, routers and links, the flows over it, and what to record.
//!
//! [`Scenario`] is what the simulator runs. It is validated where it is made, by the readers in this
//! crate, so whoever runs one need not doubt it: [`Document`] reads scenario files, [`Comparison`] makes
//! one from a link and a list of algorithms, and [`trace`] reads links whose rate varies.

#![forbid(unsafe_code)]

mod check;
mod comparison;
mod error;
mod model;
mod path_comparison;
mod profile;
mod reader;
mod run;
mod scheme;
mod shorthand;
mod text;
mod topology;
pub mod trace;

pub use comparison::{Comparison, FlowCounts};
pub use error::{Problem, ScenarioError};
pub use model::{
    Aggregate, Buffer, Capacity, Cell, Flow, Hsdpa, Link, Loss, Medium, OnOff, Outage, Record, Reordering,
    Scenario, Start, TcpFlow, Traffic, UdpFlow, Window,
};
pub use path_comparison::PathComparison;
pub use profile::{LossDetection, RecoveryAlgorithm, RtoMinimum, RttSample, StackProfile};
pub use reader::{Document, Plan, print_defaults};
pub use run::Run;
pub use scheme::Scheme;
pub use shorthand::LinkSpec;
pub use suimon_radio as radio;
