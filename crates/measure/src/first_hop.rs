//! The first hop beside the far one: round trips to the gateway tell a busy Wi-Fi from a busy access line.
//!
//! Pings go over Linux' ping sockets (`icmp(7)`), which need no root where `net.ipv4.ping_group_range` lets the user's group
//! have them, as most distributions do.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::Clock;

/// What was seen of the first hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The gateway.
    pub address: Ipv4Addr,
    /// When each ping was sent and when it came back, in microseconds of the client's clock.
    pub pings: Vec<(u64, Option<u64>)>,
}

/// Pings under way; dropped, they end.
#[derive(Debug)]
pub(crate) struct Pinger {
    hop: Arc<Mutex<Hop>>,
    is_over: Arc<AtomicBool>,
}

/// Between one ping and the next.
const PACE: Duration = Duration::from_millis(100);
/// The most pings: those of two minutes.
const MAX_PINGS: usize = 1_200;
/// How soon the receiver notices that it is to end.
const PATIENCE: Duration = Duration::from_millis(200);
/// The head of an echo request (RFC 792): type 8, code 0, and room for checksum, identifier and number, of which the kernel fills the first
/// two.
const REQUEST: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0];
const REPLY: u8 = 0;
/// Where Linux tells its routes.
const ROUTES: &str = "/proc/net/route";

impl Pinger {
    /// Begins to ping the gateway on the way to `server`; nothing where there is none, where it is the server, or where no ping may
    /// be sent.
    pub(crate) fn new(server: IpAddr, clock: Clock) -> Option<Self> {
        let gateway = gateway(&std::fs::read_to_string(ROUTES).ok()?, server.to_canonical())?;
        if server.to_canonical() == IpAddr::V4(gateway) {
            return None;
        }
        Self::to(gateway, clock).ok()
    }

    fn to(gateway: Ipv4Addr, clock: Clock) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
        socket.connect(&SocketAddr::new(gateway.into(), 0).into())?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // The standard library has no type for it; it sends and receives as this one does.
        let socket = Arc::new(UdpSocket::from(std::os::fd::OwnedFd::from(socket)));
        let hop = Arc::new(Mutex::new(Hop { address: gateway, pings: Vec::new() }));
        let pinger = Self { hop, is_over: Arc::default() };
        let (hop, is_over, sending) =
            (Arc::clone(&pinger.hop), Arc::clone(&pinger.is_over), Arc::clone(&socket));
        thread::Builder::new()
            .name("pings".to_owned())
            .spawn(move || send(&sending, clock, &hop, &is_over))?;
        let (hop, is_over) = (Arc::clone(&pinger.hop), Arc::clone(&pinger.is_over));
        thread::Builder::new()
            .name("pongs".to_owned())
            .spawn(move || receive(&socket, clock, &hop, &is_over))?;
        Ok(pinger)
    }

    /// What was seen so far.
    pub(crate) fn hop(&self) -> Hop {
        self.hop.lock().expect("no one panics while holding it").clone()
    }
}

impl Drop for Pinger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn send(socket: &UdpSocket, clock: Clock, hop: &Mutex<Hop>, is_over: &AtomicBool) {
    let mut next = Instant::now();
    for number in 0..MAX_PINGS {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut request = REQUEST;
        request[6..].copy_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
        hop.lock().expect("no one panics while holding it").pings.push((clock.now_us(), None));
        // A ping that this host cannot send is one that gets lost.
        let _ = socket.send(&request);
        next += PACE;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn receive(socket: &UdpSocket, clock: Clock, hop: &Mutex<Hop>, is_over: &AtomicBool) {
    let mut bytes = [0; 64];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut bytes) else { continue };
        let now = clock.now_us();
        if length < REQUEST.len() || bytes[0] != REPLY {
            continue;
        }
        let number = usize::from(u16::from_be_bytes([bytes[6], bytes[7]]));
        if let Some((_, back)) = hop.lock().expect("no one panics while holding it").pings.get_mut(number) {
            back.get_or_insert(now);
        }
    }
}

/// The gateway of the longest prefix that `server` is in, or the default one for an address of IPv6, which shares the first hop;
/// none where the route has no gateway. `routes` is what Linux tells in `/proc/net/route`.
fn gateway(routes: &str, server: IpAddr) -> Option<Ipv4Addr> {
    let server = match server {
        IpAddr::V4(server) => u32::from(server),
        IpAddr::V6(_) => 0,
    };
    let route = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(columns.get(at)?, 16).ok();
        // Addresses are in the order of the network, read as numbers of this host.
        let address = |at: usize| number(at).map(u32::from_be);
        let (network, gateway, mask) = (address(1)?, address(2)?, address(7)?);
        let metric = columns.get(6)?.parse::<u32>().ok()?;
        // RTF_UP of include/uapi/linux/route.h.
        let is_up = number(3)? & 1 == 1;
        (is_up && server & mask == network).then_some((mask, std::cmp::Reverse(metric), gateway))
    };
    let (_, _, gateway) = routes.lines().skip(1).filter_map(route).max()?;
    (gateway != 0).then(|| Ipv4Addr::from(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_gateway_is_that_of_the_longest_prefix() {
        let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                      wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                      eth0\t00000000\tFE01A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                      tun0\t0000000A\t0100080A\t0003\t0\t0\t50\t000000FF\t0\t0\t0\n\
                      broken\n";
        for (server, found) in [
            ("203.0.113.7", Some("192.168.1.254")),
            ("2001:db8::1", Some("192.168.1.254")),
            ("192.168.1.9", None),
            ("10.9.9.9", Some("10.8.0.1")),
        ] {
            let found = found.map(|text| text.parse().unwrap());
            assert_eq!(gateway(routes, server.parse().unwrap()), found, "{server}");
        }
        assert_eq!(gateway("", "10.0.0.1".parse().unwrap()), None);
    }

    #[test]
    fn pings_come_back() {
        let pinger = match Pinger::to(Ipv4Addr::LOCALHOST, Clock::new()) {
            Ok(pinger) => pinger,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        thread::sleep(Duration::from_millis(420));
        let hop = pinger.hop();
        assert!(hop.pings.len() >= 3, "{hop:?}");
        assert!(
            hop.pings.iter().filter(|(sent, back)| back.is_some_and(|back| back >= *sent)).count() >= 2,
            "{hop:?}"
        );
    }
}
