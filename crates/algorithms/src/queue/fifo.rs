//! First in, first out: the queue of most disciplines.

use alloc::collections::VecDeque;

use suimon_units::Bytes;

use super::{Backlog, Packet};

/// Waiting packets in the order of their arrival.
#[derive(Debug, Clone)]
pub struct Fifo<P> {
    waiting: VecDeque<P>,
    bytes: Bytes,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }
}

impl<P: Packet> Fifo<P> {
    /// `packet` joins at the end.
    pub fn push(&mut self, packet: P) {
        self.bytes += packet.size();
        self.waiting.push_back(packet);
    }

    /// The packet that has waited longest leaves.
    pub fn pop(&mut self) -> Option<P> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.size();
        Some(packet)
    }

    /// The packet that has waited longest.
    #[must_use]
    pub fn front(&self) -> Option<&P> {
        self.waiting.front()
    }

    /// The backlog.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }
}
