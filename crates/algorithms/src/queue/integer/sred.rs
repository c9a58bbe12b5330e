//! SRED in integers: [`super::super::sred`], in bytes, with a list of 1000 zombies of which one miss in four overwrites one.

use alloc::boxed::Box;

use super::zombies::Zombies;
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;

/// The words: the capacity in bytes, `p_max` in parts of [`ONE`], and 1 for full SRED.
pub(super) const PROGRAM: Program = Program {
    name: "sred",
    parameters: &["capacity", "p_max", "hits"],
    words: |arguments, _, buffer| words(arguments, buffer),
    limits: [(0, MAX_CAPACITY), (0, ONE), (0, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)],
    policy: |settings| Box::new(Policy::new(settings, Sred::new(settings))),
};

fn words(arguments: &Arguments, buffer: u64) -> [u64; WORDS] {
    let capacity = super::bytes_or(arguments, "capacity", buffer);
    let p_max = super::fraction(arguments.number("p_max"));
    [capacity, p_max, u64::from(arguments.flag("hits")), 0, 0, 0, 0, 0]
}

#[derive(Debug, Clone)]
struct Sred {
    capacity: u64,
    p_max: u64,
    hits: bool,
    zombies: Zombies,
    /// Of the last arrival.
    p_zap: u64,
}

impl Sred {
    fn new(settings: &Settings) -> Self {
        let [capacity, p_max, hits, ..] = settings.words;
        Self { capacity, p_max, hits: hits == 1, zombies: Zombies::new(), p_zap: 0 }
    }

    /// Eq. 3.1.
    fn p_sred(&self, q: u64) -> u64 {
        if 3 * q >= self.capacity {
            self.p_max
        } else if 6 * q >= self.capacity {
            self.p_max / 4
        } else {
            0
        }
    }

    /// Eq. 3.2, and 3.3 for a packet that met its own flow.
    fn p_zap(&self, q: u64, hit: bool) -> u64 {
        let frequency = self.zombies.hit_frequency();
        let many = (1_u64 << 56).checked_div(frequency).unwrap_or(ONE).min(ONE);
        let p = product(self.p_sred(q), product(many, many));
        if !self.hits || !hit {
            p
        } else if p >= frequency {
            ONE
        } else {
            (p + (p << 31) / (frequency >> 1).max(1)).min(ONE)
        }
    }
}

/// `a * b`, each at most [`ONE`].
fn product(a: u64, b: u64) -> u64 {
    ((a >> 1) * (b >> 1)) >> 30
}

impl Law for Sred {
    const DISTANCES: Distances = Distances::Independent;

    fn advise(&mut self, arrival: &Arrival, _tables: &Tables, random: &mut Random) -> Advice {
        let hit = self.zombies.on_packet(arrival.flow.0, random);
        self.p_zap = self.p_zap(arrival.backlog.bytes.get(), hit);
        Advice::Choose(self.p_zap)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mark_probability", self.p_zap as f64 / ONE as f64);
        out.value("flows", self.zombies.flows() as f64 / 65_536.0);
    }
}

const MAX_CAPACITY: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use suimon_units::{Bytes, Instant};

    use super::*;
    use crate::queue::{Backlog, FlowId};

    const CAPACITY: u64 = 60_000;

    fn settings(hits: u64) -> Settings {
        let words = [CAPACITY, super::super::fraction(0.15), hits, 0, 0, 0, 0, 0];
        Settings { bytes_per_second: 1, buffer_bytes: CAPACITY, seed: 2, words }
    }

    /// The mean of what is said of 20 000 packets of `flows` flows in random order, after as many that fill the list.
    fn p_zap(hits: u64, flows: u64, waiting: u64) -> f64 {
        let mut sred = Sred::new(&settings(hits));
        let (mut random, tables) = (Random::new(2), Tables::default());
        let mut sum = 0.0;
        for nth in 0..40_000 {
            let flow = FlowId(random.below(flows) as u32);
            let backlog = Backlog { packets: waiting / 1_000, bytes: Bytes::new(waiting) };
            let arrival = Arrival { flow, backlog, ..Arrival::at_empty_queue(Instant::ZERO) };
            let Advice::Choose(p) = sred.advise(&arrival, &tables, &mut random) else { panic!() };
            sum += if nth < 20_000 { 0.0 } else { p as f64 / ONE as f64 / 20_000.0 };
        }
        sum
    }

    #[test]
    fn the_probability_has_steps_at_a_sixth_and_a_third_of_the_capacity() {
        let p = |waiting| Sred::new(&settings(1)).p_sred(waiting) as f64 / ONE as f64;
        for (waiting, expected) in [(9_999, 0.0), (10_000, 0.0375), (19_999, 0.0375), (20_000, 0.15)] {
            assert!((p(waiting) - expected).abs() < 1e-9, "{waiting}: {}", p(waiting));
        }
    }

    /// Eq. 3.2: `p_max (N / 256)^2`, up to 256 flows. Eq. 3.3: hits double the mean where all flows are alike.
    #[test]
    fn the_probability_grows_as_the_square_of_the_flows_and_hits_double_it() {
        for flows in [16, 64] {
            let expected = 0.15 * (flows as f64 / 256.0) * (flows as f64 / 256.0);
            let simple = p_zap(0, flows, 40_000);
            assert!((simple / expected - 1.0).abs() < 0.25, "{flows}: {simple} {expected}");
            let ratio = p_zap(1, flows, 40_000) / simple;
            assert!((ratio - 2.0).abs() < 0.15, "{flows}: {ratio}");
        }
        let many = p_zap(0, 2_000, 40_000);
        assert!((many / 0.15 - 1.0).abs() < 1e-6, "{many}");
        assert_eq!(p_zap(0, 64, 9_999), 0.0);
    }
}
