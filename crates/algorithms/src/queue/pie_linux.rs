//! PIE as Linux has it since 5.6: RFC 8033 with delays from timestamps and without its other optional elements.
//!
//! Names are the kernel's (`include/net/pie.h`, `net/sched/sch_pie.c`).

use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Probability};

use super::pie::scale;
use super::policy::{Arrival, ArrivalPolicy, Verdict};
use super::{Backlog, Buffer, DropReason, Ecn, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "pie-linux",
    summary: "PIE as the kernel of today has it: the delay is the time that packets waited",
    source: "RFC 8033; Linux 6.1",
    colour: "#ffbe7d",
    parameters: &[TARGET, TUPDATE, ALPHA, BETA, MTU, ECN, tbf::SHAPER],
};

pub(super) const TARGET: Parameter = Parameter {
    name: "target",
    help: "delay to come to",
    default: Value::Duration(Duration::from_millis(15)),
    range: Range::Any,
};

pub(super) const TUPDATE: Parameter = Parameter {
    name: "tupdate",
    help: "time between two adjustments of the probability; at least 1 ms",
    default: Value::Duration(Duration::from_millis(15)),
    range: Range::Any,
};

pub(super) const ALPHA: Parameter = Parameter {
    name: "alpha",
    help: "change of the probability for each second of delay above the target",
    default: Value::Number(0.125),
    range: Range::Between(0.0, 1e6),
};

pub(super) const BETA: Parameter = Parameter {
    name: "beta",
    help: "change of the probability for each second by which the delay grew",
    default: Value::Number(1.25),
    range: Range::Between(0.0, 1e6),
};

pub(super) const MTU: Parameter = Parameter {
    name: "mtu",
    help: "largest packet of the link: nothing is dropped while less than two such wait",
    default: Value::Bytes(Bytes::new(1_500)),
    range: Range::Any,
};

pub(super) const ECN: Parameter = Parameter {
    name: "ecn",
    help: "mark packets of ECN-capable transports instead of dropping them, up to a probability of 0.1",
    default: Value::Flag(true),
    range: Range::Any,
};

/// A burst passes for so long.
const BURST: Duration = Duration::from_millis(150);
/// Delays above this raise the probability by two hundredths more at each adjustment.
const HIGH_DELAY: f64 = 0.25;
/// Up to this probability packets are marked instead of dropped.
const MARK_LIMIT: f64 = 0.1;

/// PIE's drop probability, and the delays from which it follows, in seconds.
#[derive(Debug, Clone)]
pub struct PieLinux {
    target: f64,
    tupdate: Duration,
    alpha: f64,
    beta: f64,
    mtu: Bytes,
    ecn: bool,
    buffer: Buffer,
    random: RandomStream,
    /// When each of the waiting packets came.
    arrivals: VecDeque<Instant>,
    backlog: Bytes,
    qdelay: f64,
    qdelay_old: f64,
    burst_time: Duration,
    /// When a packet left last, since PIE last came to rest.
    dq_tstamp: Option<Instant>,
    prob: f64,
    accu_prob: f64,
    adjusted_at: Instant,
}

