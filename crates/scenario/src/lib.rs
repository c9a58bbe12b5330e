//! Experiments as data: a topology of hosts, routers and links, the flows over it, and what to record.
//!
//! [`Scenario`] is what the simulator runs. It is validated where it is made, by the readers in this
//! crate, so whoever runs one need not doubt it.

#![forbid(unsafe_code)]

mod model;
mod profile;

pub use model::{
    Buffer, Capacity, Flow, Jitter, Link, Loss, OnOff, Record, Reordering, Scenario, Start, TcpFlow, Traffic,
    UdpFlow,
};
pub use profile::{LossDetection, RecoveryAlgorithm, RtoMinimum, StackProfile};
