//! Whether the congestion window limits the sender, and so may grow.

use suimon_units::Bytes;

/// What Linux remembers of it for a window of data (`tcp_cwnd_validate` of `tcp_output.c`, `tcp_is_cwnd_limited` of
/// `tcp.h`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// The window was full (`is_cwnd_limited`).
    was_full: bool,
    /// Most that was sent and not acknowledged (`max_packets_out`).
    max_outstanding: Bytes,
    /// Both hold until all before is acknowledged (`cwnd_usage_seq`).
    until: u64,
}

impl Usage {
    /// New data was sent, or the window is full; from `snd_una` to `snd_nxt` is not acknowledged.
    pub(super) fn on_sent(&mut self, is_full: bool, snd_una: u64, snd_nxt: u64) {
        let outstanding = Bytes::new(snd_nxt - snd_una);
        if snd_una >= self.until || is_full || (!self.was_full && outstanding > self.max_outstanding) {
            *self = Self { was_full: is_full, max_outstanding: outstanding, until: snd_nxt };
        }
    }

    /// Whether the window may grow: it was full, or slow start has not brought it to twice what was in flight.
    pub(super) fn may_grow(&self, cwnd: Bytes, in_slow_start: bool) -> bool {
        self.was_full || (in_slow_start && cwnd < self.max_outstanding * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CWND: Bytes = Bytes::new(10);

    #[test]
    fn a_full_window_counts_until_what_was_sent_then_is_acknowledged() {
        let mut usage = Usage::default();
        usage.on_sent(true, 0, 10);
        usage.on_sent(false, 9, 12);
        assert!(usage.may_grow(CWND, false), "9 of 10 are acknowledged");
        usage.on_sent(false, 10, 13);
        assert!(!usage.may_grow(CWND, false));
    }

    #[test]
    fn slow_start_goes_on_to_twice_what_was_in_flight() {
        let mut usage = Usage::default();
        usage.on_sent(false, 0, 4);
        usage.on_sent(false, 2, 8);
        assert!(!usage.may_grow(CWND, false));
        assert!(usage.may_grow(Bytes::new(11), true), "six were in flight");
        assert!(!usage.may_grow(Bytes::new(12), true));
    }
}
