//! Datagrams and pings of a client, at the server: each of its ports gets a socket here, and answers to the socket go back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::bond::{ClassedPacket, WeakBond};
use crate::descriptors::Share;
use crate::mux::ServiceClass;
use crate::tun::packet::{Ends, Packet, Protocol, datagram, echo, echo_reply, echo_request, parse};

/// The socket that stands outside for one port of the client, or for the identifier of its pings, for one address family.
#[derive(Debug)]
struct Way {
    protocol: Protocol,
    socket: UdpSocket,
    /// When a packet went out by it last, and its class: answers have the same.
    used: Mutex<(Instant, ServiceClass)>,
}

/// Sends the datagrams and pings in `packets` from sockets of this host, and answers to `bond`, until that ends.
pub(crate) async fn carry(bond: WeakBond, mut packets: mpsc::Receiver<ClassedPacket>, descriptors: Share) {
    let mut ways: HashMap<(SocketAddr, Protocol, bool), Arc<Way>> = HashMap::new();
    let mut answers = JoinSet::new();
    while let Some((class, packet)) = packets.recv().await {
        while let Some(idle) = answers.try_join_next() {
            if let Ok(key) = idle {
                ways.remove(&key);
            }
        }
        let Some(packet) = parse(&packet) else { continue };
        let (protocol, ends) = match &packet {
            Packet::Udp(ends, _) => (Protocol::Udp, *ends),
            Packet::Echo(ends, echo) if echo.asks => (Protocol::Echo, *ends),
            Packet::Echo(..) | Packet::Tcp(..) => continue,
        };
        let is_v4 = ends.destination.is_ipv4();
        let key = (ends.source, protocol, is_v4);
        let way = match ways.get(&key) {
            Some(way) => way.clone(),
            None if ways.len() >= MAX_WAYS => continue,
            None => {
                let Some(ticket) = descriptors.take() else { continue };
                let Ok(way) = open(protocol, is_v4).await.map(Arc::new) else { continue };
                ways.insert(key, way.clone());
                let (bond, answering) = (bond.clone(), way.clone());
                answers.spawn(async move {
                    answer(&bond, &answering, ends.source).await;
                    drop(ticket);
                    key
                });
                way
            }
        };
        *way.used() = (Instant::now(), class);
        way.send(&packet);
    }
}

impl Way {
    fn used(&self) -> MutexGuard<'_, (Instant, ServiceClass)> {
        self.used.lock().expect("no one panics while holding it")
    }

    /// What cannot be sent now is lost, as datagrams are.
    fn send(&self, packet: &Packet<'_>) {
        let _ = match packet {
            Packet::Udp(ends, bytes) => self.socket.try_send_to(bytes, ends.destination),
            Packet::Echo(ends, echo) => {
                let message = echo_request(echo, ends.destination.is_ipv4());
                self.socket.try_send_to(&message, ends.destination)
            }
            Packet::Tcp(..) => return,
        };
    }

    /// When the way ends, unless something goes out by it before.
    fn ends_at(&self) -> Instant {
        let idle = match self.protocol {
            Protocol::Udp => UDP_IDLE,
            Protocol::Echo => ECHO_IDLE,
        };
        self.used().0 + idle
    }

    /// The packet that brings `client` an answer.
    fn answer(&self, bytes: &[u8], from: SocketAddr, client: SocketAddr) -> Option<Vec<u8>> {
        let ends = Ends { source: from, destination: client };
        match self.protocol {
            Protocol::Udp => datagram(&ends, bytes),
            Protocol::Echo => {
                let reply = echo(bytes, from.is_ipv4()).filter(|echo| !echo.asks)?;
                echo_reply(&ends, reply.sequence, reply.data)
            }
        }
    }
}

async fn open(protocol: Protocol, is_v4: bool) -> io::Result<Way> {
    let socket = match protocol {
        Protocol::Udp if is_v4 => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?,
        Protocol::Udp => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await?,
        Protocol::Echo => ping_socket(is_v4).inspect_err(|error| {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                warn!(
                    "clients cannot ping: {error}; net.ipv4.ping_group_range has to have this program's group"
                );
            });
        })?,
    };
    // `try_send_to` needs a socket that is known to be writable.
    socket.writable().await?;
    Ok(Way { protocol, socket, used: Mutex::new((Instant::now(), ServiceClass::Default)) })
}

/// A socket for pings alone (`icmp(7)`), which needs no root where the user's group may have it.
fn ping_socket(is_v4: bool) -> io::Result<UdpSocket> {
    let (domain, protocol) = if is_v4 {
        (Domain::IPV4, socket2::Protocol::ICMPV4)
    } else {
        (Domain::IPV6, socket2::Protocol::ICMPV6)
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    // The standard library has no type for it; it sends and receives as this one does.
    UdpSocket::from_std(OwnedFd::from(socket).into())
}

thread_local! {
    /// One buffer for all ways of a thread: a way that waits holds no memory.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_DATAGRAM]);
}

/// Until nothing was sent for a while.
async fn answer(bond: &WeakBond, way: &Way, to: SocketAddr) {
    loop {
        match timeout_at(way.ends_at(), way.socket.readable()).await {
            Ok(_) => {
                let packet = SCRATCH.with_borrow_mut(|buffer| {
                    // On an error, an ICMP message has come about an earlier datagram; the next may do better.
                    let (len, from) = way.socket.try_recv_from(buffer).ok()?;
                    way.answer(&buffer[..len], from, to)
                });
                let Some(bond) = bond.upgrade() else { return };
                let class = way.used().1;
                packet.map(|packet| bond.send_packet(class, &packet));
            }
            Err(_) if way.ends_at() <= Instant::now() => return,
            Err(_) => {}
        }
    }
}

/// Ports of a client at a time.
const MAX_WAYS: usize = 1_024;
/// A way is kept so long after something went out by it (RFC 4787 §4.3, REQ-5: 2 min at least).
const UDP_IDLE: Duration = Duration::from_secs(120);
/// The same of pings (RFC 5508 §3.2, REQ-2: 1 min at least).
const ECHO_IDLE: Duration = Duration::from_secs(60);
/// No datagram is longer.
const MAX_DATAGRAM: usize = 65_535;
