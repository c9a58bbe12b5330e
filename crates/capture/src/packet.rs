//! A captured packet: its addresses, size, ECN field and TCP header.

use std::fmt;
use std::net::SocketAddr;

use suimon_algorithms::queue::{Ecn, FlowId};
use suimon_units::{Bytes, Instant};

/// A TCP or UDP packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Its position in the capture, from 1, as Wireshark numbers it.
    pub number: u64,
    /// When it was captured, since the first packet. Never earlier than the packet before.
    pub time: Instant,
    /// Between whom, in its direction.
    pub endpoints: Endpoints,
    /// Its size as an IP packet, headers included, whatever part of it was captured.
    pub size: Bytes,
    /// Bytes of the application that it carries.
    pub payload: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The TCP header; `None` for UDP.
    pub tcp: Option<Tcp>,
}

/// Source and destination of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoints {
    /// TCP or UDP.
    pub transport: Transport,
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
    pub destination: SocketAddr,
}

/// The transport of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
}

impl Transport {
    /// As tables write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl Endpoints {
    /// The other direction of the same connection.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { transport: self.transport, source: self.destination, destination: self.source }
    }

    /// The same for both directions: the lesser of the two.
    #[must_use]
    pub fn connection(self) -> Self {
        self.min(self.reversed())
    }

    /// An identity as a queue takes it: a 32-bit hash, the same on every machine. Two of 9 000 flows share
    /// one with a probability of 1 %.
    #[must_use]
    pub fn flow_id(self) -> FlowId {
        let mut hash = Fnv::new();
        hash.add(&[self.transport as u8]);
        for address in [self.source, self.destination] {
            match address {
                SocketAddr::V4(v4) => hash.add(&v4.ip().octets()),
                SocketAddr::V6(v6) => hash.add(&v6.ip().octets()),
            }
            hash.add(&address.port().to_be_bytes());
        }
        FlowId((hash.0 ^ (hash.0 >> 32)) as u32)
    }
}

impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {}", self.source, self.destination)
    }
}

/// FNV-1a, 64 bits: short, and without a key that differs from run to run.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The TCP header (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number of the first byte, or of SYN.
    pub sequence: u32,
    /// The next byte that the sender of this packet expects; `None` without ACK.
    pub acknowledgement: Option<u32>,
    /// The end of the last byte that its SACK blocks name (RFC 2018).
    pub sacked: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// The timestamps option.
    pub timestamps: Option<TcpTimestamps>,
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpTimestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the last value of the other's clock that the sender saw. Says nothing without ACK.
    pub echo: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(source: &str, destination: &str) -> Endpoints {
        Endpoints {
            transport: Transport::Tcp,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    #[test]
    fn directions_are_two_flows_of_one_connection() {
        let there = endpoints("10.0.0.1:80", "[2001:db8::1]:4000");
        let back = there.reversed();
        assert_ne!(there.flow_id(), back.flow_id());
        assert_eq!(there.connection(), back.connection());
        assert_eq!(there.to_string(), "10.0.0.1:80 > [2001:db8::1]:4000");
    }

    #[test]
    fn every_part_of_the_endpoints_enters_the_identity() {
        let base = endpoints("10.0.0.1:80", "10.0.0.2:90");
        let others = [
            endpoints("10.0.0.3:80", "10.0.0.2:90"),
            endpoints("10.0.0.1:81", "10.0.0.2:90"),
            endpoints("10.0.0.1:80", "10.0.0.4:90"),
            endpoints("10.0.0.1:80", "10.0.0.2:91"),
            Endpoints { transport: Transport::Udp, ..base },
        ];
        for other in others {
            assert_ne!(base.flow_id(), other.flow_id(), "{other}");
        }
    }
}
