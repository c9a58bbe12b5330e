//! The common parts of Linux's algorithms of the 2.6 series: windows in whole segments, growth by
//! counting ACKs.

use suimon_units::Bytes;

use super::{Ack, Limits};

/// Grows `cwnd` in slow start; true once it is over, when this ACK belongs to congestion avoidance.
///
/// RFC 5681 §3.1 leaves open what happens where `cwnd` equals `ssthresh`; Linux before 3.15 took that for
/// slow start.
pub(crate) fn slow_start_through_ssthresh(ack: &Ack, limits: &mut Limits) -> bool {
    if limits.cwnd > limits.ssthresh {
        return true;
    }
    limits.cwnd += ack.slow_start_credit();
    false
}

/// `cwnd` times `factor` in whole segments, at least two.
pub(crate) fn scaled_down(limits: &Limits, factor: f64, mss: Bytes) -> Bytes {
    let segments = limits.cwnd.whole(mss) as f64 * factor;
    mss * (segments as u64).max(2)
}

/// Growth by one segment for a number of ACKs, whatever these cover.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedIncrease {
    snd_cwnd_cnt: u64,
}

impl CountedIncrease {
    /// Counts one ACK where one segment is due for `cnt` of them. The ACK that finds the count reached is
    /// not counted itself, so a segment takes one ACK more than `cnt`, as in Linux.
    pub(crate) fn apply(&mut self, cnt: u64, ack: &Ack, limits: &mut Limits) {
        if self.snd_cwnd_cnt >= cnt {
            self.snd_cwnd_cnt = 0;
            limits.cwnd += ack.mss;
        } else {
            self.snd_cwnd_cnt += 1;
        }
    }
}

/// Segments that an ACK covers on average: a moving average with gain 1/16, in sixteenths.
///
/// Linux rounds the old average's share down, so the average rests up to one segment above the true
/// value: from the initial 2 it never falls below 31/16, and a flow without delayed ACKs grows almost
/// twice as fast as intended. Measured results carry that, so it is kept.
#[derive(Debug, Clone)]
pub(crate) struct DelayedAckRatio {
    sixteenths: u64,
}

impl Default for DelayedAckRatio {
    fn default() -> Self {
        // Every second segment is acknowledged until measured (RFC 5681 §4.2).
        Self { sixteenths: 2 << 4 }
    }
}

impl DelayedAckRatio {
    pub(crate) fn update(&mut self, ack: &Ack) {
        let covered = ack.newly_acked.get().div_ceil(ack.mss.get());
        self.sixteenths = self.sixteenths - (self.sixteenths >> 4) + covered;
    }

    /// The number of ACKs that cover `segments`, at least one.
    pub(crate) fn acks_for(&self, segments: u64) -> u64 {
        ((segments << 4) / self.sixteenths).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    #[test]
    fn slow_start_includes_ssthresh_itself() {
        let grown = |cwnd| {
            let mut limits = Limits { ssthresh: MSS * 10, ..Limits::initial(cwnd) };
            let beyond = slow_start_through_ssthresh(&ack(1), &mut limits);
            (beyond, limits.cwnd - cwnd)
        };
        assert_eq!(grown(MSS * 10 - Bytes::new(1)), (false, MSS));
        assert_eq!(grown(MSS * 10), (false, MSS));
        assert_eq!(grown(MSS * 10 + Bytes::new(1)), (true, Bytes::ZERO));
    }

    #[test]
    fn a_reduced_window_is_whole_segments_and_at_least_two() {
        let after = |segments, factor| scaled_down(&Limits::initial(MSS * segments), factor, MSS).whole(MSS);
        assert_eq!(after(100, 819.0 / 1024.0), 79);
        assert_eq!(after(5, 0.5), 2);
        assert_eq!(after(6, 0.5), 3);
        assert_eq!(after(1, 0.5), 2);
    }

    #[test]
    fn a_segment_takes_one_ack_more_than_the_count() {
        let mut increase = CountedIncrease::default();
        let mut limits = Limits::initial(MSS * 10);
        for _ in 0..5 {
            increase.apply(5, &ack(1), &mut limits);
        }
        assert_eq!(limits.cwnd, MSS * 10);
        increase.apply(5, &ack(1), &mut limits);
        assert_eq!(limits.cwnd, MSS * 11);
    }

    #[test]
    fn the_delayed_ack_ratio_follows_what_acks_cover() {
        let mut ratio = DelayedAckRatio::default();
        assert_eq!(ratio.acks_for(20), 10);
        for _ in 0..200 {
            ratio.update(&ack(2));
        }
        assert_eq!(ratio.acks_for(20), 10);
        for _ in 0..200 {
            ratio.update(&ack(4));
        }
        assert_eq!(ratio.acks_for(20), 5);
        assert_eq!(ratio.acks_for(0), 1);
    }

    #[test]
    fn the_delayed_ack_ratio_never_comes_down_to_one() {
        let mut ratio = DelayedAckRatio::default();
        for _ in 0..200 {
            ratio.update(&ack(1));
        }
        assert_eq!(ratio.acks_for(31), 16);
    }
}
