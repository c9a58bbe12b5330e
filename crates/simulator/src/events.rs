//! The event queue: what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_units::Instant;

/// What a point in time is about. The index names the link or flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The link has sent a packet and takes the next from its queue.
    LinkFree(u32),
    /// The first packet in flight on the link reaches its far end.
    LinkArrival(u32),
    /// The retransmission timer of the flow's sending side may have run out.
    SenderTimer(u32),
    /// The flow's sending side may have more to send.
    SenderTurn(u32),
    /// The timer of the flow's receiving side may have run out.
    ReceiverTimer(u32),
    /// The queue of the link asked to be woken.
    QueueTimer(u32),
    /// The flow starts.
    FlowStart(u32),
    /// The flow's application stops for good.
    FlowStop(u32),
    /// The flow's application falls silent or starts again.
    FlowToggle(u32),
    /// The warm-up is over.
    WarmupEnd,
    /// Series take a sample.
    Sample,
}

/// Events by time; those of the same time in the order in which they were scheduled.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    now: Instant,
}

impl EventQueue {
    pub(crate) fn schedule(&mut self, time: Instant, event: Event) {
        debug_assert!(time >= self.now, "{event:?} would happen in the past");
        self.heap.push(Reverse((time, self.scheduled, event)));
        self.scheduled += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Event)> {
        let Reverse((time, _, event)) = self.heap.pop()?;
        self.now = time;
        Some((time, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        let at = Instant::from_nanos;
        queue.schedule(at(5), Event::LinkFree(9));
        queue.schedule(at(5), Event::LinkArrival(1));
        queue.schedule(at(3), Event::Sample);
        queue.schedule(at(5), Event::LinkFree(0));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, [Event::Sample, Event::LinkFree(9), Event::LinkArrival(1), Event::LinkFree(0)]);
    }
}
