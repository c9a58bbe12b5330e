//! What a socket is told of congestion control.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{setsockopt, sockopt};

/// Lets `socket` use the congestion control that the kernel calls `name`; those that a listener accepts use it too.
///
/// # Errors
/// Where the kernel has none of that name.
pub fn choose(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(setsockopt(&socket, sockopt::TcpCongestion, &OsStr::new(name).to_owned())?)
}
