//! All tests of the crate that see its public items alone, but for those that count allocations: one program links once.

mod bbr;
mod common;
mod coupling;
mod estimators;
mod facts;
mod gateway;
mod marks;
mod multipath;
mod oracles;
mod properties;
mod queues;
mod radio;
mod shaper;
