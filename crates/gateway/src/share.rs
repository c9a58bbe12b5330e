//! What each of a client's connections may have in flight, so that all of them together keep the radio's queue as short
//! as one does.
//!
//! A sender knows its own connection. The gateway knows how many go to one client, and what that client takes in all: the
//! bandwidth-delay product of the radio is that rate times the shortest round-trip time. Together they may have twice as
//! much in flight, as FS-AT's bound of one connection has it (paper 1, Eq. 9), in equal parts. The kernel holds each to its
//! part by its send buffer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::SockRef;
use suimon_linux::tcp::{tcp_state, unacknowledged};
use suimon_units::Bytes;
use tokio::time::Instant;

use crate::gateway::{Connection, network};

/// How often rates are looked at: some round-trip times of a radio.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);
/// What a connection may hold whatever its share, in bytes: two segments.
const MIN_PART: f64 = 3_000.0;
/// No radio is so near. On shorter ways the product is less than what processors and devices hand on at once.
const NEAREST_S: f64 = 0.005;
/// Memory that the kernel counts for each byte of payload, twice the buffer that is asked for (socket(7)) being the limit.
const MEMORY: f64 = 1.3 / 2.0;

/// What was last known of a connection.
#[derive(Debug, Default)]
pub(crate) struct Share {
    carried: u64,
    at: Option<Instant>,
    /// It was held to a part once, and is from then on.
    is_held: bool,
}

/// A client's connections that have data for it, and what it takes.
#[derive(Debug, Default)]
struct Client<'a> {
    busy: Vec<&'a Arc<Connection>>,
    bytes_per_s: f64,
    rtt_min_s: Option<f64>,
    is_held: bool,
}

/// Gives the connections of each client that has several their parts.
pub(crate) fn give(all: &[Arc<Connection>]) {
    let mut clients: HashMap<_, Client<'_>> = HashMap::new();
    for connection in all {
        clients.entry(network(connection.client.ip())).or_default().add(connection);
    }
    clients.values().filter(|client| client.busy.len() > 1 || client.is_held).for_each(Client::give);
}

impl<'a> Client<'a> {
    fn add(&mut self, connection: &'a Arc<Connection>) {
        let carried = connection.to_radio.bytes.load(Ordering::Relaxed);
        let mut share = connection.share.lock().expect("no one panics while holding it");
        let (before, since) = (share.carried, share.at);
        (share.carried, share.at) = (carried, Some(Instant::now()));
        self.is_held |= share.is_held;
        let moved = carried > before;
        if !moved && unacknowledged(&connection.radio).is_ok_and(|bytes| bytes == Bytes::ZERO) {
            return;
        }
        self.busy.push(connection);
        if let Some(since) = since {
            self.bytes_per_s += (carried - before) as f64 / since.elapsed().as_secs_f64().max(1e-3);
        }
        let rtt_min = tcp_state(&connection.radio).ok().and_then(|state| state.rtt_min);
        if let Some(rtt_min) = rtt_min.map(suimon_units::Duration::as_secs_f64) {
            self.rtt_min_s = Some(self.rtt_min_s.map_or(rtt_min, |least| least.min(rtt_min)));
        }
    }

    fn give(&self) {
        let Some(rtt_min) = self.rtt_min_s.filter(|rtt| *rtt >= NEAREST_S) else { return };
        let part = 2.0 * self.bytes_per_s * rtt_min / self.busy.len() as f64;
        let buffer = (part.max(MIN_PART) * MEMORY) as usize;
        for connection in &self.busy {
            // Without the right to more than the kernel lets everybody have, that much it is.
            let _ = SockRef::from(&connection.radio).set_send_buffer_size(buffer);
            connection.share.lock().expect("no one panics while holding it").is_held = true;
        }
    }
}
