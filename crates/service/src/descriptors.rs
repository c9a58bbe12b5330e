//! Open descriptors of this process, and waiting where there are none.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

/// Raises this process's limit of open descriptors as far as it may, and takes room in the kernel's table for as many at once, or
/// for 65 536 where there may be more. Call it before there are threads.
///
/// The kernel doubles the table of a process as descriptors are opened. In a process of several threads this waits for a
/// grace period of RCU (`expand_fdtable` in Linux's `fs/file.c`), and every thread that wants a descriptor waits with it.
/// A process of two threads waited for 13 to 19 ms on two idle processors, and on two busy ones a grace period took up to 3.2 s. A
/// process of one thread does not wait.
pub fn raise_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Where the kernel refuses, the limit stays as it is, or the table grows later.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let highest = limit().min(MAX_ROOM).saturating_sub(1);
    let _ = fcntl_dupfd_cloexec(io::stdin(), i32::try_from(highest).expect("at most `MAX_ROOM`"));
}

/// The number of descriptors that this process may have open.
#[must_use]
pub fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The next connection at `listener`. Where the kernel gives none, which passes once there are descriptors again, it is
/// asked again.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => pause(&error).await,
        }
    }
}

/// Whether the kernel resets the connection when its last descriptor is closed, rather than end it in order
/// (`SO_LINGER` with a time of zero, socket(7)).
///
/// # Errors
/// None that the kernel is known to give to a TCP socket.
pub fn reset_on_close(tcp: &TcpStream, resets: bool) -> io::Result<()> {
    SockRef::from(tcp).set_linger(resets.then_some(Duration::ZERO))
}

/// Waits a moment after `accept` has failed.
pub async fn pause(error: &io::Error) {
    warn!("cannot accept: {error}");
    tokio::time::sleep(PAUSE).await;
}

const PAUSE: Duration = Duration::from_millis(100);
/// Descriptors that the kernel has room for from the start: half a megabyte of its memory.
const MAX_ROOM: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_limit_has_its_room_in_the_kernels_table_already() {
        raise_limit();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let room = status.lines().find_map(|line| line.strip_prefix("FDSize:")).unwrap();
        assert!(room.trim().parse::<usize>().unwrap() >= limit().min(MAX_ROOM), "{room}");
    }
}
