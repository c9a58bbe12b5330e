//! Waking a thread that waits for packets.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::error::{Doing, LinuxError};

/// The side that wakes.
#[derive(Debug)]
pub struct Waker(UnixStream);

/// The side that waits: readable once woken.
#[derive(Debug)]
pub struct Wakeable(UnixStream);

/// Both sides.
///
/// # Errors
/// Where the process has no descriptors left.
pub fn waker() -> Result<(Waker, Wakeable), LinuxError> {
    let (wakes, waits) = UnixStream::pair().doing("making a pair of sockets")?;
    for side in [&wakes, &waits] {
        side.set_nonblocking(true).doing("making a socket not wait")?;
    }
    Ok((Waker(wakes), Wakeable(waits)))
}

impl Waker {
    /// Wakes the other side.
    pub fn wake(&self) {
        // Full means that it is awake, and closed that nobody waits.
        let _ = (&self.0).write(&[0]);
    }
}

impl Wakeable {
    /// Forgets that it was woken.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.0).read(&mut bytes), Ok(read) if read > 0) {}
    }
}

impl AsFd for Wakeable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
