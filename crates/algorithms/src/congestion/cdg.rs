//! CDG: it backs off by chance as delays grow, whatever their level (Hayes and Armitage 2011, as Linux has it).

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::hystart::HyStart;
use super::reno::Reno;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cdg",
    summary: "backs off with a probability that grows with the gradient of the delay",
    source: "Hayes, Armitage 2011; Linux 6.18",
    colour: "#c7519c",
    parameters: &[
        Parameter {
            name: "backoff_factor",
            help: "of the probability 1 - exp(-factor * gradient), in millionths for a microsecond over eight rounds",
            default: Value::Count(42),
            range: Range::Between(1.0, 1_000_000.0),
        },
        Parameter {
            name: "backoff_beta",
            help: "the window after backing off, relative to the one before",
            default: Value::Number(core::f64::consts::FRAC_1_SQRT_2),
            range: Range::Between(0.1, 0.99),
        },
        Parameter {
            name: "shadow",
            help: "a loss costs no more than it would have cost without backing off, beside senders that fill the queue",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Cdg::new(
        arguments.count("backoff_factor"),
        arguments.number("backoff_beta"),
        arguments.flag("shadow"),
    ))
}

/// Rounds over which gradients are added up (`window`).
const ROUNDS: usize = 8;
/// Backing off so often without shorter delays is of no use: others fill the queue (`use_ineff`).
const INEFFECTUAL: u32 = 5;
/// Delays that shrink by this, in microseconds, show that backing off was of use.
const EFFECT: i64 = -32;
/// ACKs of several segments after which as many of single ones count as delayed.
const MOST_DELAYED: u32 = 5;

/// Smallest and largest round trip of a round, or what these changed by, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Extremes {
    min: i64,
    max: i64,
}

#[derive(Debug, Clone)]
struct Cdg {
    backoff_factor: f64,
    backoff_beta: f64,
    shadow: bool,
    reno: Reno,
    hystart: HyStart,
    delay_min: Option<Duration>,
    /// The present round, which ends once more than `end` is acknowledged, and the one before.
    round: Option<Extremes>,
    before: Option<Extremes>,
    end: u64,
    gradients: [Extremes; ROUNDS],
    sum: Extremes,
    /// Rounds whose gradient is known, up to [`ROUNDS`], and the place of the oldest.
    known: usize,
    oldest: usize,
    /// Times that it backed off since delays shrank.
    backoffs: u32,
    /// The window that it would have without backing off.
    shadow_window: Bytes,
    delayed: u32,
    random: RandomStream,
}

impl Cdg {
    fn new(backoff_factor: u64, backoff_beta: f64, shadow: bool) -> Self {
        Self {
            backoff_factor: backoff_factor as f64 * 1e-6,
            backoff_beta,
            shadow,
            reno: Reno::default(),
            hystart: HyStart::default(),
            delay_min: None,
            round: None,
            before: None,
            end: 0,
            gradients: [Extremes::default(); ROUNDS],
            sum: Extremes::default(),
            known: 0,
            oldest: 0,
            backoffs: 0,
            shadow_window: Bytes::ZERO,
            delayed: 0,
            random: RandomStream::new(0, "cdg"),
        }
    }

    /// Takes a sample. A single segment's ACK among those of several is likely a delayed one, whose time counts only as a
    /// smaller one.
    fn sample(&mut self, ack: &Ack, rtt: Duration) {
        self.delay_min = Some(self.delay_min.map_or(rtt, |min| min.min(rtt)));
        let micros = (rtt.as_nanos() / 1_000) as i64;
        let segments = ack.newly_acked.whole(ack.mss);
        if segments == 1 && self.delayed > 0 {
            self.delayed -= 1;
            if let Some(round) = &mut self.round {
                round.min = round.min.min(micros);
            }
            return;
        }
        if segments > 1 && self.delayed < MOST_DELAYED {
            self.delayed += 1;
        }
        let round = self.round.get_or_insert(Extremes { min: micros, max: micros });
        *round = Extremes { min: round.min.min(micros), max: round.max.max(micros) };
    }

    /// The sum of gradients over [`ROUNDS`] rounds: of the smallest round trips, or of the largest where the former do not
    /// grow (section 3.1 of the paper, which divides by the number of rounds).
    fn gradient(&mut self, round: Extremes, before: Extremes) -> i64 {
        let new = Extremes { min: round.min - before.min, max: round.max - before.max };
        let old = core::mem::replace(&mut self.gradients[self.oldest], new);
        self.oldest = (self.oldest + 1) % ROUNDS;
        self.known = (self.known + 1).min(ROUNDS);
        self.sum.min += new.min - old.min;
        self.sum.max += new.max - old.max;
        if self.sum.min <= EFFECT || self.sum.max <= EFFECT {
            self.backoffs = 0;
        }
        let sum = if self.sum.min > 0 { self.sum.min } else { self.sum.max };
        sum * ROUNDS as i64 / self.known as i64
    }

    /// Section 3.1: back off with the probability `1 - exp(-g / G)`, unless that was of no use (section 3.2).
    fn backs_off(&mut self, gradient: i64) -> bool {
        if gradient <= 0 || self.random.uniform() <= libm::exp(-self.backoff_factor * gradient as f64) {
            return false;
        }
        self.backoffs += 1;
        self.backoffs <= INEFFECTUAL
    }

