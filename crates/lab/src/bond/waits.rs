//! How long what is small waits beside what is large: requests, the datagrams of a call, and all of them while a path is cut.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts, Way};
use suimon_linux::Namespace;
use suimon_scenario::Link;
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units as units;

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::{links, long};
use crate::error::LabError;

/// Measure how long small requests and a call's datagrams wait beside a download, and while a path is cut
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default, deny_unknown_fields)]
pub struct Waits {
    /// The links; the first is the best
    #[arg(long, value_name = "LINKS", default_value = "10Mbit 20ms 60packets; 5Mbit 80ms 60packets")]
    pub paths: Parsed<Paths>,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// Congestion control of the bond's connections
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: String,
    /// How long each of the parts is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Parsed<units::Duration>,
    /// Cuts of each path
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub cuts: u32,
    /// How long a cut lasts, in both directions
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub lasting: Parsed<units::Duration>,
    /// How the bond takes the call; requests are measured beside the first
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', value_enum, default_values = ["default", "realtime", "redundant"])]
    pub call: Vec<CallClass>,
    /// Measure the call alone, without requests
    #[arg(long)]
    pub only_call: bool,
    /// Builds of suimon whose bonds are measured in one run, instead of this one; several by repeating it
    #[arg(long, value_name = "FILE")]
    pub build: Vec<PathBuf>,
}

/// What the client is told of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallClass {
    /// Nothing
    Default,
    /// `--realtime udp/3478`
    Realtime,
    /// `--redundant udp/3478`
    Redundant,
}

impl CallClass {
    fn options(self) -> Vec<String> {
        let flow = format!("udp/{CALL}");
        match self {
            Self::Default => Vec::new(),
            Self::Realtime => vec!["--realtime".to_owned(), flow],
            Self::Redundant => vec!["--redundant".to_owned(), flow],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Realtime => ", call --realtime",
            Self::Redundant => ", call --redundant",
        }
    }
}

/// As the options say.
impl Default for Waits {
    fn default() -> Self {
        defaults()
    }
}

/// One measured quantity.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What carried it: the best path alone, or the bond of a build.
    pub over: String,
    /// What was measured.
    pub what: String,
    /// Beside what.
    pub beside: String,
    /// How often.
    pub count: u64,
    /// Half took no longer, in milliseconds.
    pub median_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// The part that never came, of datagrams.
    pub lost: Option<f64>,
}

impl Waits {
    /// Measures the best path alone, and the bond that `program` runs, and each other build; `tell` gets each row when it is
    /// there.
    ///
    /// # Errors
    /// When the bond does not come up, or a connection over it fails.
    pub fn measure(&self, program: &Path, tell: impl Fn(&Row)) -> Result<Vec<Row>, LabError> {
        let mut rows = Vec::new();
        let mut push = |row: Row| {
            tell(&row);
            rows.push(row);
        };
        self.alone(&mut push)?;
        for (nth, class) in self.call.iter().enumerate() {
            let asks = nth == 0 && !self.only_call;
            for build in &self.build {
                self.bonded(build, &build.display().to_string(), (*class, asks), &mut push)?;
            }
            if self.build.is_empty() {
                self.bonded(program, "bond", (*class, asks), &mut push)?;
            }
        }
        Ok(rows)
    }

    /// Over the best path, with nothing else on it.
    fn alone(&self, push: &mut impl FnMut(Row)) -> Result<(), LabError> {
        let hosts = TwoHosts::new(&Setup::default(), &self.links())?;
        let far = IpAddr::from(hosts.paths[0].far);
        let server = Server::start(&hosts.far, SocketAddr::new(far, TARGET.port()))?;
        let world = World {
            near: &hosts.near,
            entry: server.address,
            callee: SocketAddr::new(far, CALL),
            far: &hosts.far,
        };
        for kept in [false, true].into_iter().filter(|_| !self.only_call) {
            push(world.requests(kept, self.length())?.row("best path alone", request(kept), "nothing"));
        }
        for (up, call) in [true, false].into_iter().zip(world.call(self.length())?) {
            push(call.row("best path alone", datagrams(up), "nothing"));
        }
        Ok(())
    }

