//! Whose turn it is: deficit round robin, where a flow that begins to send goes first (RFC 8290 §4.2).

use std::collections::{HashMap, VecDeque};

use super::StreamId;

/// What takes turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Flow {
    /// A stream.
    Stream(StreamId),
    /// The datagrams of one pair of ends, by its hash.
    Datagrams(u16),
}

/// What a flow has to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Something that may be sent.
    Ready,
    /// Something for which the other end has no room.
    Blocked,
    Nothing,
}

/// The turns of flows. A flow that had nothing to send for a turn of all others is new: it goes first, until it has used up a
/// quantum.
#[derive(Debug, Default)]
pub(super) struct Turns {
    new: VecDeque<Flow>,
    old: VecDeque<Flow>,
    /// Bytes that each flow of the two lists may send in its turn.
    deficits: HashMap<Flow, i64>,
}

impl Turns {
    /// `flow` has something to send.
    pub(super) fn wake(&mut self, flow: Flow) {
        self.deficits.entry(flow).or_insert_with(|| {
            self.new.push_back(flow);
            QUANTUM
        });
    }

    /// The new flow whose turn it is.
    pub(super) fn next_new(&mut self, waiting: impl Fn(Flow) -> Waiting) -> Option<Flow> {
        while let Some(flow) = self.new.front().copied() {
            let deficit = self.deficits.entry(flow).or_default();
            if *deficit > 0 && waiting(flow) == Waiting::Ready {
                return Some(flow);
            }
            // One that has nothing to send goes behind the old ones too, or it could come back as new before them.
            self.new.pop_front();
            if *deficit <= 0 {
                *deficit += QUANTUM;
            }
            self.old.push_back(flow);
        }
        None
    }

    /// The old flow whose turn it is.
    pub(super) fn next_old(&mut self, waiting: impl Fn(Flow) -> Waiting) -> Option<Flow> {
        // New flows that have used up their quantum are old.
        let _ = self.next_new(&waiting);
        let mut blocked = 0;
        while blocked < self.old.len() {
            let flow = *self.old.front().expect("more than are blocked");
            let deficit = self.deficits.entry(flow).or_default();
            match waiting(flow) {
                Waiting::Ready if *deficit > 0 => return Some(flow),
                Waiting::Nothing => {
                    self.old.pop_front();
                    self.deficits.remove(&flow);
                    continue;
                }
                Waiting::Ready => {
                    *deficit += QUANTUM;
                    blocked = 0;
                }
                Waiting::Blocked => blocked += 1,
            }
            self.old.rotate_left(1);
        }
        None
    }

    /// `flow` sends `bytes`.
    pub(super) fn spend(&mut self, flow: Flow, bytes: usize) {
        *self.deficits.entry(flow).or_default() -= bytes as i64;
    }

    /// Whether a flow of either list has something that may be sent.
    pub(super) fn any(&self, waiting: impl Fn(Flow) -> Waiting) -> bool {
        self.new.iter().chain(&self.old).any(|flow| waiting(*flow) == Waiting::Ready)
    }

    /// Whether a new flow has.
    pub(super) fn any_new(&self, waiting: impl Fn(Flow) -> Waiting) -> bool {
        self.new.iter().any(|flow| self.deficits[flow] > 0 && waiting(*flow) == Waiting::Ready)
    }
}

/// What a flow sends in its turn: as much as a TCP connection sends before its first acknowledgement (RFC 6928 §2).
const QUANTUM: i64 = 10 * 1_448;

#[cfg(test)]
mod tests {
    use super::*;

    const A: Flow = Flow::Stream(0);
    const B: Flow = Flow::Stream(1);
    const C: Flow = Flow::Datagrams(0);

    fn ready(_: Flow) -> Waiting {
        Waiting::Ready
    }

    #[test]
    fn a_new_flow_goes_first_until_its_quantum_is_used_up_and_then_all_take_turns() {
        let mut turns = Turns::default();
        turns.wake(A);
        turns.spend(A, QUANTUM as usize);
        assert!(!turns.any_new(ready));
        assert_eq!(turns.next_old(ready), Some(A));
        turns.wake(B);
        assert!(turns.any_new(ready));
        assert_eq!(turns.next_new(ready), Some(B));
        turns.spend(B, QUANTUM as usize + 500);
        assert_eq!(turns.next_new(ready), None);
        let mut sent = HashMap::new();
        for _ in 0..100 {
            let flow = turns.next_old(ready).unwrap();
            turns.spend(flow, 1_448);
            *sent.entry(flow).or_insert(0) += 1;
        }
        assert_eq!((sent[&A], sent[&B]), (50, 50));
    }

    #[test]
    fn a_flow_that_has_nothing_for_a_moment_comes_back_behind_the_others() {
        let mut turns = Turns::default();
        turns.wake(A);
        turns.spend(A, QUANTUM as usize);
        assert_eq!((turns.next_new(ready), turns.next_old(ready)), (None, Some(A)));
        turns.wake(C);
        turns.spend(C, 100);
        let but_c = |flow| if flow == C { Waiting::Nothing } else { Waiting::Ready };
        assert_eq!(turns.next_new(but_c), None, "it goes behind A");
        turns.wake(C);
        assert_eq!((turns.next_new(ready), turns.next_old(ready)), (None, Some(A)));
        turns.spend(A, QUANTUM as usize);
        assert_eq!(turns.next_old(but_c), Some(A), "A has had its turn, C is forgotten");
        turns.wake(C);
        assert_eq!(turns.next_new(ready), Some(C), "so it is new again");
    }

    #[test]
    fn blocked_flows_keep_their_places_and_hold_up_nobody() {
        let mut turns = Turns::default();
        for flow in [A, B] {
            turns.wake(flow);
        }
        let blocked = |flow| if flow == B { Waiting::Ready } else { Waiting::Blocked };
        assert_eq!(turns.next_new(blocked), Some(B));
        assert_eq!(turns.next_old(|_| Waiting::Blocked), None);
        assert!(!turns.any(|_| Waiting::Blocked) && turns.any(blocked));
        assert_eq!(turns.next_old(ready), Some(A), "it is old though it sent nothing");
    }
}