impl PieLinux {
    /// For a queue with room for `buffer`, with `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer, random: RandomStream) -> Self {
        Self {
            target: arguments.duration("target").as_secs_f64(),
            tupdate: arguments.duration("tupdate").max(Duration::from_millis(1)),
            alpha: arguments.number("alpha"),
            beta: arguments.number("beta"),
            mtu: arguments.bytes("mtu"),
            ecn: arguments.flag("ecn"),
            buffer,
            random,
            arrivals: VecDeque::new(),
            backlog: Bytes::ZERO,
            qdelay: 0.0,
            qdelay_old: 0.0,
            burst_time: BURST,
            dq_tstamp: None,
            prob: 0.0,
            accu_prob: 0.0,
            adjusted_at: Instant::ZERO,
        }
    }

    /// An arrival found no room.
    pub(super) fn on_overflow(&mut self) {
        self.accu_prob = 0.0;
    }

    /// Makes the adjustments that fell due by `now`; nothing that they depend on has changed since.
    fn catch_up(&mut self, now: Instant) {
        while now.saturating_since(self.adjusted_at) >= self.tupdate {
            let before = (self.prob, self.qdelay_old, self.burst_time);
            self.calculate_probability();
            self.adjusted_at += self.tupdate;
            if before == (self.prob, self.qdelay_old, self.burst_time) {
                let more = now.saturating_since(self.adjusted_at).as_nanos() / self.tupdate.as_nanos();
                self.adjusted_at += self.tupdate * more;
            }
        }
    }

    /// `pie_calculate_probability`.
    fn calculate_probability(&mut self) {
        let Self { target, qdelay, qdelay_old, .. } = *self;
        let mut delta = self.alpha * (qdelay - target) + self.beta * (qdelay - qdelay_old);
        delta /= scale(self.prob);
        if delta > 0.02 && self.prob >= 0.1 {
            delta = 0.02;
        }
        if qdelay > HIGH_DELAY {
            delta += 0.02;
        }
        self.prob = Probability::clamped(self.prob + delta).get();
        if qdelay == 0.0 && qdelay_old == 0.0 && self.backlog == Bytes::ZERO {
            self.prob -= self.prob / 64.0;
        }
        if qdelay < target / 2.0 && qdelay_old < target / 2.0 && self.prob == 0.0 {
            (self.burst_time, self.dq_tstamp, self.accu_prob) = (BURST, None, 0.0);
        }
        self.qdelay_old = qdelay;
    }

    /// `pie_drop_early`.
    fn drop_early(&mut self) -> bool {
        let calm = self.qdelay < self.target / 2.0 && self.prob < 0.2;
        if self.burst_time > Duration::ZERO || calm || self.backlog < self.mtu * 2 {
            return false;
        }
        self.accu_prob = if self.prob == 0.0 { 0.0 } else { self.accu_prob + self.prob };
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 {
            return true;
        }
        let drop = self.random.uniform() < self.prob;
        if drop {
            self.accu_prob = 0.0;
        }
        drop
    }

    fn enqueue(&mut self, arrival: &Arrival) -> Verdict {
        if !self.buffer.admits(arrival.backlog, arrival.size) {
            return Verdict::Drop(DropReason::Overflow);
        }
        if !self.drop_early() {
            return Verdict::Pass;
        }
        if self.ecn && self.prob <= MARK_LIMIT && arrival.ecn != Ecn::NotCapable {
            Verdict::Mark
        } else {
            Verdict::Drop(DropReason::Early)
        }
    }
}

impl ArrivalPolicy for PieLinux {
    fn judge(&mut self, arrival: &Arrival) -> Verdict {
        self.backlog = arrival.backlog.bytes;
        self.catch_up(arrival.now);
        let verdict = self.enqueue(arrival);
        if matches!(verdict, Verdict::Drop(_)) {
            self.on_overflow();
        } else {
            self.arrivals.push_back(arrival.now);
            self.backlog += arrival.size;
        }
        verdict
    }

