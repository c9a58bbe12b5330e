//! The connections of a load, from either end: they send or throw away, and are looked at meanwhile.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use suimon_linux::tcp;
use suimon_units::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock::Clock;
use crate::recording::Sample;

/// Between one look at the connections and the next.
const LOOK: Duration = Duration::from_millis(20);
/// The most looks that are kept: what 32 connections make in 20 s.
pub(crate) const MAX_LOOKS: usize = 32_000;
/// The most that waits in a socket before it is sent, so that little is lost at the end.
const UNSENT: Bytes = Bytes::new(256 << 10);
/// What is written at once.
const CHUNK: usize = 128 << 10;
/// Received data is thrown away by so many bytes at once.
const GULP: usize = 4 << 20;
/// A load that is slower, in bits per second, has each of its segments acknowledged at once. Otherwise the first of two
/// waits for the second (RFC 5681 §4.2), and the sender's round-trip time with it, which matters where segments come far
/// apart. At this rate the acknowledgements take 0.35 Mbit/s the other way.
const SLOW_BPS: f64 = 10e6;
/// The sender that fills the buffer: its slow start goes on until something is lost, where CUBIC's ends as the delay
/// grows (RFC 9406).
const FILLING: &str = "reno";
/// The sender from then on, so that what two hosts measure compares: that of most hosts.
const HOLDING: &str = "cubic";

/// The connections of one direction at one end.
#[derive(Debug)]
pub(crate) struct Load {
    clock: Clock,
    flows: Mutex<Vec<(u8, Arc<OwnedFd>)>>,
    looks: Mutex<Vec<Look>>,
    /// Payload so far, in bytes.
    moved: AtomicU64,
    /// The part of it that is known to have arrived.
    arrived: AtomicU64,
    /// Whether sending and receiving are to end.
    is_over: AtomicBool,
    /// Whether connections still fill the buffer for the first time.
    has_filled: AtomicBool,
    /// The sender of this host, which takes over where it allows no other.
    own: Mutex<String>,
}

impl Load {
    pub(crate) fn new(clock: Clock) -> Self {
        let (flows, looks, moved, arrived, is_over) = Default::default();
        let (has_filled, own) = Default::default();
        Self { clock, flows, looks, moved, arrived, is_over, has_filled, own }
    }

    /// Payload that went through so far, in bytes.
    pub(crate) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Payload that the last look found to have arrived, in bytes.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Ends it at the next writing or reading.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What was seen so far, which is forgotten here.
    pub(crate) fn take_samples(&self) -> Vec<Sample> {
        self.take_looks().into_iter().map(|look| look.sample).collect()
    }

    /// The same with what only a host whose other end tells nothing needs.
    pub(crate) fn take_looks(&self) -> Vec<Look> {
        std::mem::take(&mut *self.looks())
    }

    /// A last look at the connections, which are let go.
    pub(crate) fn close(&self) {
        self.look();
        self.flows().clear();
    }

