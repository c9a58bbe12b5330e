//! All traffic of the client's host: a device that takes all packets that no nearer network takes.
//!
//! TCP is not carried within TCP. This host's kernel speaks it with the program, as [`flows`] redirects each connection to
//! a listener here, and its data goes over a stream of its own. A connection is taken up once its target is reached,
//! and refused where it is not. Datagrams go as they are. The device, and with it its routes, ends with the process,
//! however that ends.

pub(crate) mod flows;
pub(crate) mod packet;
mod routes;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use suimon_linux::{LinuxError, Namespace, Route, Tun, TunOptions};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tracing::debug;

use crate::bond::{ClassedPacket, Stream};
use crate::client::Client;
use crate::relay::relay;
use flows::{Flows, Outward};
use packet::{Ends, Packet, Protocol, parse, redirect, refusal};
pub use routes::{Fail, Routes};
use suimon_service::descriptors::accept;

/// A device for all traffic of this host.
#[derive(Debug)]
pub struct Tunnel {
    tun: Tun,
    namespace: Namespace,
    families: Vec<Family>,
    listeners: Vec<std::net::TcpListener>,
}

/// One version of IP on the device.
#[derive(Debug, Clone, Copy)]
struct Family {
    /// This host's address on it, where the listener is.
    own: SocketAddr,
    /// The address that stands for programs, on the other end.
    other: IpAddr,
}

/// The reason that there is no device.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The kernel does not make it.
    #[error(transparent)]
    Device(#[from] LinuxError),
    /// The listener could not start.
    #[error("listening at {address}: {error}")]
    Listen {
        /// The address of the listener.
        address: IpAddr,
        /// The kernel's reason.
        error: io::Error,
    },
}

impl Tunnel {
    /// Makes the device, called `name`, where `%d` stands for a number; nothing goes over it yet.
    ///
    /// # Errors
    /// Where the name or its addresses are taken, or without the right to make devices.
    pub fn open(name: &str) -> Result<Self, TunnelError> {
        let namespace = Namespace::current()?;
        let tun = Tun::open(&namespace, name, TunOptions::default())?;
        let device = tun.name();
        namespace.set_device_limits(device, MTU, QUEUE)?;
        let has_ipv6 =
            (namespace.addresses()?.iter()).any(|(address, _)| *address == IpAddr::V6(Ipv6Addr::LOCALHOST));
        let mut pairs: Vec<(IpAddr, IpAddr, u8)> = vec![(V4.0.into(), V4.1.into(), 30)];
        if has_ipv6 {
            pairs.push((V6.0.into(), V6.1.into(), 126));
        }
        for (own, _, prefix) in &pairs {
            namespace.add_address(device, *own, *prefix)?;
        }
        namespace.set_up(device)?;
        let (mut families, mut listeners) = (Vec::new(), Vec::new());
        for (own, other, _) in pairs {
            let listener = listen(own, device);
            let listener = listener.map_err(|error| TunnelError::Listen { address: own, error })?;
            let address = listener.local_addr();
            let address = address.map_err(|error| TunnelError::Listen { address: own, error })?;
            families.push(Family { own: address, other });
            listeners.push(listener);
        }
        Ok(Self { tun, namespace, families, listeners })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// The routes that send packets that no nearer network takes over the device. Halves of the address space are nearer
    /// than any default route, which stays as it is.
    #[must_use]
    pub fn routes(&self, fail: Fail) -> Routes {
        let halves = |family: &Family| -> [IpAddr; 2] {
            match family.other {
                IpAddr::V4(_) => [Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(128, 0, 0, 0).into()],
                IpAddr::V6(_) => {
                    [Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0).into()]
                }
            }
        };
        let route = |half| Route {
            destination: Some((half, 1)),
            via: None,
            device: self.tun.name().to_owned(),
            table: Route::MAIN,
            local: false,
        };
        let all = self.families.iter().flat_map(halves).map(route).collect();
        Routes { namespace: self.namespace.clone(), all, fail }
    }

    /// Carries packets from the device by `client`, whose `packets` come from the server; for ever.
    ///
    /// # Errors
    /// Where the device is gone.
    pub async fn serve(self, client: Client, packets: mpsc::Receiver<ClassedPacket>) -> io::Result<()> {
        // Not a pipe, but read as one: whole packets, without waiting.
        let reader = pipe::Receiver::from_owned_fd_unchecked(self.tun.as_fd().try_clone_to_owned()?)?;
        let carrier = Arc::new(Carrier {
            tun: self.tun,
            families: self.families,
            client,
            flows: Mutex::new(Flows::new(Instant::now())),
            senders: Mutex::default(),
        });
        for listener in self.listeners {
            tokio::spawn(carrier.clone().accept(TcpListener::from_std(listener)?));
        }
        tokio::spawn(carrier.clone().bring(packets));
        carrier.read(reader).await
    }
}

