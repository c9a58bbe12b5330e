//! CHOKe (Pan, Prabhakar, Psounis: CHOKe, a stateless active queue management scheme for approximating fair bandwidth
//! allocation, IEEE INFOCOM 2000), as Linux has it (`net/sched/sch_choke.c`): RED over packets, where an arrival and a
//! packet drawn from the queue both go if they are of one flow.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use suimon_units::{Instant, Probability};

use super::red::{Average, Weight};
use super::spacing::{Distances, Spacing};
use super::{Backlog, Buffer, DropReason, Dropped, Ecn, FlowId, Packet, QueueDiscipline, early, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "choke",
    summary: "RED that drops an arrival together with a packet of its flow that it meets in the queue",
    source: "Pan, Prabhakar, Psounis 2000; Linux 6.18",
    colour: "#d4a6c8",
    parameters: &[
        Parameter {
            name: "min",
            help: "average queue above which arrivals are compared and marked, in packets; 0: a third of max",
            default: Value::Count(0),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "max",
            help: "average queue above which all are marked, in packets; 0: a quarter of the buffer",
            default: Value::Count(0),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "max_p",
            help: "probability of a mark as the average comes to max",
            default: Value::Number(0.02),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "w_q",
            help: "weight of one arrival in the average",
            default: Value::Number(0.002),
            range: Range::Between(0.0, 1.0),
        },
        early::ECN,
        tbf::SHAPER,
    ],
};

/// A buffer without limit has its thresholds as one of so many packets: the default of `tc`.
const UNBOUNDED_LIMIT: u64 = 1_000;
/// A packet is drawn so often where places are empty, before the first is taken.
const DRAWS: u32 = 3;

/// RED that compares flows.
#[derive(Debug, Clone)]
pub struct Choke<P> {
    /// Packets in the order of their arrival. One that was dropped leaves an empty place, but for the first.
    places: VecDeque<Option<P>>,
    backlog: Backlog,
    buffer: Buffer,
    min: f64,
    max: f64,
    max_p: f64,
    ecn: bool,
    average: Average,
    spacing: Spacing,
    random: RandomStream,
}

/// What becomes of an arrival.
#[derive(Debug, PartialEq)]
enum Fate {
    Joins,
    Marked,
    Dropped,
}

