//! HyStart as in Linux's CUBIC: slow start ends before it loses segments, where the ACKs of a round spread over half of
//! the smallest round-trip time, or where round-trip times grow (Ha, Rhee 2011; Linux 6, `tcp_cubic.c`).

use suimon_units::{Bytes, Duration, Instant};

use super::{Ack, Limits};

/// `hystart_low_window`, in segments: below it slow start goes on.
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`: ACKs of one train follow each other within this time.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Samples of a round before its smallest counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Bounds of the growth that ends slow start, an eighth of the smallest round-trip time.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Allowance for ACKs of segments that left the host together: the time of four times this at the sender's rate, but no
/// more than `MAX_ALLOWANCE`.
const GSO_MAX_SIZE: Bytes = Bytes::new(65_536);
const MAX_ALLOWANCE: Duration = Duration::from_millis(1);

/// One connection's search for the end of slow start.
#[derive(Debug, Clone, Default)]
pub(super) struct HyStart {
    /// Slow start was ended; until a timeout it is not ended again.
    found: bool,
    round_start: Instant,
    /// The round ends once this is acknowledged.
    end: u64,
    /// When the last ACK of the train came.
    last_ack: Instant,
    samples: u32,
    /// The smallest round-trip time of the round.
    rtt_min: Option<Duration>,
}

impl HyStart {
    /// Begins anew, with the round of what was sent below `snd_nxt`.
    pub(super) fn reset(&mut self, now: Instant, snd_nxt: u64) {
        *self = Self { round_start: now, last_ack: now, end: snd_nxt, ..Self::default() };
    }

    /// Ends slow start by setting `ssthresh`, if `ack` with the sample `rtt` says so; `delay_min` is the smallest
    /// round-trip time of the connection.
    pub(super) fn on_ack(&mut self, ack: &Ack, rtt: Duration, delay_min: Duration, limits: &mut Limits) {
        if self.found || !limits.in_slow_start() {
            return;
        }
        if ack.snd_una > self.end {
            self.reset(ack.now, ack.snd_nxt);
        }
        if limits.cwnd < ack.mss * LOW_WINDOW {
            return;
        }
        let is_long = self.train_is_long(ack.now, rtt, delay_min, limits.cwnd);
        if is_long || self.delay_grew(rtt, delay_min) {
            self.found = true;
            limits.ssthresh = limits.cwnd;
        }
    }

    fn train_is_long(&mut self, now: Instant, rtt: Duration, delay_min: Duration, cwnd: Bytes) -> bool {
        if now.saturating_since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        // Linux's rate in slow start is two windows per round-trip time.
        let allowance = (rtt * 2).mul_f64(GSO_MAX_SIZE.as_f64() / cwnd.as_f64()).min(MAX_ALLOWANCE);
        now.saturating_since(self.round_start) > (delay_min + allowance) / 2
    }

    fn delay_grew(&mut self, rtt: Duration, delay_min: Duration) -> bool {
        let rtt_min = self.rtt_min.map_or(rtt, |min| min.min(rtt));
        self.rtt_min = Some(rtt_min);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        rtt_min > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::{MSS, ack};

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(64);

    /// Acknowledges a window of `segments` in one round, an ACK every `spacing` with the round-trip time `rtt`; gives
    /// the number of the ACK that ended slow start.
    fn exit(segments: u64, spacing: Duration, rtt: Duration) -> Option<u64> {
        let mut hystart = HyStart::default();
        hystart.reset(Instant::ZERO, 0);
        let mut limits = Limits::initial(MSS * segments);
        (1..=segments).find(|nth| {
            let now = Instant::ZERO + RTT + spacing * *nth;
            let (snd_una, snd_nxt) = ((MSS * *nth).get(), (MSS * segments * 2).get());
            hystart.on_ack(&Ack { now, snd_una, snd_nxt, ..ack(1) }, rtt, RTT, &mut limits);
            !limits.in_slow_start()
        })
    }

    /// An eighth of 64 ms.
    #[test]
    fn nine_samples_above_an_eighth_of_the_least_delay_end_slow_start() {
        assert_eq!(exit(40, MS * 3, RTT + MS * 8), None);
        assert_eq!(exit(40, MS * 3, RTT + MS * 8 + Duration::from_nanos(1)), Some(9));
        assert_eq!(exit(8, MS * 3, RTT * 2), None);
    }

    /// Half of 64 ms and of the allowance of 1 ms: ACK 1 begins the round.
    #[test]
    fn a_train_of_acks_longer_than_half_a_round_trip_ends_slow_start() {
        assert_eq!(exit(40, MS, RTT), Some(34));
        assert_eq!(exit(33, MS, RTT), None);
        assert_eq!(exit(40, MS * 2, RTT), Some(18));
        assert_eq!(exit(40, Duration::from_nanos(2_000_001), RTT), None, "these ACKs are no train");
    }

    #[test]
    fn a_small_window_goes_on() {
        assert_eq!(exit(15, MS * 2, RTT * 2), None);
        assert_eq!(exit(16, MS * 2, RTT * 2), Some(9));
    }

    #[test]
    fn slow_start_is_ended_once_until_a_timeout_begins_anew() {
        let mut hystart = HyStart::default();
        let mut limits = Limits::initial(MSS * 40);
        let mut samples = |hystart: &mut HyStart| {
            limits.ssthresh = Bytes::MAX;
            (0..20).for_each(|_| hystart.on_ack(&Ack { snd_una: 0, ..ack(1) }, RTT * 2, RTT, &mut limits));
            !limits.in_slow_start()
        };
        assert!(samples(&mut hystart));
        assert!(!samples(&mut hystart));
        hystart.reset(Instant::ZERO, 0);
        assert!(samples(&mut hystart));
    }
}
