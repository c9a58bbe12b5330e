//! NV: Vegas' successor for data centres, which judges by the largest rate of a round trip (Brakmo 2010; Linux 4.8).
//!
//! Names are those of Linux, `net/ipv4/tcp_nv.c`; integers are rounded as there.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use suimon_units::{Bytes, Duration, Instant};

use super::reno::slow_start;
use super::window::scaled_down;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::random::RandomStream;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "nv",
    summary: "keeps at most ten segments in the queue, by the largest rate of each round trip",
    source: "Brakmo 2010; Linux 6.18",
    colour: "#9c9ede",
    parameters: &[
        Parameter {
            name: "pad",
            help: "segments in the queue above which the window shrinks",
            default: Value::Count(10),
            range: Range::Between(0.0, 1000.0),
        },
        Parameter {
            name: "reset_period",
            help: "time after which the smallest round-trip time is that of late",
            default: Value::Duration(Duration::from_secs(5)),
            range: Range::Any,
        },
    ],
};

/// Builds it with `pad` and `reset_period`.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Nv::new(arguments.count("pad"), arguments.duration("reset_period")))
}

/// `nv_pad_buffer`: so close below `pad` the window rests.
const PAD_BUFFER: u64 = 2;
/// `nv_cong_dec_mult`: 30 % of the excess go, in 1/128.
const DECREASE: u64 = 30 * 128 / 100;
/// `nv_loss_dec_factor`: what a loss leaves, 819 / 1024.
const LOSS_DECREASE: f64 = 819.0 / 1024.0;
/// `nv_cwnd_growth_rate_neg`: judgements without congestion before growth slower than Reno's doubles.
const GROWTH_RATE: u32 = 8;
/// `cwnd_growth_factor` at least.
const LEAST_GROWTH: u32 = 8;
/// Samples of a judgement: to grow, to end slow start, and to shrink.
const ENOUGH_TO_GROW: u32 = 20;
const ENOUGH_TO_END_SLOW_START: u32 = 30;
const ENOUGH_TO_SHRINK: u32 = 60;
/// Round trips before the window may shrink, and after which one that waits for samples stops growing.
const ROUNDS_TO_SHRINK: u32 = 2;
const ROUNDS_TO_STOP: u32 = 10;
/// The smallest window, in segments.
const MIN_WINDOW: u64 = 2;
/// A segment of growth takes so many at least.
const FASTEST: u64 = 4;
/// The first smallest round-trip time counts for this long.
const FIRST_RESET: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
struct Nv {
    pad: u64,
    reset_period: Duration,
    allow_cwnd_growth: bool,
    /// In recovery, so that the samples so far are void behind it.
    reset: bool,
    /// Growth is Reno's divided by two to the power of this.
    slowdown: u32,
    no_cong_cnt: u32,
    eval_call_cnt: u32,
    rtt_cnt: u32,
    last_rtt: u64,
    min_rtt: u64,
    min_rtt_new: u64,
    reset_at: Instant,
    rtt_max_rate: u64,
    rtt_start_seq: u64,
    snd_cwnd_cnt: Bytes,
    /// Ends of what was sent, and `snd_una` of then.
    sent: VecDeque<(u64, u64)>,
    last_snd_una: u64,
}

impl Nv {
    fn new(pad: u64, reset_period: Duration) -> Self {
        Self {
            pad,
            reset_period,
            allow_cwnd_growth: true,
            reset: false,
            slowdown: 0,
            no_cong_cnt: 0,
            eval_call_cnt: 0,
            rtt_cnt: 0,
            last_rtt: 0,
            min_rtt: u64::MAX,
            min_rtt_new: u64::MAX,
            reset_at: Instant::ZERO,
            rtt_max_rate: 0,
            rtt_start_seq: 0,
            snd_cwnd_cnt: Bytes::ZERO,
            sent: VecDeque::new(),
            last_snd_una: 0,
        }
    }

    /// `sample->in_flight`: from `snd_una` when the segment below `snd_una` was sent to its end.
    fn in_flight(&mut self, ack: &Ack) -> u64 {
        if self.sent.back().is_none_or(|(end, _)| *end < ack.snd_nxt) {
            self.sent.push_back((ack.snd_nxt, self.last_snd_una));
        }
        while self.sent.len() > 1 && self.sent.front().is_some_and(|(end, _)| *end < ack.snd_una) {
            self.sent.pop_front();
        }
        self.last_snd_una = ack.snd_una;
        self.sent.front().map_or(0, |(_, una)| ack.snd_una.saturating_sub(*una))
    }

