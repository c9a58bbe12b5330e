//! How `cwnd` gets from where it was to `ssthresh` once congestion was noticed.

use suimon_model::RecoveryAlgorithm;
use suimon_units::Bytes;

/// The part of an ACK that moves the window during a reduction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Bytes that it confirmed for the first time.
    pub(crate) delivered: Bytes,
    /// Bytes in flight after it.
    pub(crate) flight_size: Bytes,
    /// The slow-start threshold now.
    pub(crate) ssthresh: Bytes,
    /// It moved `snd_una` and showed no further loss (`SafeACK` of RFC 9937).
    pub(crate) is_safe: bool,
}

/// One reduction of the congestion window, from the event to the end of recovery.
#[derive(Debug, Clone)]
pub(crate) struct Reduction {
    /// `None` where congestion control moves the window itself.
    algorithm: Option<RecoveryAlgorithm>,
    /// The window at the end of recovery.
    target: Bytes,
    /// `RecoverFS` of RFC 6937: bytes in flight at the start, for which Linux takes the window.
    flight_at_start: Bytes,
    prr_delivered: Bytes,
    prr_out: Bytes,
    /// An odd number of ACKs has come in.
    odd_ack: bool,
}

impl Reduction {
    /// Begins to bring `cwnd` to `ssthresh` while `flight_size` is in flight. An algorithm may ask for
    /// no reduction at all by a high `ssthresh`; the window does not rise above `cwnd` for that.
    pub(crate) fn new(
        algorithm: Option<RecoveryAlgorithm>,
        cwnd: Bytes,
        ssthresh: Bytes,
        flight_size: Bytes,
    ) -> Self {
        Self {
            algorithm,
            target: ssthresh.min(cwnd),
            flight_at_start: if algorithm == Some(RecoveryAlgorithm::PrrSafeAck) {
                cwnd
            } else {
                flight_size
            },
            prr_delivered: Bytes::ZERO,
            prr_out: Bytes::ZERO,
            odd_ack: false,
        }
    }

    /// The same with nothing left to do.
    pub(crate) fn done(self) -> Self {
        Self { algorithm: None, ..self }
    }

    /// The window after an ACK.
    pub(crate) fn on_ack(&mut self, cwnd: Bytes, progress: Progress, mss: Bytes) -> Bytes {
        let flight_size = progress.flight_size;
        match self.algorithm {
            None => cwnd,
            Some(RecoveryAlgorithm::Rfc6675) => self.target,
            Some(RecoveryAlgorithm::RateHalving { floor_is_half }) => {
                self.odd_ack = !self.odd_ack;
                let floor = if floor_is_half { self.target / 2 } else { self.target };
                let halved = if self.odd_ack { cwnd } else { cwnd.saturating_sub(mss).max(floor.min(cwnd)) };
                halved.min((flight_size + mss).max(if floor_is_half { Bytes::ZERO } else { self.target }))
            }
            Some(RecoveryAlgorithm::Prr) => flight_size + self.proportional(progress, mss, Bytes::new(1)),
            Some(RecoveryAlgorithm::PrrSafeAck) if progress.delivered == Bytes::ZERO => cwnd,
            Some(RecoveryAlgorithm::PrrSafeAck) => {
                // Congestion control may lower it under way, as HyStart does.
                self.target = self.target.min(progress.ssthresh);
                let grant = if progress.is_safe { mss } else { Bytes::ZERO };
                let sndcnt = self.proportional(progress, grant, mss);
                // The first retransmission goes out whatever the rest says.
                let forced = if self.prr_out == Bytes::ZERO { mss } else { Bytes::ZERO };
                flight_size + sndcnt.max(forced)
            }
        }
    }

    /// `sndcnt` of RFC 6937 §3.1, with the slow-start reduction bound and `grant` beyond what was delivered. The share
    /// is rounded up to whole `unit`s.
    fn proportional(&mut self, progress: Progress, grant: Bytes, unit: Bytes) -> Bytes {
        let Progress { delivered, flight_size, .. } = progress;
        self.prr_delivered += delivered;
        if flight_size > self.target {
            let share = self.prr_delivered.get() as u128 * u128::from(self.target.get());
            let allowed = share.div_ceil(u128::from(self.flight_at_start.get().max(1))) as u64;
            Bytes::new(allowed.next_multiple_of(unit.get())).saturating_sub(self.prr_out)
        } else {
            let limit = self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + grant;
            (self.target - flight_size).min(limit)
        }
    }

    /// `sent` bytes were sent during recovery.
    pub(crate) fn on_sent(&mut self, sent: Bytes) {
        self.prr_out += sent;
    }

    /// The window once recovery is over.
    pub(crate) fn exit(&self, cwnd: Bytes) -> Bytes {
        match self.algorithm {
            None => cwnd,
            Some(RecoveryAlgorithm::Rfc6675 | RecoveryAlgorithm::Prr | RecoveryAlgorithm::PrrSafeAck) => {
                self.target
            }
            Some(RecoveryAlgorithm::RateHalving { .. }) => cwnd.min(self.target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1_000);

    /// Sends as the window lets it after each of `acks` ACKs, each for one segment; gives the windows and the amount
    /// sent.
    fn play(algorithm: RecoveryAlgorithm, acks: u64) -> (Vec<u64>, u64) {
        let mut flight = MSS * 20;
        let mut cwnd = MSS * 20;
        let mut sent = 0;
        let mut reduction = Reduction::new(Some(algorithm), cwnd, MSS * 10, flight);
        let mut windows = Vec::new();
        for _ in 0..acks {
            flight -= MSS;
            let progress =
                Progress { delivered: MSS, flight_size: flight, ssthresh: MSS * 10, is_safe: false };
            cwnd = reduction.on_ack(cwnd, progress, MSS);
            while flight + MSS <= cwnd {
                flight += MSS;
                sent += 1;
                reduction.on_sent(MSS);
            }
            windows.push(cwnd.whole(MSS));
        }
        (windows, sent)
    }

    #[test]
    fn proportional_reduction_sends_half_as_much_as_was_delivered_and_ends_at_ssthresh() {
        let (windows, sent) = play(RecoveryAlgorithm::Prr, 20);
        assert_eq!(sent, 10);
        assert_eq!(windows.last(), Some(&10));
        assert!(windows.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn rate_halving_takes_one_segment_for_two_acks_and_stops_at_its_floor() {
        let (windows, sent) = play(RecoveryAlgorithm::RateHalving { floor_is_half: false }, 30);
        assert_eq!(&windows[..4], [20, 19, 19, 18]);
        assert_eq!((windows[29], sent), (10, 20));
        let (windows, _) = play(RecoveryAlgorithm::RateHalving { floor_is_half: true }, 40);
        assert_eq!(windows.last(), Some(&5));
    }

    #[test]
    fn rfc_6675_waits_until_the_flight_fits_ssthresh() {
        let (windows, sent) = play(RecoveryAlgorithm::Rfc6675, 15);
        assert!(windows.iter().all(|window| *window == 10));
        assert_eq!(sent, 5);
    }

    #[test]
    fn no_reduction_asked_for_means_none_and_no_rise() {
        for algorithm in [
            RecoveryAlgorithm::Rfc6675,
            RecoveryAlgorithm::Prr,
            RecoveryAlgorithm::RateHalving { floor_is_half: false },
        ] {
            let reduction = Reduction::new(Some(algorithm), MSS * 20, Bytes::MAX, MSS * 20);
            assert_eq!(reduction.exit(MSS * 20), MSS * 20);
        }
    }
}
