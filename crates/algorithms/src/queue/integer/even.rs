//! `even` over RED in integers: [`super::super::even`], with its equations.

use alloc::boxed::Box;

use suimon_units::Instant;

use super::dpd_qt::{HALF_LIFE_NS, half_life};
use super::heaviest::{Heaviest, ratio};
use super::red::{self, Red};
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;
use crate::queue::policy::Verdict;

/// The words: RED's, the exponent, the half-life of a byte and the longest hold in ns.
pub(super) const PROGRAM: Program = Program {
    name: "even",
    parameters: &["exponent", "window", "hold", "min_th", "max_th", "max_p", "w_q"],
    words,
    limits: red::limits([(0, MAX_EXPONENT), HALF_LIFE_NS, (0, MAX_HOLD_NS)]),
    policy: |settings| Box::new(Policy::new(settings, Even::new(settings))),
};

fn words(arguments: &Arguments, _rate: u64, buffer: u64) -> [u64; WORDS] {
    let exponent = libm::round(arguments.number("exponent")) as u64;
    red::words(arguments, buffer, [exponent, half_life(arguments), arguments.duration("hold").as_nanos()])
}

/// The losses of a flow; debts in parts of [`ONE`], times in ns.
#[derive(Debug, Clone, Copy, Default)]
struct Losses {
    debt: u64,
    interval: u64,
    /// Zero where there was none.
    last: u64,
}

#[derive(Debug, Clone)]
struct Even {
    below: Red,
    exponent: u64,
    hold: u64,
    shares: Heaviest<Losses>,
    /// In parts of [`ONE`].
    mean: u64,
}

impl Even {
    fn new(settings: &Settings) -> Self {
        let [.., exponent, half_life, hold] = settings.words;
        let shares = Heaviest::new(half_life);
        Self { below: Red::new(settings), exponent, hold, shares, mean: ONE }
    }

    /// Equation (1), in 1/65536.
    fn weight(&mut self, flow: u32, tables: &Tables) -> u64 {
        let largest = self.shares.heaviest().map_or(0, |(_, most)| most);
        let x = if largest > 0 {
            match ratio(self.shares.certain(flow), largest) {
                0 => 0,
                share => tables.power_of_half(self.exponent * tables.negative_log2(share)),
            }
        } else {
            ONE
        };
        if x > self.mean {
            self.mean += (x - self.mean) / PACKETS;
        } else {
            self.mean -= (self.mean - x) / PACKETS;
        }
        ((x << 16) / self.mean.max(1)).min(MAX_WEIGHT)
    }
}

impl Law for Even {
    const DISTANCES: Distances = Distances::Independent;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, random: &mut Random) -> Advice {
        let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
        self.shares.age(now, arrival.flow.0);
        let advice = self.below.advise(arrival, tables, random);
        let weight = self.weight(arrival.flow.0, tables);
        let (p, chosen) = match advice {
            Advice::Calm => return advice,
            Advice::Choose(p) => (p, Advice::Choose(ONE)),
            Advice::Drop => (ONE, Advice::Drop),
        };
        let passes = Advice::Choose(0);
        let is_short = self.below.is_short(arrival.backlog.bytes.get());
        let hold = self.hold;
        let Some(losses) = self.shares.note(arrival.flow.0) else { return passes };
        // (2).
        if losses.last > 0 && now.saturating_sub(losses.last) < hold.min(losses.interval / LEFT_ALONE) {
            return passes;
        }
        // (3), in 1/65536.
        let gain = (hold << 16).checked_div(losses.interval).unwrap_or_default().clamp(1 << 16, MAX_GAIN);
        let added = ((p * weight) >> 16).min(MAX_ADDED);
        losses.debt = (losses.debt + ((added * gain) >> 16)).min(MAX_DEBT);
        if losses.debt >= ONE && !is_short { chosen } else { passes }
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict, tables: &Tables) {
        let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
        if !matches!(verdict, Verdict::Drop(_)) {
            self.shares.on_packet(now, arrival.flow.0, arrival.size.get(), tables);
        }
        let Some(losses) = self.shares.note(arrival.flow.0) else { return };
        if verdict == Verdict::Pass {
            if losses.last == 0 {
                losses.last = now;
            }
            return;
        }
        let since = if losses.last > 0 { now.saturating_sub(losses.last) } else { 0 };
        losses.interval = if losses.interval == 0 { since } else { (3 * losses.interval + since) / 4 };
        losses.last = now;
        losses.debt = 0;
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("heaviest_share", self.shares.heaviest_share());
        self.below.probe(out);
    }
}

const LEFT_ALONE: u64 = 8;
const PACKETS: u64 = 1_000;
/// Bounds that keep products within 64 bits.
const MAX_EXPONENT: u64 = 100;
const MAX_HOLD_NS: u64 = 1 << 40;
const MAX_WEIGHT: u64 = (1 << 31) - 1;
const MAX_GAIN: u64 = 1 << 26;
const MAX_ADDED: u64 = 1 << 36;
const MAX_DEBT: u64 = 1 << 48;
