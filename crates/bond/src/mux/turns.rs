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
///
/// The others' data may be taken long before paths send it. So the credit of a flow that has nothing to send grows as data is sent, not as
/// it is taken: a call would get all of that credit at once, more than it may have, and none later, while it speaks.
#[derive(Debug, Default)]
pub(super) struct Turns {
    new: VecDeque<Flow>,
    old: VecDeque<Flow>,
    /// Of each flow of the two lists.
    credits: HashMap<Flow, Credit>,
    /// The number of the round, in which each flow has a turn, and the turns in it so far.
    round: u64,
    turns: i64,
    /// The turns in the round before: so many flows share.
    sharing: i64,
    /// The bytes of each of those flows that were sent.
    sent: i64,
}

#[derive(Debug, Clone, Copy)]
struct Credit {
    /// Bytes that it may send in its turn.
    bytes: i64,
    is_new: bool,
    is_old: bool,
    /// It had nothing to send when it was asked last.
    is_idle: bool,
    /// What others had sent by then.
    sent: i64,
    /// The round of its last turn.
    round: u64,
}

impl Credit {
    /// What an idle flow has once others have `sent` so much.
    fn of_idle(&self, sent: i64) -> i64 {
        (self.bytes + sent - self.sent).min(QUANTUM)
    }
}

impl Turns {
    /// `flow` has something to send.
    pub(super) fn wake(&mut self, flow: Flow) {
        let (sent, round) = (self.sent, self.round);
        let fresh = Credit { bytes: QUANTUM, is_new: false, is_old: false, is_idle: true, sent, round };
        let credit = self.credits.entry(flow).or_insert(fresh);
        if !std::mem::take(&mut credit.is_idle) {
            return;
        }
        credit.bytes = credit.of_idle(sent);
        if credit.bytes > 0 && !credit.is_new {
            credit.is_new = true;
            self.new.push_back(flow);
        }
    }

    /// So many bytes were sent that had been in turn. What a flow sends alone earns it nothing: a download that has nothing for a moment, as
    /// its source is late, still is a download.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        if self.credits.len() > 1 {
            self.sent += bytes as i64 / self.sharing.max(1);
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
            credit.sent = self.sent;
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
                    self.sharing = 1;
                    return Some(flow);
                }
                Waiting::Ready => {
                    credit.bytes += TURN;
                    if credit.round == self.round {
                        self.round += 1;
                        self.sharing = std::mem::take(&mut self.turns);
                    }
                    credit.round = self.round;
                    self.turns += 1;
                    passed = 0;
                }
                Waiting::Blocked => passed += 1,
                Waiting::Nothing if credit.is_idle && credit.of_idle(self.sent) == QUANTUM => {
                    self.old.pop_front();
                    self.credits.remove(&flow);
                    continue;
                }
                Waiting::Nothing => {
                    if !std::mem::replace(&mut credit.is_idle, true) {
                        credit.sent = self.sent;
                        // What a short last piece left of its turn is no sign of a flow that sends little.
                        credit.bytes = credit.bytes.min(0);
                    }
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

    #[test]
    fn a_download_alone_that_has_nothing_for_a_moment_does_not_begin_anew() {
        for is_alone in [true, false] {
            let mut turns = Turns::default();
            for flow in if is_alone { &[A][..] } else { &[A, B] } {
                turns.wake(*flow);
                turns.spend(*flow, QUANTUM as usize);
            }
            let beside_blocked = |own| move |flow| if flow == A { own } else { Waiting::Blocked };
            for piece in [50_000, 1] {
                assert_eq!(turns.next_old(beside_blocked(Waiting::Ready)), Some(A));
                turns.spend(A, piece);
            }
            assert_eq!(turns.next_old(beside_blocked(Waiting::Nothing)), None);
            turns.on_sent(150_000);
            turns.wake(A);
            assert_eq!(turns.any_new(ready), !is_alone);
        }
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
                turns.on_sent(3_000);
            }
            assert_eq!(went_first, always, "{datagrams}");
        }
    }

    /// As where a path is cut: what was taken for it goes over the other one, and nothing more is taken until then.
    #[test]
    fn a_call_goes_first_while_a_path_sends_what_a_download_had_taken_ahead() {
        let mut turns = Turns::default();
        turns.wake(A);
        turns.spend(A, QUANTUM as usize);
        turns.wake(C);
        assert_eq!(turns.next_new(ready), Some(C));
        turns.spend(C, 1_000);
        for _ in 0..200 {
            assert_eq!(turns.next_old(but_c), Some(A));
            turns.spend(A, 3_000);
        }
        for sent in 0..200 {
            turns.on_sent(3_000);
            turns.wake(C);
            assert_eq!(turns.next_new(ready), Some(C), "{sent}");
            turns.spend(C, 1_000);
            assert_eq!(turns.next_new(but_c), None);
        }
    }

    /// Two downloads and a call: the call's share is a third.
    #[test]
    fn a_flow_among_several_goes_first_with_the_share_of_one_of_them() {
        for (bytes, always) in [(900, true), (1_100, false)] {
            let mut turns = Turns::default();
            for flow in [A, B] {
                turns.wake(flow);
                turns.spend(flow, QUANTUM as usize);
            }
            let mut went_first = true;
            for _ in 0..400 {
                turns.wake(C);
                went_first &= turns.next_new(ready) == Some(C);
                turns.spend(C, bytes);
                assert_eq!(turns.next_new(but_c), None);
                let flow = turns.next_old(but_c).unwrap();
                turns.spend(flow, 2_000);
                turns.on_sent(2_000);
            }
            assert_eq!(went_first, always, "{bytes}");
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
