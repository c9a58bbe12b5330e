//! CoDel, Controlled Delay (RFC 8289), with ECN marking (RFC 8289 §1; RFC 8290 §5.2.6, §5.2.7).
//!
//! [`CoDel`] stands alone over any queue of packets that know since when they wait: one here, many in
//! [`super::fq_codel`].

use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant};

use super::Capabilities;
use super::fifo::Fifo;
use super::timed::Timed;
use super::{Backlog, Buffer, DropReason, Dropped, Ecn, Packet, QueueDiscipline, tbf};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "codel",
    summary: "drops or marks at the head, ever faster, while the least delay of 100 ms exceeds 5 ms",
    source: "RFC 8289",
    colour: "#4e79a7",
    parameters: &[
        TARGET,
        INTERVAL,
        MTU,
        ECN,
        CE_THRESHOLD,
        Parameter {
            name: "rules",
            help: "as RFC 8289 says; or as Linux does, which approximates the root of the number of drops by a step of Newton's for each",
            default: Value::Choice("rfc-8289"),
            range: Range::OneOf(&["rfc-8289", "linux"]),
        },
        tbf::SHAPER,
    ],
};

pub(super) const TARGET: Parameter = Parameter {
    name: "target",
    help: "delay that may stand for longer than an interval",
    default: Value::Duration(Duration::from_millis(5)),
    range: Range::Any,
};

pub(super) const INTERVAL: Parameter = Parameter {
    name: "interval",
    help: "for how long delay must stay above the target before the first drop; about the longest round-trip time",
    default: Value::Duration(Duration::from_millis(100)),
    range: Range::Any,
};

pub(super) const MTU: Parameter = Parameter {
    name: "mtu",
    help: "largest packet of the link: no drop leaves less than this waiting",
    default: Value::Bytes(Bytes::new(1_500)),
    range: Range::Any,
};

pub(super) const ECN: Parameter = Parameter {
    name: "ecn",
    help: "mark packets of ECN-capable transports instead of dropping them",
    default: Value::Flag(true),
    range: Range::Any,
};

pub(super) const CE_THRESHOLD: Parameter = Parameter {
    name: "ce_threshold",
    help: "mark every packet of an ECN-capable transport that waited longer than this; 0: none",
    default: Value::Duration(Duration::ZERO),
    range: Range::Any,
};

/// CoDel's constants (RFC 8289 §5.3).
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    target: Duration,
    interval: Duration,
    mtu: Bytes,
    ecn: bool,
    ce_threshold: Option<Duration>,
    pub(super) as_linux: bool,
}

impl Settings {
    /// From `arguments` that have [`DESCRIPTION`]'s parameters.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self {
            target: arguments.duration("target"),
            interval: arguments.duration("interval"),
            mtu: arguments.bytes("mtu"),
            ecn: arguments.flag("ecn"),
            ce_threshold: Some(arguments.duration("ce_threshold")).filter(|at| *at > Duration::ZERO),
            as_linux: arguments.choice("rules") == "linux",
        }
    }

    /// Marks `packet` where that is possible and wanted.
    fn marks<P: Packet>(&self, packet: &mut Timed<P>) -> bool {
        let marks = self.ecn && packet.ecn() != Ecn::NotCapable;
        if marks {
            packet.mark_congestion_experienced();
        }
        marks
    }
}

/// When the drop after the `count`th of a series falls due, `t` being when that one did (RFC 8289 §5.6).
pub(super) fn control_law(t: Instant, interval: Duration, count: u32) -> Instant {
    t + Duration::from_nanos((interval.as_nanos() as f64 / libm::sqrt(f64::from(count))) as u64)
}

/// Linux's unit of time (`CODEL_SHIFT`).
const LINUX_TICK: Duration = Duration::from_nanos(1 << 10);

/// CoDel's state over one queue (RFC 8289 §5.2).
#[derive(Debug, Clone, Default)]
pub struct CoDel {
    /// When delay will have been above the target for an interval; `None` where it is below.
    first_above_time: Option<Instant>,
    drop_next: Instant,
    /// Drops and marks since delay rose above the target.
    count: u32,
    lastcount: u32,
    /// As Linux has it: about one through the root of `count`, in 2^16ths.
    rec_inv_sqrt: u16,
    dropping: bool,
    /// How long the last packet waited.
    sojourn: Duration,
}

