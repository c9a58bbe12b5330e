//! How Linux's receivers hold back ACKs that only add to a SACK block (since 4.18, `__tcp_ack_snd_check` and
//! `tcp_sack_compress_send_ack` in `tcp_input.c`), so that several segments behind a gap are answered by one ACK.

use suimon_units::Duration;

/// Duplicate ACKs that always go out at once, so that a sender which counts them retransmits
/// (`TCP_FASTRETRANS_THRESH`).
const MIN_DUPLICATES: u32 = 3;
/// ACKs held back before one goes out (`tcp_comp_sack_nr`).
const MAX_HELD: u32 = 44;
/// How long an ACK is held back at most (`tcp_comp_sack_delay_ns`).
const MAX_DELAY: Duration = Duration::from_millis(1);
/// The same as a share of the round-trip time, in hundredths (`tcp_comp_sack_rtt_percent`; 5 before 6.19).
const RTT_PERCENT: u64 = 33;
/// A further block beside so many lets the held ACK out first (`TCP_SACK_BLOCKS_EXPECTED`).
pub(super) const EXPECTED_BLOCKS: usize = 2;

/// What a receiver has held back of the ACKs for segments behind a gap.
#[derive(Debug, Clone, Default)]
pub(super) struct SackCompression {
    /// The next byte in order when the duplicates were counted.
    rcv_nxt: u64,
    duplicates: u32,
    held: u32,
}

impl SackCompression {
    /// The ACK for a segment that leaves a gap behind `rcv_nxt`: how long it may wait on a path of this round-trip time, or
    /// none where it goes out at once.
    pub(super) fn delay(&mut self, rcv_nxt: u64, rtt: Duration) -> Option<Duration> {
        if self.held >= MAX_HELD {
            return None;
        }
        if self.rcv_nxt != rcv_nxt {
            self.rcv_nxt = rcv_nxt;
            self.duplicates = 0;
        }
        if self.duplicates < MIN_DUPLICATES {
            self.duplicates += 1;
            return None;
        }
        self.held += 1;
        Some(MAX_DELAY.min(rtt * RTT_PERCENT / 100))
    }

    pub(super) fn is_holding(&self) -> bool {
        self.held > 0
    }

    /// Any ACK speaks for those held back.
    pub(super) fn on_ack_sent(&mut self) {
        self.held = 0;
    }
}