impl<P: Packet> Choke<P> {
    /// An empty queue with room for `buffer` and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, random: RandomStream) -> Self {
        let limit = match buffer {
            Buffer::Packets(limit) => limit,
            Buffer::Bytes(limit) => limit.get() / 1_500,
            Buffer::Unbounded => UNBOUNDED_LIMIT,
        };
        let given = |name| Some(arguments.count(name) as f64).filter(|packets| *packets > 0.0);
        let max = given("max").unwrap_or(limit as f64 / 4.0);
        let average = Average::new(Weight::Fixed(arguments.number("w_q")));
        Self {
            places: VecDeque::new(),
            backlog: Backlog::default(),
            buffer,
            min: given("min").unwrap_or(max / 3.0),
            max,
            max_p: arguments.number("max_p"),
            ecn: arguments.flag("ecn"),
            // A token bucket never asks an empty queue for a packet, which would begin the idle time.
            average: if tbf::is_asked_for(arguments) { average.without_idle_time() } else { average },
            spacing: Spacing::new(Distances::Uniform),
            random,
        }
    }

    /// `choke_enqueue` up to where the packet joins; a packet of its flow that it meets goes to `dropped`.
    fn fate(&mut self, packet: &P, dropped: &mut Vec<Dropped<P>>) -> Fate {
        let avg = self.average.get();
        if avg <= self.min {
            self.spacing.calm();
            return Fate::Joins;
        }
        if let Some(met) = self.match_random(packet.flow()) {
            dropped.push(Dropped { packet: met, reason: DropReason::Early });
            return Fate::Dropped;
        }
        let chosen = if avg > self.max {
            self.spacing.calm();
            true
        } else {
            let p_b = self.max_p * (avg - self.min) / (self.max - self.min);
            self.spacing.chooses(Probability::clamped(p_b), &mut self.random)
        };
        match (chosen, self.ecn && packet.ecn() != Ecn::NotCapable) {
            (false, _) => Fate::Joins,
            (true, true) => Fate::Marked,
            (true, false) => Fate::Dropped,
        }
    }

    /// `choke_match_random`: takes a packet drawn at random out of the queue if it is of `flow`.
    fn match_random(&mut self, flow: FlowId) -> Option<P> {
        let count = self.places.len() as u64;
        if count == 0 {
            return None;
        }
        let drawn =
            (0..DRAWS).map(|_| self.random.below(count) as usize).find(|at| self.places[*at].is_some());
        let at = drawn.unwrap_or(0);
        self.places[at].as_ref().filter(|packet| packet.flow() == flow)?;
        self.take(at)
    }

    /// Takes the packet out of a place, and drops the empty places in front.
    fn take(&mut self, at: usize) -> Option<P> {
        let packet = self.places.get_mut(at)?.take()?;
        while self.places.front().is_some_and(Option::is_none) {
            self.places.pop_front();
        }
        self.backlog.packets -= 1;
        self.backlog.bytes -= packet.size();
        Some(packet)
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for Choke<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, dropped: &mut Vec<Dropped<P>>) {
        self.average.on_arrival(now, self.backlog.packets as f64);
        match self.fate(&packet, dropped) {
            Fate::Joins => {}
            Fate::Marked => packet.mark_congestion_experienced(),
            Fate::Dropped => return dropped.push(Dropped { packet, reason: DropReason::Early }),
        }
        if !self.buffer.admits(self.backlog, packet.size()) {
            return dropped.push(Dropped { packet, reason: DropReason::Overflow });
        }
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size();
        self.places.push_back(Some(packet));
    }

    fn dequeue(&mut self, now: Instant, _: &mut Vec<Dropped<P>>) -> Option<P> {
        let packet = self.take(0)?;
        self.average.on_departure(now, self.backlog.packets == 0);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("average_packets", self.average.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::{FlowPacket, arguments, drain};
    use suimon_units::Bytes;

    fn choke(settings: &str) -> Choke<FlowPacket> {
        let arguments = arguments(&DESCRIPTION, &alloc::format!(":min=20:max=60{settings}"));
        Choke::new(&arguments, Buffer::Packets(100), RandomStream::new(1, "choke"))
    }

    fn packet(flow: u32, ecn: Ecn) -> FlowPacket {
        FlowPacket { ecn, ..FlowPacket::new(flow, 1_000) }
    }

    /// Offers `count` packets of `flow` to a queue of `waiting` packets of flow 1, with the average held at `avg`; gives
    /// how many were marked, dropped by themselves, and dropped in pairs.
    fn offered(settings: &str, avg: f64, waiting: usize, flow: u32, ecn: Ecn) -> (usize, usize, usize) {
        let (mut marked, mut alone, mut pairs) = (0, 0, 0);
        let mut queue = choke(settings);
        for _ in 0..1_000 {
            queue.places = (0..waiting).map(|_| Some(packet(1, Ecn::NotCapable))).collect();
            let packets = waiting as u64;
            queue.backlog = Backlog { packets, bytes: Bytes::new(1_000 * packets) };
            queue.average = Average::held_at(avg);
            let mut dropped = Vec::new();
            queue.enqueue(Instant::ZERO, packet(flow, ecn), &mut dropped);
            alone += usize::from(dropped.len() == 1);
            pairs += usize::from(dropped.len() == 2);
            marked += drain(&mut queue).filter(|p| p.ecn == Ecn::CongestionExperienced).count();
        }
        (marked, alone, pairs)
    }

    #[test]
    fn above_min_an_arrival_goes_together_with_a_packet_of_its_flow_that_it_meets() {
        assert_eq!(offered("", 20.0, 30, 1, Ecn::NotCapable), (0, 0, 0));
        assert_eq!(offered("", 20.1, 30, 1, Ecn::NotCapable), (0, 0, 1_000));
        let (_, alone, pairs) = offered("", 20.1, 30, 2, Ecn::NotCapable);
        assert_eq!(pairs, 0, "it meets another flow's packets only");
        assert!(alone < 5, "{alone}");
    }

    /// A mean distance of (1 + 49) / 2 between marks at a probability of 0.02.
    #[test]
    fn what_meets_another_flow_is_marked_or_dropped_as_by_red() {
        let (marked, alone, _) = offered(":max_p=0.04", 40.0, 30, 2, Ecn::Capable);
        assert!((30..52).contains(&marked) && alone == 0, "{marked} {alone}");
        assert_eq!(offered("", 60.1, 30, 2, Ecn::Capable), (1_000, 0, 0));
        assert_eq!(offered("", 60.1, 30, 2, Ecn::NotCapable), (0, 1_000, 0));
        assert_eq!(offered(":ecn=false", 60.1, 30, 2, Ecn::Capable), (0, 1_000, 0));
    }

    #[test]
    fn the_average_counts_packets_and_the_thresholds_follow_from_the_buffer() {
        let arguments = arguments(&DESCRIPTION, ":w_q=1");
        let mut queue = Choke::new(&arguments, Buffer::Packets(120), RandomStream::new(1, "choke"));
        assert_eq!((queue.min, queue.max), (10.0, 30.0));
        (0..5).for_each(|_| queue.enqueue(Instant::ZERO, packet(1, Ecn::NotCapable), &mut Vec::new()));
        assert_eq!(queue.average.get(), 4.0);
    }

    #[test]
    fn a_packet_taken_from_the_middle_leaves_the_order_of_the_others() {
        let mut queue = choke("");
        (0..5).for_each(|flow| queue.enqueue(Instant::ZERO, packet(flow, Ecn::NotCapable), &mut Vec::new()));
        assert_eq!(queue.take(2).unwrap().flow, 2);
        assert_eq!(queue.take(0).unwrap().flow, 0);
        assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: Bytes::new(3_000) });
        assert_eq!(drain(&mut queue).map(|p| p.flow).collect::<Vec<_>>(), [1, 3, 4]);
        assert!(queue.places.is_empty());
    }
}
