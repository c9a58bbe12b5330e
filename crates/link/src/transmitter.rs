//! The times at which packets leave a link and reach its far end, in any order of service.

use suimon_algorithms::RandomStream;
use suimon_model::{Capacity, ImpairmentState, Link};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::server::{Server, Service};

/// The sending end of a link, and the way to its far end.
#[derive(Debug)]
pub struct Transmitter {
    server: Server,
    delay: Duration,
    /// The bytes that each packet costs beside its own.
    overhead: Bytes,
    impairments: Option<Box<ImpairmentState>>,
    /// The time by which all earlier packets have left.
    free_at: Instant,
    /// The rate that the queue was told last.
    rate_told: Option<Rate>,
}

impl Transmitter {
    /// The transmitter of `link`, whose impairments derive from `seed` and the link's name.
    #[must_use]
    pub fn new(link: &Link, seed: u64) -> Self {
        let random = RandomStream::new(seed, &format!("link {} impairments", link.name));
        Self {
            delay: link.delay,
            overhead: link.overhead,
            impairments: link.impairments.begin(random).map(Box::new),
            ..Self::at(&link.capacity)
        }
    }

    /// A transmitter that sends at `capacity`, and has no delay, overhead or impairments.
    #[must_use]
    pub fn at(capacity: &Capacity) -> Self {
        let mut transmitter = Self {
            server: Server::Unlimited,
            delay: Duration::ZERO,
            overhead: Bytes::ZERO,
            impairments: None,
            free_at: Instant::ZERO,
            rate_told: None,
        };
        transmitter.set_capacity(Instant::ZERO, capacity);
        transmitter
    }

    /// Changes the capacity from `now` on. A packet in transmission goes on as it began.
    pub fn set_capacity(&mut self, now: Instant, capacity: &Capacity) {
        self.server = Server::new(capacity);
        self.rate_told = None;
        // A radio takes packets when it wants, so such a link is never free by itself.
        self.free_at = match self.server {
            Server::Radio => Instant::MAX,
            _ if self.free_at == Instant::MAX => now,
            _ => self.free_at,
        };
    }

    /// Sends nothing more before `time`.
    pub fn wait_until(&mut self, time: Instant) {
        self.free_at = self.free_at.max(time);
    }

    /// The time when all earlier packets have left; the end of time on a radio.
    #[inline(always)]
    #[must_use]
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The propagation delay.
    #[inline(always)]
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Changes the propagation delay of packets sent from now on.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// True where a radio takes the packets.
    #[must_use]
    pub fn is_radio(&self) -> bool {
        matches!(self.server, Server::Radio)
    }

    /// True where transmission takes no time.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        matches!(self.server, Server::Unlimited)
    }

    /// True where the rate changes by itself.
    #[must_use]
    pub fn rate_varies(&self) -> bool {
        matches!(self.server, Server::Steps(_))
    }

    /// The rate at `now`, where the queue does not know it from an earlier call; on a recorded link the mean over the
    /// recording. `None` without a finite rate.
    pub fn new_rate(&mut self, now: Instant) -> Option<Rate> {
        let rate = self.server.rate_at(now).filter(|rate| self.rate_told != Some(*rate))?;
        self.rate_told = Some(rate);
        Some(rate)
    }

    /// How many bytes could have been sent from `from` to `to`; `None` without a finite rate.
    #[must_use]
    pub fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.potential(from, to)
    }

    /// The bytes that a packet of `size` takes on the link, with the overhead.
    #[inline(always)]
    #[must_use]
    pub fn cost(&self, size: Bytes) -> Bytes {
        Bytes::new(size.get() + self.overhead.get())
    }

    /// Sends a packet of `size` that has its `turn`, and `waited` for it if it came before. Packets are sent in the order of
    /// their turns.
    ///
    /// # Panics
    /// On a radio.
    #[inline(always)]
    pub fn send(&mut self, turn: Instant, waited: bool, size: Bytes) -> Service {
        let service = self.server.send(turn, waited, self.cost(size));
        self.free_at = service.ends;
        service
    }

    /// When a packet reaches the far end that left at `departure` and would do so at `arrival`, which is
    /// [`delay`](Self::delay) later or more; `None` where it is lost.
    #[inline(always)]
    pub fn impair(&mut self, departure: Instant, arrival: Instant) -> Option<Instant> {
        match &mut self.impairments {
            None => Some(arrival),
            Some(impairments) => impairments.apply(departure, arrival),
        }
    }
}
