//! What programs do over paths while they are measured: requests, a call's datagrams, a download, and all of them through cuts.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_emulator::{TwoHosts, Way};
use suimon_linux::Namespace;
use suimon_units::{self as units, Bytes, Rate};

use super::sockets::Transport;
use crate::error::LabError;

/// Two hosts, and how programs of the one reach the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) near: &'a Namespace,
    pub(super) far: &'a Namespace,
    /// Where requests and downloads go, and by what.
    pub(super) entry: SocketAddr,
    pub(super) transport: Transport,
    /// Where a call goes.
    pub(super) callee: SocketAddr,
}

/// How long things took.
#[derive(Debug, Default)]
pub(super) struct Times(pub(super) Vec<Duration>);

impl Times {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that a share of them is not longer than, in milliseconds.
    pub(super) fn quantile_ms(&mut self, share: f64) -> f64 {
        self.0.sort();
        let nth = ((self.0.len() as f64 * share).ceil() as usize).saturating_sub(1);
        self.0.get(nth).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

/// One direction of a call: when each datagram was sent, and when it came.
#[derive(Debug)]
pub(super) struct Call {
    sent: Vec<Duration>,
    came: Vec<Option<Duration>>,
}

impl Call {
    /// The delays of the datagrams that came.
    pub(super) fn delays(&self) -> Times {
        let pairs = self.sent.iter().zip(&self.came);
        Times(pairs.filter_map(|(sent, came)| Some(came.as_ref()?.saturating_sub(*sent))).collect())
    }

    /// The part of the datagrams that never came.
    pub(super) fn lost(&self) -> f64 {
        1.0 - self.came.iter().flatten().count() as f64 / self.sent.len().max(1) as f64
    }

    /// The times without anything that a listener has not heard yet, also those before the first datagram that came and
    /// after the last, by when the path would have brought the others.
    pub(super) fn silences(&self) -> Times {
        let delay = self.delays().0.into_iter().min().unwrap_or_default();
        let [first, last] = [self.sent.first(), self.sent.last()].map(|sent| sent.map(|sent| *sent + delay));
        let came = self.came.iter().flatten().copied();
        let mut heard: Vec<_> = came.chain(first).chain(last).collect();
        heard.sort();
        Times(heard.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }
}

impl World<'_> {
    fn connect(&self, kind: u8) -> io::Result<TcpStream> {
        let connect = || self.transport.connect(self.entry, None);
        let mut stream = self.near.run(connect).map_err(io::Error::other)??;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STUCK))?;
        stream.set_write_timeout(Some(STUCK))?;
        stream.write_all(&[kind])?;
        Ok(stream)
    }

