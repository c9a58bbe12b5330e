//! The window that a Linux receiver advertises: it grows by two segments for each that comes, toward what the buffer allows (Linux 6,
//! `tcp_grow_window` and `tcp_rcv_space_adjust` in `tcp_input.c`). As long as it grows, each segment is acknowledged.
//!
//! Both matter to senders. ACKs of single segments come close together, and so tell HyStart the end of slow start a round
//! earlier. The window holds back senders that would grow more than threefold in a round trip, such as Hybla.

use suimon_units::{Bytes, Duration, Instant};

/// The window of a new connection (`U16_MAX` in `tcp_select_initial_window`).
const INITIAL_WINDOW: Bytes = Bytes::new(65_535);
/// The share of a buffer that payload takes: 1448 bytes lie in 2304 of memory (`scaling_ratio`, in 256ths).
const SCALING_RATIO: u64 = 160;
/// `tcp_rmem[1]`: the buffer at first.
const INITIAL_BUFFER: Bytes = Bytes::new(131_072);
/// Segments that count as read in the round-trip time before the first (`rcvq_space.space`).
const INITIAL_SEGMENTS: u64 = 10;
/// Of the clock of timestamps, in nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// A receiver's slow-start threshold and the clamp above it.
#[derive(Debug, Clone)]
pub(super) struct RcvSsthresh {
    rcv_ssthresh: Bytes,
    window_clamp: Bytes,
    /// No clamp goes beyond it.
    buffer: Bytes,
    /// Most bytes read within a round-trip time.
    space: Bytes,
    /// Where the present round-trip time began, in bytes and in time; the first begins with the connection.
    seq: u64,
    time: Option<Instant>,
    rtt: Duration,
    last_tsecr: Option<u64>,
}

impl RcvSsthresh {
    pub(super) fn new(buffer: Bytes, mss: Bytes) -> Self {
        Self {
            rcv_ssthresh: INITIAL_WINDOW.min(buffer),
            window_clamp: Bytes::new(INITIAL_BUFFER.get() * SCALING_RATIO / 256).min(buffer),
            buffer,
            space: mss * INITIAL_SEGMENTS,
            seq: 0,
            time: None,
            rtt: Duration::ZERO,
            last_tsecr: None,
        }
    }

    /// The largest window to advertise (`__tcp_select_window`).
    pub(super) fn get(&self) -> Bytes {
        self.rcv_ssthresh
    }

    /// A segment came in order, up to `rcv_nxt`, and echoes the timestamp of an ACK of the time `ts_ecr`; whether the
    /// window grew. The application reads it at once.
    #[inline]
    pub(super) fn on_segment(&mut self, now: Instant, rcv_nxt: u64, ts_ecr: Instant, mss: Bytes) -> bool {
        self.measure(now, ts_ecr);
        let grew = self.grow(mss);
        if now.saturating_since(*self.time.get_or_insert(now)) >= self.rtt {
            self.adjust(now, rcv_nxt);
        }
        grew
    }

    /// A segment came, in order or behind a gap; whether the window grew.
    #[inline]
    pub(super) fn grow(&mut self, mss: Bytes) -> bool {
        let grows = self.rcv_ssthresh < self.window_clamp;
        if grows {
            self.rcv_ssthresh = (self.rcv_ssthresh + mss * 2).min(self.window_clamp);
        }
        grows
    }

    /// The round-trip time by timestamps, which count milliseconds: a shorter one counts at once, a longer one as an
    /// eighth (`tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`).
    #[inline]
    fn measure(&mut self, now: Instant, ts_ecr: Instant) {
        let tsecr = ts_ecr.as_nanos() / MILLISECOND;
        if self.last_tsecr.replace(tsecr) == Some(tsecr) {
            return;
        }
        let sample = Duration::from_millis(now.as_nanos() / MILLISECOND - tsecr);
        let is_first = self.rtt == Duration::ZERO;
        self.rtt = if is_first || sample < self.rtt { sample } else { self.rtt + (sample - self.rtt) / 8 };
    }

    /// Dynamic right-sizing: a sender that doubles its rate needs twice what was read in the last round-trip time, and
    /// twice the growth more.
    #[cold]
    fn adjust(&mut self, now: Instant, rcv_nxt: u64) {
        let copied = Bytes::new(rcv_nxt - self.seq);
        if copied > self.space {
            let window = copied * 2;
            let growth = window.as_f64() * (copied - self.space).as_f64() / self.space.as_f64();
            let window = (window + Bytes::from_f64(2.0 * growth)).min(self.buffer);
            self.window_clamp = self.window_clamp.max(window);
            self.space = copied;
        }
        (self.seq, self.time) = (rcv_nxt, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1_448);
    const RTT: Duration = Duration::from_millis(50);

    /// How many segments of each round-trip time the window grew with, for a sender that sends so many in each.
    fn grew(window: &mut RcvSsthresh, sent: &[u64]) -> Vec<usize> {
        let (mut rcv_nxt, mut start) = (0, Instant::ZERO);
        let round = |&segments: &u64| {
            let grown = (0..segments).filter(|nth| {
                rcv_nxt += MSS.get();
                let asked = start + RTT * *nth / segments;
                window.on_segment(asked + RTT, rcv_nxt, asked, MSS)
            });
            let count = grown.count();
            start += RTT;
            count
        };
        sent.iter().map(round).collect()
    }

    #[test]
    fn the_window_grows_while_the_sender_doubles_and_stops_once_its_rate_is_steady() {
        let mut window = RcvSsthresh::new(Bytes::new(4_000_000), MSS);
        let counts = grew(&mut window, &[10, 20, 40, 80, 160, 160, 160, 160]);
        // The first six take the room of the buffer at first, (81920 - 65535) / 2896. The first segment of a round ends the
        // measurement of the one before: 11 segments instead of 10 ask for 22 + 2 * 22 / 10, fewer than there is room
        // for. Then 20 instead of 11 ask for 40 + 2 * 40 * 9 / 11, and 40 instead of 20 for 240, 80 for 480, 160 for 960.
        // The window grows from the segment behind the measurement on.
        assert_eq!(counts, [6, 0, 25, 68, 120, 159, 81, 0]);
        assert_eq!(window.rcv_ssthresh, window.window_clamp);
    }

    #[test]
    fn it_never_grows_beyond_the_buffer() {
        let mut window = RcvSsthresh::new(Bytes::new(60_000), MSS);
        assert_eq!(grew(&mut window, &[10, 20, 40, 80]), [0; 4]);
        let mut window = RcvSsthresh::new(Bytes::new(100_000), MSS);
        let counts = grew(&mut window, &[10, 20, 40, 80]);
        assert_eq!(counts, [6, 0, 7, 0], "34465 bytes are room for two segments twelve times");
    }
}