    /// `tcpnv_acked`.
    fn sample(&mut self, ack: &Ack, rtt: Duration, in_flight: u64, limits: &mut Limits) {
        let rtt_us = (rtt.as_nanos() / 1_000).max(1);
        let avg_rtt = if self.last_rtt > 0 {
            rtt_us.saturating_add(self.last_rtt) / 2
        } else {
            self.min_rtt = rtt_us.saturating_mul(2);
            rtt_us
        };
        self.last_rtt = avg_rtt.max(1);
        // In 100 bit/s.
        let rate = u128::from(in_flight) * 80_000 / u128::from(self.last_rtt);
        self.rtt_max_rate = self.rtt_max_rate.max(u64::try_from(rate).unwrap_or(u64::MAX));
        self.eval_call_cnt = (self.eval_call_cnt + 1).min(255);
        self.min_rtt = self.min_rtt.min(self.last_rtt);
        self.min_rtt_new = self.min_rtt_new.min(self.last_rtt);
        if ack.now >= self.reset_at {
            (self.min_rtt, self.min_rtt_new) = (self.min_rtt_new, u64::MAX);
            // Between 3/4 and 5/4 of the period. The time decides, as good as chance.
            let chance = RandomStream::new(ack.now.as_nanos(), "nv").below(256);
            self.reset_at = ack.now + self.reset_period * (384 + chance) / 512;
        }
        if self.rtt_start_seq < ack.snd_una {
            self.rtt_start_seq = ack.snd_nxt;
            self.rtt_cnt = (self.rtt_cnt + 1).min(255);
            self.judge(ack, limits);
        }
    }

    /// The window at which nothing would wait, and `pad` segments.
    fn max_win(&self, mss: Bytes) -> u64 {
        let bytes = u128::from(self.rtt_max_rate) * u128::from(self.min_rtt) / u128::from(80_000 * mss.get());
        u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(self.pad)
    }

    /// Once a round trip.
    fn judge(&mut self, ack: &Ack, limits: &mut Limits) {
        let (mss, cwnd) = (ack.mss, limits.cwnd.whole(ack.mss));
        let max_win = self.max_win(mss);
        if cwnd > max_win {
            if self.rtt_cnt < ROUNDS_TO_SHRINK {
                return;
            }
            if limits.ssthresh == Bytes::MAX {
                if self.eval_call_cnt < ENOUGH_TO_END_SLOW_START {
                    return;
                }
            } else if self.eval_call_cnt < ENOUGH_TO_SHRINK {
                if self.rtt_cnt > ROUNDS_TO_STOP {
                    self.allow_cwnd_growth = false;
                }
                return;
            }
            self.allow_cwnd_growth = false;
            limits.ssthresh = (mss * max_win).max(mss * MIN_WINDOW);
            let excess = cwnd - max_win;
            let less = if excess > 2 { ((excess * DECREASE) >> 7).max(2) } else { excess };
            limits.cwnd = limits.cwnd.min((mss * (cwnd - less)).max(mss * MIN_WINDOW));
            self.no_cong_cnt = 0;
        } else if cwnd.saturating_add(PAD_BUFFER) <= max_win {
            if self.eval_call_cnt < ENOUGH_TO_GROW {
                return;
            }
            self.allow_cwnd_growth = true;
            self.no_cong_cnt += 1;
            if self.slowdown > 0 && self.no_cong_cnt > GROWTH_RATE {
                self.slowdown -= 1;
                self.no_cong_cnt = 0;
            }
        } else {
            return;
        }
        (self.eval_call_cnt, self.rtt_cnt, self.rtt_max_rate) = (0, 0, 0);
    }

    /// `tcpnv_cong_avoid`.
    fn grow(&mut self, ack: &Ack, limits: &mut Limits) {
        if !self.allow_cwnd_growth || !slow_start(ack, limits) {
            return;
        }
        let cnt = if self.slowdown > 0 {
            limits.cwnd * (1 << self.slowdown)
        } else {
            limits.cwnd.max(ack.mss * FASTEST)
        };
        self.snd_cwnd_cnt = self.snd_cwnd_cnt.saturating_add(ack.avoidance_credit());
        if self.snd_cwnd_cnt >= cnt {
            self.snd_cwnd_cnt -= cnt;
            limits.cwnd += ack.mss;
        }
    }

    /// `tcpnv_reset`.
    fn begin_anew(&mut self, ack: &Ack) {
        (self.no_cong_cnt, self.rtt_cnt, self.eval_call_cnt) = (0, 0, 0);
        (self.last_rtt, self.rtt_max_rate, self.rtt_start_seq) = (0, 0, ack.snd_una);
        self.reset = false;
    }
}

