//! Algorithms that a program adds to a [`Registry`](crate::registry::Registry), and that go by their names wherever
//! those of the built-in lines do.
//!
//! This is how an algorithm written in Python comes to be simulated. A queue discipline that a program adds does
//! not hold packets but [`Ticket`]s for them, so that one object serves packets of every kind.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Debug};

use suimon_units::{Bytes, Instant, Rate};

use crate::congestion::CongestionControl;
use crate::parameters::Arguments;
use crate::path::PathScheduler;
use crate::probe::Probe;
use crate::queue::{Backlog, Buffer, DropReason, Dropped, Ecn, FlowId, Packet, QueueDiscipline};
use crate::registry::{Description, Role, descriptions};

/// Builds a congestion control.
pub type BuildCongestion = dyn Fn(&Arguments) -> Box<dyn CongestionControl> + Send + Sync;
/// Builds a queue discipline with room for the buffer.
pub type BuildQueue = dyn Fn(&Arguments, Buffer) -> Box<dyn TicketQueue> + Send + Sync;
/// Builds a path scheduler.
pub type BuildPath = dyn Fn(&Arguments) -> Box<dyn PathScheduler> + Send + Sync;

/// Builds an algorithm of a role.
pub enum Build {
    /// A congestion control.
    Congestion(Box<BuildCongestion>),
    /// A queue discipline.
    Queue(Box<BuildQueue>),
    /// A path scheduler.
    Path(Box<BuildPath>),
}

impl Build {
    /// The role of the algorithm.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Self::Congestion(_) => Role::Congestion,
            Self::Queue(_) => Role::Queue,
            Self::Path(_) => Role::Path,
        }
    }
}

/// A line that a program adds to a [`Registry`](crate::registry::Registry).
pub(crate) struct UserDefined {
    pub(crate) description: Description,
    pub(crate) build: Build,
}

impl Debug for UserDefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserDefined").field("description", &self.description).finish_non_exhaustive()
    }
}

/// Why an algorithm cannot join the registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The registry has an algorithm of that name.
    #[error("\"{name}\" is a {role} of the registry; accepted: another name")]
    Taken {
        /// The name.
        name: &'static str,
        /// The role of the algorithm that has it.
        role: Role,
    },
    /// The name would not read back.
    #[error("\"{name}\" is no name; accepted: small letters, digits and \"-\", a letter first")]
    NoName {
        /// As it was given.
        name: &'static str,
    },
}

/// Whether `name` reads back, and is not one of the built-in lines.
///
/// # Errors
/// When it does not, or is.
pub(crate) fn check_name(name: &'static str) -> Result<(), AddError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
        return Err(AddError::NoName { name });
    }
    // A receive window would be taken for a sender, so names are told apart over all roles.
    let taken = Role::ALL.iter().find(|role| descriptions(**role).iter().any(|d| d.name == name));
    taken.map_or(Ok(()), |role| Err(AddError::Taken { name, role: *role }))
}

/// The packets with the tickets that `discipline` orders.
pub(crate) fn over_tickets<P: Packet + Send + 'static>(
    discipline: Box<dyn TicketQueue>,
    buffer: Buffer,
) -> Box<dyn QueueDiscipline<P>> {
    Box::new(Tickets::new(discipline, buffer))
}

/// Stands for a packet that waits; later packets have larger ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A packet that comes to a [`TicketQueue`].
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The ticket of the packet from now on.
    pub ticket: Ticket,
    /// Its size on the link.
    pub size: Bytes,
    /// Its flow.
    pub flow: FlowId,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// The verdicts of a [`TicketQueue`] on packets that wait.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    /// Packets to be dropped.
    pub drop: Vec<Ticket>,
    /// Packets to be marked, where their transport understands marks.
    pub mark: Vec<Ticket>,
}

/// A queue discipline over tickets. Tickets that do not wait any more mean nothing.
pub trait TicketQueue: Debug + Send {
    /// A packet came, and fits the buffer.
    fn enqueue(&mut self, now: Instant, arrival: Arrival, verdicts: &mut Verdicts);

    /// The packet to send next.
    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) -> Option<Ticket>;

    /// As [`QueueDiscipline::on_link_rate`].
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// As [`QueueDiscipline::probe`].
    fn probe(&self, _out: &mut dyn Probe) {}
}

/// Keeps the packets that the tickets stand for, and the buffer's limit.
#[derive(Debug)]
struct Tickets<P> {
    discipline: Box<dyn TicketQueue>,
    buffer: Buffer,
    packets: BTreeMap<Ticket, P>,
    backlog: Backlog,
    next: u64,
    verdicts: Verdicts,
}

impl<P: Packet> Tickets<P> {
    fn new(discipline: Box<dyn TicketQueue>, buffer: Buffer) -> Self {
        let (backlog, verdicts) = (Backlog::default(), Verdicts::default());
        Self { discipline, buffer, packets: BTreeMap::new(), backlog, next: 0, verdicts }
    }

    fn take(&mut self, ticket: Ticket) -> Option<P> {
        let packet = self.packets.remove(&ticket)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size();
        Some(packet)
    }

