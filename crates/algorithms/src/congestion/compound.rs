//! Compound TCP (Tan, Song, Zhang, Sridharan 2006): Reno's loss window plus a delay window, as Linux's
//! port of it counts, with gamma fixed or tuned to the path.
//!
//! Windows are whole segments and ACKs are counted whatever they cover, as in the port. Gamma is tuned as
//! draft-sridharan-tcpm-ctcp-02 has it.

use alloc::boxed::Box;

use suimon_units::{Bytes, Duration};

use super::reno::halved;
use super::window::slow_start_through_ssthresh;
use super::{Ack, Congestion, CongestionControl, CongestionKind, Limits};
use crate::parameters::{Arguments, Parameter, Range, Value};
use crate::probe::Probe;
use crate::registry::Description;

/// The algorithm's name, summary, source and parameters.
pub const DESCRIPTION: Description = Description {
    name: "compound",
    summary: "Reno's window plus one that grows while the queue is short",
    source: "Tan, Song, Zhang, Sridharan: A Compound TCP Approach for High-Speed and Long Distance Networks, 2006",
    colour: "#edc948",
    parameters: &[
        Parameter {
            name: "alpha",
            help: "growth of the delay window, per window to the power k",
            default: Value::Number(0.125),
            range: Range::Between(0.0, 10.0),
        },
        Parameter {
            name: "k",
            help: "power of the window in that growth",
            default: Value::Number(0.75),
            range: Range::Between(0.0, 1.0),
        },
        Parameter {
            name: "gamma",
            help: "segments in the queue from which the delay window shrinks",
            default: Value::Number(30.0),
            range: Range::Between(1.0, 1000.0),
        },
        Parameter {
            name: "tuning",
            help: "gamma as given, or three quarters of what Reno alone would have in the queue at a loss",
            default: Value::Choice("fixed"),
            range: Range::OneOf(&["fixed", "auto"]),
        },
        Parameter {
            name: "zeta",
            help: "segments that the delay window shrinks by for each in the queue",
            default: Value::Number(1.0),
            range: Range::Between(0.0, 10.0),
        },
    ],
};

/// Builds it.
#[must_use]
pub fn build(arguments: &Arguments) -> Box<dyn CongestionControl> {
    Box::new(Compound {
        alpha: arguments.number("alpha"),
        k: arguments.number("k"),
        gamma: arguments.number("gamma"),
        zeta: arguments.number("zeta"),
        tunes: arguments.choice("tuning") == "auto",
        ..Compound::default()
    })
}

/// RTT samples in a round needed for a judgement: with fewer, all of them may be of delayed ACKs.
const ENOUGH_SAMPLES: u32 = 3;

/// Bounds of a tuned gamma, weight of a new sample, and the share of Reno's queue that is a sample.
const TUNED_GAMMA: (f64, f64) = (5.0, 30.0);
const LAMBDA: f64 = 0.8;
const SHARE_OF_RENO: f64 = 0.75;

#[derive(Debug, Clone, Default)]
struct Compound {
    alpha: f64,
    k: f64,
    gamma: f64,
    zeta: f64,
    tunes: bool,
    /// `Diff_reno`: the backlog of the loss window alone in the last round, in segments.
    diff_reno: Option<f64>,
    /// The delay window, in segments; the loss window is the rest of `cwnd`.
    dwnd: u64,
    /// ACKs since the loss window last grew.
    acks: u64,
    /// Smallest RTT of the connection, and of this round with the number of its samples.
    base_rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    samples: u32,
    /// The round ends when this byte is acknowledged.
    beg_snd_nxt: u64,
    /// The window when the round began, in segments.
    beg_win: u64,
    /// Segments in the queue, as judged last.
    diff: f64,
    recovering: bool,
}

impl Compound {
    fn begin_round(&mut self, ack: &Ack, limits: &Limits) {
        self.beg_snd_nxt = ack.snd_nxt;
        self.beg_win = limits.cwnd.whole(ack.mss);
        self.min_rtt = None;
        self.samples = 0;
    }

