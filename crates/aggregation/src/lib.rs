//! Several ordinary connections as one (Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions
//! for Bandwidth Aggregation, section 4).
//!
//! The sender stamps the application's data with aggregate sequence numbers and hands it, chunk by chunk,
//! to one TCP connection per path; the receiver puts the data back in order. Both ends
//! are state machines without I/O and without the bytes themselves: they see sequence numbers,
//! occupancies of send buffers, and times. The same objects run in the simulator and over real sockets. A [`Stream`] is
//! both ends of one stream in one process, with its measurements.
//!
//! A [`PathScheduler`](suimon_algorithms::path::PathScheduler) places the data. Beyond the
//! paper, data of a path that has failed or stalled is given to others, a path that comes back is used
//! again, and the receiver's reorder buffer is bounded and obeyed.

#![forbid(unsafe_code)]

mod flight;
mod meter;
mod receiver;
mod sender;
mod stream;

pub use flight::{Flight, FlightBound};
pub use meter::{CapacityMeter, LossMeter, Occupancy, RateMeter, Segments, WindowedMin};
pub use receiver::{AggregateReceiver, Arrived, Feedback};
pub use sender::{AggregateSender, Chunk, LATE, LATE_ALONE, Suspicion, Urgency};
pub use stream::{Reading, Stream, StreamOptions, StreamTotals};
