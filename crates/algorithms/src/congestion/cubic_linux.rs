//! CUBIC as Linux has it today, 4.0 to 6.18 at least: the curve of RFC 8312 in whole segments, after HyStart.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration, Instant};

use super::hystart::HyStart;
use super::reno::slow_start;
use super::whole_curve::{Epoch, UPDATE_INTERVAL, delay_settled, reno_ratio, window_to_reach};
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "cubic-linux",
    summary: "CUBIC as the kernel of today has it: whole segments, and Reno's growth of RFC 8312",
    source: "RFC 8312; Linux 6.18",
    colour: "#ffbe7d",
    parameters: &[
        Parameter {
            name: "beta",
            help: "window after a loss, relative to the window before",
            default: Value::Number(717.0 / 1024.0),
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
        Parameter {
            name: "hystart",
            help: "end slow start where ACKs spread over half a round-trip time, or where it grows",
            default: Value::Flag(true),
            range: Range::Any,
        },
    ],
};

/// Builds it with the parameters of [`DESCRIPTION`].
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    let beta = arguments.number("beta");
    Box::new(CubicLinux {
        beta,
        c: arguments.number("c"),
        fast_convergence: arguments.flag("fast_convergence"),
        tcp_friendly: arguments.flag("tcp_friendly"),
        hystart: arguments.flag("hystart").then(HyStart::default),
        reno_ratio: reno_ratio(beta),
        last_max_cwnd: 0,
        epoch: None,
        count: None,
        delay_min: None,
        snd_cwnd_cnt: 0,
        drained_at: None,
    })
}

/// Most segments per segment of growth until the first loss.
const CNT_BEFORE_A_LOSS: u64 = 20;
/// The window grows by half in an RTT at most.
const MIN_CNT: u64 = 2;

#[derive(Debug, Clone)]
struct CubicLinux {
    beta: f64,
    c: f64,
    fast_convergence: bool,
    tcp_friendly: bool,
    hystart: Option<HyStart>,
    reno_ratio: f64,
    /// In segments; zero before the first loss and after a timeout.
    last_max_cwnd: u64,
    epoch: Option<Epoch>,
    count: Option<Count>,
    delay_min: Option<Duration>,
    /// Acknowledged segments not yet turned into growth.
    snd_cwnd_cnt: u64,
    /// When an ACK left nothing in flight.
    drained_at: Option<Instant>,
}

/// How many acknowledged segments make one of growth, for which window in segments, and since when.
#[derive(Debug, Clone, Copy)]
struct Count {
    cnt: u64,
    cwnd: u64,
    since: Instant,
}

impl CubicLinux {
    /// Acknowledged segments after which a window of `cwnd` segments grows by one, by the curve alone.
    fn segments_on_curve(&self, now: Instant, epoch: &Epoch, cwnd: u64) -> u64 {
        let offset = epoch.offset(now, self.delay_min.unwrap_or(Duration::ZERO));
        let segments = epoch.segments(offset, cwnd, self.c);
        if self.last_max_cwnd == 0 { segments.min(CNT_BEFORE_A_LOSS) } else { segments }
    }

    /// The same where `acked` more segments have been acknowledged, with Reno's growth as the least (RFC 8312 §4.2).
    fn segments_for_one(&mut self, now: Instant, cwnd: u64, acked: u64) -> u64 {
        let mut epoch = self.epoch.take().unwrap_or_else(|| {
            self.count = None;
            Epoch::begin(now, cwnd, self.last_max_cwnd, self.c)
        });
        epoch.ack_cnt += acked;
        let is_of_now =
            |count: &Count| count.cwnd == cwnd && now.saturating_since(count.since) <= UPDATE_INTERVAL;
        let count = self.count.filter(is_of_now).unwrap_or_else(|| {
            let mut cnt = self.segments_on_curve(now, &epoch, cwnd);
            if self.tcp_friendly
                && let Some(of_reno) = epoch.segments_of_reno(cwnd, self.reno_ratio)
            {
                cnt = cnt.min(of_reno);
            }
            Count { cnt: cnt.max(MIN_CNT), cwnd, since: now }
        });
        (self.epoch, self.count) = (Some(epoch), Some(count));
        count.cnt
    }

