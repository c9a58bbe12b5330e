//! The connections that are split here.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use suimon_service::{Names, descriptors};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::relay::relay;
use crate::sides::{Sides, prepare};

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all clients.
    pub connections: usize,
    /// Of one: an IPv4 address, or an IPv6 network of 64 bits.
    pub of_client: usize,
}

impl Limits {
    /// As many connections as this process has descriptors for: two sockets and two pipes each.
    #[must_use]
    pub fn of_process(of_client: usize) -> Self {
        Self { connections: descriptors::limit().saturating_sub(RESERVED) / 6, of_client }
    }
}

/// Descriptors for listeners, spare pipes and those who ask how it goes.
const RESERVED: usize = 256;

/// All connections that are split here, and the settings of new ones.
#[derive(Debug, Clone)]
pub struct Gateway(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sides: Sides,
    limits: Limits,
    names: Names,
    table: Mutex<Table>,
    totals: Totals,
    /// Told as a connection ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Arc<Connection>>,
    of_client: HashMap<IpAddr, usize>,
    /// The sum of these.
    places: usize,
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) split: AtomicU64,
    pub(crate) turned_away: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) to_radio: AtomicU64,
    pub(crate) to_lan: AtomicU64,
}

/// A connection that is split.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) radio: TcpStream,
    pub(crate) lan: TcpStream,
    pub(crate) to_radio: Flow,
    pub(crate) to_lan: Flow,
    pub(crate) since: Instant,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) bytes: AtomicU64,
    /// Bytes at the last look, and in the second before it.
    seen: AtomicU64,
    pub(crate) in_last_second: AtomicU64,
}

impl Flow {
    fn look(&self) {
        let now = self.bytes.load(Ordering::Relaxed);
        let before = self.seen.swap(now, Ordering::Relaxed);
        self.in_last_second.store(now - before, Ordering::Relaxed);
    }
}

/// A place for a connection of a client, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    gateway: Gateway,
    client: IpAddr,
}

impl Gateway {
    /// A gateway without connections, whose servers' names `names` looks up.
    #[must_use]
    pub fn new(sides: Sides, limits: Limits, names: Names) -> Self {
        let (table, totals, ended) = (Mutex::default(), Totals::default(), Notify::new());
        Self(Arc::new(Inner { sides, limits, names, table, totals, ended }))
    }

    /// Keeps the rates of [`Gateway::report`] up to date, for ever.
    pub async fn measure(self) {
        let mut seconds = interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            seconds.tick().await;
            for connection in self.connections() {
                connection.to_radio.look();
                connection.to_lan.look();
            }
        }
    }

    /// The settings of either side's sockets.
    #[must_use]
    pub fn sides(&self) -> &Sides {
        &self.0.sides
    }

    pub(crate) fn names(&self) -> &Names {
        &self.0.names
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.0.totals
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().expect("no one panics while holding it")
    }

    /// The connections that are open, oldest first.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let mut all: Vec<_> =
            self.table().open.iter().map(|(number, one)| (*number, Arc::clone(one))).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, one)| one).collect()
    }

    /// A place for a connection of `client`; none where it, or all of them together, have as many as they may.
    pub(crate) fn enter(&self, client: IpAddr) -> Option<Place> {
        let client = network(client);
        let mut table = self.table();
        let of_client = table.of_client.get(&client).copied().unwrap_or_default();
        if table.places >= self.0.limits.connections || of_client >= self.0.limits.of_client {
            drop(table);
            self.0.totals.turned_away.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        table.places += 1;
        *table.of_client.entry(client).or_default() += 1;
        Some(Place { gateway: self.clone(), client })
    }

    /// Carries a connection between `client`, whose socket is `radio`, and `server`, whose socket is `lan`, until it ends.
    ///
    /// # Errors
    /// Where a socket is gone already.
    pub(crate) async fn carry(
        &self,
        place: Place,
        (client, radio): (SocketAddr, TcpStream),
        (server, lan): (SocketAddr, TcpStream),
    ) -> io::Result<()> {
        prepare(&radio)?;
        prepare(&lan)?;
        // One client has one name, whichever family the listener is of.
        let client = SocketAddr::new(client.ip().to_canonical(), client.port());
        let (to_radio, to_lan) = (Flow::default(), Flow::default());
        let connection =
            Arc::new(Connection { client, server, radio, lan, to_radio, to_lan, since: Instant::now() });
        let number = {
            let mut table = self.table();
            table.next += 1;
            let number = table.next;
            table.open.insert(number, Arc::clone(&connection));
            number
        };
        self.0.totals.split.fetch_add(1, Ordering::Relaxed);
        relay(&connection.radio, &connection.lan, &connection.to_radio.bytes, &connection.to_lan.bytes).await;
        self.table().open.remove(&number);
        let totals = &self.0.totals;
        totals.to_radio.fetch_add(connection.to_radio.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        totals.to_lan.fetch_add(connection.to_lan.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
        drop(place);
        Ok(())
    }

    /// Waits until the open connections have ended, for `most` at the longest; the number of those left.
    pub async fn drain(&self, most: Duration) -> usize {
        let all_ended = async {
            loop {
                let ended = self.0.ended.notified();
                if self.table().places == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = timeout(most, all_ended).await;
        self.table().places
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.gateway.table();
        table.places -= 1;
        if let Some(count) = table.of_client.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                table.of_client.remove(&self.client);
            }
        }
        drop(table);
        self.gateway.0.ended.notify_waiters();
    }
}

/// Who counts as one client: in IPv6 a host chooses among the addresses of its network.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_limit_and_all_have_theirs() {
        let gateway =
            Gateway::new(Sides::default(), Limits { connections: 3, of_client: 2 }, Names::of_host());
        let (one, other): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let places = [gateway.enter(one).unwrap(), gateway.enter(one).unwrap()];
        assert!(gateway.enter(one).is_none());
        assert!(gateway.enter("::ffff:10.0.0.1".parse().unwrap()).is_none(), "the same address");
        let third = gateway.enter(other).unwrap();
        assert!(gateway.enter("2001:db8:0:1::1".parse().unwrap()).is_none(), "all are taken");
        drop(places);
        let same = gateway.enter("2001:db8::2".parse().unwrap()).unwrap();
        assert!(gateway.enter(other).is_none(), "a network of 64 bits is one client");
        drop((third, same));
        assert!(gateway.table().of_client.is_empty() && gateway.table().places == 0);
        assert_eq!(gateway.totals().turned_away.load(Ordering::Relaxed), 4);
    }
}
