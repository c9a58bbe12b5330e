//! The times to look at retransmission timers.

use suimon_units::Instant;

use crate::events::{Event, EventQueue};

/// Slots of 17 ms, and a turn of the wheel a second: most timers take a fraction of that.
const SLOT_BITS: u32 = 24;
const SLOTS: usize = 64;

/// In place of a flow: the end of a list, and that the flow is in none.
const END: u32 = u32::MAX;
const NOT_LISTED: u32 = u32::MAX - 1;

/// The flows whose timers may run out, by the slot of time in which they stood when last looked at.
///
/// Nearly every timer moves on before it runs out. A flow waits here until its slot begins. Only a timer that then
/// still runs out in this very slot becomes an event of its own, so that hardly any timer is sorted among events.
#[derive(Debug)]
pub(crate) struct Timers {
    /// The first flow of each slot; the others follow as a list.
    first: [u32; SLOTS],
    next: Vec<u32>,
    /// The time when the next slot begins that has a flow.
    next_slot_at: Instant,
}

impl Timers {
    /// The timers of so many flows.
    pub(crate) fn new(flows: usize) -> Self {
        Self { first: [END; SLOTS], next: vec![NOT_LISTED; flows], next_slot_at: Instant::MAX }
    }

    /// Sees to it that the timer of `flow`, which runs out at this time, is looked at until then; gives when.
    pub(crate) fn expect(&mut self, at: Instant, flow: u32, events: &mut EventQueue) -> Instant {
        let (this, slot) = (slot_of(events.now()), slot_of(at));
        let next = &mut self.next[flow as usize];
        if slot <= this || *next != NOT_LISTED {
            events.schedule(at, Event::SenderTimer, flow);
            return at;
        }
        // A timer beyond a turn is looked at after one turn, and moves on.
        let slot = slot.min(this + SLOTS as u64 - 1);
        *next = std::mem::replace(&mut self.first[slot as usize % SLOTS], flow);
        let begins = Instant::from_nanos(slot << SLOT_BITS);
        self.expect_at(begins, events);
        begins
    }

    /// Gives one of the flows whose slot begins now; `None` once all were given.
    pub(crate) fn pop(&mut self, events: &mut EventQueue) -> Option<u32> {
        let now = events.now();
        if now != self.next_slot_at {
            return None;
        }
        let this = slot_of(now);
        let first = &mut self.first[this as usize % SLOTS];
        if *first == END {
            self.next_slot_at = Instant::MAX;
            let later = this + 1..this + SLOTS as u64;
            if let Some(slot) = later.into_iter().find(|slot| self.first[*slot as usize % SLOTS] != END) {
                self.expect_at(Instant::from_nanos(slot << SLOT_BITS), events);
            }
            return None;
        }
        let flow = *first;
        *first = std::mem::replace(&mut self.next[flow as usize], NOT_LISTED);
        Some(flow)
    }

    fn expect_at(&mut self, begins: Instant, events: &mut EventQueue) {
        if begins < self.next_slot_at {
            self.next_slot_at = begins;
            events.schedule(begins, Event::Timers, 0);
        }
    }
}

fn slot_of(time: Instant) -> u64 {
    time.as_nanos() >> SLOT_BITS
}

#[cfg(test)]
mod tests {
    use suimon_units::Duration;

    use super::*;

    /// The flows that are looked at, until nothing is left to happen: times in milliseconds, rounded up.
    fn looks(timers: &mut Timers, events: &mut EventQueue) -> Vec<(u64, Option<u32>)> {
        let mut looks = Vec::new();
        while let Some((now, event, index)) = events.pop(Instant::MAX) {
            let at = now.as_nanos().div_ceil(1_000_000);
            match event {
                Event::SenderTimer => looks.push((at, Some(index))),
                Event::Timers => {
                    while let Some(flow) = timers.pop(events) {
                        looks.push((at, Some(flow)));
                    }
                }
                _ => looks.push((at, None)),
            }
        }
        looks
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_timer_is_looked_at_as_its_slot_begins_or_else_when_it_runs_out() {
        let (mut timers, mut events) = (Timers::new(4), EventQueue::default());
        assert_eq!(timers.expect(ms(10), 0, &mut events), ms(10), "in this slot");
        let begins = Instant::from_nanos(11 << SLOT_BITS);
        assert_eq!(timers.expect(ms(200), 1, &mut events), begins);
        assert_eq!(timers.expect(ms(190), 2, &mut events), begins);
        assert_eq!(timers.expect(ms(100), 1, &mut events), ms(100), "it waits for another slot already");
        assert_eq!(timers.expect(ms(60_000), 3, &mut events), Instant::from_nanos(63 << SLOT_BITS));
        let seen = looks(&mut timers, &mut events);
        let expected = [(10, 0), (100, 1), (185, 2), (185, 1), (1_057, 3)];
        assert_eq!(seen, expected.map(|(at, flow)| (at, Some(flow))));
    }
}
