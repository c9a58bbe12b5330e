//! Datagrams at a constant rate, each with the time at which it was sent.

use std::io::{self, Read};
use std::net::UdpSocket;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use socket2::Socket;
use suimon_linux::schedule::wake_exactly;
use suimon_model::UdpFlow;
use suimon_units::{Bytes, Instant};

use crate::endpoints::{Shared, Stage, is_timeout};
use crate::plan::PlannedFlow;

/// IPv4's and UDP's.
const UDP_HEADERS: Bytes = Bytes::new(28);
/// The largest datagram.
const LARGEST: usize = 1 << 16;
/// The time of sending, in nanoseconds of the clock, at the beginning of a datagram; in one that has room for it.
const STAMP: usize = size_of::<u64>();

impl Stage<'_> {
    /// Sends datagrams until the run is over, or they are all sent.
    pub(crate) fn send_datagrams(
        &self,
        udp: &UdpFlow,
        planned: &PlannedFlow,
        shared: &Shared,
        until: Instant,
    ) -> io::Result<()> {
        wake_exactly();
        let socket = UdpSocket::bind(planned.from)?;
        socket.connect(planned.to)?;
        let mut data = vec![0; (udp.packet - UDP_HEADERS).get() as usize];
        let (began, mut sent) = (self.clock.now(), Bytes::ZERO);
        let limit = udp.size.unwrap_or(Bytes::MAX);
        while sent < limit && !self.is_over() {
            let due = began + udp.rate.transmission_time(sent);
            if due >= until {
                break;
            }
            self.clock.sleep_until(due);
            let size = udp.packet.min(limit - sent).max(UDP_HEADERS);
            if let Some(stamp) = data.first_chunk_mut::<STAMP>() {
                *stamp = self.clock.now().as_nanos().to_ne_bytes();
            }
            match socket.send(&data[..(size - UDP_HEADERS).get() as usize]) {
                // Nobody listens any more, or there is no room: datagrams get lost.
                Ok(_) | Err(_) => {}
            }
            sent += size;
            shared.datagrams.fetch_add(1, Ordering::Relaxed);
            shared.datagram_bytes.store(sent.get(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Receives datagrams until the run is over.
    pub(crate) fn receive_datagrams(&self, socket: &Socket, shared: &Shared) -> io::Result<()> {
        let mut buffer = vec![0; LARGEST];
        while !self.is_over() {
            match (&mut &*socket).read(&mut buffer) {
                Ok(count) => {
                    let now = self.clock.now();
                    shared.last_delivery.store(now.as_nanos(), Ordering::Relaxed);
                    shared.delivered.fetch_add(count as u64 + UDP_HEADERS.get(), Ordering::Relaxed);
                    if let Some(stamp) = buffer[..count].first_chunk::<STAMP>() {
                        let sent = Instant::from_nanos(u64::from_ne_bytes(*stamp));
                        let mut delays = shared.delays.lock().unwrap_or_else(PoisonError::into_inner);
                        delays.record(now, sent);
                    }
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
