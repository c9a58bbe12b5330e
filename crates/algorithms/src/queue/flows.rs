//! Many queues in one store, for disciplines that keep flows apart.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use suimon_units::Bytes;

use super::timed::Timed;
use super::{Backlog, Buffer, FlowId, Packet};
use crate::random::RandomStream;

/// A fixed number of first-in, first-out queues with one buffer. Their packets share one store, so that
/// memory follows the backlog, not the number of flows.
#[derive(Debug, Clone)]
pub struct FlowQueues<P> {
    places: Vec<Place<P>>,
    free: u32,
    queues: Box<[Queue]>,
    backlog: Backlog,
    buffer: Buffer,
}

/// A packet and the place of the one behind it; an unused place has no packet.
#[derive(Debug, Clone)]
struct Place<P> {
    packet: Option<Timed<P>>,
    next: u32,
}

#[derive(Debug, Clone)]
struct Queue {
    first: u32,
    last: u32,
    backlog: Backlog,
}

/// Stands for "no place".
const NONE: u32 = u32::MAX;

impl<P: Packet> FlowQueues<P> {
    /// `count` empty queues with room for `buffer` in all.
    #[must_use]
    pub fn new(count: usize, buffer: Buffer) -> Self {
        let queue = Queue { first: NONE, last: NONE, backlog: Backlog::default() };
        Self {
            places: Vec::new(),
            free: NONE,
            queues: vec![queue; count].into(),
            backlog: Backlog::default(),
            buffer,
        }
    }

