//! Every container and link type, and the count of unusable packets by reason.

use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions, Ipv6Header, Ipv6RawExtHeader,
    PacketBuilder, TcpOptionElement, VlanId,
};
use suimon_algorithms::queue::Ecn;
use suimon_capture::{CutOff, SkipReason, TcpTimestamps, Transport};
use suimon_units::{Bytes, Instant};

use crate::files::{Order, block, enhanced, interface, pcap, read, refused, section, whole};

/// A TCP segment of 100 bytes behind an IPv4 header, with timestamps behind an option that is not known.
fn ipv4() -> Vec<u8> {
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(5_000, 80, 1_000, 64)
        .ack(77)
        .options(&[TcpOptionElement::Timestamp(123, 456)])
        .unwrap();
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[0; 100]).unwrap();
    bytes[1] = 0b10;
    bytes
}

/// A UDP datagram of 9 bytes behind an IPv6 header with hop-by-hop and destination options.
fn ipv6() -> Vec<u8> {
    let options = Ipv6RawExtHeader::new_raw(IpNumber::UDP, &[0; 6]).unwrap();
    let extensions = Ipv6Extensions {
        hop_by_hop_options: Some(options.clone()),
        destination_options: Some(options),
        ..Ipv6Extensions::default()
    };
    let header = Ipv6Header { hop_limit: 9, source: [1; 16], destination: [2; 16], ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ip(IpHeaders::Ipv6(header, extensions)).udp(53, 5_353);
    builder.write(&mut bytes, &[0; 9]).unwrap();
    bytes
}

/// `packet` behind an Ethernet header with these tags.
fn ethernet(tags: &[u16], ether_type: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    for tag in tags {
        frame.extend([tag.to_be_bytes(), 7_u16.to_be_bytes()].concat());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(packet);
    frame
}

fn cooked(length: usize, protocol_at: usize, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[protocol_at..protocol_at + 2].copy_from_slice(&0x0800_u16.to_be_bytes());
    frame.extend(packet);
    frame
}

#[test]
fn a_segment_is_the_same_behind_every_link_header() {
    let behind = |prefix: [u8; 4]| [&prefix[..], &ipv4()].concat();
    let padded = [ethernet(&[], 0x0800, &ipv4()), vec![0; 6]].concat();
    for (link_type, frame) in [
        (1, ethernet(&[], 0x0800, &ipv4())),
        (1, padded),
        (1, ethernet(&[0x8100], 0x0800, &ipv4())),
        (1, ethernet(&[0x88a8, 0x8100], 0x0800, &ipv4())),
        (101, ipv4()),
        (12, ipv4()),
        (228, ipv4()),
        (113, cooked(16, 14, &ipv4())),
        (276, cooked(20, 0, &ipv4())),
        (0, behind([2, 0, 0, 0])),
        (108, behind([0, 0, 0, 2])),
    ] {
        for order in [Order::Little, Order::Big] {
            let (packets, capture) = read(&pcap(order, link_type, &[whole(0, &frame)])).unwrap();
            assert_eq!(capture.skipped().total(), 0, "link type {link_type}");
            let packet = packets[0];
            assert_eq!(packet.endpoints.to_string(), "10.0.0.1:5000 > 10.0.0.2:80");
            assert_eq!((packet.size, packet.payload), (Bytes::new(152), Bytes::new(100)), "{link_type}");
            assert_eq!(packet.ecn, Ecn::Capable);
            let tcp = packet.tcp.unwrap();
            assert_eq!((tcp.sequence, tcp.acknowledgement, tcp.syn), (1_000, Some(77), false));
            assert_eq!(tcp.timestamps, Some(TcpTimestamps { value: 123, echo: 456 }));
        }
    }
}

#[test]
fn extension_headers_are_no_payload() {
    for (link_type, frame) in [(229, ipv6()), (1, ethernet(&[0x8100], 0x86dd, &ipv6()))] {
        let (packets, _) = read(&pcap(Order::Little, link_type, &[whole(0, &frame)])).unwrap();
        let packet = packets[0];
        assert_eq!(packet.endpoints.transport, Transport::Udp);
        assert_eq!((packet.size, packet.payload), (Bytes::new(40 + 8 + 8 + 8 + 9), Bytes::new(9)));
        assert_eq!(packet.tcp, None);
    }
}

#[test]
fn a_length_limit_leaves_sizes_as_they_were_on_the_link() {
    let mut frame = ethernet(&[], 0x0800, &ipv4());
    let length = frame.len() as u32;
    frame.truncate(14 + 20 + 32);
    let (packets, _) = read(&pcap(Order::Little, 1, &[(0, frame.clone(), length)])).unwrap();
    assert_eq!((packets[0].size, packets[0].payload), (Bytes::new(152), Bytes::new(100)));
    // Cut within the options: the segment still counts, without them.
    frame.truncate(14 + 20 + 22);
    let (packets, _) = read(&pcap(Order::Little, 1, &[(0, frame.clone(), length)])).unwrap();
    assert_eq!((packets[0].payload, packets[0].tcp.unwrap().timestamps), (Bytes::new(100), None));
    frame.truncate(14 + 20 + 19);
    let (packets, capture) = read(&pcap(Order::Little, 1, &[(0, frame, length)])).unwrap();
    assert_eq!((packets.len(), capture.skipped().of(SkipReason::HeadersCutOff)), (0, 1));
}

#[test]
fn a_length_that_offload_left_out_is_that_of_the_frame() {
    let mut packet = ipv4();
    packet[2..4].fill(0);
    let (packets, _) = read(&pcap(Order::Little, 101, &[whole(0, &packet)])).unwrap();
    assert_eq!((packets[0].size, packets[0].payload), (Bytes::new(152), Bytes::new(100)));
}

#[test]
fn what_says_nothing_here_is_counted_by_reason() {
    let icmp = || {
        let mut bytes = Vec::new();
        let ping = PacketBuilder::ipv4([1; 4], [2; 4], 9).icmpv4_echo_request(1, 2);
        ping.write(&mut bytes, &[]).unwrap();
        bytes
    };
    let fragment = || {
        let mut header = Ipv4Header::new(64, 9, IpNumber::TCP, [1; 4], [2; 4]).unwrap();
        header.fragment_offset = IpFragOffset::try_new(8).unwrap();
        [header.to_bytes().to_vec(), vec![0; 64]].concat()
    };
    let mut short = ipv4();
    short[2..4].copy_from_slice(&30_u16.to_be_bytes());
    let mut offset = ipv4();
    offset[32] = 0x40;
    for (frame, reason) in [
        (ethernet(&[], 0x0806, &[0; 28]), SkipReason::NotIp),
        (ethernet(&[], 0x88cc, &[0; 28]), SkipReason::NotIp),
        (ethernet(&[], 0x0800, &icmp()), SkipReason::OtherTransport),
        (ethernet(&[], 0x0800, &fragment()), SkipReason::Fragment),
        (ethernet(&[], 0x0800, &short), SkipReason::Malformed),
        (ethernet(&[], 0x0800, &offset), SkipReason::Malformed),
        (vec![0; 9], SkipReason::Malformed),
    ] {
        let file = pcap(Order::Little, 1, &[whole(0, &frame), whole(5, &ethernet(&[], 0x0800, &ipv4()))]);
        let (packets, capture) = read(&file).unwrap();
        assert_eq!(capture.skipped().reasons().collect::<Vec<_>>(), [(reason, 1)]);
        assert_eq!((packets.len(), packets[0].number, capture.frames()), (1, 2, 2));
    }
}

#[test]
fn pcapng_interfaces_have_clocks_of_their_own() {
    for order in [Order::Little, Order::Big] {
        let offset = |seconds: i64| match order {
            Order::Little => seconds.to_le_bytes().to_vec(),
            Order::Big => seconds.to_be_bytes().to_vec(),
        };
        let file = [
            section(order),
            interface(order, 101, &[]),
            interface(order, 1, &[(9, vec![9]), (14, offset(-2))]),
            interface(order, 101, &[(9, vec![0x80 | 10])]),
            interface(order, 147, &[]),
            // A block of an unknown type.
            block(order, 0x0bad_cafe, &[1, 2, 3]),
            enhanced(order, 0, 5_000_000, &ipv4()),
            enhanced(order, 1, 7_250_000_000, &ethernet(&[], 0x0800, &ipv4())),
            enhanced(order, 2, 5 * 1024 + 512, &ipv4()),
            enhanced(order, 3, 6_000_000, &ipv4()),
            enhanced(order, 4, 6_000_000, &ipv4()),
            block(order, 3, &[&order.u32(152)[..], &ipv4()].concat()),
        ]
        .concat();
        let (packets, capture) = read(&file).unwrap();
        let millis: Vec<_> = packets.iter().map(|packet| packet.time.as_nanos() / 1_000_000).collect();
        assert_eq!(millis, [0, 250, 500], "{order:?}");
        let reasons: Vec<_> = capture.skipped().reasons().collect();
        assert_eq!(
            reasons,
            [(SkipReason::LinkType, 1), (SkipReason::NoInterface, 1), (SkipReason::NoTime, 1)]
        );
    }
}

#[test]
fn a_pcapng_section_may_be_of_the_other_byte_order() {
    let part = |order| [section(order), interface(order, 101, &[]), enhanced(order, 0, 9, &ipv4())].concat();
    let (packets, _) = read(&[part(Order::Little), part(Order::Big), part(Order::Little)].concat()).unwrap();
    assert_eq!(packets.len(), 3);
}

#[test]
fn time_never_goes_back() {
    let frames = [whole(2_000_000, &ipv4()), whole(3_000_000, &ipv4()), whole(1_000_000, &ipv4())];
    let (packets, capture) = read(&pcap(Order::Little, 101, &frames)).unwrap();
    let times: Vec<_> = packets.iter().map(|packet| packet.time).collect();
    let second = Instant::from_nanos(1_000_000_000);
    assert_eq!((times, capture.out_of_order()), (vec![Instant::ZERO, second, second], 1));
}

#[test]
fn a_capture_that_was_not_closed_gives_what_it_has() {
    let file = pcap(Order::Little, 101, &[whole(0, &ipv4()), whole(1, &ipv4())]);
    let (packets, capture) = read(&file[..file.len() - 1]).unwrap();
    assert_eq!((packets.len(), capture.cut_off()), (1, Some(CutOff { packets: 1, offset: 24 + 16 + 152 })));
    let (packets, capture) = read(&file).unwrap();
    assert_eq!((packets.len(), capture.cut_off()), (2, None));
    let (packets, capture) = read(&file[..24]).unwrap();
    assert_eq!((packets.len(), capture.cut_off()), (0, None));
}

#[test]
fn a_block_larger_than_the_buffer_is_read() {
    let order = Order::Little;
    let comment = block(order, 0x0bad_cafe, &vec![0; 300_000]);
    let file = [section(order), interface(order, 101, &[]), comment, enhanced(order, 0, 9, &ipv4())].concat();
    assert_eq!(read(&file).unwrap().0.len(), 1);
    let frames = [whole(0, &[ipv4(), vec![0; 200_000]].concat()), whole(1, &ipv4())];
    assert_eq!(read(&pcap(order, 101, &frames)).unwrap().0.len(), 2);
}

#[test]
fn what_cannot_be_read_is_refused_with_file_and_place() {
    let good = pcap(Order::Little, 101, &[whole(0, &ipv4())]);
    let mut huge = good.clone();
    huge.extend([0; 8]);
    huge.extend(0x7fff_ffff_u32.to_le_bytes());
    huge.extend(vec![0xee; 700_000]);
    let order = Order::Little;
    let mut torn = [section(order), interface(order, 101, &[])].concat();
    torn.extend([&order.u32(6)[..], &order.u32(10), &[0; 40]].concat());
    for (file, message) in [
        (vec![], "a.pcap: empty; accepted: a pcap or pcapng capture"),
        (b"GIF89a".to_vec(), "a.pcap: not a capture; accepted: pcap and pcapng"),
        (vec![0x1f, 0x8b, 8, 0], "a.pcap: compressed; accepted:"),
        (good[..10].to_vec(), "a.pcap: ends within its header, after 10 bytes"),
        (section(order)[..9].to_vec(), "a.pcap: ends within its header, after 9 bytes"),
        (pcap(order, 105, &[]), "a.pcap: link type 105 is not known; accepted: Ethernet (1)"),
        (huge, "a.pcap: damaged at byte 192, after 1 packets: a length that no capture has"),
        (torn, "a.pcap: damaged at byte 48, after 0 packets: no block that can be read"),
    ] {
        let told = refused(&file);
        assert!(told.starts_with(message), "{told}");
    }
}

#[test]
fn a_vlan_frame_built_by_the_library_is_read_too() {
    let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
        .single_vlan(VlanId::try_new(5).unwrap())
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(1, 2);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0; 11]).unwrap();
    let (packets, _) = read(&pcap(Order::Big, 1, &[whole(0, &frame)])).unwrap();
    assert_eq!(packets[0].payload, Bytes::new(11));
}
