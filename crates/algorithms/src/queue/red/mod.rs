//! RED, Random Early Detection (Floyd, Jacobson: Random Early Detection Gateways for Congestion
//! Avoidance, IEEE/ACM Transactions on Networking 1 (4), 1993), with ECN marking (RFC 3168).
//!
//! [`Average`] and [`Thresholds`] stand alone, for the disciplines that build on RED.

mod average;

use suimon_units::{Bytes, Instant, Probability};

pub use self::average::{Average, Weight};
use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::{Arrival, Verdict};
use super::spacing::{Distances, Spacing};
use super::{Backlog, Buffer};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "red",
    summary: "marks or drops at random, the more the longer the average queue",
    source: "Floyd, Jacobson: Random Early Detection, 1993; RFC 3168",
    colour: "#9c755f",
    parameters: &[
        MODE,
        MIN_TH,
        MAX_TH,
        MAX_P,
        W_Q,
        GENTLE,
        early::ECN,
        WAIT,
        WEIGH_SIZES,
        MEAN_PACKET,
        Parameter {
            name: "rules",
            help: "linux: as its sch_red behind a shaper, the average stays while nothing waits, and marks go on from max_th",
            default: Value::Choice("paper"),
            range: Range::OneOf(&["paper", "linux"]),
        },
    ],
};

// The parameters one by one, for the disciplines that build on RED.

pub(super) const MODE: Parameter = Parameter {
    name: "mode",
    help: "what the queue is measured in; packets: each counts as mean_packet, whatever its size",
    default: Value::Choice("bytes"),
    range: Range::OneOf(&["bytes", "packets"]),
};

pub(super) const MIN_TH: Parameter = Parameter {
    name: "min_th",
    help: "average queue above which packets are marked; 0: a third of max_th",
    default: Value::Bytes(Bytes::ZERO),
    range: Range::Any,
};

pub(super) const MAX_TH: Parameter = Parameter {
    name: "max_th",
    help: "average queue at which max_p is reached; 0: three times min_th, or 3/4 of the buffer",
    default: Value::Bytes(Bytes::ZERO),
    range: Range::Any,
};

pub(super) const MAX_P: Parameter = Parameter {
    name: "max_p",
    help: "probability of a mark as the average comes to max_th",
    default: Value::Number(0.1),
    range: Range::Between(0.0, 1.0),
};

pub(super) const W_Q: Parameter = Parameter {
    name: "w_q",
    help: "weight of one arrival in the average; 0: from the link's rate, a time constant of 1 s",
    default: Value::Number(0.002),
    range: Range::Between(0.0, 1.0),
};

pub(super) const GENTLE: Parameter = Parameter {
    name: "gentle",
    help: "from max_th to twice max_th the probability rises to 1, instead of at once",
    default: Value::Flag(true),
    range: Range::Any,
};

pub(super) const WAIT: Parameter = Parameter {
    name: "wait",
    help: "after a mark let 1/p packets pass before the next, as ns-2 does",
    default: Value::Flag(false),
    range: Range::Any,
};

pub(super) const WEIGH_SIZES: Parameter = Parameter {
    name: "weigh_sizes",
    help: "a packet of twice mean_packet is twice as likely to be chosen: byte mode",
    default: Value::Flag(false),
    range: Range::Any,
};

pub(super) const MEAN_PACKET: Parameter = Parameter {
    name: "mean_packet",
    help: "mean size of a packet, where packets and bytes are to be converted",
    default: Value::Bytes(Bytes::new(1_000)),
    range: Range::Any,
};

/// Above which average queue RED acts, in bytes, and how strongly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Below this nothing is marked.
    pub min_th: f64,
    /// Here the probability has risen to `max_p`.
    pub max_th: f64,
    /// The probability as the average comes to `max_th`.
    pub max_p: Probability,
    /// Whether the probability rises from `max_p` to 1 between `max_th` and twice that.
    pub gentle: bool,
}

impl Thresholds {
    /// `p_b` at the average queue `avg`; `None` below `min_th`, 1 where every arrival is to go.
    #[must_use]
    pub fn probability(&self, avg: f64) -> Option<Probability> {
        let Self { min_th, max_th, max_p, gentle } = *self;
        let max_p = max_p.get();
        if avg < min_th {
            None
        } else if avg < max_th {
            Some(Probability::clamped(max_p * (avg - min_th) / (max_th - min_th)))
        } else if gentle && avg < 2.0 * max_th {
            Some(Probability::clamped(max_p + (1.0 - max_p) * (avg - max_th) / max_th))
        } else {
            Some(Probability::ONE)
        }
    }
}

