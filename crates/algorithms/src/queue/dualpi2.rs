//! DualPI2: two queues with coupled AQMs, for senders that heed the share of marks (L4S) and for all
//! others, so that both get the same rate and the former next to no delay (RFC 9332, appendix A).
//!
//! Names are the RFC's: `p` is its p', the base probability.

use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant, Probability};

use super::fifo::Fifo;
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Ecn, Packet, QueueDiscipline};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "dualpi2",
    summary: "two queues, one at 1 ms for L4S senders, one at 15 ms for others; both get equal shares",
    source: "RFC 9332",
    colour: "#b07aa1",
    parameters: &[
        Parameter {
            name: "target",
            help: "delay that the classic queue comes to",
            default: Value::Duration(Duration::from_millis(15)),
            range: Range::Any,
        },
        Parameter {
            name: "rtt_max",
            help: "longest round-trip time to be stable for: sets how fast the probability moves; at least 1 ms",
            default: Value::Duration(Duration::from_millis(100)),
            range: Range::Any,
        },
        Parameter {
            name: "tupdate",
            help: "time between two adjustments; 0: the target or a third of rtt_max, whichever is less",
            default: Value::Duration(Duration::ZERO),
            range: Range::Any,
        },
        Parameter {
            name: "k",
            help: "coupling factor: L4S packets are marked k times as often as the root of classic drops",
            default: Value::Number(2.0),
            range: Range::Between(0.1, 100.0),
        },
        Parameter {
            name: "min_th",
            help: "delay of an L4S packet from which on it may be marked for its own queue",
            default: Value::Duration(Duration::from_micros(800)),
            range: Range::Any,
        },
        Parameter {
            name: "range",
            help: "by how much more delay each is marked; 0: a step",
            default: Value::Duration(Duration::from_micros(400)),
            range: Range::Any,
        },
        Parameter {
            name: "th_len",
            help: "packets that may wait in the L4S queue without any mark for that queue",
            default: Value::Count(1),
            range: Range::Any,
        },
        Parameter {
            name: "scheduler",
            help: "wrr: weighted round robin; ts-fifo: first come first served, L4S tshift ahead",
            default: Value::Choice("wrr"),
            range: Range::OneOf(&["wrr", "ts-fifo"]),
        },
        Parameter {
            name: "classic_weight",
            help: "share of the link that classic packets have for sure, with wrr",
            default: Value::Number(0.0625),
            range: Range::Between(0.001, 0.999),
        },
        Parameter {
            name: "tshift",
            help: "by how much L4S packets are ahead, with ts-fifo",
            default: Value::Duration(Duration::from_millis(50)),
            range: Range::Any,
        },
        Parameter {
            name: "mtu",
            help: "largest packet of the link: where it would not fit a buffer in bytes, no packet does",
            default: Value::Bytes(Bytes::new(1_500)),
            range: Range::Any,
        },
    ],
};

/// The choice of the queue to send from.
#[derive(Debug, Clone, Copy)]
enum Scheduler {
    /// Weighted round robin with this share for the classic queue.
    Weighted(f64),
    /// Whichever head waits longer, the L4S queue's this much ahead.
    TimeShifted(Duration),
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    target: f64,
    tupdate: Duration,
    alpha: f64,
    beta: f64,
    k: f64,
    /// From this classic probability on senders do not heed marks.
    p_c_max: f64,
    min_th: Duration,
    range: Duration,
    th_len: u64,
    scheduler: Scheduler,
    mtu: Bytes,
}

/// Marks or drops evenly, at a given likelihood (RFC 9332 figure 4, `recur`).
#[derive(Debug, Clone, Copy, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn happens(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let happens = self.0 > 1.0;
        if happens {
            self.0 -= 1.0;
        }
        happens
    }
}

/// The two queues and their coupling.
#[derive(Debug, Clone)]
pub struct DualPi2<P> {
    classic: Fifo<Timed<P>>,
    l4s: Fifo<Timed<P>>,
    buffer: Buffer,
    settings: Settings,
    p: f64,
    prevq: f64,
    next_update: Instant,
    classic_count: Recurrence,
    l4s_count: Recurrence,
    /// Bytes that the classic queue is behind its share, while both have packets.
    credit: f64,
}

