//! SRED, Stabilized RED (Ott, Lakshman, Wong: SRED: Stabilized RED, IEEE INFOCOM, 1999): the probability
//! follows the number of flows, which a list of recent packets' flows tells.

use suimon_units::{Bytes, Probability};

use super::Buffer;
use super::early::{self, Advice, Early, EarlyDetection};
use super::policy::Arrival;
use super::red;
use super::spacing::{Distances, Spacing};
use crate::estimate::zombies::Zombies;
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "sred",
    summary: "marks the more often the more flows there are, in three steps of the queue's length",
    source: "Ott, Lakshman, Wong: SRED, 1999",
    colour: "#d37295",
    parameters: &[
        red::MODE,
        Parameter {
            name: "capacity",
            help: "B, of which the steps are a sixth and a third; 0: the buffer",
            default: Value::Bytes(Bytes::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "p_max",
            help: "probability of a mark from a third of the capacity on, with many flows",
            default: Value::Number(0.15),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "zombies",
            help: "length of the list",
            default: Value::Count(1_000),
            range: Range::Between(1.0, 1e6),
        },
        Parameter {
            name: "overwrite",
            help: "probability that a packet takes the place of a zombie of another flow",
            default: Value::Number(0.25),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "hits",
            help: "mark packets that meet their own flow more often: full SRED; else simple SRED",
            default: Value::Flag(true),
            range: Range::Any,
        },
        early::ECN,
        red::MEAN_PACKET,
    ],
};

/// SRED's probability, from the queue's length and the list of zombies.
#[derive(Debug, Clone)]
pub struct Sred {
    /// In bytes.
    capacity: f64,
    p_max: f64,
    hits: bool,
    /// The size that each packet counts as, where not its own.
    counts_as: Option<Bytes>,
    zombies: Zombies,
    /// Of the last arrival.
    p_zap: f64,
}

impl Sred {
    /// With `arguments` as [`DESCRIPTION`] declares them, for a queue with room for `buffer`.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        let mean_packet = arguments.bytes("mean_packet");
        let capacity = match (arguments.bytes("capacity"), buffer) {
            (Bytes::ZERO, Buffer::Packets(limit)) => mean_packet * limit,
            (Bytes::ZERO, Buffer::Bytes(limit)) => limit,
            (Bytes::ZERO, Buffer::Unbounded) => mean_packet * UNBOUNDED_CAPACITY,
            (capacity, _) => capacity,
        };
        let overwrite = Probability::clamped(arguments.number("overwrite"));
        Self {
            capacity: capacity.as_f64(),
            p_max: arguments.number("p_max"),
            hits: arguments.flag("hits"),
            counts_as: (arguments.choice("mode") == "packets").then_some(mean_packet),
            zombies: Zombies::new(arguments.count("zombies"), overwrite),
            p_zap: 0.0,
        }
    }

    /// `p_sred` of a queue of `q` bytes (eq. 3.1).
    fn p_sred(&self, q: f64) -> f64 {
        if 3.0 * q >= self.capacity {
            self.p_max
        } else if 6.0 * q >= self.capacity {
            self.p_max / 4.0
        } else {
            0.0
        }
    }
}

impl EarlyDetection for Sred {
    fn advise(&mut self, arrival: &Arrival, random: &mut RandomStream) -> Advice {
        let hit = self.zombies.on_packet(arrival.flow, random);
        let p = self.zombies.hit_frequency();
        let q = match self.counts_as {
            None => arrival.backlog.bytes.as_f64(),
            Some(mean_packet) => mean_packet.as_f64() * arrival.backlog.packets as f64,
        };
        // Eq. 3.2: with N = 1 / P flows the probability grows as their square, up to 256 of them.
        let many = if p > 0.0 { (1.0 / (256.0 * p)).min(1.0) } else { 1.0 };
        // Eq. 3.3: a flow of more than its share hits more often.
        let hits = if self.hits && hit { 1.0 + 1.0 / p } else { 1.0 };
        self.p_zap = self.p_sred(q) * many * many * hits;
        Advice::Choose(Probability::clamped(self.p_zap))
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("mark_probability", self.p_zap.min(1.0));
        out.value("flows", self.zombies.flows());
    }
}

