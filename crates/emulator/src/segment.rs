//! Packets as they are on the wire, of what a host hands over unsplit.
//!
//! A host that need not split its TCP data into segments, nor finish checksums, saves most of its work. What the
//! link sees must not differ: each segment is a packet with headers of its own.

use crate::checksum;
use crate::packet::Malformed;
use suimon_linux::tun::SEGMENTATION_HEADER;

/// A `virtio_net_hdr` (virtio 1.2 §5.1.6), as TUN devices have it: in the host's order of bytes.
#[derive(Debug, Clone, Copy)]
struct SegmentationHeader {
    /// The transport's checksum holds the sum of the pseudo-header only.
    needs_checksum: bool,
    /// It is TCP data of several segments.
    several: bool,
    /// Payload of each segment.
    segment_size: usize,
    /// Where the checksum begins to count.
    checksum_start: usize,
    /// Where it stands, counted from there.
    checksum_offset: usize,
}

const NEEDS_CHECKSUM: u8 = 1;
const TCP_IPV4: u8 = 1;
const TCP_IPV6: u8 = 4;
/// Beside the kind: the first segment has CWR.
const WITH_CWR: u8 = 0x80;

impl SegmentationHeader {
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let word = |at: usize| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        let kind = bytes[1] & !WITH_CWR;
        if kind != 0 && kind != TCP_IPV4 && kind != TCP_IPV6 {
            return Err(Malformed);
        }
        Ok(Self {
            needs_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
            several: kind != 0,
            segment_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        })
    }
}

/// Calls `each` with every packet on the wire of what a device handed over, `scratch` being room to build them in.
/// `handed` is what was read: a segmentation header and an IP packet.
///
/// # Errors
/// Where it contradicts itself; nothing was called then.
pub fn split(handed: &mut [u8], scratch: &mut Vec<u8>, mut each: impl FnMut(&[u8])) -> Result<(), Malformed> {
    if handed.len() < SEGMENTATION_HEADER {
        return Err(Malformed);
    }
    let (header, packet) = handed.split_at_mut(SEGMENTATION_HEADER);
    let header = SegmentationHeader::read(header)?;
    if header.several {
        let segments = Segments::of(header, packet)?;
        for nth in 0..segments.count() {
            segments.build(nth, scratch);
            each(scratch);
        }
        return Ok(());
    }
    if header.needs_checksum {
        let place = header.checksum_start + header.checksum_offset;
        if place + 2 > packet.len() {
            return Err(Malformed);
        }
        let finished = !checksum::sum(&packet[header.checksum_start..], 0);
        // A UDP checksum of zero means none (RFC 768), so its other zero is sent; TCP takes either.
        let finished = if finished == 0 { 0xffff } else { finished };
        packet[place..place + 2].copy_from_slice(&finished.to_be_bytes());
    }
    each(packet);
    Ok(())
}

/// TCP data of several segments.
struct Segments<'a> {
    is_ipv6: bool,
    /// All headers of IP, and TCP's.
    headers: &'a [u8],
    payload: &'a [u8],
    segment_size: usize,
    /// Where TCP's header begins.
    tcp: usize,
    /// The pseudo-header's sum without the length.
    pseudo_sum: u16,
}

/// Where fields are in TCP's header (RFC 9293 §3.1).
const SEQUENCE: usize = 4;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

impl<'a> Segments<'a> {
    fn of(header: SegmentationHeader, packet: &'a [u8]) -> Result<Self, Malformed> {
        let tcp = header.checksum_start;
        let is_ipv6 = packet.first().is_some_and(|byte| byte >> 4 == 6);
        let ip_header = if is_ipv6 { 40 } else { 20 };
        let well_formed = header.needs_checksum
            && header.checksum_offset == CHECKSUM
            && header.segment_size > 0
            && tcp >= ip_header
            && packet.len() >= tcp + 20;
        if !well_formed {
            return Err(Malformed);
        }
        let length = usize::from(packet[tcp + DATA_OFFSET] >> 4) * 4;
        let of_ip = usize::from(packet[0] & 0xf) * 4;
        if length < 20 || packet.len() <= tcp + length || (!is_ipv6 && of_ip != tcp) {
            return Err(Malformed);
        }
        let (headers, payload) = packet.split_at(tcp + length);
        if tcp + length + header.segment_size > usize::from(u16::MAX) {
            return Err(Malformed);
        }
        let partial = u16::from_be_bytes([headers[tcp + CHECKSUM], headers[tcp + CHECKSUM + 1]]);
        // The length that it counts is that of all; one's complement has inverses.
        let of_all = checksum::sum(&((packet.len() - tcp) as u32).to_be_bytes(), 0);
        let pseudo_sum = checksum::add(partial, !of_all);
        Ok(Self { is_ipv6, headers, payload, segment_size: header.segment_size, tcp, pseudo_sum })
    }

    fn count(&self) -> usize {
        self.payload.len().div_ceil(self.segment_size)
    }

    /// Builds the `nth` segment in `packet`.
    fn build(&self, nth: usize, packet: &mut Vec<u8>) {
        let begins = nth * self.segment_size;
        let ends = (begins + self.segment_size).min(self.payload.len());
        packet.clear();
        packet.extend_from_slice(self.headers);
        packet.extend_from_slice(&self.payload[begins..ends]);
        let total = packet.len();
        if self.is_ipv6 {
            packet[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&(total as u16).to_be_bytes());
            let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(nth as u16);
            packet[4..6].copy_from_slice(&identification.to_be_bytes());
            packet[10..12].fill(0);
            let finished = !checksum::sum(&packet[..self.tcp], 0);
            packet[10..12].copy_from_slice(&finished.to_be_bytes());
        }
        let tcp = &mut packet[self.tcp..];
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(begins as u32);
        tcp[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        if ends < self.payload.len() {
            tcp[FLAGS] &= !(FIN | PSH);
        }
        if nth > 0 {
            // The window was reduced once (RFC 3168 §6.1.2).
            tcp[FLAGS] &= !CWR;
        }
        tcp[CHECKSUM..CHECKSUM + 2].fill(0);
        let length = checksum::sum(&(tcp.len() as u32).to_be_bytes(), self.pseudo_sum);
        let finished = !checksum::sum(tcp, length);
        tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&finished.to_be_bytes());
    }
}
