//! Sweeps: many runs that survive being stopped, in parts that any number of processes may make.
//!
//! [`Sweep`] says which runs there are and how they fall into parts. One process holds the [`Folder`] and knows
//! what is missing. [`make`] makes parts on the cores of this machine; [`make_parts`] makes some, in whatever
//! process, on whatever machine that sees the folder.

mod parts;
mod plan;
mod work;

pub use parts::{Folder, progress_of};
pub use plan::{Manifest, Sweep};
pub use work::{MakeRun, make, make_by, make_parts};