/// RED's probability, from the queue's average length.
#[derive(Debug, Clone)]
pub struct Red {
    thresholds: Thresholds,
    average: Average,
    /// Marks rather than drops where every packet is to go.
    marks_all: bool,
    /// The size that each packet counts as, where not its own.
    counts_as: Option<Bytes>,
    /// The size whose probability is `p_b`, where a packet's size matters.
    weighed_against: Option<Bytes>,
}

impl Red {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        let mean_packet = arguments.bytes("mean_packet");
        let room = match buffer {
            Buffer::Packets(limit) => mean_packet * limit,
            Buffer::Bytes(limit) => limit,
            Buffer::Unbounded => mean_packet * UNBOUNDED_ROOM,
        };
        let given = |name| Some(arguments.bytes(name).as_f64()).filter(|bytes| *bytes > 0.0);
        let (min_th, max_th) = match (given("min_th"), given("max_th")) {
            (Some(min_th), Some(max_th)) => (min_th, max_th),
            (Some(min_th), None) => (min_th, 3.0 * min_th),
            (None, Some(max_th)) => (max_th / 3.0, max_th),
            (None, None) => (0.25 * room.as_f64(), 0.75 * room.as_f64()),
        };
        let w_q = arguments.number("w_q");
        Self {
            thresholds: Thresholds {
                min_th,
                max_th,
                max_p: Probability::clamped(arguments.number("max_p")),
                gentle: arguments.flag("gentle"),
            },
            average: Average::new(if w_q > 0.0 { Weight::Fixed(w_q) } else { Weight::Automatic }),
            marks_all: false,
            counts_as: (arguments.choice("mode") == "packets").then_some(mean_packet),
            weighed_against: Some(mean_packet).filter(|_| arguments.flag("weigh_sizes")),
        }
    }

    /// By the rules of Linux's `sch_red` behind a shaper. It marks above `max_th` unless `harddrop` is set
    /// (`RED_HARD_MARK`). It learns that the queue is empty where its parent asks it for a packet in vain, and shapers look
    /// first (`sch_tbf`), so that idle time does not count.
    fn by_rules_of_linux(self) -> Self {
        Self { marks_all: true, average: self.average.without_idle_time(), ..self }
    }

    /// The thresholds, and the probabilities between them.
    pub(super) fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// The same, to be changed.
    pub(super) fn thresholds_mut(&mut self) -> &mut Thresholds {
        &mut self.thresholds
    }

    /// The average queue, in bytes.
    pub(super) fn average(&self) -> f64 {
        self.average.get()
    }

    /// Takes an arrival into the average queue.
    pub(super) fn on_arrival(&mut self, arrival: &Arrival) {
        self.average.on_arrival(arrival.now, self.length(arrival.backlog));
    }

    /// The advice for an arrival at the average queue as it is.
    pub(super) fn advice(&self, arrival: &Arrival) -> Advice {
        match (self.thresholds.probability(self.average.get()), self.weighed_against) {
            (None, _) => Advice::Calm,
            // Where every packet would be marked, senders no longer heed marks.
            (Some(Probability::ONE), _) if !self.marks_all => Advice::Drop,
            (Some(p_b), None) => Advice::Choose(p_b),
            // Floyd, Jacobson 1993 §4: a large packet is more likely to be chosen than a small one.
            (Some(p_b), Some(mean)) => {
                Advice::Choose(Probability::clamped(p_b.get() * arrival.size.as_f64() / mean.as_f64()))
            }
        }
    }

    /// The queue as the average sees it, in bytes.
    fn length(&self, backlog: Backlog) -> f64 {
        match self.counts_as {
            None => backlog.bytes.as_f64(),
            Some(mean_packet) => mean_packet.as_f64() * backlog.packets as f64,
        }
    }
}

impl EarlyDetection for Red {
    // Forced: as a call it takes a fifth more instructions a packet.
    #[inline(always)]
    fn advise(&mut self, arrival: &Arrival, _random: &mut RandomStream) -> Advice {
        self.on_arrival(arrival);
        self.advice(arrival)
    }

    fn on_verdict(&mut self, arrival: &Arrival, verdict: Verdict) {
        if matches!(verdict, Verdict::Drop(_)) && arrival.backlog.packets == 0 {
            self.average.still_empty(arrival.now);
        }
    }

