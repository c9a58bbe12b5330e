//! IP packets, as far as they are looked into: addresses, ports and payload.

use std::net::{IpAddr, SocketAddr};

use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IcmpEchoHeader, Icmpv4Header, Icmpv4Slice, Icmpv4Type, Icmpv6Header, Icmpv6Slice, Icmpv6Type, IpNumber,
    IpSlice, PacketBuilder, TcpSlice, UdpSlice,
};

/// A packet of a transport that is carried.
#[derive(Debug)]
pub(crate) enum Packet<'a> {
    /// A segment.
    Tcp(Ends, Segment<'a>),
    /// A datagram and its payload.
    Udp(Ends, &'a [u8]),
    /// A ping. The end that asks has the identifier as its port, as translators see it (RFC 5508 §3.1), and the other has none.
    Echo(Ends, Echo<'a>),
}

/// A protocol without connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    Udp,
    /// ICMP's and ICMPv6's pings.
    Echo,
}

/// A message of `ping` (RFC 792, RFC 4443 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echo<'a> {
    pub(crate) asks: bool,
    pub(crate) id: u16,
    pub(crate) sequence: u16,
    /// The data that the answer repeats.
    pub(crate) data: &'a [u8],
}

/// The source and the destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
}

/// A TCP segment and where in its packet it begins.
#[derive(Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) tcp: TcpSlice<'a>,
    pub(crate) at: usize,
}

impl Segment<'_> {
    /// Whether it asks for a connection.
    pub(crate) fn is_first(&self) -> bool {
        self.tcp.syn() && !self.tcp.ack()
    }
}

/// Looks into `packet`; `None` for packets not carried: other transports and messages of ICMP, fragments, and packets to several hosts.
pub(crate) fn parse(packet: &[u8]) -> Option<Packet<'_>> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let payload = ip.payload();
    if payload.fragmented {
        return None;
    }
    let destination = ip.destination_addr();
    let many = matches!(destination, IpAddr::V4(address) if address.is_broadcast());
    if many || destination.is_multicast() || destination.is_unspecified() {
        return None;
    }
    let ends = |from: u16, to: u16| Ends {
        source: SocketAddr::new(ip.source_addr(), from),
        destination: SocketAddr::new(destination, to),
    };
    match payload.ip_number {
        IpNumber::TCP => {
            let tcp = TcpSlice::from_slice(payload.payload).ok()?;
            let whole = match &ip {
                IpSlice::Ipv4(v4) => usize::from(v4.header().total_len()),
                IpSlice::Ipv6(v6) => V6_HEADER + usize::from(v6.header().payload_length()),
            };
            let ends = ends(tcp.source_port(), tcp.destination_port());
            Some(Packet::Tcp(ends, Segment { at: whole - payload.payload.len(), tcp }))
        }
        IpNumber::UDP => {
            let udp = UdpSlice::from_slice(payload.payload).ok()?;
            Some(Packet::Udp(ends(udp.source_port(), udp.destination_port()), udp.payload()))
        }
        protocol @ (IpNumber::ICMP | IpNumber::IPV6_ICMP) => {
            let echo = echo(payload.payload, protocol == IpNumber::ICMP)?;
            let ends = if echo.asks { ends(echo.id, 0) } else { ends(0, echo.id) };
            Some(Packet::Echo(ends, echo))
        }
        _ => None,
    }
}

/// Looks into a message of ICMP, or of ICMPv6; `None` for all but those of `ping`.
pub(crate) fn echo(message: &[u8], is_v4: bool) -> Option<Echo<'_>> {
    let (asks, header, data) = if is_v4 {
        let message = Icmpv4Slice::from_slice(message).ok()?;
        match message.icmp_type() {
            Icmpv4Type::EchoRequest(header) => (true, header, message.payload()),
            Icmpv4Type::EchoReply(header) => (false, header, message.payload()),
            _ => return None,
        }
    } else {
        let message = Icmpv6Slice::from_slice(message).ok()?;
        match message.icmp_type() {
            Icmpv6Type::EchoRequest(header) => (true, header, message.payload()),
            Icmpv6Type::EchoReply(header) => (false, header, message.payload()),
            _ => return None,
        }
    };
    Some(Echo { asks, id: header.id, sequence: header.seq, data })
}

