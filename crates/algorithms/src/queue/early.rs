//! Early detection: disciplines that mark or drop arrivals at random while there is still room.
//!
//! RED and its relatives differ in one thing, how likely an arrival is to be chosen. [`EarlyDetection`]
//! is that thing, and one file each; [`EarlyQueue`] is all the rest. What works over another, such as
//! preferential dropping, is a [`Preference`](super::over::Preference).

use std::fmt::Debug;

use suimon_units::{Bytes, Instant, Probability, Rate};

use super::fifo::Fifo;
use super::spacing::Spacing;
use super::{Backlog, Buffer, DropReason, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use crate::probe::Probe;
use crate::random::RandomStream;

/// Decides how likely each arrival is to be marked or dropped.
pub trait EarlyDetection: Debug + Send {
    /// What to do with an arrival; it may still be lost for want of room. Asked once for each.
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice;

    /// What became of the arrival that was just asked about.
    fn on_outcome(&mut self, _arrival: &Arrival, _outcome: Outcome) {}

    /// A packet of `size` leaves, and `left` waits behind it.
    fn on_departure(&mut self, _now: Instant, _size: Bytes, _left: Backlog) {}

    /// How likely the packet that leaves now is to be marked, where the discipline marks packets as they
    /// leave rather than as they come: arrivals are then chosen only to be dropped. Always or never.
    fn departure_mark(&self) -> Option<Probability> {
        None
    }

    /// True where `backlog` is so short that, whatever its average, a packet less would leave the link idle
    /// before its sender is heard of again. For wrappers; false where a law knows no such length.
    fn is_short(&self, _backlog: Backlog) -> bool {
        false
    }

    /// See [`QueueDiscipline::on_link_rate`].
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// See [`QueueDiscipline::has_timer`].
    fn has_timer(&self) -> bool {
        false
    }

    /// See [`QueueDiscipline::on_wakeup`]; `backlog` is what waits.
    fn on_wakeup(&mut self, _now: Instant, _backlog: Backlog) {}

    /// See [`QueueDiscipline::next_wakeup`].
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

impl<D: EarlyDetection + ?Sized> EarlyDetection for Box<D> {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        (**self).advise(arrival, random)
    }

    fn on_outcome(&mut self, arrival: &Arrival, outcome: Outcome) {
        (**self).on_outcome(arrival, outcome);
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        (**self).on_departure(now, size, left);
    }

    fn departure_mark(&self) -> Option<Probability> {
        (**self).departure_mark()
    }

    fn is_short(&self, backlog: Backlog) -> bool {
        (**self).is_short(backlog)
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        (**self).on_link_rate(now, rate);
    }

    fn has_timer(&self) -> bool {
        (**self).has_timer()
    }

    fn on_wakeup(&mut self, now: Instant, backlog: Backlog) {
        (**self).on_wakeup(now, backlog);
    }

    fn next_wakeup(&self) -> Option<Instant> {
        (**self).next_wakeup()
    }

    fn probe(&self, out: &mut dyn Probe) {
        (**self).probe(out);
    }
}

/// A detection, and how its choices are carried out.
#[derive(Debug)]
pub struct Early<D> {
    /// How likely an arrival is to be chosen.
    pub detection: D,
    /// How far apart the chosen ones are.
    pub spacing: Spacing,
    /// Mark packets of ECN-capable transports rather than dropping them.
    pub ecn: bool,
}

impl<D> Early<D> {
    /// The same with another detection, for example one that wraps this one.
    #[must_use]
    pub fn map<E>(self, other: impl FnOnce(D) -> E) -> Early<E> {
        Early { detection: other(self.detection), spacing: self.spacing, ecn: self.ecn }
    }
}

impl<D: EarlyDetection + 'static> Early<D> {
    /// The same as one type for all detections.
    #[must_use]
    pub fn boxed(self) -> Early<Box<dyn EarlyDetection>> {
        self.map(|detection| Box::new(detection) as Box<dyn EarlyDetection>)
    }
}

/// A packet that arrives, and the queue that it finds.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// When.
    pub now: Instant,
    /// Whose.
    pub flow: FlowId,
    /// Its size on the link.
    pub size: Bytes,
    /// See [`Packet::opens_connection`].
    pub opens_connection: bool,
    /// What waits, without this packet and the one that is being sent.
    pub backlog: Backlog,
}

