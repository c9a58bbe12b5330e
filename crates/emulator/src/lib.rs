//! Links of your choice on real packets: the simulator's treatment of records, applied to programs' packets.
//!
//! A link joins two network namespaces. Each of its directions has a queue discipline of the registry, a capacity,
//! a delay and impairments, as a [`suimon_model::Link`] says; one thread moves the packets. The emulator measures
//! how late it was itself, since a result counts only where it was not.

#![forbid(unsafe_code)]

mod addresses;
mod checksum;
mod direction;
mod emulation;
mod flows;
mod forwarder;
mod gate;
mod log;
mod marks;
mod packet;
mod radios;
mod relay;
mod result;
mod segment;
mod statistics;
mod topology;
mod verdict;

pub use direction::{MAX_MEMORY, Refused};
pub use emulation::{Emulation, End, LinkSetup, Setup, Way};
pub use flows::FlowShare;
pub use log::{Fate, PacketRecord, PacketRecords};
pub use marks::Measuring;
pub use packet::{FlowKey, Malformed, WirePacket};
pub use result::run_result;
pub use segment::split;
pub use statistics::{ClosedWindow, DirectionStatistics, Lateness, LinkReport, LinkStatistics};
pub use topology::{Path, TwoHosts};
pub use verdict::Verdict;
