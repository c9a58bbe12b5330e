//! A link that decides nothing.

use suimon_link::Server;
use suimon_scenario::{self as scenario, Buffer, Capacity, Loss};
use suimon_units::{Bytes, Duration, Instant, Rate};

/// A link with one feeder that keeps the order, that nobody measures, and that takes and sends all in turn:
/// when a packet reaches its far end is known as soon as it is known when it comes, so that it needs no
/// event in between. Most access links are such.
#[derive(Debug)]
pub(crate) struct Wire {
    server: Server,
    delay: Duration,
    /// What each packet costs beside its own bytes.
    overhead: u32,
    /// What came before has left by then.
    free_at: Instant,
    /// Where the packets are that an event follows to the far end, in the list of lines.
    pub(crate) line: u32,
}

/// True where `link` has nothing to decide, once packets come to it in order.
pub(crate) fn decides_nothing(link: &scenario::Link) -> bool {
    let never_waits = link.capacity == Capacity::Rate(Rate::MAX);
    let first_in_first_out = link.queue.name() == "droptail" && link.buffer == Buffer::Unbounded;
    let harmless = link.loss == Loss::None
        && link.jitter == Duration::ZERO
        && link.reordering.is_none()
        && link.outages.is_empty();
    !link.reported && !link.capacity.is_radio() && harmless && (never_waits || first_in_first_out)
}

impl Wire {
    /// `link`, which decides nothing.
    pub(crate) fn new(link: &scenario::Link, line: u32) -> Self {
        Self {
            server: Server::new(&link.capacity),
            delay: link.delay,
            overhead: link.overhead.get() as u32,
            free_at: Instant::ZERO,
            line,
        }
    }

    /// At least so long is every packet under way.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// When a packet of `size` that comes at `time` reaches the far end. Packets are asked for in the order
    /// of their times.
    #[inline(always)]
    pub(crate) fn pass(&mut self, time: Instant, size: u32) -> Instant {
        let service = self.server.send(time.max(self.free_at), Bytes::new(u64::from(size + self.overhead)));
        self.free_at = service.ends;
        service.ends + self.delay
    }
}
