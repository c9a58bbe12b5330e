//! A packet as it is on the wire, and what a queue may ask of it.

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
    /// It had come with a mark.
    pub(crate) came_marked: bool,
}

/// Who sends to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Where packets come from; port 0 where there are none.
    pub from: SocketAddr,
    /// Where they go to.
    pub to: SocketAddr,
    /// The protocol's number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            1 | 58 => "icmp",
            6 => "tcp",
            17 => "udp",
            132 => "sctp",
            number => return write!(f, "protocol {number} {} > {}", self.from.ip(), self.to.ip()),
        };
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
    /// Where it is neither IPv4 nor IPv6, or shorter than it says.
    pub fn new(packet: &[u8], time: Instant, number: u64) -> Result<Self, Malformed> {
        let headers = Headers::read(packet)?;
        let mut bytes = vec![0; SEGMENTATION_HEADER + packet.len()].into_boxed_slice();
        bytes[SEGMENTATION_HEADER..].copy_from_slice(packet);
        Ok(Self {
            bytes,
            time,
            number,
            flow: FlowId(headers.key.hash()),
            hosts: Hosts {
                source: hash_of(headers.key.from.ip()),
                destination: hash_of(headers.key.to.ip()),
            },
            ecn: headers.ecn,
            opens_connection: headers.opens_connection,
            came_marked: headers.ecn == Ecn::CongestionExperienced,
        })
    }

    /// The IP packet.
    #[must_use]
    pub fn ip(&self) -> &[u8] {
        &self.bytes[SEGMENTATION_HEADER..]
    }

    /// What to write to a device.
    pub(crate) fn for_device(&self, segmentation: bool) -> &[u8] {
        if segmentation { &self.bytes } else { self.ip() }
    }

    /// Who sends it to whom.
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

/// What a queue may ask of a packet, as its headers say.
struct Headers {
    key: FlowKey,
    ecn: Ecn,
    opens_connection: bool,
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
        let (ports, opens_connection) = match &sliced.transport {
            _ if fragment => ((0, 0), false),
            Some(TransportSlice::Tcp(tcp)) => {
                ((tcp.source_port(), tcp.destination_port()), tcp.syn() && !tcp.ack())
            }
            Some(TransportSlice::Udp(udp)) => ((udp.source_port(), udp.destination_port()), false),
            _ => ((0, 0), false),
        };
        let key =
            FlowKey { from: SocketAddr::new(from, ports.0), to: SocketAddr::new(to, ports.1), protocol };
        let ecn = match ecn {
            0b00 => Ecn::NotCapable,
            0b01 => Ecn::L4s,
            0b10 => Ecn::Capable,
            _ => Ecn::CongestionExperienced,
        };
        Ok(Self { key, ecn, opens_connection })
    }
}

impl FlowKey {
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
