//! Packet captures as typed records, and the round-trip times that they prove.
//!
//! [`Capture`] streams packets out of pcap and pcapng files in bounded memory: packets that cannot be read are
//! counted by reason or refused with file and place. [`Truth`] follows TCP connections in both directions
//! and gives the round-trip times that acknowledgements, timestamps and handshakes show. [`Sequence`] tells new data
//! from data that was sent again. [`CaptureWriter`] writes
//! captures.

#![forbid(unsafe_code)]

mod container;
mod decode;
mod error;
mod packet;
mod read;
mod sequence;
mod skipped;
mod truth;
mod write;

pub use decode::read_packet;
pub use error::{CaptureError, CaptureProblem};
pub use packet::{Endpoints, Packet, Tcp, TcpTimestamps, Transport};
pub use read::{Capture, CutOff};
pub use sequence::{SegmentOrder, Sequence, SequencedSegment};
pub use skipped::{SkipReason, Skipped};
pub use truth::{TrueRtt, Truth, TruthSource};
pub use write::CaptureWriter;
