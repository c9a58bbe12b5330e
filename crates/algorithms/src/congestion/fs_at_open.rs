//! FS-AT for queues that several flows share: the flight is limited to the measured bandwidth-delay product and a backlog
//! that shrinks as the queue grows, over whatever runs below where others fill the queue.
//!
//! Equation numbers are those of the page, docs/algorithms/fs-at-open.md. Times are in microseconds and sizes in bytes, in
//! integers of 64 bits, so that the kernel's twin of this (`bpf/fs_at_open.h`) gives the same to the byte.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

mod alone;
mod course;
mod drain;
mod path;
mod reverse;
mod rivals;
mod startup;
mod trial;
mod varying;

use self::alone::Alone;
use self::course::Course;
use self::drain::{Drain, Drains};
use self::path::{FULL_LOSES, Path, Round, Step, clock, micros, sample_of, share};
use self::reverse::WayBack;
use self::rivals::Rivals;
use self::trial::Trial;
use self::varying::Variation;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "fs-at-open",
    summary: "FS-AT that shares a queue: flows leave it together, and compete with senders that fill it",
    source: "this project, after Igarashi, Yamazaki: Flight Size Auto Tuning",
    colour: "#a50f15",
    parameters: &[
        Parameter {
            name: "compete",
            help: "run as the algorithm below where others keep the queue long",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "age",
            help: "time without a round trip near the smallest after which it leaves the queue to look for one",
            default: Value::Duration(Duration::from_secs(5)),
            range: Range::Any,
        },
    ],
};