    /// Shifts the epoch by the time in which nothing was in flight (RFC 8312 §5.8).
    fn leave_out_idle_time(&mut self, ack: &Ack) {
        if let (Some(drained_at), Some(epoch)) = (self.drained_at, &mut self.epoch) {
            let rtt = ack.rtt.or(self.delay_min).unwrap_or(Duration::ZERO);
            epoch.start += ack.now.saturating_since(drained_at).saturating_sub(rtt);
        }
        self.drained_at = (ack.flight_size == Bytes::ZERO).then_some(ack.now);
    }
}

impl CongestionControl for CubicLinux {
    fn on_established(&mut self, now: Instant, _limits: &mut Limits) {
        if let Some(hystart) = &mut self.hystart {
            hystart.reset(now, 0);
        }
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt.filter(|_| delay_settled(self.epoch.as_ref(), ack.now)) {
            let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
            self.delay_min = Some(delay_min);
            if let Some(hystart) = &mut self.hystart {
                hystart.on_ack(ack, rtt, delay_min, limits);
            }
        }
        self.leave_out_idle_time(ack);
        if ack.in_recovery || !ack.cwnd_limited || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if slow_start(ack, limits) {
            let acked = ack.avoidance_credit().get().div_ceil(ack.mss.get());
            let cnt = self.segments_for_one(ack.now, limits.cwnd.whole(ack.mss), acked);
            // A count that was reached under a larger `cnt` gives one segment, not several.
            if self.snd_cwnd_cnt >= cnt {
                self.snd_cwnd_cnt = 0;
                limits.cwnd += ack.mss;
            }
            self.snd_cwnd_cnt += acked;
            limits.cwnd += ack.mss * (self.snd_cwnd_cnt / cnt);
            self.snd_cwnd_cnt %= cnt;
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        let cwnd = limits.cwnd.whole(event.mss);
        limits.ssthresh = scaled_down(limits, self.beta, event.mss);
        self.snd_cwnd_cnt = 0;
        self.epoch = None;
        self.last_max_cwnd = match event.kind {
            CongestionKind::Timeout => 0,
            _ => window_to_reach(cwnd, self.last_max_cwnd, self.beta, self.fast_convergence),
        };
        if event.kind == CongestionKind::Timeout {
            self.delay_min = None;
            if let Some(hystart) = &mut self.hystart {
                hystart.reset(event.now, event.snd_nxt);
            }
        }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("last_max_cwnd_segments", self.last_max_cwnd as f64);
        if let Some(epoch) = &self.epoch {
            out.value("k_s", epoch.k_s());
            out.value("tcp_cwnd_segments", epoch.tcp_cwnd() as f64);
            out.value("segments_per_segment", self.count.map_or(0.0, |count| count.cnt as f64));
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

    /// Loses at `cwnd` segments, and gives the limits in avoidance.
    fn after_loss(cubic: &mut dyn CongestionControl, cwnd: u64) -> Limits {
        let mut limits = Limits::initial(MSS * cwnd);
        cubic.on_congestion(&loss(cwnd), &mut limits);
        limits.cwnd = limits.ssthresh;
        limits
    }

    /// Acknowledges a window per RTT from `from`, segment by segment, for `rounds`; gives the time after.
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
    fn a_loss_leaves_seven_tenths_of_the_window_in_whole_segments() {
        let mut limits = Limits::initial(MSS * 100);
        cubic(&[]).on_congestion(&loss(60), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 70, "of the window, not of the flight");
        let mut limits = Limits::initial(MSS * 5);
        cubic(&[]).on_congestion(&loss(5), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 3);
    }

    #[test]
    fn the_window_follows_the_closed_form_up_to_the_plateau() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = after_loss(&mut *cubic, 200);
        let from = Instant::ZERO + Duration::from_secs(1);
        let c = 410.0 / 1024.0;
        let k = libm::pow(60.0 / c, 1.0 / 3.0);
        let mut now = from;
        while now.saturating_since(from).as_secs_f64() < k {
            now = rounds(&mut *cubic, &mut limits, now, 1);
            let t = now.saturating_since(from).as_secs_f64() - k;
            let lead = t + RTT.as_secs_f64();
            let cwnd = limits.cwnd.whole(MSS) as f64;
            assert!(cwnd >= c * t * t * t + 200.0 - 3.0, "{now}: {cwnd}");
            assert!(cwnd <= c * lead * lead * lead + 200.0 + 2.0, "{now}: {cwnd}");
        }
    }

    /// By hand: from 4 to 6 segments K = cbrt(2 / 0.4004) = 1.709 s; the curve reaches 5 after
    /// K - cbrt(1 / 0.4004) = 0.352 s, but whole segments do at once, as 6 - 1.99 is rounded to 5.
    #[test]
    fn at_small_windows_rounding_grows_it_ahead_of_the_curve() {
        let mut cubic = cubic(&[("tcp_friendly", Value::Flag(false))]);
        let mut limits = after_loss(&mut *cubic, 6);
        assert_eq!(limits.cwnd, MSS * 4);
        rounds(&mut *cubic, &mut limits, Instant::ZERO, 2);
        assert_eq!(limits.cwnd, MSS * 5);
    }

    #[test]
    fn a_flat_curve_leaves_growth_to_the_reno_estimate_which_never_grows_faster() {
        let mut cubic = cubic(&[("c", Value::Number(0.001))]);
        let mut limits = after_loss(&mut *cubic, 100);
        rounds(&mut *cubic, &mut limits, Instant::ZERO, 100);
        // 3 (1 - beta) / (1 + beta) = 1 / 1.875 segments per RTT in eighths, beyond the window of the loss too.
        let expected = 70.0 + 100.0 / 1.875;
        assert!((limits.cwnd.whole(MSS) as f64 - expected).abs() <= 3.0, "{} {expected}", limits.cwnd);
    }

    #[test]
    fn before_a_loss_a_segment_takes_twenty_at_most_and_never_less_than_two() {
        let mut flat = cubic(&[]);
        let mut limits = Limits { ssthresh: MSS * 100, ..Limits::initial(MSS * 200) };
        flat.on_ack(&ack(1), &mut limits);
        assert_eq!(probed(&*flat, "segments_per_segment"), 20.0);
        let mut steep = cubic(&[("c", Value::Number(1000.0))]);
        let mut limits = after_loss(&mut *steep, 10);
        rounds(&mut *steep, &mut limits, Instant::ZERO, 5);
        assert_eq!(probed(&*steep, "segments_per_segment"), 2.0);
    }

    #[test]
    fn fast_convergence_aims_lower_only_below_the_last_maximum() {
        let aim = |second| {
            let mut cubic = cubic(&[]);
            after_loss(&mut *cubic, 100);
            after_loss(&mut *cubic, second);
            probed(&*cubic, "last_max_cwnd_segments")
        };
        assert_eq!(aim(99), 84.0);
        assert_eq!(aim(100), 100.0);
    }

    #[test]
    fn a_timeout_forgets_the_curve_and_idle_time_is_left_out_of_it() {
        let mut cubic = cubic(&[]);
        after_loss(&mut *cubic, 100);
        let timeout = Congestion { kind: CongestionKind::Timeout, ..loss(80) };
        cubic.on_congestion(&timeout, &mut Limits::initial(MSS * 80));
        assert_eq!(probed(&*cubic, "last_max_cwnd_segments"), 0.0);
        let mut limits = after_loss(&mut *cubic, 100);
        let now = rounds(&mut *cubic, &mut limits, Instant::ZERO, 10);
        cubic.on_ack(&Ack { now, rtt: Some(RTT), flight_size: Bytes::ZERO, ..ack(1) }, &mut limits);
        let before = limits.cwnd;
        rounds(&mut *cubic, &mut limits, now + Duration::from_secs(3_600), 1);
        assert!(limits.cwnd <= before + MSS * 3, "{before} {}", limits.cwnd);
    }
}