    /// Over the bond, where the call is of a class; with requests where it `asks`.
    fn bonded(
        &self,
        program: &Path,
        over: &str,
        (class, asks): (CallClass, bool),
        push: &mut impl FnMut(Row),
    ) -> Result<(), LabError> {
        let over = &format!("{over}{}", class.name());
        let hosts = TwoHosts::new(&Setup::default(), &self.links())?;
        hosts.far.add_address("lo", CALLEE, 32)?;
        let options = Options::new(program, &self.scheduler.0);
        let options = Options { cc: self.cc.clone(), tun: true, client: class.options(), ..options };
        let _bond = Bond::start(&Hosts::emulated(&hosts), &options)?;
        let _server = Server::start(&hosts.far, TARGET)?;
        let callee = SocketAddr::new(CALLEE, CALL);
        let world = World { near: &hosts.near, entry: ENTRY, callee, far: &hosts.far };
        for (beside, is_on) in [("nothing", false), ("a download", true)] {
            let bulk = Bulk::default();
            thread::scope(|scope| {
                let _ends = OnDrop(&bulk.over);
                if is_on {
                    let stream = world.connect(BULK)?;
                    scope.spawn(|| bulk.read(stream));
                    thread::sleep(WARMUP);
                }
                for kept in [false, true].into_iter().filter(|_| asks) {
                    push(world.requests(kept, self.length())?.row(over, request(kept), beside));
                }
                for (up, call) in [true, false].into_iter().zip(world.call(self.length())?) {
                    push(call.row(over, datagrams(up), beside));
                }
                Ok::<_, LabError>(())
            })?;
        }
        for path in (0..hosts.paths.len()).filter(|_| self.cuts > 0) {
            self.through_cuts((&hosts, &world), path, (over, asks), push)?;
        }
        Ok(())
    }

    /// All at once, while a path is cut again and again.
    fn through_cuts(
        &self,
        (hosts, world): (&TwoHosts, &World<'_>),
        path: usize,
        (over, asks): (&str, bool),
        push: &mut impl FnMut(Row),
    ) -> Result<(), LabError> {
        let bulk = Bulk::default();
        let lasting = long(*self.lasting);
        let length = (lasting + RECOVERY) * self.cuts;
        let beside = format!("a download, path {} cut", path + 1);
        thread::scope(|scope| {
            let _ends = OnDrop(&bulk.over);
            let stream = world.connect(BULK)?;
            scope.spawn(|| bulk.read(stream));
            thread::sleep(WARMUP);
            let requests = asks.then(|| scope.spawn(move || world.requests(true, length)));
            let calls = scope.spawn(move || world.call(length));
            let mut stalls = Times::default();
            for _ in 0..self.cuts {
                thread::sleep(RECOVERY / 2);
                bulk.longest_us.store(0, Ordering::Relaxed);
                hosts.emulation.cut(path, Way::Both);
                thread::sleep(lasting);
                hosts.emulation.restore(path, Way::Both);
                stalls.0.push(Duration::from_micros(bulk.longest_us.load(Ordering::Relaxed)));
                thread::sleep(RECOVERY / 2);
            }
            push(stalls.row(over, "stall of the download", &beside));
            if let Some(requests) = requests {
                let joined = requests.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                push(joined?.row(over, request(true), &beside));
            }
            let calls = calls.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            for (up, call) in [true, false].into_iter().zip(calls) {
                push(call.row(over, datagrams(up), &beside));
                push(call.silences().row(over, silence(up), &beside));
            }
            Ok(())
        })
    }

    /// As fast in both directions.
    fn links(&self) -> Vec<[Link; 2]> {
        let mut links = links(&self.paths.0);
        for [there, back] in &mut links {
            (back.capacity, back.buffer) = (there.capacity.clone(), there.buffer);
        }
        links
    }

    fn length(&self) -> Duration {
        long(*self.time)
    }
}

fn request(kept: bool) -> &'static str {
    if kept { "request" } else { "request on a new connection" }
}

fn datagrams(up: bool) -> &'static str {
    if up { "datagram up" } else { "datagram down" }
}

fn silence(up: bool) -> &'static str {
    if up { "silence of the call up" } else { "silence of the call down" }
}