    fn on_departure(&mut self, now: Instant, _size: Bytes, left: Backlog) {
        self.average.on_departure(now, left.packets == 0);
    }

    fn is_short(&self, backlog: Backlog) -> bool {
        self.length(backlog) < self.thresholds.min_th
    }

    fn probe(&self, out: &mut dyn Probe) {
        let avg = self.average.get();
        out.value("average_bytes", avg);
        out.value("mark_probability", self.thresholds.probability(avg).map_or(0.0, Probability::get));
    }
}

/// RED with `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<Red> {
    let red = Red::new(arguments, buffer);
    Early {
        detection: if arguments.choice("rules") == "linux" { red.by_rules_of_linux() } else { red },
        spacing: spacing(arguments),
        ecn: arguments.flag("ecn"),
        marks_departures: false,
    }
}

/// The distances between marks that `arguments` ask for.
pub(super) fn spacing(arguments: &Arguments) -> Spacing {
    Spacing::new(if arguments.flag("wait") { Distances::Wait } else { Distances::Uniform })
}

/// Thresholds over a buffer without limit are as over one of 20 mean packets: 5 and 15, ns-2's defaults.
const UNBOUNDED_ROOM: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::early::EarlyPolicy;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::{TestPacket, arguments};
    use crate::queue::{DropReason, Ecn, QueueDiscipline};

    fn red(settings: &str, buffer: Buffer) -> PolicyQueue<TestPacket, EarlyPolicy<Red>> {
        let early = early(&arguments(&DESCRIPTION, settings), buffer);
        PolicyQueue::new(EarlyPolicy::new(early, buffer, RandomStream::new(1, "red")))
    }

    fn packet(ecn: Ecn) -> TestPacket {
        TestPacket { ecn, ..TestPacket::new(0, 1_000) }
    }

    /// Offers `count` packets to a queue with `avg` held where it is, and gives how many were marked
    /// and dropped.
    fn offered(avg: f64, settings: &str, count: u64, ecn: Ecn) -> (u64, u64) {
        let mut queue = red(&format!(":min_th=10kB:max_th=20kB{settings}"), Buffer::Unbounded);
        let (mut dropped, mut marked) = (Vec::new(), 0);
        for _ in 0..count {
            queue.policy_mut().detection_mut().average = Average::held_at(avg);
            queue.enqueue(Instant::ZERO, packet(ecn), &mut dropped);
            let sent = queue.dequeue(Instant::ZERO, &mut Vec::new());
            marked +=
                u64::from(sent.is_some_and(|p| p.ecn == Ecn::CongestionExperienced) && ecn == Ecn::Capable);
        }
        assert!(dropped.iter().all(|d| d.reason == DropReason::Early));
        (marked, dropped.len() as u64)
    }

    fn thresholds(gentle: bool) -> Thresholds {
        Thresholds { min_th: 10e3, max_th: 20e3, max_p: Probability::clamped(0.1), gentle }
    }

    #[test]
    fn probability_rises_from_nothing_at_min_th_to_max_p_at_max_th() {
        for gentle in [false, true] {
            let p = |avg| thresholds(gentle).probability(avg).map(Probability::get);
            assert_eq!(p(9_999.0), None);
            assert_eq!(p(10_000.0), Some(0.0));
            assert_eq!(p(15_000.0), Some(0.05));
            assert!((p(19_999.0).unwrap() - 0.1).abs() < 1e-4);
        }
    }

    #[test]
    fn gentle_rises_on_to_one_at_twice_max_th_and_else_it_jumps_there() {
        let p = |gentle, avg| thresholds(gentle).probability(avg).unwrap().get();
        assert_eq!(p(false, 20_000.0), 1.0);
        assert_eq!(p(true, 20_000.0), 0.1);
        assert_eq!(p(true, 30_000.0), 0.55);
        assert!(p(true, 39_999.0) < 1.0);
        assert_eq!(p(true, 40_000.0), 1.0);
    }

    #[test]
    fn where_all_are_to_go_the_paper_drops_and_linux_marks() {
        let above = |rules, ecn| offered(25e3, &format!(":gentle=false:rules={rules}"), 100, ecn);
        assert_eq!(above("paper", Ecn::Capable), (0, 100));
        assert_eq!(above("linux", Ecn::Capable), (100, 0));
        assert_eq!(above("linux", Ecn::NotCapable), (0, 100));
    }

    #[test]
    fn max_th_below_min_th_is_a_step_at_min_th() {
        let step = Thresholds { max_th: 5e3, ..thresholds(false) };
        assert_eq!(step.probability(9_999.0), None);
        assert_eq!(step.probability(10_000.0), Some(Probability::ONE));
    }

    #[test]
    fn thresholds_not_given_follow_from_the_other_or_from_the_buffer() {
        let of = |settings, buffer| {
            let Thresholds { min_th, max_th, .. } =
                red(settings, buffer).policy_mut().detection_mut().thresholds;
            (min_th, max_th)
        };
        let buffer = Buffer::Bytes(Bytes::new(100_000));
        assert_eq!(of("", buffer), (25e3, 75e3));
        assert_eq!(of(":min_th=10kB", buffer), (10e3, 30e3));
        assert_eq!(of(":max_th=60kB", buffer), (20e3, 60e3));
        assert_eq!(of(":mean_packet=500B", Buffer::Packets(100)), (12_500.0, 37_500.0));
        assert_eq!(of("", Buffer::Unbounded), (5e3, 15e3));
    }

    #[test]
    fn capable_packets_are_marked_and_others_dropped_equally_often() {
        let (marked, dropped) = offered(15e3, "", 10_000, Ecn::Capable);
        assert_eq!(dropped, 0);
        // Mean distance (1 + 19) / 2 at p_b = 0.05.
        assert!((950..1_050).contains(&marked), "{marked}");
        assert_eq!(offered(15e3, "", 10_000, Ecn::NotCapable), (0, marked));
        assert_eq!(offered(15e3, ":ecn=false", 10_000, Ecn::Capable), (0, marked));
    }

    #[test]
    fn nothing_happens_below_min_th_and_everything_is_dropped_at_the_end() {
        assert_eq!(offered(9_999.0, "", 100, Ecn::Capable), (0, 0));
        assert_eq!(offered(10e3, "", 100, Ecn::Capable), (0, 0));
        assert_eq!(offered(40e3, "", 100, Ecn::Capable), (0, 100));
        assert_eq!(offered(20e3, ":gentle=false", 100, Ecn::Capable), (0, 100));
    }

    #[test]
    fn a_mark_of_an_earlier_queue_stays_and_its_packet_is_not_dropped() {
        let (_, dropped) = offered(15e3, "", 1_000, Ecn::CongestionExperienced);
        assert_eq!(dropped, 0);
    }

    #[test]
    fn what_does_not_fit_is_dropped_whatever_the_average() {
        let mut queue = red("", Buffer::Bytes(Bytes::new(2_500)));
        let mut dropped = Vec::new();
        (0..3).for_each(|_| queue.enqueue(Instant::ZERO, packet(Ecn::Capable), &mut dropped));
        assert_eq!(dropped[0].reason, DropReason::Overflow);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: Bytes::new(2_000) });
    }

    #[test]
    fn in_packet_mode_small_packets_weigh_as_much_as_large_ones() {
        let average = |settings: &str, size| {
            let mut queue = red(&format!(":w_q=1{settings}"), Buffer::Packets(100));
            (0..3).for_each(|id| queue.enqueue(Instant::ZERO, TestPacket::new(id, size), &mut Vec::new()));
            queue.policy_mut().detection_mut().average.get()
        };
        assert_eq!(average("", 40), 80.0);
        assert_eq!(average(":mode=packets", 40), 2_000.0);
        assert_eq!(average(":mode=packets:mean_packet=1500B", 9_000), 3_000.0);
    }

    #[test]
    fn where_sizes_weigh_a_packet_is_chosen_in_proportion_to_its_own() {
        let advice = |settings: &str, size| {
            let buffer = Buffer::Bytes(Bytes::new(100_000));
            let mut red = Red::new(&arguments(&DESCRIPTION, settings), buffer);
            red.average = Average::held_at(50e3);
            let arrival = Arrival { size: Bytes::new(size), ..Arrival::at_empty_queue(Instant::ZERO) };
            red.advice(&arrival)
        };
        let choose = |p| Advice::Choose(Probability::clamped(p));
        assert_eq!(advice("", 40), choose(0.05));
        assert_eq!(advice(":weigh_sizes=true", 1_000), choose(0.05));
        assert_eq!(advice(":weigh_sizes=true", 40), choose(0.002));
        assert_eq!(advice(":weigh_sizes=true:mean_packet=500B", 1_500), choose(0.15));
        // However large, it is marked and not dropped.
        assert_eq!(advice(":weigh_sizes=true:mean_packet=1B", 9_000), Advice::Choose(Probability::ONE));
    }
}
