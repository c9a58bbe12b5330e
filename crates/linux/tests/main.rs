//! All tests of the crate that see its public items alone: one program links once.

mod arithmetic;
mod open_arithmetic;
mod queue_arithmetic;
mod without_clang;
