//! The statistics of a link whose packets may be known ahead of their time.

use suimon_algorithms::queue::Backlog;
use suimon_link::QueueMeter;
use suimon_model as scenario;
use suimon_units::{Bytes, Instant};

use super::Link;
use crate::ring::Ring;
use crate::routes::Routes;

/// The meters of links, of which some are wires.
pub(crate) struct Meters<'a> {
    pub(crate) links: &'a mut [Link],
    pub(crate) routes: &'a mut Routes,
}

impl Meters<'_> {
    /// The meter of the link of this index.
    pub(crate) fn of(&mut self, link: usize) -> Option<&mut Meter> {
        self.place(link).as_deref_mut()
    }

    /// The same for good.
    pub(crate) fn take(&mut self, link: usize) -> Option<Box<Meter>> {
        self.place(link).take()
    }

    fn place(&mut self, link: usize) -> &mut Option<Box<Meter>> {
        match self.routes.wire_mut(link) {
            Some(wire) => &mut wire.meter,
            None => self.links[link].meter_mut(),
        }
    }
}

/// A packet that passes a link where it only waits for those before it, as soon as its times are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage {
    pub(crate) came: Instant,
    /// When those before it have left, and it does not wait in the queue any more.
    pub(crate) turn: Instant,
    /// The end of its wait: see [`suimon_link::Service`].
    pub(crate) starts: Instant,
    pub(crate) size: u32,
}

/// The statistics of one link, and the passages not in them yet.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) statistics: QueueMeter,
    /// Passages that are not in the statistics yet, in order.
    passing: Ring<Passage>,
    /// The number of these packets that have come and wait, and their backlog.
    waiting: usize,
    backlog: Backlog,
}

impl Meter {
    pub(crate) fn new(link: &scenario::Link) -> Self {
        Self {
            statistics: QueueMeter::new(link),
            passing: Ring::default(),
            waiting: 0,
            backlog: Backlog::default(),
        }
    }

    /// A packet passes, at times that may lie ahead of `now` or behind: it enters the statistics when they are settled.
    #[inline(always)]
    pub(crate) fn on_passage(&mut self, now: Instant, passage: Passage) {
        self.passing.push_back(passage);
        if self.passing.len().is_multiple_of(SETTLED_AT_ONCE) {
            // The next packet may have come before now.
            self.settle(now.min(passage.came));
        }
    }

    /// Enters the packets that have come and gone by `now`, each at its times; a packet that leaves as another comes
    /// goes before it.
    #[inline(never)]
    pub(crate) fn settle(&mut self, now: Instant) {
        while let Some(&first) = self.passing.front() {
            if self.waiting == 0 && first.turn == first.came {
                if first.came > now {
                    return;
                }
                self.passing.pop_front();
                self.statistics.on_sent(first.size, first.starts.saturating_since(first.came), false);
                continue;
            }
            let next = self.passing.get(self.waiting);
            if self.waiting > 0 && next.is_none_or(|next| first.turn <= next.came) {
                if first.turn > now {
                    return;
                }
                self.passing.pop_front();
                self.waiting -= 1;
                self.statistics.on_sent(first.size, first.starts.saturating_since(first.came), false);
                self.backlog.packets -= 1;
                self.backlog.bytes -= Bytes::new(u64::from(first.size));
                self.statistics.on_backlog(first.turn, self.backlog);
            } else {
                let Some(next) = next.copied().filter(|next| next.came <= now) else { return };
                self.waiting += 1;
                self.backlog.packets += 1;
                self.backlog.bytes += Bytes::new(u64::from(next.size));
                self.statistics.on_backlog(next.came, self.backlog);
            }
        }
    }
}

/// The statistics are settled whenever so many more packets pass, and when somebody looks.
const SETTLED_AT_ONCE: usize = 32;
