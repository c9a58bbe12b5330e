//! The packets of a run as the hosts see where flows begin: what they send, and what comes back to them.

use std::fmt;

use suimon_algorithms::queue::Ecn;
use suimon_units::Instant;

use crate::packet::{MAX_SACK_BLOCKS, Packet, PacketKind, Sack};

/// A packet at the host where its flow begins.
#[derive(Debug, Clone, Copy)]
pub struct TappedPacket {
    /// When the host sent it, or when it came back to the host.
    pub time: Instant,
    /// The flow: its place in the scenario.
    pub flow: u32,
    /// What it is.
    pub kind: TappedKind,
    /// First payload byte of data, counted from zero; cumulative acknowledgement of an ACK.
    pub seq: u64,
    /// Payload of data in bytes; size of a datagram, headers included; zero of the others.
    pub payload: u32,
    /// Window that an ACK advertises, in bytes.
    pub window: u32,
    /// Timestamp value (RFC 7323).
    pub ts_val: Instant,
    /// Timestamp echo reply (RFC 7323).
    pub ts_ecr: Instant,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Of data: congestion window reduced. Of an ACK: ECN echo (RFC 3168 §6.1).
    pub ecn_flag: bool,
    /// SACK blocks as first and past-the-end byte, the most recent first (RFC 2018).
    pub sack: [Option<(u64, u64)>; MAX_SACK_BLOCKS],
}

/// What a packet is at the host where its flow begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TappedKind {
    /// Opens a connection.
    Syn,
    /// Answers that.
    SynAck,
    /// Data of a connection.
    Data,
    /// An acknowledgement that comes back.
    Ack,
    /// A datagram that is sent.
    Datagram,
    /// A datagram that comes back.
    Echo,
}

/// Somebody who is shown the packets.
pub(crate) struct Tap<'a>(pub(crate) &'a mut dyn FnMut(&TappedPacket));

impl fmt::Debug for Tap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

impl Tap<'_> {
    /// Shows `packet` of the flow with this index, with the blocks of `sack` where it has some.
    #[cold]
    pub(crate) fn show(&mut self, now: Instant, flow: u32, packet: &Packet, sack: &Sack) {
        let kind = match packet.kind {
            PacketKind::Syn => TappedKind::Syn,
            PacketKind::SynAck => TappedKind::SynAck,
            PacketKind::Data => TappedKind::Data,
            PacketKind::Ack => TappedKind::Ack,
            PacketKind::Datagram => TappedKind::Datagram,
            PacketKind::Echo => TappedKind::Echo,
        };
        let mut blocks = sack.ranges(packet.seq);
        let answers = matches!(kind, TappedKind::Ack | TappedKind::SynAck);
        (self.0)(&TappedPacket {
            time: now,
            flow,
            kind,
            seq: packet.seq,
            payload: packet.payload(),
            window: if answers { packet.bytes } else { 0 },
            ts_val: packet.ts_val,
            ts_ecr: packet.ts_ecr,
            ecn: packet.ecn,
            ecn_flag: packet.ecn_flag,
            sack: std::array::from_fn(|_| blocks.next()),
        });
    }
}
