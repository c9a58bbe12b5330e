//! All tests of the crate that see its public items alone: one program links once.

mod contract;
mod heaviest;
mod rfc;
mod sources;