impl CongestionControl for Nv {
    fn on_established(&mut self, now: Instant, _limits: &mut Limits) {
        self.reset_at = now + FIRST_RESET;
    }

    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        let in_flight = self.in_flight(ack);
        if ack.in_recovery || ack.newly_acked == Bytes::ZERO {
            return;
        }
        if self.reset {
            self.begin_anew(ack);
        }
        if let Some(rtt) = ack.rtt
            && in_flight > 0
        {
            self.sample(ack, rtt, in_flight, limits);
        }
        if ack.cwnd_limited {
            self.grow(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        self.reset = true;
        self.allow_cwnd_growth = false;
        self.snd_cwnd_cnt = Bytes::ZERO;
        if event.kind == CongestionKind::Timeout {
            self.slowdown = (self.slowdown + 1).min(LEAST_GROWTH);
        }
        limits.ssthresh = scaled_down(limits, LOSS_DECREASE, event.mss);
    }

    fn probe(&self, out: &mut dyn Probe) {
        if self.min_rtt < u64::MAX {
            out.value("min_rtt_ms", self.min_rtt as f64 / 1e3);
        }
        out.value("max_rate_bps", self.rtt_max_rate as f64 * 100.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    /// A round trip of 100 ms is over in which `samples` were taken, with a window of `segments` of which 50 fit.
    fn judged(segments: u64, samples: u32, rounds: u32) -> (Nv, Limits) {
        let mut nv = Nv::new(10, Duration::from_secs(5));
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * segments) };
        (nv.min_rtt, nv.eval_call_cnt, nv.rtt_cnt) = (100_000, samples, rounds);
        // 50 segments in 100 ms, in 100 bit/s.
        nv.rtt_max_rate = 50 * MSS.get() * 8 * 10 / 100;
        nv.judge(&ack(1), &mut limits);
        (nv, limits)
    }

    #[test]
    fn a_window_above_what_fits_and_ten_loses_three_tenths_of_the_excess() {
        // 60 fit with the pad. 30 % are 38 / 128: of 40, 11.875; of 3, at least 2; an excess of two goes at once.
        for (segments, left) in [(100, 89), (63, 61), (62, 60), (61, 60), (60, 60), (59, 59)] {
            let (nv, limits) = judged(segments, 60, 2);
            assert_eq!(limits.cwnd, MSS * left, "{segments}");
            assert_eq!(limits.ssthresh, if segments > 60 { MSS * 60 } else { MSS * 2 });
            assert_eq!(nv.eval_call_cnt, if segments > 60 { 0 } else { 60 }, "between the two it goes on");
        }
    }

    #[test]
    fn too_few_samples_or_round_trips_judge_nothing() {
        for (samples, rounds, judges) in [(59, 2, false), (60, 1, false), (60, 2, true)] {
            assert_eq!(judged(100, samples, rounds).1.cwnd < MSS * 100, judges, "{samples} {rounds}");
        }
        // Without a threshold thirty samples end slow start.
        let mut nv = Nv::new(10, Duration::from_secs(5));
        (nv.min_rtt, nv.eval_call_cnt, nv.rtt_cnt, nv.rtt_max_rate) = (100_000, 30, 2, 1);
        let mut limits = Limits::initial(MSS * 100);
        nv.judge(&ack(1), &mut limits);
        assert_eq!(limits.ssthresh, MSS * 10);
        // To grow takes twenty.
        assert_eq!([19, 20].map(|samples| judged(20, samples, 2).0.no_cong_cnt), [0, 1]);
    }

    #[test]
    fn the_rate_is_the_flight_of_the_segment_over_the_mean_round_trip() {
        let mut nv = Nv::new(10, Duration::from_secs(5));
        nv.reset_at = Instant::MAX;
        let mut limits = Limits::initial(MSS * 10);
        for (rtt, in_flight, last_rtt, rate) in
            [(100, 14_480, 100_000, 11_584), (200, 14_480, 150_000, 11_584)]
        {
            nv.sample(&ack(1), Duration::from_millis(rtt), in_flight, &mut limits);
            assert_eq!((nv.last_rtt, nv.rtt_max_rate), (last_rtt, rate));
        }
        assert_eq!(nv.min_rtt, 100_000);
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_a_timeout_slows_growth() {
        let mut nv = Nv::new(10, Duration::from_secs(5));
        let mut limits = Limits::initial(MSS * 100);
        nv.on_congestion(&loss(100), &mut limits);
        // 100 * 819 / 1024 = 79.98.
        assert_eq!((limits.ssthresh, nv.slowdown), (MSS * 79, 0));
        nv.on_congestion(&Congestion { kind: CongestionKind::Timeout, ..loss(100) }, &mut limits);
        assert_eq!(nv.slowdown, 1);
        // 2 * 10 segments of credit for one of growth.
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 10) };
        nv.allow_cwnd_growth = true;
        (0..19).for_each(|_| nv.grow(&ack(1), &mut limits));
        assert_eq!(limits.cwnd, MSS * 10);
        nv.grow(&ack(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 11);
    }
}
