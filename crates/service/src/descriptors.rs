//! Open descriptors of this process, and waiting where there are none.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tracing::warn;

/// Raises this process's limit of open descriptors as far as it may.
pub fn raise_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where the kernel refuses, the limit stays as it is.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// The number of descriptors that this process may have open.
#[must_use]
pub fn limit() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(DEFAULT_LIMIT, |(limit, _)| limit);
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
/// Linux's limit unless told otherwise.
const DEFAULT_LIMIT: u64 = 1_024;
