//! From a captured frame to its headers.

use std::net::{IpAddr, SocketAddr};

use etherparse::err::Layer;
use etherparse::err::packet::SliceError;
use etherparse::{EtherType, IpEcn, LaxNetSlice, LaxSlicedPacket, err, ip_number, tcp_option};
use suimon_algorithms::queue::Ecn;
use suimon_units::{Bytes, Instant};

use crate::container::Frame;
use crate::packet::{Endpoints, Packet, Tcp, TcpTimestamps, Transport};
use crate::skipped::SkipReason;

/// Link types (registry of tcpdump.org) as messages name them.
pub(crate) const ACCEPTED: &str =
    "Ethernet (1), raw IP (101, 228, 229), Linux cooked (113, 276), loopback (0, 108)";

const NULL: i32 = 0;
const ETHERNET: i32 = 1;
/// Raw IP as the BSDs number it inside the kernel; some tools write these.
const RAW_BSD: [i32; 2] = [12, 14];
const RAW: i32 = 101;
const LOOP: i32 = 108;
const LINUX_SLL: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_SLL2: i32 = 276;

/// Whether frames of this type can be read.
pub(crate) fn knows(link_type: i32) -> bool {
    matches!(link_type, NULL | ETHERNET | RAW | LOOP | LINUX_SLL | IPV4 | IPV6 | LINUX_SLL2)
        || RAW_BSD.contains(&link_type)
}

/// Reads a packet that passed at `time`, of `length` bytes from the IP header on and `data` as far as it is known. None
/// where it is neither TCP nor UDP.
#[must_use]
pub fn read_packet(time: Instant, length: u32, data: &[u8]) -> Option<Packet> {
    let Headers { endpoints, size, payload, ecn, tcp } =
        decode(&Frame { nanos: 0, link_type: RAW, length, data }).ok()?;
    Some(Packet { number: 1, time, endpoints, size, payload, ecn, tcp })
}

/// The headers of a frame.
pub(crate) struct Headers {
    pub(crate) endpoints: Endpoints,
    pub(crate) size: Bytes,
    pub(crate) payload: Bytes,
    pub(crate) ecn: Ecn,
    pub(crate) tcp: Option<Tcp>,
}

/// Reads the headers of `frame`.
pub(crate) fn decode(frame: &Frame<'_>) -> Result<Headers, SkipReason> {
    let sliced = slice(frame)?;
    let ip = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            Ip {
                source: header.source_addr().into(),
                destination: header.destination_addr().into(),
                ecn: header.ecn(),
                at: offset(frame.data, header.slice()),
                // Segmentation offload leaves out a length that does not fit.
                length: Some(u64::from(header.total_len())).filter(|length| *length > 0),
                payload: ip.payload(),
            }
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let payload_length = Some(u64::from(header.payload_length())).filter(|length| *length > 0);
            Ip {
                source: header.source_addr().into(),
                destination: header.destination_addr().into(),
                ecn: header.ecn(),
                at: offset(frame.data, header.slice()),
                length: payload_length.map(|length| length + header.slice().len() as u64),
                payload: ip.payload(),
            }
        }
        Some(LaxNetSlice::Arp(_)) => return Err(SkipReason::NotIp),
        None => return Err(sliced.stop_err.map_or(SkipReason::NotIp, |stop| stopped(frame, &stop))),
    };
    if ip.payload.fragmented {
        return Err(SkipReason::Fragment);
    }
    let bytes = ip.payload.payload;
    let (transport, header_length, tcp) = match ip.payload.ip_number {
        ip_number::TCP => {
            let (fixed, after) = bytes.split_first_chunk().ok_or_else(|| too_short(frame))?;
            let (tcp, length) = read_tcp(fixed, after).ok_or(SkipReason::Malformed)?;
            (Transport::Tcp, length, Some(tcp))
        }
        ip_number::UDP if bytes.len() >= UDP_HEADER => (Transport::Udp, UDP_HEADER, None),
        ip_number::UDP => return Err(too_short(frame)),
        _ => return Err(sliced.stop_err.map_or(SkipReason::OtherTransport, |stop| stopped(frame, &stop))),
    };
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let before_payload = offset(frame.data, bytes) - ip.at + header_length;
    let size = ip.length.unwrap_or_else(|| u64::from(frame.length).saturating_sub(ip.at as u64));
    let payload = size.checked_sub(before_payload as u64).ok_or(SkipReason::Malformed)?;
    Ok(Headers {
        endpoints: Endpoints {
            transport,
            source: SocketAddr::new(ip.source, port(0)),
            destination: SocketAddr::new(ip.destination, port(2)),
        },
        size: Bytes::new(size),
        payload: Bytes::new(payload),
        ecn: match ip.ecn {
            IpEcn::NotEct => Ecn::NotCapable,
            IpEcn::Ect0 => Ecn::Capable,
            IpEcn::Ect1 => Ecn::L4s,
            IpEcn::CongestionExperienced => Ecn::CongestionExperienced,
        },
        tcp,
    })
}

