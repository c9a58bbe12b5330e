//! Options of TCP stacks, on which the published numbers depend.

use suimon_algorithms::congestion::AckCounting;
use suimon_units::{Bytes, Duration};

/// The options of a TCP stack, sender and receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct StackProfile {
    /// Name of the profile that this started from.
    pub name: &'static str,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// IP and TCP headers with the options of a data segment; also the size of a pure ACK.
    pub header: Bytes,
    /// Initial window in segments.
    pub initial_window: u32,
    /// How ACKs turn into window growth.
    pub counting: AckCounting,
    /// How `cwnd` moves during fast recovery.
    pub recovery: RecoveryAlgorithm,
    /// When segments count as lost.
    pub loss_detection: LossDetection,
    /// Lost retransmissions are noticed without a timeout.
    pub detects_lost_retransmissions: bool,
    /// Send a segment where nothing was heard for two round-trip times, so that a loss at the end of the flight is
    /// noticed without a timeout (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Timestamps (RFC 7323), which also tell unnecessary retransmissions (RFC 3522).
    pub timestamps: bool,
    /// Which segment's round-trip time congestion control gets of an ACK that covers several.
    pub rtt_sample: RttSample,
    /// Forward RTO-Recovery (RFC 5682).
    pub f_rto: bool,
    /// Initial retransmission timeout (RFC 6298 §2.1).
    pub rto_initial: Duration,
    /// Minimum retransmission timeout.
    pub rto_min: Duration,
    /// Where the retransmission timeout rests on one timed segment at a time (RFC 6298 §3 without timestamps): the step of
    /// the clock that times it, with sums in whole eighths and quarters of a step, as in BSD and ns-2 (Jacobson 1988,
    /// appendix A). Zero: every acknowledgement counts, exactly.
    pub rto_clock: Duration,
    /// What the minimum applies to.
    pub rto_minimum: RtoMinimum,
    /// Spread a window over the round-trip time, at 2 `cwnd / srtt` in slow start and 1.2 later, as Linux does.
    pub pacing: bool,
    /// Negotiate ECN (RFC 3168). Congestion controls that answer marks by their share use it in any case.
    pub ecn: bool,
    /// A SYN that is sent again does not offer ECN (RFC 3168 §6.1.1.1), as in Linux since 4.1 (`tcp_ecn_fallback`).
    pub ecn_fallback: bool,
    /// The least window after a mark, in segments: 2, the least `ssthresh` (RFC 5681 §3.1), or 1, as
    /// RFC 3168 §6.1.2 has it.
    pub mark_floor: u32,
    /// The window with which a sender goes on after a silence.
    pub after_silence: AfterSilence,
    /// When the congestion window may grow, and what a loss halves.
    pub cwnd_validation: CwndValidation,
    /// Acknowledge every second segment, or after `delayed_ack_timeout`; `false` acknowledges each.
    pub delayed_ack: bool,
    /// How long an ACK may be held back.
    pub delayed_ack_timeout: Duration,
    /// That time follows the gaps between segments, and is the least and the first (Linux's `icsk_ack.ato`).
    pub adapt_delayed_ack: bool,
    /// Acknowledge each of the first segments at once, so many of them (Linux's quick ACKs).
    pub quick_acks: u32,
    /// The advertised window grows with the data that comes, and each segment is acknowledged while it grows (Linux's
    /// `tcp_grow_window`). Takes timestamps.
    pub grow_window: bool,
    /// ACKs that only add to a SACK block are held back for a millisecond at most (Linux's SACK compression).
    pub compress_sacks: bool,
    /// The application writes so much at once. The segment that ends a write bears PSH, which Linux's receivers
    /// acknowledge at once (since 6.6, where all has been read). Zero: it never ends.
    pub write: Bytes,
}

/// How `cwnd` moves during fast recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveryAlgorithm {
    /// Straight to `ssthresh`, then send whatever the pipe lets (RFC 6675 §5).
    Rfc6675,
    /// One segment less for every two ACKs (Linux before 3.2), no lower than this share of `ssthresh`.
    RateHalving {
        /// Half of `ssthresh`, as Linux had it, rather than all of it.
        floor_is_half: bool,
    },
    /// Proportional rate reduction (RFC 6937).
    Prr,
    /// The same where an ACK lets a segment more out only if it confirms data in order and shows no further loss
    /// (RFC 9937's `SafeACK`), counted in whole segments of the window before, as Linux does.
    PrrSafeAck,
}

