//! RTT-AQM in integers: [`super::super::rtt_aqm`] as it smooths `p` and marks at arrival.

use alloc::boxed::Box;
use alloc::vec;

use suimon_units::Instant;

use super::zombies::Zombies;
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;
use crate::queue::FlowId;

/// The words: the target in bytes, the representative round trip to begin with and one to be used instead (0: estimate),
/// the window of the arrival rate, all in ns; the smoothing in round trips.
pub(super) const PROGRAM: Program = Program {
    name: "rtt-aqm",
    parameters: &["target", "initial_rtt", "rtt", "window", "smoothing"],
    words,
    limits: [
        (0, MAX_TARGET),
        (1, MAX_TIME_NS),
        (0, MAX_TIME_NS),
        (1 << RESOLUTION, MAX_TIME_NS),
        (0, MAX_SMOOTHING),
        (0, 0),
        (0, 0),
        (0, 0),
    ],
    policy: |settings| Box::new(Policy::new(settings, RttAqm::new(settings))),
};

fn words(arguments: &Arguments, _rate: u64, buffer: u64) -> [u64; WORDS] {
    let ns = |name| arguments.duration(name).as_nanos();
    let smoothing = libm::round(arguments.number("smoothing")) as u64;
    let target = super::bytes_or(arguments, "target", buffer / 2);
    [target, ns("initial_rtt"), ns("rtt"), ns("window"), smoothing, 0, 0, 0]
}

/// The law, and the estimates that it takes.
#[derive(Debug, Clone)]
struct RttAqm {
    target: u64,
    rate: u64,
    smoothing: u64,
    forced_rtt: u64,
    arrivals: ArrivalRate,
    /// The mean segment size in 1/65536 bytes.
    segment: u64,
    flows: Zombies,
    tries: [Option<Try>; TRIES],
    /// In ns.
    representative: u64,
    /// `p`, 63 bits after the point.
    p: u64,
    computed_at: Option<u64>,
}

impl RttAqm {
    fn new(settings: &Settings) -> Self {
        let [target, initial_rtt, forced_rtt, window, smoothing, ..] = settings.words;
        Self {
            target,
            rate: settings.bytes_per_second,
            smoothing,
            forced_rtt,
            arrivals: ArrivalRate::new(window),
            segment: 0,
            flows: Zombies::new(),
            tries: [None; TRIES],
            representative: initial_rtt,
            p: 0,
            computed_at: None,
        }
    }

    fn rtt(&self) -> u64 {
        if self.forced_rtt > 0 { self.forced_rtt } else { self.representative }
    }

    fn observe(&mut self, now: u64, flow: FlowId, size: u64, random: &mut Random) {
        self.arrivals.on_packet(now, size);
        if self.segment == 0 {
            self.segment = size << 16;
        } else if random.below(DRAWN) == 0 {
            self.segment = (9 * self.segment + (size << 16)) / 10; // Eq. 15.
        }
        self.flows.on_packet(flow.0, random);
        for slot in &mut self.tries {
            if let Some(rtt) = advance(slot, now, flow.0, random) {
                self.representative = ((9 * self.representative + rtt) / 10).max(1); // Eq. 1.
            }
        }
    }

    /// See [`super::super::rtt_aqm`] for the equations.
    fn probability(&self, queue: u64, tables: &Tables) -> u64 {
        let (x, c) = (self.arrivals.bytes_per_second(), self.rate);
        let rtt_us = (self.rtt() / 1_000).max(1);
        let predicted = if x >= c {
            queue + (x - c) * rtt_us / 1_000_000
        } else {
            queue.saturating_sub((c - x) * rtt_us / 1_000_000)
        }; // Eq. 3.
        if predicted <= self.target {
            return 0;
        }
        let wanted = c.saturating_sub((predicted - self.target) * 1_000_000 / rtt_us); // Eq. 5.
        // N segments in 1/65536 bytes: the gain of eq. 9 as printed.
        let gained = (self.flows.flows() * self.segment) >> 16;
        let (max, min) = (x + (gained >> 16), x / 2);
        if wanted >= max {
            return 0; // Eq. 10.
        }
        if wanted <= min {
            return ONE;
        }
        let (part, whole) = (max - wanted, max - min);
        let alpha = if whole < ONE { (part << 32) / whole } else { (part << 16) / (whole >> 16) }; // Eq. 11.
        let flight = (x * rtt_us / 1_000_000).min(ONE - 1);
        let avg_w = ((flight << 32) / gained.max(1)).max(1 << 16); // Eq. 13.
        let exponent = (tables.negative_log2(ONE.saturating_sub(alpha).max(1)) << 16) / avg_w;
        ONE - tables.power_of_half(exponent) // Eq. 14.
    }

    fn compute(&mut self, now: u64, queue: u64, tables: &Tables) {
        let dt = self.computed_at.map_or(0, |at| now.saturating_sub(at)).min(MAX_DT_NS);
        self.computed_at = Some(now);
        let p = self.probability(queue, tables);
        let tau = self.smoothing * self.rtt();
        let weight = (dt << 32) / (dt + tau).max(1);
        let before = self.p >> 31;
        if p > before {
            self.p += half_product(p - before, weight);
        } else {
            self.p -= half_product(before - p, weight);
        }
    }
}

/// Half of `a * b`, each at most [`ONE`].
fn half_product(a: u64, b: u64) -> u64 {
    if a == ONE { b << 31 } else { (a * b) >> 1 }
}

