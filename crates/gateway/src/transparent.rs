//! Connections that are routed through this host, split with the addresses of both ends kept.
//!
//! The server is asked first. The client's SYN is held back in a queue until the server has answered: where it takes the
//! connection, the SYN goes on to a listener here (TPROXY); where it refuses or cannot be reached, the client hears just
//! that. What is over a limit, and all there is once this process is gone, is routed as if there were no gateway.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use suimon_linux::LinuxError;
use suimon_linux::netfilter::{AsText, Chain, Held, HoldBy, Hook, Queue, Refusal, Rule, Table, Verdict};
use suimon_service::descriptors::{accept, reset_on_close};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::time::sleep;
use tracing::{debug, error};

use crate::gateway::{Gateway, Place};
use crate::sides::{Side, set_dscp};
use crate::syn::Syn;

/// The devices between which connections are split, and what is not.
#[derive(Debug, Clone)]
pub struct Devices {
    /// Toward the clients.
    pub radio: String,
    /// Toward the servers.
    pub lan: String,
    /// Connections to these ports pass unsplit.
    pub except: Vec<u16>,
}

/// Listeners that rules lead connections to: those of the radio's side, then those of the servers'.
#[derive(Debug)]
pub struct Listeners([Vec<TcpListener>; 2]);

impl Listeners {
    /// Listens at ports of the loopback address that the kernel chooses. Those who take connections of others need root.
    ///
    /// # Errors
    /// Where the kernel refuses it.
    pub fn bind(gateway: &Gateway, take_others: bool) -> io::Result<Self> {
        let sides = gateway.sides();
        let of = |side: &Side| -> io::Result<Vec<TcpListener>> {
            let mut listeners = vec![side.listen_for_others((Ipv4Addr::LOCALHOST, 0).into(), take_others)?];
            match side.listen_for_others((Ipv6Addr::LOCALHOST, 0).into(), take_others) {
                Ok(listener) => listeners.push(listener),
                // A host without IPv6 has nothing to split of it.
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(error) if error.raw_os_error() == Some(NO_IPV6) => {}
                Err(error) => return Err(error),
            }
            Ok(listeners)
        };
        Ok(Self([of(&sides.radio)?, of(&sides.lan)?]))
    }
}

/// EAFNOSUPPORT.
const NO_IPV6: i32 = 97;

/// The mark of packets for sockets here; those of a SYN whose server has refused, and cannot be reached.
pub(crate) const MARK: u32 = 0x5350_0001;
const REFUSED: u32 = 0x5350_0002;
/// The mark of what this host sends to clients that it has taken.
const NEAR: u32 = 0x5350_0004;
const UNREACHABLE: u32 = 0x5350_0003;
/// The routing table that takes marked packets for this host's own.
pub(crate) const ROUTES: u32 = 21_328;
const TABLE: &str = "suimon_gateway";
const QUEUE: u16 = 21_328;
const HOLD: &str = "hold";

impl Devices {
    /// The chains. The first sees packets before connections are tracked, so that a SYN that is held is not known yet
    /// when the server is asked under the same addresses; the second sees them after addresses are translated, so that
    /// a server's answer has its client's address.
    fn chains(&self, listeners: &Listeners, by: HoldBy) -> io::Result<Vec<Chain>> {
        let tcp = || Rule::new().tcp();
        let mut hold = vec![
            // The list of connections has the one toward the server under the same addresses.
            tcp().marked(MARK).untracked().accept(),
            tcp().from_device(&self.radio).of_transparent_socket().untracked().accept(),
            tcp().marked(REFUSED).reject(Refusal::Reset),
            tcp().marked(UNREACHABLE).reject(Refusal::HostUnreachable),
        ];
        hold.extend(self.except.iter().map(|port| tcp().to_port(*port).accept()));
        for (from, to) in [(&self.radio, &self.lan), (&self.lan, &self.radio)] {
            hold.push(tcp().from_device(from).begins().routed_to(to).hold(QUEUE, by));
        }
        // Errors too: a path's largest packet, a host that cannot be reached.
        let of_sockets = [tcp(), Rule::new().icmp(true), Rule::new().icmp(false)];
        let mut take: Vec<_> =
            of_sockets.into_iter().map(|rule| rule.of_transparent_socket().mark(MARK).accept()).collect();
        for (device, listeners) in [&self.radio, &self.lan].into_iter().zip(&listeners.0) {
            for listener in listeners {
                let address = listener.local_addr()?;
                take.push(tcp().from_device(device).marked(MARK).to_listener(address).accept());
            }
        }
        Ok(vec![
            Chain { name: HOLD, hook: Hook::Prerouting, priority: -300, rules: hold },
            Chain { name: "take", hook: Hook::Prerouting, priority: -90, rules: take },
            Chain {
                name: "answer",
                hook: Hook::Output,
                priority: -300,
                rules: vec![tcp().marked(NEAR).untracked()],
            },
        ])
    }
}

