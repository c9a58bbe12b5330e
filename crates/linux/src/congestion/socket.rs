//! What a socket is told of congestion control.

use std::ffi::{OsStr, c_int};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::{setsockopt, sockopt};

/// Lets `socket` use the congestion control that the kernel calls `name`; those that a listener accepts use it too.
///
/// # Errors
/// Where the kernel has none of that name.
pub fn choose(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(&socket, sockopt::TcpCongestion, &OsStr::new(name).to_owned())?)
}

/// Never advertises more than so many bytes from now on; a listener hands that down to what it accepts. The kernel sets
/// it anew when it learns how much memory packets take, so a receiver that must keep to it says so again as data comes.
///
/// # Errors
/// None that the kernel is known to give to a TCP socket.
pub fn limit_window(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    // Memory for that much, whatever the kernel's own tuning would give at first.
    setsockopt(&socket, sockopt::RcvBuf, &(2 * bytes as usize))?;
    let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    let (pointer, length) = ((&raw const value).cast(), size_of::<c_int>() as libc::socklen_t);
    let descriptor = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer and the length describe one int that outlives the call.
    let done =
        unsafe { libc::setsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, pointer, length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
