//! Open descriptors of this process, shared out so that none of its sessions takes all.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::warn;

/// Raises this process's limit of open descriptors as far as it may.
pub fn raise_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Where the kernel refuses, the limit stays as it is.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Descriptors for streams and datagrams.
#[derive(Debug, Clone)]
pub(crate) struct Descriptors(Arc<Semaphore>);

/// The descriptors of one session.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    all: Descriptors,
    held: Arc<AtomicUsize>,
}

/// Room for one descriptor, given back when dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    _permit: OwnedSemaphorePermit,
    held: Arc<AtomicUsize>,
}

impl Descriptors {
    /// Three quarters of this process's limit. The rest is for connections of paths and for those who ask how it goes.
    pub(crate) fn of_process() -> Self {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(DEFAULT_LIMIT, |(limit, _)| limit);
        Self::new(usize::try_from(limit).unwrap_or(usize::MAX) / 4 * 3)
    }

    fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))))
    }

    pub(crate) fn share(&self) -> Share {
        Share { all: self.clone(), held: Arc::default() }
    }
}

impl Share {
    /// Room for one more; none where this session has as many as are free: the dynamic threshold of shared buffers
    /// (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998), with a factor of one. So a single session
    /// may take half of all, and a further one always finds some.
    pub(crate) fn take(&self) -> Option<Ticket> {
        if self.held.load(Ordering::Relaxed) >= self.all.0.available_permits() {
            return None;
        }
        self.all.0.clone().try_acquire_owned().ok().map(|permit| self.ticket(permit))
    }

    /// Waits for room, where only one session shares it.
    pub(crate) async fn wait(&self) -> Ticket {
        let permit = self.all.0.clone().acquire_owned().await;
        self.ticket(permit.expect("nobody closes it"))
    }

    fn ticket(&self, permit: OwnedSemaphorePermit) -> Ticket {
        self.held.fetch_add(1, Ordering::Relaxed);
        Ticket { _permit: permit, held: self.held.clone() }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The next connection at `listener`. Where the kernel gives none, which passes once there are descriptors again, it is
/// asked again.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => pause(&error).await,
        }
    }
}

/// Waits a moment after `accept` has failed.
pub(crate) async fn pause(error: &io::Error) {
    warn!("cannot accept: {error}");
    tokio::time::sleep(PAUSE).await;
}

const PAUSE: Duration = Duration::from_millis(100);
/// Linux's limit unless told otherwise.
const DEFAULT_LIMIT: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(share: &Share) -> Vec<Ticket> {
        std::iter::from_fn(|| share.take()).collect()
    }

    #[test]
    fn a_session_leaves_others_as_much_as_it_has() {
        let all = Descriptors::new(12);
        let first = all.share();
        let held = take_all(&first);
        assert_eq!(held.len(), 6);
        assert_eq!(take_all(&all.share()).len(), 3);
        drop(held);
        assert_eq!(take_all(&all.share()).len(), 6, "what is given back is for others");
    }
}
