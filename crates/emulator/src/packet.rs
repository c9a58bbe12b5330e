//! A packet as it is on the wire, with its facts for queues.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use suimon_algorithms::queue::{Ecn, FlowId, Hosts, Packet};
use suimon_linux::tun::SEGMENTATION_HEADER;
use suimon_units::{Bytes, Instant};

use crate::checksum;

/// One packet on its way over a link.
pub struct WirePacket {
    /// A segmentation header that asks for nothing, and the IP packet.
    bytes: Box<[u8]>,
    /// When it came to the link; from its transmission on, when it arrives.
    pub(crate) time: Instant,
    /// Counts the packets that came to its direction of the link.
    pub(crate) number: u64,
    flow: FlowId,
    hosts: Hosts,
    ecn: Ecn,
    opens_connection: bool,
    data: Data,
    /// The packet had come with a mark.
    pub(crate) came_marked: bool,
}

/// The source and the destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Where packets come from; port 0 where there are none.
    pub from: SocketAddr,
    /// The destination.
    pub to: SocketAddr,
    /// The protocol's number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
}

impl FlowKey {
    /// The protocol's name, where it is one that is met on the Internet.
    #[must_use]
    pub fn protocol_name(&self) -> String {
        match self.protocol {
            1 | 58 => "icmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            132 => "sctp".to_owned(),
            number => format!("protocol {number}"),
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.protocol_name();
        if self.from.port() == 0 && self.to.port() == 0 {
            write!(f, "{name} {} > {}", self.from.ip(), self.to.ip())
        } else {
            write!(f, "{name} {} > {}", self.from, self.to)
        }
    }
}

/// Bytes that are no IP packet, or not a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a whole IP packet")]
pub struct Malformed;

impl WirePacket {
    /// Takes an IP packet that came to a link at `time`, as the `number`th.
    ///
    /// # Errors
    /// The packet is neither IPv4 nor IPv6, or shorter than its headers say.
    pub fn new(packet: &[u8], time: Instant, number: u64) -> Result<Self, Malformed> {
        let headers = Headers::read(packet)?;
        let mut bytes = vec![0; SEGMENTATION_HEADER + packet.len()].into_boxed_slice();
        bytes[SEGMENTATION_HEADER..].copy_from_slice(packet);
        Ok(Self {
            bytes,
            time,
            number,
            flow: headers.key.id(),
            hosts: Hosts {
                source: hash_of(headers.key.from.ip()),
                destination: hash_of(headers.key.to.ip()),
            },
            ecn: headers.ecn,
            opens_connection: headers.opens_connection,
            data: headers.data,
            came_marked: headers.ecn == Ecn::CongestionExperienced,
        })
    }

    /// The IP packet.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        &self.bytes[SEGMENTATION_HEADER..]
    }

    /// The bytes to write to a device.
    pub(crate) fn for_device(&self, segmentation: bool) -> &[u8] {
        if segmentation { &self.bytes } else { self.ip() }
    }

    /// True where it may be the first of its flow: a SYN, or a datagram.
    pub(crate) fn opens_flow(&self) -> bool {
        self.opens_connection || self.data.is_datagram
    }

    /// The data of the packet.
    pub(crate) fn data(&self) -> Data {
        self.data
    }

    /// The flow of the packet.
    #[must_use]
    pub fn key(&self) -> FlowKey {
        Headers::read(self.ip()).expect("it was read before, and marks change nothing that matters").key
    }
}

impl fmt::Debug for WirePacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {}", self.number, self.key(), self.size())
    }
}

impl Packet for WirePacket {
    fn size(&self) -> Bytes {
        Bytes::new(self.ip().len() as u64)
    }

    fn flow(&self) -> FlowId {
        self.flow
    }

    fn hosts(&self) -> Hosts {
        self.hosts
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn opens_connection(&self) -> bool {
        self.opens_connection
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = Ecn::CongestionExperienced;
        let ip = &mut self.bytes[SEGMENTATION_HEADER..];
        if ip[0] >> 4 == 6 {
            // The traffic class lies across two bytes; its last two bits are the field (RFC 3168 §5).
            ip[1] |= 0b0011_0000;
        } else {
            let was = u16::from_be_bytes([ip[0], ip[1]]);
            ip[1] |= 0b0000_0011;
            let is = u16::from_be_bytes([ip[0], ip[1]]);
            let checksum = u16::from_be_bytes([ip[10], ip[11]]);
            ip[10..12].copy_from_slice(&checksum::updated(checksum, was, is).to_be_bytes());
        }
    }
}

/// The data that a packet carries for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Data {
    /// The sequence number of TCP's first byte.
    pub(crate) sequence: Option<u32>,
    /// Bytes of TCP or UDP behind all headers.
    pub(crate) payload: u32,
    /// The packet is UDP.
    pub(crate) is_datagram: bool,
}

