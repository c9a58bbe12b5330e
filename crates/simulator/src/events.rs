//! The event queue: what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suimon_units::Instant;

/// What a point in time is about; an index beside it names the link or flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// What has come to the link and waits for it has to be seen to.
    LinkLook,
    /// The first packet in flight on the link reaches its far end.
    LinkArrival,
    /// The first packet that an event follows on the wire reaches its far end.
    WireArrival,
    /// The retransmission timer of the flow's sending side may have run out.
    SenderTimer,
    /// The flow's sending side may have more to send.
    SenderTurn,
    /// The timer of the flow's receiving side may have run out.
    ReceiverTimer,
    /// The queue of the link asked to be woken.
    QueueTimer,
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
}

/// Every event at the place of its number.
const EVENTS: [Event; 16] = [
    Event::LinkLook,
    Event::LinkArrival,
    Event::WireArrival,
    Event::SenderTimer,
    Event::SenderTurn,
    Event::ReceiverTimer,
    Event::QueueTimer,
    Event::RadioWaiting,
    Event::Radio,
    Event::FlowStart,
    Event::FlowStop,
    Event::FlowToggle,
    Event::Aggregate,
    Event::WarmupEnd,
    Event::Sample,
    Event::Window,
];

/// Bits of an entry, from the top: time in nanoseconds (two years), order of scheduling, event, index.
const TIME_BITS: u32 = 56;
const ORDER_BITS: u32 = 44;
const EVENT_BITS: u32 = 4;
const INDEX_BITS: u32 = 24;
const _: () = assert!(TIME_BITS + ORDER_BITS + EVENT_BITS + INDEX_BITS == u128::BITS);

/// Events by time; those of the same time in the order in which they were scheduled.
///
/// A binary heap of single integers, since its comparisons and moves are what a run does most.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<u128>>,
    /// The first entry was given out already. It goes when the next one comes in, which costs one way
    /// through the heap instead of two, and nearly every event schedules another.
    first_is_spent: bool,
    /// How many were scheduled before, at its place in an entry.
    order: u128,
    now: Instant,
}

impl EventQueue {
    /// Schedules `event` for the link or flow of this `index`; what lies beyond the time that an entry
    /// can hold never comes.
    pub(crate) fn schedule(&mut self, time: Instant, event: Event, index: u32) {
        if time.as_nanos() >> TIME_BITS != 0 {
            return;
        }
        debug_assert!(time >= self.now, "{event:?} would happen in the past");
        debug_assert!(index >> INDEX_BITS == 0, "a scenario has fewer flows and links");
        let what = (event as u32) << INDEX_BITS | index;
        let time = u128::from(time.as_nanos()) << (u128::BITS - TIME_BITS);
        let entry = Reverse(time | self.order | u128::from(what));
        self.order += 1 << (EVENT_BITS + INDEX_BITS);
        if self.first_is_spent
            && let Some(mut first) = self.heap.peek_mut()
        {
            *first = entry;
            self.first_is_spent = false;
        } else {
            self.heap.push(entry);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Event, u32)> {
        if self.first_is_spent {
            self.heap.pop();
        }
        let Some(&Reverse(entry)) = self.heap.peek() else {
            self.first_is_spent = false;
            return None;
        };
        self.first_is_spent = true;
        self.now = Instant::from_nanos((entry >> (u128::BITS - TIME_BITS)) as u64);
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
        queue.schedule(at(5), Event::LinkLook, 9);
        queue.schedule(at(5), Event::LinkArrival, 1);
        queue.schedule(at(3), Event::Sample, 0);
        queue.schedule(at(5), Event::LinkLook, 0);
        let order: Vec<_> =
            std::iter::from_fn(|| queue.pop()).map(|(_, event, index)| (event, index)).collect();
        let expected =
            [(Event::Sample, 0), (Event::LinkLook, 9), (Event::LinkArrival, 1), (Event::LinkLook, 0)];
        assert_eq!(order, expected);
    }

    #[test]
    fn every_event_comes_out_as_it_went_in() {
        for (number, event) in EVENTS.into_iter().enumerate() {
            assert_eq!(event as usize, number);
            let mut queue = EventQueue::default();
            let (time, index) = (Instant::from_nanos((1 << TIME_BITS) - 1), (1 << INDEX_BITS) - 1);
            queue.schedule(time, event, index);
            assert_eq!(queue.pop(), Some((time, event, index)));
        }
    }

    #[test]
    fn what_lies_beyond_the_end_of_time_never_comes() {
        let mut queue = EventQueue::default();
        queue.schedule(Instant::from_nanos(1 << TIME_BITS), Event::Sample, 0);
        queue.schedule(Instant::MAX, Event::Sample, 0);
        assert_eq!(queue.pop(), None);
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
                        queue.schedule(Instant::from_nanos(time), Event::LinkLook, index as u32);
                        expected.push((time, index as u32));
                        expected.sort_unstable();
                    }
                    None => {
                        let next = (!expected.is_empty()).then(|| expected.remove(0));
                        now = next.map_or(now, |(time, _)| time);
                        let popped = queue.pop().map(|(time, _, index)| (time.as_nanos(), index));
                        prop_assert_eq!(popped, next);
                    }
                }
            }
        }
    }
}
