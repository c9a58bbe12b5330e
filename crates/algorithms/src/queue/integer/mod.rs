//! Arrival policies in integers: the arithmetic of the programs that run them in the kernel (`bpf/queue`).
//!
//! A policy here follows the law of its namesake beside this folder, by fixed-point arithmetic. A program for the kernel
//! follows the one here to the bit, so that a trace of the kernel's packets gives the same verdicts again.
//! Three things differ from the namesakes. Packets are marked at arrival. A policy is not told of departures: it
//! takes the time at which the queue emptied from the link's rate. And random numbers come from a generator of one word.
//!
//! Neither of the two can go. A program in the kernel has no floats and sees no departures. The namesakes reproduce the
//! papers' numbers, and RTT-AQM's need departures: it marks packets as they leave (at arrival the COV of section 5.1 is 0.070
//! rather than 0.061), and RED and PIE learn from departures when the queue is empty and how fast it drains.

mod ared;
pub mod dpd_qt;
pub mod even;
mod fixed;
mod heaviest;
pub mod pie;
pub mod red;
mod rem;
pub mod rtt_aqm;
mod sets;
pub mod shyu;
mod sred;
mod zombies;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Debug;

use suimon_units::{Bytes, Rate};

pub use self::fixed::{ENTRIES, ONE, Random, Tables};
use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::spacing::Distances;
use super::{DropReason, Ecn};
use crate::parameters::Arguments;
use crate::probe::Probe;
use crate::registry::{AlgorithmSpec, Role, SpecError};

/// Numbers that a law takes beside the link's rate and the buffer.
pub const WORDS: usize = 8;

/// The settings of a policy, as its program has them too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The link's rate in bytes per second.
    pub bytes_per_second: u64,
    /// The room of the queue in bytes.
    pub buffer_bytes: u64,
    /// What the generator begins with.
    pub seed: u64,
    /// The law's own numbers; each law says which.
    pub words: [u64; WORDS],
}

impl Settings {
    /// The settings as the program in the kernel reads them: `struct settings` of `bpf/queue/law.h`.
    #[must_use]
    pub fn program_words(&self) -> Vec<u64> {
        let tables = Tables::default();
        let mut words = Vec::from([self.bytes_per_second, self.buffer_bytes, self.seed]);
        words.extend(self.words);
        words.extend(tables.log2.iter().chain(tables.exp2.iter()));
        words
    }
}

/// The advice of a law for an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advice {
    /// See [`super::early::Advice::Calm`].
    Calm,
    /// See [`super::early::Advice::Choose`]; a probability in parts of [`ONE`].
    Choose(u64),
    /// See [`super::early::Advice::Drop`].
    Drop,
}

/// A law in integers: [`super::early::EarlyDetection`] without departures.
trait Law: Debug + Clone + Send {
    /// The distances between marks.
    const DISTANCES: Distances;

    fn advise(&mut self, arrival: &Arrival, tables: &Tables, random: &mut Random) -> Advice;

    fn on_verdict(&mut self, _arrival: &Arrival, _verdict: Verdict, _tables: &Tables) {}

    fn probe(&self, out: &mut dyn Probe);
}

/// A law, and how its choices are carried out.
#[derive(Debug, Clone)]
struct Policy<L> {
    buffer_bytes: u64,
    law: L,
    spacing: Spacing,
    random: Random,
    tables: Tables,
}

impl<L: Law> Policy<L> {
    fn new(settings: &Settings, law: L) -> Self {
        Self {
            buffer_bytes: settings.buffer_bytes,
            law,
            spacing: Spacing { count: None, distances: L::DISTANCES },
            random: Random::new(settings.seed),
            tables: Tables::default(),
        }
    }

    fn verdict(&mut self, arrival: &Arrival) -> Verdict {
        let advice = self.law.advise(arrival, &self.tables, &mut self.random);
        if (arrival.backlog.bytes + arrival.size).get() > self.buffer_bytes {
            self.spacing.count = Some(0);
            return Verdict::Drop(DropReason::Overflow);
        }
        match advice {
            Advice::Calm => {
                self.spacing.count = None;
                Verdict::Pass
            }
            Advice::Choose(p) if !self.spacing.chooses(p, &mut self.random) => Verdict::Pass,
            Advice::Choose(_) if arrival.ecn != Ecn::NotCapable => Verdict::Mark,
            Advice::Choose(_) => Verdict::Drop(DropReason::Early),
            Advice::Drop => {
                self.spacing.count = Some(0);
                Verdict::Drop(DropReason::Early)
            }
        }
    }
}

impl<L: Law + 'static> ArrivalPolicy for Policy<L> {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let verdict = self.verdict(arrival);
        self.law.on_verdict(arrival, verdict, &self.tables);
        verdict
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.law.probe(out);
    }
}

/// [`super::spacing::Spacing`] in integers.
#[derive(Debug, Clone)]
struct Spacing {
    count: Option<u64>,
    distances: Distances,
}

impl Spacing {
    fn chooses(&mut self, p: u64, random: &mut Random) -> bool {
        let count = self.count.map_or(0, |count| (count + 1).min(MAX_COUNT));
        let p_a = self.p_a(p, count);
        let chosen = p_a >= ONE || (p_a > 0 && random.chance(p_a));
        self.count = Some(if chosen { 0 } else { count });
        chosen
    }

    fn p_a(&self, p: u64, count: u64) -> u64 {
        let due = count * p;
        let left = match self.distances {
            Distances::Independent => ONE,
            Distances::Uniform => ONE.saturating_sub(due),
            Distances::Wait if due < ONE => return 0,
            Distances::Wait => (2 * ONE).saturating_sub(due),
        };
        if p >= left { ONE } else { (p << 32) / left }
    }
}

