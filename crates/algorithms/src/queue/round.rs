//! Deficit round robin with two lists, where new flows go before old ones (RFC 8290 §4.1, §4.2).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

use suimon_units::Bytes;

use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;

pub(super) const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "bytes that a flow may send in its turn; at least 256 B",
    default: Value::Bytes(Bytes::new(1_514)),
    range: Range::Any,
};

/// The quantum in `arguments`; with less than Linux's minimum, turns would pass in which no flow sends.
pub(super) fn quantum(arguments: &Arguments) -> i64 {
    i64::try_from(arguments.bytes("quantum").get().max(256)).unwrap_or(i64::MAX / 2)
}

/// A flow's part in the round.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    /// Bytes that it may still send before its turn ends.
    credits: i64,
    /// True in one of the two lists.
    active: bool,
}

/// The order in which flows send.
#[derive(Debug, Clone)]
pub struct Round {
    turns: Box<[Turn]>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    quantum: i64,
}

impl Round {
    /// No flow of `flows` waits. A turn is of `quantum` bytes.
    #[must_use]
    pub fn new(flows: usize, quantum: i64) -> Self {
        Self {
            turns: vec![Turn::default(); flows].into(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum,
        }
    }

    /// The number of flows.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.turns.len()
    }

    /// A packet of `flow` has come. The flow joins the new ones, unless it is in a list.
    #[inline]
    pub fn join(&mut self, flow: usize) {
        let turn = &mut self.turns[flow];
        if !turn.active {
            *turn = Turn { credits: self.quantum, active: true };
            self.new.push_back(flow as u16);
        }
    }

    /// The flow whose turn it is.
    #[inline]
    pub fn whose_turn(&mut self) -> Option<usize> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let number = *list.front()?;
            let turn = &mut self.turns[usize::from(number)];
            if turn.credits > 0 {
                return Some(usize::from(number));
            }
            turn.credits += self.quantum;
            list.pop_front();
            self.old.push_back(number);
        }
    }

    /// `flow` sends a packet of `size`.
    #[inline]
    pub fn sends(&mut self, flow: usize, size: Bytes) {
        self.turns[flow].credits -= size.get() as i64;
    }

    /// The flow whose turn it is has no packet. A new one waits for its turn among the old ones first, or else it could
    /// come back as a new one again and again while they starve; with `as_linux` only where there are old ones.
    pub fn finds_none(&mut self, as_linux: bool) {
        let is_new = !self.new.is_empty();
        let Some(number) = (if is_new { self.new.pop_front() } else { self.old.pop_front() }) else { return };
        if is_new && !(as_linux && self.old.is_empty()) {
            self.old.push_back(number);
        } else {
            self.turns[usize::from(number)].active = false;
        }
    }

    /// The number of flows in the lists.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.new.len() + self.old.len()
    }

    /// Tells how many flows are in each list.
    pub fn probe(&self, out: &mut dyn Probe) {
        out.value("new_flows", self.new.len() as f64);
        out.value("old_flows", self.old.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_send_a_quantum_in_turn_and_new_ones_go_first() {
        let mut round = Round::new(4, 1_000);
        round.join(2);
        round.join(0);
        let mut sent = [0; 4];
        let mut order = Vec::new();
        for _ in 0..6 {
            let flow = round.whose_turn().unwrap();
            round.sends(flow, Bytes::new(500));
            sent[flow] += 500;
            order.push(flow);
        }
        assert_eq!(order, [2, 2, 0, 0, 2, 2]);
        round.join(3);
        assert_eq!(round.whose_turn(), Some(3));
    }

    #[test]
    fn a_new_flow_without_packets_waits_among_the_old_ones_or_leaves() {
        for (as_linux, old_one, stays) in [(false, false, true), (true, false, false), (true, true, true)] {
            let mut round = Round::new(2, 1_000);
            if old_one {
                round.join(1);
                round.sends(1, Bytes::new(1_000));
                round.whose_turn();
            }
            round.join(0);
            assert_eq!(round.whose_turn(), Some(0));
            round.finds_none(as_linux);
            assert_eq!(round.old.contains(&0), stays, "{as_linux} {old_one}");
            assert_eq!(round.turns[0].active, stays);
        }
    }
}
