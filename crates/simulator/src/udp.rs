//! Datagrams at a constant rate.

use suimon_model::UdpFlow;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::packet::{Packet, PacketKind};

/// Sends a datagram at every tick while its application is active.
#[derive(Debug)]
pub(crate) struct DatagramSource {
    packet_size: Bytes,
    rate: Rate,
    limit: Option<Bytes>,
    active: bool,
    ended: bool,
    next: Instant,
    /// Since when it has been sending without a pause, and how much.
    since: Instant,
    sent_since: Bytes,
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: Bytes,
}

impl DatagramSource {
    pub(crate) fn new(flow: &UdpFlow) -> Self {
        Self {
            packet_size: flow.packet,
            rate: flow.rate,
            limit: flow.size,
            active: false,
            ended: false,
            next: Instant::ZERO,
            since: Instant::ZERO,
            sent_since: Bytes::ZERO,
            packets_sent: 0,
            bytes_sent: Bytes::ZERO,
        }
    }

    /// The application starts or falls silent.
    pub(crate) fn set_active(&mut self, now: Instant, active: bool) {
        self.active = active;
        if self.next <= now {
            (self.next, self.since, self.sent_since) = (now, now, Bytes::ZERO);
        }
    }

    /// The application ends for good.
    pub(crate) fn end(&mut self) {
        self.active = false;
        self.ended = true;
    }

    /// Whether the source has a size and was not ended before that.
    pub(crate) fn will_complete(&self) -> bool {
        self.limit.is_some() && (!self.ended || self.is_complete())
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.limit.is_some_and(|limit| self.bytes_sent >= limit)
    }

    /// The time when the next datagram goes out.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        (self.active && !self.is_complete()).then_some(self.next)
    }

    pub(crate) fn on_wakeup(&mut self, now: Instant, out: &mut Vec<Packet>) {
        while self.next_turn().is_some_and(|due| due <= now) {
            let size = self.limit.map_or(self.packet_size, |all| self.packet_size.min(all - self.bytes_sent));
            let mut packet = Packet::new(PacketKind::Datagram, now);
            packet.bytes = size.get() as u32;
            out.push(packet);
            self.packets_sent += 1;
            self.bytes_sent += size;
            self.sent_since += size;
            // From the beginning each time, so that rounding to nanoseconds does not add up.
            let next = self.since + self.rate.transmission_time(self.sent_since);
            self.next = next.max(self.next + CLOSEST);
        }
    }
}

/// Datagrams keep this distance at least, or those of an unlimited rate would all be sent at one time.
const CLOSEST: Duration = Duration::from_nanos(1);
