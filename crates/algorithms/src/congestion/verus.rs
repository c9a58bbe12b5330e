//! Verus: learns which window brings which delay, and takes the window of the delay that it wants next
//! (Zaki, Pötsch, Chen, Subramanian, Görg, SIGCOMM 2015).
//!
//! Equation numbers are the paper's; delays are in milliseconds, windows in segments.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Congestion, CongestionControl, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "verus",
    summary: "learns the delay of each window, and moves the wanted delay up and down every 5 ms",
    source: "Zaki and others: Verus, SIGCOMM 2015",
    colour: "#e7969c",
    parameters: &[
        Parameter {
            name: "ratio",
            help: "R: largest delay relative to the smallest; beyond it the wanted delay falls",
            default: Value::Number(2.0),
            range: Range::Between(1.0, 20.0),
        },
        Parameter {
            name: "decrease",
            help: "M: window after a loss, relative to the window that the lost segment was sent with",
            default: Value::Number(0.7),
            range: Range::Between(0.1, 0.99),
        },
    ],
};

/// Builds it with `ratio` and `decrease`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Verus::new(arguments.number("ratio"), arguments.number("decrease")))
}

/// `epsilon`, and after how long the curve of the profile is drawn anew.
const EPOCH: Duration = Duration::from_millis(5);
const CURVE: Duration = Duration::from_secs(1);
/// Weight of the old in the means of a window's delay and of the largest delay (the authors' program).
const PROFILE_MEMORY: f64 = 0.875;
const MAX_MEMORY: f64 = 0.2;
/// `delta_1`, `delta_2`.
const DELTA_1: f64 = 1.0;
const DELTA_2: f64 = 2.0;
/// The wanted delay after slow start, of `R` times the smallest; and the smallest delay learnt upward where the window is at its
/// least (both the authors' program).
const AFTER_SLOW_START: f64 = 0.75;
const LEARN_UPWARD: f64 = 10.0;
/// Slow start ends at this delay in any case (the authors' program).
const SLOW_START_DELAY: f64 = 500.0;
/// Epochs that one ACK makes up for at most.
const MISSED_EPOCHS: u64 = 200;
/// The smallest window, in segments; the largest is what a connection can count.
const MIN_WINDOW: f64 = 2.0;
const MAX_WINDOW: f64 = 1e6;

/// The delay profile: windows and delays, monotone, and straight between its points.
#[derive(Debug, Clone, Default)]
struct Curve {
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// Draws it through the means of each window: the nearest in which delays never fall (pool adjacent violators).
    fn draw(means: &BTreeMap<u64, f64>) -> Self {
        let mut pools: Vec<(f64, f64, f64)> = Vec::new();
        for (window, delay) in means {
            let mut pool = (*window as f64, *delay, 1.0);
            while let Some(last) = pools.last().copied().filter(|last| last.1 >= pool.1) {
                pools.pop();
                let count = last.2 + pool.2;
                let mean = |a: f64, b: f64| (a * last.2 + b * pool.2) / count;
                pool = (mean(last.0, pool.0), mean(last.1, pool.1), count);
            }
            pools.push(pool);
        }
        Self { points: pools.into_iter().map(|(window, delay, _)| (window, delay)).collect() }
    }

    /// Delay for each segment beyond the last point: that of a full link, where nothing steeper was seen.
    fn last_slope(&self) -> f64 {
        match self.points.as_slice() {
            [] => 1.0,
            [.., last] => last.1 / last.0,
        }
    }

    /// `D = f(W)`.
    fn delay(&self, window: f64) -> f64 {
        let Some(last) = self.points.last() else { return 0.0 };
        let next = self.points.partition_point(|point| point.0 < window);
        match (next.checked_sub(1).map(|before| self.points[before]), self.points.get(next)) {
            (Some(a), Some(b)) => a.1 + (b.1 - a.1) * (window - a.0) / (b.0 - a.0),
            (None, Some(b)) => b.1,
            (_, None) => last.1 + (window - last.0) * self.last_slope(),
        }
    }

