//! PIE, Proportional Integral controller Enhanced (RFC 8033), with all of its optional elements (§5).
//!
//! Names are the RFC's, without the trailing underscore. Delay is estimated from the departure rate (§5.2).

use suimon_units::{Bytes, Duration, Instant, Probability};

use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::{Backlog, Buffer, DropReason, Ecn};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "pie",
    summary: "drops or marks arrivals at random so that the delay comes to 15 ms",
    source: "RFC 8033",
    colour: "#f28e2b",
    parameters: &[
        Parameter {
            name: "target",
            help: "delay to come to (QDELAY_REF)",
            default: Value::Duration(Duration::from_millis(15)),
            range: Range::Any,
        },
        Parameter {
            name: "tupdate",
            help: "time between two adjustments of the probability; at least 1 ms",
            default: Value::Duration(Duration::from_millis(15)),
            range: Range::Any,
        },
        Parameter {
            name: "alpha",
            help: "change of the probability for each second of delay above the target",
            default: Value::Number(0.125),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "beta",
            help: "change of the probability for each second by which the delay grew",
            default: Value::Number(1.25),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "max_burst",
            help: "how long a burst may last before anything is dropped",
            default: Value::Duration(Duration::from_millis(150)),
            range: Range::Any,
        },
        Parameter {
            name: "activation",
            help: "share of the buffer from which on PIE acts, until the queue is empty; 0, or no limit: always",
            default: Value::Number(0.0),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "dq_threshold",
            help: "bytes over which the departure rate is measured",
            default: Value::Bytes(Bytes::new(16_384)),
            range: Range::Any,
        },
        Parameter {
            name: "mean_packet",
            help: "mean size of a packet: nothing is dropped while no more than two wait",
            default: Value::Bytes(Bytes::new(1_000)),
            range: Range::Any,
        },
        Parameter {
            name: "derandomise",
            help: "keep drops from coming too close to each other or too far apart",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "ecn",
            help: "mark packets of ECN-capable transports instead of dropping them",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "mark_ecnth",
            help: "probability from which on those are dropped too",
            default: Value::Number(0.1),
            range: Range::Between(0.0, 1.0),
        },
    ],
};

/// PIE's constants (RFC 8033 appendix B), times in seconds.
#[derive(Debug, Clone, Copy)]
struct Settings {
    target: f64,
    tupdate: Duration,
    alpha: f64,
    beta: f64,
    max_burst: Duration,
    /// The backlog from which on PIE acts; `None`: always.
    activation: Option<f64>,
    dq_threshold: f64,
    mean_packet: Bytes,
    derandomise: bool,
    /// Marks are given below this probability.
    mark_ecnth: f64,
}

/// PIE's drop probability, and the departure rate from which it follows.
#[derive(Debug, Clone)]
pub struct Pie {
    /// The backlog.
    backlog: Backlog,
    buffer: Buffer,
    settings: Settings,
    random: RandomStream,
    active: bool,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: Duration,
    /// `None` until there is a departure rate to tell it by.
    current_qdelay: Option<f64>,
    qdelay_old: f64,
    last_timestamp: Instant,
    /// Since when, while the departure rate is measured.
    measurement_start: Option<Instant>,
    dq_count: Bytes,
    /// Seconds that `dq_threshold` bytes take to leave, once that was measured.
    avg_dq_time: Option<f64>,
}

impl Pie {
    /// For a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, random: RandomStream) -> Self {
        let settings = Settings {
            target: arguments.duration("target").as_secs_f64(),
            tupdate: arguments.duration("tupdate").max(Duration::from_millis(1)),
            alpha: arguments.number("alpha"),
            beta: arguments.number("beta"),
            max_burst: arguments.duration("max_burst"),
            activation: Some(arguments.number("activation"))
                .filter(|share| *share > 0.0 && buffer != Buffer::Unbounded),
            dq_threshold: arguments.bytes("dq_threshold").max(Bytes::new(1)).as_f64(),
            mean_packet: arguments.bytes("mean_packet"),
            derandomise: arguments.flag("derandomise"),
            mark_ecnth: if arguments.flag("ecn") { arguments.number("mark_ecnth") } else { 0.0 },
        };
        Self {
            backlog: Backlog::default(),
            buffer,
            settings,
            random,
            active: settings.activation.is_none(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: settings.max_burst,
            current_qdelay: None,
            qdelay_old: 0.0,
            last_timestamp: Instant::ZERO,
            measurement_start: None,
            dq_count: Bytes::ZERO,
            avg_dq_time: None,
        }
    }

