//! CUBIC 2.1, of Linux 2.6.22 to 2.6.24: the CUBIC that papers of 2007 to 2009 compared with.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::whole_curve::{Epoch, UPDATE_INTERVAL, least_delay, reno_ratio, window_to_reach};
use super::window::{CountedIncrease, DelayedAckRatio, scaled_down, slow_start_through_ssthresh};
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cubic-2.1",
    summary: "CUBIC as Linux 2.6.22 had it: beta 0.8, growth capped beyond the last maximum",
    source: "Ha, Rhee and Xu 2008; Linux 2.6.22",
    colour: "#ff9da7",
    parameters: &[
        Parameter {
            name: "beta",
            help: "window after a loss, relative to the window before",
            default: Value::Number(819.0 / 1024.0),
            range: Range::Between(0.1, 0.99),
        },
        Parameter {
            name: "c",
            help: "steepness of the cubic curve, in segments per second cubed",
            // bic_scale 41, in 1024ths per 100 ms.
            default: Value::Number(410.0 / 1024.0),
            range: Range::Between(0.001, 1000.0),
        },
        Parameter {
            name: "max_increment",
            help: "segments that the window may grow by in 100 ms beyond the last maximum",
            default: Value::Count(16),
            range: Range::Between(1.0, 1e6),
        },
        Parameter {
            name: "fast_convergence",
            help: "aim lower where the window did not get back to that of the loss before",
            default: Value::Flag(true),
            range: Range::Any,
        },
        Parameter {
            name: "tcp_friendly",
            help: "grow at least as Reno would",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    let beta = arguments.number("beta");
    Box::new(Cubic21 {
        beta,
        c: arguments.number("c"),
        max_increment: arguments.count("max_increment") as f64,
        fast_convergence: arguments.flag("fast_convergence"),
        tcp_friendly: arguments.flag("tcp_friendly"),
        reno_ratio: reno_ratio(beta),
        history: History::default(),
        increase: CountedIncrease::default(),
        recovering: false,
    })
}

/// Segments per segment of growth until the first loss.
const CNT_BEFORE_A_LOSS: u64 = 50;

#[derive(Debug, Clone)]
struct Cubic21 {
    beta: f64,
    c: f64,
    max_increment: f64,
    fast_convergence: bool,
    tcp_friendly: bool,
    reno_ratio: f64,
    history: History,
    increase: CountedIncrease,
    recovering: bool,
}

/// The state that a timeout resets. Windows are in segments.
#[derive(Debug, Clone, Default)]
struct History {
    /// ACKs for one segment of growth.
    cnt: u64,
    last_max_cwnd: u64,
    had_loss: bool,
    /// Window and time of the last computation of `cnt`.
    last_update: Option<(u64, Instant)>,
    epoch: Option<Epoch>,
    delay_min: Option<Duration>,
    delayed_ack: DelayedAckRatio,
}

impl Cubic21 {
    /// Acknowledged segments after which a window of `cwnd` segments grows by one, by the curve alone.
    fn segments_on_curve(&self, now: Instant, epoch: &Epoch, cwnd: u64) -> u64 {
        let delay = self.history.delay_min.unwrap_or(Duration::ZERO);
        let offset = epoch.offset(now, delay);
        let mut segments = epoch.segments(offset, cwnd, self.c);
        if offset >= 0.0 && delay > Duration::ZERO {
            segments = segments.max((cwnd as f64 / (self.max_increment * delay.as_secs_f64() / 0.1)) as u64);
        }
        if self.history.had_loss { segments } else { CNT_BEFORE_A_LOSS }
    }

    fn update(&mut self, now: Instant, cwnd: u64) {
        if let Some(epoch) = &mut self.history.epoch {
            epoch.ack_cnt += 1;
        }
        if let Some((last_cwnd, last_time)) = self.history.last_update
            && last_cwnd == cwnd
            && now.saturating_since(last_time) <= UPDATE_INTERVAL
        {
            return;
        }
        self.history.last_update = Some((cwnd, now));
        let mut epoch = self.history.epoch.take().unwrap_or_else(|| {
            let mut epoch = Epoch::begin(now, cwnd, self.history.last_max_cwnd, self.c);
            epoch.ack_cnt = 1;
            epoch
        });
        let mut segments = self.segments_on_curve(now, &epoch, cwnd);
        if self.tcp_friendly
            && let Some(of_reno) = epoch.segments_of_reno(cwnd, self.reno_ratio)
        {
            segments = segments.min(of_reno);
        }
        self.history.epoch = Some(epoch);
        self.history.cnt = self.history.delayed_ack.acks_for(segments);
    }
}

impl CongestionControl for Cubic21 {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if ack.in_recovery || self.recovering {
            // The ACK that ends recovery covers a whole window and grows nothing.
            self.recovering = ack.in_recovery;
            return;
        }
        if ack.newly_acked == Bytes::ZERO {
            return;
        }
        if let Some(rtt) = ack.rtt {
            let History { delay_min, epoch, .. } = &mut self.history;
            *delay_min = least_delay(*delay_min, epoch.as_ref(), ack.now, rtt);
        }
        self.history.delayed_ack.update(ack);
        if ack.cwnd_limited && slow_start_through_ssthresh(ack, limits) {
            self.update(ack.now, limits.cwnd.whole(ack.mss));
            self.increase.apply(self.history.cnt, ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let cwnd = limits.cwnd.whole(event.mss);
        limits.ssthresh = scaled_down(limits, self.beta, event.mss);
        self.recovering = true;
        self.increase = CountedIncrease::default();
        if event.kind == CongestionKind::Timeout {
            self.history = History::default();
            return;
        }
        self.history.last_max_cwnd =
            window_to_reach(cwnd, self.history.last_max_cwnd, self.beta, self.fast_convergence);
        self.history.had_loss = true;
        self.history.epoch = None;
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("last_max_cwnd_segments", self.history.last_max_cwnd as f64);
        out.value("acks_per_segment", self.history.cnt as f64);
        if let Some(epoch) = &self.history.epoch {
            out.value("k_s", epoch.k_s());
            out.value("tcp_cwnd_segments", epoch.tcp_cwnd() as f64);
        }
        if let Some(delay_min) = self.history.delay_min {
            out.value("delay_min_ms", delay_min.as_millis_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    const RTT: Duration = Duration::from_millis(100);

    fn cubic(settings: &[(&'static str, Value)]) -> Box<dyn CongestionControl> {
        let mut arguments = Arguments::defaults(DESCRIPTION.parameters);
        for (name, value) in settings {
            arguments.set(name, *value);
        }
        build(&arguments)
    }

    fn after_loss(cubic: &mut dyn CongestionControl, cwnd: u64) -> Limits {
        let mut limits = Limits::initial(MSS * cwnd);
        cubic.on_congestion(&loss(cwnd), &mut limits);
        limits.cwnd = limits.ssthresh;
        // The ACK that ends recovery.
        cubic.on_ack(&ack(1), &mut limits);
        limits.cwnd += MSS;
        limits
    }

    fn rounds(cubic: &mut dyn CongestionControl, limits: &mut Limits, from: Instant, rounds: u64) -> Instant {
        let mut now = from;
        for _ in 0..rounds {
            let window = limits.cwnd.whole(MSS);
            for _ in 0..window {
                now += RTT / window;
                cubic.on_ack(&Ack { now, rtt: Some(RTT), ..ack(1) }, limits);
            }
        }
        now
    }

    fn probed(cubic: &dyn CongestionControl, wanted: &str) -> f64 {
        let mut values = Vec::new();
        cubic.probe(&mut values);
        values.into_iter().find_map(|(name, value)| (name == wanted).then_some(value)).unwrap()
    }

    #[test]
    fn a_loss_takes_a_fifth() {
        let mut limits = Limits::initial(MSS * 100);
        cubic(&[]).on_congestion(&loss(60), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 79, "of the window, not of the flight");
    }

    #[test]
    fn the_plateau_is_reached_after_k() {
        let mut cubic = cubic(&[]);
        let mut limits = after_loss(&mut *cubic, 200);
        let cwnd = limits.cwnd.whole(MSS);
        cubic.on_ack(&ack(1), &mut limits);
        let k = probed(&*cubic, "k_s");
        assert!((410.0 / 1024.0 * k * k * k - (200 - cwnd) as f64).abs() < 1e-6, "{k}");
    }

    #[test]
    fn the_window_follows_the_closed_form_up_to_the_plateau() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = after_loss(&mut *cubic, 200);
        let from = Instant::ZERO + Duration::from_secs(1);
        let c = 410.0 / 1024.0;
        let k = libm::pow((200 - limits.cwnd.whole(MSS)) as f64 / c, 1.0 / 3.0);
        let mut now = from;
        while now.saturating_since(from).as_secs_f64() < k {
            now = rounds(&mut *cubic, &mut limits, now, 1);
            let t = now.saturating_since(from).as_secs_f64() - k;
            let lead = t + RTT.as_secs_f64();
            let cwnd = limits.cwnd.whole(MSS) as f64;
            // The window aims one RTT ahead and, with the delayed-ACK average stuck above one, gets there.
            assert!(cwnd >= c * t * t * t + 200.0 - 2.0, "{now}: {cwnd}");
            assert!(cwnd <= c * lead * lead * lead + 200.0 + 2.0, "{now}: {cwnd}");
        }
    }

    #[test]
    fn growth_beyond_the_plateau_is_capped_by_the_clock() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = after_loss(&mut *cubic, 1_000);
        let late = Instant::ZERO + Duration::from_secs(1);
        // Far beyond K the curve alone would add a hundred per RTT; the delay is measured only after its first second.
        let now = rounds(&mut *cubic, &mut limits, late, 400);
        let before = limits.cwnd.whole(MSS);
        rounds(&mut *cubic, &mut limits, now, 1);
        let grown = limits.cwnd.whole(MSS) - before;
        // 16 per 100 ms, times 31/16 for the delayed-ACK average, and integer counts.
        assert!((25..=34).contains(&grown), "{grown}");
    }

    #[test]
    fn a_flat_curve_leaves_growth_to_the_reno_estimate() {
        let mut cubic = cubic(&[("c", Value::Number(0.001))]);
        let mut limits = after_loss(&mut *cubic, 100);
        let before = limits.cwnd.whole(MSS) as f64;
        rounds(&mut *cubic, &mut limits, Instant::ZERO + Duration::from_secs(1), 60);
        // 3 (1 - beta) / (1 + beta) = 1 / 2.875 segments per RTT in eighths.
        let expected = before + 60.0 / 2.875;
        assert!((limits.cwnd.whole(MSS) as f64 - expected).abs() <= 2.0, "{} {expected}", limits.cwnd);
    }

    #[test]
    fn rtts_of_an_epochs_first_second_are_not_taken_for_the_smallest() {
        let mut cubic = cubic(&[]);
        let mut limits = after_loss(&mut *cubic, 100);
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(1_000 + millis);
        let sample = |millis, rtt| Ack { now: at(millis), rtt: Some(Duration::from_millis(rtt)), ..ack(1) };
        cubic.on_ack(&sample(0, 90), &mut limits);
        assert_eq!(probed(&*cubic, "delay_min_ms"), 90.0, "the epoch begins behind the first sample");
        cubic.on_ack(&sample(999, 50), &mut limits);
        assert_eq!(probed(&*cubic, "delay_min_ms"), 90.0);
        cubic.on_ack(&sample(1_000, 50), &mut limits);
        assert_eq!(probed(&*cubic, "delay_min_ms"), 50.0);
    }

    #[test]
    fn before_a_loss_a_segment_takes_fifty() {
        let mut cubic = cubic(&[]);
        let mut limits = Limits { ssthresh: MSS * 100, ..Limits::initial(MSS * 200) };
        cubic.on_ack(&ack(2), &mut limits);
        assert_eq!(probed(&*cubic, "acks_per_segment"), 25.0, "two segments per ACK");
    }

    #[test]
    fn a_loss_begins_a_new_epoch() {
        let mut cubic = cubic(&[]);
        let mut limits = after_loss(&mut *cubic, 200);
        cubic.on_ack(&ack(1), &mut limits);
        let k = probed(&*cubic, "k_s");
        let mut limits = after_loss(&mut *cubic, 100);
        cubic.on_ack(&ack(1), &mut limits);
        assert!(probed(&*cubic, "k_s") < k);
    }

    #[test]
    fn fast_convergence_aims_lower_only_below_the_last_maximum() {
        let aim = |second| {
            let mut cubic = cubic(&[]);
            after_loss(&mut *cubic, 100);
            after_loss(&mut *cubic, second);
            probed(&*cubic, "last_max_cwnd_segments")
        };
        assert_eq!(aim(99), 89.0);
        assert_eq!(aim(100), 100.0);
        assert_eq!(aim(101), 101.0);
    }

    #[test]
    fn a_timeout_forgets_the_curve() {
        let mut cubic = cubic(&[]);
        after_loss(&mut *cubic, 100);
        let timeout = Congestion { kind: CongestionKind::Timeout, ..loss(80) };
        cubic.on_congestion(&timeout, &mut Limits::initial(MSS * 80));
        assert_eq!(probed(&*cubic, "last_max_cwnd_segments"), 0.0);
    }
}
