//! A transfer whose every byte is accounted for, and that goes on over a new stream where one has ended early.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ring::digest::{Context, SHA256};
use serde::Serialize;
use suimon_linux::Namespace;

/// How the digests of what was sent and of what came compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Digests {
    /// What came is what was sent.
    #[serde(rename = "equal")]
    Equal,
    /// It is not.
    #[serde(rename = "DIFFERS")]
    Differ,
}

impl fmt::Display for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Equal { "equal" } else { "DIFFERS" })
    }
}

/// What became of a transfer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    pub(super) bytes: u64,
    /// Streams that it took.
    pub(super) streams: u64,
    /// From the first byte to the last.
    pub(super) time: Duration,
    pub(super) longest_stall: Duration,
    /// The digest of what came is that of what was sent.
    pub(super) intact: bool,
}

impl Outcome {
    pub(super) fn goodput_bps(&self) -> u64 {
        (self.bytes as f64 * 8.0 / self.time.as_secs_f64().max(1e-9)) as u64
    }

    /// How the digests compare.
    pub(super) fn digests(&self) -> Digests {
        if self.intact { Digests::Equal } else { Digests::Differ }
    }
}

/// How far a transfer is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    received: AtomicU64,
    /// The sender shall send no more.
    enough: AtomicBool,
    done: AtomicBool,
}

