//! The client: keeps a connection over each interface, and opens streams.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use suimon_algorithms::path::PathId;
use suimon_quic::SenderConfig;
use suimon_units::Bytes;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

use crate::bond::{Bond, ClassedPacket, Stream, random};
use crate::classes::Classes;
use crate::connection::{Carrier, Carriers, Connection, invalid};
use crate::descriptors::{Descriptors, Share};
use crate::driver::{Command, Ended, Joined, Patience, drive};
use crate::failover::fail_over;
use crate::frame::{Frame, Join, MAX_PATHS, Refusal};
use crate::interfaces::{Via, watch_changes};
use crate::keys::SERVER_NAME;
use crate::quic::QuicConnection;
use suimon_service::Target;

use crate::mux::ResetReason;
use crate::session::SessionConfig;
use crate::status::SessionStatus;
use crate::tls::TlsConnection;
use crate::trial::Trial;

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct ClientConfigBond {
    /// The servers: the first that answers is used until it answers no more.
    pub servers: Vec<ServerEnd>,
    /// Ways to the server, one path each.
    pub via: Vec<Via>,
    /// What carries the connections.
    pub carriers: Carriers,
    /// Congestion control of connections over TCP; the system's where none is named.
    pub cc: Option<String>,
    /// Congestion control of connections over QUIC.
    pub quic_cc: SenderConfig,
    /// Bytes that a connection may hold; as many as its kernel lets it where none is said.
    pub path_buffer: Option<Bytes>,
    /// The session.
    pub session: SessionConfig,
    /// Flows that go before others.
    pub classes: Classes,
    /// When a path and when a session is given up.
    pub path_timeout: Duration,
    /// When a session without any path is given up.
    pub session_timeout: Duration,
    /// All other traffic of this host goes through the bond: each of its own connections is kept to its device.
    pub beside_tunnel: bool,
}

/// A server, as a client knows it.
#[derive(Debug, Clone)]
pub struct ServerEnd {
    /// Its address, as `host:port`.
    pub name: String,
    /// TLS, with both keys.
    pub tls: Arc<ClientConfig>,
    /// What `name` stands for, where it is not to be looked up: beside a tunnel the answer would come through the bond.
    pub addresses: Option<Vec<SocketAddr>>,
}

/// A running client.
#[derive(Debug, Clone)]
pub struct Client {
    bond: Bond,
    commands: mpsc::Sender<Command>,
    descriptors: Share,
    classes: Arc<Classes>,
}

impl Client {
    /// Starts to connect; streams may be opened at once and wait until a path is up. What it gives beside itself are IP
    /// packets of the server's.
    ///
    /// # Errors
    /// With no way, or more than the protocol has numbers for.
    pub fn start(config: ClientConfigBond) -> io::Result<(Self, mpsc::Receiver<ClassedPacket>)> {
        if config.via.is_empty() || config.via.len() > MAX_PATHS {
            return Err(invalid(format!("between one and {MAX_PATHS} interfaces")));
        }
        if config.servers.is_empty() {
            return Err(invalid("no server"));
        }
        let (bond, incoming) = Bond::new(true, config.session.clone(), random());
        let (commands, received) = mpsc::channel(64);
        let patience = Patience { path: config.path_timeout, session: config.session_timeout };
        let classes = Arc::new(config.classes.clone());
        let config = Arc::new(config);
        let changes = watch_changes();
        tokio::spawn(keep_driving(bond.clone(), received, patience));
        let active = watch::Sender::new(0);
        bond.lock().server = Some(config.servers[0].name.clone());
        if config.servers.len() > 1 {
            tokio::spawn(fail_over(config.clone(), bond.clone(), active.clone()));
        }
        for index in 0..config.via.len() {
            let keeper = Keeper {
                config: config.clone(),
                bond: bond.clone(),
                commands: commands.clone(),
                path: PathId(index),
                attempt: 0,
                active: active.subscribe(),
                peers: vec![Vec::new(); config.servers.len()],
                trial: Trial::new(config.carriers),
            };
            tokio::spawn(keeper.run(changes.clone()));
        }
        // Servers open no streams.
        let descriptors = Descriptors::of_process().share();
        Ok((Self { bond, commands, descriptors, classes }, incoming.packets))
    }