/// What early detection says of an arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advice {
    /// Let it pass; the queue is short, and what went before no longer counts.
    Calm,
    /// Choose it with this probability, spaced as the queue has it: mark it, or drop it where its
    /// transport does not understand marks.
    Choose(Probability),
    /// Drop it: senders no longer heed marks.
    Drop,
}

/// What became of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It waits.
    Passed,
    /// It waits, and bears a mark.
    Marked,
    /// It is gone.
    Dropped(DropReason),
}

/// A queue that marks or drops arrivals as `detection` advises.
#[derive(Debug)]
pub struct EarlyQueue<P, D> {
    fifo: Fifo<P>,
    early: Early<D>,
    random: RandomStream,
}

impl<P: Packet, D: EarlyDetection> EarlyQueue<P, D> {
    /// An empty queue with room for `buffer`.
    #[must_use]
    pub fn new(early: Early<D>, buffer: Buffer, random: RandomStream) -> Self {
        Self { fifo: Fifo::new(buffer), early, random }
    }

    #[cfg(test)]
    pub(crate) fn detection_mut(&mut self) -> &mut D {
        &mut self.early.detection
    }

    /// Packets like this are told of congestion by marks.
    fn heeds_marks(&self, packet: &P) -> bool {
        self.early.ecn && packet.ecn() != Ecn::NotCapable
    }

    #[inline(always)]
    fn verdict(&mut self, arrival: &Arrival, packet: &P) -> Outcome {
        let advice = self.early.detection.advise(arrival, &mut self.random);
        if !self.fifo.buffer().admits(arrival.backlog, arrival.size) {
            self.early.spacing.restart();
            return Outcome::Dropped(DropReason::Overflow);
        }
        let heeds_marks = self.heeds_marks(packet);
        match advice {
            _ if heeds_marks && self.early.detection.departure_mark().is_some() => Outcome::Passed,
            Advice::Calm => {
                self.early.spacing.calm();
                Outcome::Passed
            }
            Advice::Choose(p) if !self.early.spacing.chooses(p, &mut self.random) => Outcome::Passed,
            Advice::Choose(_) if heeds_marks => Outcome::Marked,
            Advice::Choose(_) => Outcome::Dropped(DropReason::Early),
            Advice::Drop => {
                self.early.spacing.restart();
                Outcome::Dropped(DropReason::Early)
            }
        }
    }
}

impl<P: Packet + Send, D: EarlyDetection> QueueDiscipline<P> for EarlyQueue<P, D> {
    fn enqueue(&mut self, now: Instant, mut packet: P, dropped: &mut Vec<Dropped<P>>) {
        match self.judge(now, &mut packet, self.fifo.backlog()) {
            Ok(()) => self.fifo.push(packet),
            Err(reason) => dropped.push(Dropped { packet, reason }),
        }
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        let mut packet = self.fifo.pop()?;
        self.on_departure(now, packet.size(), self.fifo.backlog());
        if let Some(p) = self.early.detection.departure_mark()
            && self.heeds_marks(&packet)
            && self.random.chance(p)
        {
            packet.mark_congestion_experienced();
        }
        Some(packet)
    }

    fn judges_arrivals(&self) -> bool {
        !self.has_timer() && self.early.detection.departure_mark().is_none()
    }

    fn judge(&mut self, now: Instant, packet: &mut P, waiting: Backlog) -> Result<(), DropReason> {
        let arrival = Arrival {
            now,
            flow: packet.flow(),
            size: packet.size(),
            opens_connection: packet.opens_connection(),
            backlog: waiting,
        };
        let outcome = self.verdict(&arrival, packet);
        self.early.detection.on_outcome(&arrival, outcome);
        match outcome {
            Outcome::Dropped(reason) => return Err(reason),
            Outcome::Passed => {}
            Outcome::Marked => packet.mark_congestion_experienced(),
        }
        Ok(())
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.early.detection.on_departure(now, size, left);
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.early.detection.on_link_rate(now, rate);
    }

    fn has_timer(&self) -> bool {
        self.early.detection.has_timer()
    }

    fn on_wakeup(&mut self, now: Instant) {
        self.early.detection.on_wakeup(now, self.fifo.backlog());
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.early.detection.next_wakeup()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.early.detection.probe(out);
    }
}