    /// `packet` joins the end of `queue`, whether or not it fits.
    pub fn push(&mut self, queue: usize, packet: Timed<P>) {
        let size = packet.size();
        let place = Place { packet: Some(packet), next: NONE };
        let at = if self.free == NONE {
            self.places.push(place);
            (self.places.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = core::mem::replace(&mut self.places[at as usize], place).next;
            at
        };
        let queue = &mut self.queues[queue];
        match queue.last {
            NONE => queue.first = at,
            last => self.places[last as usize].next = at,
        }
        queue.last = at;
        queue.backlog.packets += 1;
        queue.backlog.bytes += size;
        self.backlog.packets += 1;
        self.backlog.bytes += size;
    }

    /// The packet that has waited longest in the queue of this number leaves.
    pub fn pop(&mut self, number: usize) -> Option<Timed<P>> {
        let queue = &mut self.queues[number];
        let place = self.places.get_mut(queue.first as usize)?;
        let packet = place.packet.take()?;
        let at = core::mem::replace(&mut queue.first, place.next);
        place.next = core::mem::replace(&mut self.free, at);
        if queue.first == NONE {
            queue.last = NONE;
        }
        self.forget(number, &packet);
        Some(packet)
    }

    /// The packet that came last to `queue` leaves; takes time in proportion to the queue's length.
    pub fn pop_last(&mut self, queue: usize) -> Option<Timed<P>> {
        let Queue { first, last, .. } = self.queues[queue];
        if first == last {
            return self.pop(queue);
        }
        let packet = self.places.get_mut(last as usize)?.packet.take()?;
        let mut before = first;
        while self.places[before as usize].next != last {
            before = self.places[before as usize].next;
        }
        self.places[before as usize].next = NONE;
        self.queues[queue].last = before;
        self.places[last as usize].next = core::mem::replace(&mut self.free, last);
        self.forget(queue, &packet);
        Some(packet)
    }

    #[inline(always)]
    fn forget(&mut self, queue: usize, packet: &Timed<P>) {
        let queue = &mut self.queues[queue];
        let size = packet.size();
        queue.backlog.packets -= 1;
        queue.backlog.bytes -= size;
        self.backlog.packets -= 1;
        self.backlog.bytes -= size;
    }

    /// The backlog of `queue`.
    #[must_use]
    pub fn backlog_of(&self, queue: usize) -> Backlog {
        self.queues[queue].backlog
    }

    /// The backlog of all queues.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// True where more waits than there is room for.
    #[must_use]
    pub fn overflows(&self) -> bool {
        match self.buffer {
            Buffer::Packets(limit) => self.backlog.packets > limit,
            Buffer::Bytes(limit) => self.backlog.bytes > limit,
            Buffer::Unbounded => false,
        }
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The queue with most bytes, the first of several.
    #[must_use]
    pub fn fattest(&self) -> usize {
        let mut most = Bytes::ZERO;
        let mut fattest = 0;
        for (at, queue) in self.queues.iter().enumerate() {
            if queue.backlog.bytes > most {
                most = queue.backlog.bytes;
                fattest = at;
            }
        }
        fattest
    }
}

/// Ordered lists over the numbers of flows, each of which is in one list at most.
#[derive(Debug, Clone)]
pub struct Rings {
    /// Before and behind each flow; then the same for the head of each list, which closes it to a ring.
    links: Box<[(u16, u16)]>,
    flows: usize,
}

impl Rings {
    /// `lists` empty lists over `flows` flows.
    ///
    /// # Panics
    /// With more than 65 536 of both together.
    #[must_use]
    pub fn new(flows: usize, lists: usize) -> Self {
        let alone = |at| u16::try_from(at).expect("callers limit the number of flows");
        Self { links: (0..flows + lists).map(|at| (alone(at), alone(at))).collect(), flows }
    }

    /// The first flow of `list`.
    #[must_use]
    pub fn first(&self, list: usize) -> Option<usize> {
        let first = usize::from(self.links[self.flows + list].1);
        (first < self.flows).then_some(first)
    }

    /// The flows of `list`, first to last.
    pub fn members(&self, list: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(self.first(list), |at| {
            let next = usize::from(self.links[*at].1);
            (next < self.flows).then_some(next)
        })
    }

    /// `flow` leaves the list that it is in, if any.
    pub fn remove(&mut self, flow: usize) {
        let (before, behind) = self.links[flow];
        self.links[usize::from(before)].1 = behind;
        self.links[usize::from(behind)].0 = before;
        self.links[flow] = (flow as u16, flow as u16);
    }

    /// `flow` leaves the list that it is in, if any, and joins the end of `list`.
    pub fn move_to(&mut self, flow: usize, list: usize) {
        self.remove(flow);
        let head = self.flows + list;
        let last = core::mem::replace(&mut self.links[head].0, flow as u16);
        self.links[usize::from(last)].1 = flow as u16;
        self.links[flow] = (last, head as u16);
    }
}

/// Hashes flows so that no outsider can foresee the hash.
#[derive(Debug, Clone)]
pub struct FlowHash {
    perturbation: u64,
}

impl FlowHash {
    /// With a perturbation from `random`.
    #[must_use]
    pub fn new(random: &mut RandomStream) -> Self {
        Self { perturbation: random.below(u64::MAX) }
    }

    /// The hash of a flow's or a host's number, evenly spread over 64 bits.
    #[must_use]
    pub fn of(&self, number: u32) -> u64 {
        // The finaliser of MurmurHash3: every bit of the input turns every bit of the result half the time.
        let mut hash = u64::from(number) ^ self.perturbation;
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }

    /// One of `count` queues for `flow`.
    #[must_use]
    pub fn queue_of(&self, flow: FlowId, count: usize) -> usize {
        place_of(self.of(flow.0), count)
    }
}

/// One of `count` places for `hash`.
#[must_use]
pub fn place_of(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::TestPacket;
    use suimon_units::Instant;

    fn timed(id: u64, size: u64) -> Timed<TestPacket> {
        Timed { packet: TestPacket::new(id, size), since: Instant::ZERO }
    }

    #[test]
    fn queues_keep_their_order_and_share_their_places() {
        let mut queues = FlowQueues::new(3, Buffer::Unbounded);
        for round in 0..100 {
            for id in 0..6 {
                queues.push((id % 3) as usize, timed(round * 6 + id, 100 + id));
            }
            assert_eq!(queues.backlog(), Backlog { packets: 6, bytes: Bytes::new(615) });
            for queue in [2, 0, 1] {
                let ids: Vec<_> =
                    std::iter::from_fn(|| queues.pop(queue)).map(|timed| timed.packet.id).collect();
                assert_eq!(ids, [round * 6 + queue as u64, round * 6 + queue as u64 + 3]);
                assert_eq!(queues.backlog_of(queue), Backlog::default());
            }
        }
        assert_eq!(queues.places.len(), 6);
    }

    #[test]
    fn packets_leave_at_both_ends() {
        let mut queues = FlowQueues::new(2, Buffer::Unbounded);
        for round in 0..3 {
            (0..4).for_each(|id| queues.push(0, timed(id, 100)));
            queues.push(1, timed(9, 50));
            let ids = [
                queues.pop_last(0),
                queues.pop(0),
                queues.pop_last(0),
                queues.pop_last(0),
                queues.pop_last(0),
            ]
            .map(|timed| timed.map(|timed| timed.packet.id));
            assert_eq!(ids, [Some(3), Some(0), Some(2), Some(1), None], "{round}");
            assert_eq!(queues.backlog(), Backlog { packets: 1, bytes: Bytes::new(50) });
            assert_eq!(queues.pop_last(1).unwrap().packet.id, 9);
        }
        assert_eq!(queues.places(), 5);
    }

    #[test]
    fn the_fattest_has_most_bytes_not_most_packets() {
        let mut queues = FlowQueues::new(3, Buffer::Bytes(Bytes::new(1_600)));
        (0..3).for_each(|id| queues.push(0, timed(id, 40)));
        queues.push(2, timed(3, 1_480));
        assert_eq!(queues.fattest(), 2);
        assert!(!queues.overflows());
        queues.push(1, timed(4, 1_480));
        assert_eq!(queues.fattest(), 1);
        assert!(queues.overflows());
    }

    #[test]
    fn lists_keep_their_order_and_flows_move_between_them() {
        let mut rings = Rings::new(5, 2);
        (0..5).for_each(|flow| rings.move_to(flow, 0));
        rings.move_to(0, 1);
        rings.move_to(3, 1);
        rings.remove(2);
        rings.move_to(1, 0);
        assert_eq!(rings.members(0).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(rings.members(1).collect::<Vec<_>>(), [0, 3]);
        [0, 1, 3, 4].into_iter().for_each(|flow| rings.remove(flow));
        assert_eq!((rings.first(0), rings.first(1)), (None, None));
    }

    #[test]
    fn a_perturbation_spreads_flows_evenly_and_anew() {
        let hash = |seed| FlowHash::new(&mut RandomStream::new(seed, "hash"));
        let (first, second) = (hash(1), hash(2));
        let mut counts = [0_u32; 16];
        let mut same = 0;
        for flow in (0..16_000).map(FlowId) {
            counts[first.queue_of(flow, 16)] += 1;
            same += u32::from(first.queue_of(flow, 16) == second.queue_of(flow, 16));
        }
        // 1000 expected, five standard deviations of 31.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 155), "{counts:?}");
        assert!(same.abs_diff(1_000) < 155, "{same}");
    }
}