/// A packet taken from the queue, and whether delay has been above the target for an interval.
#[derive(Debug, Clone)]
struct Head<P> {
    packet: Timed<P>,
    ok_to_drop: bool,
}

impl CoDel {
    /// The packet to send next; `next` takes one from the queue and says how many bytes it leaves.
    pub fn dequeue<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        mut next: impl FnMut() -> Option<(Timed<P>, Bytes)>,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Option<P> {
        let mut head = self.take(settings, now, &mut next);
        if self.dropping {
            self.dropping = head.as_ref().is_some_and(|head| head.ok_to_drop);
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.approach_root();
                // RFC 8289 leaves marking open: the packet goes, and all else is as if it were dropped.
                let marked = head.as_mut().is_some_and(|head| settings.marks(&mut head.packet));
                if !marked {
                    discard(head, dropped);
                    head = self.take(settings, now, &mut next);
                    self.dropping = head.as_ref().is_some_and(|head| head.ok_to_drop);
                }
                if self.dropping {
                    self.drop_next = self.next_drop(settings, self.drop_next);
                }
                if marked {
                    break;
                }
            }
        } else if let Some(first) = head.as_mut().filter(|head| head.ok_to_drop) {
            if !settings.marks(&mut first.packet) {
                discard(head, dropped);
                head = self.take(settings, now, &mut next);
            }
            self.start_dropping(settings, now);
        }
        let mut packet = head?.packet;
        if settings.ce_threshold.is_some_and(|threshold| self.sojourn > threshold)
            && packet.ecn() != Ecn::NotCapable
        {
            packet.mark_congestion_experienced();
        }
        Some(packet.packet)
    }

    /// The queue lost `packets` for want of room: the next series begins stronger by as many.
    pub(super) fn on_overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    fn start_dropping(&mut self, settings: &Settings, now: Instant) {
        self.dropping = true;
        // Soon after the last time, the rate that controlled the queue then is where to start.
        let delta = self.count - self.lastcount;
        let soon = now.saturating_since(self.drop_next) < settings.interval * 16;
        if delta > 1 && soon {
            self.count = delta;
            self.approach_root();
        } else {
            (self.count, self.rec_inv_sqrt) = (1, u16::MAX);
        }
        self.drop_next = self.next_drop(settings, now);
        self.lastcount = self.count;
    }

    /// When the drop after that of `t` falls due.
    fn next_drop(&self, settings: &Settings, t: Instant) -> Instant {
        if !settings.as_linux {
            return control_law(t, settings.interval, self.count);
        }
        let gap = (u128::from(settings.interval.as_nanos()) * u128::from(self.rec_inv_sqrt)) >> 16;
        t + Duration::from_nanos(gap as u64).max(LINUX_TICK)
    }

    /// One step of Newton's from the root of the number before, by Linux's integers (`codel_Newton_step` in
    /// `include/net/codel_impl.h`). Where the number jumps, as with a new series or an overflow, the root is far off until
    /// further steps have followed.
    fn approach_root(&mut self) {
        let root = u64::from(self.rec_inv_sqrt) << 16;
        let square = (root * root) >> 32;
        let rest = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (rest.wrapping_mul(root) >> (31 + 16)) as u16;
    }

    /// RFC 8289 §5.6, `dodequeue`.
    fn take<P: Packet>(
        &mut self,
        settings: &Settings,
        now: Instant,
        next: &mut impl FnMut() -> Option<(Timed<P>, Bytes)>,
    ) -> Option<Head<P>> {
        let Some((packet, left)) = next() else {
            self.first_above_time = None;
            return None;
        };
        self.sojourn = packet.sojourn(now);
        let mut ok_to_drop = false;
        if self.sojourn < settings.target || left <= settings.mtu {
            self.first_above_time = None;
        } else {
            match self.first_above_time {
                None => self.first_above_time = Some(now + settings.interval),
                Some(at) => ok_to_drop = now >= at,
            }
        }
        Some(Head { packet, ok_to_drop })
    }

    /// Tells the inner values that are worth plotting.
    pub fn probe(&self, out: &mut dyn Probe) {
        out.value("sojourn_ms", self.sojourn.as_millis_f64());
        out.value("count", f64::from(if self.dropping { self.count } else { 0 }));
    }
}

