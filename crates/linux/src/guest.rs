//! The virtual machine whose clock is the count of its instructions, as a program sees it from inside.

/// The variable that tells a program that it runs there: the kernel's version and the seed.
pub const IN_GUEST: &str = "SUIMON_IN_GUEST";

/// The kernel and the seed of the guest that this process runs in, as in `Linux 7.2.13, seed 1`; `None` elsewhere.
#[must_use]
pub fn here() -> Option<String> {
    std::env::var(IN_GUEST).ok()
}
