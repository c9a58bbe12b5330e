//! All tests of the crate that see its public items alone, and those of congestion control in the running kernel over its
//! links: one program links once.

mod congestion;
mod links;
