//! RFC 9332 appendix A, both passes, in floating point as it asks for.

use suimon_algorithms::queue::{Buffer, Ecn};
use suimon_units::{Bytes, Rate};

use super::traffic::{Marks, day};
use super::{Packet, PlainQueue, Pseudocode, assert_agrees};

const MTU: u64 = 1_500;

/// The two schedulers that A.2 speaks of.
#[derive(Debug, Clone, Copy)]
enum Scheduler {
    /// Figure 10, lines 28 to 33.
    TimeShiftedFifo,
    /// A sixteenth for the classic queue, in bytes; the credit moves only while both queues have packets,
    /// and an idle link gives it back to the L queue.
    Wrr,
}

#[derive(Default)]
struct Queue {
    queue: PlainQueue,
    count: f64,
}

impl Queue {
    fn len(&self) -> usize {
        self.queue.packets.len()
    }

    /// "how long the head packet was in the queue", 0 where it is empty.
    fn time(&self, now: u64) -> f64 {
        self.queue.packets.front().map_or(0.0, |head| (now - head.tstamp) as f64 / 1e9)
    }

    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }
}

struct DualPi2 {
    lq: Queue,
    cq: Queue,
    limit: u64,
    scheduler: Scheduler,
    credit: i64,
    // Figure 2.
    k: f64,
    target: f64,
    p_cmax: f64,
    tupdate: u64,
    alpha: f64,
    beta: f64,
    min_th: f64,
    range: f64,
    th_len: usize,
    p_lmax: f64,
    // Variables.
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    next_update: u64,
}

impl DualPi2 {
    fn params_init(limit: u64, scheduler: Scheduler) -> Self {
        let (k, target, rtt_max): (f64, f64, f64) = (2.0, 0.015, 0.1);
        let tupdate = target.min(rtt_max / 3.0);
        Self {
            lq: Queue::default(),
            cq: Queue::default(),
            limit,
            scheduler,
            credit: 0,
            k,
            target,
            p_cmax: (1.0 / (k * k)).min(1.0),
            tupdate: 15_000_000,
            alpha: 0.1 * tupdate / (rtt_max * rtt_max),
            beta: 0.3 / rtt_max,
            min_th: 800e-6,
            range: 400e-6,
            th_len: 1,
            p_lmax: 1.0,
            p: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0.0,
            next_update: 0,
        }
    }

    /// "runs every Tupdate".
    fn timer(&mut self, now: u64) {
        while self.next_update <= now {
            self.dualpi2_update(self.next_update);
            self.next_update += self.tupdate;
        }
    }

    /// Figure 8; p' "has to be bounded", and no probability is above 1.
    fn dualpi2_update(&mut self, now: u64) {
        let curq = self.cq.time(now).max(self.lq.time(now));
        self.p = self.p + self.alpha * (curq - self.target) + self.beta * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = (self.p * self.k).min(1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }

    /// Figure 5. Delays are whole nanoseconds, compared as such.
    fn laqm(&self, qdelay: f64) -> f64 {
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        if nanos(qdelay) >= nanos(self.min_th + self.range) {
            1.0
        } else if nanos(qdelay) > nanos(self.min_th) {
            ((nanos(qdelay) - nanos(self.min_th)) as f64 / 1e9) / self.range
        } else {
            0.0
        }
    }

    /// True for the L queue.
    fn scheduler(&self, now: u64) -> bool {
        if self.lq.len() == 0 || self.cq.len() == 0 {
            return self.lq.len() > 0;
        }
        match self.scheduler {
            Scheduler::TimeShiftedFifo => self.lq.time(now) + 0.050 >= self.cq.time(now),
            Scheduler::Wrr => self.credit <= 0,
        }
    }

    fn spend(&mut self, l_queue: bool, both: bool, size: u64) {
        if both {
            self.credit += if l_queue { size as i64 } else { -15 * size as i64 };
        } else if self.lq.len() + self.cq.len() == 0 {
            self.credit = 0;
        }
    }
}

impl Pseudocode for DualPi2 {
    /// Figure 3.
    fn enqueue(&mut self, now: u64, mut pkt: Packet, dropped: &mut Vec<Packet>) {
        self.timer(now);
        if self.lq.queue.bytes() + self.cq.queue.bytes() + MTU > self.limit {
            dropped.push(pkt);
            return;
        }
        pkt.tstamp = now;
        let ecn = match pkt.ecn {
            Ecn::NotCapable => 0b00,
            Ecn::L4s => 0b01,
            Ecn::Capable => 0b10,
            Ecn::CongestionExperienced => 0b11,
        };
        let queue = if ecn % 2 == 1 { &mut self.lq } else { &mut self.cq };
        queue.queue.packets.push_back(pkt);
    }

    /// Figure 7. `lq.len()` and `lq.time()` count the packet that line 4 dequeues: the queue that it was in
    /// is what "the queue is only 1 packet" and "the head packet's own delay" speak of.
    fn dequeue(&mut self, now: u64, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.timer(now);
        while self.lq.queue.bytes() + self.cq.queue.bytes() > 0 {
            let both = self.lq.len() > 0 && self.cq.len() > 0;
            if self.scheduler(now) {
                let (len, time) = (self.lq.len(), self.lq.time(now));
                let mut pkt = self.lq.queue.packets.pop_front().expect("scheduled");
                self.spend(true, both, pkt.size);
                if self.p_cl < self.p_lmax {
                    let p_native = if len > self.th_len { self.laqm(time) } else { 0.0 };
                    let p_l = p_native.max(self.p_cl);
                    if self.lq.recur(p_l) {
                        pkt.ecn = Ecn::CongestionExperienced;
                    }
                } else {
                    if self.lq.recur(self.p_c) {
                        dropped.push(pkt);
                        continue;
                    }
                    if self.lq.recur(self.p_cl) {
                        pkt.ecn = Ecn::CongestionExperienced;
                    }
                }
                return Some(pkt);
            }
            let mut pkt = self.cq.queue.packets.pop_front().expect("scheduled");
            self.spend(false, both, pkt.size);
            if self.cq.recur(self.p_c) {
                if pkt.ecn == Ecn::NotCapable || self.p_c >= self.p_cmax {
                    dropped.push(pkt);
                    continue;
                }
                pkt.ecn = Ecn::CongestionExperienced;
            }
            return Some(pkt);
        }
        None
    }
}

#[test]
fn dualpi2_does_as_its_pseudocode() {
    for (name, scheduler) in [("ts-fifo", Scheduler::TimeShiftedFifo), ("wrr", Scheduler::Wrr)] {
        for (bps, limit) in [(1_000_000, 100_000), (10_000_000, 60_000), (100_000_000, 3_000_000)] {
            for (seed, marks) in [(1, Marks::None), (3, Marks::Mixed), (4, Marks::Mixed)] {
                let rate = Rate::from_bps(bps);
                let tally = assert_agrees(
                    &format!("dualpi2:scheduler={name}"),
                    Buffer::Bytes(Bytes::new(limit)),
                    rate,
                    &day(seed, rate, marks),
                    &mut DualPi2::params_init(limit, scheduler),
                );
                assert!(tally.dropped > 50, "{tally:?}");
                assert_eq!(tally.marked > 50, matches!(marks, Marks::Mixed), "{tally:?}");
            }
        }
    }
}
