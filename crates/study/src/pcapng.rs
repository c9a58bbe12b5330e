//! A simulated run as a packet capture: TCP/IP as the hosts send and receive it where flows begin.
//!
//! Packets are kept up to the end of their headers, with checksums as if all payload were zero.

use std::io::{self, Write};

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use suimon_algorithms::queue::Ecn;
use suimon_capture::CaptureWriter;
use suimon_scenario::{Scenario, Traffic};
use suimon_simulator::{TappedKind, TappedPacket, run_tapped};
use suimon_units::Instant;

/// Shift of advertised windows (RFC 7323 §2): a window may have 64 MiB, in steps of 1 KiB.
const WINDOW_SCALE: u8 = 10;
/// Header of IP without options.
const IP: usize = Ipv4Header::MIN_LEN;
/// Header of UDP.
const UDP: usize = 8;

/// Runs `scenario` and writes its packets to `to` as pcapng, an interface for each host where flows begin.
///
/// # Errors
/// When `to` does not take them.
pub fn write_pcapng(scenario: &Scenario, to: impl Write) -> io::Result<()> {
    let mut hosts: Vec<&str> = Vec::new();
    for flow in &scenario.flows {
        for host in [flow.from.as_str(), flow.to.as_str()] {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    let place = |host: &str| hosts.iter().position(|known| *known == host).unwrap_or_default();
    let ends: Vec<_> = scenario.flows.iter().map(|flow| (place(&flow.from), place(&flow.to))).collect();
    let mut writer = CaptureWriter::new(to, &hosts)?;
    let mut failed = None;
    let mut on_packet = |packet: &TappedPacket| {
        let (from, to) = ends[packet.flow as usize];
        let flow = &scenario.flows[packet.flow as usize];
        if failed.is_none() {
            let built = build(packet, &flow.traffic, from, to);
            let at = std::time::Duration::from_nanos(packet.time.as_nanos());
            let length = built.length;
            failed = writer.write_start(from as u32, at, &built.headers, length, "").err();
        }
    };
    let _ = run_tapped(scenario, &mut on_packet);
    failed.map_or_else(|| writer.flush(), Err)
}

struct Built {
    headers: Vec<u8>,
    /// Of the whole packet.
    length: u32,
}

/// The headers of `packet`, whose flow leads from one host to another.
fn build(packet: &TappedPacket, traffic: &Traffic, from: usize, to: usize) -> Built {
    let ports = (1_024 + (packet.flow % 64_000) as u16, 80);
    let is_back = matches!(packet.kind, TappedKind::SynAck | TappedKind::Ack | TappedKind::Echo);
    let address = |host: usize| [10, 0, (host / 250) as u8, (host % 250 + 1) as u8];
    let (source, destination) = if is_back { (to, from) } else { (from, to) };
    let ports = if is_back { (ports.1, ports.0) } else { ports };
    let (source, destination) = (address(source), address(destination));
    let ip = |protocol, payload: usize| {
        let mut ip = Ipv4Header::new(payload as u16, 64, protocol, source, destination)
            .expect("a packet is shorter than 64 KiB");
        ip.dont_fragment = true;
        ip.ecn = match packet.ecn {
            Ecn::NotCapable => IpEcn::NotEct,
            Ecn::Capable => IpEcn::Ect0,
            Ecn::L4s => IpEcn::Ect1,
            Ecn::CongestionExperienced => IpEcn::CongestionExperienced,
        };
        ip.header_checksum = ip.calc_header_checksum();
        ip
    };
    let mut headers = Vec::with_capacity(100);
    let length = match traffic {
        Traffic::Udp(_) => {
            let payload = (packet.payload as usize).saturating_sub(IP + UDP);
            let ip = ip(IpNumber::UDP, payload + UDP);
            // Zero says that there is none, which UDP over IPv4 allows (RFC 768).
            let udp = UdpHeader {
                source_port: ports.0,
                destination_port: ports.1,
                length: (payload + UDP) as u16,
                checksum: 0,
            };
            headers.extend(ip.to_bytes());
            headers.extend(udp.to_bytes());
            headers.len() + payload
        }
        Traffic::Tcp(tcp) => {
            let payload = packet.payload as usize;
            let mut header = tcp_header(packet, ports, tcp.profile.timestamps, tcp.profile.mss.get() as u16);
            let ip = ip(IpNumber::TCP, header.header_len() + payload);
            header.checksum =
                header.calc_checksum_ipv4(&ip, &vec![0; payload]).expect("a packet is shorter than 64 KiB");
            headers.extend(ip.to_bytes());
            headers.extend(header.to_bytes());
            headers.len() + payload
        }
    };
    Built { headers, length: length as u32 }
}

/// The header of a segment. Both ends begin at sequence number zero, which the SYN takes.
fn tcp_header(packet: &TappedPacket, ports: (u16, u16), has_timestamps: bool, mss: u16) -> TcpHeader {
    let number = |byte: u64| byte.wrapping_add(1) as u32;
    let mut header = TcpHeader::new(ports.0, ports.1, 0, u16::MAX);
    let mut options = Vec::new();
    match packet.kind {
        TappedKind::Syn | TappedKind::SynAck => {
            header.syn = true;
            options.push(TcpOptionElement::MaximumSegmentSize(mss));
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
            options.push(TcpOptionElement::WindowScale(WINDOW_SCALE));
            if packet.kind == TappedKind::SynAck {
                (header.ack, header.acknowledgment_number) = (true, 1);
                header.window_size = packet.window.min(u32::from(u16::MAX)) as u16;
            }
        }
        TappedKind::Data => {
            header.sequence_number = number(packet.seq);
            (header.ack, header.acknowledgment_number) = (true, 1);
            (header.psh, header.cwr) = (true, packet.ecn_flag);
        }
        _ => {
            header.sequence_number = 1;
            (header.ack, header.acknowledgment_number) = (true, number(packet.seq));
            header.ece = packet.ecn_flag;
            header.window_size = (packet.window >> WINDOW_SCALE).min(u32::from(u16::MAX)) as u16;
        }
    }
    if has_timestamps {
        options.push(TcpOptionElement::Timestamp(ticks(packet.ts_val), ticks(packet.ts_ecr)));
    }
    let mut blocks = packet.sack.iter().flatten().map(|(from, to)| (number(*from), number(*to)));
    if let Some(first) = blocks.next() {
        options.push(TcpOptionElement::SelectiveAcknowledgement(first, [blocks.next(), blocks.next(), None]));
    }
    header.set_options(&options).expect("timestamps and three blocks fit");
    header
}

/// Timestamps count milliseconds, as Linux's do.
fn ticks(time: Instant) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
