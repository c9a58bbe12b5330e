//! The server: takes clients in, and leads their streams where they shall lead.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};
use suimon_algorithms::path::PathId;
use suimon_quic::SenderConfig;
use suimon_units::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::admission::{Admission, Place};
use crate::bond::{Bond, Stream, random};
use crate::connection::{Connection, invalid};
use crate::datagrams;
use crate::descriptors::{Descriptors, Share};
use crate::driver::{Command, Joined, Patience, drive};
use crate::frame::{Frame, Join, Refusal, Welcome};
use crate::keys::{AuthorizedKeys, PublicKey, ResetSecret};
use crate::quic::QuicConnection;
use suimon_service::descriptors::pause;
use suimon_service::{Names, Target};

use crate::mux::ResetReason;
use crate::relay::relay;
use crate::session::SessionConfig;
use crate::status::SessionStatus;
use crate::tls::TlsConnection;
use crate::udp::QuicSocket;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfigBond {
    /// TLS, with the server's key and those of its clients.
    pub tls: Arc<ServerConfig>,
    /// The clients' keys, as TLS has them.
    pub clients: AuthorizedKeys,
    /// Bytes that a connection may hold; as many as its kernel lets it where none is said.
    pub path_buffer: Option<Bytes>,
    /// Congestion control of connections over TCP; the system's where none is named.
    pub cc: Option<String>,
    /// Congestion control of connections over QUIC.
    pub quic_cc: SenderConfig,
    /// Of the server's key.
    pub reset_secret: ResetSecret,
    /// Each session.
    pub session: SessionConfig,
    /// Sessions at most.
    pub sessions: usize,
    /// When a path is given up.
    pub path_timeout: Duration,
    /// When a session without any path is given up.
    pub session_timeout: Duration,
    /// Where the names of targets are looked up.
    pub names: Names,
}

/// A running server.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ServerConfigBond,
    sessions: Mutex<HashMap<(PublicKey, [u8; 16]), Entry>>,
    admission: Admission,
    descriptors: Descriptors,
    refusals: Mutex<Refusals>,
}

#[derive(Debug, Clone)]
struct Entry {
    bond: Bond,
    commands: mpsc::Sender<Command>,
    nonce: u64,
    began: Instant,
    /// Highest attempt of each path.
    attempts: HashMap<u8, u32>,
}

impl Server {
    /// A server without clients yet.
    #[must_use]
    pub fn new(config: ServerConfigBond) -> Self {
        Self(Arc::new(Inner {
            config,
            sessions: Mutex::default(),
            admission: Admission::default(),
            descriptors: Descriptors::of_process(),
            refusals: Mutex::default(),
        }))
    }

    /// Takes in whoever knocks at `listener`, for ever.
    pub async fn serve(&self, listener: TcpListener) {
        loop {
            let (tcp, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            };
            let server = self.clone();
            self.admit(peer, async move |place| {
                timeout(FIRST_BYTE_TIMEOUT, tcp.peek(&mut [0])).await??;
                place.is_heard();
                server.over_tcp(tcp, peer).await
            });
        }
    }

    /// Takes in whoever knocks at `socket` by QUIC, for ever.
    ///
    /// # Errors
    /// Where the socket cannot be used.
    pub async fn serve_quic(&self, socket: UdpSocket) -> io::Result<()> {
        let config = &self.0.config;
        let socket = QuicSocket::of_server(socket, config.tls.clone(), &config.reset_secret)?;
        socket
            .receive(|incoming| {
                let peer = incoming.remote_address();
                let accepted = QuicConnection::accept(&socket, incoming, &config.quic_cc, config.path_buffer);
                let server = self.clone();
                self.admit(peer, async move |place| {
                    // It has sent again what it got here.
                    place.is_heard();
                    let mut connection = accepted?;
                    connection.established().await?;
                    server.take_in(Connection::Quic(Box::new(connection)), peer).await
                });
            })
            .await
    }

