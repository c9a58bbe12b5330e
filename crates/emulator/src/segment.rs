//! Packets as they are on the wire, from unsplit data of a host.
//!
//! A host that need not split its TCP data into segments, nor finish checksums, saves most of its work. The link must
//! see no difference: each segment is a packet with headers of its own.

use crate::checksum;
use crate::packet::Malformed;
use suimon_linux::tun::SEGMENTATION_HEADER;

/// A `virtio_net_hdr` (virtio 1.2 §5.1.6), as TUN devices have it: in the host's order of bytes.
#[derive(Debug, Clone, Copy)]
struct SegmentationHeader {
    /// The transport's checksum holds the sum of the pseudo-header only.
    needs_checksum: bool,
    /// The packet is TCP data of several segments.
    several: bool,
    /// Payload of each segment.
    segment_size: usize,
    /// Where the checksum begins to count.
    checksum_start: usize,
    /// The place of the checksum, counted from there.
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

/// Calls `each` with every packet on the wire of `handed`, a segmentation header and an IP packet from a device.
/// `scratch` is room to build the packets in.
///
/// # Errors
/// The header contradicts the packet; no packet was given out then.
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

#[cfg(test)]
mod tests {
    use etherparse::{IpHeaders, PacketBuilder, PacketHeaders, TcpHeader, TransportHeader};
    use proptest::prelude::*;

    use super::*;

    const NO_CHECKSUM: u8 = 0;

    /// A packet as a device hands it over: TCP data with only the pseudo-header in its checksum.
    fn handed(ipv6: bool, payload: &[u8], size: u16, change: impl FnOnce(&mut TcpHeader)) -> Vec<u8> {
        let mut tcp = TcpHeader::new(1_000, 80, u32::MAX - 5_000, 500);
        (tcp.ack, tcp.psh, tcp.acknowledgment_number) = (true, true, 77);
        tcp.set_options_raw(&[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        change(&mut tcp);
        let builder = if ipv6 {
            PacketBuilder::ipv6([3; 16], [4; 16], 64).tcp_header(tcp.clone())
        } else {
            PacketBuilder::ipv4([10, 1, 2, 3], [10, 4, 5, 6], 64).tcp_header(tcp.clone())
        };
        let mut packet = Vec::new();
        builder.write(&mut packet, payload).unwrap();
        let start = if ipv6 { 40 } else { 20 };
        let addresses = if ipv6 { &packet[8..40] } else { &packet[12..20] };
        let length = (tcp.header_len() + payload.len()) as u32;
        let pseudo =
            checksum::sum(&[&length.to_be_bytes()[..], &[0, 6]].concat(), checksum::sum(addresses, 0));
        packet[start + CHECKSUM..start + CHECKSUM + 2].copy_from_slice(&pseudo.to_be_bytes());
        let mut handed = vec![
            NEEDS_CHECKSUM,
            if size == 0 {
                0
            } else if ipv6 {
                TCP_IPV6
            } else {
                TCP_IPV4
            },
        ];
        for word in [start as u16 + tcp.header_len_u16(), size, start as u16, CHECKSUM as u16] {
            handed.extend_from_slice(&word.to_ne_bytes());
        }
        handed.extend_from_slice(&packet);
        handed
    }

    fn packets(mut handed: Vec<u8>) -> Result<Vec<Vec<u8>>, Malformed> {
        let mut packets = Vec::new();
        split(&mut handed, &mut Vec::new(), |packet| packets.push(packet.to_vec()))?;
        Ok(packets)
    }

    /// Header and payload, after all checksums have been found right.
    fn checked(packet: &[u8]) -> (TcpHeader, Vec<u8>) {
        let headers = PacketHeaders::from_ip_slice(packet).unwrap();
        let Some(TransportHeader::Tcp(tcp)) = headers.transport else { panic!("TCP") };
        let payload = headers.payload.slice().to_vec();
        let finished = match headers.net.unwrap() {
            etherparse::NetHeaders::Ipv4(ipv4, _) => {
                assert_eq!(ipv4.calc_header_checksum(), ipv4.header_checksum);
                tcp.calc_checksum_ipv4(&ipv4, &payload)
            }
            etherparse::NetHeaders::Ipv6(ipv6, _) => tcp.calc_checksum_ipv6(&ipv6, &payload),
            etherparse::NetHeaders::Arp(_) => panic!("IP"),
        };
        assert_eq!(finished.unwrap(), tcp.checksum);
        (tcp, payload)
    }

    proptest! {
        #[test]
        fn segments_are_whole_packets_that_carry_all_of_the_data(
            ipv6: bool, payload in proptest::collection::vec(any::<u8>(), 1..20_000), size in 100_u16..1_500, fin: bool, cwr: bool,
        ) {
            let handed = handed(ipv6, &payload, size, |tcp| (tcp.fin, tcp.cwr) = (fin, cwr));
            let packets = packets(handed).unwrap();
            prop_assert_eq!(packets.len(), payload.len().div_ceil(size.into()));
            let mut sequence = u32::MAX - 5_000;
            let mut carried = Vec::new();
            for (nth, packet) in packets.iter().enumerate() {
                let (tcp, data) = checked(packet);
                let is_last = nth + 1 == packets.len();
                prop_assert_eq!(tcp.sequence_number, sequence);
                prop_assert_eq!((tcp.psh, tcp.fin, tcp.cwr), (is_last, fin && is_last, cwr && nth == 0));
                prop_assert_eq!((tcp.ack, tcp.acknowledgment_number, tcp.options.len()), (true, 77, 12));
                prop_assert!(data.len() == usize::from(size) || is_last);
                sequence = sequence.wrapping_add(data.len() as u32);
                carried.extend(data);
            }
            prop_assert_eq!(carried, payload);
        }

        #[test]
        fn any_bytes_are_split_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), several: bool) {
            if bytes.len() > SEGMENTATION_HEADER {
                bytes[0] = NEEDS_CHECKSUM;
                bytes[1] = if several { TCP_IPV4 } else { 0 };
                bytes[5] = 0;
                bytes[7] = 0;
                bytes[8..10].copy_from_slice(&16_u16.to_ne_bytes());
            }
            let handed = bytes.len().saturating_sub(SEGMENTATION_HEADER);
            if let Ok(packets) = packets(bytes) {
                // Each segment repeats at most all of the headers.
                prop_assert!(packets.iter().map(Vec::len).sum::<usize>() <= packets.len().max(1) * handed);
            }
        }
    }

