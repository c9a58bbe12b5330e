//! Who measures, and who may.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::arrivals::{Counter, PACKET};
use crate::clock::Clock;
use crate::load::Load;
use crate::protocol::{Cookie, MAX_FLOWS, Refusal};
use crate::recording::Direction;
use crate::saturator::Saturator;

/// How much a server does for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: usize,
    /// Sessions at once of one network: an IPv4 address, or an IPv6 network of 64 bits.
    pub of_network: usize,
    /// Sessions that a network may open in a minute.
    pub a_minute: usize,
    /// How long a session lasts at most.
    pub time: Duration,
    /// How long a recording lasts at most.
    pub recording: Duration,
    /// The most payload of each direction of a session, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let (time, recording) = (Duration::from_secs(60), Duration::from_secs(330));
        Self { sessions: 8, of_network: 2, a_minute: 10, time, recording, bytes: 4_000_000_000 }
    }
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Sessions that are open.
    pub open: u64,
    /// Sessions that were opened.
    pub opened: u64,
    /// Sessions that were refused.
    pub refused: u64,
    /// Payload of loads of sessions that are over, in bytes.
    pub bytes: u64,
    /// Datagrams that were answered.
    pub echoes: u64,
    /// Datagrams that were not.
    pub ignored: u64,
}

/// One measurement.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) cookie: Cookie,
    /// The address that TCP has proved.
    address: IpAddr,
    loads: [Load; 2],
    /// Its other connections, by their purpose.
    others: [AtomicU8; 3],
    echoes: AtomicU64,
    has_reported: AtomicBool,
    /// What a recording needs, where the session is one.
    recorder: Option<Mutex<Recorder>>,
    over: Notify,
    is_over: AtomicBool,
}

/// Both ends of a recording at this host: the sender of a download, and the receiver of an upload.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) saturator: Saturator,
    pub(crate) counter: Counter,
}

/// The sessions, and what their networks did in the last minute.
#[derive(Debug)]
pub(crate) struct Sessions {
    limits: Limits,
    clock: Clock,
    random: SystemRandom,
    table: Mutex<Table>,
    answered: AtomicU64,
    ignored: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    open: HashMap<Cookie, Arc<Session>>,
    /// When each network opened sessions.
    opened: HashMap<IpAddr, VecDeque<Instant>>,
    /// Connections that have not said what they are.
    silent: HashMap<IpAddr, usize>,
    report: Report,
}

/// The place of a connection that has not said what it is, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    sessions: Arc<Sessions>,
    network: IpAddr,
}

/// What a session's further connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load(Direction),
    Probes,
}

impl Purpose {
    const fn index(self) -> usize {
        match self {
            Self::Load(direction) => direction as usize,
            Self::Probes => 2,
        }
    }
}

/// A session under way: dropped, it ends with all its connections, however its control was left.
#[derive(Debug)]
pub(crate) struct Open<'sessions> {
    sessions: &'sessions Sessions,
    session: Arc<Session>,
}

/// The place of a session's further connection, given back when dropped.
#[derive(Debug)]
pub(crate) struct OtherPlace(Arc<Session>, Purpose);

/// What counts the openings of a minute.
const MINUTE: Duration = Duration::from_secs(60);
/// Networks that are remembered for a minute.
const NETWORKS: usize = 4_096;
/// Connections that have not said what they are: of all, and of a network.
const SILENT: usize = 256;
const SILENT_OF_NETWORK: usize = 64;
/// Datagrams that a session gets answered: a hundred a second for the longest session.
const ECHOES: u64 = 6_000;

impl Session {
    pub(crate) const fn load(&self, direction: Direction) -> &Load {
        &self.loads[direction as usize]
    }

    /// Looks at the connections of a load, for ever.
    pub(crate) async fn watch(&self, direction: Direction) {
        self.load(direction).watch().await;
    }

    /// Payload of its loads and packets of its recording, in bytes.
    pub(crate) fn moved(&self) -> u64 {
        let loads: u64 = self.loads.iter().map(Load::moved).sum();
        let recorded = self
            .recorder()
            .map_or(0, |recorder| u64::from(recorder.saturator.sent()) + recorder.counter.all());
        loads + recorded * PACKET
    }

    /// Its recorder, where it is a recording.
    pub(crate) fn recorder(&self) -> Option<MutexGuard<'_, Recorder>> {
        Some(self.recorder.as_ref()?.lock().expect("no one panics while holding it"))
    }

    /// Whether one more probe is to be answered.
    pub(crate) fn may_echo(&self) -> bool {
        self.echoes.fetch_add(1, Ordering::Relaxed) < ECHOES
    }

    /// Whether its browser may send its report, which it may once.
    pub(crate) fn may_report(&self) -> bool {
        !self.has_reported.swap(true, Ordering::Relaxed)
    }

    /// Comes back once the session is over.
    pub(crate) async fn closed(&self) {
        let over = self.over.notified();
        if !self.is_over.load(Ordering::Acquire) {
            over.await;
        }
    }
}