    /// Equation (4): `W = f^-1(D)`.
    fn window(&self, delay: f64) -> f64 {
        let Some(last) = self.points.last() else { return MIN_WINDOW };
        let next = self.points.partition_point(|point| point.1 <= delay);
        match (next.checked_sub(1).map(|before| self.points[before]), self.points.get(next)) {
            (Some(a), Some(b)) => a.0 + (b.0 - a.0) * (delay - a.1) / (b.1 - a.1),
            (None, Some(b)) => b.0 * delay / b.1,
            (_, None) => last.0 + (delay - last.1) / self.last_slope(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    SlowStart,
    Epochs,
    /// After a loss, until segments of the smaller window arrive.
    Recovery,
}

#[derive(Debug, Clone)]
struct Verus {
    ratio: f64,
    decrease: f64,
    phase: Phase,
    /// `W`.
    window: f64,
    /// `D_min`, `D_max` and `D_est`.
    least: f64,
    largest: Option<f64>,
    wanted: f64,
    /// Largest delay of this epoch, and its end.
    of_epoch: Option<f64>,
    epoch_ends: Instant,
    last_arrival: Instant,
    /// Mean delay of segments that were sent with a window.
    profile: BTreeMap<u64, f64>,
    curve: Curve,
    drawn: Instant,
    /// Ends of what was sent with which window.
    sent: VecDeque<(u64, f64)>,
    delivery: Option<Delivery>,
}

impl Verus {
    fn new(ratio: f64, decrease: f64) -> Self {
        Self {
            ratio,
            decrease,
            phase: Phase::SlowStart,
            window: 0.0,
            least: f64::INFINITY,
            largest: None,
            wanted: 0.0,
            of_epoch: None,
            epoch_ends: Instant::ZERO,
            last_arrival: Instant::ZERO,
            profile: BTreeMap::new(),
            curve: Curve::default(),
            drawn: Instant::ZERO,
            sent: VecDeque::new(),
            delivery: None,
        }
    }

    /// The window that the segment below `snd_una` was sent with.
    fn window_when_sent(&mut self, snd_una: u64) -> f64 {
        while self.sent.len() > 1 && self.sent.front().is_some_and(|(end, _)| *end < snd_una) {
            self.sent.pop_front();
        }
        self.sent.front().map_or(self.window, |(_, window)| *window)
    }

    fn sample(&mut self, delay: f64, sent_with: f64) {
        self.least = self.least.min(delay);
        self.of_epoch = Some(self.of_epoch.map_or(delay, |largest| largest.max(delay)));
        if self.phase != Phase::Recovery {
            let mean = self.profile.entry(sent_with as u64).or_insert(delay);
            *mean = PROFILE_MEMORY * *mean + (1.0 - PROFILE_MEMORY) * delay;
        }
    }

    fn draw(&mut self, now: Instant) {
        self.curve = Curve::draw(&self.profile);
        self.drawn = now;
    }

    /// Slow start is over: by a loss, or by the delay.
    fn leave_slow_start(&mut self, now: Instant, sent_with: f64) {
        self.draw(now);
        self.window = (self.decrease * sent_with).max(MIN_WINDOW);
        self.wanted = AFTER_SLOW_START * self.ratio * self.least;
        self.phase = Phase::Recovery;
    }

    /// Equations (1) to (4), at the end of an epoch in which `largest` was the largest delay.
    fn end_epoch(&mut self, largest: f64) {
        let before = self.largest.unwrap_or(largest);
        if before / self.least > self.ratio {
            self.wanted = (self.wanted - DELTA_2).max(self.least);
            if self.wanted <= self.least && self.window <= MIN_WINDOW {
                self.least += LEARN_UPWARD;
            }
        } else if largest - before > 1e-4 {
            self.wanted = (self.wanted - DELTA_1).max(self.least);
        } else {
            self.wanted += DELTA_2;
        }
        self.largest = Some(MAX_MEMORY * before + (1.0 - MAX_MEMORY) * largest);
        self.window = self.curve.window(self.wanted).clamp(MIN_WINDOW, MAX_WINDOW);
    }

    fn advance(&mut self, now: Instant) {
        if now.saturating_since(self.drawn) >= CURVE {
            self.draw(now);
        }
        if now < self.epoch_ends {
            return;
        }
        let missed = now.saturating_since(self.epoch_ends).as_nanos() / EPOCH.as_nanos();
        let silence = now.saturating_since(self.last_arrival).as_millis_f64();
        for epoch in 0..=missed.min(MISSED_EPOCHS) {
            // An epoch without an arrival shows at least that silence.
            let known = self.largest.unwrap_or(self.least);
            let largest = self
                .of_epoch
                .take()
                .unwrap_or_else(|| silence.min((epoch + 1) as f64 * EPOCH.as_millis_f64()).max(known));
            self.end_epoch(largest);
        }
        self.epoch_ends = now + EPOCH;
    }

    fn apply(&self, mss: Bytes, limits: &mut Limits) {
        limits.cwnd = Bytes::from_f64(self.window * mss.as_f64()).max(mss);
        if self.phase != Phase::SlowStart {
            // So that an algorithm around it sees that slow start is over.
            limits.ssthresh = limits.cwnd.max(mss * 2);
        }
    }

    fn grow(&mut self, ack: &Ack, sent_with: f64) {
        let segments = ack.delivered.as_f64() / ack.mss.as_f64();
        match self.phase {
            Phase::SlowStart if ack.cwnd_limited => self.window = (self.window + segments).min(MAX_WINDOW),
            Phase::SlowStart => {}
            Phase::Recovery if sent_with <= self.window => {
                self.of_epoch = None;
                self.phase = Phase::Epochs;
                self.epoch_ends = ack.now + EPOCH;
            }
            // As in TCP's congestion avoidance.
            Phase::Recovery => {
                self.window += segments / self.window;
                self.wanted = self.wanted.min(self.curve.delay(self.window)).max(self.least);
            }
            Phase::Epochs => self.advance(ack.now),
        }
    }
}

impl CongestionControl for Verus {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.delivery = None;
        (self.drawn, self.last_arrival) = (now, now);
        self.sent.clear();
        // Counted in segments with the first ACK.
        self.window = 0.0;
        limits.pacing = None;
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let delivery = self.delivery.take();
        if self.window == 0.0 {
            self.window = (limits.cwnd.as_f64() / ack.mss.as_f64()).max(MIN_WINDOW);
        }
        // All that was sent since the last ACK was sent with the window of then.
        if self.sent.back().is_none_or(|(end, _)| *end < ack.snd_nxt) {
            self.sent.push_back((ack.snd_nxt, self.window));
        }
        if ack.delivered == Bytes::ZERO {
            return;
        }
        let sent_with = self.window_when_sent(ack.snd_una);
        if let Some(rtt) = delivery.and_then(|delivery| delivery.rtt).or(ack.rtt) {
            let delay = rtt.as_millis_f64().max(1e-3);
            self.sample(delay, sent_with);
            if self.phase == Phase::SlowStart && delay > SLOW_START_DELAY.max(self.ratio * self.least) {
                self.leave_slow_start(ack.now, sent_with);
            }
        }
        if self.least.is_finite() {
            self.grow(ack, sent_with);
        }
        self.last_arrival = ack.now;
        self.apply(ack.mss, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        if !self.least.is_finite() {
            return;
        }
        let lost = self.sent.front().map_or(self.window, |(_, window)| *window);
        match self.phase {
            Phase::SlowStart => self.leave_slow_start(event.now, lost),
            Phase::Epochs | Phase::Recovery => {
                // Equation (6).
                self.window = (self.decrease * lost).clamp(MIN_WINDOW, self.window.max(MIN_WINDOW));
                self.wanted = self.curve.delay(self.window).max(self.least);
                self.phase = Phase::Recovery;
            }
        }
        self.apply(event.mss, limits);
    }

    fn models_delivery(&self) -> bool {
        true
    }

    fn mark_response(&self) -> MarkResponse {
        MarkResponse::Never
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.delivery = Some(*delivery);
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("wanted_delay_ms", self.wanted);
        if self.least.is_finite() {
            out.value("least_delay_ms", self.least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    /// A link of one segment per millisecond and 40 ms: the delay of 40 segments is 40 ms, of 60 it is 60 ms.
    fn verus() -> Verus {
        let mut verus = Verus::new(2.0, 0.7);
        (verus.least, verus.window, verus.wanted, verus.phase) = (40.0, 50.0, 50.0, Phase::Epochs);
        for window in 30..80_u64 {
            verus.profile.insert(window, (window as f64).max(40.0));
        }
        verus.draw(Instant::ZERO);
        verus
    }

    #[test]
    fn the_wanted_delay_goes_up_by_two_and_down_by_one_or_two() {
        // (largest delay before, largest delay now, change of the wanted delay): equation (3).
        for (before, now, change) in
            [(50.0, 50.0, 2.0), (50.0, 45.0, 2.0), (50.0, 51.0, -1.0), (81.0, 50.0, -2.0)]
        {
            let mut verus = verus();
            verus.largest = Some(before);
            verus.end_epoch(now);
            assert_eq!(verus.wanted, 50.0 + change, "{before} {now}");
            assert_eq!(verus.largest, Some(0.2 * before + 0.8 * now));
            assert!((verus.window - verus.wanted).abs() < 1e-9, "the window of that delay");
        }
    }

    #[test]
    fn the_curve_never_falls_and_goes_on_as_a_full_link_does() {
        let means: BTreeMap<_, _> = [(10, 40.0), (20, 42.0), (30, 40.0), (40, 80.0)].into();
        let curve = Curve::draw(&means);
        // The middle two become one point at 25 segments and 41 ms.
        assert_eq!(curve.points, [(10.0, 40.0), (25.0, 41.0), (40.0, 80.0)]);
        assert_eq!((curve.window(80.0), curve.delay(40.0)), (40.0, 80.0));
        assert_eq!((curve.window(100.0), curve.delay(50.0)), (50.0, 100.0));
        assert_eq!(curve.window(20.0), 5.0, "below the first point in proportion");
    }

    #[test]
    fn a_loss_leaves_seven_tenths_of_the_window_that_the_segment_was_sent_with() {
        let mut verus = verus();
        verus.sent.push_back((1, 60.0));
        let mut limits = Limits::initial(MSS * 50);
        verus.on_congestion(&loss(50), &mut limits);
        assert_eq!((verus.window, verus.wanted, verus.phase), (42.0, 42.0, Phase::Recovery));
        assert_eq!(limits.cwnd, MSS * 42);
        // Segments of the larger window bring one more a round trip, and teach nothing.
        let profile = verus.profile.clone();
        let sample = Ack { rtt: Some(Duration::from_millis(90)), snd_una: 1, snd_nxt: 1, ..ack(1) };
        verus.on_ack(&sample, &mut limits);
        assert_eq!((verus.window, verus.profile == profile), (42.0 + 1.0 / 42.0, true));
        // One that was sent with the smaller window ends it.
        verus.sent.push_back((2, 42.0));
        verus.on_ack(&Ack { snd_una: 2, snd_nxt: 2, ..sample }, &mut limits);
        assert_eq!(verus.phase, Phase::Epochs);
    }
}
