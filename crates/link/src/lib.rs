//! What a link does to packets, whatever a packet is and whose clock it runs on: [`Server`] says when they
//! leave, [`Impairments`] which are lost, late or overtaken, [`QueueMeter`] keeps the books of a queue, and
//! [`FlowTally`] those of a flow. The simulator and the emulator both drive them, so that a figure means the same in
//! both.

#![forbid(unsafe_code)]

mod crossing;
mod flow;
mod impairments;
mod meter;
mod series;
mod server;
mod window;

pub use crossing::{Crossing, FlowSums};
pub use flow::{FlowTally, FlowTimes};
pub use impairments::Impairments;
pub use meter::QueueMeter;
pub use series::SeriesBuilder;
pub use server::{Server, Service};
pub use window::QueueWindow;
