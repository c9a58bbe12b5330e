//! What travels over links.

use suimon_algorithms::queue::{self, Ecn, FlowId};
use suimon_units::{Bytes, Instant};

/// Most SACK blocks that fit beside timestamps (RFC 2018 §3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

/// A packet on its way: what links and queues need of it. Small, since it is copied from queue to queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// When it joined the queue that it waits in; on a link, when it reaches the far end.
    pub(crate) time: Instant,
    /// Where what it carries lies in [`Packets`].
    pub(crate) packet: u32,
    /// Index of the flow.
    pub(crate) flow: u32,
    /// Where its next link stands in the table of routes.
    pub(crate) hop: u32,
    /// Bytes on the link, headers included.
    pub(crate) size: u32,
    pub(crate) ecn: Ecn,
    /// It bore a congestion mark when it joined the queue that it waits in.
    pub(crate) was_marked: bool,
    /// See [`queue::Packet::opens_connection`].
    pub(crate) opens_connection: bool,
}

/// What every packet on its way carries; places are used again, so that none is allocated.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    places: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    pub(crate) fn put(&mut self, packet: &Packet) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = *packet;
            return place;
        }
        self.places.push(*packet);
        (self.places.len() - 1) as u32
    }

    pub(crate) fn take(&mut self, place: u32) -> Packet {
        self.free.push(place);
        self.places[place as usize]
    }
}

/// A packet, as its endpoints see it. One flat record for all kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Bytes on the link, headers included.
    pub(crate) size: u32,
    /// Payload bytes; zero for a pure ACK.
    pub(crate) payload: u32,
    /// First payload byte of a data packet; cumulative acknowledgement of an ACK.
    pub(crate) seq: u64,
    /// Timestamp value (RFC 7323): when the sender of the packet sent it.
    pub(crate) ts_val: Instant,
    /// Timestamp echo reply (RFC 7323).
    pub(crate) ts_ecr: Instant,
    /// Advertised window of an ACK, in bytes.
    pub(crate) window: u32,
    /// SACK blocks of an ACK, as offset from `seq` and length, most recent first.
    pub(crate) sack: [(u32, u32); MAX_SACK_BLOCKS],
    pub(crate) sack_blocks: u8,
    pub(crate) kind: PacketKind,
    pub(crate) ecn: Ecn,
    /// Of data: congestion window reduced. Of an ACK: ECN echo (RFC 3168 §6.1).
    pub(crate) ecn_flag: bool,
}

/// What a packet is to its endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    Syn,
    SynAck,
    Data,
    Ack,
    Datagram,
}

impl PacketKind {
    /// True for what the flow's sending side sends.
    pub(crate) fn is_forward(self) -> bool {
        !matches!(self, Self::SynAck | Self::Ack)
    }

    /// True for what carries the flow's payload.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Datagram)
    }
}

impl Packet {
    /// A packet of `kind` and `size` sent at `now`, all else empty.
    pub(crate) fn new(kind: PacketKind, size: u32, now: Instant) -> Self {
        Self {
            size,
            payload: 0,
            seq: 0,
            ts_val: now,
            ts_ecr: Instant::ZERO,
            window: 0,
            sack: [(0, 0); MAX_SACK_BLOCKS],
            sack_blocks: 0,
            kind,
            ecn: Ecn::NotCapable,
            ecn_flag: false,
        }
    }

    /// The SACK blocks as first and past-the-end byte.
    pub(crate) fn sack_ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sack[..usize::from(self.sack_blocks)].iter().map(|&(offset, length)| {
            let start = self.seq + u64::from(offset);
            (start, start + u64::from(length))
        })
    }
}

impl queue::Packet for Frame {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn opens_connection(&self) -> bool {
        self.opens_connection
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
    }
}