    /// Gives `take_in` its time for the handshake with `peer`, if there is a place.
    fn admit<F>(&self, peer: SocketAddr, take_in: impl FnOnce(Place) -> F)
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let (place, displaced) = self.0.admission.enter(peer.ip());
        let server = self.clone();
        let taken = take_in(place);
        tokio::spawn(async move {
            let refused = tokio::select! {
                taken = timeout(HANDSHAKE_TIMEOUT, taken) => match taken {
                    Ok(Ok(())) => return,
                    Ok(Err(error)) if error.kind() != io::ErrorKind::TimedOut => error.to_string(),
                    _ => "it does not shake hands in time".to_owned(),
                },
                _ = displaced => "its network has too many handshakes at once".to_owned(),
            };
            server.0.refuse(peer.ip(), &refused);
        });
    }

    /// The state of each session, with the client's key.
    #[must_use]
    pub fn status(&self) -> Vec<(PublicKey, SessionStatus)> {
        let sessions = self.0.sessions.lock().expect("no one panics while holding it");
        sessions.iter().map(|((key, _), entry)| (*key, entry.bond.status())).collect()
    }

    /// From now on the holders of `keys` may come and no others. Sessions of others end, and their number is the answer.
    pub async fn set_clients(&self, keys: impl IntoIterator<Item = PublicKey>) -> usize {
        self.0.config.clients.set(keys);
        self.end(|key| !self.0.config.clients.contains(key)).await
    }

    /// Ends all sessions and tells the clients.
    pub async fn close(&self) {
        self.end(|_| true).await;
    }

    /// Ends the sessions of some clients and tells them; gives the number of these sessions.
    async fn end(&self, whose: impl Fn(PublicKey) -> bool) -> usize {
        let all: Vec<_> = {
            let sessions = self.0.sessions.lock().expect("no one panics while holding it");
            sessions.iter().filter(|((key, _), _)| whose(*key)).map(|(_, entry)| entry.clone()).collect()
        };
        for entry in &all {
            let _ = entry.commands.send(Command::Close).await;
        }
        let waited = async {
            while all.iter().any(|entry| !entry.bond.lock().closed) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(Duration::from_secs(1), waited).await;
        all.len()
    }

    async fn over_tcp(&self, tcp: TcpStream, peer: SocketAddr) -> io::Result<()> {
        let config = &self.0.config;
        if let Some(cc) = &config.cc {
            socket2::SockRef::from(&tcp).set_tcp_congestion(cc.as_bytes())?;
        }
        let tls = ServerConnection::new(config.tls.clone()).map_err(invalid)?;
        let connection = TlsConnection::handshake(tcp, tls.into(), config.path_buffer).await?;
        self.take_in(Connection::Tls(Box::new(connection)), peer).await
    }

    /// Makes a connection a path of the session that its client asks for.
    async fn take_in(&self, mut connection: Connection, peer: SocketAddr) -> io::Result<()> {
        let config = &self.0.config;
        let key = connection.peer_key().ok_or_else(|| invalid("it has no key"))?;
        let join = connection
            .receive(|frame| match frame {
                Frame::Join(join) => Some(join),
                _ => None,
            })
            .await?;
        // The list may have changed during the handshake.
        if !self.0.config.clients.contains(key) {
            return Err(invalid(format!("unknown key {key}")));
        }
        let entry = match self.find(key, &join) {
            Ok(entry) => entry,
            Err(refusal) => {
                let _ = connection.send_last(&Frame::Refuse(refusal));
                // A client may ask for a session from before a restart; the refusal is no offence.
                info!("{peer} ({}): not taken in: {refusal}", join.name);
                return Ok(());
            }
        };
        let welcome = Welcome {
            nonce: entry.nonce,
            reorder_buffer: config.session.reorder_buffer.get(),
            window: config.session.mux.window,
            streams: config.session.mux.streams,
        };
        connection.send_all(&Frame::Welcome(welcome)).await?;
        let (ended, told) = oneshot::channel();
        let name = join.name.clone();
        let joined = Joined {
            connection,
            path: PathId(usize::from(join.path)),
            attempt: join.attempt,
            generation: 0,
            name: join.name,
            ended,
        };
        let sent = entry.commands.send(Command::Join(Box::new(joined))).await;
        sent.map_err(|_| invalid("the session is over"))?;
        info!("{peer} ({name}): up, client {key}");
        tokio::spawn(async move {
            let reason = told.await.unwrap_or_else(|_| "the session is over".to_owned());
            info!("{peer} ({name}): down: {reason}");
        });
        Ok(())
    }

    /// The session that `join` asks for, begun if it is new.
    fn find(&self, key: PublicKey, join: &Join) -> Result<Entry, Refusal> {
        let mut sessions = self.0.sessions.lock().expect("no one panics while holding it");
        let id = (key, join.session);
        if let Some(entry) = sessions.get_mut(&id) {
            if join.nonce != 0 && join.nonce != entry.nonce {
                return Err(Refusal::UnknownSession);
            }
            let attempt = entry.attempts.entry(join.path).or_default();
            if join.attempt <= *attempt {
                return Err(Refusal::Stale);
            }
            *attempt = join.attempt;
            return Ok(entry.clone());
        }
        if join.nonce != 0 {
            return Err(Refusal::UnknownSession);
        }
        let own: Vec<_> = sessions.iter().filter(|((owner, _), _)| *owner == key).collect();
        if own.len() >= SESSIONS_PER_KEY || sessions.len() >= self.0.config.sessions {
            let without = own.into_iter().filter(|(_, entry)| !*entry.bond.lock().has_path.borrow());
            let oldest = without.min_by_key(|(_, entry)| entry.began).ok_or(Refusal::Full)?;
            let (id, entry) = (*oldest.0, oldest.1.clone());
            // Where its driver is behind with its work, the session is tried again later.
            entry.commands.try_send(Command::Close).map_err(|_| Refusal::Full)?;
            sessions.remove(&id);
        }
        let (bond, incoming) = Bond::new(false, self.0.config.session.clone(), join.session);
        let (commands, mut received) = mpsc::channel(64);
        {
            let mut state = bond.lock();
            state.session.on_peer_buffer(Bytes::new(join.reorder_buffer));
            state.session.mux.on_peer_limits(join.window, 0);
        }
        let nonce = u64::from_be_bytes(random()).max(1);
        let attempts = HashMap::from([(join.path, join.attempt)]);
        let weak = bond.downgrade();
        let entry = Entry { bond: bond.clone(), commands, nonce, began: Instant::now(), attempts };
        sessions.insert(id, entry.clone());
        let patience = Patience { path: self.0.config.path_timeout, session: self.0.config.session_timeout };
        let server = self.clone();
        tokio::spawn(async move {
            let ended = drive(bond.clone(), &mut received, patience).await;
            bond.close();
            let mut sessions = server.0.sessions.lock().expect("no one panics while holding it");
            if sessions.get(&id).is_some_and(|entry| entry.nonce == nonce) {
                sessions.remove(&id);
            }
            drop(sessions);
            info!("client {key}: the session has ended, {ended}");
        });
        let outside = Outside {
            names: self.0.config.names.clone(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            descriptors: self.0.descriptors.share(),
        };
        tokio::spawn(datagrams::carry(weak, incoming.packets, outside.descriptors.clone()));
        tokio::spawn(outside.lead(incoming.streams));
        Ok(entry)
    }
}

/// The ways of one session to its targets.
#[derive(Debug, Clone)]
struct Outside {
    names: Names,
    lookups: Arc<Semaphore>,
    descriptors: Share,
}

impl Outside {
    /// Leads streams to their targets.
    async fn lead(self, mut streams: mpsc::UnboundedReceiver<(Stream, Target)>) {
        while let Some((stream, target)) = streams.recv().await {
            tokio::spawn(self.clone().reach(stream, target));
        }
    }

    async fn reach(self, stream: Stream, target: Target) {
        // A lookup holds a descriptor too.
        let Some(_ticket) = self.descriptors.take() else { return stream.reset(ResetReason::Busy) };
        let reached = tokio::select! {
            reached = timeout(REACH_TIMEOUT, self.connect(target.as_str())) => reached,
            _ = stream.gone() => return,
        };
        let refused = match reached {
            Ok(Ok(tcp)) => {
                if stream.accept().is_ok() {
                    relay(tcp, stream).await;
                }
                return;
            }
            Ok(Err(reason)) => reason,
            Err(_) => ResetReason::TimedOut,
        };
        stream.reset(refused);
    }

    async fn connect(&self, target: &str) -> Result<TcpStream, ResetReason> {
        let turn = self.lookups.acquire().await.expect("nobody closes it");
        let addresses = self.names.look_up(target).await.map_err(|_| ResetReason::UnknownName)?;
        drop(turn);
        let mut last = ResetReason::UnknownName;
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(tcp) => return Ok(tcp),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => last = ResetReason::Refused,
                Err(_) => last = ResetReason::Unreachable,
            }
        }
        Err(last)
    }
}

