//! RFC 8033 appendix B, function by function.

use suimon_algorithms::queue::{Buffer, Ecn};
use suimon_algorithms::random::RandomStream;
use suimon_units::{Bytes, Rate};

use super::traffic::{Marks, day};
use super::{Packet, PlainQueue, Pseudocode, assert_agrees, random};

const QDELAY_REF: f64 = 0.015;
const MAX_BURST: i64 = 150_000_000;
const MAX_ECNTH: f64 = 0.1;
const ALPHA: f64 = 1.0 / 8.0;
const BETA: f64 = 1.0 + 1.0 / 4.0;
const DQ_THRESHOLD: f64 = 16_384.0;
const T_UPDATE: i64 = 15_000_000;
const MEAN_PKTSIZE: u64 = 1_000;

/// The table of status variables. Times of the clock in nanoseconds, delays in seconds.
struct Pie {
    queue_: PlainQueue,
    tail_drop: u64,
    random: RandomStream,
    /// Without the option of §5.3, with the rule of §4.4 in its place.
    always_active: bool,
    active_: bool,
    burst_allowance_: i64,
    drop_prob_: f64,
    accu_prob_: f64,
    qdelay_old_: f64,
    current_qdelay: f64,
    /// Not the RFC's: the last calculation knew the departure rate, and it was after PIE became active.
    current_qdelay_is_known: bool,
    last_timestamp_: i64,
    dq_count_: u64,
    measurement_start_: i64,
    in_measurement_: bool,
    avg_dq_time_: f64,
}

impl Pie {
    fn new(tail_drop: u64, always_active: bool) -> Self {
        Self {
            queue_: PlainQueue::default(),
            tail_drop,
            random: random(),
            always_active,
            active_: always_active,
            burst_allowance_: MAX_BURST,
            drop_prob_: 0.0,
            accu_prob_: 0.0,
            qdelay_old_: 0.0,
            current_qdelay: 0.0,
            current_qdelay_is_known: false,
            last_timestamp_: 0,
            dq_count_: 0,
            measurement_start_: 0,
            in_measurement_: false,
            avg_dq_time_: 0.0,
        }
    }

    /// "Update periodically": the timer, which goes off when each period is over.
    fn timer(&mut self, now: i64) {
        while self.active_ && now - self.last_timestamp_ >= T_UPDATE {
            self.calculate_drop_prob(self.last_timestamp_ + T_UPDATE);
        }
    }

    /// True to drop.
    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old_ < QDELAY_REF / 2.0 && self.drop_prob_ < 0.2)
            || (self.queue_.bytes() <= 2 * MEAN_PKTSIZE)
        {
            return false;
        }
        if self.drop_prob_ == 0.0 {
            self.accu_prob_ = 0.0;
        }
        self.accu_prob_ += self.drop_prob_;
        if self.accu_prob_ < 0.85 {
            return false;
        }
        if self.accu_prob_ >= 8.5 {
            return true;
        }
        let u = self.random.uniform();
        if u < self.drop_prob_ {
            self.accu_prob_ = 0.0;
            true
        } else {
            false
        }
    }

    fn calculate_drop_prob(&mut self, now: i64) {
        if (now - self.last_timestamp_) >= T_UPDATE && self.active_ {
            self.current_qdelay = self.queue_.bytes() as f64 * self.avg_dq_time_ / DQ_THRESHOLD;
            self.current_qdelay_is_known = self.avg_dq_time_ != 0.0;
            let mut p =
                ALPHA * (self.current_qdelay - QDELAY_REF) + BETA * (self.current_qdelay - self.qdelay_old_);
            if self.drop_prob_ < 0.000001 {
                p /= 2048.0;
            } else if self.drop_prob_ < 0.00001 {
                p /= 512.0;
            } else if self.drop_prob_ < 0.0001 {
                p /= 128.0;
            } else if self.drop_prob_ < 0.001 {
                p /= 32.0;
            } else if self.drop_prob_ < 0.01 {
                p /= 8.0;
            } else if self.drop_prob_ < 0.1 {
                p /= 2.0;
            }
            if self.drop_prob_ >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob_ += p;
            if self.current_qdelay < QDELAY_REF / 2.0 && self.qdelay_old_ < QDELAY_REF / 2.0 {
                self.drop_prob_ *= 0.98;
            }
            // "Bound drop probability".
            self.drop_prob_ = self.drop_prob_.clamp(0.0, 1.0);
            self.qdelay_old_ = self.current_qdelay;
            self.last_timestamp_ = now;
            self.burst_allowance_ = (self.burst_allowance_ - T_UPDATE).max(0);
        }
    }
}

