//! The Linux kernel's edge: network namespaces and their devices, TUN, real-time threads, processes that end
//! with the one that started them.
//!
//! The only crate with `unsafe`; every block says why it is sound. Nothing shells out: devices, addresses and
//! routes are made over rtnetlink, rules over nfnetlink, and everything made here ends with the process that holds it.

pub mod clock;
pub mod confined;
#[cfg(feature = "bpf")]
pub mod congestion;
pub mod congestion_trace;
mod device;
mod error;
pub mod guest;
pub mod namespace;
pub mod netfilter;
mod netlink;
pub mod packets;
#[cfg(feature = "bpf")]
pub mod queue;
pub mod queue_trace;
pub mod random;
pub mod schedule;
pub mod tcp;
pub mod terminal;
pub mod tun;
pub mod wake;

pub use clock::Clock;
pub use device::{DeviceCounters, Route, RouteMetrics};
pub use error::LinuxError;
pub use namespace::Namespace;
pub use tun::{Tun, TunOptions};
