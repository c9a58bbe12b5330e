//! The event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_units::Instant;

/// The kind of an event; an index beside it names the link or flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Packets that have come to the link and wait for it need service.
    LinkService,
    /// The first packet in flight on the link reaches its far end.
    LinkArrival,
    /// The first packet that an event follows on the wire reaches its far end.
    WireArrival,
    /// The retransmission timer of the flow's sending side may have run out.
    SenderTimer,
    /// Retransmission timers of several flows may run out soon.
    Timers,
    /// The flow's sending side may have more to send.
    SenderTurn,
    /// The timer of the flow's receiving side may have run out.
    ReceiverTimer,
    /// A packet has come to wait at the link, which a radio serves.
    RadioWaiting,
    /// The radio of this index has something to do.
    Radio,
    /// The flow starts.
    FlowStart,
    /// The flow's application stops for good.
    FlowStop,
    /// The flow's application falls silent or starts again.
    FlowToggle,
    /// The aggregate has something to look at.
    Aggregate,
    /// The warm-up is over.
    WarmupEnd,
    /// Series take a sample.
    Sample,
    /// The window of this index opens, takes a sample or closes.
    Window,
    /// The shaper of this index chooses a rate.
    Shaper,
}

/// Every event at the place of its number.
const EVENTS: [Event; 17] = [
    Event::LinkService,
    Event::LinkArrival,
    Event::WireArrival,
    Event::SenderTimer,
    Event::Timers,
    Event::SenderTurn,
    Event::ReceiverTimer,
    Event::RadioWaiting,
    Event::Radio,
    Event::FlowStart,
    Event::FlowStop,
    Event::FlowToggle,
    Event::Aggregate,
    Event::WarmupEnd,
    Event::Sample,
    Event::Window,
    Event::Shaper,
];

/// An entry: above, the time in nanoseconds; below, from the top, order of scheduling, event, index. The order
/// begins anew after 34 billion events, which matters only for some that happen at the same nanosecond.
type Entry = u128;
const EVENT_BITS: u32 = 5;
const INDEX_BITS: u32 = 24;
const NEXT_IN_ORDER: u64 = 1 << (EVENT_BITS + INDEX_BITS);

/// Events by time; those of the same time in the order in which they were scheduled.
///
/// A binary heap of single integers, since its comparisons and moves take most of a run's time.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    /// The first entry was given out already. It goes when the next one comes in, which costs one way
    /// through the heap instead of two, and nearly every event schedules another.
    first_is_spent: bool,
    /// The number of events scheduled before, at its place in an entry.
    order: u64,
    now: Instant,
}

impl EventQueue {
    /// Schedules `event` for the link or flow of this `index`; at the end of time nothing comes any more.
    pub(crate) fn schedule(&mut self, time: Instant, event: Event, index: u32) {
        if time == Instant::MAX {
            return;
        }
        debug_assert!(time >= self.now, "{event:?} would happen in the past");
        debug_assert!(index >> INDEX_BITS == 0, "a scenario has fewer flows and links");
        let what = (event as u32) << INDEX_BITS | index;
        let below = self.order | u64::from(what);
        let entry = Reverse(Entry::from(time.as_nanos()) << u64::BITS | Entry::from(below));
        self.order = self.order.wrapping_add(NEXT_IN_ORDER);
        if self.first_is_spent
            && let Some(mut first) = self.heap.peek_mut()
        {
            *first = entry;
            self.first_is_spent = false;
        } else {
            self.heap.push(entry);
        }
    }

    /// The time of the event that was given out last.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The next event, until `end`.
    pub(crate) fn pop(&mut self, end: Instant) -> Option<(Instant, Event, u32)> {
        if std::mem::take(&mut self.first_is_spent) {
            self.heap.pop();
        }
        let Reverse(entry) = *self.heap.peek()?;
        let time = Instant::from_nanos((entry >> u64::BITS) as u64);
        if time > end {
            return None;
        }
        self.first_is_spent = true;
        self.now = time;
        let what = entry as u32;
        let number = what >> INDEX_BITS & ((1 << EVENT_BITS) - 1);
        let index = what & ((1 << INDEX_BITS) - 1);
        Some((self.now, EVENTS[number as usize], index))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        let at = Instant::from_nanos;
        queue.schedule(at(5), Event::LinkService, 9);
        queue.schedule(at(5), Event::LinkArrival, 1);
        queue.schedule(at(3), Event::Sample, 0);
        queue.schedule(at(5), Event::LinkService, 0);
        let order: Vec<_> =
            std::iter::from_fn(|| queue.pop(Instant::MAX)).map(|(_, event, index)| (event, index)).collect();
        let expected =
            [(Event::Sample, 0), (Event::LinkService, 9), (Event::LinkArrival, 1), (Event::LinkService, 0)];
        assert_eq!(order, expected);
    }

    #[test]
    fn every_event_comes_out_as_it_went_in() {
        for (number, event) in EVENTS.into_iter().enumerate() {
            assert_eq!(event as usize, number);
            let mut queue = EventQueue::default();
            let (time, index) = (Instant::from_nanos(u64::MAX - 1), (1 << INDEX_BITS) - 1);
            queue.schedule(time, event, index);
            assert_eq!(queue.pop(Instant::MAX), Some((time, event, index)));
        }
    }

    #[test]
    fn what_lies_at_the_end_of_time_never_comes() {
        let mut queue = EventQueue::default();
        queue.schedule(Instant::MAX, Event::Sample, 0);
        assert_eq!(queue.pop(Instant::MAX), None);
    }

    proptest! {
        #[test]
        fn events_come_in_the_order_of_a_sorted_list_however_pushes_and_pops_mix(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0_u64..50), 0..300),
        ) {
            let mut queue = EventQueue::default();
            let mut expected: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Some(later) => {
                        let time = now + later;
                        queue.schedule(Instant::from_nanos(time), Event::LinkService, index as u32);
                        expected.push((time, index as u32));
                        expected.sort_unstable();
                    }
                    None => {
                        let next = (!expected.is_empty()).then(|| expected.remove(0));
                        now = next.map_or(now, |(time, _)| time);
                        let popped = queue.pop(Instant::MAX).map(|(time, _, index)| (time.as_nanos(), index));
                        prop_assert_eq!(popped, next);
                    }
                }
            }
        }
    }
}
