//! Packets that know since when they wait, for the disciplines that judge by time.

use suimon_units::{Bytes, Duration, Instant};

use super::{Ecn, FlowId, Hosts, Packet};

/// A packet and the time at which it joined the queue.
#[derive(Debug, Clone)]
pub struct Timed<P> {
    /// The packet.
    pub packet: P,
    /// When it joined.
    pub since: Instant,
}

impl<P> Timed<P> {
    /// How long it has waited by `now`.
    #[must_use]
    pub fn sojourn(&self, now: Instant) -> Duration {
        now.saturating_since(self.since)
    }
}

impl<P: Packet> Packet for Timed<P> {
    fn size(&self) -> Bytes {
        self.packet.size()
    }
    fn flow(&self) -> FlowId {
        self.packet.flow()
    }
    fn hosts(&self) -> Hosts {
        self.packet.hosts()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn opens_connection(&self) -> bool {
        self.packet.opens_connection()
    }
    fn mark_congestion_experienced(&mut self) {
        self.packet.mark_congestion_experienced();
    }
}
