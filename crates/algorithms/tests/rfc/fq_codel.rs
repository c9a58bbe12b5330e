//! RFC 8290 §4, sentence by sentence.

use std::collections::VecDeque;

use suimon_algorithms::queue::flows::FlowHash;
use suimon_algorithms::queue::{Buffer, FlowId};
use suimon_units::Rate;

use super::codel::CodelQueue;
use super::traffic::{Marks, day};
use super::{Packet, Pseudocode, assert_agrees, random};

struct FqCodel {
    queues: Vec<CodelQueue>,
    credits: Vec<i64>,
    new_queues: VecDeque<usize>,
    old_queues: VecDeque<usize>,
    quantum: i64,
    limit: usize,
    /// The specification leaves only the choice of a flow's queue to the program.
    hash: FlowHash,
}

impl Pseudocode for FqCodel {
    /// §4.1.
    fn enqueue(&mut self, now: u64, mut packet: Packet, dropped: &mut Vec<Packet>) {
        let queue = self.hash.queue_of(FlowId(packet.flow), self.queues.len());
        packet.tstamp = now;
        self.queues[queue].queue.packets.push_back(packet);
        let active = self.new_queues.contains(&queue) || self.old_queues.contains(&queue);
        if !active {
            self.new_queues.push_back(queue);
            self.credits[queue] = self.quantum;
        }
        let total: usize = self.queues.iter().map(|queue| queue.queue.packets.len()).sum();
        if total > self.limit {
            let bytes = self.queues.iter().map(|queue| queue.queue.bytes());
            let largest = bytes.clone().max().expect("there are queues");
            let queue = bytes.clone().position(|bytes| bytes == largest).expect("just found");
            let packets = &mut self.queues[queue].queue.packets;
            let half = packets.len() / 2;
            dropped.extend(packets.drain(..half.clamp(1, 64)));
        }
    }

    /// §4.2.
    fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet> {
        loop {
            let from_new = !self.new_queues.is_empty();
            let list = if from_new { &mut self.new_queues } else { &mut self.old_queues };
            let queue = *list.front()?;
            // "a negative number of credits (i.e., it has already dequeued at least a quantum of bytes)":
            // with at least a quantum sent, none are left, as §3 says: "zero or less".
            if self.credits[queue] <= 0 {
                self.credits[queue] += self.quantum;
                list.pop_front();
                self.old_queues.push_back(queue);
                continue;
            }
            match self.queues[queue].dequeue(now, dropped) {
                None if from_new => {
                    self.new_queues.pop_front();
                    self.old_queues.push_back(queue);
                }
                None => {
                    self.old_queues.pop_front();
                }
                Some(packet) => {
                    self.credits[queue] -= packet.size as i64;
                    return Some(packet);
                }
            }
        }
    }
}

#[test]
fn fq_codel_does_as_its_specification() {
    for (bps, limit, flows) in [
        (1_000_000, 1_000, 1_024),
        (10_000_000, 200, 1_024),
        (10_000_000, 10_240, 1_024),
        (10_000_000, 40, 4),
    ] {
        for (seed, marks) in [(1, Marks::None), (3, Marks::Mixed)] {
            let rate = Rate::from_bps(bps);
            let mut pseudocode = FqCodel {
                queues: vec![CodelQueue::new(true); flows],
                credits: vec![0; flows],
                new_queues: VecDeque::new(),
                old_queues: VecDeque::new(),
                quantum: 1_514,
                limit,
                hash: FlowHash::new(&mut random()),
            };
            let tally = assert_agrees(
                &format!("fq-codel:flows={flows}"),
                Buffer::Packets(limit as u64),
                rate,
                &day(seed, rate, marks),
                &mut pseudocode,
            );
            assert!(tally.dropped > 50, "{tally:?}");
            assert_eq!(tally.marked > 50, matches!(marks, Marks::Mixed), "{tally:?}");
        }
    }
}
