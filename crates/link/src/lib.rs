//! A link, for packets of any kind and on any clock.
//!
//! A [`Port`] is one direction of a link: the queue, the [`Transmitter`] that says when a packet leaves and arrives, and
//! the impairments. Its [`Observer`] learns the fate of each packet; [`QueueMeter`] keeps the statistics of a queue,
//! [`FlowTally`] those of a flow, [`DelayMeter`] the delays of its datagrams, and [`stream_result`] sums up a stream over
//! several flows. The simulator and the emulator both drive ports, so that a figure means the same in both.

#![forbid(unsafe_code)]

mod aggregate;
mod crossing;
mod delay_meter;
mod flow_tally;
mod meter;
mod port;
mod series;
mod server;
mod transmitter;
mod window;

pub use aggregate::{stream_of, stream_result};
pub use crossing::{Crossing, FlowSums};
pub use delay_meter::DelayMeter;
pub use flow_tally::{FlowTally, FlowTimes};
pub use meter::QueueMeter;
pub use port::{Observer, Port, Transit, queue_of};
pub use series::SeriesBuilder;
pub use server::Service;
pub use transmitter::Transmitter;
pub use window::QueueWindow;
