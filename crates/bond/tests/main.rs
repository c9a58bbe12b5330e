//! All tests of the crate that see its public items alone: one program links once.

mod carriers;
mod replay;
mod restarts;
mod servers;
mod world;