/// The fields of either version's header that are needed here.
struct Ip<'a> {
    source: IpAddr,
    destination: IpAddr,
    ecn: IpEcn,
    /// Where it starts in the frame.
    at: usize,
    /// Of the whole packet; `None` where the header does not say.
    length: Option<u64>,
    payload: &'a etherparse::LaxIpPayloadSlice<'a>,
}

/// Takes the frame apart as far as it goes.
fn slice<'a>(frame: &Frame<'a>) -> Result<LaxSlicedPacket<'a>, SkipReason> {
    let data = frame.data;
    // Behind a header of a fixed length, in which the protocol stands at a fixed place.
    let cooked = |length: usize, protocol_at: usize| {
        let (header, rest) = data.split_at_checked(length).ok_or_else(|| too_short(frame))?;
        let protocol = u16::from_be_bytes([header[protocol_at], header[protocol_at + 1]]);
        Ok(LaxSlicedPacket::from_ether_type(EtherType(protocol), rest))
    };
    let raw = |data: &'a [u8]| {
        use etherparse::err::ip::LaxHeaderSliceError;
        LaxSlicedPacket::from_ip(data).map_err(|error| match error {
            LaxHeaderSliceError::Len(_) => too_short(frame),
            LaxHeaderSliceError::Content(err::ip::HeaderError::UnsupportedIpVersion { .. }) => {
                SkipReason::NotIp
            }
            LaxHeaderSliceError::Content(_) => SkipReason::Malformed,
        })
    };
    match frame.link_type {
        ETHERNET => LaxSlicedPacket::from_ethernet(data).map_err(|_| too_short(frame)),
        LINUX_SLL => cooked(16, 14),
        LINUX_SLL2 => cooked(20, 0),
        // The address family before the packet differs between systems; the packet's version does not.
        NULL | LOOP => raw(data.get(4..).ok_or_else(|| too_short(frame))?),
        RAW | IPV4 | IPV6 => raw(data),
        other if RAW_BSD.contains(&other) => raw(data),
        _ => Err(SkipReason::LinkType),
    }
}

/// Where `part` starts in `whole`, of which it is a part.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// Why headers ended before their end.
fn too_short(frame: &Frame<'_>) -> SkipReason {
    if frame.data.len() < frame.length as usize { SkipReason::HeadersCutOff } else { SkipReason::Malformed }
}

fn stopped(frame: &Frame<'_>, (error, layer): &(SliceError, Layer)) -> SkipReason {
    match (layer, error) {
        (Layer::Arp, _) => SkipReason::NotIp,
        (Layer::Icmpv4 | Layer::Icmpv4Timestamp | Layer::Icmpv4TimestampReply, _)
        | (Layer::Icmpv6 | Layer::Igmp, _) => SkipReason::OtherTransport,
        (_, SliceError::Len(_)) => too_short(frame),
        _ => SkipReason::Malformed,
    }
}

const UDP_HEADER: usize = 8;
/// Without options.
const TCP_HEADER: usize = 20;

/// Reads a TCP header (RFC 9293 §3.1), of which `after` may lack the end, and gives its length. A length limit often
/// cuts into the options of long headers, which the library then refuses whole.
fn read_tcp(fixed: &[u8; TCP_HEADER], after: &[u8]) -> Option<(Tcp, usize)> {
    let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let flag = |bit: u8| fixed[13] & bit != 0;
    let length = 4 * usize::from(fixed[12] >> 4);
    let options = length.checked_sub(TCP_HEADER)?;
    let options = &after[..options.min(after.len())];
    let tcp = Tcp {
        sequence: number(4),
        acknowledgement: flag(0x10).then(|| number(8)),
        syn: flag(0x02),
        fin: flag(0x01),
        rst: flag(0x04),
        sacked: sacked(options),
        timestamps: timestamps(options),
    };
    Some((tcp, length))
}

/// The value of the option of this kind (RFC 9293 §3.2), also behind options that are not known here, as MPTCP's.
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        match *options {
            [] | [tcp_option::KIND_END, ..] => return None,
            [tcp_option::KIND_NOOP, ref rest @ ..] => options = rest,
            [kind, length, ..] if length >= 2 => {
                if kind == wanted {
                    return options.get(2..usize::from(length));
                }
                options = options.get(usize::from(length)..)?;
            }
            _ => return None,
        }
    }
}

/// The timestamps option (RFC 7323 §3.2).
fn timestamps(options: &[u8]) -> Option<TcpTimestamps> {
    let value: [u8; 8] = option(options, tcp_option::KIND_TIMESTAMP)?.try_into().ok()?;
    let [a, b, c, d, e, f, g, h] = value;
    Some(TcpTimestamps { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) })
}

/// The end of the last byte that SACK blocks name (RFC 2018 §3).
fn sacked(options: &[u8]) -> Option<u32> {
    let (blocks, _) = option(options, tcp_option::KIND_SELECTIVE_ACK)?.as_chunks::<8>();
    let ends = blocks.iter().map(|block| u32::from_be_bytes([block[4], block[5], block[6], block[7]]));
    ends.reduce(|last, end| if (last.wrapping_sub(end) as i32) < 0 { end } else { last })
}
