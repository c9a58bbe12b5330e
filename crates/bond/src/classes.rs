//! Which flows go before others, as the user says.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use etherparse::IpSlice;
use suimon_service::Target;

use crate::mux::ServiceClass;
use crate::tun::packet::{Packet, parse};

/// Some flows of programs: by the target's port, or by the mark of their packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Datagrams to these ports.
    Udp(RangeInclusive<u16>),
    /// Streams to these ports.
    Tcp(RangeInclusive<u16>),
    /// Datagrams whose IP header has this code point (RFC 2474 §3).
    Dscp(u8),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once('/') {
            Some(("udp", ports)) => self::ports(ports).map(Self::Udp),
            Some(("tcp", ports)) => self::ports(ports).map(Self::Tcp),
            Some(("dscp", code)) => code.parse().ok().filter(|code| *code <= MAX_DSCP).map(Self::Dscp),
            _ => None,
        };
        parsed.ok_or_else(|| {
            "accepted: udp/PORT, udp/PORT-PORT, tcp/PORT, tcp/PORT-PORT, dscp/0 to dscp/63, as in udp/3478 or dscp/46"
                .to_owned()
        })
    }
}

/// `PORT` or `PORT-PORT`.
fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = first.parse().ok()?..=last.parse().ok()?;
    (*ports.start() > 0 && !ports.is_empty()).then_some(ports)
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, ports) = match self {
            Self::Udp(ports) => ("udp", ports),
            Self::Tcp(ports) => ("tcp", ports),
            Self::Dscp(code) => return write!(f, "dscp/{code}"),
        };
        write!(f, "{name}/{}", ports.start())?;
        if ports.end() > ports.start() { write!(f, "-{}", ports.end()) } else { Ok(()) }
    }
}

/// The class of each flow.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    redundant: Vec<Selector>,
    realtime: Vec<Selector>,
}

impl Classes {
    /// The classes of flows that match one of these. A flow that matches both is redundant.
    #[must_use]
    pub fn new(realtime: Vec<Selector>, redundant: Vec<Selector>) -> Self {
        Self { redundant, realtime }
    }

    /// The class of an IP packet of a datagram.
    #[must_use]
    pub fn of_packet(&self, packet: &[u8]) -> ServiceClass {
        if self.redundant.is_empty() && self.realtime.is_empty() {
            return ServiceClass::Default;
        }
        let port = match parse(packet) {
            Some(Packet::Udp(ends, _)) => Some(ends.destination.port()),
            _ => None,
        };
        let dscp = dscp(packet);
        self.of(|selector| match selector {
            Selector::Udp(ports) => port.is_some_and(|port| ports.contains(&port)),
            Selector::Tcp(_) => false,
            Selector::Dscp(code) => dscp == Some(*code),
        })
    }

    /// The class of a stream to `target`.
    #[must_use]
    pub fn of_target(&self, target: &Target) -> ServiceClass {
        let port = target.as_str().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        self.of(|selector| match (selector, port) {
            (Selector::Tcp(ports), Some(port)) => ports.contains(&port),
            _ => false,
        })
    }

    fn of(&self, matches: impl Fn(&Selector) -> bool) -> ServiceClass {
        if self.redundant.iter().any(&matches) {
            ServiceClass::Redundant
        } else if self.realtime.iter().any(&matches) {
            ServiceClass::Realtime
        } else {
            ServiceClass::Default
        }
    }
}

/// The differentiated services code point of an IP packet.
fn dscp(packet: &[u8]) -> Option<u8> {
    let class = match IpSlice::from_slice(packet).ok()? {
        IpSlice::Ipv4(v4) => v4.header().dcp().value(),
        IpSlice::Ipv6(v6) => v6.header().traffic_class() >> 2,
    };
    Some(class)
}

/// Six bits.
const MAX_DSCP: u8 = 63;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tun::packet::{Ends, datagram};

    fn selectors(texts: &[&str]) -> Vec<Selector> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_selector_reads_back_and_what_is_none_is_told_what_is() {
        for text in ["udp/3478", "tcp/5000-5009", "dscp/46", "dscp/0", "udp/1-65535"] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "3478",
            "udp",
            "udp/",
            "udp/0",
            "udp/9-8",
            "udp/65536",
            "icmp/1",
            "dscp/64",
            "dscp/ef",
            "tcp/1-",
            "udp/1-2-3",
        ] {
            assert!(wrong.parse::<Selector>().unwrap_err().contains("udp/3478"), "{wrong}");
        }
    }

    #[test]
    fn flows_have_the_class_of_the_selector_that_matches_and_the_stronger_of_two() {
        let classes = Classes::new(
            selectors(&["udp/3478-3480", "dscp/46", "tcp/22"]),
            selectors(&["udp/3480", "tcp/23"]),
        );
        let packet = |target: &str| {
            let source = if target.starts_with('[') { "[fd00::1]:9" } else { "10.0.0.1:9" };
            let ends = Ends { source: source.parse().unwrap(), destination: target.parse().unwrap() };
            datagram(&ends, b"voice").unwrap()
        };
        let cases = [
            ("1.2.3.4:3477", ServiceClass::Default),
            ("1.2.3.4:3478", ServiceClass::Realtime),
            ("[2001:db8::1]:3479", ServiceClass::Realtime),
            ("1.2.3.4:3480", ServiceClass::Redundant),
            ("1.2.3.4:3481", ServiceClass::Default),
            ("1.2.3.4:22", ServiceClass::Default),
        ];
        for (target, class) in cases {
            assert_eq!(classes.of_packet(&packet(target)), class, "{target}");
        }
        // Expedited forwarding (RFC 3246), whatever the port.
        let (mut v4, mut v6) = (packet("1.2.3.4:9"), packet("[2001:db8::1]:9"));
        v4[1] = 46 << 2;
        (v6[0], v6[1]) = (0x60 | (46 << 2) >> 4, (46 << 2 & 0xf) << 4);
        for packet in [v4, v6] {
            assert_eq!(classes.of_packet(&packet), ServiceClass::Realtime);
        }
        assert_eq!(classes.of_packet(b"no packet"), ServiceClass::Default);
        for (target, class) in [
            ("host:22", ServiceClass::Realtime),
            ("[::1]:23", ServiceClass::Redundant),
            ("host", ServiceClass::Default),
        ] {
            assert_eq!(classes.of_target(&target.parse().unwrap()), class);
        }
    }
}
