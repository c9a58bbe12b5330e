//! Who shares a link.

use std::collections::HashMap;

use suimon_algorithms::queue::{FlowId, Packet};
use suimon_units::{Bytes, Instant};

use crate::packet::{FlowKey, WirePacket};

/// What one flow got of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowShare {
    /// Who sends to whom.
    pub key: FlowKey,
    /// When its first packet came.
    pub first: Instant,
    /// When its latest packet came.
    pub last: Instant,
    /// Packets that left the link.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: Bytes,
    /// Packets dropped by the queue or lost on the link.
    pub dropped: u64,
    /// Packets marked by the queue.
    pub marked: u64,
}

/// Counts by flow, of the latest [`FlowTable::MOST`] flows.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    flows: HashMap<FlowId, FlowShare>,
    /// Flows that were forgotten for others.
    forgotten: u64,
}

impl FlowTable {
    const MOST: usize = 4_096;

    pub(crate) fn on_arrival(&mut self, now: Instant, packet: &WirePacket) {
        if let Some(share) = self.flows.get_mut(&packet.flow()) {
            share.last = now;
            return;
        }
        if self.flows.len() >= Self::MOST {
            self.forget_the_idle_half();
        }
        let share = FlowShare {
            key: packet.key(),
            first: now,
            last: now,
            packets: 0,
            bytes: Bytes::ZERO,
            dropped: 0,
            marked: 0,
        };
        self.flows.insert(packet.flow(), share);
    }

    pub(crate) fn on_sent(&mut self, packet: &WirePacket, marked: bool) {
        if let Some(share) = self.flows.get_mut(&packet.flow()) {
            share.packets += 1;
            share.bytes += packet.size();
            share.marked += u64::from(marked);
        }
    }

    pub(crate) fn on_dropped(&mut self, packet: &WirePacket) {
        if let Some(share) = self.flows.get_mut(&packet.flow()) {
            share.dropped += 1;
        }
    }

    /// The flows that got most, at most so many.
    pub(crate) fn largest(&self, most: usize) -> Vec<FlowShare> {
        let mut shares: Vec<_> = self.flows.values().copied().collect();
        shares.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.first));
        shares.truncate(most);
        shares
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.flows.len() as u64 + self.forgotten
    }

    /// Half at once, so that a flood of flows of one packet each costs little a packet.
    fn forget_the_idle_half(&mut self) {
        let mut times: Vec<_> = self.flows.values().map(|share| share.last).collect();
        let (_, median, _) = times.select_nth_unstable(Self::MOST / 2);
        let (median, before) = (*median, self.flows.len());
        self.flows.retain(|_, share| share.last > median);
        self.forgotten += (before - self.flows.len()) as u64;
    }
}
