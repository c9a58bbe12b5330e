//! Early detection: disciplines that mark or drop arrivals at random while there is still room.
//!
//! RED and its relatives differ in the probability with which an arrival is chosen: each is an
//! [`EarlyDetection`] in a file of its own. [`EarlyPolicy`] has all the rest. A detection over another, such
//! as preferential dropping, is a [`Preference`](super::over::Preference).

use alloc::boxed::Box;
use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Instant, Probability, Rate};

use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::spacing::Spacing;
use super::{Backlog, Buffer, Capabilities, DropReason, Ecn};
use crate::parameters::{Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;

/// Decides how likely each arrival is to be marked or dropped.
pub trait EarlyDetection: Debug + Send + DynClone {
    /// The advice for an arrival, which may still be lost for want of room. Asked once for each.
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice;

    /// The verdict on the arrival that was just asked about.
    fn on_verdict(&mut self, _arrival: &Arrival, _verdict: Verdict) {}

    /// A packet of `size` leaves, and `left` waits behind it.
    fn on_departure(&mut self, _now: Instant, _size: Bytes, _left: Backlog) {}

    /// How likely the packet that leaves now is to be marked, for laws that may mark packets as they leave.
    fn departure_mark(&self) -> Probability {
        Probability::ZERO
    }

    /// True where `backlog` is so short that, whatever its average, a packet less would leave the link idle
    /// before its sender sends again. For wrappers; false where a law knows no such length.
    fn is_short(&self, _backlog: Backlog) -> bool {
        false
    }

    /// See [`ArrivalPolicy::on_link_rate`].
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(EarlyDetection);

impl EarlyDetection for Box<dyn EarlyDetection> {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        (**self).advise(arrival, random)
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        (**self).on_verdict(arrival, verdict);
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        (**self).on_departure(now, size, left);
    }

    fn departure_mark(&self) -> Probability {
        (**self).departure_mark()
    }

    fn is_short(&self, backlog: Backlog) -> bool {
        (**self).is_short(backlog)
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        (**self).on_link_rate(now, rate);
    }

    fn probe(&self, out: &mut dyn Probe) {
        (**self).probe(out);
    }
}

/// A detection, and how its choices are carried out.
#[derive(Debug, Clone)]
pub struct Early<D> {
    /// How likely an arrival is to be chosen.
    pub detection: D,
    /// How far apart the chosen ones are.
    pub spacing: Spacing,
    /// Mark packets of ECN-capable transports rather than dropping them.
    pub ecn: bool,
    /// Mark them as they leave; arrivals are then chosen only to be dropped.
    pub marks_departures: bool,
}

impl<D> Early<D> {
    /// The same with another detection, for example one that wraps this one.
    #[must_use]
    pub fn map<E>(self, other: impl FnOnce(D) -> E) -> Early<E> {
        let Self { detection, spacing, ecn, marks_departures } = self;
        Early { detection: other(detection), spacing, ecn, marks_departures }
    }
}

impl<D: EarlyDetection + 'static> Early<D> {
    /// The same as one type for all detections.
    #[must_use]
    pub fn boxed(self) -> Early<Box<dyn EarlyDetection>> {
        self.map(|detection| Box::new(detection) as Box<dyn EarlyDetection>)
    }
}

/// The advice of early detection for an arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advice {
    /// Let it pass: the queue is short, and earlier arrivals no longer count.
    Calm,
    /// Choose it with this probability, spaced as the queue has it: mark it, or drop it where its
    /// transport does not understand marks.
    Choose(Probability),
    /// Drop it: senders no longer heed marks.
    Drop,
}

/// The parameter `ecn` of every law.
pub(super) const ECN: Parameter = Parameter {
    name: "ecn",
    help: "mark packets of ECN-capable transports instead of dropping them",
    default: Value::Flag(true),
    range: Range::Any,
};

/// The parameter `mark`, for laws that may be asked at either end of the queue.
pub(super) const fn mark(default: &'static str) -> Parameter {
    Parameter {
        name: "mark",
        help: "when packets of ECN-capable transports are marked; others are dropped at arrival",
        default: Value::Choice(default),
        range: Range::OneOf(&["departure", "arrival"]),
    }
}

/// An arrival policy that marks or drops as early detection advises, in front of a queue with room for `buffer`.
#[derive(Debug, Clone)]
pub struct EarlyPolicy<D> {
    early: Early<D>,
    buffer: Buffer,
    random: RandomStream,
}

impl<D: EarlyDetection> EarlyPolicy<D> {
    /// The policy of `early`, drawing from `random`.
    #[must_use]
    pub fn new(early: Early<D>, buffer: Buffer, random: RandomStream) -> Self {
        Self { early, buffer, random }
    }

    #[cfg(test)]
    pub(crate) fn detection_mut(&mut self) -> &mut D {
        &mut self.early.detection
    }

    #[inline(always)]
    fn verdict(&mut self, arrival: &Arrival) -> Verdict {
        let Early { detection, spacing, ecn, marks_departures } = &mut self.early;
        let advice = detection.advise(arrival, &mut self.random);
        if !self.buffer.admits(arrival.backlog, arrival.size) {
            spacing.restart();
            return Verdict::Drop(DropReason::Overflow);
        }
        let heeds_marks = *ecn && arrival.ecn != Ecn::NotCapable;
        match advice {
            _ if heeds_marks && *marks_departures => Verdict::Pass,
            Advice::Calm => {
                spacing.calm();
                Verdict::Pass
            }
            Advice::Choose(p) if !spacing.chooses(p, &mut self.random) => Verdict::Pass,
            Advice::Choose(_) if heeds_marks => Verdict::Mark,
            Advice::Choose(_) => Verdict::Drop(DropReason::Early),
            Advice::Drop => {
                spacing.restart();
                Verdict::Drop(DropReason::Early)
            }
        }
    }
}

impl<D: EarlyDetection + Clone + 'static> ArrivalPolicy for EarlyPolicy<D> {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        let verdict = self.verdict(arrival);
        self.early.detection.on_verdict(arrival, verdict);
        verdict
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.early.detection.on_departure(now, size, left);
    }

    fn marks_departure(&mut self) -> bool {
        let Early { detection, spacing, ecn, .. } = &mut self.early;
        *ecn && spacing.chooses(detection.departure_mark(), &mut self.random)
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.early.detection.on_link_rate(now, rate);
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { marks_departures: self.early.marks_departures, ..Capabilities::default() }
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.early.detection.probe(out);
    }
}
