//! A link, for packets of any kind and on any clock.
//!
//! A [`Port`] is one direction of a link: the queue, the [`Transmitter`] that says when a packet leaves and arrives, and
//! the impairments. Its [`Observer`] learns the fate of each packet; [`QueueMeter`] keeps the statistics of a queue,
//! and [`FlowTally`] those of a flow. The simulator and the emulator both drive ports, so that a figure means the same
//! in both.

#![forbid(unsafe_code)]

mod crossing;
mod flow_tally;
mod meter;
mod port;
mod series;
mod server;
mod transmitter;
mod window;

pub use crossing::{Crossing, FlowSums};
pub use flow_tally::{FlowTally, FlowTimes};
pub use meter::QueueMeter;
pub use port::{Observer, Port, Transit, queue_of};
pub use series::SeriesBuilder;
pub use server::Service;
pub use transmitter::Transmitter;
pub use window::QueueWindow;