/// Gives the packet of a segment that begins `at` other ends, of the family that it has, and keeps its checksums right
/// (RFC 1624 §3, eqn. 3).
///
/// # Panics
/// Where the family is another.
pub(crate) fn redirect(packet: &mut [u8], at: usize, ends: &Ends) {
    let tcp_checksum = at + 16;
    let v4_checksum = (packet[0] >> 4 == 4).then_some(10);
    match (ends.source.ip(), ends.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            assert!(v4_checksum.is_some(), "an IPv4 packet stays one");
            replace(packet, 12, &[source.octets(), destination.octets()].concat(), v4_checksum, tcp_checksum);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            assert!(v4_checksum.is_none(), "an IPv6 packet stays one");
            replace(packet, 8, &[source.octets(), destination.octets()].concat(), None, tcp_checksum);
        }
        _ => panic!("both ends are of one family"),
    }
    let ports = [ends.source.port().to_be_bytes(), ends.destination.port().to_be_bytes()].concat();
    replace(packet, at, &ports, None, tcp_checksum);
}

/// Puts `new` in at `at`, an even place, and corrects the checksums that cover it.
fn replace(packet: &mut [u8], at: usize, new: &[u8], v4_checksum: Option<usize>, tcp_checksum: usize) {
    let old = &packet[at..at + new.len()];
    let change =
        Sum16BitWords::new().add_slice(&old.iter().map(|byte| !byte).collect::<Vec<_>>()).add_slice(new);
    for checksum in v4_checksum.into_iter().chain([tcp_checksum]) {
        let field = [!packet[checksum], !packet[checksum + 1]];
        // The sum keeps the order of bytes that words have in memory.
        let corrected = change.clone().add_2bytes(field).ones_complement();
        packet[checksum..checksum + 2].copy_from_slice(&corrected.to_ne_bytes());
    }
    packet[at..at + new.len()].copy_from_slice(new);
}

/// The packet that refuses `segment` (RFC 9293 §3.10.7.1); `None` where `segment` is itself a refusal.
pub(crate) fn refusal(ends: &Ends, segment: &Segment<'_>) -> Option<Vec<u8>> {
    let tcp = &segment.tcp;
    if tcp.rst() {
        return None;
    }
    let (from, to) = (ends.destination, ends.source);
    let ip = ip(from, to)?;
    let next = u32::try_from(tcp.payload().len()).ok()? + u32::from(tcp.syn()) + u32::from(tcp.fin());
    let mut packet = Vec::new();
    if tcp.ack() {
        let reset = ip.tcp(from.port(), to.port(), tcp.acknowledgment_number(), 0).rst();
        reset.write(&mut packet, &[]).ok()?;
    } else {
        let reset = ip.tcp(from.port(), to.port(), 0, 0).rst().ack(tcp.sequence_number().wrapping_add(next));
        reset.write(&mut packet, &[]).ok()?;
    }
    Some(packet)
}

/// A packet with a datagram; `None` where the ends are of different families, or it is too long for a packet.
pub(crate) fn datagram(ends: &Ends, bytes: &[u8]) -> Option<Vec<u8>> {
    let udp = ip(ends.source, ends.destination)?.udp(ends.source.port(), ends.destination.port());
    let mut packet = Vec::with_capacity(udp.size(bytes.len()));
    udp.write(&mut packet, bytes).ok()?;
    Some(packet)
}

/// The message that asks for `echo` at an address of IPv4, or of IPv6. Its checksum and its identifier are those that a socket
/// for pings gives it.
pub(crate) fn echo_request(echo: &Echo<'_>, is_v4: bool) -> Vec<u8> {
    let header = IcmpEchoHeader { id: 0, seq: echo.sequence };
    if is_v4 {
        [&Icmpv4Header::new(Icmpv4Type::EchoRequest(header)).to_bytes()[..], echo.data].concat()
    } else {
        [&Icmpv6Header::new(Icmpv6Type::EchoRequest(header)).to_bytes()[..], echo.data].concat()
    }
}

/// A packet with the answer to a ping; `None` as for [`datagram`].
pub(crate) fn echo_reply(ends: &Ends, sequence: u16, data: &[u8]) -> Option<Vec<u8>> {
    let (ip, id) = (ip(ends.source, ends.destination)?, ends.destination.port());
    let mut packet = Vec::new();
    if ends.source.is_ipv4() {
        ip.icmpv4_echo_reply(id, sequence).write(&mut packet, data).ok()?;
    } else {
        ip.icmpv6_echo_reply(id, sequence).write(&mut packet, data).ok()?;
    }
    Some(packet)
}

fn ip(from: SocketAddr, to: SocketAddr) -> Option<etherparse::PacketBuilderStep<etherparse::IpHeaders>> {
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => Some(PacketBuilder::ipv4(from.octets(), to.octets(), HOPS)),
        (IpAddr::V6(from), IpAddr::V6(to)) => Some(PacketBuilder::ipv6(from.octets(), to.octets(), HOPS)),
        _ => None,
    }
}