impl Sessions {
    pub(crate) fn new(limits: Limits, clock: Clock) -> Self {
        let (table, answered, ignored) = Default::default();
        Self { limits, clock, random: SystemRandom::new(), table, answered, ignored }
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no one panics while holding it")
    }

    pub(crate) fn report(&self) -> Report {
        let table = self.table();
        Report {
            open: table.open.len() as u64,
            echoes: self.answered.load(Ordering::Relaxed),
            ignored: self.ignored.load(Ordering::Relaxed),
            ..table.report
        }
    }

    /// A place for a connection from `address` that has not said yet what it is.
    pub(crate) fn knock(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let network = network(address);
        let mut table = self.table();
        let all: usize = table.silent.values().sum();
        let own = table.silent.entry(network).or_default();
        if all >= SILENT || *own >= SILENT_OF_NETWORK {
            if *own == 0 {
                table.silent.remove(&network);
            }
            return None;
        }
        *own += 1;
        Some(Place { sessions: Arc::clone(self), network })
    }

    /// A session for a client whose connection came from `address`.
    pub(crate) fn open(&self, address: IpAddr) -> Result<Open<'_>, Refusal> {
        self.open_as(address, None)
    }

    /// The same for a recording.
    pub(crate) fn open_recording(&self, address: IpAddr) -> Result<Open<'_>, Refusal> {
        self.open_as(address, Some(Mutex::default()))
    }

    fn open_as(&self, address: IpAddr, recorder: Option<Mutex<Recorder>>) -> Result<Open<'_>, Refusal> {
        let mut table = self.table();
        let opened = self.admit(&mut table, address, recorder);
        table.report.opened += u64::from(opened.is_ok());
        table.report.refused += u64::from(opened.is_err());
        drop(table);
        let session = opened?;
        // What a service logs by default is kept, so there is no address in it.
        tracing::info!("a measurement begins");
        tracing::debug!("{address} measures");
        Ok(Open { sessions: self, session })
    }

    fn admit(
        &self,
        table: &mut Table,
        address: IpAddr,
        recorder: Option<Mutex<Recorder>>,
    ) -> Result<Arc<Session>, Refusal> {
        let (now, network) = (Instant::now(), network(address));
        let of_network = table.open.values().filter(|other| self::network(other.address) == network).count();
        if of_network >= self.limits.of_network {
            return Err(Refusal::OfAddress);
        }
        if table.open.len() >= self.limits.sessions {
            return Err(Refusal::Busy);
        }
        table.opened.retain(|_, times| {
            times.retain(|time| now.duration_since(*time) < MINUTE);
            !times.is_empty()
        });
        if table.opened.len() >= NETWORKS && !table.opened.contains_key(&network) {
            return Err(Refusal::Busy);
        }
        let times = table.opened.entry(network).or_default();
        if times.len() >= self.limits.a_minute {
            return Err(Refusal::TooOften);
        }
        times.push_back(now);
        let mut cookie = Cookie::default();
        self.random.fill(&mut cookie).map_err(|_| Refusal::Busy)?;
        let session = Arc::new(Session {
            cookie,
            address: address.to_canonical(),
            loads: [Load::new(self.clock), Load::new(self.clock)],
            others: Default::default(),
            echoes: AtomicU64::default(),
            has_reported: AtomicBool::default(),
            recorder,
            over: Notify::new(),
            is_over: false.into(),
        });
        table.open.insert(cookie, Arc::clone(&session));
        Ok(session)
    }

    /// A place for a further connection of the session that has this cookie.
    pub(crate) fn join(&self, cookie: &Cookie, purpose: Purpose) -> Option<(Arc<Session>, OtherPlace)> {
        let session = Arc::clone(self.table().open.get(cookie)?);
        let room = |others| (others < MAX_FLOWS).then_some(others + 1);
        session.others[purpose.index()].fetch_update(Ordering::AcqRel, Ordering::Acquire, room).ok()?;
        Some((Arc::clone(&session), OtherPlace(session, purpose)))
    }

    /// The session that has this cookie and came from `address`.
    pub(crate) fn find(&self, cookie: &Cookie, address: IpAddr) -> Option<Arc<Session>> {
        let table = self.table();
        table.open.get(cookie).filter(|session| session.address == address.to_canonical()).map(Arc::clone)
    }

    /// The time of this host, in microseconds.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Counts an answer to a probe of a session that is known already.
    pub(crate) fn count_echo(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a datagram with this cookie from `address` is to be answered.
    pub(crate) fn may_echo(&self, cookie: &Cookie, address: IpAddr) -> bool {
        let may = self
            .table()
            .open
            .get(cookie)
            .is_some_and(|session| session.address == address.to_canonical() && session.may_echo());
        if may { &self.answered } else { &self.ignored }.fetch_add(1, Ordering::Relaxed);
        may
    }
}

