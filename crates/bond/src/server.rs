//! The server: takes clients in, and leads their streams where they shall lead.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};
use suimon_algorithms::path::PathId;
use suimon_units::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tracing::{info, warn};

use crate::bond::{Bond, Stream, random};
use crate::connection::{TlsConnection, invalid};
use crate::datagrams;
use crate::driver::{Command, Joined, Patience, drive};
use crate::frame::{Frame, Join, Refusal, Welcome};
use crate::keys::PublicKey;
use crate::mux::{ResetReason, Target};
use crate::relay::relay;
use crate::session::SessionConfig;
use crate::status::SessionStatus;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfigBond {
    /// TLS, with the server's key and those of its clients.
    pub tls: Arc<ServerConfig>,
    /// Bytes that a connection may hold; as many as its kernel lets it where none is said.
    pub path_buffer: Option<Bytes>,
    /// Congestion control of the connections; the system's where none is named.
    pub cc: Option<String>,
    /// Each session.
    pub session: SessionConfig,
    /// Sessions at most.
    pub sessions: usize,
    /// When a path is given up.
    pub path_timeout: Duration,
    /// When a session without any path is given up.
    pub session_timeout: Duration,
}

/// A running server.
#[derive(Debug, Clone)]
pub struct Server(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ServerConfigBond,
    sessions: Mutex<HashMap<(PublicKey, [u8; 16]), Entry>>,
    handshakes: Semaphore,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    refusals: Mutex<Refusals>,
}

#[derive(Debug, Clone)]
struct Entry {
    bond: Bond,
    commands: mpsc::Sender<Command>,
    nonce: u64,
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
            handshakes: Semaphore::new(HANDSHAKES),
            by_address: Mutex::default(),
            refusals: Mutex::default(),
        }))
    }

    /// Takes in whoever knocks at `listener`, for ever.
    pub async fn serve(&self, listener: TcpListener) {
        loop {
            let (tcp, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Descriptors have run out, most likely: open connections go on.
                    warn!("cannot accept: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(ticket) = Ticket::take(&self.0, peer.ip()) else {
                self.0.refuse(peer.ip(), "too many handshakes at once");
                continue;
            };
            let server = self.clone();
            tokio::spawn(async move {
                let taken = timeout(HANDSHAKE_TIMEOUT, server.take_in(tcp, peer)).await;
                drop(ticket);
                match taken {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => server.0.refuse(peer.ip(), &error.to_string()),
                    Err(_) => server.0.refuse(peer.ip(), "it does not shake hands in time"),
                }
            });
        }
    }

    /// The state of each session, with the client's key.
    #[must_use]
    pub fn status(&self) -> Vec<(PublicKey, SessionStatus)> {
        let sessions = self.0.sessions.lock().expect("no one panics while holding it");
        sessions.iter().map(|((key, _), entry)| (*key, entry.bond.lock().status.clone())).collect()
    }

    /// Ends all sessions and tells the clients.
    pub async fn close(&self) {
        let all: Vec<_> = {
            let sessions = self.0.sessions.lock().expect("no one panics while holding it");
            sessions.values().cloned().collect()
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
    }

    async fn take_in(&self, tcp: TcpStream, peer: SocketAddr) -> io::Result<()> {
        let config = &self.0.config;
        if let Some(cc) = &config.cc {
            socket2::SockRef::from(&tcp).set_tcp_congestion(cc.as_bytes())?;
        }
        let tls = ServerConnection::new(config.tls.clone()).map_err(invalid)?;
        let mut connection = TlsConnection::handshake(tcp, tls.into(), config.path_buffer).await?;
        let key = connection.peer_key().ok_or_else(|| invalid("it has no key"))?;
        let join = connection
            .receive(|frame| match frame {
                Frame::Join(join) => Some(join),
                _ => None,
            })
            .await?;
        let entry = match self.find(key, &join) {
            Ok(entry) => entry,
            Err(refusal) => {
                let _ = connection.send_all(&Frame::Refuse(refusal)).await;
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
        if sessions.len() >= self.0.config.sessions {
            return Err(Refusal::Full);
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
        let entry = Entry { bond: bond.clone(), commands, nonce, attempts };
        sessions.insert(id, entry.clone());
        let patience = Patience { path: self.0.config.path_timeout, session: self.0.config.session_timeout };
        let server = self.clone();
        tokio::spawn(async move {
            let ended = drive(bond.clone(), &mut received, patience).await;
            bond.close();
            server.0.sessions.lock().expect("no one panics while holding it").remove(&id);
            info!("client {key}: the session has ended, {ended}");
        });
        tokio::spawn(lead(incoming.streams));
        tokio::spawn(datagrams::carry(weak, incoming.packets));
        Ok(entry)
    }
}

/// Leads streams to their targets.
async fn lead(mut streams: mpsc::UnboundedReceiver<(Stream, Target)>) {
    while let Some((stream, target)) = streams.recv().await {
        tokio::spawn(reach(stream, target));
    }
}

async fn reach(stream: Stream, target: Target) {
    let reached = tokio::select! {
        reached = timeout(REACH_TIMEOUT, connect(target.as_str())) => reached,
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

async fn connect(target: &str) -> Result<TcpStream, ResetReason> {
    let addresses = tokio::net::lookup_host(target).await.map_err(|_| ResetReason::UnknownName)?;
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

/// Room for a handshake, given back when dropped.
struct Ticket {
    inner: Arc<Inner>,
    address: IpAddr,
}

impl Ticket {
    fn take(inner: &Arc<Inner>, address: IpAddr) -> Option<Self> {
        let permit = inner.handshakes.try_acquire().ok()?;
        let mut by_address = inner.by_address.lock().expect("no one panics while holding it");
        let count = by_address.entry(address).or_default();
        if *count >= HANDSHAKES_PER_ADDRESS {
            return None;
        }
        *count += 1;
        permit.forget();
        Some(Self { inner: inner.clone(), address })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.inner.handshakes.add_permits(1);
        let mut by_address = self.inner.by_address.lock().expect("no one panics while holding it");
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
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

/// Handshakes under way at once: each holds a connection and a few kilobytes.
const HANDSHAKES: usize = 128;
const HANDSHAKES_PER_ADDRESS: usize = 32;
/// Whoever is slower is refused.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// A target's SYN is sent four times by then (RFC 6298: after 1, 3 and 7 s); programs give up about as soon.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);
const COMPLAIN_AGAIN: Duration = Duration::from_secs(60);
/// Pairs of address and reason that are remembered; further ones are not said.
const COMPLAINTS: usize = 1_000;
