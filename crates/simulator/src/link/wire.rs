//! A shortcut: a link on which packets only wait for those before them.

use suimon_link::Transmitter;
use suimon_model::{self as model, Buffer, Capacity};
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::meter::{Meter, Passage};

/// A link without a queue of its own.
///
/// Where the packets of a link come from one feeder that keeps their order, the time at which each reaches the far end
/// is known as soon as the time at which it comes, so that it needs no event in between. Most access links are such.
#[derive(Debug)]
pub(crate) struct Wire {
    transmitter: Transmitter,
    pub(crate) meter: Option<Box<Meter>>,
}

impl Wire {
    /// True where `link` may be a wire: its queue takes every packet, no packet is impaired, and results show nothing
    /// of the queue but its backlog.
    pub(crate) fn serves(link: &model::Link) -> bool {
        let decides = link.capacity.is_radio() || matches!(link.capacity, Capacity::Shaped(_));
        if link.estimator.is_some() || !link.impairments.are_none() || decides {
            return false;
        }
        let never_waits = link.capacity == Capacity::Rate(Rate::MAX);
        let takes_all = never_waits || link.buffer == Buffer::Unbounded;
        let unseen = never_waits && !link.reported;
        takes_all && (unseen || link.queue.queue_capabilities().tail_drop)
    }

    pub(crate) fn new(link: &model::Link) -> Self {
        Self {
            // A wire has no impairments, so it draws nothing.
            transmitter: Transmitter::new(link, 0),
            meter: link.reported.then(|| Box::new(Meter::new(link))),
        }
    }

    /// Every packet is under way for at least so long.
    pub(crate) fn delay(&self) -> Duration {
        self.transmitter.delay()
    }

    /// See [`Transmitter::potential`].
    pub(super) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.transmitter.potential(from, to)
    }

    /// When a packet of `size` that comes at `came`, and waits only for those before it, reaches the far end.
    /// Packets are asked for in the order of their times, which may lie ahead of `now`.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Instant, came: Instant, size: u32) -> Instant {
        let turn = came.max(self.transmitter.free_at());
        let service = self.transmitter.send(turn, came < turn, Bytes::new(u64::from(size)));
        if let Some(meter) = &mut self.meter {
            meter.on_passage(now, Passage { came, turn, starts: service.starts, size });
        }
        service.ends + self.transmitter.delay()
    }
}
