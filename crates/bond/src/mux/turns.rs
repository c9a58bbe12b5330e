//! Whose turn it is: deficit round robin, where a flow that begins to send, or sends little, goes first (RFC 8290 §4.2).

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

/// The turns of flows. Each flow has a credit, which grows by a turn whenever it comes to the others' turns. A flow that had nothing to
/// send goes first while it has credit: so does one that begins, and one that always sends less than its share.
#[derive(Debug, Default)]
pub(super) struct Turns {
    new: VecDeque<Flow>,
    old: VecDeque<Flow>,
    /// Of each flow of the two lists.
    credits: HashMap<Flow, Credit>,
}

#[derive(Debug, Clone, Copy)]
struct Credit {
    /// Bytes that it may send in its turn.
    bytes: i64,
    is_new: bool,
    is_old: bool,
    /// It had nothing to send when it was asked last.
    is_idle: bool,
}

impl Turns {
    /// `flow` has something to send.
    pub(super) fn wake(&mut self, flow: Flow) {
        let fresh = Credit { bytes: QUANTUM, is_new: false, is_old: false, is_idle: true };
        let credit = self.credits.entry(flow).or_insert(fresh);
        if std::mem::take(&mut credit.is_idle) && credit.bytes > 0 && !credit.is_new {
            credit.is_new = true;
            self.new.push_back(flow);
        }
    }

    /// The new flow whose turn it is.
    pub(super) fn next_new(&mut self, waiting: impl Fn(Flow) -> Waiting) -> Option<Flow> {
        while let Some(flow) = self.new.front().copied() {
            let credit = self.credits.get_mut(&flow).expect("each flow has one");
            let waits = waiting(flow);
            if credit.bytes > 0 && waits == Waiting::Ready {
                return Some(flow);
            }
            self.new.pop_front();
            credit.is_new = false;
            credit.is_idle = waits == Waiting::Nothing;
            if !std::mem::replace(&mut credit.is_old, true) {
                self.old.push_back(flow);
            }
        }
        None
    }

    /// The old flow whose turn it is.
    pub(super) fn next_old(&mut self, waiting: impl Fn(Flow) -> Waiting) -> Option<Flow> {
        // New flows that have used up their credit are old.
        let _ = self.next_new(&waiting);
        let mut passed = 0;
        while passed < self.old.len() {
            let flow = *self.old.front().expect("more than were passed");
            let credit = self.credits.get_mut(&flow).expect("each flow has one");
            match waiting(flow) {
                _ if credit.is_new => passed += 1,
                Waiting::Ready if credit.bytes > 0 => return Some(flow),
                Waiting::Ready if self.old.len() == 1 => {
                    credit.bytes = TURN;
                    return Some(flow);
                }
                Waiting::Ready => {
                    credit.bytes += TURN;
                    passed = 0;
                }
                Waiting::Blocked => passed += 1,
                Waiting::Nothing if credit.bytes + TURN >= QUANTUM => {
                    self.old.pop_front();
                    self.credits.remove(&flow);
                    continue;
                }
                Waiting::Nothing => {
                    credit.bytes += TURN;
                    credit.is_idle = true;
                    passed += 1;
                }
            }
            self.old.rotate_left(1);
        }
        None
    }

    /// `flow` sends `bytes`.
    pub(super) fn spend(&mut self, flow: Flow, bytes: usize) {
        self.credits.get_mut(&flow).expect("it had its turn").bytes -= bytes as i64;
    }

    /// Whether a flow of either list has something that may be sent.
    pub(super) fn any(&self, waiting: impl Fn(Flow) -> Waiting) -> bool {
        self.new.iter().chain(&self.old).any(|flow| waiting(*flow) == Waiting::Ready)
    }

    /// Whether a new flow has.
    pub(super) fn any_new(&self, waiting: impl Fn(Flow) -> Waiting) -> bool {
        self.new.iter().any(|flow| self.credits[flow].bytes > 0 && waiting(*flow) == Waiting::Ready)
    }
}

/// The credit of a flow that begins: as much as a TCP connection sends before its first acknowledgement (RFC 6928 §2).
const QUANTUM: i64 = 10 * 1_448;
/// What a flow earns in each turn: a segment (RFC 8290 §5.2.2), so that a call has had several turns of a download when it speaks again.
const TURN: i64 = 1_448;

#[cfg(test)]
mod tests {
    use super::*;

    const A: Flow = Flow::Stream(0);
    const B: Flow = Flow::Stream(1);
    const C: Flow = Flow::Datagrams(0);

    fn ready(_: Flow) -> Waiting {
        Waiting::Ready
    }

    fn but_c(flow: Flow) -> Waiting {
        if flow == C { Waiting::Nothing } else { Waiting::Ready }
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
        for _ in 0..1_000 {
            let flow = turns.next_old(ready).unwrap();
            turns.spend(flow, 1_448);
            *sent.entry(flow).or_insert(0_i32) += 1;
        }
        assert!((sent[&A] - sent[&B]).abs() <= 2, "{sent:?}");
    }

    #[test]
    fn a_flow_that_has_nothing_for_a_moment_goes_first_again_while_it_has_credit() {
        let mut turns = Turns::default();
        turns.wake(A);
        turns.spend(A, QUANTUM as usize);
        assert_eq!((turns.next_new(ready), turns.next_old(ready)), (None, Some(A)));
        for bytes in [QUANTUM - 100, 99, 1] {
            turns.wake(C);
            assert_eq!(turns.next_new(ready), Some(C));
            turns.spend(C, bytes as usize);
            assert_eq!(turns.next_new(but_c), None, "it has nothing, and A has had no turn since");
        }
        turns.wake(C);
        assert_eq!((turns.next_new(ready), turns.next_old(ready)), (None, Some(A)), "it has used up all");
    }

    /// A call of 1 kB every so often beside a download that sends 3 kB at a time.
    #[test]
    fn a_flow_always_goes_first_that_sends_less_than_its_share_and_no_other_does() {
        for (datagrams, always) in [(2, true), (4, false)] {
            let mut turns = Turns::default();
            turns.wake(A);
            turns.spend(A, QUANTUM as usize);
            let mut went_first = true;
            for _ in 0..100 {
                for _ in 0..datagrams {
                    turns.wake(C);
                    went_first &= turns.next_new(ready) == Some(C);
                    turns.spend(C, 1_000);
                    assert_eq!(turns.next_new(but_c), None);
                }
                assert_eq!(turns.next_old(but_c), Some(A));
                turns.spend(A, 3_000);
            }
            assert_eq!(went_first, always, "{datagrams}");
        }
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
