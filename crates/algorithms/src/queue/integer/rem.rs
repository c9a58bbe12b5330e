//! REM in integers: [`super::super::rem`] in bytes, without smoothing of the arrival rate, marking at arrival.
//!
//! The price stands as the exponent of the probability: `1 - phi^-price` is `1 - 2^-e` with `e = price log2(phi)`.

use alloc::boxed::Box;

use suimon_units::{Duration, Instant};

use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;

/// The words: the target in bytes, what a byte adds to the exponent ([`POINT`] bits after the point), `alpha` in parts of [`ONE`],
/// the period in ns.
pub(super) const PROGRAM: Program = Program {
    name: "rem",
    parameters: &["target", "gamma", "alpha", "phi", "period", "mean_packet"],
    words: |arguments, _, buffer| words(arguments, buffer),
    limits: [
        (0, MAX_QUEUE),
        (0, 1 << POINT),
        (0, ONE),
        (MIN_PERIOD.as_nanos(), MAX_PERIOD_NS),
        (0, 0),
        (0, 0),
        (0, 0),
        (0, 0),
    ],
    policy: |settings| Box::new(Policy::new(settings, Rem::new(settings))),
};

fn words(arguments: &Arguments, buffer: u64) -> [u64; WORDS] {
    let target = super::bytes_or(arguments, "target", buffer / 2);
    let mean_packet = arguments.bytes("mean_packet").as_f64().max(1.0);
    let byte = arguments.number("gamma") * libm::log2(arguments.number("phi")) / mean_packet;
    let alpha = super::fraction(arguments.number("alpha"));
    let period = arguments.duration("period").as_nanos();
    [target, libm::round(byte * (1_u64 << POINT) as f64) as u64, alpha, period, 0, 0, 0, 0]
}

#[derive(Debug, Clone)]
struct Rem {
    target: u64,
    byte: u64,
    alpha: u64,
    period: u64,
    /// Bytes that the link sends in a period.
    capacity: u64,
    next_update: u64,
    /// Bytes since the last update.
    arrived: u64,
    /// [`POINT`] bits after the point.
    exponent: u64,
    /// In parts of [`ONE`].
    probability: u64,
}

impl Rem {
    fn new(settings: &Settings) -> Self {
        let [target, byte, alpha, period, ..] = settings.words;
        let capacity = settings.bytes_per_second * period / 1_000_000_000;
        Self {
            target,
            byte,
            alpha,
            period,
            capacity,
            next_update: 0,
            arrived: 0,
            exponent: 0,
            probability: 0,
        }
    }

    /// Makes the updates that were due by `now`, with the queue that the packet finds.
    fn catch_up(&mut self, now: u64, queue: u64, tables: &Tables) {
        if now < self.next_update {
            return;
        }
        let late = (now - self.next_update) / self.period;
        self.next_update += self.period * (late + 1);
        let up = (self.alpha * queue.min(MAX_QUEUE)) >> 32;
        let down = ((self.alpha * self.target) >> 32) + self.capacity;
        self.raise(up + self.arrived, down, 1);
        // Nothing came in the periods since then.
        self.raise(up, down, late.min(MAX_LATE));
        self.arrived = 0;
        self.probability = ONE - tables.power_of_half(self.exponent >> (POINT - 32)); // Eq. 2.
    }

    /// Eq. 1 for so many periods: the price does not fall below zero, and stays below [`MAX_EXPONENT`].
    fn raise(&mut self, up: u64, down: u64, periods: u64) {
        let (gain, loss) = (up.saturating_sub(down) * periods, down.saturating_sub(up) * periods);
        let byte = self.byte.max(1);
        self.exponent = if gain > (MAX_EXPONENT - self.exponent) / byte {
            MAX_EXPONENT
        } else if loss > self.exponent / byte {
            0
        } else {
            self.exponent + gain * self.byte - loss * self.byte
        };
    }
}

impl Law for Rem {
    const DISTANCES: Distances = Distances::Independent;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, _random: &mut Random) -> Advice {
        let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
        self.catch_up(now, arrival.backlog.bytes.get(), tables);
        self.arrived = (self.arrived + arrival.size.get()).min(MAX_ARRIVED);
        Advice::Choose(self.probability)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mark_probability", self.probability as f64 / ONE as f64);
    }
}

/// Bits after the point of the exponent.
const POINT: u32 = 56;
/// From here on every packet is chosen.
const MAX_EXPONENT: u64 = 64 << POINT;
const MIN_PERIOD: Duration = Duration::from_micros(1);
/// Bounds that keep products within 64 bits: 67 MB, 1 s, 1 TB; and 33 s of the shortest periods.
const MAX_QUEUE: u64 = 1 << 26;
const MAX_PERIOD_NS: u64 = 1 << 30;
const MAX_ARRIVED: u64 = 1 << 37;
const MAX_LATE: u64 = 1 << 25;
