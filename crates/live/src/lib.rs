//! Scenarios of the simulator on real stacks: their links emulated, their flows made by the kernel's TCP.
//!
//! [`run`] has the input and the output of the simulator's `run`, in the same tables and columns. A scenario that
//! cannot be run live is refused by name before anything begins. A run takes as long as the scenario says, and says
//! itself whether its numbers count.

#![forbid(unsafe_code)]

mod batch;
mod datagrams;
#[cfg(feature = "bpf")]
mod discipline;
mod endpoints;
mod entry;
mod error;
mod gateways;
mod plan;
mod planning;
#[cfg(feature = "bpf")]
mod recorded;
mod result;
#[cfg(feature = "bpf")]
mod router;
mod run;
mod stack_options;
mod streams;

pub use batch::run_all;
pub use endpoints::behave_as_live;
pub use error::LiveError;
pub use plan::{Links, shown_rates};
pub use run::{Glance, Observer, Unobserved, run};
pub use stack_options::{KernelNames, kernels_own, senders};