impl<P: Packet> DualPi2<P> {
    /// Empty queues with room for `buffer` together and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        let target = arguments.duration("target");
        let rtt_max = arguments.duration("rtt_max").max(MS);
        let tupdate = match arguments.duration("tupdate") {
            Duration::ZERO => target.min(rtt_max / 3),
            given => given,
        };
        let tupdate = tupdate.max(MS);
        let k = arguments.number("k");
        let settings = Settings {
            target: target.as_secs_f64(),
            tupdate,
            // Figure 2, lines 11 to 14.
            alpha: 0.1 * tupdate.as_secs_f64() / (rtt_max.as_secs_f64() * rtt_max.as_secs_f64()),
            beta: 0.3 / rtt_max.as_secs_f64(),
            k,
            p_c_max: (1.0 / (k * k)).min(1.0),
            min_th: arguments.duration("min_th"),
            range: arguments.duration("range"),
            th_len: arguments.count("th_len"),
            scheduler: match arguments.choice("scheduler") {
                "wrr" => Scheduler::Weighted(arguments.number("classic_weight")),
                _ => Scheduler::TimeShifted(arguments.duration("tshift")),
            },
            mtu: arguments.bytes("mtu"),
        };
        Self {
            classic: Fifo::default(),
            l4s: Fifo::default(),
            buffer,
            settings,
            p: 0.0,
            prevq: 0.0,
            next_update: Instant::ZERO,
            classic_count: Recurrence::default(),
            l4s_count: Recurrence::default(),
            credit: 0.0,
        }
    }

    fn p_c(&self) -> f64 {
        self.p * self.p
    }

    /// The coupled probability; p_Lmax, at which marks are no longer enough, is 1.
    fn p_cl(&self) -> f64 {
        (self.settings.k * self.p).min(1.0)
    }

    /// Makes the adjustments that fell due by `now`. They depend on packets and on the time only, so the next
    /// arrival or departure is soon enough.
    fn catch_up(&mut self, now: Instant) {
        let tupdate = self.settings.tupdate;
        while self.next_update <= now {
            let curq = self.delay(self.next_update);
            let idle = curq == 0.0 && self.prevq == 0.0 && self.p == 0.0;
            // A head that waits on makes the delay grow, and more than always is not possible.
            let stuck = curq > self.settings.target && curq >= self.prevq && self.p == 1.0;
            if idle || stuck {
                let more = now.saturating_since(self.next_update).as_nanos() / tupdate.as_nanos();
                self.next_update += tupdate * more;
            }
            self.update();
            self.next_update += tupdate;
        }
    }

    /// RFC 9332 figure 8.
    fn update(&mut self) {
        let Settings { target, alpha, beta, .. } = self.settings;
        let curq = self.delay(self.next_update);
        let p = self.p + alpha * (curq - target) + beta * (curq - self.prevq);
        self.p = Probability::clamped(p).get();
        self.prevq = curq;
    }

    /// Sojourn time of the head of the longer queue, in seconds.
    fn delay(&self, now: Instant) -> f64 {
        sojourn(&self.classic, now).max(sojourn(&self.l4s, now)).as_secs_f64()
    }

    /// The native probability of an L4S packet (RFC 9332 figure 5).
    fn laqm(&self, qdelay: Duration) -> f64 {
        let Settings { min_th, range, .. } = self.settings;
        if qdelay >= min_th + range {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th).as_secs_f64() / range.as_secs_f64()
        } else {
            0.0
        }
    }

    fn l4s_is_next(&self, now: Instant) -> bool {
        if self.classic.backlog().packets == 0 || self.l4s.backlog().packets == 0 {
            return self.classic.backlog().packets == 0;
        }
        match self.settings.scheduler {
            Scheduler::Weighted(_) => self.credit <= 0.0,
            Scheduler::TimeShifted(tshift) => sojourn(&self.l4s, now) + tshift >= sojourn(&self.classic, now),
        }
    }

    /// Takes the next packet out of the queue whose turn it is; true with one of the L4S queue.
    fn take(&mut self, now: Instant) -> Option<(Timed<P>, bool)> {
        let is_l4s = self.l4s_is_next(now);
        let contended = self.classic.backlog().packets > 0 && self.l4s.backlog().packets > 0;
        let packet = if is_l4s { self.l4s.pop() } else { self.classic.pop() }?;
        if let Scheduler::Weighted(share) = self.settings.scheduler {
            // Only where one waits for the other does either run up anything.
            match (contended, is_l4s) {
                (true, true) => self.credit += share * packet.size().as_f64(),
                (true, false) => self.credit -= (1.0 - share) * packet.size().as_f64(),
                (false, _) if self.backlog_of_both().packets == 0 => self.credit = 0.0,
                (false, _) => {}
            }
        }
        Some((packet, is_l4s))
    }

    fn backlog_of_both(&self) -> Backlog {
        let (classic, l4s) = (self.classic.backlog(), self.l4s.backlog());
        Backlog { packets: classic.packets + l4s.packets, bytes: classic.bytes + l4s.bytes }
    }
}

