//! Datagrams at a constant rate.

use suimon_scenario::UdpFlow;
use suimon_units::{Bytes, Duration, Instant};

use crate::packet::{Packet, PacketKind};

/// Sends a datagram at every tick while its application is active.
#[derive(Debug)]
pub(crate) struct DatagramSource {
    packet_size: u32,
    interval: Duration,
    limit: Option<Bytes>,
    active: bool,
    next: Instant,
    pub(crate) packets_sent: u64,
    bytes_sent: Bytes,
}

impl DatagramSource {
    pub(crate) fn new(flow: &UdpFlow) -> Self {
        Self {
            packet_size: flow.packet.get() as u32,
            interval: flow.rate.transmission_time(flow.packet),
            limit: flow.size,
            active: false,
            next: Instant::ZERO,
            packets_sent: 0,
            bytes_sent: Bytes::ZERO,
        }
    }

    /// The application starts or falls silent.
    pub(crate) fn set_active(&mut self, now: Instant, active: bool) {
        self.active = active;
        self.next = self.next.max(now);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.limit.is_some_and(|limit| self.bytes_sent >= limit)
    }

    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        (self.active && !self.is_complete()).then_some(self.next)
    }

    pub(crate) fn on_wakeup(&mut self, now: Instant, out: &mut Vec<Packet>) {
        while self.next_wakeup().is_some_and(|due| due <= now) {
            let mut packet = Packet::new(PacketKind::Datagram, self.packet_size, now);
            packet.payload = self.packet_size;
            out.push(packet);
            self.packets_sent += 1;
            self.bytes_sent += Bytes::new(u64::from(self.packet_size));
            self.next += self.interval;
        }
    }
}
