//! Shyu-AQM over RED in integers: [`super::super::shyu`], with a table of fixed size.

use alloc::boxed::Box;
use alloc::vec;

use suimon_units::Instant;

use super::red::{self, Red};
use super::sets::{ENTRIES, entries_of, set_of};
use super::{
    Advice, Arguments, Arrival, Distances, Law, ONE, Policy, Program, Random, Settings, Tables, WORDS,
};
use crate::probe::Probe;

/// The words: RED's.
pub(super) const PROGRAM: Program = Program {
    name: "shyu",
    parameters: red::PARAMETERS,
    words,
    limits: red::limits([(0, 0); 3]),
    policy: |settings| Box::new(Policy::new(settings, Shyu::new(settings))),
};

fn words(arguments: &Arguments, _rate: u64, buffer: u64) -> [u64; WORDS] {
    red::words(arguments, buffer, [0; 3])
}

/// A connection whose opening was seen; times are in ns.
#[derive(Debug, Clone, Copy, Default)]
struct Opening {
    /// Zero where this place is free.
    began: u64,
    /// Zero until the packet after the SYN.
    rtt: u64,
    flow: u32,
}

#[derive(Debug, Clone)]
struct Shyu {
    below: Red,
    openings: Box<[Opening]>,
    /// Mean of the round-trip times of arriving packets, in ns; zero until one is known.
    mean_rtt: u64,
}

impl Shyu {
    fn new(settings: &Settings) -> Self {
        let openings = vec![Opening::default(); ENTRIES].into_boxed_slice();
        Self { below: Red::new(settings), openings, mean_rtt: 0 }
    }

    /// The round-trip time of the connection, zero where it is not known.
    fn rtt(&mut self, now: u64, flow: u32, opens: bool) -> u64 {
        let set = &mut self.openings[entries_of(set_of(flow))];
        let own = set.iter().position(|one| one.began > 0 && one.flow == flow);
        if opens {
            // The place that is free, or has been taken longest.
            let oldest = || {
                (1..set.len()).fold(0, |at, other| if set[other].began < set[at].began { other } else { at })
            };
            let at = own.unwrap_or_else(oldest);
            set[at] = Opening { began: now.max(1), rtt: 0, flow };
            return 0;
        }
        let Some(at) = own else { return 0 };
        if set[at].rtt == 0 {
            set[at].rtt = now.saturating_sub(set[at].began).min(MAX_RTT_NS);
        }
        set[at].rtt
    }

    /// The factor of the probability in 1/65536: the mean round-trip time over this one.
    fn weight(&mut self, now: u64, flow: u32, opens: bool) -> u64 {
        let rtt = self.rtt(now, flow, opens);
        if rtt == 0 {
            return 1 << 16;
        }
        if self.mean_rtt == 0 {
            self.mean_rtt = rtt;
        } else if rtt > self.mean_rtt {
            self.mean_rtt += (rtt - self.mean_rtt) / PACKETS;
        } else {
            self.mean_rtt -= (self.mean_rtt - rtt) / PACKETS;
        }
        ((self.mean_rtt << 16) / rtt).min(MAX_WEIGHT)
    }
}

impl Law for Shyu {
    const DISTANCES: Distances = Red::DISTANCES;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, random: &mut Random) -> Advice {
        let now = arrival.now.saturating_since(Instant::ZERO).as_nanos();
        let weight = self.weight(now, arrival.flow.0, arrival.opens_connection);
        match self.below.advise(arrival, tables, random) {
            Advice::Choose(p) => Advice::Choose(((p * weight) >> 16).min(ONE)),
            other => other,
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.below.probe(out);
        out.value("mean_rtt_ms", self.mean_rtt as f64 / 1e6);
    }
}

/// One packet's part in the mean.
const PACKETS: u64 = 100;
/// Bounds that keep products within 64 bits: a minute, and more than any two round-trip times differ by.
const MAX_RTT_NS: u64 = 1 << 36;
const MAX_WEIGHT: u64 = (1 << 31) - 1;
