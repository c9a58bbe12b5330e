//! The end that measures: it opens every connection, and sends the first datagram.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::clock::Clock;
use crate::first_hop::Pinger;
use crate::load::{Load, MAX_LOOKS};
use crate::probe::Prober;
use crate::protocol::{Cookie, Hello, PREFACE, Refusal, Reply, Request, encode, receive, send};
use crate::recording::{Direction, Loaded, Probe, Recording, Sample, Span};
use crate::responsiveness::{ForeignProbe, pace, probe};

/// How a line is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How long the line is idle at first.
    pub idle: Duration,
    /// How long each direction is loaded.
    pub load: Duration,
    /// Connections of each load.
    pub flows: u8,
    /// The most bytes of payload of both loads together.
    pub bytes: u64,
    /// Whether to ask over new connections beside the loads, for round trips a minute.
    pub responsiveness: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let (idle, load) = (Duration::from_secs(3), Duration::from_secs(10));
        Self { idle, load, flows: 4, bytes: 1_000_000_000, responsiveness: false }
    }
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The direction that is loaded; none while the line is idle.
    pub direction: Option<Direction>,
    /// Payload of the load so far, in bytes.
    pub bytes: u64,
    /// How much of the whole time is over, from 0 to 1.
    pub share: f64,
    /// The round-trip time of the last probe that came back, in milliseconds.
    pub rtt_ms: Option<f64>,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// Nobody answers there.
    #[error(
        "{address}: {error}; is `suimon measure --serve` running there, and does its firewall let TCP and UDP to this port in?"
    )]
    Connect {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The server refuses.
    #[error("{0}")]
    Refused(Refusal),
    /// The server says something else.
    #[error("the server ended the measurement: {0}")]
    Server(io::Error),
    /// A socket or a thread of this host.
    #[error("{0}")]
    Host(io::Error),
    /// No datagram came back.
    #[error("no datagram came back from {0}: does a firewall keep UDP to this port out?")]
    NoDatagrams(SocketAddr),
}

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the server's report may take, behind what waits in the buffer.
const REPORT: Duration = Duration::from_secs(8);
/// How long the buffer may take to empty after a load.
const DRAIN: Duration = Duration::from_secs(4);
/// The time without load at the end, or between loads.
const REST: Duration = Duration::from_millis(700);
/// Between one look at how far it is and the next.
const TICK: Duration = Duration::from_millis(100);
/// Round-trip times this much above the idle one are those of an idle line, as are those below a quarter more.
const NEAR_IDLE_US: u64 = 2_000;

/// Measures the line to `server`. Once `stop` holds true, what is known by then comes back.
///
/// # Errors
/// Where there is no session, or no datagram comes back. What ends later than the idle part leaves what is known.
pub async fn measure(
    server: SocketAddr,
    plan: &Plan,
    stop: watch::Receiver<bool>,
    progress: impl Fn(Progress) + Send,
) -> Result<Recording, MeasureError> {
    let mut control =
        connect(server).await.map_err(|error| MeasureError::Connect { address: server, error })?;
    let (cookie, most_bytes) = open(&mut control, &Hello::Session).await?;
    let clock = Clock::new();
    let prober = socket_beside(&control, server).and_then(|socket| Prober::new(socket, cookie, clock));
    let prober = prober.map_err(MeasureError::Host)?;
    let pinger = Pinger::new(server.ip(), clock);
    let bytes = plan.bytes.min(2 * most_bytes);
    let plan = Plan { bytes, ..*plan };
    let mut run = Run {
        server,
        cookie,
        clock,
        prober,
        plan,
        stop,
        progress,
        control,
        started: Instant::now(),
        foreign: Arc::default(),
    };
    let mut recording = Recording { is_ipv6: is_ipv6(server), ..Recording::default() };
    recording.idle.push(run.idle(plan.idle).await);
    if !run.prober.probes().iter().any(|probe| probe.answer.is_some()) {
        return Err(MeasureError::NoDatagrams(server));
    }
    for direction in Direction::BOTH {
        if run.is_told() {
            break;
        }
        let loaded = run.load(direction).await.map_err(MeasureError::Host)?;
        recording.idle.push(run.drain().await);
        match direction {
            Direction::Download => recording.download = Some(loaded),
            Direction::Upload => recording.upload = Some(loaded),
        }
    }
    recording.probes = run.prober.probes();
    recording.foreign = std::mem::take(&mut *run.foreign.lock().expect("no one panics while holding it"));
    recording.first_hop = pinger.map(|pinger| pinger.hop());
    Ok(recording)
}

fn is_ipv6(server: SocketAddr) -> bool {
    server.ip().to_canonical().is_ipv6()
}

pub(crate) async fn connect(server: SocketAddr) -> io::Result<TcpStream> {
    let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let mut stream = timeout(CONNECT, socket.connect(server)).await??;
    stream.set_nodelay(true)?;
    stream.write_all(&PREFACE).await?;
    Ok(stream)
}

pub(crate) async fn open(control: &mut TcpStream, hello: &Hello) -> Result<(Cookie, u64), MeasureError> {
    send(control, hello).await.map_err(MeasureError::Server)?;
    let reply = timeout(CONNECT, receive(control)).await.unwrap_or_else(|late| Err(late.into()));
    match reply.map_err(MeasureError::Server)? {
        Reply::Open { cookie, most_bytes } => Ok((cookie, most_bytes)),
        Reply::Refused(refusal) => Err(MeasureError::Refused(refusal)),
        Reply::Samples(_) | Reply::Arrivals(_) | Reply::End => {
            Err(MeasureError::Server(io::ErrorKind::InvalidData.into()))
        }
    }
}