/// Builds it over `inner`.
#[must_use]
pub fn build(arguments: &Arguments, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
    Box::new(FsAtOpen::new(inner, arguments.flag("compete"), arguments.duration("age")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Slow start, the algorithm below's.
    Startup,
    /// (1) to (3), or (12) or (15).
    Steady,
    /// Leaving the queue.
    Draining(Drain),
    /// The algorithm below, without a limit.
    Competing,
    /// After a drain of competition: the window stays, so that the queue tells who fills it.
    Holding,
}

/// FS-AT's open mode over another congestion control.
#[derive(Debug, Clone)]
pub struct FsAtOpen<C> {
    inner: C,
    compete: bool,
    age: u64,
    mode: Mode,
    path: Path,
    way_back: WayBack,
    round: Round,
    /// Slow start goes on in this recovery, since the loss was judged one of the radio.
    bears_loss: bool,
    /// `w`, in bytes.
    window: u64,
    /// Confirmed per `rtt_min`, of the last round.
    rcv_bytes: u64,
    /// The smallest round trip of the last round.
    low: u64,
    /// Queueing delay of the last round, its mean, and the longest of this and of the last period between drains.
    queueing: u64,
    mean_queueing: u64,
    longest: [u64; 2],
    course: Course,
    drains: Drains,
    step: Step,
    rivals: Rivals,
    trial: Trial,
    variation: Variation,
    alone: Alone,
    /// For the algorithm below, where it rules.
    heard: Option<Delivery>,
}

impl<C: CongestionControl> FsAtOpen<C> {
    /// The open mode over `inner`, which rules in slow start and beside senders that fill the queue.
    #[must_use]
    pub fn new(inner: C, compete: bool, age: Duration) -> Self {
        Self {
            inner,
            compete,
            age: micros(age).max(1),
            mode: Mode::Startup,
            path: Path::default(),
            way_back: WayBack::default(),
            round: Round::default(),
            bears_loss: false,
            window: 0,
            rcv_bytes: 0,
            low: 0,
            queueing: 0,
            mean_queueing: 0,
            longest: [0; 2],
            course: Course::default(),
            drains: Drains::default(),
            step: Step::default(),
            rivals: Rivals::default(),
            trial: Trial::default(),
            variation: Variation::default(),
            alone: Alone::default(),
            heard: None,
        }
    }

    fn end_round(&mut self, ack: &Ack, now: u64, limits: &mut Limits) {
        let elapsed = self.way_back.unwaited(now).saturating_sub(self.round.began).max(1);
        let low = self.round.low;
        self.judge_alone();
        if self.round.app_limited {
            return;
        }
        let (q, rtt_min, mss) = (self.path.queueing(low), self.path.rtt_min(), ack.mss.get());
        let last = core::mem::replace(&mut self.low, low);
        let is_path = if self.round.loses(FULL_LOSES, mss) {
            // A full queue stays the same too.
            self.step.end();
            false
        } else {
            self.step.is_other_path(last, low, &self.path, self.window)
        };
        self.trial.count(self.round.delivered, self.round.lost);
        let last_q = self.variation.take_last();
        self.queueing = q;
        self.rcv_bytes = share(self.round.delivered, rtt_min, elapsed);
        match self.mode {
            Mode::Startup => self.end_startup_round(ack, q, elapsed),
            Mode::Steady if self.trial.left > 0 => self.end_trial_round(ack, now, q, limits),
            Mode::Steady if self.drains.resting > 0 => self.drains.resting -= 1,
            Mode::Steady if self.gives_way(now, last, low) => self.rest(),
            Mode::Steady if is_path => {
                self.path = Path::of(low, now);
                self.step = Step::default();
                (self.drains.dirty, self.mean_queueing) = (0, 0);
            }
            Mode::Steady if self.path.is_near_min(low) && self.is_trial_due(now, mss) => {
                self.begin_trial(ack, now, limits);
            }
            Mode::Steady => {
                self.longest[0] = self.longest[0].max(q);
                self.mean_queueing =
                    if self.mean_queueing == 0 { q } else { (7 * self.mean_queueing + q) / 8 };
                let (before, is_busy) = (self.window, self.way_back.is_busy(now));
                if !is_busy {
                    // A queue beside traffic the other way moves, whatever the link does.
                    self.variation.count(last_q, low, q);
                }
                match (self.alone.is_known, self.varies()) {
                    // (15) moves it with each acknowledgement.
                    (true, _) => {}
                    (_, true) => self.follow_link(mss, q, elapsed),
                    _ => self.move_window(mss, low, q),
                }
                if is_busy {
                    self.limit_growth(before, mss, low, elapsed);
                }
                if self.others_fill(now, q) {
                    self.begin_competition(ack, now, limits);
                } else if self.is_drain_due(now) {
                    self.begin_drain(ack, false, false);
                }
            }
            Mode::Competing => self.end_competing_round(ack, now, low, limits),
            Mode::Holding => self.end_held_round(ack, now, low, limits),
            Mode::Draining(_) => {}
        }
    }

    fn apply(&self, ack: &Ack, now: u64, limits: &mut Limits) {
        let mss = ack.mss.get();
        let window = Bytes::new(self.window.max(2 * mss).saturating_add(self.received()));
        limits.space = match self.mode {
            Mode::Startup | Mode::Competing => {
                limits.space = Bytes::MAX;
                if ack.in_recovery && self.mode == Mode::Competing {
                    // The first retransmission may have needed more.
                    limits.cwnd = limits.cwnd.min(limits.ssthresh);
                }
                return;
            }
            Mode::Steady | Mode::Holding => window,
            Mode::Draining(drain) => Bytes::new(drain.target.saturating_add(self.received())),
        };
        limits.pacing = self.pacing(now, mss);
        if ack.newly_acked > Bytes::ZERO {
            limits.cwnd = window;
            limits.ssthresh = limits.ssthresh.min(window);
        }
    }
}

impl<C: CongestionControl + Clone + 'static> CongestionControl for FsAtOpen<C> {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.inner.on_established(now, limits);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let now = clock(ack.now);
        let heard = self.heard.take();
        self.hear_peer(now, heard.and_then(|delivery| delivery.ts_val));
        if let Some(rtt) = sample_of(ack.rtt) {
            let rtt = self.without_wait(now, rtt);
            self.measure(now, rtt);
            self.round.sample(rtt);
            self.count_gap(now, rtt);
            if self.mode == Mode::Startup {
                self.look(ack);
            }
            self.follow_rise(ack, rtt);
        }
        if matches!(self.mode, Mode::Startup | Mode::Competing) {
            heard.iter().for_each(|delivery| self.inner.on_delivery(delivery));
            self.inner.on_ack(ack, limits);
        }
        self.go_on_in_recovery(ack, limits);
        self.round.count(ack);
        if self.path.rtt_min() == 0 {
            return;
        }
        if self.mode == Mode::Startup {
            (self.drains.grown, self.drains.awaits_second) = (now, true);
        }
        if self.path.has_become_shorter() {
            self.join_drain(ack);
        }
        self.follow_alone(ack, limits);
        let drains_at_once = self.drains_at_once(now);
        match self.mode {
            Mode::Draining(drain) => self.advance_drain(drain, ack, now, limits),
            _ if self.round.end == 0 => self.begin_round(ack),
            _ if drains_at_once => self.begin_drain(ack, false, false),
            _ if self.round.is_over(ack) && self.round.samples >= self.trial.samples_of_round() => {
                self.end_round(ack, now, limits);
                if !matches!(self.mode, Mode::Draining(_)) {
                    self.begin_round(ack);
                }
            }
            _ => {}
        }
        self.apply(ack, now, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let mss = event.mss.get();
        match (self.mode, event.kind) {
            (Mode::Competing, _) => self.lose_competing(event, limits),
            (Mode::Holding, _) => self.lose_held(event, limits),
            (Mode::Draining(Drain { competing: true, .. }), _) => {
                limits.cwnd = Bytes::new(self.window);
                self.tell_inner(event, limits);
                self.window = limits.cwnd.get().max(2 * mss);
            }
            (Mode::Startup, CongestionKind::Timeout) => self.inner.on_congestion(event, limits),
            (Mode::Steady | Mode::Draining(_), CongestionKind::Timeout) => self.bear_timeout(mss, limits),
            (Mode::Startup, _) => self.lose_in_startup(event, limits),
            (Mode::Steady | Mode::Draining(_), CongestionKind::Ecn) => {
                // A mark was set by a queue: the radio does not mark.
                self.trial.congestions += 1;
                self.trial.marks += 1;
                self.window = (self.window / 8 * 7).max(2 * mss);
                limits.ssthresh = Bytes::new(self.window);
            }
            (Mode::Steady, CongestionKind::Loss) => {
                self.trial.congestions += 1;
                self.judge_loss(mss);
                limits.ssthresh = limits.cwnd.max(event.mss * 2);
            }
            (Mode::Draining(_), CongestionKind::Loss) => limits.ssthresh = limits.cwnd.max(event.mss * 2),
        }
    }

    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        if matches!(self.mode, Mode::Startup | Mode::Competing) {
            self.inner.on_spurious(now, limits);
        }
    }

    fn models_delivery(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        // The handshake's round trip is the first, before the flow's own burst.
        if delivery.total == Bytes::ZERO
            && let Some(rtt) = sample_of(delivery.rtt)
        {
            self.hear_peer(clock(delivery.next_departure), delivery.ts_val);
            self.path.sample(0, rtt, self.age);
            self.inner.on_delivery(delivery);
        } else {
            self.heard = Some(*delivery);
        }
    }

    fn mark_response(&self) -> MarkResponse {
        self.inner.mark_response()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("window_bytes", self.window as f64);
        out.value("rtt_min_ms", self.path.rtt_min() as f64 / 1e3);
        out.value("queueing_ms", self.queueing as f64 / 1e3);
        out.value("draining", f64::from(u8::from(matches!(self.mode, Mode::Draining(_)))));
        out.value("competing", f64::from(u8::from(self.mode == Mode::Competing)));
        out.value("alone", f64::from(u8::from(self.alone.is_known)));
        out.value("varies", f64::from(u8::from(self.varies())));
        out.value("holding", f64::from(u8::from(self.mode == Mode::Holding)));
    }
}

#[cfg(test)]
mod tests;
