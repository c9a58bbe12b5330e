//! Programs on an unmodified Linux kernel in virtual time.
//!
//! A guest is a virtual machine whose clock is the count of its own instructions, so that the same job gives the same
//! bytes, whatever this machine does beside it. [`Kernel::set_up`] takes a distribution's kernel apart; a [`Lab`]
//! boots it once, saves the guest, and lets each [`Job`] go on from there. The guest's first process is this same
//! program: see [`init`].

#![forbid(unsafe_code)]

mod error;
mod frame;
pub mod init;
mod job;
mod kernel;
mod lab;
mod machine;
mod store;
mod tree;

pub use error::GuestError;
pub use job::Job;
pub use kernel::Kernel;
pub use lab::{Lab, Outcome, Watcher};
pub use store::Store;