fn discard<P>(head: Option<Head<P>>, dropped: &mut Vec<Dropped<P>>) {
    dropped.extend(head.map(|head| Dropped { packet: head.packet.packet, reason: DropReason::Early }));
}

/// One queue under CoDel.
#[derive(Debug, Clone)]
pub struct CoDelQueue<P> {
    fifo: Fifo<Timed<P>>,
    buffer: Buffer,
    codel: CoDel,
    settings: Settings,
}

impl<P: Packet> CoDelQueue<P> {
    /// An empty queue with room for `buffer` and `arguments` as [`DESCRIPTION`] declares them.
    #[must_use]
    pub fn new(arguments: &Arguments, buffer: Buffer) -> Self {
        Self { fifo: Fifo::default(), buffer, codel: CoDel::default(), settings: Settings::new(arguments) }
    }
}

impl<P: Packet + Send> QueueDiscipline<P> for CoDelQueue<P> {
    fn enqueue(&mut self, now: Instant, packet: P, dropped: &mut Vec<Dropped<P>>) {
        if self.buffer.admits(self.fifo.backlog(), packet.size()) {
            self.fifo.push(Timed { packet, since: now });
        } else {
            dropped.push(Dropped { packet, reason: DropReason::Overflow });
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        let fifo = &mut self.fifo;
        let next = || fifo.pop().map(|packet| (packet, fifo.backlog().bytes));
        self.codel.dequeue(&self.settings, now, next, dropped)
    }

    // An empty queue leaves no delay to remember.
    fn capabilities(&self) -> Capabilities {
        Capabilities { idle_passes: true, ..Capabilities::default() }
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.codel.probe(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::TestPacket;
    use crate::registry::{AlgorithmSpec, Role};

    const MS: Duration = Duration::from_millis(1);
    const NS: Duration = Duration::from_nanos(1);

    fn codel(settings: &str) -> CoDelQueue<TestPacket> {
        let spec = AlgorithmSpec::parse(Role::Queue, &format!("codel{settings}")).unwrap();
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        spec.arguments().for_each(|(name, value)| arguments.set(name, value));
        CoDelQueue::new(&arguments, Buffer::Unbounded)
    }

    /// Times in ms of drops and marks in a queue in which every packet waits for `sojourn`, one leaving each
    /// millisecond with `left` bytes behind it.
    fn events(settings: &str, ecn: Ecn, sojourn: Duration, left: u64, packets: u64) -> Vec<u64> {
        let mut queue = codel(settings);
        let mut times = Vec::new();
        let start = Instant::ZERO + MS * 1_000;
        for step in 0..packets {
            let now = start + MS * step;
            let packet = TestPacket { ecn, ..TestPacket::new(step, 1_000) };
            let since = Instant::from_nanos(now.as_nanos() - sojourn.as_nanos());
            let mut dropped = Vec::new();
            let next = || Some((Timed { packet: packet.clone(), since }, Bytes::new(left)));
            let sent = queue.codel.dequeue(&queue.settings, now, next, &mut dropped).unwrap();
            let marked = sent.ecn == Ecn::CongestionExperienced;
            assert!(!marked || dropped.is_empty());
            times.extend(std::iter::repeat_n(step, dropped.len() + usize::from(marked)));
        }
        times
    }

    #[test]
    fn the_first_drop_is_an_interval_after_delay_rose_to_the_target() {
        assert_eq!(events("", Ecn::NotCapable, MS * 5, 1_501, 102), [100]);
        assert_eq!(events("", Ecn::NotCapable, Duration::from_nanos(4_999_999), 1_501, 102), []);
        assert_eq!(events(":target=20ms:interval=30ms", Ecn::NotCapable, MS * 20, 1_501, 32), [30]);
    }

    #[test]
    fn nothing_is_dropped_that_would_leave_less_than_a_packet() {
        assert_eq!(events("", Ecn::NotCapable, MS * 500, 1_500, 500), []);
        assert_eq!(events(":mtu=1kB", Ecn::NotCapable, MS * 500, 1_001, 102), [100]);
        assert_eq!(events(":mtu=1kB", Ecn::NotCapable, MS * 500, 1_000, 102), []);
    }

    #[test]
    fn drops_come_faster_with_the_root_of_their_number() {
        let times = events("", Ecn::NotCapable, MS * 50, 10_000, 2_000);
        let mut due = 100.0;
        for (count, time) in (1..).zip(&times) {
            assert_eq!(*time, libm::ceil(due - 1e-5) as u64, "{count}");
            due += 100.0 / f64::from(count).sqrt();
        }
        assert!(times.len() > 80, "{}", times.len());
    }

    #[test]
    fn capable_packets_are_marked_at_the_times_of_the_drops() {
        let drops = events("", Ecn::NotCapable, MS * 50, 10_000, 1_000);
        assert_eq!(events("", Ecn::Capable, MS * 50, 10_000, 1_000), drops);
        assert_eq!(events(":ecn=false", Ecn::Capable, MS * 50, 10_000, 1_000), drops);
    }

    #[test]
    fn a_threshold_marks_every_capable_packet_that_waited_longer() {
        let marks = |sojourn| events(":ce_threshold=1ms", Ecn::L4s, sojourn, 10_000, 50).len();
        assert_eq!((marks(MS), marks(MS + NS)), (0, 50));
        assert_eq!(events(":ce_threshold=1ms", Ecn::NotCapable, MS * 2, 10_000, 50).len(), 0);
    }

    #[test]
    fn linux_finds_the_root_step_by_step_and_is_far_off_where_the_number_jumps() {
        let mut codel = CoDel { count: 1, rec_inv_sqrt: u16::MAX, ..CoDel::default() };
        for count in 2..200_u32 {
            codel.count = count;
            codel.approach_root();
            let exact = 65_536.0 / f64::from(count).sqrt();
            let off = (f64::from(codel.rec_inv_sqrt) / exact - 1.0).abs();
            assert!(off < if count == 2 { 0.3 } else { 0.03 }, "{count}: {off}");
        }
        // A new series that begins at 30 takes gaps of half as much again as those of 199 for a start.
        let before = codel.rec_inv_sqrt;
        codel.count = 30;
        codel.approach_root();
        let ratio = f64::from(codel.rec_inv_sqrt) / f64::from(before);
        assert!((1.4..1.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn by_linuxs_rules_drops_come_as_fast_within_a_tenth() {
        let linux = events(":rules=linux", Ecn::NotCapable, MS * 50, 10_000, 2_000).len();
        let exact = events("", Ecn::NotCapable, MS * 50, 10_000, 2_000).len();
        assert!(linux.abs_diff(exact) * 10 < exact, "{linux} {exact}");
    }

    #[test]
    fn a_new_series_goes_on_where_one_of_shortly_before_left_off() {
        let first_gap = |pause: Duration| {
            let mut codel = CoDel { count: 40, lastcount: 10, drop_next: Instant::ZERO, ..CoDel::default() };
            let settings = Settings::new(&Arguments::defaults(DESCRIPTION.parameters));
            let now = Instant::ZERO + pause;
            codel.start_dropping(&settings, now);
            codel.drop_next.saturating_since(now).as_millis_f64()
        };
        assert!((first_gap(MS * 1_600 - Duration::from_nanos(1)) - 100.0 / 30_f64.sqrt()).abs() < 1e-5);
        assert_eq!(first_gap(MS * 1_600), 100.0);
    }

    #[test]
    fn what_does_not_fit_is_dropped_as_it_arrives() {
        let mut queue = CoDelQueue::new(&Arguments::defaults(DESCRIPTION.parameters), Buffer::Packets(1));
        let mut dropped = Vec::new();
        (0..2).for_each(|id| queue.enqueue(Instant::ZERO, TestPacket::new(id, 100), &mut dropped));
        assert_eq!((dropped[0].packet.id, dropped[0].reason), (1, DropReason::Overflow));
    }
}