    fn flows(&self) -> MutexGuard<'_, Vec<(u8, Arc<OwnedFd>)>> {
        self.flows.lock().expect("no one panics while holding it")
    }

    fn looks(&self) -> MutexGuard<'_, Vec<Look>> {
        self.looks.lock().expect("no one panics while holding it")
    }

    /// Sends over `stream` until the other end closes it, or `most` bytes have gone over all of this load.
    pub(crate) async fn send(&self, flow: u8, stream: TcpStream, most: u64) -> io::Result<()> {
        let socket = socket_of(&stream)?;
        self.send_chunks(flow, socket, stream, most, &NOISE).await
    }

    /// The same by repetitions of `chunk`, where `stream` goes over `socket`.
    pub(crate) async fn send_chunks(
        &self,
        flow: u8,
        socket: OwnedFd,
        mut stream: impl AsyncWrite + Unpin,
        most: u64,
        chunk: &[u8],
    ) -> io::Result<()> {
        let socket = Arc::new(socket);
        tcp::limit_unsent(&*socket, UNSENT)?;
        self.fill(&socket);
        self.flows().push((flow, Arc::clone(&socket)));
        let mut rest = chunk;
        while self.moved() < most && !self.is_over.load(Ordering::Relaxed) {
            match stream.write(rest).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    self.count(count);
                    rest = if count < rest.len() { &rest[count..] } else { chunk };
                }
            }
        }
        self.leave(&socket);
        Ok(())
    }

    /// Throws away what comes over `stream` until the other end closes it, or `most` bytes have come over all of this load.
    pub(crate) async fn receive(&self, flow: u8, stream: TcpStream, most: u64) -> io::Result<()> {
        let socket = Arc::new(socket_of(&stream)?);
        self.flows().push((flow, Arc::clone(&socket)));
        let begun = Instant::now();
        while self.moved() < most && !self.is_over.load(Ordering::Relaxed) {
            stream.readable().await?;
            match stream.try_io(Interest::READABLE, || tcp::discard(&stream, GULP)) {
                Ok(0) => break,
                Ok(count) => {
                    self.count(count);
                    if self.moved() as f64 * 8.0 < SLOW_BPS * begun.elapsed().as_secs_f64() {
                        tcp::acknowledge(&stream)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        self.leave(&socket);
        Ok(())
    }

    fn count(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A last look at `socket`, which is let go.
    fn leave(&self, socket: &Arc<OwnedFd>) {
        self.look();
        self.flows().retain(|(_, other)| !Arc::ptr_eq(other, socket));
    }

    /// Lets `socket` fill the buffer, where the host allows it and the buffer was not full before.
    fn fill(&self, socket: &OwnedFd) {
        let Ok(own) = tcp::chosen(socket) else { return };
        if self.has_filled.load(Ordering::Relaxed) {
            hold_by(socket, &own);
        } else if tcp::choose(socket, FILLING).is_ok() {
            *self.own.lock().expect("no one panics while holding it") = own;
        }
    }

    /// Hands the connections over once something was lost or marked.
    fn hold(&self, looks: &[Look]) {
        let is_signal = |Look { sample, .. }: &Look| sample.retransmissions + sample.marked > 0;
        if self.has_filled.load(Ordering::Relaxed) || !looks.iter().any(is_signal) {
            return;
        }
        self.has_filled.store(true, Ordering::Relaxed);
        let own = self.own.lock().expect("no one panics while holding it");
        self.flows().iter().for_each(|(_, socket)| hold_by(socket, &own));
    }

    /// Looks at the connections again and again, for ever.
    pub(crate) async fn watch(&self) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            self.look();
        }
    }

    fn look(&self) {
        let seen: Vec<_> =
            self.flows().iter().filter_map(|(flow, socket)| look(*flow, socket, self.clock)).collect();
        self.hold(&seen);
        let arrived = seen.iter().map(|Look { sample, .. }| sample.acknowledged.max(sample.received)).sum();
        self.arrived.fetch_max(arrived, Ordering::Relaxed);
        let mut looks = self.looks();
        let room = MAX_LOOKS.saturating_sub(looks.len());
        looks.extend(seen.into_iter().take(room));
    }
}

/// A look at a connection: what is told to the other end, and what stands in for what the other end cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// What the other end is told.
    pub sample: Sample,
    /// Segments sent that have arrived, in any order.
    pub delivered: u64,
    /// Payload of full segments sent, in bytes.
    pub segment: u64,
    /// Segments that came before one that was sent earlier.
    pub out_of_order: u64,
    /// The receiver's round-trip time, in microseconds; zero before the first.
    pub receiver_rtt_us: u64,
}

/// Another descriptor of the socket of `stream`, by which it can be looked at whoever has the stream.
pub(crate) fn socket_of(stream: &TcpStream) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

/// Lets `socket` go on by [`HOLDING`], or else by the sender of this host.
fn hold_by(socket: &OwnedFd, own: &str) {
    if tcp::choose(socket, HOLDING).is_err() {
        // A connection that has just ended needs no sender.
        let _ = tcp::choose(socket, own);
    }
}

fn look(flow: u8, socket: &OwnedFd, clock: Clock) -> Option<Look> {
    let at_us = clock.now_us();
    let state = tcp::tcp_state(socket).ok()?;
    let micros = |time: Option<suimon_units::Duration>| time.map_or(0, |time| time.as_nanos() / 1_000);
    let sample = Sample {
        flow,
        at_us,
        srtt_us: micros(state.srtt),
        acknowledged: state.acknowledged.get(),
        segments: state.segments,
        retransmissions: state.retransmissions,
        marked: state.marked_segments,
        received: state.received.get(),
        received_segments: state.received_segments,
        received_segment: state.received_segment.get(),
        has_timestamps: state.has_timestamps,
    };
    Some(Look {
        sample,
        delivered: state.delivered,
        segment: state.mss.get(),
        out_of_order: state.out_of_order,
        receiver_rtt_us: micros(state.receiver_rtt),
    })
}

/// Bytes that nothing on the way can compress, the same for all.
pub(crate) static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // The mixer of SplitMix64 (Steele, Lea, Flood 2014).
    let mix = |count: u64| {
        let mut value = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    (1..=CHUNK as u64 / 8).flat_map(|count| mix(count).to_le_bytes()).collect()
});