    /// Descriptors for connections of programs.
    pub(crate) fn descriptors(&self) -> &Share {
        &self.descriptors
    }

    /// Opens a stream to `target`, seen from the server.
    pub(crate) async fn open(&self, target: &Target) -> Result<Stream, ResetReason> {
        let class = self.classes.of_target(target);
        match timeout(OPEN_TIMEOUT, self.bond.open(class, target)).await {
            Ok(opened) => opened,
            Err(_) => Err(ResetReason::TimedOut),
        }
    }

    /// Sends an IP packet to the server, which passes datagrams on, unless too many wait.
    #[must_use]
    pub fn send_packet(&self, packet: &[u8]) -> bool {
        self.bond.send_packet(self.classes.of_packet(packet), packet)
    }

    /// The state of the session.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        self.bond.status()
    }

    /// Whether a path is up, now and whenever that changes.
    pub(crate) fn has_path(&self) -> watch::Receiver<bool> {
        self.bond.lock().has_path.subscribe()
    }

    /// Tells the server that the session is over.
    pub async fn close(&self) {
        let _ = self.commands.send(Command::Close).await;
        // The connections' last records need time to go out.
        let waited = async {
            while !self.bond.lock().closed {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(Duration::from_secs(1), waited).await;
    }
}

/// One session after another: only this end's own wish is a reason to have none. Its keepers go on meanwhile, so that
/// the next session has its paths as soon as the server is there.
async fn keep_driving(bond: Bond, mut commands: mpsc::Receiver<Command>, patience: Patience) {
    loop {
        let ended = drive(bond.clone(), &mut commands, patience).await;
        if ended == Ended::Closed {
            break;
        }
        warn!("the session has ended, {ended}: its streams are lost, another one begins");
        let generation = bond.lock().generation;
        bond.restart(generation, &ended.to_string());
    }
    bond.close();
}

/// Keeps one path up.
struct Keeper {
    config: Arc<ClientConfigBond>,
    bond: Bond,
    commands: mpsc::Sender<Command>,
    path: PathId,
    attempt: u32,
    /// The server that is used.
    active: watch::Receiver<usize>,
    /// The addresses of each server, as far as they are known.
    peers: Vec<Vec<SocketAddr>>,
    /// The carriers to try.
    trial: Trial,
}

/// A path that is up.
struct Up {
    ended: oneshot::Receiver<String>,
    server: usize,
    local: Option<SocketAddr>,
    peer: SocketAddr,
}

impl Keeper {
    fn via(&self) -> &Via {
        &self.config.via[self.path.0]
    }

    async fn run(mut self, mut changes: watch::Receiver<u64>) {
        let via = self.via().clone();
        let mut wait = FIRST_WAIT;
        // One complaint for each reason, not one for each try.
        let mut complained = None;
        while !self.bond.lock().closed {
            changes.borrow_and_update();
            let began = Instant::now();
            let generation = self.bond.lock().generation;
            let server = *self.active.borrow_and_update();
            let mut active = self.active.clone();
            let connected = tokio::select! {
                connected = self.connect(server) => connected,
                Ok(()) = active.changed() => continue,
            };
            match connected {
                Ok(up) => {
                    info!("{via}: up, {} to {}", text(up.local), up.peer);
                    (wait, complained) = (FIRST_WAIT, None);
                    let reason = self.watch(up, &mut changes).await;
                    if self.bond.lock().closed {
                        return;
                    }
                    warn!("{via}: down: {reason}");
                }
                Err(error) => {
                    let error = error.to_string();
                    if complained.as_ref() != Some(&error) {
                        warn!(
                            "{via}: no connection to {}: {error}; trying on",
                            self.config.servers[server].name
                        );
                        complained = Some(error);
                    }
                }
            }
            if self.bond.lock().generation != generation {
                // The server is there and has lost the session: the next one begins without a long pause.
                wait = FIRST_WAIT;
            }
            // An attempt that took long to fail has waited already.
            let pause = wait.saturating_sub(began.elapsed()).max(FIRST_WAIT);
            wait = (wait * 2).min(MAX_WAIT);
            tokio::select! {
                () = sleep(pause) => {}
                Ok(()) = changes.changed() => {
                    // It may be another network.
                    self.trial.on_change();
                    wait = FIRST_WAIT;
                }
                Ok(()) = self.active.changed() => wait = FIRST_WAIT,
            }
        }
    }

    /// Until the path is down; says why. Where QUIC gets through by now, it takes the place of TCP.
    async fn watch(&mut self, mut up: Up, changes: &mut watch::Receiver<u64>) -> String {
        let mut trying = Box::pin(self.quic_again(&up));
        loop {
            tokio::select! {
                ended = &mut up.ended => return ended.unwrap_or_else(|_| "the session is over".to_owned()),
                Ok(()) = changes.changed() => {
                    let footing = self.via().footing(up.local.map(|local| local.ip()));
                    if let Some(reason) = self.via().is_gone(&footing) {
                        let _ = self.commands.send(Command::Drop(self.path, reason)).await;
                    }
                }
                tried = &mut trying => {
                    let joined = match tried {
                        Ok(connection) => in_time(self.join(connection, up.peer, up.server)).await,
                        Err(error) => Err(error),
                    };
                    match joined {
                        Ok(over_quic) => {
                            info!("{}: over QUIC from now on", self.via());
                            up = over_quic;
                            self.trial.on_connected(Instant::now(), QUIC, Carrier::Quic);
                        }
                        Err(_) => self.trial.on_refused(Instant::now()),
                    }
                    trying.set(self.quic_again(&up));
                }
            }
        }
    }

    /// A connection over QUIC for a path that had to take TCP, once it is time to try; for any other path, never.
    fn quic_again(&self, up: &Up) -> impl Future<Output = io::Result<Connection>> + use<> {
        let (config, via, at) = (self.config.clone(), self.via().clone(), self.trial.again_at());
        let (server, peer) = (up.server, up.peer);
        async move {
            match at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
            config.reach(server, &via, peer, QUIC).await
        }
    }

    async fn connect(&mut self, server: usize) -> io::Result<Up> {
        let end = &self.config.servers[server];
        let mut last = invalid(format!("{} has no address", end.name));
        end.look_up(&mut self.peers[server]).await?;
        for peer in self.peers[server].clone() {
            let carriers = self.trial.carriers(Instant::now());
            match self.config.reach(server, self.via(), peer, carriers).await {
                Ok(connection) => {
                    self.trial.on_connected(Instant::now(), carriers, connection.carrier());
                    return in_time(self.join(connection, peer, server)).await;
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn join(&mut self, mut connection: Connection, peer: SocketAddr, server: usize) -> io::Result<Up> {
        self.attempt += 1;
        let (session, nonce, generation) = {
            let state = self.bond.lock();
            if *self.active.borrow() != server {
                return Err(invalid("another server is used by now"));
            }
            (state.id, state.nonce, state.generation)
        };
        let join = Join {
            session,
            nonce,
            path: self.path.0 as u8,
            attempt: self.attempt,
            reorder_buffer: self.config.session.reorder_buffer.get(),
            window: self.config.session.mux.window,
            name: self.via().to_string(),
        };
        connection.send_all(&Frame::Join(join)).await?;
        let answer = connection
            .receive(|frame| match frame {
                Frame::Welcome(welcome) => Some(Ok(welcome)),
                Frame::Refuse(refusal) => Some(Err(refusal)),
                _ => None,
            })
            .await?;
        let welcome = match answer {
            Ok(welcome) => welcome,
            Err(refusal) => {
                if refusal == Refusal::UnknownSession {
                    self.bond.restart(generation, "as the server has lost it");
                }
                return Err(invalid(format!("the server refuses: {refusal}")));
            }
        };
        if !self.bond.welcome(generation, &welcome) {
            return Err(invalid("the server has begun anew"));
        }
        let (ended, told) = oneshot::channel();
        let (local, _) = connection.addresses();
        let joined = Joined {
            connection,
            path: self.path,
            attempt: self.attempt,
            generation,
            name: self.via().to_string(),
            ended,
        };
        let sent = self.commands.send(Command::Join(Box::new(joined))).await;
        sent.map_err(|_| invalid("the session is over"))?;
        Ok(Up { ended: told, server, local, peer })
    }
}

impl ServerEnd {
    /// Learns the server's addresses. Names may be out of reach where the server is not, so known ones stay.
    pub(crate) async fn look_up(&self, known: &mut Vec<SocketAddr>) -> io::Result<()> {
        if let Some(addresses) = &self.addresses {
            known.clone_from(addresses);
            return Ok(());
        }
        let limit = if known.is_empty() { FIRST_LOOKUP } else { LATER_LOOKUP };
        match timeout(limit, tokio::net::lookup_host(&self.name)).await {
            Ok(Ok(found)) => *known = found.collect(),
            _ if !known.is_empty() => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no name server answers")),
        }
        Ok(())
    }
}

impl ClientConfigBond {
    /// A connection by `via` to `peer`, which has proved that it is the server. Where QUIC and TCP are tried, QUIC has a head start:
    /// both need two round trips, so it is there first wherever UDP passes.
    pub(crate) async fn reach(
        &self,
        server: usize,
        via: &Via,
        peer: SocketAddr,
        carriers: Carriers,
    ) -> io::Result<Connection> {
        match carriers {
            Carriers::Only(Carrier::Tcp) => return self.over_tcp(server, via, peer).await,
            Carriers::Only(Carrier::Quic) => return self.over_quic(server, via, peer).await,
            Carriers::Auto => {}
        }
        let quic = self.over_quic(server, via, peer);
        let tcp = self.over_tcp(server, via, peer);
        tokio::pin!(quic, tcp);
        match timeout(HEAD_START, &mut quic).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(_)) => return tcp.await,
            Err(_) => {}
        }
        tokio::select! {
            reached = &mut quic => match reached {
                Ok(connection) => Ok(connection),
                Err(_) => tcp.await,
            },
            reached = &mut tcp => match reached {
                Ok(connection) => Ok(connection),
                Err(_) => quic.await,
            },
        }
    }

    async fn over_quic(&self, server: usize, via: &Via, peer: SocketAddr) -> io::Result<Connection> {
        let socket = via.datagrams(peer, self.beside_tunnel)?;
        let tls = self.servers[server].tls.clone();
        let connecting = QuicConnection::connect(socket, peer, tls, &self.quic_cc, self.path_buffer);
        let connected = in_time(connecting).await.map_err(|error| no_server(peer, &error))?;
        Ok(Connection::Quic(Box::new(connected)))
    }

    async fn over_tcp(&self, server: usize, via: &Via, peer: SocketAddr) -> io::Result<Connection> {
        let connecting = via.connect(peer, self.cc.as_deref(), self.beside_tunnel);
        let tcp = timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(no_answer()))?;
        let name = ServerName::try_from(SERVER_NAME).expect("a plain name");
        let tls = ClientConnection::new(self.servers[server].tls.clone(), name).map_err(invalid)?;
        let shaking = TlsConnection::handshake(tcp, tls.into(), self.path_buffer);
        let connected = in_time(shaking).await.map_err(|error| no_server(peer, &error))?;
        Ok(Connection::Tls(Box::new(connected)))
    }
}

/// What the server gives a handshake, too.
async fn in_time<T>(shaking: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(HANDSHAKE_TIMEOUT, shaking).await.unwrap_or_else(|_| Err(no_answer()))
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer")
}

/// The peer speaks another protocol or has another key: one word for both, for people.
fn no_server(peer: SocketAddr, error: &io::Error) -> io::Error {
    let of = match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::TimedOut | io::ErrorKind::ConnectionRefused => "",
        _ => " is not the server",
    };
    io::Error::new(error.kind(), format!("{peer}{of}: {error}"))
}

fn text(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "?".to_owned(), |address| address.to_string())
}

const QUIC: Carriers = Carriers::Only(Carrier::Quic);
/// The first pause, and the shortest: a moment's trouble costs a moment.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest pause. The kernel tells of an interface that is back, but not of a server, which programs shall reach
/// within two seconds.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Two tries of a resolver, which waits 5 s each time (resolv.conf(5)).
const FIRST_LOOKUP: Duration = Duration::from_secs(10);
/// An answer takes less where name servers are in reach, and known addresses are as good.
const LATER_LOOKUP: Duration = Duration::from_secs(1);
/// The kernel sends a SYN again after 1 and 3 s; a new try is as good.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(2_500);
/// How long QUIC is tried alone: as long as one of a host's addresses is before the next (RFC 8305 §5).
const HEAD_START: Duration = Duration::from_millis(250);
/// The server's own limit.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a program that wants a connection waits while no path is up.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
