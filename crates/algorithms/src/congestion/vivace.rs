//! PCC Vivace: sends a little faster, then a little slower, and moves to where the utility is larger
//! (Dong, Meng and others, NSDI 2018).
//!
//! Rates are in Mbit/s, as in the paper's utility.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant, Probability, Rate};

use super::{Ack, Congestion, CongestionControl, CongestionKind, Delivery, Limits, MarkResponse};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

mod interval;

use self::interval::{Interval, Trial, Utility};

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "vivace",
    summary: "tries two rates at a time and climbs the utility of throughput, growing delay and loss",
    source: "Dong and others: PCC Vivace, NSDI 2018",
    colour: "#637939",
    parameters: &[
        Parameter {
            name: "exponent",
            help: "t: the utility of a rate is that rate to this power",
            default: Value::Number(0.9),
            range: Range::Between(0.01, 0.999),
        },
        Parameter {
            name: "latency_weight",
            help: "b: what a growing round-trip time costs, in utility for each Mbit/s",
            default: Value::Number(900.0),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "loss_weight",
            help: "c: what loss costs, in utility for each Mbit/s",
            default: Value::Number(11.35),
            range: Range::Between(0.0, 1e6),
        },
        Parameter {
            name: "latency_filter",
            help: "a round-trip time that grows by less than this in its own time counts as steady",
            default: Value::Number(0.05),
            range: Range::Between(0.0, 1.0),
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Vivace::new(Utility {
        exponent: arguments.number("exponent"),
        latency_weight: arguments.number("latency_weight"),
        loss_weight: arguments.number("loss_weight"),
        latency_filter: arguments.number("latency_filter"),
    }))
}

/// `epsilon`: a trial is so much above or below the rate (section 4.2).
const STEP: f64 = 0.05;
/// `theta_0`: Mbit/s for each utility per Mbit/s of gradient.
const CONVERSION: f64 = 1.0;
/// `omega_0` and `delta`: one change is at most so much of the rate, and more each time that this held it back.
const BOUND: f64 = 0.05;
const BOUND_INCREMENT: f64 = 0.1;
/// An interval has at least so many segments, as that of PCC Allegro.
const SEGMENTS: u64 = 10;
/// The window is no limit: so many products of rate and round trip, and as many segments at least.
const WINDOW: f64 = 2.0;
const MIN_WINDOW: u64 = 4;
/// The smallest rate, in segments for each round trip.
const MIN_SEGMENTS: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The utility of the last rate.
    Starting { last: Option<f64> },
    /// How many trials were sent, whether the faster comes first, and their utilities.
    Trying { sent: u32, faster_first: bool, faster: Option<f64>, slower: Option<f64> },
}

#[derive(Debug, Clone)]
struct Vivace {
    utility: Utility,
    phase: Phase,
    /// `r`.
    rate: f64,
    srtt: Option<Duration>,
    /// Those whose results are not all there, the one under way last.
    intervals: VecDeque<Interval>,
    /// Changes in a row in this direction, and how often the bound held them back.
    rises: bool,
    in_a_row: u32,
    held_back: u32,
    delivery: Option<Delivery>,
}

impl Vivace {
    fn new(utility: Utility) -> Self {
        Self {
            utility,
            phase: Phase::Starting { last: None },
            rate: 0.0,
            srtt: None,
            intervals: VecDeque::new(),
            rises: true,
            in_a_row: 0,
            held_back: 0,
            delivery: None,
        }
    }

    fn try_anew(&mut self, now: Instant) {
        let half = Probability::clamped(0.5);
        // The time decides, as good as chance and the same on every run.
        let faster_first = RandomStream::new(now.as_nanos(), "vivace").chance(half);
        self.phase = Phase::Trying { sent: 0, faster_first, faster: None, slower: None };
        self.intervals.clear();
    }

    /// The next interval's purpose and rate.
    fn next_trial(&mut self) -> (Trial, f64) {
        match &mut self.phase {
            Phase::Starting { .. } => {
                if !self.intervals.is_empty() {
                    self.rate *= 2.0;
                }
                (Trial::Start, self.rate)
            }
            Phase::Trying { sent, faster_first, .. } => {
                let trial = match *sent {
                    0 if *faster_first => Trial::Faster,
                    0 => Trial::Slower,
                    1 if *faster_first => Trial::Slower,
                    1 => Trial::Faster,
                    _ => Trial::Rest,
                };
                *sent = (*sent + 1).min(2);
                let factor = match trial {
                    Trial::Faster => 1.0 + STEP,
                    Trial::Slower => 1.0 - STEP,
                    Trial::Start | Trial::Rest => 1.0,
                };
                (trial, self.rate * factor)
            }
        }
    }