/// A socket for datagrams to `server`, from the address that it knows from `control`, since it answers no other.
pub(crate) fn socket_beside(control: &TcpStream, server: SocketAddr) -> io::Result<UdpSocket> {
    // Its port alone is another one: a link-local address of IPv6 has a scope too.
    let mut own = control.local_addr()?;
    own.set_port(0);
    let socket = UdpSocket::bind(own)?;
    socket.connect(server)?;
    Ok(socket)
}

/// A measurement under way.
struct Run<P> {
    server: SocketAddr,
    cookie: Cookie,
    clock: Clock,
    prober: Prober,
    plan: Plan,
    stop: watch::Receiver<bool>,
    progress: P,
    control: TcpStream,
    started: Instant,
    foreign: Arc<Mutex<Vec<ForeignProbe>>>,
}

impl<P: Fn(Progress)> Run<P> {
    fn is_told(&self) -> bool {
        *self.stop.borrow()
    }

    fn tell(&self, direction: Option<Direction>, bytes: u64) {
        let whole = self.plan.idle + 2 * self.plan.load + 3 * REST;
        let last = self.prober.probes().iter().rev().find_map(rtt_us);
        (self.progress)(Progress {
            direction,
            bytes,
            share: (self.started.elapsed().as_secs_f64() / whole.as_secs_f64()).min(1.0),
            rtt_ms: last.map(|us| us as f64 / 1e3),
        });
    }

    /// So much time without load.
    async fn idle(&self, time: Duration) -> Span {
        let (from_us, until) = (self.clock.now_us(), Instant::now() + time);
        while Instant::now() < until && !self.is_told() {
            sleep(TICK.min(until - Instant::now())).await;
            self.tell(None, 0);
        }
        Span { from_us, to_us: self.clock.now_us() }
    }

    /// Time without load after a load, from when nothing waits any more.
    async fn drain(&self) -> Span {
        let idle = self.prober.probes().iter().filter_map(rtt_us).min().unwrap_or_default();
        let near = (idle + NEAR_IDLE_US).max(idle + idle / 4);
        let until = Instant::now() + DRAIN;
        let patience = Duration::from_micros(idle) + TICK;
        loop {
            let since = self.clock.now_us();
            sleep(patience).await;
            self.tell(None, 0);
            let probes = self.prober.probes();
            let mut answered = probes
                .iter()
                .filter(|probe| probe.answer.is_some_and(|(_, at)| at >= since))
                .filter_map(rtt_us)
                .peekable();
            let is_idle = answered.peek().is_some() && answered.all(|rtt| rtt <= near);
            if is_idle || Instant::now() >= until || self.is_told() {
                break;
            }
        }
        self.idle(REST + Duration::from_micros(idle)).await
    }

    /// Loads the line in `direction`.
    async fn load(&mut self, direction: Direction) -> io::Result<Loaded> {
        let load = Arc::new(Load::new(self.clock));
        let most = self.plan.bytes / 2;
        let mut tasks = JoinSet::new();
        let from_us = self.clock.now_us();
        for flow in 0..self.plan.flows {
            let (server, cookie, load) = (self.server, self.cookie, Arc::clone(&load));
            tasks.spawn(async move {
                let mut stream = connect(server).await?;
                // At the end the connection goes at once, with what is unsent.
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                stream.write_all(&encode(&Hello::Load { cookie, direction, flow })?).await?;
                match direction {
                    Direction::Download => load.receive(flow, stream, most).await,
                    Direction::Upload => load.send(flow, stream, most).await,
                }
            });
        }
        let watched = Arc::clone(&load);
        tasks.spawn(async move {
            watched.watch().await;
            Ok(())
        });
        let begun = Instant::now();
        let mut is_asking = !self.plan.responsiveness;
        while begun.elapsed() < self.plan.load && !self.is_told() && load.moved() < most {
            sleep(TICK).await;
            self.tell(Some(direction), load.moved());
            if !is_asking && begun.elapsed() >= self.plan.load * 3 / 5 {
                is_asking = true;
                let bps = load.arrived() as f64 * 8.0 / begun.elapsed().as_secs_f64();
                let (pace, done) = (pace(bps), Arc::clone(&self.foreign));
                let (server, clock) = (self.server, self.clock);
                tasks.spawn(async move {
                    probe(server, clock, pace, done).await;
                    Ok(())
                });
            }
        }
        let to_us = self.clock.now_us();
        load.close();
        drop(tasks);
        let own = load.take_samples();
        let far = self.report(direction).await;
        let span = Span { from_us, to_us };
        Ok(match direction {
            Direction::Download => Loaded { span, sender: far, receiver: own },
            Direction::Upload => Loaded { span, sender: own, receiver: far },
        })
    }

    /// What the server saw of the load; as much of it as comes in time.
    async fn report(&mut self, direction: Direction) -> Vec<Sample> {
        let mut samples = Vec::new();
        let read = async {
            send(&mut self.control, &Request::Report(direction)).await?;
            loop {
                match receive(&mut self.control).await? {
                    Reply::Samples(more)
                        if samples.len() < MAX_LOOKS && more.iter().all(Sample::is_in_time) =>
                    {
                        samples.extend(more);
                    }
                    Reply::End => return io::Result::Ok(()),
                    _ => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
        };
        if !matches!(timeout(REPORT, read).await, Ok(Ok(()))) {
            tracing::warn!("the server's report of the {} did not come whole", direction.as_str());
        }
        samples
    }
}

fn rtt_us(probe: &Probe) -> Option<u64> {
    probe.answer.map(|(_, at)| at.saturating_sub(probe.sent_us))
}