impl Deref for Open<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let moved = self.moved();
        let mut table = self.sessions.table();
        table.open.remove(&self.cookie);
        table.report.bytes += moved;
        drop(table);
        self.is_over.store(true, Ordering::Release);
        self.over.notify_waiters();
        tracing::info!("a measurement has ended: {moved} bytes");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = self.sessions.table();
        if let Some(own) = table.silent.get_mut(&self.network) {
            *own -= 1;
            if *own == 0 {
                table.silent.remove(&self.network);
            }
        }
    }
}

impl Drop for OtherPlace {
    fn drop(&mut self) {
        self.0.others[self.1.index()].fetch_sub(1, Ordering::AcqRel);
    }
}

/// Addresses that one holder has: one of IPv4, and of IPv6 the 2^64 that a site gets at least (RFC 6177 §2).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(limits: Limits) -> Arc<Sessions> {
        Arc::new(Sessions::new(limits, Clock::new()))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_gets_its_share_and_no_more() {
        let limits = Limits { sessions: 3, of_network: 2, a_minute: 4, ..Limits::default() };
        let sessions = sessions(limits);
        let one = sessions.open(address("10.0.0.1")).unwrap();
        let two = sessions.open(address("::ffff:10.0.0.1")).unwrap();
        assert_eq!(sessions.open(address("10.0.0.1")).unwrap_err(), Refusal::OfAddress);
        let three = sessions.open(address("2001:db8::1")).unwrap();
        assert_eq!(sessions.open(address("10.0.0.2")).unwrap_err(), Refusal::Busy);
        drop((one, two));
        drop(sessions.open(address("10.0.0.1")).unwrap());
        drop(sessions.open(address("10.0.0.1")).unwrap());
        assert_eq!(sessions.open(address("10.0.0.1")).unwrap_err(), Refusal::TooOften);
        drop(three);
        let _two = [2, 3].map(|host| sessions.open(address(&format!("2001:db8::{host}"))).unwrap());
        assert_eq!(sessions.open(address("2001:db8::4")).unwrap_err(), Refusal::OfAddress);
        let report = sessions.report();
        assert_eq!((report.open, report.opened, report.refused), (2, 7, 4));
    }

    #[test]
    fn a_datagram_is_answered_where_cookie_and_address_are_the_sessions() {
        let sessions = sessions(Limits::default());
        let session = sessions.open(address("10.0.0.1")).unwrap();
        let other = sessions.open(address("10.0.0.2")).unwrap();
        assert!(sessions.may_echo(&session.cookie, address("10.0.0.1")));
        assert!(sessions.may_echo(&session.cookie, address("::ffff:10.0.0.1")));
        assert!(!sessions.may_echo(&session.cookie, address("10.0.0.2")));
        assert!(!sessions.may_echo(&[0; 16], address("10.0.0.1")));
        for _ in 2..ECHOES {
            assert!(sessions.may_echo(&session.cookie, address("10.0.0.1")));
        }
        assert!(!sessions.may_echo(&session.cookie, address("10.0.0.1")), "one more than a session gets");
        assert!(sessions.may_echo(&other.cookie, address("10.0.0.2")));
        let cookie = session.cookie;
        drop(session);
        assert!(!sessions.may_echo(&cookie, address("10.0.0.1")));
    }

    #[test]
    fn places_are_limited_and_given_back() {
        let sessions = sessions(Limits::default());
        let places: Vec<_> =
            (0..SILENT_OF_NETWORK).map(|_| sessions.knock(address("10.0.0.1")).unwrap()).collect();
        assert!(sessions.knock(address("10.0.0.1")).is_none());
        assert!(sessions.knock(address("10.0.0.2")).is_some());
        drop(places);
        assert!(sessions.knock(address("10.0.0.1")).is_some());
        assert!(sessions.table().silent.is_empty());
        let session = sessions.open(address("10.0.0.1")).unwrap();
        let upload = Purpose::Load(Direction::Upload);
        let joined: Vec<_> =
            (0..MAX_FLOWS).map(|_| sessions.join(&session.cookie, upload).unwrap()).collect();
        assert!(sessions.join(&session.cookie, upload).is_none());
        assert!(sessions.join(&session.cookie, Purpose::Load(Direction::Download)).is_some());
        assert!(sessions.join(&session.cookie, Purpose::Probes).is_some());
        drop(joined);
        assert!(sessions.join(&session.cookie, upload).is_some());
        assert!(sessions.join(&[0; 16], upload).is_none());
    }
}
