//! Arrival policies: the verdict on a packet that comes to a queue, without holding any packet.
//!
//! A policy judges arrivals and is told of departures. [`PolicyQueue`] adds the packets, first in, first out; a driver
//! that keeps its packets itself, such as the kernel, asks the policy alone.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Instant, Rate};

use super::fifo::Fifo;
use super::{Backlog, Capabilities, DropReason, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use crate::probe::Probe;

/// Judges the packets that come to one queue, whose packets leave in the order of their arrival.
pub trait ArrivalPolicy: Debug + Send + DynClone {
    /// The verdict on an arrival. The driver asks once for each, in the order of time, but for those that
    /// [`Capabilities::idle_passes`] lets by. Where the link is idle, the driver tells the departure of a packet that
    /// joins next, at the same time.
    fn judge(&mut self, arrival: &Arrival) -> Verdict;

    /// A packet of `size` that was let join leaves at `now`, and `left` waits behind it. The driver tells departures in
    /// their order, and before it asks about an arrival at the same time or later. A link rate told in between may be
    /// newer.
    fn on_departure(&mut self, _now: Instant, _size: Bytes, _left: Backlog) {}

    /// Whether the packet that leaves now is marked. The driver asks where [`Capabilities::marks_departures`], for
    /// packets whose transport understands marks, after [`ArrivalPolicy::on_departure`].
    fn marks_departure(&mut self) -> bool {
        false
    }

    /// See [`QueueDiscipline::on_link_rate`].
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// See [`QueueDiscipline::capabilities`].
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(ArrivalPolicy);

/// A packet that arrives, and the queue that it finds.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The time of the arrival.
    pub now: Instant,
    /// The flow of the packet.
    pub flow: FlowId,
    /// Its size on the link.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// See [`Packet::opens_connection`].
    pub opens_connection: bool,
    /// The backlog, without this packet and the one that is being sent.
    pub backlog: Backlog,
}

impl Arrival {
    /// The arrival of `packet` at `now`, which finds `backlog`.
    #[inline(always)]
    #[must_use]
    pub fn of(packet: &impl Packet, now: Instant, backlog: Backlog) -> Self {
        Self {
            now,
            flow: packet.flow(),
            size: packet.size(),
            ecn: packet.ecn(),
            opens_connection: packet.opens_connection(),
            backlog,
        }
    }
}

/// The fate of an arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet waits.
    Pass,
    /// The packet waits, and bears a mark. Only packets whose transport understands marks are marked.
    Mark,
    /// The packet is dropped.
    Drop(DropReason),
}

impl ArrivalPolicy for Box<dyn ArrivalPolicy> {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        (**self).judge(arrival)
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        (**self).on_departure(now, size, left);
    }

    fn marks_departure(&mut self) -> bool {
        (**self).marks_departure()
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        (**self).on_link_rate(now, rate);
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn probe(&self, out: &mut dyn Probe) {
        (**self).probe(out);
    }
}

/// A first-in, first-out queue whose arrivals a policy judges.
#[derive(Debug, Clone)]
pub struct PolicyQueue<P, A> {
    fifo: Fifo<P>,
    policy: A,
    marks_departures: bool,
}

impl<P: Packet, A: ArrivalPolicy> PolicyQueue<P, A> {
    /// An empty queue under `policy`.
    #[must_use]
    pub fn new(policy: A) -> Self {
        Self { fifo: Fifo::default(), marks_departures: policy.capabilities().marks_departures, policy }
    }

    #[cfg(test)]
    pub(crate) fn policy_mut(&mut self) -> &mut A {
        &mut self.policy
    }

    /// The packets, to put some there that no policy has judged.
    #[cfg(test)]
    pub(crate) fn fifo_mut(&mut self) -> &mut Fifo<P> {
        &mut self.fifo
    }
}

impl<P: Packet + Send, A: ArrivalPolicy> QueueDiscipline<P> for PolicyQueue<P, A> {
    fn enqueue(&mut self, now: Instant, mut packet: P, dropped: &mut Vec<Dropped<P>>) {
        match self.policy.judge(&Arrival::of(&packet, now, self.fifo.backlog())) {
            Verdict::Pass => {}
            Verdict::Mark => packet.mark_congestion_experienced(),
            Verdict::Drop(reason) => return dropped.push(Dropped { packet, reason }),
        }
        self.fifo.push(packet);
    }

    fn dequeue(&mut self, now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        let mut packet = self.fifo.pop()?;
        self.policy.on_departure(now, packet.size(), self.fifo.backlog());
        if self.marks_departures && packet.ecn() != Ecn::NotCapable && self.policy.marks_departure() {
            packet.mark_congestion_experienced();
        }
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.policy.on_link_rate(now, rate);
    }

    fn capabilities(&self) -> Capabilities {
        self.policy.capabilities()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.policy.probe(out);
    }
}