/// What [`Transparent::new`] would set, as the commands that would do it.
///
/// # Errors
/// Where a listener has no address.
pub fn describe(devices: &Devices, listeners: &Listeners) -> io::Result<String> {
    let chains = devices.chains(listeners, HoldBy::Statement)?;
    let mut text = AsText(TABLE, &chains).to_string();
    for (family, all) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
        text += &format!("ip {family} rule add fwmark {MARK:#x} lookup {ROUTES}\n");
        text += &format!("ip {family} route add local {all} dev lo table {ROUTES}\n");
    }
    Ok(text)
}

/// Rules that lead connections here while this is there.
#[derive(Debug)]
pub struct Transparent {
    table: Table,
}

#[derive(Debug)]
enum Pending {
    /// The server is asked.
    Asked,
    /// The server has taken the connection, and the client is to be taken.
    Taken(u64, u8, Place, TcpStream),
}

/// Connections whose clients are not here yet, by client and server.
#[derive(Debug, Clone)]
struct Waiting {
    gateway: Gateway,
    queue: Queue,
    /// The number of the radio's device.
    radio: u32,
    pending: Arc<Mutex<HashMap<(SocketAddr, SocketAddr), Pending>>>,
}

impl Transparent {
    /// Splits connections from now on, in the calling thread's namespace and on its runtime. Marked packets must be
    /// routed to this host already, as [`crate::keep_routes`] does it.
    ///
    /// # Errors
    /// Without root's rights, or where the kernel lacks a kind of rule.
    ///
    /// # Panics
    /// Where the calling thread has no runtime.
    pub fn new(
        gateway: &Gateway,
        devices: &Devices,
        listeners: Listeners,
        radio: u32,
    ) -> Result<Self, LinuxError> {
        let make = |by| {
            let chains = devices.chains(&listeners, by);
            let chains = chains.map_err(|error| LinuxError::new("reading a listener's address", error))?;
            Table::new(TABLE, &chains)
        };
        // While nobody serves the queue, packets go on.
        let table = match make(HoldBy::Statement) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(HoldBy::Target)?,
            made => made?,
        };
        let queue = Queue::bind(QUEUE, QUEUED, COPIED)?;
        let waiting = Waiting { gateway: gateway.clone(), queue, radio, pending: Arc::default() };
        for (from_radio, listeners) in [true, false].into_iter().zip(listeners.0) {
            for listener in listeners {
                tokio::spawn(waiting.clone().take(listener, from_radio));
            }
        }
        let (runtime, server) = (Handle::current(), waiting);
        std::thread::spawn(move || server.serve(&runtime));
        Ok(Self { table })
    }

    /// Lets new connections pass unsplit from now on; those that are split go on.
    ///
    /// # Errors
    /// Where the rules are gone.
    pub fn stop(&self) -> Result<(), LinuxError> {
        self.table.clear(HOLD)
    }
}