/// When a segment counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossDetection {
    /// Three segments above it were selectively acknowledged (RFC 6675 §4 `IsLost`).
    Rfc6675,
    /// The highest selectively acknowledged byte lies three segments above it (forward
    /// acknowledgement; Mathis, Mahdavi 1996).
    Fack,
    /// Three duplicate acknowledgements came for it, without SACK; the acknowledgement after them ends recovery, and no
    /// other loss is noticed so before all is acknowledged that was sent until then (RFC 5681 §3.2 as in ns-2's Reno,
    /// which leaves further losses of a window to the timeout).
    DuplicateAcks,
    /// A segment sent later was confirmed, and a reordering window has passed since, which is nothing in recovery and
    /// with three segments selectively acknowledged (RFC 8985 §6.2).
    Rack,
}

/// Which of the segments that an ACK covers gives its round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSample {
    /// The first: the time that a delayed ACK was held back counts in (Linux before 3.18).
    Oldest,
    /// The last: the path's time alone.
    Newest,
    /// The last, and rather that of a segment that the ACK confirms selectively, if there is one; where only
    /// retransmissions are acknowledged, the time that timestamps tell (Linux since 3.18). A selective confirmation then
    /// begins the retransmission timeout anew, as long as the first missing segment cannot have been acknowledged yet.
    Delivered,
}

/// The window with which a sender goes on that has sent nothing for longer than the retransmission timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterSilence {
    /// The initial one, and the threshold stays (RFC 5681 §4.1).
    Rfc5681,
    /// Half for each timeout that has passed, and the initial one at least; the threshold rises to three quarters of
    /// what the window was (RFC 2861 §3), as in Linux.
    Rfc2861,
}

/// When the congestion window counts as used, so that it may grow, and what a loss halves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CwndValidation {
    /// Where it was full when the acknowledgement came. A loss halves what is in flight (RFC 5681 §3.1, eq. 4).
    Flight,
    /// Where it was full within the last window of data, or slow start has not brought it to twice what was in flight. A
    /// loss halves the window itself, to whole segments. As in Linux (`tcp_is_cwnd_limited`, `tcp_reno_ssthresh`).
    Window,
}

/// What the minimum retransmission timeout applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoMinimum {
    /// The whole timeout (RFC 6298 §2.4).
    Timeout,
    /// The variance term: `srtt + max(rto_min, 4 rttvar)`.
    Variance,
    /// The variance term, which is the largest `4 rttvar` of the last round trip, goes down by a quarter of the
    /// difference in each, and rises little where round trips get shorter, as in Linux (`tcp_rtt_estimator`).
    LargestVariance,
}

impl StackProfile {
    /// Every profile, the default first.
    const ALL: [Self; 5] =
        [Self::linux_6(), Self::rfc_6675(), Self::linux_2_6_16(), Self::ns_2(), Self::qualnet_3_9()];