    /// Congestion avoidance of the loss window: one segment for a whole window of ACKs (eq. 3).
    fn grow_loss_window(&mut self, ack: &Ack, limits: &mut Limits) {
        if self.acks >= limits.cwnd.whole(ack.mss) {
            self.acks = 0;
            limits.cwnd += ack.mss;
        } else {
            self.acks += 1;
        }
    }

    /// Once per round: the delay window grows while the queue is short and gives way when it is not
    /// (eq. 5).
    fn judge(&mut self, ack: &Ack, limits: &mut Limits) {
        let (Some(base_rtt), Some(rtt)) = (self.base_rtt, self.min_rtt) else { return };
        let win = self.beg_win as f64;
        let queued = 1.0 - base_rtt.as_secs_f64() / rtt.as_secs_f64().max(1e-9);
        self.diff = win * queued;
        let before = self.dwnd;
        self.diff_reno = Some((win - before as f64).max(0.0) * queued);
        if self.diff < self.gamma {
            let growth = self.alpha * libm::pow(win, self.k) - 1.0;
            self.dwnd += growth.max(0.0) as u64;
        } else {
            self.dwnd = self.dwnd.saturating_sub((self.zeta * self.diff) as u64);
        }
        let loss_window = limits.cwnd.saturating_sub(ack.mss * before).max(ack.mss * 2);
        limits.cwnd = loss_window.saturating_add(ack.mss * self.dwnd);
    }
}

impl Compound {
    /// A loss: the queue of the round before it is the one that Reno fills.
    fn tune(&mut self) {
        if let Some(diff_reno) = self.diff_reno.take() {
            let sample = SHARE_OF_RENO * diff_reno;
            let smoothed = (1.0 - LAMBDA) * self.gamma + LAMBDA * sample;
            self.gamma = smoothed.clamp(TUNED_GAMMA.0, TUNED_GAMMA.1);
        }
    }
}

impl CongestionControl for Compound {
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        if let Some(rtt) = ack.rtt {
            let smaller = |known: Option<Duration>| Some(known.map_or(rtt, |known| known.min(rtt)));
            self.base_rtt = smaller(self.base_rtt);
            self.min_rtt = smaller(self.min_rtt);
            self.samples += 1;
        }
        if ack.in_recovery || self.recovering {
            // The ACK that ends recovery covers a whole window and grows nothing; a round begins behind it.
            self.recovering = ack.in_recovery;
            self.begin_round(ack, limits);
            return;
        }
        if ack.newly_acked == Bytes::ZERO || !ack.cwnd_limited {
            return;
        }
        if slow_start_through_ssthresh(ack, limits) {
            self.grow_loss_window(ack, limits);
        }
        if ack.snd_una > self.beg_snd_nxt {
            if self.samples >= ENOUGH_SAMPLES && limits.cwnd > limits.ssthresh {
                self.judge(ack, limits);
            }
            self.begin_round(ack, limits);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        limits.ssthresh = halved(event);
        if self.tunes && event.kind != CongestionKind::Timeout {
            self.tune();
            // (5), third case: the loss window is halved, and the delay window gets the rest of half of both.
            let loss_window = limits.cwnd.whole(event.mss).saturating_sub(self.dwnd);
            self.dwnd = limits.ssthresh.whole(event.mss).saturating_sub((loss_window / 2).max(2));
        } else {
            // Both windows together are halved, and all of the half is the loss window.
            self.dwnd = 0;
            self.diff_reno = None;
        }
        self.acks = 0;
        self.recovering = event.kind != CongestionKind::Timeout;
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.value("dwnd_segments", self.dwnd as f64);
        out.value("diff_segments", self.diff);
        out.value("gamma_segments", self.gamma);
    }
}

#[cfg(test)]
mod tests {
    use suimon_units::Instant;

    use super::*;
    use crate::congestion::testing::{MSS, ack, loss};

    fn compound() -> Compound {
        Compound { alpha: 0.125, k: 0.75, gamma: 30.0, zeta: 1.0, ..Compound::default() }
    }

