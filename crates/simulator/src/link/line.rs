//! Packets under way to one place.

use suimon_units::Instant;

use crate::events::{Event, EventQueue};
use crate::packet::Frame;
use crate::pieces::Pieces;

/// Packets by arrival. Only the first has an entry in the event queue.
#[derive(Debug)]
pub(crate) struct Line {
    frames: Pieces<Frame>,
    /// When the next event that counts happens; events at other times are stale.
    next: Instant,
    /// The event of the first packet's arrival.
    event: Event,
    index: u32,
}

impl Line {
    /// Arrivals on it are events of this name and `index`.
    pub(crate) fn new(event: Event, index: u32) -> Self {
        Self { frames: Pieces::default(), next: Instant::MAX, event, index }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// When the first packet arrives; the end of time where none is under way.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Adds a packet that arrives at the `time` it bears.
    #[inline(always)]
    pub(crate) fn push(&mut self, frame: Frame, events: &mut EventQueue) {
        match self.frames.back() {
            None => {
                self.frames.push_back(frame);
                self.expect(frame.time, events);
            }
            Some(last) if last.time <= frame.time => self.frames.push_back(frame),
            Some(_) => self.overtake(frame, events),
        }
    }

    /// Puts a packet that overtakes others in its place.
    fn overtake(&mut self, frame: Frame, events: &mut EventQueue) {
        let place = self.frames.partition_point(|other| other.time <= frame.time);
        self.frames.insert(place, frame);
        if place == 0 {
            self.expect(frame.time, events);
        }
    }

    /// The packet that arrives now; none where the event is stale.
    #[inline(always)]
    pub(crate) fn arrived(&self, now: Instant) -> Option<&Frame> {
        if self.next == now { self.frames.front() } else { None }
    }

    /// Lets go the packet that has arrived, and schedules the arrival of the one behind it.
    #[inline(always)]
    pub(crate) fn pass(&mut self, events: &mut EventQueue) {
        self.frames.pass_front();
        if let Some(next) = self.frames.front() {
            self.expect(next.time, events);
        } else {
            self.next = Instant::MAX;
        }
    }

    #[inline(always)]
    fn expect(&mut self, arrival: Instant, events: &mut EventQueue) {
        self.next = arrival;
        events.schedule(arrival, self.event, self.index);
    }
}