/// Reached over the device only, and by those alone whom a flow was made for.
fn listen(own: IpAddr, device: &str) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(SocketAddr::new(own, 0)), Type::STREAM, None)?;
    socket.bind_device(Some(device.as_bytes()))?;
    socket.bind(&SocketAddr::new(own, 0).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A protocol, and the address with the port or, of pings, the identifier.
type Sender = (Protocol, SocketAddr);

#[derive(Debug)]
struct Carrier {
    tun: Tun,
    families: Vec<Family>,
    client: Client,
    flows: Mutex<Flows<Stream>>,
    /// Recent senders of datagrams and of pings: answers go to nobody else.
    senders: Mutex<HashMap<Sender, Instant>>,
}

impl Carrier {
    fn flows(&self) -> MutexGuard<'_, Flows<Stream>> {
        self.flows.lock().expect("no one panics while holding it")
    }

    /// Gives this host a packet. One that it has no room for is lost, as on any link.
    fn write(&self, packet: &[u8]) {
        if let Err(error) = self.tun.write(packet) {
            debug!("a packet was not taken: {error}");
        }
    }

    /// Takes the packets that programs send, for ever.
    async fn read(self: Arc<Self>, reader: pipe::Receiver) -> io::Result<()> {
        let mut buffer = vec![0; MTU as usize];
        loop {
            reader.readable().await?;
            match reader.try_read(&mut buffer) {
                Ok(len) => self.on_packet(&mut buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn on_packet(self: &Arc<Self>, bytes: &mut [u8]) {
        let now = Instant::now();
        let (ends, at, first) = match parse(bytes) {
            Some(Packet::Tcp(ends, segment)) => (ends, segment.at, segment.is_first()),
            Some(Packet::Udp(ends, _)) => return self.on_datagram(now, (Protocol::Udp, ends.source), bytes),
            Some(Packet::Echo(ends, echo)) if echo.asks => {
                return self.on_datagram(now, (Protocol::Echo, ends.source), bytes);
            }
            Some(Packet::Echo(..)) | None => return,
        };
        let family = self.families.iter().find(|family| family.other.is_ipv4() == ends.source.is_ipv4());
        let Some(family) = family else { return };
        if ends.source == family.own && ends.destination.ip() == family.other {
            if let Some(flow) = self.flows().inward(now, ends.destination.port()) {
                redirect(bytes, at, &Ends { source: flow.destination, destination: flow.source });
                self.write(bytes);
            }
            return;
        }
        let to_listener =
            |port| Ends { source: SocketAddr::new(family.other, port), destination: family.own };
        let outward = self.flows().outward(now, ends, first);
        match outward {
            Outward::Redirect(port) => {
                redirect(bytes, at, &to_listener(port));
                self.write(bytes);
            }
            Outward::Open(port) => {
                let asked = bytes.to_vec();
                redirect(bytes, at, &to_listener(port));
                tokio::spawn(self.clone().open(port, ends.destination, asked, bytes.to_vec()));
            }
            Outward::Hold => {}
            // The connection is older than the device: its program learns that it is lost.
            Outward::Unknown => self.refuse(bytes),
        }
    }

    fn refuse(&self, bytes: &[u8]) {
        if let Some(Packet::Tcp(ends, segment)) = parse(bytes)
            && let Some(refusal) = refusal(&ends, &segment)
        {
            self.write(&refusal);
        }
    }

    /// Reaches `target`, and only then lets the listener hear of the connection that `asked` for it.
    async fn open(self: Arc<Self>, port: u16, target: SocketAddr, asked: Vec<u8>, redirected: Vec<u8>) {
        let named = target.to_string().parse().expect("an address is visible ASCII");
        match self.client.open(&named).await {
            Ok(stream) => {
                self.flows().opened(port, stream);
                self.write(&redirected);
            }
            Err(reason) => {
                debug!("{target}: {reason}");
                self.flows().refused(port);
                self.refuse(&asked);
            }
        }
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let ticket = self.client.descriptors().wait().await;
            let (tcp, peer) = accept(&listener).await;
            // A program of this host may ask the listener itself; that leads nowhere.
            let known = self.families.iter().any(|family| family.other == peer.ip());
            let stream = if known { self.flows().take(peer.port()) } else { None };
            if let Some(stream) = stream {
                let carrier = self.clone();
                tokio::spawn(async move {
                    relay(tcp, stream).await;
                    drop(ticket);
                    carrier.flows().ended(peer.port());
                });
            }
        }
    }

    fn on_datagram(&self, now: Instant, sender: Sender, packet: &[u8]) {
        let mut senders = self.senders.lock().expect("no one panics while holding it");
        if senders.len() >= MAX_SENDERS {
            senders.retain(|_, seen| now - *seen < SENDER_IDLE);
        }
        if senders.len() < MAX_SENDERS || senders.contains_key(&sender) {
            senders.insert(sender, now);
            drop(senders);
            let _ = self.client.send_packet(packet);
        }
    }

    /// Gives programs the answers to their datagrams and pings.
    async fn bring(self: Arc<Self>, mut packets: mpsc::Receiver<ClassedPacket>) {
        while let Some((_, packet)) = packets.recv().await {
            let sender = match parse(&packet) {
                Some(Packet::Udp(ends, _)) => (Protocol::Udp, ends.destination),
                Some(Packet::Echo(ends, echo)) if !echo.asks => (Protocol::Echo, ends.destination),
                _ => continue,
            };
            if self.senders.lock().expect("no one panics while holding it").contains_key(&sender) {
                self.write(&packet);
            }
        }
    }
}

/// Of the block for measurements between networks (RFC 2544 §C.2.2), which no network has, and of a unique local prefix (RFC
/// 4193): this host's address, and the one that stands for programs.
const V4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2));
const V6: (Ipv6Addr, Ipv6Addr) = (
    Ipv6Addr::new(0xfd73, 0x7569, 0x6d6f, 0xffff, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd73, 0x7569, 0x6d6f, 0xffff, 0, 0, 0, 2),
);
/// As long as packets get: no path has to carry one whole, and few calls move much.
const MTU: u32 = 65_535;
/// Packets that wait for this program. As many as an Ethernet card's.
const QUEUE: u32 = 1_000;
const BACKLOG: i32 = 1_024;
/// Answers to a datagram come for so long at least (RFC 4787 §4.3, REQ-5).
const SENDER_IDLE: Duration = Duration::from_secs(120);
const MAX_SENDERS: usize = 4_096;
