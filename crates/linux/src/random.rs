//! The seed of the kernel's random numbers.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::error::{Doing, LinuxError};

/// The kernel's `struct rand_pool_info`, with 64 bytes.
#[repr(C)]
struct PoolInfo {
    /// Bits.
    entropy_count: i32,
    /// Bytes.
    buf_size: i32,
    buf: [u8; 64],
}

/// The calls of `linux/random.h`.
mod calls {
    #![allow(missing_docs, reason = "macros write these functions")]
    nix::ioctl_write_ptr!(rndaddentropy, b'R', 0x03, [i32; 2]);
    nix::ioctl_none!(rndreseedcrng, b'R', 0x07);
}

/// Lets all later random numbers of this kernel follow from `seed` and from the kernel's past.
///
/// # Errors
/// Without `CAP_SYS_ADMIN`.
pub fn seed_kernel(seed: u64) -> Result<(), LinuxError> {
    let mut buf = [0; 64];
    for (place, byte) in buf.iter_mut().zip(seed.to_le_bytes().into_iter().cycle()) {
        *place = byte;
    }
    let info = PoolInfo { entropy_count: 512, buf_size: 64, buf };
    let device = File::options().write(true).open("/dev/urandom").doing("opening /dev/urandom")?;
    // SAFETY: the kernel reads two numbers and `buf_size` bytes behind them, which is the whole of `info`.
    unsafe { calls::rndaddentropy(device.as_raw_fd(), (&raw const info).cast()) }
        .doing("seeding random numbers")?;
    // SAFETY: the call takes no argument.
    unsafe { calls::rndreseedcrng(device.as_raw_fd()) }.doing("seeding random numbers")?;
    Ok(())
}
