//! Open descriptors of this process, shared out so that none of its sessions takes all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
        Self::new(suimon_service::descriptors::limit() / 4 * 3)
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
