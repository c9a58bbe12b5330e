//! Copa: moves toward the rate of one segment per `delta` of the queueing delay, and beside senders that fill the queue
//! it does as they do (Arun and Balakrishnan 2018).
//!
//! Section numbers are the paper's.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Rate};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "copa",
    summary: "keeps 1/delta segments of its own in the queue, more beside senders that fill it",
    source: "Arun, Balakrishnan: Copa, NSDI 2018",
    colour: "#79706e",
    parameters: &[
        Parameter {
            name: "delta",
            help: "weight of the delay: 1/delta segments wait in equilibrium",
            default: Value::Number(0.5),
            range: Range::Between(0.01, 0.5),
        },
        Parameter {
            name: "mode_switching",
            help: "compete with senders that fill the queue",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "min_rtt_window",
            help: "time after which a round-trip time no longer counts for the smallest",
            default: Value::Duration(Duration::from_secs(10)),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    let delta = arguments.number("delta");
    Box::new(Copa::new(delta, arguments.flag("mode_switching"), arguments.duration("min_rtt_window")))
}

/// The queue is nearly empty below this share of the largest queueing delay (section 2.2).
const NEARLY_EMPTY: f64 = 0.1;
/// Round trips over which the largest delay is looked for, and within which the queue must be nearly empty once.
const ROUNDS_OF_MAX: u64 = 4;
const ROUNDS_TO_EMPTY: u64 = 5;
/// What slow start left in the queue takes so many round trips more to leave it, at a velocity that doubles.
const ROUNDS_AFTER_SLOW_START: u64 = 10;
/// Round trips in one direction before the velocity doubles (section 2.1).
const ROUNDS_BEFORE_DOUBLING: u32 = 3;
/// The smallest window, in segments.
const MIN_WINDOW: u64 = 2;

/// The smallest or the largest round-trip time of a period that moves along.
#[derive(Debug, Clone, Default)]
struct Extreme {
    /// Times and values, each further from the extreme than those before it.
    samples: VecDeque<(Instant, Duration)>,
}

impl Extreme {
    /// Adds a sample; `beats` says whether the first is at least as extreme as the second.
    fn add(&mut self, now: Instant, rtt: Duration, period: Duration, beats: fn(Duration, Duration) -> bool) {
        while self.samples.back().is_some_and(|(_, last)| beats(rtt, *last)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, rtt));
        while self.samples.len() > 1
            && self.samples.front().is_some_and(|(at, _)| now.saturating_since(*at) > period)
        {
            self.samples.pop_front();
        }
    }

    fn get(&self) -> Option<Duration> {
        self.samples.front().map(|(_, rtt)| *rtt)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

#[derive(Debug, Clone)]
struct Copa {
    default_delta: f64,
    mode_switching: bool,
    min_rtt_window: Duration,
    delta: f64,
    srtt: Option<Duration>,
    min_rtt: Extreme,
    standing: Extreme,
    max_rtt: Extreme,
    /// When the queue was last nearly empty.
    emptied: Instant,
    competitive: bool,
    velocity: f64,
    direction: Direction,
    rounds_in_direction: u32,
    /// The round ends once this is acknowledged; the window that it began with.
    round_ends: u64,
    window_at_start: Bytes,
    /// A loss in this round.
    lost: bool,
    /// Changes of the window that are no whole byte yet.
    saved: f64,
}

impl Copa {
    fn new(delta: f64, mode_switching: bool, min_rtt_window: Duration) -> Self {
        Self {
            default_delta: delta,
            mode_switching,
            min_rtt_window,
            delta,
            srtt: None,
            min_rtt: Extreme::default(),
            standing: Extreme::default(),
            max_rtt: Extreme::default(),
            emptied: Instant::ZERO,
            competitive: false,
            velocity: 1.0,
            direction: Direction::Up,
            rounds_in_direction: 0,
            round_ends: 0,
            window_at_start: Bytes::ZERO,
            lost: false,
            saved: 0.0,
        }
    }

    fn sample(&mut self, now: Instant, rtt: Duration) {
        let srtt = self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
        self.srtt = Some(srtt);
        self.min_rtt.add(now, rtt, self.min_rtt_window, |new, old| new <= old);
        self.standing.add(now, rtt, srtt / 2, |new, old| new <= old);
        self.max_rtt.add(now, rtt, srtt * ROUNDS_OF_MAX, |new, old| new >= old);
    }

    /// Section 2.2: with Copa flows alone the queue is nearly empty at least once in five round trips.
    fn switch_mode(&mut self, ack: &Ack, queueing: Duration, min_rtt: Duration, limits: &Limits) {
        let now = ack.now;
        let largest = self.max_rtt.get().unwrap_or(min_rtt).saturating_sub(min_rtt);
        let srtt = self.srtt.unwrap_or(min_rtt);
        // A delayed acknowledgement adds the time of a segment.
        let segment = (min_rtt + queueing) / limits.cwnd.whole(ack.mss).max(1);
        if limits.in_slow_start() {
            self.emptied = now + srtt * ROUNDS_AFTER_SLOW_START;
        } else if queueing <= largest.mul_f64(NEARLY_EMPTY) + segment.min(largest / 4) {
            self.emptied = self.emptied.max(now);
        }
        let competitive = self.mode_switching && now.saturating_since(self.emptied) > srtt * ROUNDS_TO_EMPTY;
        if !competitive {
            self.delta = self.default_delta;
        }
        self.competitive = competitive;
    }

    fn end_round(&mut self, ack: &Ack, limits: &Limits) {
        if self.competitive && !self.lost {
            // AIMD on 1/delta (section 2.2).
            self.delta = 1.0 / (1.0 / self.delta + 1.0);
        }
        self.lost = false;
        let direction = if limits.cwnd > self.window_at_start { Direction::Up } else { Direction::Down };
        if direction == self.direction {
            self.rounds_in_direction += 1;
            if self.rounds_in_direction >= ROUNDS_BEFORE_DOUBLING {
                self.velocity = (self.velocity * 2.0).min(limits.cwnd.as_f64() / ack.mss.as_f64());
            }
        } else {
            (self.velocity, self.rounds_in_direction) = (1.0, 0);
        }
        self.direction = direction;
        (self.round_ends, self.window_at_start) = (ack.snd_nxt, limits.cwnd);
    }

    /// Section 2.1, steps 1 to 4.
    fn move_window(&mut self, ack: &Ack, standing: Duration, queueing: Duration, limits: &mut Limits) {
        let mss = ack.mss.as_f64();
        let window = limits.cwnd.as_f64() / mss;
        // lambda <= lambda_t: cwnd / RTT_standing <= 1 / (delta d_q).
        let slower = window * self.delta * queueing.as_secs_f64() <= standing.as_secs_f64();
        let may_grow = ack.cwnd_limited && !ack.in_recovery;
        if limits.in_slow_start() {
            if slower && may_grow {
                limits.cwnd += ack.slow_start_credit();
                return;
            }
            if slower {
                return;
            }
            limits.ssthresh = limits.cwnd.max(ack.mss * MIN_WINDOW);
        }
        if slower != (self.direction == Direction::Up) && self.velocity > 1.0 {
            // Footnote of section 2.1: a velocity never applies against its direction.
            (self.velocity, self.rounds_in_direction) = (1.0, 0);
        }
        let segments = ack.delivered.as_f64() / mss;
        let step = self.velocity / (self.delta * window) * segments * mss;
        if slower && may_grow {
            self.saved += step.min(ack.delivered.as_f64());
        } else if !slower {
            self.saved -= step;
        }
        let whole = libm::trunc(self.saved);
        self.saved -= whole;
        let moved = Bytes::from_f64(whole.abs());
        limits.cwnd = if whole >= 0.0 {
            limits.cwnd.saturating_add(moved)
        } else {
            limits.cwnd.min(limits.cwnd.saturating_sub(moved).max(ack.mss * MIN_WINDOW))
        };
    }
}

impl CongestionControl for Copa {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.sample(ack.now, rtt);
        }
        let (Some(min_rtt), Some(standing)) = (self.min_rtt.get(), self.standing.get()) else { return };
        if ack.delivered == Bytes::ZERO {
            return;
        }
        let queueing = standing.saturating_sub(min_rtt);
        self.switch_mode(ack, queueing, min_rtt, limits);
        if ack.snd_una >= self.round_ends {
            self.end_round(ack, limits);
        }
        self.move_window(ack, standing, queueing, limits);
        // Section 2.1: paced at twice the rate, so that a burst of ACKs makes none of data.
        limits.pacing = Some(Rate::of(limits.cwnd * 2, standing.max(Duration::from_micros(1))));
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.lost = true;
        if self.competitive {
            self.delta = (self.delta * 2.0).min(self.default_delta);
        }
        // A loss by itself moves no window in the default mode; a timeout begins anew.
        limits.ssthresh = match event.kind {
            CongestionKind::Timeout => limits.cwnd / 2,
            CongestionKind::Loss | CongestionKind::Ecn => limits.cwnd,
        }
        .max(event.mss * MIN_WINDOW);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("delta", self.delta);
        out.value("velocity", self.velocity);
        out.value("competitive", f64::from(u8::from(self.competitive)));
        if let Some(min_rtt) = self.min_rtt.get() {
            out.value("min_rtt_ms", min_rtt.as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn copa() -> Copa {
        Copa::new(0.5, true, Duration::from_secs(10))
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Where the window goes with a round trip of 100 ms after one of 80 ms: 1 / (0.5 * 20 ms) is a hundred segments a
    /// second, which is a window of ten.
    #[test]
    fn the_window_moves_toward_two_segments_of_backlog() {
        for (segments, grows) in [(9, true), (10, true), (11, false)] {
            let mut copa = copa();
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * segments) };
            let sample = |millis, now| Ack {
                now: at(now),
                rtt: Some(Duration::from_millis(millis)),
                cwnd_limited: false,
                ..ack(1)
            };
            copa.on_ack(&sample(80, 100), &mut limits);
            limits.cwnd = MSS * segments;
            copa.saved = 0.0;
            copa.on_ack(&Ack { cwnd_limited: true, ..sample(100, 300) }, &mut limits);
            assert_eq!(limits.cwnd > MSS * segments, grows, "{segments}: {limits:?}");
            assert_eq!(limits.cwnd < MSS * segments, !grows, "{segments}: {limits:?}");
        }
    }

    #[test]
    fn a_queue_that_is_not_empty_for_five_round_trips_makes_it_compete_and_losses_halve() {
        let mut copa = copa();
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 10) };
        let mut competes_from = None;
        for round in 0..20_u64 {
            let now = at(100 * round);
            let millis = if round == 0 { 80 } else { 100 };
            let snd_una = MSS.get() * (round + 1);
            let sample = Ack {
                now,
                rtt: Some(Duration::from_millis(millis)),
                snd_una,
                snd_nxt: snd_una + 1,
                cwnd_limited: false,
                ..ack(1)
            };
            copa.on_ack(&sample, &mut limits);
            if copa.competitive && competes_from.is_none() {
                competes_from = Some(round);
            }
        }
        // The smoothed round trip is a little above 80 ms at first.
        assert!((4..=6).contains(&competes_from.unwrap()), "{competes_from:?}");
        let before = copa.delta;
        assert!(before < 0.1, "1/delta grows by one a round trip: {before}");
        copa.on_congestion(&loss(10), &mut limits);
        assert!((copa.delta - 2.0 * before).abs() < 1e-9);
        // An empty queue ends it.
        let empty =
            Ack { now: at(2_100), rtt: Some(Duration::from_millis(80)), cwnd_limited: false, ..ack(1) };
        copa.on_ack(&empty, &mut limits);
        assert_eq!((copa.competitive, copa.delta), (false, 0.5));
    }

    #[test]
    fn the_velocity_doubles_after_three_round_trips_in_one_direction() {
        let mut copa = copa();
        let mut found = Vec::new();
        for round in 1..=6_u64 {
            let limits = Limits::initial(MSS * (100 + round));
            copa.end_round(&Ack { snd_nxt: round, ..ack(1) }, &limits);
            found.push(copa.velocity);
        }
        assert_eq!(found, [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
        copa.end_round(&ack(1), &Limits::initial(MSS * 50));
        assert_eq!(copa.velocity, 1.0);
    }
}
