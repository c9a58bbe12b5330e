//! A UDP socket and the QUIC connections over it.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicServerConfig};
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig,
    HashedConnectionIdGenerator, Incoming, ServerConfig, Transmit,
};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use ring::hmac;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tracing::debug;

use crate::connection::invalid;
use crate::keys::{AuthorizedKeys, KeyError, PrivateKey, ResetSecret, server_config};

/// A socket, which the connections over it share.
pub(crate) struct QuicSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    routes: Mutex<Routes>,
    /// Of a server, for each connection.
    pub(crate) server: Option<ServerConfig>,
}

/// The connections over a socket, without I/O.
pub(crate) struct Routes {
    pub(crate) endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, mpsc::Sender<ConnectionEvent>>,
}

/// What is to be done about a datagram.
enum Taken {
    /// Nothing more.
    Whole,
    /// It is to be answered.
    Answer(Transmit),
    /// Somebody wants a connection who has shown that what is sent to its address arrives.
    Knock(Box<Incoming>),
}

impl Routes {
    fn new(config: EndpointConfig, server: Option<ServerConfig>, allows_probes: bool) -> Self {
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), allows_probes, None);
        Self { endpoint, connections: HashMap::new() }
    }

    /// Datagrams for the connection `handle` go to the receiver from now on.
    pub(crate) fn add(&mut self, handle: ConnectionHandle) -> mpsc::Receiver<ConnectionEvent> {
        let (sender, receiver) = mpsc::channel(WAITING);
        self.connections.insert(handle, sender);
        receiver
    }

    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        self.connections.remove(&handle);
    }

    /// Takes a datagram in. Nothing is kept of those who knock and have not shown that their address is theirs: they get a token,
    /// with which they come again (RFC 9000 §8.1.2).
    fn take(&mut self, meta: &RecvMeta, datagram: &[u8], answer: &mut Vec<u8>) -> Taken {
        let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let event =
            self.endpoint.handle(Instant::now(), meta.addr, meta.dst_ip, ecn, datagram.into(), answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                // One that is behind loses datagrams, as one whose socket is full does.
                if let Some(connection) = self.connections.get(&handle) {
                    let _ = connection.try_send(event);
                }
                Taken::Whole
            }
            Some(DatagramEvent::NewConnection(incoming)) if incoming.remote_address_validated() => {
                Taken::Knock(Box::new(incoming))
            }
            Some(DatagramEvent::NewConnection(incoming)) => match self.endpoint.retry(incoming, answer) {
                Ok(transmit) => Taken::Answer(transmit),
                Err(refused) => {
                    self.endpoint.ignore(refused.into_incoming());
                    Taken::Whole
                }
            },
            Some(DatagramEvent::Response(transmit)) => Taken::Answer(transmit),
            None => Taken::Whole,
        }
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
        // As much as the kernel lets it.
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), BUFFER);
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), BUFFER);
        let routes = Routes::new(config, server.clone(), !state.may_fragment());
        Ok(Arc::new(Self { socket: UdpSocket::from_std(socket)?, state, routes: Mutex::new(routes), server }))
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
    pub(crate) fn send(&self, transmit: &Transmit, bytes: &[u8]) -> io::Result<()> {
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

    /// Takes in what comes, for ever: `knock` gets whoever wants a connection and has shown that what is sent to its address arrives.
    ///
    /// # Errors
    /// Of a client, when the server's port is closed; the connection ends.
    pub(crate) async fn receive(&self, mut knock: impl FnMut(Incoming)) -> io::Result<()> {
        let mut buffers: Vec<_> = (0..BATCH).map(|_| vec![0; MAX_RECEIVED]).collect();
        let mut answer = Vec::new();
        loop {
            let ready = self.socket.ready(ARRIVALS).await?;
            let what = if ready.is_readable() { Interest::READABLE } else { Interest::ERROR };
            let mut metas = [RecvMeta::default(); BATCH];
            let received = self.socket.try_io(what, || {
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
                    let taken = self.routes().take(meta, datagram, &mut answer);
                    match taken {
                        Taken::Whole => {}
                        Taken::Knock(incoming) => knock(*incoming),
                        // What cannot be sent now is lost, and asked for again.
                        Taken::Answer(transmit) => drop(self.send(&transmit, &answer)),
                    }
                }
            }
        }
    }

    /// The configuration of a server's next connection.
    ///
    /// # Errors
    /// Where the socket is a client's.
    pub(crate) fn server_config(&self) -> io::Result<ServerConfig> {
        self.server.clone().ok_or_else(|| invalid("no server"))
    }
}

/// Datagrams, and a closed port at the other end.
const ARRIVALS: Interest = Interest::READABLE.add(Interest::ERROR);
/// Datagrams that wait for a connection.
const WAITING: usize = 4_096;
/// Reads of the socket at once.
const BATCH: usize = 8;
/// Of the socket, in bytes: what comes while this program does something else.
const BUFFER: usize = 2 << 20;
/// What the kernel joins to one, at most.
const MAX_RECEIVED: usize = 65_535;

