//! Packets, which travel over links.

use suimon_algorithms::queue::{self, Ecn, FlowId, Hosts};
use suimon_link::Transit;
use suimon_units::{Bytes, Instant};

/// Most SACK blocks that fit beside timestamps (RFC 2018 §3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

/// A packet on its way, as links and queues need it. Small, since it is copied from queue to queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// When it joined the queue that it waits in; on a link, when it reaches the far end.
    pub(crate) time: Instant,
    /// The place of its contents in [`Packets`].
    pub(crate) packet: u32,
    /// Index of the flow.
    pub(crate) flow: u32,
    /// The place of its next link in the table of routes.
    pub(crate) hop: u32,
    /// Bytes on the link, headers included.
    pub(crate) size: u32,
    /// Numbers of the nodes that it comes from and goes to.
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) ecn: Ecn,
    /// The packet bore a congestion mark when it joined the queue that it waits in.
    pub(crate) was_marked: bool,
    /// See [`queue::Packet::opens_connection`].
    pub(crate) opens_connection: bool,
}

/// The contents of all packets in the network; places are used again, so that no packet allocates.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    places: Vec<Packet>,
    /// At the same places, as far as packets with SACK blocks have come: few packets have any.
    sacks: Vec<Sack>,
    free: Vec<u32>,
}

impl Packets {
    #[inline(always)]
    pub(crate) fn put(&mut self, packet: &Packet) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = *packet;
            return place;
        }
        self.places.push(*packet);
        (self.places.len() - 1) as u32
    }

    /// As [`Packets::put`], with SACK blocks.
    pub(crate) fn put_with_sack(&mut self, packet: &Packet, sack: &Sack) -> u32 {
        let place = self.put(packet);
        if self.sacks.len() <= place as usize {
            self.sacks.resize(place as usize + 1, Sack::default());
        }
        self.sacks[place as usize] = *sack;
        place
    }

    /// The packet at `place`, which is free from now on.
    #[inline(always)]
    pub(crate) fn take(&mut self, place: u32) -> &mut Packet {
        self.free.push(place);
        &mut self.places[place as usize]
    }

    /// The packet at `place` with its SACK blocks, as it passes somebody who looks.
    pub(crate) fn peek(&self, place: u32) -> (&Packet, &Sack) {
        let packet = &self.places[place as usize];
        let sack = if packet.has_sack { &self.sacks[place as usize] } else { const { &Sack::new() } };
        (packet, sack)
    }

    /// As [`Packets::take`], with the SACK blocks, where there are any.
    #[inline(always)]
    pub(crate) fn take_with_sack(&mut self, place: u32) -> (&mut Packet, &Sack) {
        self.free.push(place);
        let packet = &mut self.places[place as usize];
        let sack = if packet.has_sack { &self.sacks[place as usize] } else { const { &Sack::new() } };
        (packet, sack)
    }
}

/// A packet, as its endpoints see it. One flat record for all kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// First payload byte of a data packet; cumulative acknowledgement of an ACK.
    pub(crate) seq: u64,
    /// Timestamp value (RFC 7323): when the sender of the packet sent it.
    pub(crate) ts_val: Instant,
    /// Timestamp echo reply (RFC 7323).
    pub(crate) ts_ecr: Instant,
    /// Payload of data, or the window that the receiving side advertises.
    pub(crate) bytes: u32,
    pub(crate) kind: PacketKind,
    /// The ECN field as sent; on its way the frame has it.
    pub(crate) ecn: Ecn,
    /// Of data: congestion window reduced. Of an ACK: ECN echo (RFC 3168 §6.1).
    pub(crate) ecn_flag: bool,
    /// A [`Sack`] comes with it.
    pub(crate) has_sack: bool,
}

const _: () = assert!(size_of::<Packet>() == 32, "every packet in flight takes this much");

/// The SACK blocks of an ACK (RFC 2018).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sack {
    /// As offset from the cumulative acknowledgement and length, most recent first.
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    count: u8,
}

impl Sack {
    /// No blocks.
    pub(crate) const fn new() -> Self {
        Self { blocks: [(0, 0); MAX_SACK_BLOCKS], count: 0 }
    }

    /// Adds a block of so many bytes, so far from the cumulative acknowledgement.
    ///
    /// # Panics
    /// When it is full.
    pub(crate) fn push(&mut self, offset: u64, length: u64) {
        self.blocks[usize::from(self.count)] = (offset as u32, length as u32);
        self.count += 1;
    }

    /// The blocks as first and past-the-end byte, for the cumulative acknowledgement `ack`.
    pub(crate) fn ranges(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> {
        self.blocks[..usize::from(self.count)].iter().map(move |&(offset, length)| {
            let start = ack + u64::from(offset);
            (start, start + u64::from(length))
        })
    }
}

/// The kind of a packet for its endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PacketKind {
    Syn,
    SynAck,
    Data,
    Ack,
    Datagram,
    /// A datagram that comes back.
    Echo,
}

impl PacketKind {
    /// True for packets of the flow's sending side.
    pub(crate) fn is_forward(self) -> bool {
        !matches!(self, Self::SynAck | Self::Ack | Self::Echo)
    }

    /// True for packets whose loss counts for the flow.
    pub(crate) fn counts_when_lost(self) -> bool {
        self.is_data() || self == Self::Echo
    }

    /// True for packets with the flow's payload.
    pub(crate) fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Datagram)
    }
}

impl Packet {
    /// A packet of `kind` sent at `now`, all else empty.
    pub(crate) fn new(kind: PacketKind, now: Instant) -> Self {
        Self {
            seq: 0,
            ts_val: now,
            ts_ecr: Instant::ZERO,
            bytes: 0,
            kind,
            ecn: Ecn::NotCapable,
            ecn_flag: false,
            has_sack: false,
        }
    }

    /// Bytes of payload, or of a datagram that comes back; none in a pure ACK.
    pub(crate) fn payload(&self) -> u32 {
        if self.kind.is_data() || self.kind == PacketKind::Echo { self.bytes } else { 0 }
    }
}

/// A timestamp as Linux has it: in milliseconds.
pub(crate) fn ticks(time: Instant) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}

impl queue::Packet for Frame {
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }

    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }

    fn hosts(&self) -> Hosts {
        Hosts { source: self.source.into(), destination: self.destination.into() }
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

impl Transit for Frame {
    #[inline(always)]
    fn time(&self) -> Instant {
        self.time
    }

    #[inline(always)]
    fn set_time(&mut self, time: Instant) {
        self.time = time;
    }

    #[inline(always)]
    fn came_marked(&self) -> bool {
        self.was_marked
    }
}
