//! Which packets of a capture are studied.

use std::net::{IpAddr, SocketAddr};

use suimon_capture::Endpoints;

use super::Estimation;
use crate::comparison::{FromText, Parsed};

/// An address, or all that start with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

const ACCEPTED: &str = "an IPv4 or IPv6 address, or a network such as 10.1.0.0/16";

impl FromText for Network {
    fn from_text(text: &str) -> Result<Self, String> {
        let refuse = || format!("\"{text}\" is no address; accepted: {ACCEPTED}");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), |length| length.parse().map_err(|_| refuse()))?;
        if length > longest { Err(refuse()) } else { Ok(Self { address, length }) }
    }
}

impl Network {
    fn contains(&self, socket: SocketAddr) -> bool {
        let shared = |a: u128, b: u128, bits: u32| {
            let differing = (a ^ b) << (128 - bits);
            differing.leading_zeros() >= u32::from(self.length).min(bits)
        };
        match (self.address, socket.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => shared(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => shared(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl Estimation {
    /// Whether the connection is studied, in whichever direction.
    pub(super) fn has_connection(&self, endpoints: Endpoints) -> bool {
        let ends = [endpoints.source, endpoints.destination];
        let port = self.port.is_empty() || ends.iter().any(|end| self.port.contains(&end.port()));
        let host = self.host.is_empty()
            || ends.iter().any(|end| self.host.iter().any(|network| network.contains(*end)));
        port && host
    }

    /// Whether this direction of a connection is studied.
    pub(super) fn has_direction(&self, endpoints: Endpoints) -> bool {
        let any = |networks: &[Parsed<Network>], end| {
            networks.is_empty() || networks.iter().any(|network| network.contains(end))
        };
        any(&self.from, endpoints.source) && any(&self.to, endpoints.destination)
    }
}

#[cfg(test)]
mod tests {
    use suimon_capture::Transport;

    use super::*;

    fn network(text: &str) -> Network {
        Network::from_text(text).unwrap()
    }

    #[test]
    fn a_network_holds_what_shares_its_first_bits() {
        for (text, address, inside) in [
            ("10.1.0.0/16", "10.1.255.3:1", true),
            ("10.1.0.0/16", "10.2.0.0:1", false),
            ("10.1.0.7", "10.1.0.7:1", true),
            ("10.1.0.7", "10.1.0.6:1", false),
            ("0.0.0.0/0", "255.0.0.1:1", true),
            ("0.0.0.0/0", "[::1]:1", false),
            ("fd00:1::/32", "[fd00:1::9]:1", true),
            ("fd00:1::/33", "[fd00:1:8000::9]:1", false),
            ("::/0", "[fd00::1]:1", true),
        ] {
            assert_eq!(network(text).contains(address.parse().unwrap()), inside, "{text} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused_by_name() {
        for text in ["", "example.org", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.1:80"] {
            let message = Network::from_text(text).unwrap_err();
            assert!(message.contains(text) && message.contains("accepted: an IPv4"), "{message}");
        }
    }

    #[test]
    fn ports_and_hosts_take_either_end_and_directions_only_one() {
        let there = Endpoints {
            transport: Transport::Tcp,
            source: "10.0.0.1:5000".parse().unwrap(),
            destination: "10.0.0.2:80".parse().unwrap(),
        };
        let by_port = Estimation { port: vec![80], ..Estimation::default() };
        assert!(by_port.has_connection(there) && by_port.has_connection(there.reversed()));
        let by_host = Estimation { host: vec!["10.0.0.3".parse().unwrap()], ..Estimation::default() };
        assert!(!by_host.has_connection(there));
        let from = Estimation { from: vec!["10.0.0.1".parse().unwrap()], ..Estimation::default() };
        assert!(from.has_direction(there) && !from.has_direction(there.reversed()));
        let to = Estimation { to: vec!["10.0.0.1".parse().unwrap()], ..from };
        assert!(!to.has_direction(there));
    }
}
