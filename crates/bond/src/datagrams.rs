//! Datagrams of a client, at the server: each of its ports gets a socket here, and answers to the socket go back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::bond::{ClassedPacket, WeakBond};
use crate::descriptors::Share;
use crate::mux::ServiceClass;
use crate::tun::packet::{Ends, Packet, datagram, parse};

/// The socket that stands outside for one port of the client, for one address family.
#[derive(Debug)]
struct Way {
    socket: UdpSocket,
    /// When a packet went out by it last, and its class: answers have the same.
    used: Mutex<(Instant, ServiceClass)>,
}

/// Sends the datagrams in `packets` from sockets of this host, and answers to `bond`, until that ends.
pub(crate) async fn carry(bond: WeakBond, mut packets: mpsc::Receiver<ClassedPacket>, descriptors: Share) {
    let mut ways: HashMap<(SocketAddr, bool), Arc<Way>> = HashMap::new();
    let mut answers = JoinSet::new();
    while let Some((class, packet)) = packets.recv().await {
        while let Some(idle) = answers.try_join_next() {
            if let Ok(key) = idle {
                ways.remove(&key);
            }
        }
        let Some(Packet::Udp(ends, bytes)) = parse(&packet) else { continue };
        let key = (ends.source, ends.destination.is_ipv4());
        let way = match ways.get(&key) {
            Some(way) => way.clone(),
            None if ways.len() >= MAX_WAYS => continue,
            None => {
                let Some(ticket) = descriptors.take() else { continue };
                let Ok(way) = open(ends.destination.is_ipv4()).await.map(Arc::new) else { continue };
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
        // A datagram that cannot be sent now is lost, as datagrams are.
        let _ = way.socket.try_send_to(bytes, ends.destination);
    }
}

impl Way {
    fn used(&self) -> MutexGuard<'_, (Instant, ServiceClass)> {
        self.used.lock().expect("no one panics while holding it")
    }
}

async fn open(v4: bool) -> io::Result<Way> {
    let any: SocketAddr =
        if v4 { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any).await?;
    // `try_send_to` needs a socket that is known to be writable.
    socket.writable().await?;
    Ok(Way { socket, used: Mutex::new((Instant::now(), ServiceClass::Default)) })
}

thread_local! {
    /// One buffer for all ways of a thread: a way that waits holds no memory.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; MAX_DATAGRAM]);
}

/// Until nothing was sent for a while.
async fn answer(bond: &WeakBond, way: &Way, to: SocketAddr) {
    loop {
        let until = way.used().0 + IDLE;
        match timeout_at(until, way.socket.readable()).await {
            Ok(_) => {
                let packet = SCRATCH.with_borrow_mut(|buffer| {
                    // On an error, an ICMP message has come about an earlier datagram; the next may do better.
                    let (len, from) = way.socket.try_recv_from(buffer).ok()?;
                    datagram(&Ends { source: from, destination: to }, &buffer[..len])
                });
                let Some(bond) = bond.upgrade() else { return };
                let class = way.used().1;
                packet.map(|packet| bond.send_packet(class, &packet));
            }
            Err(_) if way.used().0 + IDLE <= Instant::now() => return,
            Err(_) => {}
        }
    }
}

/// Ports of a client at a time.
const MAX_WAYS: usize = 1_024;
/// A way is kept so long after something went out by it (RFC 4787 §4.3, REQ-5: 2 min at least).
const IDLE: Duration = Duration::from_secs(120);
/// No datagram is longer.
const MAX_DATAGRAM: usize = 65_535;
