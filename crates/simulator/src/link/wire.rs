//! What is left of a link that decides nothing: when it has sent.

use suimon_link::{Server, Service};
use suimon_model::{self as scenario, Buffer, Capacity, Loss};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::meter::{Meter, Passage};

/// The sending end of a link, and the way to its far end.
///
/// Where a link has nothing else, and one feeder that keeps the order, it is known when a packet reaches the far end
/// as soon as it is known when it comes, so that it needs no event in between. Most access links are such.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(super) server: Server,
    delay: Duration,
    /// What each packet costs beside its own bytes.
    overhead: u32,
    /// What came before has left by then.
    pub(super) free_at: Instant,
    pub(crate) meter: Option<Box<Meter>>,
}

/// True where `link` has nothing to decide, and nothing to tell of its queue but how much waits.
pub(crate) fn decides_nothing(link: &scenario::Link) -> bool {
    let never_waits = link.capacity == Capacity::Rate(Rate::MAX);
    let first_in_first_out = link.queue.name() == "droptail";
    let takes_all = never_waits || (first_in_first_out && link.buffer == Buffer::Unbounded);
    let harmless = link.impairments.are_none();
    let unseen = link.estimator.is_none() && (first_in_first_out || !link.reported);
    takes_all && harmless && unseen && !link.capacity.is_radio()
}

/// True where all that `link` sends arrives.
pub(super) fn loses_nothing(link: &scenario::Link) -> bool {
    link.impairments.loss == Loss::None && link.impairments.outages.is_empty()
}

impl Wire {
    pub(crate) fn new(link: &scenario::Link) -> Self {
        let server = Server::new(&link.capacity);
        Self {
            // A radio takes packets when it wants, so such a link is never free by itself.
            free_at: if matches!(server, Server::Radio) { Instant::MAX } else { Instant::ZERO },
            server,
            delay: link.delay,
            overhead: link.overhead.get() as u32,
            meter: link.reported.then(|| Box::new(Meter::new(link))),
        }
    }

    /// At least so long is every packet under way.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// What a packet of `size` takes.
    pub(super) fn cost(&self, size: u32) -> Bytes {
        Bytes::new(u64::from(size + self.overhead))
    }

    /// Sends a packet of `size` that has its turn.
    #[inline(always)]
    pub(super) fn send(&mut self, turn: Instant, size: u32) -> Service {
        let service = self.server.send(turn, self.cost(size));
        self.free_at = service.ends;
        service
    }

    /// When a packet of `size` that comes at `came`, and waits only for those before it, reaches the far end.
    /// Packets are asked for in the order of their times, which may lie ahead of `now`.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Instant, came: Instant, size: u32) -> Instant {
        let turn = came.max(self.free_at);
        let service = self.send(turn, size);
        if let Some(meter) = &mut self.meter {
            meter.on_passage(now, Passage { came, turn, starts: service.starts, size });
        }
        service.ends + self.delay
    }
}