    /// Makes the adjustments that fell due by `now`. They depend on packets only, so the next arrival or
    /// departure is soon enough.
    fn catch_up(&mut self, now: Instant) {
        let tupdate = self.settings.tupdate;
        while self.active && now.saturating_since(self.last_timestamp) >= tupdate {
            let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
            self.calculate_drop_prob();
            self.last_timestamp += tupdate;
            if before == (self.drop_prob, self.qdelay_old, self.burst_allowance) {
                let more = now.saturating_since(self.last_timestamp).as_nanos() / tupdate.as_nanos();
                self.last_timestamp += tupdate * more;
            }
        }
    }

    /// RFC 8033 §4.2, §5.5.
    fn calculate_drop_prob(&mut self) {
        let Settings { target, alpha, beta, dq_threshold, .. } = self.settings;
        let backlog = self.backlog.bytes.as_f64();
        self.current_qdelay = self.avg_dq_time.map(|dq_time| backlog * dq_time / dq_threshold);
        let current_qdelay = self.current_qdelay.unwrap_or(0.0);
        let mut p = alpha * (current_qdelay - target) + beta * (current_qdelay - self.qdelay_old);
        p /= scale(self.drop_prob);
        if self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if current_qdelay < target / 2.0 && self.qdelay_old < target / 2.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = Probability::clamped(self.drop_prob).get();
        self.qdelay_old = current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.settings.tupdate);
    }

    /// Whether the coin says to drop an arrival (RFC 8033 §5.4; appendix B, `drop_early`).
    fn drop_early(&mut self) -> bool {
        let Settings { target, mean_packet, .. } = self.settings;
        let calm = self.qdelay_old < target / 2.0 && self.drop_prob < 0.2;
        if calm || self.backlog.bytes <= mean_packet * 2 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        if self.settings.derandomise {
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        let drop = self.random.uniform() < self.drop_prob;
        if drop {
            self.accu_prob = 0.0;
        }
        drop
    }

    /// The verdict on an arrival (RFC 8033 §5.1; appendix B, `enque`).
    fn enque(&mut self, arrival: &Arrival) -> Verdict {
        if !self.buffer.admits(arrival.backlog, arrival.size) {
            self.accu_prob = 0.0;
            return Verdict::Drop(DropReason::Overflow);
        }
        if !(self.active && self.drop_early() && self.burst_allowance == Duration::ZERO) {
            return Verdict::Pass;
        }
        self.accu_prob = 0.0;
        if self.drop_prob < self.settings.mark_ecnth && arrival.ecn != Ecn::NotCapable {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Early)
        }
    }

    /// Turns PIE on where the queue is long, and off where congestion is over (RFC 8033 §5.3); or, where it
    /// always acts, allows a burst again where congestion is over (RFC 8033 §4.4).
    fn on_arrival(&mut self, now: Instant) {
        let Settings { target, max_burst, activation, .. } = self.settings;
        let Some(activation) = activation else {
            let current_qdelay = self.current_qdelay.unwrap_or(0.0);
            if self.drop_prob == 0.0 && current_qdelay < target / 2.0 && self.qdelay_old < target / 2.0 {
                self.burst_allowance = max_burst;
            }
            return;
        };
        let backlog = self.backlog;
        let is_long = match self.buffer {
            Buffer::Packets(limit) => backlog.packets as f64 >= activation * limit as f64,
            Buffer::Bytes(limit) => backlog.bytes.as_f64() >= activation * limit.as_f64(),
            Buffer::Unbounded => true,
        };
        if !self.active && is_long {
            self.active = true;
            self.current_qdelay = None;
            self.qdelay_old = 0.0;
            self.drop_prob = 0.0;
            self.accu_prob = 0.0;
            self.measurement_start = None;
            self.avg_dq_time = None;
            self.start_measuring(now);
            self.last_timestamp = now;
            self.burst_allowance = max_burst;
        }
        // An unknown delay is not a delay of 0.
        if self.drop_prob == 0.0 && self.qdelay_old == 0.0 && self.current_qdelay == Some(0.0) {
            self.active = false;
        }
    }

    /// Measures how long `dq_threshold` bytes take to leave (RFC 8033 §5.2).
    fn measure(&mut self, now: Instant, departed: Bytes) {
        let threshold = self.settings.dq_threshold;
        if let Some(start) = self.measurement_start {
            self.dq_count += departed;
            if self.dq_count.as_f64() >= threshold {
                let dq_time = now.saturating_since(start).as_secs_f64();
                let weight = (threshold / 65_536.0).min(1.0);
                let average = |before: f64| dq_time * weight + before * (1.0 - weight);
                self.avg_dq_time = Some(self.avg_dq_time.map_or(dq_time, average));
                self.measurement_start = None;
            }
        }
        self.start_measuring(now);
    }

    /// Begins where enough waits for the link not to fall idle meanwhile.
    fn start_measuring(&mut self, now: Instant) {
        let is_enough = self.backlog.bytes.as_f64() >= self.settings.dq_threshold;
        if self.measurement_start.is_none() && is_enough {
            self.measurement_start = Some(now);
            self.dq_count = Bytes::ZERO;
        }
    }
}

