//! The client's probes: datagrams to the server and back, at a steady pace beside whatever else there is.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::datagram::{Datagram, Kind, LENGTH};
use crate::protocol::Cookie;
use crate::recording::Probe;

/// Between one probe and the next: 24 kbit/s each way.
const PACE: Duration = Duration::from_millis(20);
/// The most probes of a measurement: those of two minutes.
const MAX_PROBES: usize = 6_000;
/// How soon the receiver notices that it is to end.
const PATIENCE: Duration = Duration::from_millis(200);

/// Probes under way; dropped, they end.
#[derive(Debug)]
pub(crate) struct Prober {
    probes: Arc<Mutex<Vec<Probe>>>,
    is_over: Arc<AtomicBool>,
}

impl Prober {
    /// Begins to send over `socket`, which is connected to the server.
    pub(crate) fn new(socket: UdpSocket, cookie: Cookie, clock: Clock) -> io::Result<Self> {
        let (probes, is_over) = (Arc::default(), Arc::default());
        let prober = Self { probes, is_over };
        let socket = Arc::new(socket);
        socket.set_read_timeout(Some(PATIENCE))?;
        let (probes, is_over) = (Arc::clone(&prober.probes), Arc::clone(&prober.is_over));
        let sending = Arc::clone(&socket);
        thread::Builder::new()
            .name("probes".to_owned())
            .spawn(move || send(&sending, cookie, clock, &probes, &is_over))?;
        let (probes, is_over) = (Arc::clone(&prober.probes), Arc::clone(&prober.is_over));
        thread::Builder::new()
            .name("answers".to_owned())
            .spawn(move || receive(&socket, cookie, clock, &probes, &is_over))?;
        Ok(prober)
    }

    /// All probes so far.
    pub(crate) fn probes(&self) -> Vec<Probe> {
        lock(&self.probes).clone()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn lock(probes: &Mutex<Vec<Probe>>) -> MutexGuard<'_, Vec<Probe>> {
    probes.lock().expect("no one panics while holding it")
}

fn send(socket: &UdpSocket, cookie: Cookie, clock: Clock, probes: &Mutex<Vec<Probe>>, is_over: &AtomicBool) {
    let mut next = Instant::now();
    for number in 0..MAX_PROBES {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let datagram = Datagram { cookie, number: u32::try_from(number).unwrap_or(u32::MAX), time_us: 0 };
        lock(probes).push(Probe { sent_us: clock.now_us(), answer: None });
        // A datagram that this host cannot send is one that gets lost.
        let _ = socket.send(&datagram.bytes(Kind::Question));
        next += PACE;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

fn receive(
    socket: &UdpSocket,
    cookie: Cookie,
    clock: Clock,
    probes: &Mutex<Vec<Probe>>,
    is_over: &AtomicBool,
) {
    let mut bytes = [0; LENGTH + 1];
    while !is_over.load(Ordering::Relaxed) {
        let length = match socket.recv(&mut bytes) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // The answer of a host where nobody listens, or a network that is gone for now.
            Err(_) => {
                thread::sleep(PACE);
                continue;
            }
        };
        let now = clock.now_us();
        let Some((Kind::Answer, answer)) = Datagram::read(&bytes[..length]) else { continue };
        if answer.cookie != cookie {
            continue;
        }
        let mut probes = lock(probes);
        if let Some(probe) = probes.get_mut(answer.number as usize) {
            let answered = Probe { answer: Some((answer.time_us, now)), ..*probe };
            if probe.answer.is_none() && answered.is_in_time() {
                *probe = answered;
            }
        }
    }
}
