//! Queue disciplines: which packet waits, which goes next, which is marked or dropped.
//!
//! A discipline does not know what a packet is: a simulated record or a real buffer.

pub mod ared;
pub mod cake;
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
pub mod over;
pub mod pie;
pub mod red;
pub mod rem;
pub mod rtt_aqm;
pub mod shyu;
pub mod spacing;
pub mod sred;
pub mod timed;

use std::fmt::Debug;

use suimon_units::{Bytes, Instant, Rate};

use crate::probe::Probe;

/// One queue in front of one link.
pub trait QueueDiscipline<P: Packet>: Debug + Send {
    /// Takes `packet` in. Whatever is dropped, this packet or another, goes to `dropped`.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>);

    /// Gives the packet to send next. Whatever is dropped on the way goes to `dropped`.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P>;

    /// What waits now, without the packet that is being sent.
    fn backlog(&self) -> Backlog;

    /// The link sends at `rate` from now on. Told before the first packet and whenever it changes; of a
    /// link with recorded opportunities the mean is told, and of an unlimited one nothing.
    fn on_link_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// True where an arrival at an empty queue and an idle link changes nothing, so that the driver may
    /// send it without showing it here. Asked once, before the first packet.
    fn idle_passes(&self) -> bool {
        false
    }

    /// True where all is decided as packets come, they leave in that order, and there is no timer: the driver may
    /// then keep the packets itself. It calls [`QueueDiscipline::judge`] and [`QueueDiscipline::on_departure`] in
    /// place of [`QueueDiscipline::enqueue`] and [`QueueDiscipline::dequeue`], never one kind beside the other, and
    /// what happens to packets is the same. Asked once, before the first packet.
    ///
    /// The simulator does so on links that lose nothing; the emulator always enqueues.
    fn judges_arrivals(&self) -> bool {
        false
    }

    /// What becomes of `packet`, which finds `waiting`, the packet that is being sent left out: it joins, with a mark
    /// or without, or is dropped. Called where [`QueueDiscipline::judges_arrivals`], once for each arrival that
    /// [`QueueDiscipline::idle_passes`] does not let by, in the order of time. Where the link is idle the
    /// departure of what joins is told next, at the same time.
    ///
    /// # Errors
    /// Why it is dropped.
    fn judge(&mut self, _now: Instant, _packet: &mut P, _waiting: Backlog) -> Result<(), DropReason> {
        Ok(())
    }

    /// A packet of `size` that was let join leaves, and `left` waits behind it. Called where
    /// [`QueueDiscipline::judges_arrivals`], in the order of leaving, with the time of leaving, which may be past:
    /// at the latest before the next arrival at that time or later is judged. A rate told in between may be newer.
    fn on_departure(&mut self, _now: Instant, _size: Bytes, _left: Backlog) {}

    /// True where [`QueueDiscipline::next_wakeup`] ever gives a time. Asked once, before the first packet.
    fn has_timer(&self) -> bool {
        false
    }

    /// The time asked for by [`QueueDiscipline::next_wakeup`] has come.
    fn on_wakeup(&mut self, _now: Instant) {}

    /// When to be woken, if at all; the driver asks after each call that changes anything.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

/// What a discipline may ask of a packet.
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
    /// Where it comes from.
    pub source: u32,
    /// Where it goes to.
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

/// What waits in a queue.
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
    /// Not the queue: the link behind it lost the packet.
    Link,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
    /// Anything.
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
    use super::early::Arrival;
    use super::*;
    use crate::parameters::Arguments;
    use crate::registry::Description;

    /// The defaults of what `description` declares, overlaid with `settings`: `:min_th=10kB:ecn=false`.
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

    /// What `queue` gives at once.
    pub(crate) fn drain<P: Packet>(queue: &mut impl QueueDiscipline<P>) -> impl Iterator<Item = P> {
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut Vec::new()))
    }
}
