//! Early detection over another: the upper changes the advice of the lower and leaves all else to it.

use core::fmt::Debug;

use suimon_units::{Bytes, Instant, Probability, Rate};

use super::Backlog;
use super::early::{Advice, EarlyDetection};
use super::policy::{Arrival, Verdict};
use crate::probe::Probe;
use crate::random::RandomStream;

/// A change to the advice of a detection below.
pub trait Preference: Debug + Send + Clone {
    /// The advice in place of `advice`, which `below` gave for the arrival. Asked once for each.
    fn revise(&mut self, advice: Advice, arrival: &Arrival, below: &impl EarlyDetection) -> Advice;

    /// The verdict on the arrival that was just asked about.
    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict);

    /// Tells the inner values that are worth plotting.
    fn probe(&self, out: &mut dyn Probe);
}

/// `preference` over `below`.
#[derive(Debug, Clone)]
pub struct Over<W, D> {
    preference: W,
    below: D,
}

impl<W: Preference, D: EarlyDetection> Over<W, D> {
    /// `preference` over `below`.
    #[must_use]
    pub fn new(preference: W, below: D) -> Self {
        Self { preference, below }
    }
}

impl<W: Preference + 'static, D: EarlyDetection + Clone + 'static> EarlyDetection for Over<W, D> {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        let advice = self.below.advise(arrival, random);
        self.preference.revise(advice, arrival, &self.below)
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        self.below.on_verdict(arrival, verdict);
        self.preference.on_verdict(arrival, verdict);
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.below.on_departure(now, size, left);
    }

    fn departure_mark(&self) -> Probability {
        self.below.departure_mark()
    }

    fn is_short(&self, backlog: Backlog) -> bool {
        self.below.is_short(backlog)
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.below.on_link_rate(now, rate);
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.preference.probe(out);
        self.below.probe(out);
    }
}