/// What a server does with the datagrams that come to its port, without a socket, for tools that try any.
pub struct QuicDoor(Routes);

impl QuicDoor {
    /// That of a server with `key` and no clients.
    ///
    /// # Errors
    /// Where the library refuses the key.
    pub fn new(key: &PrivateKey) -> Result<Self, KeyError> {
        let tls = server_config(key, &AuthorizedKeys::default())?;
        let crypto = QuicServerConfig::try_from(tls).map_err(|error| KeyError::Make(error.to_string()))?;
        let server = ServerConfig::with_crypto(Arc::new(crypto));
        Ok(Self(Routes::new(EndpointConfig::default(), Some(server), true)))
    }

    /// A datagram comes from `peer`; gives the length of what is sent back.
    pub fn take(&mut self, peer: SocketAddr, datagram: &[u8]) -> usize {
        let meta = RecvMeta { addr: peer, ..RecvMeta::default() };
        let mut answer = Vec::new();
        match self.0.take(&meta, datagram, &mut answer) {
            Taken::Whole => 0,
            Taken::Answer(transmit) => transmit.size,
            Taken::Knock(incoming) => {
                self.0.endpoint.ignore(*incoming);
                0
            }
        }
    }

    /// Connections that it keeps, and bytes of those who knock.
    #[must_use]
    pub fn holds(&self) -> (usize, u64) {
        (self.0.endpoint.open_connections(), self.0.endpoint.incoming_buffer_bytes())
    }
}

impl std::fmt::Debug for QuicDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("QuicDoor").field(&self.holds()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use quinn_proto::crypto::rustls::QuicClientConfig;
    use quinn_proto::{ClientConfig, Connection};

    use super::*;
    use crate::keys::{SERVER_NAME, client_config};

    fn server(key: &PrivateKey, client: &PrivateKey) -> Routes {
        let tls = server_config(key, &[client.public()].into_iter().collect()).unwrap();
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        Routes::new(EndpointConfig::default(), Some(ServerConfig::with_crypto(Arc::new(crypto))), true)
    }

    /// A client that wants a connection, and its first datagram.
    fn client(tls: &Arc<rustls::ClientConfig>) -> (Endpoint, ConnectionHandle, Connection, Vec<u8>) {
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let crypto = Arc::new(QuicClientConfig::try_from(tls.clone()).unwrap());
        let config = ClientConfig::new(crypto);
        let connecting = endpoint.connect(Instant::now(), config, meta(0).addr, SERVER_NAME);
        let (handle, mut connection) = connecting.unwrap();
        let mut first = Vec::new();
        assert!(connection.poll_transmit(Instant::now(), 1, &mut first).is_some());
        (endpoint, handle, connection, first)
    }

    fn meta(host: u8) -> RecvMeta {
        let addr = SocketAddr::new(IpAddr::from([192, 0, 2, host]), 4_443);
        RecvMeta { addr, ..RecvMeta::default() }
    }

    #[test]
    fn who_has_not_shown_that_an_address_is_its_own_leaves_nothing_and_gets_less_than_it_sends() {
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let mut routes = server(&server_key, &client_key);
        let tls = Arc::new(client_config(&client_key, server_key.public()).unwrap());
        for host in 0..200 {
            let (.., first) = client(&tls);
            let mut answer = Vec::new();
            assert!(matches!(routes.take(&meta(host), &first, &mut answer), Taken::Answer(_)));
            assert!(!answer.is_empty() && answer.len() < first.len(), "{} for {}", answer.len(), first.len());
        }
        assert_eq!((routes.endpoint.open_connections(), routes.endpoint.incoming_buffer_bytes()), (0, 0));
    }

    #[test]
    fn who_sends_the_token_back_from_its_address_may_knock_and_from_another_may_not() {
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let mut routes = server(&server_key, &client_key);
        let tls = Arc::new(client_config(&client_key, server_key.public()).unwrap());
        let (mut endpoint, handle, mut connection, first) = client(&tls);
        let mut answer = Vec::new();
        assert!(matches!(routes.take(&meta(1), &first, &mut answer), Taken::Answer(_)));
        let event =
            endpoint.handle(Instant::now(), meta(0).addr, None, None, answer[..].into(), &mut Vec::new());
        let Some(DatagramEvent::ConnectionEvent(to, event)) = event else {
            panic!("a retry is for the connection")
        };
        assert_eq!(to, handle);
        connection.handle_event(event);
        let mut second = Vec::new();
        assert!(connection.poll_transmit(Instant::now(), 1, &mut second).is_some());
        answer.clear();
        assert!(matches!(routes.take(&meta(2), &second, &mut answer), Taken::Answer(_)), "it is refused");
        let Taken::Knock(incoming) = routes.take(&meta(1), &second, &mut answer) else { panic!("let in") };
        routes.endpoint.ignore(*incoming);
    }
}
