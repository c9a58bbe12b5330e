//! RFC 8289 §5, in its own structure.

use suimon_algorithms::queue::Buffer;
use suimon_units::{Bytes, Rate};

use super::traffic::{Marks, day};
use super::{Packet, PlainQueue, Pseudocode, assert_agrees};

/// §5.2, §5.3. Time 0 stands for "no time set".
#[derive(Debug, Clone)]
pub(super) struct CodelQueue {
    pub(super) queue: PlainQueue,
    first_above_time_: u64,
    drop_next_: u64,
    count_: u32,
    lastcount_: u32,
    dropping_: bool,
    target: u64,
    interval: u64,
    maxpacket: u64,
    /// Mark instead of dropping where that is possible, which §1 allows and leaves open.
    ecn: bool,
}

struct DodequeueResult {
    p: Option<Packet>,
    ok_to_drop: bool,
}

impl CodelQueue {
    pub(super) fn new(ecn: bool) -> Self {
        Self {
            queue: PlainQueue::default(),
            first_above_time_: 0,
            drop_next_: 0,
            count_: 0,
            lastcount_: 0,
            dropping_: false,
            target: 5_000_000,
            interval: 100_000_000,
            maxpacket: 1_500,
            ecn,
        }
    }

    /// §5.5.
    pub(super) fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let mut r = self.dodequeue(now);
        let delta: u32;
        if self.dropping_ {
            if !r.ok_to_drop {
                self.dropping_ = false;
            }
            while now >= self.drop_next_ && self.dropping_ {
                if self.mark(&mut r.p) {
                    self.count_ += 1;
                    self.drop_next_ = self.control_law(self.drop_next_, self.count_);
                    return r.p;
                }
                dropped.extend(r.p);
                self.count_ += 1;
                r = self.dodequeue(now);
                if !r.ok_to_drop {
                    self.dropping_ = false;
                } else {
                    self.drop_next_ = self.control_law(self.drop_next_, self.count_);
                }
            }
        } else if r.ok_to_drop {
            if !self.mark(&mut r.p) {
                dropped.extend(r.p);
                r = self.dodequeue(now);
            }
            self.dropping_ = true;
            delta = self.count_ - self.lastcount_;
            self.count_ = 1;
            if (delta > 1) && ((now as i64 - self.drop_next_ as i64) < 16 * self.interval as i64) {
                self.count_ = delta;
            }
            self.drop_next_ = self.control_law(now, self.count_);
            self.lastcount_ = self.count_;
        }
        r.p
    }

    fn mark(&self, p: &mut Option<Packet>) -> bool {
        match p {
            Some(p) if self.ecn && p.ecn_capable() => {
                p.ecn = suimon_algorithms::queue::Ecn::CongestionExperienced;
                true
            }
            _ => false,
        }
    }

    /// §5.6.
    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.interval as f64 / f64::from(count).sqrt()) as u64
    }

    /// §5.6.
    fn dodequeue(&mut self, now: u64) -> DodequeueResult {
        let mut r = DodequeueResult { p: self.queue.packets.pop_front(), ok_to_drop: false };
        let Some(p) = &r.p else {
            self.first_above_time_ = 0;
            return r;
        };
        let sojourn_time = now - p.tstamp;
        if sojourn_time < self.target || self.queue.bytes() <= self.maxpacket {
            self.first_above_time_ = 0;
        } else if self.first_above_time_ == 0 {
            self.first_above_time_ = now + self.interval;
        } else if now >= self.first_above_time_ {
            r.ok_to_drop = true;
        }
        r
    }
}

/// §5.4, with tail drop.
struct Limited {
    codel: CodelQueue,
    limit: u64,
}

impl Pseudocode for Limited {
    fn enqueue(&mut self, now: u64, mut packet: Packet, dropped: &mut Vec<Packet>) {
        if self.codel.queue.bytes() + packet.size > self.limit {
            dropped.push(packet);
        } else {
            packet.tstamp = now;
            self.codel.queue.packets.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.codel.dequeue(now, dropped)
    }
}

#[test]
fn codel_does_as_its_pseudocode() {
    for (bps, limit) in [(1_000_000, 150_000), (10_000_000, 60_000), (10_000_000, 5_000_000)] {
        for (seed, marks) in [(1, Marks::None), (2, Marks::None), (3, Marks::Mixed)] {
            for ecn in [false, true] {
                let rate = Rate::from_bps(bps);
                let mut pseudocode = Limited { codel: CodelQueue::new(ecn), limit };
                let tally = assert_agrees(
                    &format!("codel:ecn={ecn}"),
                    Buffer::Bytes(Bytes::new(limit)),
                    rate,
                    &day(seed, rate, marks),
                    &mut pseudocode,
                );
                assert!(tally.dropped > 50, "{tally:?}");
                assert_eq!(tally.marked > 50, ecn && matches!(marks, Marks::Mixed), "{tally:?}");
            }
        }
    }
}