impl Pseudocode for Pie {
    fn enqueue(&mut self, now: u64, mut packet: Packet, dropped: &mut Vec<Packet>) {
        self.timer(now as i64);
        if self.queue_.bytes() + packet.size > self.tail_drop {
            dropped.push(packet);
            self.accu_prob_ = 0.0;
        } else if self.active_ && self.drop_early() && self.burst_allowance_ == 0 {
            if self.drop_prob_ < MAX_ECNTH && packet.ecn_capable() {
                packet.ecn = Ecn::CongestionExperienced;
                self.queue_.packets.push_back(packet);
            } else {
                dropped.push(packet);
            }
            // "PIE->accu_prob_ is reset to 0 after a drop" (§5.4), and a mark stands for one.
            self.accu_prob_ = 0.0;
        } else {
            self.queue_.packets.push_back(packet);
        }
        if self.always_active {
            if self.drop_prob_ == 0.0
                && self.current_qdelay < QDELAY_REF / 2.0
                && self.qdelay_old_ < QDELAY_REF / 2.0
            {
                self.burst_allowance_ = MAX_BURST;
            }
            return;
        }
        if !self.active_ && self.queue_.bytes() >= self.tail_drop / 3 {
            self.active_ = true;
            self.qdelay_old_ = 0.0;
            self.drop_prob_ = 0.0;
            self.in_measurement_ = true;
            self.dq_count_ = 0;
            self.avg_dq_time_ = 0.0;
            self.last_timestamp_ = now as i64;
            self.burst_allowance_ = MAX_BURST;
            self.accu_prob_ = 0.0;
            self.measurement_start_ = now as i64;
            self.current_qdelay_is_known = false;
        }
        // Without the last condition, which the RFC does not have, PIE would turn itself off in the very
        // call that turned it on: all three are 0 until there was a calculation with a departure rate measured.
        if self.drop_prob_ == 0.0
            && self.qdelay_old_ == 0.0
            && self.current_qdelay == 0.0
            && self.current_qdelay_is_known
        {
            self.active_ = false;
            self.in_measurement_ = false;
        }
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Vec<Packet>) -> Option<Packet> {
        let now = now as i64;
        self.timer(now);
        let packet = self.queue_.packets.pop_front()?;
        if self.in_measurement_ {
            self.dq_count_ += packet.size;
            if self.dq_count_ as f64 >= DQ_THRESHOLD {
                let dq_time = (now - self.measurement_start_) as f64 / 1e9;
                if self.avg_dq_time_ == 0.0 {
                    self.avg_dq_time_ = dq_time;
                } else {
                    let weight = DQ_THRESHOLD / 65_536.0;
                    self.avg_dq_time_ = dq_time * weight + self.avg_dq_time_ * (1.0 - weight);
                }
                self.in_measurement_ = false;
            }
        }
        if self.queue_.bytes() as f64 >= DQ_THRESHOLD && !self.in_measurement_ {
            self.in_measurement_ = true;
            self.measurement_start_ = now;
            self.dq_count_ = 0;
        }
        Some(packet)
    }
}

#[test]
fn pie_does_as_its_pseudocode() {
    let mut marked = 0;
    for (bps, limit) in
        [(1_000_000, 60_000), (10_000_000, 60_000), (10_000_000, 300_000), (100_000_000, 1_500_000)]
    {
        for (seed, marks) in [(1, Marks::None), (2, Marks::None), (3, Marks::Mixed)] {
            let rate = Rate::from_bps(bps);
            let buffer = Buffer::Bytes(Bytes::new(limit));
            for (activation, always_active) in [("0.3333333333333333", false), ("0", true)] {
                let tally = assert_agrees(
                    &format!("pie:activation={activation}"),
                    buffer,
                    rate,
                    &day(seed, rate, marks),
                    &mut Pie::new(limit, always_active),
                );
                assert!(tally.dropped > 50, "{tally:?}");
                marked += tally.marked;
            }
        }
    }
    assert!(marked > 200, "{marked}");
}