/// When an address was complained of last, so that nobody fills the log.
#[derive(Debug, Default)]
struct Refusals {
    said: HashMap<(IpAddr, String), (Instant, u64)>,
}

impl Inner {
    fn refuse(&self, address: IpAddr, reason: &str) {
        let mut refusals = self.refusals.lock().expect("no one panics while holding it");
        let now = Instant::now();
        refusals.said.retain(|_, (since, _)| now - *since < COMPLAIN_AGAIN);
        if refusals.said.len() >= COMPLAINTS {
            return;
        }
        let (_, count) = refusals.said.entry((address, reason.to_owned())).or_insert((now, 0));
        *count += 1;
        if *count == 1 {
            warn!("{address}: refused: {reason} (said once a minute)");
        }
    }
}

/// Whoever is slower is refused.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// A client sends first, with its part of TCP's handshake.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(1);
/// Sessions of one key. A client has one; restarted, it leaves one behind that has no path.
const SESSIONS_PER_KEY: usize = 8;
/// Names that one session may ask for at once; further streams wait for their turn.
const LOOKUPS: usize = 32;
/// A target's SYN is sent four times by then (RFC 6298: after 1, 3 and 7 s); programs give up about as soon.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
const COMPLAIN_AGAIN: Duration = Duration::from_secs(60);
/// Pairs of address and reason that are remembered; further ones are not said.
const COMPLAINTS: usize = 1_000;
