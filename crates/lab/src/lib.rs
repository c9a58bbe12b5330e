//! Measurements on this machine: what a front end asks for and shows, and this crate carries out.
//!
//! `kernel` runs a paper's experiment on the kernel's TCP beside the simulator, and `bond` measures the bond between
//! network namespaces; each is a feature. [`controls`] loads the congestion control that a kernel lacks. All of it needs
//! the right to make namespaces, and nothing of the host's network is touched.

#![forbid(unsafe_code)]

#[cfg(feature = "bond")]
pub mod bond;
pub mod controls;
mod error;
#[cfg(feature = "bpf")]
pub mod kernel;

pub use error::LabError;
