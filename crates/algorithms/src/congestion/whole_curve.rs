//! CUBIC's curve in whole segments, as all versions of Linux have it.

use suimon_units::{Duration, Instant};

/// Acknowledged segments per segment of growth, per segment of window, at or above the curve.
const CNT_AT_THE_CURVE: u64 = 100;

/// A count is kept this long where the window stays as it is (HZ / 32 of Linux).
pub(super) const UPDATE_INTERVAL: Duration = Duration::from_micros(31_250);

/// RTTs this early in an epoch still show the queue that the loss came from.
const DELAY_SETTLES: Duration = Duration::from_secs(1);

/// Congestion avoidance since the last loss. Windows are in segments.
#[derive(Debug, Clone)]
pub(super) struct Epoch {
    pub(super) start: Instant,
    /// Seconds from the start to the curve's origin.
    k: f64,
    origin_point: u64,
    /// ACKs or segments, as the version counts, not yet turned into growth of `tcp_cwnd`.
    pub(super) ack_cnt: u64,
    /// The window Reno would have.
    tcp_cwnd: u64,
}

impl Epoch {
    /// One that begins with a window of `cwnd`, under a curve of steepness `c`.
    pub(super) fn begin(now: Instant, cwnd: u64, last_max_cwnd: u64, c: f64) -> Self {
        let below = last_max_cwnd.saturating_sub(cwnd);
        Self {
            start: now,
            k: libm::cbrt(below as f64 / c),
            origin_point: last_max_cwnd.max(cwnd),
            ack_cnt: 0,
            tcp_cwnd: cwnd,
        }
    }

    /// Seconds behind the curve's origin, negative before it, when data sent now comes back without a queue
    /// (RFC 8312 §4.1 has the RTT).
    pub(super) fn offset(&self, now: Instant, delay: Duration) -> f64 {
        now.saturating_since(self.start).as_secs_f64() + delay.as_secs_f64() - self.k
    }

    /// Acknowledged segments after which a window of `cwnd` grows by one, `offset` seconds behind the origin.
    pub(super) fn segments(&self, offset: f64, cwnd: u64, c: f64) -> u64 {
        // Rounded toward the origin, as Linux's shift of the magnitude does: below it the target is up to a segment
        // ahead of the curve.
        let delta = (c * offset * offset * offset) as i64;
        let bic_target = (self.origin_point as i64).saturating_add(delta);
        let above = bic_target.saturating_sub(cwnd as i64);
        if above > 0 { cwnd / above as u64 } else { CNT_AT_THE_CURVE * cwnd }
    }

    /// The same for Reno's window, which grows by a segment per `ratio` of a window acknowledged (RFC 8312 §4.2); none
    /// where that is no larger than `cwnd`.
    pub(super) fn segments_of_reno(&mut self, cwnd: u64, ratio: f64) -> Option<u64> {
        let per_segment = ((cwnd as f64 * ratio) as u64).max(1);
        // One segment for every full span of ACKs, and none for the span just reached.
        let grown = self.ack_cnt.saturating_sub(1) / per_segment;
        self.tcp_cwnd += grown;
        self.ack_cnt -= grown * per_segment;
        (self.tcp_cwnd > cwnd).then(|| cwnd / (self.tcp_cwnd - cwnd))
    }

    pub(super) fn k_s(&self) -> f64 {
        self.k
    }

    pub(super) fn tcp_cwnd(&self) -> u64 {
        self.tcp_cwnd
    }
}

/// The share of a window that Reno takes for a segment of growth, with `beta` after a loss (RFC 8312 §4.2).
pub(super) fn reno_ratio(beta: f64) -> f64 {
    // Linux rounds this ratio down to eighths.
    libm::floor(8.0 * (1.0 + beta) / (3.0 * (1.0 - beta))) / 8.0
}

/// False where a round-trip time may still show the queue that the last loss came from.
pub(super) fn delay_settled(epoch: Option<&Epoch>, now: Instant) -> bool {
    epoch.is_none_or(|epoch| now.saturating_since(epoch.start) >= DELAY_SETTLES)
}

/// The least RTT of the path, after one more was measured.
pub(super) fn least_delay(
    least: Option<Duration>,
    epoch: Option<&Epoch>,
    now: Instant,
    rtt: Duration,
) -> Option<Duration> {
    if delay_settled(epoch, now) { Some(least.map_or(rtt, |least| least.min(rtt))) } else { least }
}

/// The window to come back to after a loss at `cwnd`: lower where the last was not reached (RFC 8312 §4.6).
pub(super) fn window_to_reach(cwnd: u64, last_max_cwnd: u64, beta: f64, fast_convergence: bool) -> u64 {
    if fast_convergence && cwnd < last_max_cwnd { (cwnd as f64 * (1.0 + beta) / 2.0) as u64 } else { cwnd }
}