    fn begin_round(&mut self, end: u64) {
        (self.end, self.before, self.round) = (end, self.round, None);
    }

    /// The end of a round; true where it backed off.
    fn end_round(&mut self, ack: &Ack, limits: &mut Limits) -> bool {
        let gradient = match (self.round, self.before) {
            (Some(round), Some(before)) => self.gradient(round, before),
            _ => 0,
        };
        self.begin_round(ack.snd_nxt);
        if !self.backs_off(gradient) {
            return false;
        }
        self.shadow_window = self.shadow_window.max(limits.cwnd);
        limits.ssthresh = Bytes::from_f64(limits.cwnd.as_f64() * self.backoff_beta).max(ack.mss * 2);
        limits.cwnd = limits.cwnd.min(limits.ssthresh);
        // What the smaller window does to delays is no gradient of the network.
        self.before = None;
        true
    }
}

impl CongestionControl for Cdg {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        self.random = RandomStream::new(now.as_nanos(), "cdg");
        self.shadow_window = limits.cwnd;
        self.hystart.reset(now, 0);
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            self.sample(ack, rtt);
        }
        if ack.in_recovery {
            return;
        }
        if let (Some(rtt), Some(delay_min)) = (ack.rtt, self.delay_min) {
            self.hystart.on_ack(ack, rtt, delay_min, limits);
        }
        if ack.snd_una > self.end && self.round.is_some() && self.end_round(ack, limits) {
            return;
        }
        if !ack.cwnd_limited {
            self.shadow_window = self.shadow_window.min(limits.cwnd);
            return;
        }
        let before = limits.cwnd;
        self.reno.on_ack(ack, limits);
        self.shadow_window += limits.cwnd.saturating_sub(before);
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.reno.on_congestion(event, limits);
        self.shadow_window = (self.shadow_window / 2).min(limits.cwnd);
        let least = (limits.cwnd / 2).max(event.mss * 2);
        limits.ssthresh = if self.shadow { least.max(self.shadow_window) } else { least };
        self.begin_round(event.snd_nxt);
        if event.kind == CongestionKind::Timeout {
            self.hystart.reset(event.now, event.snd_nxt);
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("gradient_us", self.sum.min as f64);
        out.value("shadow_window_bytes", self.shadow_window.as_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn cdg() -> Cdg {
        Cdg::new(42, 0.7, true)
    }

    fn extremes(min: i64, max: i64) -> Extremes {
        Extremes { min, max }
    }

    /// Delays that grow by a millisecond in each round: the sum over eight is 8 ms, from the first round on.
    #[test]
    fn gradients_of_eight_rounds_are_added_up_and_the_first_ones_extrapolated() {
        let mut cdg = cdg();
        let sums: Vec<i64> = (0..10_i64)
            .map(|nth| cdg.gradient(extremes(1_000 * (nth + 1), 0), extremes(1_000 * nth, 0)))
            .collect();
        assert_eq!(sums, [8_000; 10]);
        // Without growth for eight rounds nothing is left.
        let last = (0..8).map(|_| cdg.gradient(extremes(0, 0), extremes(0, 0))).last();
        assert_eq!(last, Some(0));
    }

    #[test]
    fn the_largest_round_trips_count_where_the_smallest_do_not_grow() {
        assert_eq!(cdg().gradient(extremes(0, 500), extremes(100, 0)), 4_000);
    }

    /// 1 - exp(-0.042 * 8) is 0.285 at 8 ms; nothing at no growth.
    #[test]
    fn it_backs_off_with_a_probability_of_the_gradient() {
        let share = |gradient: i64| {
            let mut cdg = cdg();
            let times = (0..10_000).filter(|_| {
                cdg.backoffs = 0;
                cdg.backs_off(gradient)
            });
            times.count() as f64 / 10_000.0
        };
        assert!((share(8_000) - 0.285).abs() < 0.02, "{}", share(8_000));
        assert_eq!((share(0), share(-5)), (0.0, 0.0));
    }

    #[test]
    fn five_times_without_effect_it_backs_off_no_more() {
        let mut cdg = cdg();
        let times = (0..100).filter(|_| cdg.backs_off(1_000_000)).count();
        assert_eq!(times, 5);
        cdg.gradient(extremes(0, 0), extremes(100, 100));
        assert!(cdg.backs_off(1_000_000), "delays shrank");
    }

    /// It backed off from 40 to 28 segments: a loss leaves half of the 40.
    #[test]
    fn a_loss_costs_no_more_than_without_backing_off() {
        let lost = |shadow| {
            let mut cdg = Cdg::new(1_000_000, 0.7, shadow);
            let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 40) };
            (cdg.before, cdg.round) = (Some(extremes(0, 0)), Some(extremes(50_000, 50_000)));
            assert!(cdg.end_round(&ack(1), &mut limits));
            assert_eq!(limits.cwnd, MSS * 28);
            cdg.on_congestion(&loss(28), &mut limits);
            limits.ssthresh.whole(MSS)
        };
        assert_eq!((lost(true), lost(false)), (20, 14));
    }
}