/// Two hosts, and how programs of the one reach the other.
#[derive(Debug, Clone, Copy)]
struct World<'a> {
    near: &'a Namespace,
    far: &'a Namespace,
    /// Where requests go.
    entry: SocketAddr,
    /// Where a call goes.
    callee: SocketAddr,
}

/// How long things took.
#[derive(Debug, Default)]
struct Times(Vec<Duration>);

impl Times {
    fn row(mut self, over: &str, what: &str, beside: &str) -> Row {
        self.0.sort();
        let at = |share: f64| {
            let nth = ((self.0.len() as f64 * share).ceil() as usize).saturating_sub(1);
            self.0.get(nth).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        Row {
            over: over.to_owned(),
            what: what.to_owned(),
            beside: beside.to_owned(),
            count: self.0.len() as u64,
            median_ms: at(0.5),
            p99_ms: at(0.99),
            longest_ms: at(1.0),
            lost: None,
        }
    }
}

/// One direction of a call: when each datagram was sent, and when it came.
#[derive(Debug)]
struct Call {
    sent: Vec<Duration>,
    came: Vec<Option<Duration>>,
}

impl Call {
    fn row(&self, over: &str, what: &str, beside: &str) -> Row {
        let delays = self
            .sent
            .iter()
            .zip(&self.came)
            .filter_map(|(sent, came)| Some(came.as_ref()?.saturating_sub(*sent)));
        let times = Times(delays.collect());
        let lost = 1.0 - times.0.len() as f64 / self.sent.len().max(1) as f64;
        Row { lost: Some(lost), ..times.row(over, what, beside) }
    }

    /// The times without anything that a listener has not heard yet.
    fn silences(&self) -> Times {
        let mut came: Vec<_> = self.came.iter().flatten().copied().collect();
        came.sort();
        Times(came.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }
}

impl World<'_> {
    fn connect(&self, kind: u8) -> io::Result<TcpStream> {
        let mut stream = self.near.run(|| TcpStream::connect(self.entry)).map_err(io::Error::other)??;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STUCK))?;
        stream.set_write_timeout(Some(STUCK))?;
        stream.write_all(&[kind])?;
        Ok(stream)
    }

    /// One request after the other for so long, all over one connection where it is `kept`.
    fn requests(&self, kept: bool, length: Duration) -> Result<Times, LabError> {
        let mut connection = if kept { Some(self.connect(ASK)?) } else { None };
        let (mut times, until) = (Times::default(), Instant::now() + length);
        let mut answer = [0; ANSWER];
        while Instant::now() < until {
            let began = Instant::now();
            let mut stream = match connection.take() {
                Some(stream) => stream,
                None => self.connect(ASK)?,
            };
            stream.write_all(&[0; REQUEST])?;
            stream.read_exact(&mut answer)?;
            times.0.push(began.elapsed());
            connection = kept.then_some(stream);
            thread::sleep(PAUSE);
        }
        Ok(times)
    }

    /// Datagrams both ways for so long: up and down.
    fn call(&self, length: Duration) -> Result<[Call; 2], LabError> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let near = self.near.run(|| UdpSocket::bind(any))??;
        let far = self.far.run(|| UdpSocket::bind(self.callee))??;
        near.connect(self.callee)?;
        // The far end learns where the near one is.
        near.send(&[0])?;
        far.set_read_timeout(Some(STUCK))?;
        let (_, caller) = far.recv_from(&mut [0; 8])?;
        far.connect(caller)?;
        let began = Instant::now();
        let over = AtomicBool::new(false);
        Ok(thread::scope(|scope| {
            let receive = |socket: UdpSocket| {
                let over = &over;
                scope.spawn(move || hear(&socket, began, over))
            };
            let send = |socket: UdpSocket| scope.spawn(move || speak(&socket, began, length));
            let heard = [receive(far.try_clone()?), receive(near.try_clone()?)];
            let spoken = [send(near), send(far)].map(|thread| thread.join().unwrap_or_default());
            thread::sleep(LINGER);
            over.store(true, Ordering::Relaxed);
            let heard = heard.map(|thread| thread.join().unwrap_or_default());
            let mut heard = heard.into_iter();
            Ok::<_, io::Error>(spoken.map(|sent| {
                let mut came = vec![None; sent.len()];
                for (number, at) in heard.next().unwrap_or_default() {
                    if let Some(place @ None) = came.get_mut(number) {
                        *place = Some(at);
                    }
                }
                Call { sent, came }
            }))
        })?)
    }
}

