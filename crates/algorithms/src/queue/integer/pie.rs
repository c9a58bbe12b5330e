//! PIE in integers: [`super::super::pie`], with the delay of a link whose rate is known (RFC 8033 §5.2).
//!
//! A program has no timer: the next arrival makes the adjustments that fell due, with the queue that it finds.

use alloc::boxed::Box;

use suimon_units::Instant;

use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;
use crate::queue::DropReason;
use crate::queue::policy::Verdict;

/// The words: target, time between adjustments and longest burst in ns; `alpha` and `beta` in 2^-56 a ns; the mean size of
/// a packet in bytes; and the probability from which on packets are not marked but dropped, in parts of [`ONE`].
pub(super) const PROGRAM: Program = Program {
    name: "pie",
    parameters: &["target", "tupdate", "alpha", "beta", "max_burst", "mean_packet", "mark_ecnth"],
    words,
    limits: [
        (0, MAX_TIME_NS),
        (1_000_000, MAX_TIME_NS),
        (0, MAX_TIME_NS),
        (0, MAX_GAIN),
        (0, MAX_GAIN),
        (0, MAX_PACKET),
        (0, ONE),
        (0, 0),
    ],
    policy: |settings| Box::new(Policy::new(settings, Pie::new(settings))),
};

fn words(arguments: &Arguments, _rate: u64, _buffer: u64) -> [u64; WORDS] {
    let ns = |name| arguments.duration(name).as_nanos();
    let gain = |name| libm::round(arguments.number(name) * ONE_P as f64 / 1e9) as u64;
    [
        ns("target"),
        ns("tupdate"),
        ns("max_burst"),
        gain("alpha"),
        gain("beta"),
        arguments.bytes("mean_packet").get(),
        super::fraction(arguments.number("mark_ecnth")),
        0,
    ]
}

/// Names are the RFC's; times are in ns.
#[derive(Debug, Clone)]
struct Pie {
    target: u64,
    tupdate: u64,
    max_burst: u64,
    alpha: u64,
    beta: u64,
    mean_packet: u64,
    mark_ecnth: u64,
    rate: u64,
    /// [`POINT`] bits after the point.
    drop_prob: u64,
    /// In parts of [`ONE`].
    accu_prob: u64,
    /// What of the burst allowance is used up.
    burst_used: u64,
    current_qdelay: u64,
    qdelay_old: u64,
    /// Zero before the first arrival.
    last_timestamp: u64,
}

impl Pie {
    fn new(settings: &Settings) -> Self {
        let [target, tupdate, max_burst, alpha, beta, mean_packet, mark_ecnth, _] = settings.words;
        Self {
            target,
            tupdate,
            max_burst,
            alpha,
            beta,
            mean_packet,
            mark_ecnth,
            rate: settings.bytes_per_second,
            drop_prob: 0,
            accu_prob: 0,
            burst_used: 0,
            current_qdelay: 0,
            qdelay_old: 0,
            last_timestamp: 0,
        }
    }

    fn catch_up(&mut self, now: u64, backlog: u64) {
        if self.last_timestamp == 0 {
            self.last_timestamp = now;
        }
        for _ in 0..ADJUSTMENTS {
            if now.saturating_sub(self.last_timestamp) < self.tupdate {
                return;
            }
            self.last_timestamp += self.tupdate;
            self.calculate_drop_prob(backlog);
        }
        if now.saturating_sub(self.last_timestamp) >= self.tupdate {
            // Nothing came for so long that nothing is left of before.
            self.drop_prob = 0;
            self.last_timestamp = now;
        }
    }