/// SRED for a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
#[must_use]
pub fn early(arguments: &Arguments, buffer: Buffer) -> Early<Sred> {
    Early {
        detection: Sred::new(arguments, buffer),
        spacing: Spacing::new(Distances::Independent),
        ecn: arguments.flag("ecn"),
        marks_departures: false,
    }
}

/// A buffer without limit has its steps where one of 60 mean packets has them: at 10 and 20.
const UNBOUNDED_CAPACITY: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::arguments;
    use crate::queue::{Backlog, FlowId};
    use suimon_units::Instant;

    fn sred(settings: &str) -> Sred {
        let buffer = Buffer::Bytes(Bytes::new(60_000));
        Sred::new(&arguments(&DESCRIPTION, settings), buffer)
    }

    fn arrival(flow: u32, waiting: u64) -> Arrival {
        let backlog = Backlog { packets: waiting.div_ceil(1_000), bytes: Bytes::new(waiting) };
        Arrival { flow: FlowId(flow), backlog, ..Arrival::at_empty_queue(Instant::ZERO) }
    }

    /// The mean of what is said of 20 000 packets of `flows` flows in random order that find `waiting`
    /// bytes, after as many that fill the list; and that of hits alone.
    fn p_zap(settings: &str, flows: u64, waiting: u64) -> f64 {
        let mut sred = sred(settings);
        let mut random = RandomStream::new(2, "sred");
        let mut sum = 0.0;
        for nth in 0..40_000 {
            let flow = random.below(flows) as u32;
            let Advice::Choose(p) = sred.advise(&arrival(flow, waiting), &mut random) else { panic!() };
            sum += if nth < 20_000 { 0.0 } else { p.get() / 20_000.0 };
        }
        sum
    }

    #[test]
    fn the_probability_has_steps_at_a_sixth_and_a_third_of_the_buffer() {
        let p = |waiting: f64| sred("").p_sred(waiting);
        assert_eq!((p(9_999.0), p(10_000.0)), (0.0, 0.0375));
        assert_eq!((p(19_999.0), p(20_000.0)), (0.0375, 0.15));
        assert_eq!(sred(":capacity=120kB").p_sred(20_000.0), 0.0375);
        assert_eq!(sred(":p_max=0.4").p_sred(60_000.0), 0.4);
    }

    /// Simple SRED with N flows: p_max (N / 256)^2, up to 256 of them.
    #[test]
    fn with_n_flows_the_probability_grows_as_the_square_of_n() {
        for flows in [16, 64] {
            let expected = 0.15 * (flows as f64 / 256.0) * (flows as f64 / 256.0);
            let p = p_zap(":hits=false", flows, 40_000);
            assert!((p / expected - 1.0).abs() < 0.25, "{flows}: {p} {expected}");
        }
        assert!((p_zap(":hits=false", 2_000, 40_000) / 0.15 - 1.0).abs() < 1e-9);
        assert_eq!(p_zap(":hits=false", 64, 9_999), 0.0);
    }

    /// Of N packets one hits and is marked with 1 + N times the probability, so the mean doubles.
    #[test]
    fn hits_double_the_mean_where_all_flows_are_alike() {
        for flows in [16, 64] {
            let ratio = p_zap("", flows, 40_000) / p_zap(":hits=false", flows, 40_000);
            assert!((ratio - 2.0).abs() < 0.15, "{flows}: {ratio}");
        }
    }

    #[test]
    fn a_flow_of_more_than_its_share_is_marked_more_often_than_others() {
        let mut sred = sred("");
        let mut random = RandomStream::new(2, "sred");
        let mut sums = [(0.0, 0); 2];
        for _ in 0..60_000 {
            // Flow 0 has half of the packets, 31 others share the rest.
            let flow = if random.below(2) == 0 { 0 } else { 1 + random.below(31) as u32 };
            let Advice::Choose(p) = sred.advise(&arrival(flow, 40_000), &mut random) else { panic!() };
            let (sum, count) = &mut sums[usize::from(flow > 0)];
            (*sum, *count) = (*sum + p.get(), *count + 1);
        }
        let [large, small] = sums.map(|(sum, count)| sum / f64::from(count));
        // P is a little above 1/4, so a hit has about 1 + 4 times the probability: half of the packets of
        // the large flow hit, and one in 62 of the others'.
        let expected = (1.0 + 0.5 * 4.0) / (1.0 + 4.0 / 62.0);
        assert!((large / small / expected - 1.0).abs() < 0.15, "{large} {small} {expected}");
    }
}