/// The facts that a queue may ask of a packet, from its headers.
struct Headers {
    key: FlowKey,
    ecn: Ecn,
    opens_connection: bool,
    data: Data,
}

impl Headers {
    fn read(packet: &[u8]) -> Result<Self, Malformed> {
        let sliced = LaxSlicedPacket::from_ip(packet).map_err(|_| Malformed)?;
        let net = sliced.net.as_ref().ok_or(Malformed)?;
        let (from, to, ecn, protocol, fragment) = match net {
            LaxNetSlice::Ipv4(ipv4) => {
                let header = ipv4.header();
                if usize::from(header.total_len()) > packet.len() {
                    return Err(Malformed);
                }
                let later = header.is_fragmenting_payload() && header.fragments_offset().value() != 0;
                let (from, to) = (header.source_addr().into(), header.destination_addr().into());
                (from, to, header.ecn().value(), header.protocol().0, later)
            }
            LaxNetSlice::Ipv6(ipv6) => {
                let header = ipv6.header();
                if usize::from(header.payload_length()) + 40 > packet.len() {
                    return Err(Malformed);
                }
                let (from, to): (IpAddr, IpAddr) =
                    (header.source_addr().into(), header.destination_addr().into());
                let payload = ipv6.payload();
                (from, to, header.ecn().value(), payload.ip_number.0, payload.fragmented)
            }
            LaxNetSlice::Arp(_) => return Err(Malformed),
        };
        // All fragments are of one flow as far as can be told from each; the first alone has ports.
        let (ports, opens_connection, data) = match &sliced.transport {
            _ if fragment => ((0, 0), false, Data::default()),
            Some(TransportSlice::Tcp(tcp)) => {
                let payload = tcp.payload().len() as u32;
                let data = Data { sequence: Some(tcp.sequence_number()), payload, is_datagram: false };
                ((tcp.source_port(), tcp.destination_port()), tcp.syn() && !tcp.ack(), data)
            }
            Some(TransportSlice::Udp(udp)) => {
                let data = Data { sequence: None, payload: udp.payload().len() as u32, is_datagram: true };
                ((udp.source_port(), udp.destination_port()), false, data)
            }
            _ => ((0, 0), false, Data::default()),
        };
        let key =
            FlowKey { from: SocketAddr::new(from, ports.0), to: SocketAddr::new(to, ports.1), protocol };
        let ecn = match ecn {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::L4s,
            0b10 => Ecn::Capable,
            _ => Ecn::CongestionExperienced,
        };
        Ok(Self { key, ecn, opens_connection, data })
    }
}

impl FlowKey {
    /// The number by which queues tell the flow from others.
    #[must_use]
    pub fn id(&self) -> FlowId {
        FlowId(self.hash())
    }

    /// The same number for the packets of a flow, another for those of the next, but for one in 2^32.
    fn hash(&self) -> u32 {
        let ports =
            u64::from(self.from.port()) << 32 | u64::from(self.to.port()) << 8 | u64::from(self.protocol);
        let hosts = u64::from(hash_of(self.from.ip())) << 32 | u64::from(hash_of(self.to.ip()));
        (mixed(mixed(hosts) ^ ports) >> 32) as u32
    }
}

/// An IPv4 address itself; of an IPv6 address a number that hardly another has.
fn hash_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            (mixed(mixed((bits >> 64) as u64) ^ bits as u64) >> 32) as u32
        }
    }
}