    #[test]
    fn a_single_packet_gets_its_checksum_and_no_other_change() {
        for ipv6 in [false, true] {
            let handed = handed(ipv6, b"hello", 0, |_| {});
            let done = packets(handed.clone()).unwrap();
            assert_eq!(checked(&done[0]).1, b"hello");
            let mut finished = handed;
            finished[0] = NO_CHECKSUM;
            finished[SEGMENTATION_HEADER..].copy_from_slice(&done[0]);
            assert_eq!(packets(finished).unwrap(), done);
        }
    }

    #[test]
    fn headers_that_contradict_the_packet_are_refused() {
        let whole = handed(false, &[7; 3_000], 1_000, |_| {});
        let refuses = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = whole.clone();
            change(&mut changed);
            packets(changed).is_err()
        };
        assert!(!refuses(&|_| {}));
        assert!(refuses(&|handed| handed.truncate(5)), "no header");
        assert!(refuses(&|handed| handed[1] = 3), "UDP in fragments, which was not asked for");
        assert!(refuses(&|handed| handed[4..6].fill(0)), "segments of nothing");
        assert!(
            refuses(&|handed| handed[6..8].copy_from_slice(&3_040_u16.to_ne_bytes())),
            "TCP behind the end"
        );
        assert!(
            refuses(&|handed| handed[SEGMENTATION_HEADER + 20 + DATA_OFFSET] = 0x10),
            "a header of 4 bytes"
        );
        assert!(refuses(&|handed| handed[0] = NO_CHECKSUM), "segments with a finished checksum");
        assert!(IpHeaders::from_slice(&whole[SEGMENTATION_HEADER..]).is_ok());
    }
}