const V6_HEADER: usize = 40;
/// The value that RFC 1700 recommends, and Linux's.
const HOPS: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ends(source: &str, destination: &str) -> Ends {
        Ends { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
    }

    fn segment(ends: &Ends, bytes: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let tcp = ip(ends.source, ends.destination).unwrap().tcp(
            ends.source.port(),
            ends.destination.port(),
            1_000,
            500,
        );
        tcp.syn().write(&mut packet, bytes).unwrap();
        packet
    }

    /// Of a packet that was built for other ends, against one that is built for these.
    fn assert_redirects(from: &Ends, to: &Ends, bytes: &[u8]) {
        let mut packet = segment(from, bytes);
        let Some(Packet::Tcp(found, tcp)) = parse(&packet) else { panic!("a segment") };
        assert_eq!(found, *from);
        assert!(tcp.is_first());
        let at = tcp.at;
        redirect(&mut packet, at, to);
        assert_eq!(packet, segment(to, bytes));
    }

    #[test]
    fn a_redirected_packet_is_as_if_built_so() {
        let (a, b) = (ends("10.0.0.1:5000", "1.2.3.4:443"), ends("198.18.0.2:7", "198.18.0.1:9"));
        assert_redirects(&a, &b, b"odd");
        let (a, b) = (ends("[fd00::1]:5000", "[2001:db8::4]:443"), ends("[fd00::2]:7", "[fd00::1]:9"));
        assert_redirects(&a, &b, b"");
    }

    proptest! {
        #[test]
        fn checksums_stay_right_whatever_changes(
            old in any::<(u32, u32, u16, u16)>(),
            new in any::<(u32, u32, u16, u16)>(),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let ends = |(from, to, source, destination): (u32, u32, u16, u16)| Ends {
                // Neither many hosts nor none.
                source: SocketAddr::new(IpAddr::V4((from | 1 << 24).into()), source),
                destination: SocketAddr::new(IpAddr::V4((to & 0x7fff_ffff | 1 << 24).into()), destination),
            };
            assert_redirects(&ends(old), &ends(new), &bytes);
        }

        #[test]
        fn anything_is_a_packet_or_not(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn a_refusal_is_one_that_the_other_end_takes() {
        let asked = ends("10.0.0.1:5000", "1.2.3.4:443");
        let packet = segment(&asked, b"");
        let Some(Packet::Tcp(found, first)) = parse(&packet) else { panic!("a segment") };
        let reset = refusal(&found, &first).unwrap();
        let Some(Packet::Tcp(back, reset)) = parse(&reset) else { panic!("a segment") };
        assert_eq!(back, ends("1.2.3.4:443", "10.0.0.1:5000"));
        assert!(reset.tcp.rst() && reset.tcp.ack() && reset.tcp.acknowledgment_number() == 1_001);
        assert_eq!(refusal(&back, &reset), None, "no answer to an answer");
    }

    #[test]
    fn datagrams_read_back_and_what_is_not_carried_is_none() {
        let ends = ends("10.0.0.1:5000", "1.2.3.4:53");
        let packet = datagram(&ends, b"who?").unwrap();
        assert!(matches!(parse(&packet), Some(Packet::Udp(found, b"who?")) if found == ends));
        assert!(datagram(&ends, &[0; 65_508]).is_none(), "longer than a packet");
        let many = Ends { destination: "224.0.0.251:5353".parse().unwrap(), ..ends };
        assert!(parse(&datagram(&many, b"who?").unwrap()).is_none());
        let mut fragment = packet.clone();
        fragment[6] |= 0x20;
        assert!(parse(&fragment).is_none());
        let mut other = packet;
        other[9] = 132;
        assert!(parse(&other).is_none(), "SCTP");
    }

    #[test]
    fn the_answer_to_a_ping_reads_back_and_other_messages_are_none() {
        for (source, destination) in [("1.2.3.4:0", "10.0.0.1:77"), ("[2001:db8::4]:0", "[fd00::1]:77")] {
            let ends = ends(source, destination);
            let mut packet = echo_reply(&ends, 3, b"data").unwrap();
            let Some(Packet::Echo(found, echo)) = parse(&packet) else { panic!("a ping") };
            assert_eq!((found, echo), (ends, Echo { asks: false, id: 77, sequence: 3, data: b"data" }));
            let at = packet.len() - b"data".len() - 8;
            packet[at] = if ends.source.is_ipv4() { 8 } else { 128 };
            let Some(Packet::Echo(found, echo)) = parse(&packet) else { panic!("a ping") };
            assert!(echo.asks);
            assert_eq!(
                (found.source.port(), found.destination.port()),
                (77, 0),
                "the identifier is the asking end's"
            );
            packet[at] = if ends.source.is_ipv4() { 5 } else { 137 };
            assert!(parse(&packet).is_none(), "a redirect");
        }
    }
}