    /// A window in congestion avoidance after a round of `win` segments at `rtt_ms` over 100 ms.
    fn after_round(mut compound: Compound, win: u64, rtt_ms: u64) -> (Compound, u64) {
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * win) };
        compound.base_rtt = Some(Duration::from_millis(100));
        compound.beg_win = win;
        compound.beg_snd_nxt = 1;
        for nth in 0..3 {
            let rtt = Some(Duration::from_millis(rtt_ms));
            let snd_una = if nth == 2 { 2 } else { 1 };
            compound.on_ack(&Ack { rtt, snd_una, now: Instant::ZERO, ..ack(1) }, &mut limits);
        }
        (compound, limits.cwnd.whole(MSS))
    }

    #[test]
    fn the_delay_window_grows_with_the_power_of_the_window_while_the_queue_is_short() {
        // 0.125 x 100^0.75 - 1 = 2.95, in whole segments 2.
        let (compound, cwnd) = after_round(compound(), 100, 100);
        assert_eq!((compound.dwnd, cwnd), (2, 102));
    }

    #[test]
    fn at_gamma_the_delay_window_gives_way_and_the_loss_window_stays() {
        let with = |dwnd| Compound { dwnd, ..compound() };
        // 120 segments at 1.32 times the base: 29.09 in the queue. At 1.34 times: 30.4.
        let (below, _) = after_round(with(40), 120, 132);
        assert!(below.diff < 30.0 && below.dwnd > 40);
        let (above, cwnd) = after_round(with(40), 120, 134);
        assert!(above.diff >= 30.0);
        assert_eq!((above.dwnd, cwnd), (10, 90));
        let (empty, cwnd) = after_round(with(20), 120, 134);
        assert_eq!((empty.dwnd, cwnd), (0, 100));
    }

    #[test]
    fn a_loss_halves_both_windows_together_and_leaves_no_delay_window() {
        let mut compound = Compound { dwnd: 40, ..compound() };
        let mut limits = Limits::initial(MSS * 100);
        compound.on_congestion(&loss(100), &mut limits);
        assert_eq!((limits.ssthresh, compound.dwnd), (MSS * 50, 0));
    }

    #[test]
    fn a_tuned_gamma_follows_what_reno_alone_had_in_the_queue_within_its_bounds() {
        let tuned = |rtt_ms| {
            let tuning = Compound { tunes: true, dwnd: 20, ..compound() };
            let (mut compound, cwnd) = after_round(tuning, 100, rtt_ms);
            let mut limits = Limits::initial(MSS * cwnd);
            compound.on_congestion(&loss(100), &mut limits);
            assert!(compound.diff_reno.is_none(), "one round is judged once");
            compound
        };
        // The loss window has 80 segments: 80 (1 - 100/110) = 7.27 in the queue, 0.2 x 30 + 0.8 x 0.75 x 7.27.
        assert!((tuned(110).gamma - 10.364).abs() < 0.001, "{}", tuned(110).gamma);
        assert_eq!(tuned(400).gamma, 30.0);
        let mut low = tuned(101);
        low.diff_reno = Some(0.1);
        low.tune();
        assert_eq!(low.gamma, 5.0);
        // Half of both windows is 50, half of the loss window 40.
        assert_eq!(tuned(110).dwnd, 10);
    }

    #[test]
    fn a_timeout_tunes_nothing() {
        let mut compound = Compound { tunes: true, dwnd: 20, diff_reno: Some(1.0), ..compound() };
        let mut limits = Limits::initial(MSS * 100);
        compound.on_congestion(&Congestion { kind: CongestionKind::Timeout, ..loss(100) }, &mut limits);
        assert_eq!((compound.gamma, compound.dwnd, compound.diff_reno), (30.0, 0, None));
    }

    #[test]
    fn too_few_samples_are_no_judgement() {
        let mut compound =
            Compound { base_rtt: Some(Duration::from_millis(100)), beg_win: 100, ..compound() };
        let mut limits = Limits { ssthresh: MSS * 2, ..Limits::initial(MSS * 100) };
        compound.on_ack(&Ack { snd_una: 2, ..ack(1) }, &mut limits);
        assert_eq!(compound.dwnd, 0);
    }
}
