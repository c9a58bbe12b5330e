//! IP packets that wait to be sent, apart by their ends.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use crate::tun::packet::{Packet, parse};

/// Packets by the flow that they belong to. Where there are too many, the flow with the most loses its oldest: so that one
/// that sends more than goes through does no harm to others (RFC 8290 §4.1).
#[derive(Debug, Default)]
pub(super) struct Packets {
    flows: HashMap<u16, Queue>,
    hash: RandomState,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Queue {
    packets: VecDeque<Vec<u8>>,
    bytes: u64,
}

impl Packets {
    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Queues `packet`, while no more than `most` bytes wait; gives its flow. `None` where it is the packet that is lost.
    pub(super) fn push(&mut self, packet: &[u8], most: u64) -> Option<u16> {
        let flow = self.flow(packet);
        let len = packet.len() as u64;
        while self.bytes + len > most {
            let fullest = self.flows.iter().max_by_key(|(_, queue)| queue.bytes)?;
            let (fullest, held) = (*fullest.0, fullest.1.bytes);
            if fullest == flow || held <= self.flows.get(&flow).map_or(0, |queue| queue.bytes) + len {
                return None;
            }
            self.pop(fullest);
        }
        let queue = self.flows.entry(flow).or_default();
        queue.bytes += len;
        queue.packets.push_back(packet.to_vec());
        self.bytes += len;
        Some(flow)
    }

    /// The length of the next packet of `flow`.
    pub(super) fn next_len(&self, flow: u16) -> Option<usize> {
        Some(self.flows.get(&flow)?.packets.front()?.len())
    }

    /// Takes the next packet of `flow`.
    pub(super) fn pop(&mut self, flow: u16) -> Option<Vec<u8>> {
        let queue = self.flows.get_mut(&flow)?;
        let packet = queue.packets.pop_front()?;
        queue.bytes -= packet.len() as u64;
        self.bytes -= packet.len() as u64;
        if queue.packets.is_empty() {
            self.flows.remove(&flow);
        }
        Some(packet)
    }

    fn flow(&self, packet: &[u8]) -> u16 {
        let hash = match parse(packet) {
            Some(Packet::Udp(ends, _) | Packet::Echo(ends, _)) => self.hash.hash_one(ends),
            _ => 0,
        };
        (hash % FLOWS) as u16
    }
}

/// RFC 8290 §5.2.4.
const FLOWS: u64 = 1_024;
