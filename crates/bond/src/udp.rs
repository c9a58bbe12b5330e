//! A UDP socket and the QUIC connections over it.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    HashedConnectionIdGenerator, Incoming, ServerConfig,
};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use ring::hmac;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::debug;

use crate::connection::invalid;
use crate::keys::ResetSecret;

/// A socket, which the connections over it share.
pub(crate) struct QuicSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    routes: Mutex<Routes>,
    /// Of a server, for each connection.
    pub(crate) server: Option<ServerConfig>,
}

/// The state machine that tells to which connection a datagram belongs, and the connections.
pub(crate) struct Routes {
    pub(crate) endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, mpsc::Sender<ConnectionEvent>>,
}

impl Routes {
    /// Datagrams for the connection `handle` go to the receiver from now on.
    pub(crate) fn add(&mut self, handle: ConnectionHandle) -> mpsc::Receiver<ConnectionEvent> {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.connections.insert(handle, sender);
        receiver
    }

    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        self.connections.remove(&handle);
    }
}

impl QuicSocket {
    /// A socket for connections of this end's making.
    pub(crate) fn of_client(socket: StdSocket) -> io::Result<Arc<Self>> {
        Self::new(socket, EndpointConfig::default(), None)
    }

    /// A socket at which others knock. A server that was restarted has the same `secret`, by which it proves to clients that
    /// their connections are gone.
    pub(crate) fn of_server(
        socket: StdSocket,
        tls: Arc<rustls::ServerConfig>,
        secret: &ResetSecret,
    ) -> io::Result<Arc<Self>> {
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &secret.token)));
        let identifiers = secret.identifiers;
        config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(identifiers)));
        let crypto = QuicServerConfig::try_from(tls)
            .map_err(|error: NoInitialCipherSuite| io::Error::other(error.to_string()))?;
        Self::new(socket, config, Some(ServerConfig::with_crypto(Arc::new(crypto))))
    }

    fn new(socket: StdSocket, config: EndpointConfig, server: Option<ServerConfig>) -> io::Result<Arc<Self>> {
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let shared = server.clone().map(Arc::new);
        let endpoint = Endpoint::new(Arc::new(config), shared, !state.may_fragment(), None);
        Ok(Arc::new(Self {
            socket: UdpSocket::from_std(socket)?,
            state,
            routes: Mutex::new(Routes { endpoint, connections: HashMap::new() }),
            server,
        }))
    }

    pub(crate) fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().expect("no one panics while holding it")
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that the kernel takes at once.
    pub(crate) fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Gives the kernel a datagram, or several; those that it cannot send at all are lost, as datagrams are.
    ///
    /// # Errors
    /// `WouldBlock` where it has no room now, and `ConnectionRefused` where the other end's port is closed.
    pub(crate) fn send(&self, transmit: &quinn_proto::Transmit, bytes: &[u8]) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &bytes[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        let sent = self
            .socket
            .try_io(Interest::WRITABLE, || self.state.try_send(UdpSockRef::from(&self.socket), &transmit));
        match sent {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) =>
            {
                Err(error)
            }
            // A probe of the path's size that is too long for the interface, or no route at the moment.
            Err(error) => {
                debug!("to {}: {error}", transmit.destination);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Takes in what comes, for ever: `knock` gets whoever wants a connection and has shown that it gets what is sent to its
    /// address. Nothing is kept of others: each gets a token, with which it comes again (RFC 9000 §8.1.2).
    ///
    /// # Errors
    /// Of a client, when the server's port is closed; the connection ends.
    pub(crate) async fn receive(&self, mut knock: impl FnMut(Incoming)) -> io::Result<()> {
        let mut buffers: Vec<_> = (0..BATCH).map(|_| vec![0; MAX_RECEIVED]).collect();
        let mut answer = Vec::new();
        loop {
            self.socket.readable().await?;
            let mut metas = [RecvMeta::default(); BATCH];
            let received = self.socket.try_io(Interest::READABLE, || {
                let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
                self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas)
            });
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && self.server.is_none() => {
                    self.routes().connections.clear();
                    return Err(error);
                }
                // Of another socket's making, such as an ICMP message about an earlier datagram.
                Err(_) => continue,
            };
            for (meta, buffer) in metas[..count].iter().zip(&buffers) {
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    answer.clear();
                    self.on_datagram(meta, datagram, &mut answer, &mut knock);
                }
            }
        }
    }

    fn on_datagram(
        &self,
        meta: &RecvMeta,
        datagram: &[u8],
        answer: &mut Vec<u8>,
        knock: &mut impl FnMut(Incoming),
    ) {
        let mut routes = self.routes();
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let event =
            routes.endpoint.handle(Instant::now(), meta.addr, meta.dst_ip, ecn, datagram.into(), answer);
        let transmit = match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                // One that is behind loses datagrams, as one whose socket is full does.
                routes.connections.get(&handle).map(|connection| connection.try_send(event));
                return;
            }
            Some(DatagramEvent::NewConnection(incoming)) if incoming.remote_address_validated() => {
                drop(routes);
                return knock(incoming);
            }
            Some(DatagramEvent::NewConnection(incoming)) => match routes.endpoint.retry(incoming, answer) {
                Ok(transmit) => transmit,
                Err(refused) => return routes.endpoint.ignore(refused.into_incoming()),
            },
            Some(DatagramEvent::Response(transmit)) => transmit,
            None => return,
        };
        drop(routes);
        // What cannot be sent now is lost, and asked for again.
        let _ = self.send(&transmit, answer);
    }

    /// The configuration of a server's next connection.
    ///
    /// # Errors
    /// Where the socket is a client's.
    pub(crate) fn server_config(&self) -> io::Result<ServerConfig> {
        self.server.clone().ok_or_else(|| invalid("no server"))
    }
}

/// Datagrams that wait for a connection.
const WAITING: usize = 4_096;
/// Reads of the socket at once.
const BATCH: usize = 8;
/// What the kernel joins to one, at most.
const MAX_RECEIVED: usize = 65_535;