impl Progress {
    /// Waits until `bytes` have come, or the transfer is over.
    pub(super) fn wait_for(&self, bytes: u64) {
        while self.received.load(Ordering::Relaxed) < bytes && !self.done.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Bytes that have come.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The sender shall come to an end.
    pub(super) fn finish(&self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

/// Who is who.
#[derive(Debug, Clone)]
pub(super) struct Way<'a> {
    /// Who connects, and where to.
    pub(super) near: (&'a Namespace, SocketAddr),
    /// Who is connected to, and where.
    pub(super) far: (&'a Namespace, SocketAddr),
    /// Whether the near one sends.
    pub(super) up: bool,
    /// A connection on which nothing moves for so long is tried anew, and a transfer without progress for twice as long is given up.
    pub(super) patience: Duration,
}

/// Moves up to `most` bytes along `way`, while `progress` tells how far it is.
///
/// # Errors
/// Where nobody can listen, or the transfer makes no progress for twice its patience.
pub(super) fn transfer(way: &Way<'_>, most: u64, progress: &Progress) -> io::Result<Outcome> {
    let (far, target) = way.far;
    let listener = far.run(|| TcpListener::bind(target)).map_err(io::Error::other)??;
    listener.set_nonblocking(true)?;
    let mut sink = Sink::new(most, progress);
    let moved = thread::scope(|scope| {
        let source = scope.spawn(|| {
            repeat(way.patience, progress, || {
                let stream =
                    if way.up { connect(way.near)? } else { accept(&listener, way.patience, progress)? };
                send(stream, most, way.patience, progress)
            })
        });
        let received = repeat(way.patience, progress, || {
            let stream = if way.up { accept(&listener, way.patience, progress)? } else { connect(way.near)? };
            sink.streams += 1;
            sink.receive(stream, way.patience)
        });
        progress.done.store(true, Ordering::Relaxed);
        let _ = source.join();
        received
    });
    moved?;
    Ok(sink.outcome())
}

/// Tries until it is done: streams may end early, and what is waited for may come late.
fn repeat(
    patience: Duration,
    progress: &Progress,
    mut attempt: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let (mut since, mut before) = (Instant::now(), 0);
    loop {
        let Err(error) = attempt() else { return Ok(()) };
        if progress.done.load(Ordering::Relaxed) {
            return Ok(());
        }
        let received = progress.received.load(Ordering::Relaxed);
        if received > before {
            (since, before) = (Instant::now(), received);
        } else if since.elapsed() > patience * 2 {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn connect((namespace, address): (&Namespace, SocketAddr)) -> io::Result<TcpStream> {
    namespace.run(|| TcpStream::connect(address)).map_err(io::Error::other)?
}

fn accept(listener: &TcpListener, patience: Duration, progress: &Progress) -> io::Result<TcpStream> {
    let until = Instant::now() + patience * 2;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if progress.done.load(Ordering::Relaxed) || Instant::now() > until {
                    return Err(error);
                }
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sends from where the receiver is, which it says first.
fn send(mut stream: TcpStream, most: u64, patience: Duration, progress: &Progress) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut from = [0; 8];
    stream.read_exact(&mut from)?;
    let mut at = u64::from_be_bytes(from);
    let mut buffer = vec![0; PIECE];
    while at < most && !progress.enough.load(Ordering::Relaxed) {
        let len = (most - at).min(PIECE as u64) as usize;
        pattern(at, &mut buffer[..len]);
        stream.write_all(&buffer[..len])?;
        at += len as u64;
    }
    // Done once the receiver, who has it all, ends its direction too.
    stream.shutdown(Shutdown::Write)?;
    if stream.read(&mut from)? == 0 { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}

struct Sink<'a> {
    most: u64,
    progress: &'a Progress,
    digest: Context,
    bytes: u64,
    streams: u64,
    began: Option<Instant>,
    last: Instant,
    longest_stall: Duration,
}

impl<'a> Sink<'a> {
    fn new(most: u64, progress: &'a Progress) -> Self {
        Self {
            most,
            progress,
            digest: Context::new(&SHA256),
            bytes: 0,
            streams: 0,
            began: None,
            last: Instant::now(),
            longest_stall: Duration::ZERO,
        }
    }

    fn receive(&mut self, mut stream: TcpStream, patience: Duration) -> io::Result<()> {
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(&self.bytes.to_be_bytes())?;
        let mut buffer = vec![0; PIECE];
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            let now = Instant::now();
            if self.began.is_some() {
                self.longest_stall = self.longest_stall.max(now - self.last);
            }
            self.began.get_or_insert(now);
            self.last = now;
            self.digest.update(&buffer[..count]);
            self.bytes += count as u64;
            self.progress.received.store(self.bytes, Ordering::Relaxed);
        }
        // A stream that ended early must not look like one that came to its end.
        let whole = self.bytes == self.most || self.progress.enough.load(Ordering::Relaxed);
        if whole { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn outcome(self) -> Outcome {
        let mut expected = Context::new(&SHA256);
        let mut buffer = vec![0; PIECE];
        let mut at = 0;
        while at < self.bytes {
            let len = (self.bytes - at).min(PIECE as u64) as usize;
            pattern(at, &mut buffer[..len]);
            expected.update(&buffer[..len]);
            at += len as u64;
        }
        Outcome {
            bytes: self.bytes,
            streams: self.streams,
            time: self.began.map_or(Duration::ZERO, |began| self.last - began),
            longest_stall: self.longest_stall,
            intact: expected.finish().as_ref() == self.digest.finish().as_ref(),
        }
    }
}

/// The bytes that are sent from place `from` on: no two words of eight are alike, so that whatever is out of place shows.
fn pattern(from: u64, out: &mut [u8]) {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014), over the word's number.
    let word = |number: u64| {
        let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_be_bytes()
    };
    let mut at = 0;
    while at < out.len() {
        let place = from + at as u64;
        let bytes = &word(place / 8)[(place % 8) as usize..];
        let len = bytes.len().min(out.len() - at);
        out[at..at + len].copy_from_slice(&bytes[..len]);
        at += len;
    }
}

/// What a transfer without an outage of its own has. Not the 30 s that a program waits for a stream to open, so the length of a stall tells
/// which of the two it was.
pub(super) const PATIENCE: Duration = Duration::from_secs(25);
const PIECE: usize = 1 << 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_same_wherever_it_is_begun() {
        let mut whole = [0; 100];
        pattern(0, &mut whole);
        for from in [0, 1, 7, 8, 13] {
            let mut part = vec![0; 100 - from];
            pattern(from as u64, &mut part);
            assert_eq!(part, whole[from..]);
        }
    }
}