/// Sends numbered datagrams at an even rate; when each was sent.
fn speak(socket: &UdpSocket, began: Instant, length: Duration) -> Vec<Duration> {
    let mut sent = Vec::new();
    let mut datagram = [0; DATAGRAM];
    while began.elapsed() < length {
        datagram[..8].copy_from_slice(&(sent.len() as u64).to_be_bytes());
        sent.push(began.elapsed());
        // What finds no room is lost, as datagrams are.
        let _ = socket.send(&datagram);
        thread::sleep((began + EVERY * sent.len() as u32).saturating_duration_since(Instant::now()));
    }
    sent
}

/// The number of each datagram that comes, and when.
fn hear(socket: &UdpSocket, began: Instant, over: &AtomicBool) -> Vec<(usize, Duration)> {
    let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
    let (mut came, mut datagram) = (Vec::new(), [0; DATAGRAM]);
    while !over.load(Ordering::Relaxed) {
        if let Ok(DATAGRAM) = socket.recv(&mut datagram) {
            let number = datagram[..8].try_into().map(u64::from_be_bytes).expect("eight bytes");
            came.push((usize::try_from(number).unwrap_or(usize::MAX), began.elapsed()));
        }
    }
    came
}

/// A download, and the longest time in which nothing of it came.
#[derive(Debug, Default)]
struct Bulk {
    over: AtomicBool,
    longest_us: AtomicU64,
}

impl Bulk {
    fn read(&self, mut stream: TcpStream) {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
        let (mut buffer, mut last) = (vec![0; 1 << 16], Instant::now());
        while !self.over.load(Ordering::Relaxed) {
            if stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                self.longest_us.fetch_max(last.elapsed().as_micros() as u64, Ordering::Relaxed);
                last = Instant::now();
            }
        }
    }
}

/// Answers requests, and sends without end, until it is dropped.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    over: std::sync::Arc<AtomicBool>,
    accepting: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Server {
    fn start(namespace: &Namespace, address: SocketAddr) -> Result<Self, LabError> {
        let listener = namespace.run(|| TcpListener::bind(address))??;
        listener.set_nonblocking(true)?;
        let over = std::sync::Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let accepting = thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => {
                        thread::spawn(move || serve(stream));
                    }
                    Err(_) => thread::sleep(Duration::from_micros(500)),
                }
            }
        });
        Ok(Self { address, over, accepting: Mutex::new(Some(accepting)) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Ok(mut accepting) = self.accepting.lock() {
            let _ = accepting.take().map(thread::JoinHandle::join);
        }
    }
}

/// Until the other end is gone.
fn serve(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_nodelay(true);
    let mut kind = [0];
    if stream.read_exact(&mut kind).is_err() {
        return;
    }
    if kind[0] == BULK {
        let data = vec![0x5a; 1 << 16];
        while stream.write_all(&data).is_ok() {}
        return;
    }
    let mut request = [0; REQUEST];
    while stream.read_exact(&mut request).is_ok() && stream.write_all(&[0; ANSWER]).is_ok() {}
}

/// Ends something, also by an error.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a connection begins with.
const ASK: u8 = b'a';
const BULK: u8 = b'b';
/// Bytes of a request and of its answer, as of a page's parts: one segment each.
const REQUEST: usize = 200;
const ANSWER: usize = 1_000;
/// Between requests.
const PAUSE: Duration = Duration::from_millis(50);
/// A call of 1 Mbit/s each way.
const DATAGRAM: usize = 1_000;
const EVERY: Duration = Duration::from_millis(8);
const CALLEE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5));
const CALL: u16 = 3_478;
/// Datagrams that come later than this are lost.
const LINGER: Duration = Duration::from_secs(2);
/// A download is under way by then.
const WARMUP: Duration = Duration::from_secs(4);
/// A path is in use again by then.
const RECOVERY: Duration = Duration::from_secs(3);
const STUCK: Duration = Duration::from_secs(20);