    /// `pie_process_dequeue`.
    fn on_departure(&mut self, now: Instant, size: Bytes, left: Backlog) {
        self.backlog = left.bytes + size;
        self.catch_up(now);
        self.backlog = left.bytes;
        let since = self.arrivals.pop_front().unwrap_or(now);
        self.qdelay = if left.packets > 0 { now.saturating_since(since).as_secs_f64() } else { 0.0 };
        let dtime = self.dq_tstamp.map_or(Duration::ZERO, |before| now.saturating_since(before));
        self.dq_tstamp = Some(now);
        self.burst_time = self.burst_time.saturating_sub(dtime);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("drop_probability", self.prob);
        out.value("delay_ms", self.qdelay * 1e3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueDiscipline;
    use crate::queue::policy::PolicyQueue;
    use crate::queue::testing::{TestPacket, arguments};

    const MS: Duration = Duration::from_millis(1);

    type Queue = PolicyQueue<TestPacket, PieLinux>;

    fn pie(settings: &str) -> Queue {
        let arguments = arguments(&DESCRIPTION, settings);
        PolicyQueue::new(PieLinux::new(&arguments, Buffer::Unbounded, RandomStream::new(1, "pie-linux")))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + MS * millis
    }

    /// Packets of 1000 bytes that come and leave each millisecond from `from` to `to`, with `wait` ms of queue; gives
    /// the numbers of marks and drops.
    fn stand(queue: &mut Queue, ecn: Ecn, wait: u64, from: u64, to: u64) -> (usize, usize) {
        let (mut marks, mut dropped) = (0, Vec::new());
        for now in from..to {
            queue.enqueue(at(now), TestPacket { ecn, ..TestPacket::new(now, 1_000) }, &mut dropped);
            while queue.backlog().packets > wait {
                let sent = queue.dequeue(at(now), &mut dropped).unwrap();
                marks += usize::from(sent.ecn == Ecn::CongestionExperienced);
            }
        }
        (marks, dropped.len())
    }

    /// A delay of 20 ms at a target of 15 ms, from none: 0.125 * 5 ms + 1.25 * 20 ms, and from the second adjustment on
    /// 0.125 * 5 ms, divided as RFC 8033 §4.2 has it.
    #[test]
    fn the_probability_follows_the_control_law() {
        let mut queue = pie("");
        let policy = queue.policy_mut();
        policy.qdelay = 0.02;
        policy.calculate_probability();
        let first = (0.125 * 0.005 + 1.25 * 0.02) / 2_048.0;
        assert!((policy.prob - first).abs() < 1e-15);
        policy.calculate_probability();
        assert!((policy.prob - (first + 0.125 * 0.005 / 128.0)).abs() < 1e-12, "{}", policy.prob);
        policy.prob = 0.2;
        policy.qdelay = 0.251;
        policy.calculate_probability();
        assert!(
            (policy.prob - 0.24).abs() < 1e-12,
            "two hundredths, and two more above 250 ms: {}",
            policy.prob
        );
    }

    #[test]
    fn a_burst_passes_while_packets_leave_for_150_ms() {
        let mut queue = pie("");
        queue.policy_mut().prob = 1.0;
        assert_eq!(stand(&mut queue, Ecn::NotCapable, 30, 0, 170), (0, 0));
        assert!(stand(&mut queue, Ecn::NotCapable, 30, 170, 300).1 > 50);
    }

    #[test]
    fn packets_are_marked_up_to_a_probability_of_a_tenth() {
        for (prob, settings, marks) in [(0.1, "", true), (0.11, "", false), (0.1, ":ecn=false", false)] {
            let mut queue = pie(settings);
            (queue.policy_mut().prob, queue.policy_mut().burst_time) = (prob, Duration::ZERO);
            queue.policy_mut().qdelay = 0.015;
            queue.policy_mut().qdelay_old = 0.015;
            // Before the first adjustment at 15 ms, and with packets enough.
            queue.policy_mut().tupdate = MS * 10_000;
            let (marked, dropped) = stand(&mut queue, Ecn::Capable, 15, 0, 2_000);
            assert_eq!((marked > 0, dropped > 0), (marks, !marks), "{prob}{settings}: {marked} {dropped}");
        }
    }

    #[test]
    fn the_delay_is_that_of_the_packet_that_left_last_and_none_where_nothing_waits() {
        let mut queue = pie("");
        stand(&mut queue, Ecn::NotCapable, 12, 0, 100);
        assert!((queue.policy_mut().qdelay - 0.012).abs() < 1e-12);
        while queue.dequeue(at(100), &mut Vec::new()).is_some() {}
        assert_eq!(queue.policy_mut().qdelay, 0.0);
    }

    #[test]
    fn less_than_two_packets_and_calm_are_left_alone() {
        for (prob, qdelay, mtu) in [(1.0, 0.02, 20_000), (0.19, 0.007, 500)] {
            let mut queue = pie(&alloc::format!(":mtu={mtu}B"));
            let policy = queue.policy_mut();
            (policy.prob, policy.qdelay, policy.burst_time) = (prob, qdelay, Duration::ZERO);
            policy.backlog = Bytes::new(30_000);
            assert!((0..1_000).all(|_| !policy.drop_early()));
        }
    }
}
