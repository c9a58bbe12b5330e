//! The round-trip times of a packet capture, true and estimated.

use suimon_units::{Bytes, Duration, Instant};

use crate::{DelayHistogram, Series};

/// The result of a study of one capture.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureResult {
    /// The file, or "standard input".
    pub name: String,
    /// Packets in the capture, of whatever kind.
    pub packets: u64,
    /// From the first packet to the last.
    pub duration: Duration,
    /// Packets that said nothing here: reasons, each with a count.
    pub skipped: Vec<(String, u64)>,
    /// Packets that were captured after one with a later time.
    pub out_of_order: u64,
    /// Where the capture ends that was not closed: whole packets before, and the place in bytes.
    pub cut_off: Option<(u64, u64)>,
    /// Packets that carried data in the direction studied; estimators saw these, and no others unless asked.
    pub data_packets: u64,
    /// Flows that carried data, in the order of their first packet.
    pub flows: Vec<CapturedFlow>,
    /// Packets of flows beyond those that are kept.
    pub packets_of_other_flows: u64,
    /// Percentiles of the true round-trip times of all flows.
    pub rtt_percentiles: Option<RttPercentiles>,
    /// The results of each estimator.
    pub estimators: Vec<EstimatorResult>,
    /// Over time: representative RTT, true and estimated, and how many flows there were.
    pub series: Series,
    /// Over time, one table a flow: its true RTT and its estimates.
    pub flow_series: Vec<Series>,
    /// Rows of `flow_series` beyond [`CaptureResult::MAX_FLOW_SAMPLES`], counted only.
    pub flow_samples_not_kept: u64,
}

impl CaptureResult {
    /// How many rows of all flows' series together are kept.
    pub const MAX_FLOW_SAMPLES: usize = 1_000_000;
}

/// One direction of one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedFlow {
    /// Source and destination.
    pub name: String,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// Its first packet.
    pub start: Instant,
    /// Its last packet.
    pub end: Instant,
    /// Packets that carried data.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: Bytes,
    /// Payload of the application, retransmissions included.
    pub payload: Bytes,
    /// True round-trip times.
    pub rtt: RttSummary,
    /// Their percentiles, where there are any.
    pub rtt_percentiles: Option<RttPercentiles>,
    /// What was sent more than once, or came late; `None` where the transport has no sequence numbers.
    pub repeats: Option<Repeats>,
    /// Its data over time, where it is kept.
    pub time_sequence: Option<TimeSequence>,
    /// Their part between the capture and the receiver: mean.
    pub receiver_side_mean: Option<Duration>,
    /// Their part between the capture and the sender: mean.
    pub sender_side_mean: Option<Duration>,
    /// The estimates of each estimator, in the order of [`CaptureResult::estimators`].
    pub estimates: Vec<RttSummary>,
}

impl CapturedFlow {
    /// The share of its packets that the network lost, as far as the sender sent their data again.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let repeats = self.repeats.filter(|_| self.packets > 0)?;
        Some(repeats.lost() as f64 / self.packets as f64)
    }
}

/// Packets of a flow that are not the first copy of their data, or not in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repeats {
    /// Their data had passed the capture before. A sender that took a packet for lost, but was wrong, counts here too.
    pub retransmissions: u64,
    /// Their data had not passed before, but data behind it had, at least a round trip ago: a copy was lost on its way
    /// to the capture.
    pub lost_before: u64,
    /// The same, less than a round trip ago: the network changed the order.
    pub reordered: u64,
}

impl Repeats {
    /// Packets that must have been lost, before the capture or behind it.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.retransmissions + self.lost_before
    }
}

/// Bytes from the first one of a flow over time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeSequence {
    /// The first bytes of packets with new data.
    pub data: Vec<(Instant, u64)>,
    /// The first bytes of packets that were sent again, or came late.
    pub repeats: Vec<(Instant, u64)>,
    /// What the receiver acknowledged.
    pub acknowledged: Vec<(Instant, u64)>,
}

/// Percentiles of round-trip times, within 0.4 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttPercentiles {
    /// The median.
    pub p50: Duration,
    /// 95 % are no longer.
    pub p95: Duration,
    /// 99 % are no longer.
    pub p99: Duration,
}

impl RttPercentiles {
    /// Those of `rtts`; `None` where it has none.
    #[must_use]
    pub fn of(rtts: &DelayHistogram) -> Option<Self> {
        let [p50, p95, p99] = [0.50, 0.95, 0.99].map(|share| rtts.quantile(share));
        (rtts.count() > 0).then_some(Self { p50, p95, p99 })
    }
}

/// Several round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttSummary {
    /// How many.
    pub samples: u64,
    /// The least.
    pub min: Duration,
    /// Their sum; see [`RttSummary::mean`].
    pub sum: Duration,
    /// The largest.
    pub max: Duration,
}

impl RttSummary {
    /// Takes one more in.
    pub fn add(&mut self, rtt: Duration) {
        self.min = if self.samples == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.sum += rtt;
        self.samples += 1;
    }

    /// The mean, where there are any.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.sum / self.samples)
    }
}

/// What a capture proves of an estimator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EstimatorVerdict {
    /// Its errors are at most [`EstimatorResult::CLOSE`].
    Close,
    /// Its errors are at most [`EstimatorResult::ROUGH`].
    Rough,
    /// Its errors are larger: its numbers say nothing of this capture.
    Fails,
    /// The capture proves nothing, so that nobody knows.
    Unknown,
}

impl EstimatorVerdict {
    /// As tables write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Rough => "rough",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

impl EstimatorResult {
    /// Error up to which an estimator is close to the truth.
    pub const CLOSE: f64 = 0.1;
    /// Error up to which it is of some use.
    pub const ROUGH: f64 = 0.3;

    /// The larger of its two errors: of single estimates, and of the representative round-trip time.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let errors = self.error_median.into_iter().chain(self.representative_error);
        errors.reduce(f64::max)
    }

    /// How it compares with what the capture proves.
    #[must_use]
    pub fn verdict(&self) -> EstimatorVerdict {
        match self.error() {
            None => EstimatorVerdict::Unknown,
            Some(error) if error <= Self::CLOSE => EstimatorVerdict::Close,
            Some(error) if error <= Self::ROUGH => EstimatorVerdict::Rough,
            Some(_) => EstimatorVerdict::Fails,
        }
    }
}

/// How one estimator did.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimatorResult {
    /// The estimator as users write it.
    pub name: String,
    /// Its colour, `#rrggbb`.
    pub colour: String,
    /// Estimates of single flows.
    pub estimates: u64,
    /// Of these, how many fell on a flow whose true RTT was known.
    pub judged: u64,
    /// Median of estimate less truth, over truth.
    pub bias_median: Option<f64>,
    /// Median of its absolute value.
    pub error_median: Option<f64>,
    /// Representative RTT: mean over intervals.
    pub representative_mean: Option<Duration>,
    /// True representative RTT: mean over the same intervals.
    pub true_mean: Option<Duration>,
    /// Absolute difference of the two over the true one: mean over these intervals.
    pub representative_error: Option<f64>,
    /// The most memory that it took.
    pub memory: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_extremes_and_mean_and_none_where_there_is_nothing() {
        let mut summary = RttSummary::default();
        assert_eq!(summary.mean(), None);
        for ms in [30, 10, 20] {
            summary.add(Duration::from_millis(ms));
        }
        let ms = Duration::from_millis;
        assert_eq!((summary.min, summary.mean(), summary.max), (ms(10), Some(ms(20)), ms(30)));
    }
}