/// The divisor of a change of the probability, so that small ones change little (RFC 8033 §4.2).
pub(super) fn scale(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.000_001 => 2_048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

impl ArrivalPolicy for Pie {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        self.backlog = arrival.backlog;
        self.catch_up(arrival.now);
        let verdict = self.enque(arrival);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.backlog.packets += 1;
            self.backlog.bytes += arrival.size;
        }
        self.on_arrival(arrival.now);
        verdict
    }

    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.backlog = Backlog { packets: left.packets + 1, bytes: left.bytes + size };
        self.catch_up(now);
        self.backlog = left;
        if self.active {
            self.measure(now, size);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("drop_probability", self.drop_prob);
        out.value("delay_ms", self.qdelay_old * 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueDiscipline;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::TestPacket;
    use crate::registry::{AlgorithmSpec, Role};

    const MS: Duration = Duration::from_millis(1);

    type Queue = PolicyQueue<TestPacket, Pie>;

    fn pie(settings: &str, buffer: Buffer) -> Queue {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("pie{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        spec.arguments().for_each(|(name, value)| arguments.set(name, value));
        PolicyQueue::new(Pie::new(&arguments, buffer, RandomStream::new(1, "pie")))
    }

    /// A PIE that acts at `drop_prob`, with ten packets waiting and delay at the target.
    fn acting(settings: &str, drop_prob: f64) -> Queue {
        let mut queue = pie(settings, Buffer::Unbounded);
        (0..10).for_each(|id| queue.fifo_mut().push(TestPacket::new(id, 1_000)));
        let backlog = queue.backlog();
        let pie = queue.policy_mut();
        pie.backlog = backlog;
        pie.active = true;
        pie.drop_prob = drop_prob;
        pie.qdelay_old = 0.015;
        pie.burst_allowance = Duration::ZERO;
        queue
    }

    /// Marks and drops among `count` arrivals, with the probability and the queue held where they are, and
    /// the distances between them.
    fn chosen(queue: &mut Queue, ecn: Ecn, count: u64) -> (u64, u64, Vec<u64>) {
        let (mut marked, mut gone, mut last, mut distances) = (0, 0, 0, Vec::new());
        for id in 0..count {
            let mut dropped = Vec::new();
            queue.enqueue(Instant::ZERO, TestPacket { ecn, ..TestPacket::new(id, 1_000) }, &mut dropped);
            let sent = queue.dequeue(Instant::ZERO, &mut Vec::new());
            let mark = sent.is_some_and(|packet| packet.ecn == Ecn::CongestionExperienced);
            marked += u64::from(mark);
            gone += dropped.len() as u64;
            if !dropped.is_empty() {
                queue.fifo_mut().push(TestPacket::new(id, 1_000));
                distances.push(id - last);
                last = id;
            }
        }
        (marked, gone, distances)
    }

    #[test]
    fn drops_are_neither_close_together_nor_far_apart() {
        let p = 0.05;
        let (_, gone, distances) = chosen(&mut acting("", p), Ecn::NotCapable, 20_000);
        let (shortest, longest) = (distances[1..].iter().min().unwrap(), distances.iter().max().unwrap());
        assert_eq!(*shortest, libm::ceil(0.85 / p) as u64);
        assert!(*longest <= libm::ceil(8.5 / p) as u64, "{longest}");
        let (_, independent, distances) =
            chosen(&mut acting(":derandomise=false", p), Ecn::NotCapable, 20_000);
        assert!(distances.contains(&1));
        // Five standard deviations of a binomial.
        assert!((independent as f64 - 1_000.0).abs() < 5.0 * 950_f64.sqrt(), "{independent}");
        assert!(gone < independent);
    }

    #[test]
    fn capable_packets_are_marked_below_the_threshold_and_dropped_from_it_on() {
        let of = |settings, p| {
            let (marked, gone, _) = chosen(&mut acting(settings, p), Ecn::Capable, 2_000);
            (marked > 0, gone > 0)
        };
        assert_eq!(of("", 0.0999), (true, false));
        assert_eq!(of("", 0.1), (false, true));
        assert_eq!(of(":mark_ecnth=1", 0.5), (true, false));
        assert_eq!(of(":ecn=false", 0.05), (false, true));
    }

    #[test]
    fn nothing_is_dropped_in_a_short_queue_or_in_calm_or_within_a_burst() {
        let gone = |change: fn(&mut Queue)| {
            let mut queue = acting("", 0.19);
            change(&mut queue);
            chosen(&mut queue, Ecn::NotCapable, 1_000).1
        };
        assert!(gone(|_| ()) > 0);
        assert!(gone(|queue| queue.policy_mut().qdelay_old = 0.0075) > 0);
        assert_eq!(gone(|queue| queue.policy_mut().qdelay_old = 0.007_499), 0);
        assert_eq!(
            gone(|queue| while queue.backlog().packets > 2 {
                queue.fifo_mut().pop();
            }),
            0
        );
        assert_eq!(gone(|queue| queue.policy_mut().burst_allowance = MS), 0);
        assert_eq!(gone(|queue| queue.policy_mut().active = false), 0);
    }

    #[test]
    fn the_probability_moves_by_its_law_and_small_ones_move_little() {
        for (p, divided_by) in [(0.5, 1.0), (0.1, 1.0), (0.099, 2.0), (0.009, 8.0), (0.0, 2_048.0)] {
            let mut queue = acting("", p);
            let pie = queue.policy_mut();
            // 10 kB at 1 MB/s: 10 ms, 5 ms below the target and below what it was.
            pie.avg_dq_time = Some(0.016_384);
            pie.calculate_drop_prob();
            let change = (0.125 * -0.005 + 1.25 * -0.005) / divided_by;
            assert!((pie.drop_prob - (p + change).max(0.0)).abs() < 1e-12, "{p}");
            assert_eq!(pie.qdelay_old, 0.01);
        }
        let mut queue = acting("", 0.1);
        let pie = queue.policy_mut();
        pie.avg_dq_time = Some(1.0);
        pie.calculate_drop_prob();
        assert!((pie.drop_prob - 0.12).abs() < 1e-12);
    }

    #[test]
    fn the_departure_rate_is_measured_over_a_full_queue() {
        let mut queue = pie("", Buffer::Unbounded);
        (0..40).for_each(|id| queue.enqueue(Instant::ZERO, TestPacket::new(id, 1_000), &mut Vec::new()));
        for step in 1..=40 {
            queue.dequeue(Instant::ZERO + MS * step, &mut Vec::new());
        }
        // The 17th packet is the first beyond 16 384 B.
        assert_eq!(queue.policy_mut().avg_dq_time, Some(0.017));
    }

    #[test]
    fn pie_acts_from_a_third_of_the_buffer_on_until_congestion_is_over() {
        let mut queue = pie(":activation=0.3333", Buffer::Packets(90));
        for id in 0..30 {
            assert!(!queue.policy_mut().active);
            queue.enqueue(Instant::ZERO, TestPacket::new(id, 1_000), &mut Vec::new());
        }
        assert!(queue.policy_mut().active);
        for step in 0..30 {
            queue.dequeue(Instant::ZERO + MS * step, &mut Vec::new());
        }
        queue.enqueue(Instant::ZERO + MS * 1_000, TestPacket::new(30, 1_000), &mut Vec::new());
        assert!(!queue.policy_mut().active);
    }

    #[test]
    fn ten_idle_days_end_as_a_few_idle_seconds_do() {
        let after = |idle: Duration| {
            let mut queue = acting("", 0.8);
            let pie = queue.policy_mut();
            pie.avg_dq_time = Some(0.01);
            pie.backlog = Backlog::default();
            pie.catch_up(Instant::ZERO + idle);
            assert_eq!(pie.last_timestamp, Instant::ZERO + idle);
            (pie.drop_prob, pie.qdelay_old)
        };
        assert_eq!(after(MS * 15_000), after(Duration::from_secs(864_000)));
    }
}
