//! A link that decides nothing.

use suimon_scenario::{self as scenario, Buffer, Capacity, Loss};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::capacity::Server;
use super::line::Line;
use crate::events::{Event, EventQueue};
use crate::packet::Frame;

/// A link with one feeder that keeps the order, that nobody measures, and that takes and sends all in turn:
/// when a packet reaches its far end is known as soon as it is known when it comes, so that it needs no
/// event in between. Most access links are such.
#[derive(Debug)]
pub(crate) struct Wire {
    index: u32,
    server: Server,
    delay: Duration,
    /// What came before has left by then.
    free_at: Instant,
    line: Line,
}

impl Wire {
    /// `link` as a wire, unless it has something to decide.
    pub(crate) fn new(index: u32, link: &scenario::Link) -> Option<Self> {
        let never_waits = link.capacity == Capacity::Rate(Rate::MAX);
        let first_in_first_out = link.queue.name() == "droptail" && link.buffer == Buffer::Unbounded;
        let harmless = link.loss == Loss::None && link.jitter == Duration::ZERO && link.reordering.is_none();
        let by_itself = !matches!(link.capacity, Capacity::Hsdpa(_));
        (!link.reported && by_itself && harmless && (never_waits || first_in_first_out)).then(|| Self {
            index,
            server: Server::new(&link.capacity),
            delay: link.delay,
            free_at: Instant::ZERO,
            line: Line::new(Event::WireArrival),
        })
    }

    /// At least so long is every packet under way.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// When a packet of `size` that comes at `time` reaches the far end. Packets are asked for in the order
    /// of their times.
    #[inline(always)]
    pub(crate) fn pass(&mut self, time: Instant, size: u32) -> Instant {
        let service = self.server.send(time.max(self.free_at), Bytes::new(u64::from(size)));
        self.free_at = service.ends;
        service.ends + self.delay
    }

    /// Lets an event tell when `frame` has reached the far end.
    #[inline(always)]
    pub(crate) fn follow(&mut self, frame: Frame, events: &mut EventQueue) {
        self.line.push(frame, self.index, events);
    }

    /// No packet is followed by an event.
    pub(crate) fn is_silent(&self) -> bool {
        self.line.is_empty()
    }

    /// Gives the packet that reaches the far end now.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Instant, events: &mut EventQueue) -> Option<Frame> {
        self.line.pop(now, self.index, events)
    }
}
