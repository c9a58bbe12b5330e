//! Adaptive RED in integers: [`super::super::ared`] over RED in integers, with the paper's `alpha` and `beta`.

use alloc::boxed::Box;

use suimon_units::Instant;

use super::red::{self, Red};
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;

/// The words: RED's, of which `max_p` is the one to begin with; then the interval in ns, and the least and the most that
/// `max_p` becomes, in parts of [`ONE`].
pub(super) const PROGRAM: Program = Program {
    name: "ared",
    parameters: &["min_th", "max_th", "max_p", "w_q", "mean_packet", "interval", "bottom", "top"],
    words,
    limits: {
        let mut limits = red::limits([(0, MAX_INTERVAL_NS), (1, ONE), (1, ONE)]);
        // The program takes zero for `max_p` that has not been set yet.
        limits[2] = (1, ONE);
        limits
    },
    policy: |settings| Box::new(Policy::new(settings, Ared::new(settings))),
};

fn words(arguments: &Arguments, rate: u64, buffer: u64) -> [u64; WORDS] {
    let part = |name| super::fraction(arguments.number(name));
    let over = [arguments.duration("interval").as_nanos(), part("bottom"), part("top")];
    // §4: the average follows the queue within a second on links of any rate.
    let transmission = arguments.bytes("mean_packet").as_f64() / rate as f64;
    red::words_with(arguments, -libm::expm1(-transmission), buffer, over)
}

#[derive(Debug, Clone)]
struct Ared {
    red: Red,
    interval: u64,
    bottom: u64,
    top: u64,
    /// In ns.
    last_change: u64,
}

impl Ared {
    fn new(settings: &Settings) -> Self {
        let [_, _, _, _, _, interval, bottom, top] = settings.words;
        Self { red: Red::new(settings), interval, bottom, top, last_change: 0 }
    }

    /// Fig. 1 of the paper.
    fn adapt(&mut self, now: u64) {
        if now.saturating_sub(self.last_change) < self.interval {
            return;
        }
        let Red { min_th, max_th, max_p, average, .. } = self.red;
        // §3: the target is the middle fifth between the thresholds.
        let margin = (max_th.saturating_sub(min_th) << 16) * 2 / 5;
        self.red.max_p = if average > (max_th << 16) - margin && max_p < self.top {
            (max_p + ALPHA.min(max_p / 4)).min(self.top)
        } else if average < (min_th << 16) + margin && max_p > self.bottom {
            (max_p * 9 / 10).max(self.bottom)
        } else {
            return;
        };
        self.last_change = now;
    }
}

impl Law for Ared {
    const DISTANCES: Distances = Red::DISTANCES;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, _random: &mut Random) -> Advice {
        self.red.on_arrival(arrival, tables);
        self.adapt(arrival.now.saturating_since(Instant::ZERO).as_nanos());
        self.red.advice()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.red.probe(out);
        out.value("max_p", self.red.max_p as f64 / ONE as f64);
    }
}

/// §3: what is added to `max_p` at most, 0.01. `beta` is 0.9.
const ALPHA: u64 = ONE / 100;
const MAX_INTERVAL_NS: u64 = 1 << 40;
