//! DPD-QT over RED in integers: [`super::super::dpd`].

use alloc::boxed::Box;

use suimon_units::Instant;

use super::heaviest::Heaviest;
use super::red::{self, Red};
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;
use crate::queue::policy::Verdict;

/// The words: RED's, the multiplier in 1/256, and the half-life of a byte in ns.
pub(super) const PROGRAM: Program = Program {
    name: "dpd-qt",
    parameters: &["multiplier", "window", "min_th", "max_th", "max_p", "w_q"],
    words,
    limits: red::limits([(0, MAX_MULTIPLIER << 8), HALF_LIFE_NS, (0, 0)]),
    policy: |settings| Box::new(Policy::new(settings, DpdQt::new(settings))),
};

fn words(arguments: &Arguments, _rate: u64, buffer: u64) -> [u64; WORDS] {
    let multiplier = libm::round(arguments.number("multiplier") * 256.0) as u64;
    red::words(arguments, buffer, [multiplier, half_life(arguments), 0])
}

/// The time after which a byte counts half: half of the window, times the logarithm of 2.
pub(super) fn half_life(arguments: &Arguments) -> u64 {
    let ns = arguments.duration("window").as_nanos() as f64 / 2.0 * core::f64::consts::LN_2;
    libm::round(ns) as u64
}

const MAX_MULTIPLIER: u64 = 1 << 16;
/// The limits of a half-life.
pub(super) const HALF_LIFE_NS: (u64, u64) = (1_000, 1 << 31);

#[derive(Debug, Clone)]
struct DpdQt {
    below: Red,
    multiplier: u64,
    shares: Heaviest<()>,
    previous: u64,
}

impl DpdQt {
    fn new(settings: &Settings) -> Self {
        let [.., multiplier, half_life, _] = settings.words;
        Self { below: Red::new(settings), multiplier, shares: Heaviest::new(half_life), previous: 0 }
    }
}

impl Law for DpdQt {
    const DISTANCES: Distances = Red::DISTANCES;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, random: &mut Random) -> Advice {
        self.shares.age(arrival.now.saturating_since(Instant::ZERO).as_nanos(), arrival.flow.0);
        let grew = arrival.backlog.packets > self.previous;
        self.previous = arrival.backlog.packets;
        match self.below.advise(arrival, tables, random) {
            Advice::Choose(p)
                if grew && self.shares.heaviest().is_some_and(|(flow, _)| flow == arrival.flow.0) =>
            {
                Advice::Choose(((p * self.multiplier) >> 8).min(ONE))
            }
            other => other,
        }
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict, tables: &Tables) {
        if !matches!(verdict, Verdict::Drop(_)) {
            let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
            self.shares.on_packet(now, arrival.flow.0, arrival.size.get(), tables);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("heaviest_share", self.shares.heaviest_share());
        self.below.probe(out);
    }
}