    fn obey(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let mut verdicts = core::mem::take(&mut self.verdicts);
        for ticket in verdicts.mark.drain(..) {
            if let Some(packet) = self.packets.get_mut(&ticket).filter(|p| p.ecn() != Ecn::NotCapable) {
                packet.mark_congestion_experienced();
            }
        }
        for ticket in verdicts.drop.drain(..) {
            dropped.extend(self.take(ticket).map(|packet| Dropped { packet, reason: DropReason::Early }));
        }
        self.verdicts = verdicts;
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Tickets<P> {
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        let size = packet.size();
        if !self.buffer.admits(self.backlog, size) {
            dropped.push(Dropped { packet, reason: DropReason::Overflow });
            return;
        }
        let ticket = Ticket(self.next);
        let arrival = Arrival { ticket, size, flow: packet.flow(), ecn: packet.ecn() };
        self.next += 1;
        self.packets.insert(ticket, packet);
        self.backlog.packets += 1;
        self.backlog.bytes += size;
        self.discipline.enqueue(now, arrival, &mut self.verdicts);
        self.obey(dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        if self.packets.is_empty() {
            return None;
        }
        let ticket = self.discipline.dequeue(now, &mut self.verdicts);
        self.obey(dropped);
        ticket.and_then(|ticket| self.take(ticket))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        self.discipline.on_link_rate(now, rate);
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.discipline.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::queue::testing::{TestPacket, drain};
    use crate::registry::{AlgorithmSpec, Registry, build_queue};
    use crate::{RandomStream, congestion};

    fn described(name: &'static str) -> Description {
        Description { name, summary: "", source: "", colour: "#000000", parameters: &[] }
    }

    /// Drops every third packet, marks every second, gives the newest first.
    #[derive(Debug, Default)]
    struct Odd(VecDeque<Ticket>);

    impl TicketQueue for Odd {
        fn enqueue(&mut self, _now: Instant, arrival: Arrival, verdicts: &mut Verdicts) {
            if arrival.ticket.0 % 3 == 2 {
                verdicts.drop.push(arrival.ticket);
                return;
            }
            if arrival.ticket.0 % 2 == 1 {
                verdicts.mark.push(arrival.ticket);
            }
            self.0.push_front(arrival.ticket);
        }

        fn dequeue(&mut self, _now: Instant, _verdicts: &mut Verdicts) -> Option<Ticket> {
            self.0.pop_front()
        }
    }

    #[test]
    fn a_sender_that_is_added_goes_by_its_name_also_below_a_wrapper() {
        let mut registry = Registry::standard();
        registry
            .add(described("mine"), Build::Congestion(Box::new(|_| Box::<congestion::reno::Reno>::default())))
            .unwrap();
        let spec = registry.parse(Role::Congestion, "fs-at+mine").unwrap();
        assert_eq!(spec.label(), "fs-at+mine");
        assert!(
            spec.is_user_defined()
                && !AlgorithmSpec::parse(Role::Congestion, "reno").unwrap().is_user_defined()
        );
        let _: Box<dyn CongestionControl> = spec.build_congestion();
        let message = registry.parse(Role::Congestion, "nobody").unwrap_err().to_string();
        assert!(message.contains(", mine"), "{message}");
    }

    #[test]
    fn names_of_the_registry_and_what_does_not_read_back_are_refused() {
        let refusal = |name| {
            let build = Build::Congestion(Box::new(|_| Box::<congestion::reno::Reno>::default()));
            Registry::standard().add(described(name), build).unwrap_err().to_string()
        };
        assert_eq!(
            refusal("codel"),
            "\"codel\" is a queue discipline of the registry; accepted: another name"
        );
        assert!(refusal("my:own").contains("is no name"));
        assert!(refusal("").contains("is no name"));
    }

    #[test]
    fn a_discipline_over_tickets_drops_marks_and_orders_and_keeps_the_buffer() {
        let mut registry = Registry::default();
        registry.add(described("odd"), Build::Queue(Box::new(|_, _| Box::<Odd>::default()))).unwrap();
        let spec = registry.parse(Role::Queue, "odd").unwrap();
        let random = RandomStream::new(1, "queue");
        let mut queue = build_queue::<TestPacket>(&spec, Buffer::Packets(3), random).into_discipline();
        let mut dropped = Vec::new();
        for id in 0..6 {
            let packet = TestPacket { ecn: Ecn::Capable, ..TestPacket::new(id, 100) };
            queue.enqueue(Instant::ZERO, packet, &mut dropped);
        }
        let reasons: Vec<_> = dropped.iter().map(|d| (d.packet.id, d.reason)).collect();
        // The third by the discipline; the fifth and sixth find three waiting.
        assert_eq!(reasons, [(2, DropReason::Early), (4, DropReason::Overflow), (5, DropReason::Overflow)]);
        assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: Bytes::new(300) });
        let sent: Vec<_> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut dropped)).collect();
        let seen: Vec<_> = sent.iter().map(|p| (p.id, p.ecn == Ecn::CongestionExperienced)).collect();
        assert_eq!(seen, [(3, true), (1, true), (0, false)]);
        assert_eq!(queue.backlog(), Backlog::default());
        assert!(
            drain(&mut Tickets::<TestPacket>::new(Box::<Odd>::default(), Buffer::Unbounded)).next().is_none()
        );
    }

    #[test]
    fn the_latest_of_a_name_is_found() {
        let described = |colour| Description { colour, ..described("again") };
        let build = || Build::Congestion(Box::new(|_| Box::<congestion::reno::Reno>::default()));
        let mut registry = Registry::standard();
        registry.add(described("#111111"), build()).unwrap();
        let before = registry.parse(Role::Congestion, "again").unwrap();
        registry.add(described("#222222"), build()).unwrap();
        assert_eq!(registry.parse(Role::Congestion, "again").unwrap().colour(), "#222222");
        assert_eq!(before.colour(), "#111111");
        let _: Box<dyn CongestionControl> = before.build_congestion();
        assert!(
            AlgorithmSpec::parse(Role::Congestion, "again").is_err(),
            "another registry does not know it"
        );
        assert_eq!(registry.descriptions(Role::Congestion).iter().filter(|d| d.name == "again").count(), 1);
    }
}
