//! The reader called "bond datagrams" on input that is chosen by coverage.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| suimon_fuzz::read("bond datagrams", bytes));
