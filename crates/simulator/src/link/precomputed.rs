//! A queue that decides as packets come.

use suimon_algorithms::queue::Backlog;
use suimon_algorithms::queue::policy::ArrivalPolicy;
use suimon_units::{Bytes, Duration, Instant};

use super::meter::Meter;
use crate::pieces::Pieces;

/// What waits where packets keep their order and all is decided as they come: it is then known when each leaves, and
/// the packet itself is on its way already.
#[derive(Debug)]
pub(super) struct Precomputed {
    pub(super) policy: Box<dyn ArrivalPolicy>,
    leaving: Pieces<Leaving>,
    backlog: Backlog,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    /// When it leaves the queue.
    pub(super) turn: Instant,
    /// How long it has waited then.
    pub(super) waited: Duration,
    pub(super) size: u32,
    pub(super) newly_marked: bool,
}

impl Precomputed {
    pub(super) fn new(policy: Box<dyn ArrivalPolicy>) -> Self {
        Self { policy, leaving: Pieces::default(), backlog: Backlog::default() }
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// One more waits.
    pub(super) fn join(&mut self, packet: Leaving) {
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::new(u64::from(packet.size));
        self.leaving.push_back(packet);
    }

    /// Takes note of what has left by `now`.
    #[inline(always)]
    pub(super) fn leave(&mut self, now: Instant, meter: &mut Option<Box<Meter>>) {
        while let Some(&first) = self.leaving.front()
            && first.turn <= now
        {
            self.leaving.pass_front();
            let size = Bytes::new(u64::from(first.size));
            self.backlog.packets -= 1;
            self.backlog.bytes -= size;
            self.policy.on_departure(first.turn, size, self.backlog);
            if let Some(meter) = meter {
                meter.statistics.on_sent(first.size, first.waited, first.newly_marked);
                meter.statistics.on_backlog(first.turn, self.backlog);
            }
        }
    }
}