/// Sojourn time of the head of `queue`; zero without one.
fn sojourn<P: Packet>(queue: &Fifo<Timed<P>>, now: Instant) -> Duration {
    queue.front().map_or(Duration::ZERO, |head| head.sojourn(now))
}

impl<P: Packet + Send> QueueDiscipline<P> for DualPi2<P> {
    // Figure 3.
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        self.catch_up(now);
        if !self.buffer.admits(self.backlog_of_both(), packet.size().max(self.settings.mtu)) {
            dropped.push(Dropped { packet, reason: DropReason::Overflow });
            return;
        }
        let queue = match packet.ecn() {
            Ecn::L4s | Ecn::CongestionExperienced => &mut self.l4s,
            Ecn::NotCapable | Ecn::Capable => &mut self.classic,
        };
        queue.push(Timed { packet, since: now });
    }

    // Figure 7.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        self.catch_up(now);
        let (p_c, p_cl) = (self.p_c(), self.p_cl());
        loop {
            let waiting = self.l4s.backlog().packets;
            let (mut timed, is_l4s) = self.take(now)?;
            let (mut drops, mut marks) = (false, false);
            if is_l4s && p_cl < 1.0 {
                let native = if waiting > self.settings.th_len { self.laqm(timed.sojourn(now)) } else { 0.0 };
                marks = self.l4s_count.happens(native.max(p_cl));
            } else if is_l4s {
                drops = self.l4s_count.happens(p_c);
                marks = !drops && self.l4s_count.happens(p_cl);
            } else if self.classic_count.happens(p_c) {
                drops = timed.ecn() == Ecn::NotCapable || p_c >= self.settings.p_c_max;
                marks = !drops;
            }
            if drops {
                dropped.push(Dropped { packet: timed.packet, reason: DropReason::Early });
                continue;
            }
            if marks {
                timed.mark_congestion_experienced();
            }
            return Some(timed.packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog_of_both()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("base_probability", self.p);
        out.value("classic_bytes", self.classic.backlog().bytes.as_f64());
        out.value("l4s_bytes", self.l4s.backlog().bytes.as_f64());
    }
}