    /// RFC 8033 §4.2, §5.5.
    fn calculate_drop_prob(&mut self, backlog: u64) {
        let delay = (backlog.min(MAX_BACKLOG) * 1_000_000_000 / self.rate).min(MAX_TIME_NS);
        self.current_qdelay = delay;
        let old = self.qdelay_old;
        let up = self.alpha * delay.saturating_sub(self.target) + self.beta * delay.saturating_sub(old);
        let down = self.alpha * self.target.saturating_sub(delay) + self.beta * old.saturating_sub(delay);
        let scale = scale(self.drop_prob);
        if up >= down {
            let mut change = (up - down) >> scale;
            if self.drop_prob >= ONE_P / 10 {
                change = change.min(ONE_P / 50);
            }
            self.drop_prob += change;
        } else {
            self.drop_prob = self.drop_prob.saturating_sub((down - up) >> scale);
        }
        if delay < self.target / 2 && old < self.target / 2 {
            self.drop_prob -= self.drop_prob / 50;
        }
        self.drop_prob = self.drop_prob.min(ONE_P);
        self.qdelay_old = delay;
        self.burst_used = (self.burst_used + self.tupdate).min(self.max_burst);
    }

    /// RFC 8033 §5.4; appendix B, `drop_early`.
    fn drop_early(&mut self, backlog: u64, random: &mut Random) -> bool {
        let calm = self.qdelay_old < self.target / 2 && self.drop_prob < ONE_P / 5;
        if calm || backlog <= 2 * self.mean_packet {
            return false;
        }
        if self.drop_prob == 0 {
            self.accu_prob = 0;
        }
        let p = self.drop_prob >> (POINT - 32);
        self.accu_prob += p;
        if self.accu_prob < ACCUMULATED_LEAST {
            return false;
        }
        if self.accu_prob >= ACCUMULATED_MOST {
            return true;
        }
        let drop = random.chance(p);
        if drop {
            self.accu_prob = 0;
        }
        drop
    }
}

impl Law for Pie {
    const DISTANCES: Distances = Distances::Independent;

    fn advise(&mut self, arrival: &Arrival, _tables: &Tables, random: &mut Random) -> Advice {
        let backlog = arrival.backlog.bytes.get();
        self.catch_up(arrival.now.saturating_since(Instant::ZERO).as_nanos(), backlog);
        if !(self.drop_early(backlog, random) && self.burst_used == self.max_burst) {
            return Advice::Choose(0);
        }
        self.accu_prob = 0;
        if self.drop_prob >> (POINT - 32) < self.mark_ecnth { Advice::Choose(ONE) } else { Advice::Drop }
    }

    fn on_verdict(&mut self, _arrival: &Arrival, verdict: Verdict, _tables: &Tables) {
        if verdict == Verdict::Drop(DropReason::Overflow) {
            self.accu_prob = 0;
        }
        let is_short = self.current_qdelay < self.target / 2 && self.qdelay_old < self.target / 2;
        if self.drop_prob == 0 && is_short {
            self.burst_used = 0;
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("drop_probability", self.drop_prob as f64 / ONE_P as f64);
        out.value("delay_ms", self.qdelay_old as f64 / 1e6);
    }
}

/// How often a change of the probability is halved, so that small ones change little (RFC 8033 §4.2).
fn scale(drop_prob: u64) -> u32 {
    match drop_prob {
        p if p < ONE_P / 1_000_000 => 11,
        p if p < ONE_P / 100_000 => 9,
        p if p < ONE_P / 10_000 => 7,
        p if p < ONE_P / 1_000 => 5,
        p if p < ONE_P / 100 => 3,
        p if p < ONE_P / 10 => 1,
        _ => 0,
    }
}

/// Bits after the point of the probability: its smallest changes count.
const POINT: u32 = 56;
const ONE_P: u64 = 1 << POINT;
/// 0.85 and 8.5 in parts of [`ONE`] (RFC 8033 §5.4).
const ACCUMULATED_LEAST: u64 = ONE / 100 * 85;
const ACCUMULATED_MOST: u64 = ONE / 10 * 85;
/// Adjustments that an arrival makes at most, near a second's.
const ADJUSTMENTS: usize = 64;
/// Bounds that keep products within 64 bits.
const MAX_BACKLOG: u64 = 1 << 34;
const MAX_TIME_NS: u64 = 8_000_000_000;
const MAX_PACKET: u64 = 1 << 32;
/// A gain of ten a second.
const MAX_GAIN: u64 = 10 * ONE_P / 1_000_000_000;