    /// One request after the other for so long, all over one connection where it is `kept`.
    pub(super) fn requests(&self, kept: bool, length: Duration) -> Result<Times, LabError> {
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
    pub(super) fn call(&self, length: Duration) -> Result<[Call; 2], LabError> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let near = self.near.run(|| UdpSocket::bind(any))??;
        let far = self.far.run(|| UdpSocket::bind(self.callee))??;
        near.connect(self.callee)?;
        far.connect(caller_of(&near, &far)?)?;
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

/// The address of `near` as `far` sees it. What `near` says of itself may be lost, and is said again.
fn caller_of(near: &UdpSocket, far: &UdpSocket) -> io::Result<SocketAddr> {
    far.set_read_timeout(Some(Duration::from_millis(200)))?;
    let until = Instant::now() + STUCK;
    loop {
        near.send(&[0])?;
        match far.recv_from(&mut [0; 8]) {
            Ok((_, caller)) => return Ok(caller),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => {}
        }
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

/// A download, how much of it came, and the longest time in which nothing did.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    over: AtomicBool,
    received: AtomicU64,
    longest_us: AtomicU64,
}

impl Bulk {
    /// Downloads while `meanwhile` happens.
    pub(super) fn beside<T>(
        world: &World<'_>,
        meanwhile: impl FnOnce(&Self) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let bulk = Self::default();
        let stream = world.connect(BULK)?;
        thread::scope(|scope| {
            let reading = scope.spawn(|| bulk.read(stream));
            let found = {
                let _ends = OnDrop(&bulk.over);
                thread::sleep(WARMUP);
                meanwhile(&bulk)
            };
            // A download that broke off says nothing of goodput or stalls.
            joined(reading)?;
            found
        })
    }

    fn read(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        let (mut buffer, mut last) = (vec![0; 1 << 16], Instant::now());
        while !self.over.load(Ordering::Relaxed) {
            let read = stream.read(&mut buffer);
            self.longest_us.fetch_max(last.elapsed().as_micros() as u64, Ordering::Relaxed);
            match read {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the download has ended")),
                Ok(count) => {
                    self.received.fetch_add(count as u64, Ordering::Relaxed);
                    last = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until something more has come, at most until it is stuck.
    fn more(&self) {
        let (before, began) = (self.received.load(Ordering::Relaxed), Instant::now());
        while self.received.load(Ordering::Relaxed) == before && began.elapsed() < STUCK {
            thread::sleep(LOOK);
        }
    }

    /// The goodput while `meanwhile` happens, and what comes of that.
    pub(super) fn goodput<T>(&self, meanwhile: impl FnOnce() -> T) -> (Rate, T) {
        let (began, before) = (Instant::now(), self.received.load(Ordering::Relaxed));
        let found = meanwhile();
        let received = Bytes::new(self.received.load(Ordering::Relaxed) - before);
        (Rate::of(received, units::Duration::from_nanos(began.elapsed().as_nanos() as u64)), found)
    }

    /// Cuts `path` for `lasting`, `cuts` times; the longest times without anything, from each cut until the path is in use again.
    pub(super) fn through_cuts(
        &self,
        hosts: &TwoHosts,
        path: usize,
        (cuts, lasting): (u32, Duration),
    ) -> Times {
        let stall = |_| {
            thread::sleep(RECOVERY / 2);
            self.longest_us.store(0, Ordering::Relaxed);
            hosts.emulation.cut(path, Way::Both);
            thread::sleep(lasting);
            hosts.emulation.restore(path, Way::Both);
            thread::sleep(RECOVERY / 2);
            self.more();
            Duration::from_micros(self.longest_us.load(Ordering::Relaxed))
        };
        Times((0..cuts).map(stall).collect())
    }
}

/// Answers requests, and sends without end, until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    over: std::sync::Arc<AtomicBool>,
    accepting: Mutex<Option<thread::JoinHandle<()>>>,
}

impl Server {
    pub(super) fn start(namespace: &Namespace, address: SocketAddr) -> Result<Self, LabError> {
        let listener = namespace.run(|| Transport::Mptcp.listen(address))??;
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

/// The result of a thread; panics as it did.
pub(super) fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
/// The port of a call.
pub(super) const CALL: u16 = 3_478;
/// Datagrams that come later than this are lost.
const LINGER: Duration = Duration::from_secs(2);
/// A download is under way by then.
const WARMUP: Duration = Duration::from_secs(4);
/// A path is in use again by then.
pub(super) const RECOVERY: Duration = Duration::from_secs(3);
const STUCK: Duration = Duration::from_secs(20);
/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_dies_is_silent_for_the_rest_of_it() {
        let ms = Duration::from_millis;
        let sent: Vec<_> = (0..100).map(|number| ms(10 * number)).collect();
        let came_until = |end: usize| {
            let came = sent.iter().enumerate().map(|(number, at)| (number < end).then_some(*at + ms(40)));
            Call { sent: sent.clone(), came: came.collect() }
        };
        for (end, silence_ms) in [(100, 10.0), (50, 500.0), (0, 990.0)] {
            assert_eq!(came_until(end).silences().quantile_ms(1.0), silence_ms, "{end}");
        }
    }

    #[test]
    fn a_download_that_ends_is_an_error_and_no_stall() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.write_all(&[0; 1_000]).unwrap();
        drop(far);
        let bulk = Bulk::default();
        assert_eq!(bulk.read(near).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(bulk.received.load(Ordering::Relaxed), 1_000);
    }

    /// Shorter than the pause in which the reader looks whether it shall end.
    #[test]
    fn a_short_stall_is_as_long_as_it_was() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let bulk = Bulk::default();
        thread::scope(|scope| {
            let reading = scope.spawn(|| bulk.read(near));
            far.write_all(&[0; 10]).unwrap();
            thread::sleep(Duration::from_millis(60));
            far.write_all(&[0; 10]).unwrap();
            drop(far);
            reading.join().unwrap().unwrap_err();
        });
        let longest = Duration::from_micros(bulk.longest_us.load(Ordering::Relaxed));
        assert!(longest >= Duration::from_millis(50), "{longest:?}");
    }
}
