//! The beginning of a connection, as a packet shows it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syn {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The DSCP, in its place within the octet of RFC 2474.
    pub(crate) dscp: u8,
}

impl Syn {
    /// The SYN in an IP packet; none where its headers are no plain ones of TCP.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let (from, to, traffic_class, tcp): (IpAddr, IpAddr, u8, &[u8]) = match packet.first()? >> 4 {
            4 if packet.get(9) == Some(&TCP) => {
                let header = usize::from(packet[0] & 0xf) * 4;
                let [from, to] = [12, 16].map(|at| packet.get(at..at + 4).and_then(|ip| ip.try_into().ok()));
                let (from, to): ([u8; 4], [u8; 4]) = (from?, to?);
                (
                    Ipv4Addr::from(from).into(),
                    Ipv4Addr::from(to).into(),
                    packet[1],
                    packet.get(header.max(20)..)?,
                )
            }
            6 if packet.get(6) == Some(&TCP) => {
                let [from, to] = [8, 24].map(|at| packet.get(at..at + 16).and_then(|ip| ip.try_into().ok()));
                let (from, to): ([u8; 16], [u8; 16]) = (from?, to?);
                let traffic_class = packet[0] << 4 | packet[1] >> 4;
                (Ipv6Addr::from(from).into(), Ipv6Addr::from(to).into(), traffic_class, packet.get(40..)?)
            }
            _ => return None,
        };
        let port = |at: usize| tcp.get(at..at + 2).map(|port| u16::from_be_bytes([port[0], port[1]]));
        Some(Self {
            from: SocketAddr::new(from, port(0)?),
            to: SocketAddr::new(to, port(2)?),
            dscp: traffic_class & 0xfc,
        })
    }
}

const TCP: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_dscp_are_read_of_either_family_and_cut_packets_are_none() {
        let tcp = [0x1f, 0x90, 0x01, 0xbb, 0, 0, 0, 1];
        let mut four = [0; 20];
        (four[0], four[1], four[9]) = (0x45, 0xb9, 6);
        four[12..20].copy_from_slice(&[10, 0, 0, 1, 192, 0, 2, 1]);
        let mut six = [0; 40];
        (six[0], six[1], six[6]) = (0x6b, 0x90, 6);
        (six[23], six[39]) = (1, 2);
        for (header, from, to) in
            [(&four[..], "10.0.0.1:8080", "192.0.2.1:443"), (&six[..], "[::1]:8080", "[::2]:443")]
        {
            let packet = [header, &tcp].concat();
            let syn = Syn::parse(&packet).unwrap();
            assert_eq!((syn.from, syn.to, syn.dscp), (from.parse().unwrap(), to.parse().unwrap(), 0xb8));
            for length in 0..header.len() + 4 {
                assert_eq!(Syn::parse(&packet[..length]), None, "{length}");
            }
            let mut udp = packet;
            udp[if header.len() == 20 { 9 } else { 6 }] = 17;
            assert_eq!(Syn::parse(&udp), None);
        }
    }
}