impl Waiting {
    fn pending(&self) -> MutexGuard<'_, HashMap<(SocketAddr, SocketAddr), Pending>> {
        self.pending.lock().expect("no one panics while holding it")
    }

    /// Decides on packets that are held back, for ever.
    fn serve(&self, runtime: &Handle) {
        let mut number = 0;
        loop {
            let packets = match self.queue.wait() {
                Ok(packets) => packets,
                Err(problem) => {
                    error!("no packets from the queue: {problem}");
                    return;
                }
            };
            for held in packets {
                number += 1;
                if let Some(verdict) = self.judge(&held, number, runtime) {
                    self.decide(&held, verdict);
                }
            }
        }
    }

    fn decide(&self, held: &Held, verdict: Verdict) {
        if let Err(problem) = self.queue.decide(held, verdict) {
            error!("a packet is held for ever: {problem}");
        }
    }

    /// The verdict on a SYN; none where the server is asked first.
    fn judge(&self, held: &Held, number: u64, runtime: &Handle) -> Option<Verdict> {
        let Some(syn) = Syn::parse(&held.packet) else { return Some(Verdict::Accept) };
        let mut pending = self.pending();
        match pending.get(&(syn.from, syn.to)) {
            // Sent again meanwhile; the first is still held.
            Some(Pending::Asked) => return Some(Verdict::Drop),
            Some(Pending::Taken(..)) => return Some(Verdict::Again(MARK)),
            None => {}
        }
        let from_radio = held.input == self.radio;
        let client = if from_radio { syn.from } else { syn.to };
        let Some(place) = self.gateway.enter(client.ip()) else { return Some(Verdict::Accept) };
        pending.insert((syn.from, syn.to), Pending::Asked);
        drop(pending);
        runtime.spawn(self.clone().ask(held.clone(), syn, from_radio, place, number));
        None
    }

    /// Asks the server, and decides on the client's SYN as it answers.
    async fn ask(self, held: Held, syn: Syn, from_radio: bool, place: Place, number: u64) {
        let sides = self.gateway.sides();
        let side = if from_radio { &sides.lan } else { &sides.radio };
        let key = (syn.from, syn.to);
        match side.connect_as(syn).await {
            Ok(stream) => {
                let _ = reset_on_close(&stream, true);
                self.pending().insert(key, Pending::Taken(number, syn.dscp, place, stream));
                self.decide(&held, Verdict::Again(MARK));
                sleep(HANDSHAKE_TIMEOUT).await;
                let mut pending = self.pending();
                if matches!(pending.get(&key), Some(Pending::Taken(own, ..)) if *own == number) {
                    pending.remove(&key);
                }
            }
            Err(error) => {
                debug!("{} to {}: {error}", syn.from, syn.to);
                self.pending().remove(&key);
                let verdict = match error.kind() {
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
                        Verdict::Again(REFUSED)
                    }
                    io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                        Verdict::Again(UNREACHABLE)
                    }
                    io::ErrorKind::TimedOut => Verdict::Drop,
                    // What this host cannot do, the ends may do by themselves.
                    _ => Verdict::Accept,
                };
                if verdict != Verdict::Accept {
                    self.gateway.totals().failed.fetch_add(1, Ordering::Relaxed);
                }
                self.decide(&held, verdict);
            }
        }
    }

    /// Takes clients whose servers wait for them, for ever.
    async fn take(self, listener: TcpListener, from_radio: bool) {
        loop {
            let (near, from) = accept(&listener).await;
            let _ = reset_on_close(&near, true);
            let Ok(to) = near.local_addr() else { continue };
            let Some(Pending::Taken(_, dscp, place, far)) = self.pending().remove(&(from, to)) else {
                continue;
            };
            let _ = set_dscp(&near, from, dscp);
            let gateway = self.gateway.clone();
            tokio::spawn(async move {
                let (radio, lan) =
                    if from_radio { ((from, near), (to, far)) } else { ((to, far), (from, near)) };
                if let Err(error) = gateway.carry(place, radio, lan).await {
                    debug!("{from} to {to}: {error}");
                }
            });
        }
    }
}

impl Side {
    fn listen_for_others(&self, address: SocketAddr, take_others: bool) -> io::Result<TcpListener> {
        let socket = self.socket(address)?;
        if take_others {
            socket.set_mark(NEAR)?;
            let is_ipv4 = address.is_ipv4();
            if is_ipv4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }?;
        }
        self.listen_on(socket, address)
    }
}

/// SYNs that may wait for a server's answer; beyond that they pass unsplit.
const QUEUED: u32 = 4_096;
/// The headers of a SYN: of IPv6 and of TCP.
const COPIED: u32 = 128;
/// A client that does not answer the SYN-ACK by then is given up, and its server's connection with it.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