const MS: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::FlowPacket;
    use crate::registry::{AlgorithmSpec, Role};

    fn dualpi2(settings: &str, buffer: Buffer) -> DualPi2<FlowPacket> {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("dualpi2{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        spec.arguments().for_each(|(name, value)| arguments.set(name, value));
        DualPi2::new(&arguments, buffer)
    }

    fn packet(ecn: Ecn) -> FlowPacket {
        FlowPacket { ecn, ..FlowPacket::new(0, 1_000) }
    }

    /// Shares of packets sent, marked and dropped, of those that come by twos and go at once with the base
    /// probability held at `p`.
    fn shares(p: f64, ecn: Ecn) -> [f64; 2] {
        const PACKETS: u32 = 10_000;
        let mut queue = dualpi2("", Buffer::Unbounded);
        queue.next_update = Instant::MAX;
        queue.p = p;
        let (mut marked, mut dropped) = (0.0, Vec::new());
        for _ in 0..PACKETS {
            queue.enqueue(Instant::ZERO, packet(ecn), &mut dropped);
            let sent = queue.dequeue(Instant::ZERO, &mut dropped);
            marked += f64::from(u8::from(sent.is_some_and(|packet| packet.ecn != ecn)));
        }
        [marked / f64::from(PACKETS), dropped.len() as f64 / f64::from(PACKETS)]
    }

    fn assert_near(shares: [f64; 2], expected: [f64; 2]) {
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 2e-3, "{shares:?} {expected}");
        }
    }

    #[test]
    fn classic_packets_are_chosen_by_the_square_and_l4s_packets_by_k_times_the_base() {
        assert_near(shares(0.1, Ecn::NotCapable), [0.0, 0.01]);
        assert_near(shares(0.1, Ecn::Capable), [0.01, 0.0]);
        assert_near(shares(0.1, Ecn::L4s), [0.2, 0.0]);
        assert_near(shares(0.49, Ecn::L4s), [0.98, 0.0]);
    }

    #[test]
    fn in_overload_packets_of_all_kinds_are_dropped_by_the_square() {
        assert_near(shares(0.499, Ecn::Capable), [0.249, 0.0]);
        assert_near(shares(0.5, Ecn::Capable), [0.0, 0.25]);
        assert_near(shares(0.5, Ecn::L4s), [0.75, 0.25]);
        assert_near(shares(0.8, Ecn::L4s), [0.36, 0.64]);
    }

    #[test]
    fn the_native_probability_is_a_ramp_over_the_delay() {
        let ramp =
            |settings, micros| dualpi2(settings, Buffer::Unbounded).laqm(Duration::from_micros(micros));
        assert_eq!([800, 900, 1_000, 1_200].map(|delay| ramp("", delay)), [0.0, 0.25, 0.5, 1.0]);
        assert_eq!([799, 800].map(|delay| ramp(":range=0us", delay)), [0.0, 1.0]);
    }

    #[test]
    fn a_single_packet_bears_no_mark_for_its_own_queue() {
        for (packets, marked) in [(1, 0), (2, 1), (3, 2)] {
            let mut queue = dualpi2("", Buffer::Unbounded);
            queue.next_update = Instant::MAX;
            queue.l4s_count = Recurrence(0.5);
            (0..packets).for_each(|_| queue.enqueue(Instant::ZERO, packet(Ecn::L4s), &mut Vec::new()));
            let now = Instant::ZERO + MS * 2;
            let sent = std::iter::from_fn(|| queue.dequeue(now, &mut Vec::new()));
            assert_eq!(sent.filter(|packet| packet.ecn == Ecn::CongestionExperienced).count(), marked);
        }
    }

    #[test]
    fn unresponsive_l4s_traffic_leaves_classic_traffic_its_weight() {
        for (settings, share) in [("", 0.0625), (":classic_weight=0.2", 0.2)] {
            let mut queue = dualpi2(settings, Buffer::Unbounded);
            queue.next_update = Instant::MAX;
            for ecn in [Ecn::NotCapable, Ecn::L4s] {
                (0..2_000).for_each(|_| queue.enqueue(Instant::ZERO, packet(ecn), &mut Vec::new()));
            }
            let sent: Vec<_> =
                (0..1_000).filter_map(|_| queue.dequeue(Instant::ZERO, &mut Vec::new())).collect();
            let classic = sent.iter().filter(|packet| packet.ecn == Ecn::NotCapable).count() as f64;
            assert!((classic / 1_000.0 - share).abs() < 2e-3, "{classic}");
        }
    }

    #[test]
    fn with_a_time_shift_an_l4s_packet_goes_before_older_classic_ones() {
        for (wait, first) in [(50, Ecn::L4s), (51, Ecn::NotCapable)] {
            let mut queue = dualpi2(":scheduler=ts-fifo", Buffer::Unbounded);
            queue.next_update = Instant::MAX;
            queue.enqueue(Instant::ZERO, packet(Ecn::NotCapable), &mut Vec::new());
            let now = Instant::ZERO + MS * wait;
            queue.enqueue(now, packet(Ecn::L4s), &mut Vec::new());
            assert_eq!(queue.dequeue(now, &mut Vec::new()).unwrap().ecn, first);
        }
    }

    #[test]
    fn a_buffer_in_bytes_is_full_where_the_largest_packet_would_not_fit() {
        let mut queue = dualpi2("", Buffer::Bytes(Bytes::new(3_499)));
        let mut dropped = Vec::new();
        (0..3).for_each(|_| queue.enqueue(Instant::ZERO, packet(Ecn::L4s), &mut dropped));
        assert_eq!((queue.backlog().packets, dropped.len()), (2, 1));
    }

    #[test]
    fn ten_days_end_as_every_single_adjustment_would() {
        for waiting in [0, 1] {
            let mut queue = dualpi2("", Buffer::Unbounded);
            (0..waiting).for_each(|_| queue.enqueue(Instant::ZERO, packet(Ecn::Capable), &mut Vec::new()));
            queue.p = 0.7;
            let mut each = dualpi2("", Buffer::Unbounded);
            (0..waiting).for_each(|_| each.enqueue(Instant::ZERO, packet(Ecn::Capable), &mut Vec::new()));
            each.p = 0.7;
            let end = Instant::ZERO + MS * 15 * 10_000;
            queue.catch_up(end);
            while each.next_update <= end {
                each.update();
                each.next_update += MS * 15;
            }
            assert_eq!((queue.p, queue.prevq, queue.next_update), (each.p, each.prevq, each.next_update));
            queue.catch_up(Instant::ZERO + Duration::from_secs(864_000));
        }
    }
}
