//! The client's half of recording a line that varies: one direction after the other, filled for as long as the user says.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::arrivals::{Arrivals, Counter, PACKET};
use crate::client::{MeasureError, connect, open, socket_beside};
use crate::clock::Clock;
use crate::datagram::{Datagram, Kind};
use crate::protocol::{Cookie, Hello, Reply, Request, receive, send};
use crate::recording::Direction;
use crate::saturator::Saturator;

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlan {
    /// How long each direction is recorded, beyond the time in which its queue fills.
    pub length: Duration,
    /// Whether to record the download.
    pub download: bool,
    /// Whether to record the upload.
    pub upload: bool,
}

/// How far a recording is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watch {
    /// The direction.
    pub direction: Direction,
    /// How much of the direction's time is over, from 0 to 1.
    pub share: f64,
    /// What arrived in the last tick, in bits per second.
    pub bps: f64,
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Toward the client.
    pub download: Option<Arrivals>,
    /// From the client.
    pub upload: Option<Arrivals>,
}

/// In that time the queue fills, and what arrives does not count.
const FILL: Duration = Duration::from_secs(2);
/// Between one look at how far it is and the next.
const TICK: Duration = Duration::from_millis(200);
/// The client tells that it is there this often, in microseconds.
const CALL_US: u64 = 100_000;
/// How long to wait for datagrams before the window is looked at again.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long the server's report may take, behind what waits in the buffer.
const REPORT: Duration = Duration::from_secs(15);
/// Between directions, so that the queue empties.
const REST: Duration = Duration::from_secs(1);
/// Room for datagrams that come while this host is busy, in bytes.
const ROOM: usize = 4 << 20;

/// Records the line to `server` in the directions that `recorded` lacks. Once `stop` holds true, what came until then is there,
/// unless the queue was still filling.
///
/// # Errors
/// Where there is no session, or nothing arrives. What was recorded before stays.
pub async fn record(
    server: SocketAddr,
    plan: &RecordPlan,
    stop: watch::Receiver<bool>,
    progress: impl Fn(Watch) + Send,
    recorded: &mut Recorded,
) -> Result<(), MeasureError> {
    for (direction, is_wanted, part) in [
        (Direction::Download, plan.download, &mut recorded.download),
        (Direction::Upload, plan.upload, &mut recorded.upload),
    ] {
        if !is_wanted || part.is_some() || *stop.borrow() {
            continue;
        }
        let arrivals = one(server, plan.length, direction, &stop, &progress).await?;
        let arrivals = arrivals.from(FILL.as_millis() as usize);
        if !arrivals.packets.is_empty() {
            *part = Some(arrivals);
        } else if !*stop.borrow() {
            return Err(MeasureError::NoDatagrams(server));
        }
        sleep(REST).await;
    }
    Ok(())
}

async fn one(
    server: SocketAddr,
    length: Duration,
    direction: Direction,
    stop: &watch::Receiver<bool>,
    progress: &impl Fn(Watch),
) -> Result<Arrivals, MeasureError> {
    let mut control =
        connect(server).await.map_err(|error| MeasureError::Connect { address: server, error })?;
    let (cookie, _) = open(&mut control, &Hello::Recording).await?;
    let here = End::new(&control, server, cookie).map_err(MeasureError::Host)?;
    let thread = here.start(direction).map_err(MeasureError::Host)?;
    let (begun, whole) = (Instant::now(), FILL + length);
    let mut before = 0;
    while begun.elapsed() < whole && !*stop.borrow() {
        sleep(TICK).await;
        let arrived = here.arrived.load(Ordering::Relaxed);
        progress(Watch {
            direction,
            share: (begun.elapsed().as_secs_f64() / whole.as_secs_f64()).min(1.0),
            bps: ((arrived - before) * PACKET * 8) as f64 / TICK.as_secs_f64(),
        });
        before = arrived;
    }
    here.is_over.store(true, Ordering::Relaxed);
    // It ends within its patience.
    let _ = thread.join();
    Ok(match direction {
        Direction::Download => here.counter.lock().expect("its thread is over").arrivals().clone(),
        Direction::Upload => report(&mut control).await.map_err(MeasureError::Server)?,
    })
}

/// What arrived of the upload, by the server.
async fn report(control: &mut TcpStream) -> io::Result<Arrivals> {
    let read = async {
        send(control, &Request::Arrivals).await?;
        let mut arrivals = Arrivals::default();
        loop {
            match receive(control).await? {
                Reply::Arrivals(next) if arrivals.packets.len() <= crate::MAX_MS => arrivals.extend(next),
                Reply::End => return Ok(arrivals),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    };
    timeout(REPORT, read).await?
}

/// This end of a recording.
#[derive(Debug, Clone)]
struct End {
    socket: Arc<UdpSocket>,
    cookie: Cookie,
    clock: Clock,
    is_ipv6: bool,
    is_over: Arc<AtomicBool>,
    /// Packets that have arrived, here or at the server.
    arrived: Arc<AtomicU64>,
    counter: Arc<Mutex<Counter>>,
}

impl End {
    fn new(control: &TcpStream, server: SocketAddr, cookie: Cookie) -> io::Result<Self> {
        let socket = socket_beside(control, server)?;
        // A host that gives less has less.
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(ROOM);
        socket.set_read_timeout(Some(PATIENCE))?;
        let (is_over, arrived, counter) = Default::default();
        let is_ipv6 = server.ip().to_canonical().is_ipv6();
        Ok(Self { socket: Arc::new(socket), cookie, clock: Clock::new(), is_ipv6, is_over, arrived, counter })
    }

    fn start(&self, direction: Direction) -> io::Result<thread::JoinHandle<()>> {
        let end = self.clone();
        thread::Builder::new().name("recording".to_owned()).spawn(move || match direction {
            Direction::Download => end.receive(),
            Direction::Upload => end.send(),
        })
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn heard(&self, bytes: &mut [u8]) -> Option<(Kind, Datagram)> {
        let length = self.socket.recv(bytes).ok()?;
        Datagram::read(&bytes[..length]).filter(|(_, datagram)| datagram.cookie == self.cookie)
    }

    /// Receives a download, and tells what arrived.
    fn receive(&self) {
        let mut bytes = [0; PACKET as usize];
        let mut called = None;
        while !self.is_over() {
            let now = self.clock.now_us();
            if called.is_none_or(|at| now >= at + CALL_US) {
                called = Some(now);
                let call = Datagram { cookie: self.cookie, number: 0, time_us: 0 };
                // A datagram that this host cannot send is one that gets lost.
                let _ = self.socket.send(&call.bytes(Kind::Call));
            }
            let Some((Kind::Data, data)) = self.heard(&mut bytes) else { continue };
            let now = self.clock.now_us();
            self.counter.lock().expect("no one panics while holding it").count(now, data.time_us);
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let _ = self.socket.send(&data.bytes(Kind::Acknowledgement));
        }
    }

    /// Sends an upload.
    fn send(&self) {
        let mut bytes = [0; PACKET as usize];
        let mut saturator = Saturator::default();
        while !self.is_over() {
            while let Some(number) = saturator.poll(self.clock.now_us()) {
                let data = Datagram { cookie: self.cookie, number, time_us: self.clock.now_us() };
                let _ = self.socket.send(&data.data(self.is_ipv6));
            }
            if let Some((Kind::Acknowledgement, heard)) = self.heard(&mut bytes) {
                saturator.acknowledge(heard.number, heard.time_us, self.clock.now_us());
                self.arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