/// Packets since the last mark count up to this: times a probability they fill 63 bits.
const MAX_COUNT: u64 = (1 << 31) - 1;

/// A policy that can run in the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The name of the policy, as in the registry.
    pub name: &'static str,
    /// The parameters of the registry that it takes.
    pub parameters: &'static [&'static str],
    words: fn(&Arguments, u64, u64) -> [u64; WORDS],
    /// The least and the most of each word: products stay within 64 bits, and no divisor is zero.
    limits: [(u64, u64); WORDS],
    policy: fn(&Settings) -> Box<dyn ArrivalPolicy>,
}

/// The policies that can run in the kernel.
pub const PROGRAMS: &[Program] = &[
    rtt_aqm::PROGRAM,
    dpd_qt::PROGRAM,
    even::PROGRAM,
    red::PROGRAM,
    ared::PROGRAM,
    pie::PROGRAM,
    rem::PROGRAM,
    sred::PROGRAM,
    shyu::PROGRAM,
];

/// Why a policy cannot run in the kernel.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// No program follows this policy.
    #[error("\"{name}\" has no program for the kernel; accepted: {accepted}")]
    NoProgram {
        /// As it was given.
        name: String,
        /// The policies that have one.
        accepted: String,
    },
    /// The program does not know the parameter.
    #[error("the program of {name} takes no \"{parameter}\"; accepted: {accepted}")]
    NoParameter {
        /// The policy.
        name: &'static str,
        /// The parameter.
        parameter: String,
        /// The parameters that it takes.
        accepted: String,
    },
    /// A number of the settings is none that [`Program::read`] gives.
    #[error("{what}: {value} is no setting of {name}; accepted: {least} to {most}")]
    OutOfRange {
        /// The policy.
        name: &'static str,
        /// Which number.
        what: String,
        /// As it was given.
        value: u64,
        /// The least that is accepted.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The name or a parameter is not known.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Program {
    /// The program of `name`, one of [`PROGRAMS`].
    ///
    /// # Errors
    /// Without such a program, with the names that are accepted.
    pub fn named(name: &str) -> Result<Self, ProgramError> {
        PROGRAMS.iter().find(|program| program.name == name).copied().ok_or_else(|| {
            let accepted: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
            ProgramError::NoProgram { name: name.to_string(), accepted: accepted.join(", ") }
        })
    }

    /// The program of `text`, as in `rtt-aqm:target=30kB`, and its settings in front of a link of `rate` with room for
    /// `buffer`.
    ///
    /// # Errors
    /// Without a program of that name, or for a parameter that it does not take.
    pub fn read(text: &str, rate: Rate, buffer: Bytes, seed: u64) -> Result<(Self, Settings), ProgramError> {
        let mut parts = text.split(':');
        let program = Self::named(parts.next().unwrap_or_default().trim())?;
        for part in parts {
            let parameter = part.split('=').next().unwrap_or_default().trim();
            if !program.parameters.contains(&parameter) {
                let accepted = program.parameters.join(", ");
                let parameter = parameter.to_string();
                return Err(ProgramError::NoParameter { name: program.name, parameter, accepted });
            }
        }
        let spec = AlgorithmSpec::parse(Role::Queue, text)?;
        let arguments = Arguments::of(spec.arguments());
        let bytes_per_second = (rate.as_bps() / 8).clamp(1, MAX_RATE);
        let buffer_bytes = buffer.get().min(MAX_BUFFER);
        let mut words = (program.words)(&arguments, bytes_per_second, buffer_bytes);
        for (word, (least, most)) in words.iter_mut().zip(program.limits) {
            *word = (*word).clamp(least, most);
        }
        Ok((program, Settings { bytes_per_second, buffer_bytes, seed, words }))
    }

    /// The policy, as the program in the kernel decides.
    ///
    /// # Errors
    /// For a number that [`Program::read`] does not give.
    pub fn policy(&self, settings: &Settings) -> Result<Box<dyn ArrivalPolicy>, ProgramError> {
        let of_link = [
            ("rate", settings.bytes_per_second, (1, MAX_RATE)),
            ("buffer", settings.buffer_bytes, (0, MAX_BUFFER)),
        ];
        let of_link = of_link.map(|(what, value, limits)| (what.to_string(), value, limits));
        let words = settings.words.into_iter().zip(self.limits).enumerate();
        let words = words.map(|(nth, (value, limits))| (alloc::format!("word {nth}"), value, limits));
        for (what, value, (least, most)) in of_link.into_iter().chain(words) {
            if !(least..=most).contains(&value) {
                return Err(ProgramError::OutOfRange { name: self.name, what, value, least, most });
            }
        }
        Ok((self.policy)(settings))
    }
}

/// 100 Gbit/s: with the longest round trip of 10 s a product fills 57 bits.
const MAX_RATE: u64 = 12_500_000_000;
/// 64 MB: in 1/65536 bytes and times a weight it fills 62 bits.
const MAX_BUFFER: u64 = 1 << 26;

/// The largest packet that a policy judges, in bytes, as in the kernel's programs.
pub const MAX_SIZE: u64 = 1 << 20;
/// The longest queue in bytes: the kernel counts in 32 bits.
pub const MAX_BACKLOG: u64 = u32::MAX as u64;
/// The latest time in ns, 36 years: four of them fill 62 bits.
pub const MAX_NOW_NS: u64 = 1 << 60;

/// `number` with 32 bits after the point.
fn fraction(number: f64) -> u64 {
    libm::round(number * ONE as f64) as u64
}

/// The parameter `name` in bytes, or `otherwise` where it is zero.
fn bytes_or(arguments: &Arguments, name: &str, otherwise: u64) -> u64 {
    match arguments.bytes(name).get() {
        0 => otherwise,
        given => given,
    }
}

#[cfg(test)]
mod tests;