impl Law for RttAqm {
    const DISTANCES: Distances = Distances::Wait;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, random: &mut Random) -> Advice {
        let now = since_start(arrival.now);
        self.observe(now, arrival.flow, arrival.size.get(), random);
        self.compute(now, arrival.backlog.bytes.get(), tables);
        Advice::Choose(self.p >> 31)
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mark_probability", (self.p >> 31) as f64 / ONE as f64);
        out.value("representative_rtt_ms", self.rtt() as f64 / 1e6);
        out.value("flow_count", self.flows.flows() as f64 / 65_536.0);
        out.value("segment_bytes", self.segment as f64 / 65_536.0);
    }
}

/// Nanoseconds since the clock's zero.
fn since_start(now: Instant) -> u64 {
    now.saturating_since(Instant::ZERO).as_nanos()
}

/// [`crate::estimate::arrival_rate`] over a window. A packet lets at most [`EXPIRED`] entries go, so that none takes long.
#[derive(Debug, Clone)]
struct ArrivalRate {
    window: u64,
    /// Bytes by the time of the first of them: a ring.
    entries: Box<[(u64, u64)]>,
    head: usize,
    length: usize,
    total: u64,
}

impl ArrivalRate {
    fn new(window: u64) -> Self {
        Self { window, entries: vec![(0, 0); ENTRIES].into_boxed_slice(), head: 0, length: 0, total: 0 }
    }

    fn on_packet(&mut self, now: u64, size: u64) {
        self.total += size;
        let last = (self.head + self.length + ENTRIES - 1) % ENTRIES;
        let (at, bytes) = self.entries[last];
        let joins = self.length > 0 && now.saturating_sub(at) < self.window >> RESOLUTION;
        if joins || self.length == ENTRIES {
            self.entries[last] = (at, bytes + size);
        } else {
            self.entries[(self.head + self.length) % ENTRIES] = (now, size);
            self.length += 1;
        }
        for _ in 0..EXPIRED {
            let (at, bytes) = self.entries[self.head];
            if self.length == 0 || now.saturating_sub(at) < self.window {
                break;
            }
            self.total -= bytes;
            self.head = (self.head + 1) % ENTRIES;
            self.length -= 1;
        }
    }

    fn bytes_per_second(&self) -> u64 {
        (self.total.min(MAX_TOTAL) * 1_000_000 / (self.window / 1_000).max(1)).min(MAX_ARRIVALS)
    }
}

/// One flow under observation by [`crate::estimate::bursts`], in ns.
#[derive(Debug, Clone, Copy)]
struct Try {
    flow: u32,
    deadline: u64,
    last: u64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Pacing { since: u64, left: u64 },
    Joining { dt: u64 },
    First { dt: u64, t0: u64 },
    Second { dt: u64, t0: u64, t1: u64, t2: u64 },
}

/// A packet of `flow` comes by: the round-trip time where it completes an estimate.
fn advance(slot: &mut Option<Try>, now: u64, flow: u32, random: &mut Random) -> Option<u64> {
    let Some(current) = slot else {
        if random.below(DRAWN) == 0 {
            let phase = Phase::Pacing { since: now, left: GAPS };
            *slot = Some(Try { flow, deadline: now + LIMIT_NS, last: now, phase });
        }
        return None;
    };
    if now > current.deadline {
        *slot = None;
        return None;
    }
    if flow != current.flow {
        return None;
    }
    let last = current.last;
    let gap = now.saturating_sub(last);
    match current.phase {
        Phase::Pacing { since, left } => {
            let dt = now.saturating_sub(since) / GAPS;
            current.phase =
                if left == 1 { Phase::Joining { dt } } else { Phase::Pacing { since, left: left - 1 } };
            current.deadline = now + LIMIT_NS;
        }
        Phase::Joining { dt } | Phase::First { dt, .. } | Phase::Second { dt, .. } if gap <= dt => {}
        Phase::Joining { dt } => current.phase = Phase::First { dt, t0: now },
        Phase::First { dt, t0 } => current.phase = Phase::Second { dt, t0, t1: last, t2: now },
        Phase::Second { t0, t1, t2, .. } => {
            *slot = None;
            let is_alike = alike(t2 - t0, now - t2, 0) && alike(t1 - t0, last - t2, SLACK_NS);
            return is_alike.then_some(now - t2);
        }
    }
    current.last = now;
    None
}

fn alike(a: u64, b: u64, slack: u64) -> bool {
    a.abs_diff(b) <= a.max(b) / 10 + slack
}

/// One packet in this many is drawn for the mean size, and one for a new try.
const DRAWN: u64 = 10;
const TRIES: usize = 2;
const GAPS: u64 = 12;
const LIMIT_NS: u64 = 2_000_000_000;
const SLACK_NS: u64 = 2_000_000;
/// Entries of the arrival rate's ring; the window is halved [`RESOLUTION`] times for them.
const ENTRIES: usize = 1 << RESOLUTION;
const RESOLUTION: u32 = 10;
const EXPIRED: usize = 8;
/// Bounds that keep products within 64 bits: 4 GB, 10 s, a smoothing of 100 round trips, 2 s, 8 TB, 1 Tbit/s.
const MAX_TARGET: u64 = 1 << 32;
const MAX_TIME_NS: u64 = 10_000_000_000;
const MAX_SMOOTHING: u64 = 100;
const MAX_DT_NS: u64 = 1 << 31;
const MAX_TOTAL: u64 = 1 << 43;
const MAX_ARRIVALS: u64 = 1 << 37;
