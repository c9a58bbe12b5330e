//! RED in integers: [`super::super::red`], gentle, in bytes, with a weight that is given.

use alloc::boxed::Box;

use suimon_units::Instant;

use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;

/// The words: the thresholds in bytes, `max_p` and `w_q` in parts of [`ONE`], `-log2(1 - w_q)`, and what is known of a
/// packet's size. A law over RED has its own words behind these.
pub(super) const PROGRAM: Program = Program {
    name: "red",
    parameters: PARAMETERS,
    words: |arguments, _, buffer| words(arguments, buffer, [0; 3]),
    limits: limits([(0, 0); 3]),
    policy: |settings| Box::new(Policy::new(settings, Red::new(settings))),
};

/// The parameters of RED that a program takes.
pub(super) const PARAMETERS: &[&str] = &["min_th", "max_th", "max_p", "w_q"];

/// The limits of RED's words with those of a law over it.
pub(super) const fn limits(over: [(u64, u64); 3]) -> [(u64, u64); WORDS] {
    let [a, b, c] = over;
    [(0, MAX_QUEUE), (1, 3 * MAX_QUEUE), (0, ONE), (0, ONE), (0, MAX_FORGETS), a, b, c]
}

/// RED's words with those of a law over it.
pub(super) fn words(arguments: &Arguments, buffer: u64, over: [u64; 3]) -> [u64; WORDS] {
    // A fixed weight: the automatic one is that of floats' default.
    words_with(arguments, 0.002, buffer, over)
}

/// The same with another weight where none is given.
pub(super) fn words_with(arguments: &Arguments, w_q: f64, buffer: u64, over: [u64; 3]) -> [u64; WORDS] {
    let given = |name| arguments.bytes(name).get().min(MAX_QUEUE);
    let (min_th, max_th) = match (given("min_th"), given("max_th")) {
        (0, 0) => (buffer / 4, buffer / 4 * 3),
        (0, max_th) => (max_th / 3, max_th),
        (min_th, 0) => (min_th, 3 * min_th),
        both => both,
    };
    let w_q = Some(arguments.number("w_q")).filter(|w_q| *w_q > 0.0).unwrap_or(w_q).min(0.999);
    let forgets = super::fraction(-libm::log2(1.0 - w_q));
    let max_th = max_th.max(min_th + 1);
    let [a, b, c] = over;
    [min_th, max_th, super::fraction(arguments.number("max_p")), super::fraction(w_q), forgets, a, b, c]
}

/// RED's probability, from the queue's average length.
#[derive(Debug, Clone)]
pub(super) struct Red {
    pub(super) min_th: u64,
    pub(super) max_th: u64,
    pub(super) max_p: u64,
    w_q: u64,
    forgets: u64,
    rate: u64,
    /// `avg` in 1/65536 bytes.
    pub(super) average: u64,
    /// The mean size of packets in 1/65536 bytes.
    size: u64,
    /// When the queue is empty if nothing else comes, in ns.
    empty_at: u64,
}

impl Red {
    pub(super) fn new(settings: &Settings) -> Self {
        let [min_th, max_th, max_p, w_q, forgets, ..] = settings.words;
        let rate = settings.bytes_per_second;
        Self { min_th, max_th, max_p, w_q, forgets, rate, average: 0, size: 0, empty_at: 0 }
    }

    pub(super) fn on_arrival(&mut self, arrival: &Arrival, tables: &Tables) {
        let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
        let size = arrival.size.get() << 16;
        self.size = if self.size == 0 { size } else { (15 * self.size + size) / 16 };
        let queue = arrival.backlog.bytes.get().min(MAX_QUEUE);
        if arrival.backlog.packets == 0 {
            // Packets of the mean size that could have been sent, in 1/256.
            let idle = now.saturating_sub(self.empty_at).min(MAX_IDLE_NS);
            let each = (self.size >> 16) * 1_000_000_000 / self.rate;
            let missed = ((idle << 8) / each.max(1)).min(MAX_MISSED);
            let left = tables.power_of_half((missed * self.forgets) >> 8);
            self.average = ((self.average >> 8) * (left >> 8)) >> 16;
            self.empty_at = now;
        } else {
            let (q, w) = (queue << 16, self.w_q >> 12);
            if q > self.average {
                self.average += ((q - self.average) * w) >> 20;
            } else {
                self.average -= ((self.average - q) * w) >> 20;
            }
            // The last of them begins to be sent when those before it are.
            self.empty_at = now + queue * 1_000_000_000 / self.rate;
        }
    }

    /// `None` below the lower threshold.
    fn probability(&self) -> Option<u64> {
        let avg = self.average >> 16;
        if avg < self.min_th {
            return None;
        }
        let above = |th: u64| (self.average >> 12).saturating_sub(th << 4);
        Some(if avg < self.max_th {
            self.max_p * above(self.min_th) / ((self.max_th - self.min_th) << 4)
        } else {
            (self.max_p + (ONE - self.max_p) * above(self.max_th).min(self.max_th << 4) / (self.max_th << 4))
                .min(ONE)
        })
    }

    pub(super) fn advice(&self) -> Advice {
        match self.probability() {
            None => Advice::Calm,
            Some(ONE) => Advice::Drop,
            Some(p) => Advice::Choose(p),
        }
    }

    /// See [`super::super::early::EarlyDetection::is_short`].
    pub(super) fn is_short(&self, backlog: u64) -> bool {
        backlog < self.min_th
    }
}

impl Law for Red {
    const DISTANCES: Distances = Distances::Uniform;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, _random: &mut Random) -> Advice {
        self.on_arrival(arrival, tables);
        self.advice()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("average_bytes", self.average as f64 / 65_536.0);
        out.value("mark_probability", self.probability().unwrap_or_default() as f64 / ONE as f64);
    }
}

/// Bounds that keep products within 64 bits.
const MAX_QUEUE: u64 = 1 << 26;
const MAX_IDLE_NS: u64 = 1 << 40;
const MAX_MISSED: u64 = 1 << 28;
const MAX_FORGETS: u64 = 10 * ONE;