    /// The names that [`StackProfile::named`] knows.
    pub const NAMES: &'static [&'static str] = &{
        let mut names = [""; Self::ALL.len()];
        let mut place = 0;
        while place < names.len() {
            names[place] = Self::ALL[place].name;
            place += 1;
        }
        names
    };

    /// The profile called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name == name)
    }

    /// Today's Linux, the default.
    #[must_use]
    pub const fn linux_6() -> Self {
        Self {
            name: "linux-6",
            mss: Bytes::new(1_448),
            header: Bytes::new(52),
            initial_window: 10,
            counting: AckCounting::Delivered,
            recovery: RecoveryAlgorithm::PrrSafeAck,
            loss_detection: LossDetection::Rack,
            detects_lost_retransmissions: true,
            tail_loss_probe: true,
            timestamps: true,
            rtt_sample: RttSample::Delivered,
            f_rto: true,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_millis(200),
            rto_clock: Duration::ZERO,
            rto_minimum: RtoMinimum::LargestVariance,
            pacing: false,
            ecn: false,
            ecn_fallback: true,
            mark_floor: 2,
            after_silence: AfterSilence::Rfc2861,
            cwnd_validation: CwndValidation::Window,
            delayed_ack: true,
            delayed_ack_timeout: Duration::from_millis(40),
            adapt_delayed_ack: true,
            quick_acks: 16,
            grow_window: true,
            compress_sacks: true,
            write: Bytes::ZERO,
        }
    }

    /// Loss recovery by RFC 6675 and RFC 6937, where Linux 6 has RACK, tail loss probes and its own form of
    /// proportional rate reduction; and a receiver that advertises its whole buffer.
    #[must_use]
    pub const fn rfc_6675() -> Self {
        Self {
            name: "rfc-6675",
            counting: AckCounting::Bytes { limit: 64 },
            recovery: RecoveryAlgorithm::Prr,
            loss_detection: LossDetection::Rfc6675,
            tail_loss_probe: false,
            rtt_sample: RttSample::Newest,
            rto_minimum: RtoMinimum::Variance,
            ecn_fallback: false,
            after_silence: AfterSilence::Rfc5681,
            cwnd_validation: CwndValidation::Flight,
            adapt_delayed_ack: false,
            grow_window: false,
            compress_sacks: false,
            ..Self::linux_6()
        }
    }

    /// Linux of paper 1's time: appropriate byte counting, rate halving, FACK.
    #[must_use]
    pub const fn linux_2_6_16() -> Self {
        Self {
            name: "linux-2.6.16",
            initial_window: 2,
            counting: AckCounting::Bytes { limit: 2 },
            recovery: RecoveryAlgorithm::RateHalving { floor_is_half: true },
            loss_detection: LossDetection::Fack,
            rtt_sample: RttSample::Oldest,
            rto_initial: Duration::from_secs(3),
            after_silence: AfterSilence::Rfc2861,
            // Linux acknowledges the first segments at once; paper 1's maxima are those of a receiver
            // that delays from the start.
            quick_acks: 0,
            ..Self::rfc_6675()
        }
    }

    /// ns-2.35's Linux TCP (Wei, Cao 2006): Linux's congestion control over ns-2's SACK recovery.
    #[must_use]
    pub const fn ns_2() -> Self {
        Self {
            name: "ns-2",
            initial_window: 2,
            counting: AckCounting::Bytes { limit: 1 },
            recovery: RecoveryAlgorithm::Rfc6675,
            loss_detection: LossDetection::Fack,
            rtt_sample: RttSample::Oldest,
            f_rto: false,
            rto_initial: Duration::from_secs(3),
            rto_minimum: RtoMinimum::Timeout,
            quick_acks: 0,
            delayed_ack_timeout: Duration::from_millis(100),
            mark_floor: 1,
            ..Self::rfc_6675()
        }
    }

    /// QualNet 3.9's TCP as paper 4 used it: 512-byte segments, no options, an ACK for each.
    #[must_use]
    pub const fn qualnet_3_9() -> Self {
        Self {
            name: "qualnet-3.9",
            mss: Bytes::new(512),
            header: Bytes::new(40),
            initial_window: 2,
            counting: AckCounting::PerAck,
            recovery: RecoveryAlgorithm::Rfc6675,
            detects_lost_retransmissions: false,
            timestamps: false,
            f_rto: false,
            rto_initial: Duration::from_secs(3),
            rto_min: Duration::from_secs(1),
            rto_minimum: RtoMinimum::Timeout,
            delayed_ack: false,
            quick_acks: 0,
            ..Self::rfc_6675()
        }
    }

    /// Size on the wire of a full segment.
    #[must_use]
    pub fn packet_size(&self) -> Bytes {
        self.mss + self.header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_the_profile_of_that_name() {
        for name in StackProfile::NAMES {
            assert_eq!(StackProfile::named(name).unwrap().name, *name);
        }
        assert_eq!(StackProfile::named("linux"), None);
    }

    #[test]
    fn a_full_linux_segment_fills_an_ethernet_packet() {
        assert_eq!(StackProfile::linux_6().packet_size(), Bytes::new(1_500));
    }
}
