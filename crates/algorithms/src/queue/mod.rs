//! Queues: disciplines order, mark and drop the packets in front of a link.
//!
//! Two traits divide the work. An [`ArrivalPolicy`](policy::ArrivalPolicy) judges each packet as it comes and holds
//! none: RED, PIE, RTT-AQM, DPD-QT. A [`QueueDiscipline`] holds the packets and orders them: CoDel, FQ-CoDel, CAKE.
//! Neither knows the driver's packets: they may be simulated records or real buffers.

pub mod ared;
pub mod cake;
pub mod choke;
pub mod cobalt;
pub mod codel;
pub mod dpd;
pub mod drop_tail;
pub mod dualpi2;
pub mod early;
pub mod even;
pub mod fifo;
pub mod flows;
pub mod fq_codel;
pub mod fq_pie;
pub mod integer;
pub mod over;
pub mod pie;
pub mod pie_linux;
pub mod policy;
pub mod red;
pub mod rem;
pub mod round;
pub mod rtt_aqm;
pub mod sfq;
pub mod shyu;
pub mod spacing;
pub mod sred;
pub mod tbf;
pub mod timed;

use alloc::vec::Vec;
use core::fmt::Debug;

use suimon_units::{Bytes, Instant, Rate};

use crate::probe::Probe;

/// One queue in front of one link.
pub trait QueueDiscipline<P: Packet>: Debug + Send {
    /// Takes `packet` in. Whatever is dropped, this packet or another, goes to `dropped`.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>);

    /// Gives the packet to send next. Whatever is dropped on the way goes to `dropped`.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P>;

    /// The backlog now, without the packet that is being sent.
    fn backlog(&self) -> Backlog;

    /// The link sends at `rate` from now on. Told before the first packet and whenever it changes; of a
    /// link with recorded opportunities the mean is told, and of an unlimited one nothing.
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// The shortcuts that a driver may take. A constant of the discipline and its settings.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

/// The shortcuts that a discipline or a policy allows its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// An arrival at an empty queue and an idle link changes nothing, so that the driver may send the packet without
    /// showing it to the queue.
    pub idle_passes: bool,
    /// Every arrival that fits the buffer joins unmarked, and packets leave in the order of their arrival.
    pub tail_drop: bool,
    /// Packets may be marked as they leave: see [`policy::ArrivalPolicy::marks_departure`].
    pub marks_departures: bool,
}

/// A packet as a discipline sees it.
pub trait Packet: Debug {
    /// Its size on the link, headers included.
    fn size(&self) -> Bytes;
    /// The flow that it belongs to.
    fn flow(&self) -> FlowId;
    /// The hosts that it comes from and goes to, where disciplines are to tell them apart; else each flow
    /// has its own.
    fn hosts(&self) -> Hosts {
        Hosts { source: self.flow().0, destination: self.flow().0 }
    }
    /// Its ECN field.
    fn ecn(&self) -> Ecn;
    /// True for the first packet that a connection's sender sends: a TCP SYN without ACK.
    fn opens_connection(&self) -> bool {
        false
    }
    /// Sets Congestion Experienced.
    fn mark_congestion_experienced(&mut self);
}

/// Identifies a flow at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// Identifies the two ends of a packet's way at a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hosts {
    /// The source.
    pub source: u32,
    /// The destination.
    pub destination: u32,
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotCapable,
    /// ECN-capable transport, ECT(0).
    Capable,
    /// ECN-capable transport that reacts to marks by their share, ECT(1) (RFC 9331 §4.1).
    L4s,
    /// Congestion experienced, CE.
    CongestionExperienced,
}

/// The packets that wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// A packet that a discipline gave up, and why.
#[derive(Debug)]
pub struct Dropped<P> {
    /// The packet.
    pub packet: P,
    /// Why it was dropped.
    pub reason: DropReason,
}

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The buffer was full.
    Overflow,
    /// The discipline wanted to tell the sender of congestion, or to keep the queue short.
    Early,
    /// The link behind the queue lost the packet.
    Link,
}

/// The limit of the backlog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes.
    Bytes(Bytes),
    /// No limit.
    Unbounded,
}

impl Buffer {
    /// True where a packet of `size` may join `backlog`.
    #[must_use]
    pub fn admits(&self, backlog: Backlog, size: Bytes) -> bool {
        match *self {
            Self::Packets(limit) => backlog.packets < limit,
            Self::Bytes(limit) => backlog.bytes + size <= limit,
            Self::Unbounded => true,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::policy::Arrival;
    use super::*;
    use crate::parameters::Arguments;
    use crate::registry::Description;

    /// The defaults that `description` declares, overlaid with `settings`: `:min_th=10kB:ecn=false`.
    pub(crate) fn arguments(description: &Description, settings: &str) -> Arguments {
        let mut arguments = Arguments::defaults(description.parameters);
        for (name, text) in settings.split(':').filter_map(|setting| setting.split_once('=')) {
            let parameter = description.parameters.iter().find(|p| p.name == name).unwrap();
            arguments.set(parameter.name, parameter.parse(text).unwrap());
        }
        arguments
    }

    impl Arrival {
        /// A packet of 1000 bytes that finds nothing waiting.
        pub(crate) fn at_empty_queue(now: Instant) -> Self {
            Self {
                now,
                flow: FlowId(0),
                size: Bytes::new(1_000),
                ecn: Ecn::NotCapable,
                opens_connection: false,
                backlog: Backlog::default(),
            }
        }
    }

    /// A packet with an identity, for the disciplines' tests.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct TestPacket {
        pub(crate) id: u64,
        pub(crate) size: Bytes,
        pub(crate) ecn: Ecn,
    }

    impl TestPacket {
        pub(crate) fn new(id: u64, size: u64) -> Self {
            Self { id, size: Bytes::new(size), ecn: Ecn::NotCapable }
        }
    }

    impl Packet for TestPacket {
        fn size(&self) -> Bytes {
            self.size
        }
        fn flow(&self) -> FlowId {
            FlowId(0)
        }
        fn ecn(&self) -> Ecn {
            self.ecn
        }
        fn mark_congestion_experienced(&mut self) {
            self.ecn = Ecn::CongestionExperienced;
        }
    }

    /// A packet of a flow, for disciplines that keep flows apart.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct FlowPacket {
        pub(crate) flow: u32,
        pub(crate) size: u64,
        pub(crate) ecn: Ecn,
        /// The host that it comes from; it goes to one of its own.
        pub(crate) source: u32,
    }

    impl FlowPacket {
        pub(crate) fn new(flow: u32, size: u64) -> Self {
            Self { flow, size, ecn: Ecn::NotCapable, source: flow }
        }
    }

    impl Packet for FlowPacket {
        fn size(&self) -> Bytes {
            Bytes::new(self.size)
        }
        fn flow(&self) -> FlowId {
            FlowId(self.flow)
        }
        fn hosts(&self) -> Hosts {
            Hosts { source: self.source, destination: self.flow }
        }
        fn ecn(&self) -> Ecn {
            self.ecn
        }
        fn mark_congestion_experienced(&mut self) {
            self.ecn = Ecn::CongestionExperienced;
        }
    }

    /// The packets that `queue` gives at once.
    pub(crate) fn drain<P: Packet>(queue: &mut impl QueueDiscipline<P>) -> impl Iterator<Item = P> {
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut Vec::new()))
    }
}