/// Every bit of `x` changes about half of the result's (SplitMix64's finalizer).
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
pub(crate) mod tests {
    use etherparse::{Ipv4HeaderSlice, PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    use super::*;

    /// A UDP datagram of `size` bytes in all, from port `port`.
    pub(crate) fn datagram(port: u16, size: usize, ecn: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(port, 9);
        builder.write(&mut packet, &vec![0; size - 28]).unwrap();
        packet[1] |= ecn;
        let checksum =
            checksum::updated(u16::from_be_bytes([packet[10], packet[11]]), 0x4500, 0x4500 | u16::from(ecn));
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    fn parsed(packet: &[u8]) -> WirePacket {
        WirePacket::new(packet, Instant::ZERO, 0).unwrap()
    }

    #[test]
    fn a_mark_changes_the_field_and_leaves_the_checksum_right() {
        for ecn in [0b01, 0b10] {
            let mut packet = parsed(&datagram(1, 100, ecn));
            assert_eq!(packet.ecn(), if ecn == 0b01 { Ecn::L4s } else { Ecn::Capable });
            packet.mark_congestion_experienced();
            let header = Ipv4HeaderSlice::from_slice(packet.ip()).unwrap();
            assert_eq!(header.ecn().value(), 0b11);
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
            assert_eq!(
                (parsed(packet.ip()).ecn(), packet.ecn()),
                (Ecn::CongestionExperienced, Ecn::CongestionExperienced)
            );
        }
    }

    #[test]
    fn a_mark_on_ipv6_leaves_class_and_label() {
        let mut bytes = Vec::new();
        PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(1, 2).write(&mut bytes, &[0; 8]).unwrap();
        (bytes[0], bytes[1]) = (0x6b, 0x8e | 0b0010_0000);
        let mut packet = parsed(&bytes);
        assert_eq!(packet.ecn(), Ecn::Capable);
        packet.mark_congestion_experienced();
        assert_eq!(packet.ip()[..2], [0x6b, 0x8e | 0b0011_0000]);
        assert_eq!(packet.ip()[2..], bytes[2..]);
    }

    #[test]
    fn flows_are_told_apart_by_ports_and_direction() {
        let ids: std::collections::HashSet<_> =
            (0..5_000).map(|port| parsed(&datagram(port, 50, 0)).flow()).collect();
        assert_eq!(ids.len(), 5_000);
        let packet = parsed(&datagram(7, 50, 0));
        assert_eq!(packet.key().to_string(), "udp 10.0.0.1:7 > 10.0.0.2:9");
        assert_eq!(packet.hosts(), Hosts { source: 0x0a00_0001, destination: 0x0a00_0002 });
        assert_eq!(packet.size(), Bytes::new(50));
    }

    #[test]
    fn a_syn_opens_a_connection_and_its_answer_does_not() {
        let tcp = |change: fn(&mut TcpHeader)| {
            let mut header = TcpHeader::new(1, 2, 3, 4);
            change(&mut header);
            let mut bytes = Vec::new();
            PacketBuilder::ipv4([1; 4], [2; 4], 9).tcp_header(header).write(&mut bytes, &[]).unwrap();
            parsed(&bytes).opens_connection()
        };
        assert!(tcp(|header| header.syn = true));
        assert!(!tcp(|header| (header.syn, header.ack) = (true, true)));
        assert!(!tcp(|header| header.ack = true));
    }

    #[test]
    fn fragments_of_a_datagram_are_one_flow_but_for_the_first() {
        let mut later = datagram(1, 100, 0);
        later[7] = 10;
        let mut last = datagram(2, 60, 0);
        last[7] = 20;
        assert_eq!(parsed(&later).flow(), parsed(&last).flow());
    }

    #[test]
    fn what_is_shorter_than_it_says_or_no_ip_is_refused() {
        let whole = datagram(1, 100, 0);
        for length in 0..whole.len() {
            assert!(WirePacket::new(&whole[..length], Instant::ZERO, 0).is_err(), "{length}");
        }
        let mut other = whole;
        for version in [0, 1, 2, 3, 5, 7, 15] {
            other[0] = version << 4 | 5;
            assert!(WirePacket::new(&other, Instant::ZERO, 0).is_err(), "{version}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_not(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0_u8..3) {
            if let Some(first) = bytes.first_mut() {
                match version {
                    0 => *first = 0x45,
                    1 => *first = 0x60,
                    _ => {}
                }
            }
            if bytes.len() > 6 && bytes[0] == 0x45 {
                bytes[2] = 0;
                bytes[3] %= 128;
            } else if bytes.len() > 6 && bytes[0] == 0x60 {
                bytes[4] = 0;
                bytes[5] %= 128;
            }
            if let Ok(mut packet) = WirePacket::new(&bytes, Instant::ZERO, 0) {
                packet.mark_congestion_experienced();
                prop_assert_eq!(packet.ip().len(), bytes.len());
                prop_assert!(!packet.key().to_string().is_empty());
            }
        }
    }
}
