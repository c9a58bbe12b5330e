//! Where tables of fixed size keep a flow: in one of a few entries, its set, which its number names.

use core::ops::Range;

/// How many sets a table has, and how many entries a set.
pub(super) const SETS: usize = 128;
const WAYS: usize = 8;
pub(super) const ENTRIES: usize = SETS * WAYS;

/// The set of the flow, by Fibonacci hashing: the upper bits of its number times 2^32 over the golden ratio.
pub(super) fn set_of(flow: u32) -> usize {
    (flow.wrapping_mul(0x9e37_79b9) >> (32 - SETS.ilog2())) as usize
}

/// The entries of a set.
pub(super) fn entries_of(set: usize) -> Range<usize> {
    set * WAYS..(set + 1) * WAYS
}
