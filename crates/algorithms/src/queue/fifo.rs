//! First in, first out: what most disciplines keep their packets in.

use std::collections::VecDeque;

use suimon_units::Bytes;

use super::{Backlog, Buffer, Packet};

/// Waiting packets in the order of their arrival, with room for `buffer`.
#[derive(Debug)]
pub struct Fifo<P> {
    waiting: VecDeque<P>,
    bytes: Bytes,
    buffer: Buffer,
}

impl<P: Packet> Fifo<P> {
    /// Nothing waits yet.
    #[must_use]
    pub fn new(buffer: Buffer) -> Self {
        Self { waiting: VecDeque::new(), bytes: Bytes::ZERO, buffer }
    }

    /// True where a packet of `size` may join.
    #[must_use]
    pub fn admits(&self, size: Bytes) -> bool {
        self.buffer.admits(self.backlog(), size)
    }

    /// How much may wait.
    #[must_use]
    pub fn buffer(&self) -> Buffer {
        self.buffer
    }

    /// `packet` joins at the end, whether or not it fits.
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

    /// What waits.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }
}
