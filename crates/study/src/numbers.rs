//! Whole numbers that users write, refused in words.

use std::num::NonZeroUsize;

/// Reads a whole number, zero included.
///
/// # Errors
/// What is accepted.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("accepted: a whole number from 0 to {}", u64::MAX))
}

/// Reads how many there are of something, one at least.
///
/// # Errors
/// What is accepted.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("accepted: a whole number from 1 to {}", usize::MAX))
}