    fn begin(&mut self, now: Instant) {
        let (trial, rate) = self.next_trial();
        self.intervals.push_back(Interval::begin(now, trial, rate));
    }

    /// An interval lasts a round trip, and until ten segments were sent.
    fn advance(&mut self, now: Instant, srtt: Duration, mss: Bytes) {
        let Some(last) = self.intervals.back_mut() else {
            self.begin(now);
            return;
        };
        let least = mbps(last.rate).transmission_time(mss * SEGMENTS);
        if now.saturating_since(last.begin) >= srtt.max(least) {
            last.end = Some(now);
            self.begin(now);
        }
    }

    /// What was sent at `sent` arrived after `rtt`.
    fn record(&mut self, ack: &Ack, lost: Bytes, sent: Option<(Instant, Duration)>) {
        if let Some((at, _)) = sent {
            while let Some(over) =
                self.intervals.front().filter(|first| first.end.is_some_and(|end| end <= at)).cloned()
            {
                self.intervals.pop_front();
                self.judge(ack, &over);
            }
        }
        let Some(interval) = self.intervals.front_mut() else { return };
        if sent.is_some_and(|(at, _)| at < interval.begin) {
            return;
        }
        interval.delivered += ack.delivered;
        interval.lost += lost;
        interval.app_limited |= ack.app_limited;
        if let Some((at, rtt)) = sent {
            interval.rtt.add(at.saturating_since(interval.begin).as_secs_f64(), rtt.as_secs_f64());
        }
    }

    fn judge(&mut self, ack: &Ack, over: &Interval) {
        let utility = over.utility(&self.utility);
        match (&mut self.phase, over.trial) {
            (Phase::Starting { last }, Trial::Start) => {
                if last.is_some_and(|last| utility < last) && !over.app_limited {
                    self.rate = over.rate / 2.0;
                    self.try_anew(ack.now);
                } else {
                    *last = Some(utility);
                }
                return;
            }
            (Phase::Trying { faster, .. }, Trial::Faster) => *faster = Some(utility),
            (Phase::Trying { slower, .. }, Trial::Slower) => *slower = Some(utility),
            _ => return,
        }
        if over.app_limited {
            self.try_anew(ack.now);
        } else if let Phase::Trying { faster: Some(faster), slower: Some(slower), .. } = self.phase {
            self.climb(faster, slower);
            self.try_anew(ack.now);
        }
    }

    /// Section 4.2: `r + m(tau) theta_0 gamma`, within the bound.
    fn climb(&mut self, faster: f64, slower: f64) {
        let gamma = (faster - slower) / (2.0 * STEP * self.rate);
        if (gamma > 0.0) != self.rises {
            (self.rises, self.in_a_row, self.held_back) = (gamma > 0.0, 0, 0);
        }
        self.in_a_row += 1;
        let change = amplifier(self.in_a_row) * CONVERSION * gamma;
        let bound = |held_back: u32| (BOUND + BOUND_INCREMENT * f64::from(held_back)) * self.rate;
        let most = bound(self.held_back);
        if change.abs() > most {
            self.held_back += 1;
            self.rate += most.copysign(change);
        } else {
            // Back to the smallest bound that lets the change pass.
            let mut least = self.held_back;
            while least > 0 && change.abs() <= bound(least - 1) {
                least -= 1;
            }
            self.held_back = least;
            self.rate += change;
        }
    }

    fn apply(&mut self, srtt: Duration, mss: Bytes, limits: &mut Limits) {
        self.rate = self.rate.max(Rate::of(mss * MIN_SEGMENTS, srtt).as_bps_f64() / 1e6).min(1e7);
        let rate = mbps(self.intervals.back().map_or(self.rate, |interval| interval.rate));
        limits.pacing = Some(rate);
        limits.cwnd = rate.scaled(WINDOW).amount_in(srtt).max(mss * MIN_WINDOW);
    }
}

/// `m(tau)`, the confidence after so many changes in one direction.
fn amplifier(in_a_row: u32) -> f64 {
    f64::from(if in_a_row <= 3 { in_a_row } else { 2 * in_a_row - 3 })
}

fn mbps(rate: f64) -> Rate {
    Rate::from_bps(1_000_000).scaled(rate)
}

impl CongestionControl for Vivace {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        let rtt = self.delivery.take().and_then(|delivery| delivery.rtt).filter(|rtt| *rtt > Duration::ZERO);
        self.srtt = rtt;
        self.rate = Rate::of(limits.cwnd, rtt.unwrap_or(Duration::from_millis(100))).as_bps_f64() / 1e6;
        self.begin(now);
        limits.pacing = Some(mbps(self.rate));
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let delivery = self.delivery.take();
        if ack.delivered == Bytes::ZERO {
            return;
        }
        let rtt = delivery.and_then(|delivery| delivery.rtt).or(ack.rtt).filter(|rtt| *rtt > Duration::ZERO);
        if let Some(rtt) = rtt {
            self.srtt = Some(self.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8));
        }
        let Some(srtt) = self.srtt else { return };
        // Segments that left the flight without being delivered were marked lost with this ACK.
        let lost = ack.prior_flight_size.saturating_sub(ack.flight_size.saturating_add(ack.delivered));
        let sent =
            rtt.map(|rtt| (Instant::from_nanos(ack.now.as_nanos().saturating_sub(rtt.as_nanos())), rtt));
        self.record(ack, lost, sent);
        self.advance(ack.now, srtt, ack.mss);
        self.apply(srtt, ack.mss, limits);
    }

    fn on_congestion(&mut self, event: &Congestion, _limits: &mut Limits) {
        if event.kind == CongestionKind::Timeout {
            self.rate /= 2.0;
            self.try_anew(event.now);
        }
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
        out.value("rate_bps", self.rate * 1e6);
        out.value("changes_in_a_row", f64::from(self.in_a_row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    fn vivace() -> Vivace {
        Vivace::new(Utility {
            exponent: 0.9,
            latency_weight: 900.0,
            loss_weight: 11.35,
            latency_filter: 0.05,
        })
    }

    #[test]
    fn changes_in_one_direction_grow_and_the_bound_with_them() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(amplifier), [1.0, 2.0, 3.0, 5.0, 7.0, 9.0]);
        // A gradient of 1 at 100 Mbit/s: changes of 1, 2, 3 and then of 5, which the bound of 5 % lets pass.
        let mut vivace = vivace();
        let mut rates = Vec::new();
        vivace.rate = 100.0;
        for _ in 0..4 {
            let twice = 2.0 * STEP * vivace.rate;
            vivace.climb(twice, 0.0);
            rates.push(vivace.rate);
        }
        assert_eq!(rates, [101.0, 103.0, 106.0, 111.0]);
        // A large gradient: 5 %, 15 % and 25 % of the rate; the other way begins anew with 5 %.
        let (mut vivace, mut rates) = (Vivace::new(vivace.utility), Vec::new());
        vivace.rate = 100.0;
        for rises in [true, true, true, false] {
            vivace.climb(if rises { 1e6 } else { -1e6 }, 0.0);
            rates.push((vivace.rate * 1e3).round() / 1e3);
        }
        assert_eq!(rates, [105.0, 120.75, 150.938, 143.391]);
    }

    #[test]
    fn slow_start_doubles_and_goes_back_where_the_utility_falls() {
        let mut vivace = vivace();
        let mut limits = Limits::initial(MSS * 10);
        let rtt = Duration::from_millis(100);
        vivace.srtt = Some(rtt);
        vivace.rate = 4.0;
        vivace.begin(Instant::ZERO);
        // Each round trip one interval; from the third on round trips grow by a tenth of the time.
        let mut found = Vec::new();
        for millis in (0..800).step_by(5) {
            let now = Instant::ZERO + Duration::from_millis(millis);
            let late = Duration::from_millis(millis.saturating_sub(320) / 10);
            let sample = Ack { now, rtt: Some(rtt + late), ..ack(1) };
            vivace.on_ack(&sample, &mut limits);
            if !matches!(vivace.phase, Phase::Starting { .. }) {
                break;
            }
            let rate = vivace.intervals.back().unwrap().rate;
            if found.last() != Some(&rate) {
                found.push(rate);
            }
        }
        assert_eq!(found[..3], [4.0, 8.0, 16.0]);
        assert!(matches!(vivace.phase, Phase::Trying { .. }), "{found:?}");
        // The interval of 16 Mbit/s shows the growth, so 8 it is.
        assert_eq!(vivace.rate, 8.0);
    }
}
