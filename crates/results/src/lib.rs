//! The result of a run, in any world: flows, queues, events and series.
//!
//! Terminal tables, files, pages and verdicts are views of a [`RunResult`]; a packet capture of a real
//! link yields a [`CaptureResult`].

#![forbid(unsafe_code)]

mod capture;
mod percentiles;

pub use capture::{
    CaptureResult, CapturedFlow, EstimatorResult, EstimatorVerdict, Repeats, RttPercentiles, RttSummary,
    TimeSequence,
};
pub use percentiles::DelayHistogram;
use strum::VariantArray;
use suimon_units::{Bytes, Duration, Instant, Rate};

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunResult {
    /// Name of the scenario.
    pub scenario: String,
    /// The labels of this run within its comparison or matrix: pairs of axis and
    /// value, for example `("cc", "fs-at")`.
    pub labels: Vec<(String, String)>,
    /// The seed.
    pub seed: u64,
    /// How long the run lasted.
    pub duration: Duration,
    /// How long was measured: from the end of the warm-up to the end of the run.
    pub measured: Duration,
    /// One row a flow.
    pub flows: Vec<FlowResult>,
    /// One row an aggregate of flows.
    pub aggregates: Vec<AggregateResult>,
    /// What calls, pings and pages beside the load had, where there were some.
    pub applications: Vec<ApplicationResult>,
    /// One row a reported link.
    pub queues: Vec<QueueResult>,
    /// Events in the order of time; the first ones, as many as the scenario keeps.
    pub events: Vec<Event>,
    /// Events beyond the limit, counted only.
    pub events_not_kept: u64,
    /// Statistics over the scenario's windows: one row a window and reported link.
    pub windows: Vec<WindowResult>,
    /// Samples over time, one table a flow.
    pub flow_series: Vec<Series>,
    /// Samples over time, one table an aggregate of flows.
    pub aggregate_series: Vec<Series>,
    /// Samples over time, one table a reported link.
    pub queue_series: Vec<Series>,
    /// How exact the emulator of each link was; none where links were simulated.
    pub emulated: Vec<EmulatedLink>,
    /// Sentences that a reader should know.
    pub notes: Vec<String>,
}

/// Totals of one flow.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlowResult {
    /// The flow's name.
    pub name: String,
    /// Its algorithm as users write it: `cubic`, `fs-at:mode=fit`, `drs`, `udp`.
    pub algorithm: String,
    /// The algorithm's colour, `#rrggbb`.
    pub colour: String,
    /// When it started.
    pub start: Instant,
    /// When its last byte was acknowledged (UDP: sent), where it has a size and got there.
    pub completed: Option<Instant>,
    /// Payload delivered in order to the application while measured.
    pub delivered: Bytes,
    /// `delivered` over the time from its start (or the end of the warm-up) to its completion (or the end).
    pub goodput: Rate,
    /// Data packets sent while measured, retransmissions included.
    pub packets_sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Data packets of this flow that were lost, by a full buffer or on a link.
    pub packets_lost: u64,
    /// Data packets that got a congestion mark.
    pub packets_marked: u64,
    /// Times that congestion control cut the window for a loss or a mark.
    pub window_cuts: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts or recoveries found to have been unnecessary.
    pub spurious: u64,
    /// Smallest round-trip time measured; `None` for UDP.
    pub rtt_min: Option<Duration>,
    /// Mean of the round-trip times measured.
    pub rtt_mean: Option<Duration>,
    /// Largest round-trip time measured.
    pub rtt_max: Option<Duration>,
    /// How its rate varied, where that was asked for.
    pub rate_spread: Option<RateSpread>,
    /// The time that its datagrams took, where it sent some and some arrived.
    pub datagrams: Option<DatagramDelay>,
}

/// The time that the datagrams of a flow took: to the receiver, or there and back where the receiver echoes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DatagramDelay {
    /// How many arrived, or came back.
    pub packets: u64,
    /// Median.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Longest.
    pub max: Duration,
    /// Mean difference between the times of two datagrams in a row, which RFC 3550 §6.4.1 smooths.
    pub jitter: Duration,
}

/// What somebody beside the load had of the network: a call, a ping, or web pages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ApplicationResult {
    /// What it is.
    pub kind: ApplicationKind,
    /// Packets sent; objects asked for, of pages.
    pub sent: u64,
    /// Those that did not arrive; objects that were not complete at the end of the run.
    pub lost: u64,
    /// The time that its packets took, where some arrived.
    pub delay: Option<DatagramDelay>,
    /// The time that a packet takes over the empty network.
    pub unloaded: Duration,
    /// The time that each complete page took, in order.
    pub completions: Vec<Duration>,
}

/// Applications that suffer from load, told apart by what they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ApplicationKind {
    /// One direction of a call: what its user hears and sees of the other one.
    CallDown,
    /// The other direction: what the other one hears and sees.
    CallUp,
    /// A ping: there and back.
    Ping,
    /// Small web pages.
    Page,
}

impl ApplicationKind {
    /// As tables and files write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallDown => "call down",
            Self::CallUp => "call up",
            Self::Ping => "ping",
            Self::Page => "page",
        }
    }

    /// Whether it is a direction of the call.
    #[must_use]
    pub const fn is_call(self) -> bool {
        matches!(self, Self::CallDown | Self::CallUp)
    }
}

impl ApplicationResult {
    /// The 95th percentile of the time that its packets waited in queues.
    #[must_use]
    pub fn waiting_p95(&self) -> Option<Duration> {
        Some(self.delay?.p95.saturating_sub(self.unloaded))
    }

    /// The share of packets or objects that were lost; zero where none was sent.
    #[must_use]
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }

    /// The median time that a page took.
    #[must_use]
    pub fn completion_median(&self) -> Option<Duration> {
        let mut sorted = self.completions.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }

    /// The longest time that a page took.
    #[must_use]
    pub fn completion_max(&self) -> Option<Duration> {
        self.completions.iter().max().copied()
    }
}

/// How the rate of a flow varied: statistics over samples of so many packets each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RateSpread {
    /// How many samples.
    pub samples: u64,
    /// Their mean, each counting the same however long it took.
    pub mean: Rate,
    /// Their standard deviation.
    pub deviation: Rate,
    /// The lowest.
    pub min: Rate,
    /// The highest.
    pub max: Rate,
}

/// Totals of one stream that several flows carried; the flows have rows of their own.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AggregateResult {
    /// The aggregate's name.
    pub name: String,
    /// Its path scheduler as users write it.
    pub scheduler: String,
    /// The scheduler's colour, `#rrggbb`.
    pub colour: String,
    /// The flows that carried it.
    pub flows: Vec<String>,
    /// When its last byte was acknowledged, where it has a size and got there.
    pub completed: Option<Instant>,
    /// Payload delivered in order to the application while measured.
    pub delivered: Bytes,
    /// `delivered` over the time from its start (or the end of the warm-up) to its completion (or the end).
    pub goodput: Rate,
    /// Payload that arrived a second time, by another path.
    pub duplicates: Bytes,
    /// Bytes that waited at the receiver for data of other flows: mean over time.
    pub reorder_mean_bytes: f64,
    /// Most that waited at once.
    pub reorder_max: Bytes,
    /// Longest time in which nothing reached the application, from the start to its last byte or the end.
    pub longest_stall: Duration,
    /// How often a flow's connection was given up and made anew.
    pub reconnections: u64,
}

/// Totals of one link and the queue before it.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QueueResult {
    /// The link's name.
    pub name: String,
    /// The queue discipline as users write it.
    pub discipline: String,
    /// The discipline's colour, `#rrggbb`.
    pub colour: String,
    /// Packets that left the link.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: Bytes,
    /// `bytes` over the capacity of the link in the time measured; `None` for a link
    /// without a finite rate.
    pub utilisation: Option<f64>,
    /// Packets waiting, without the one being sent: mean over time.
    pub backlog_mean_packets: f64,
    /// The same in bytes.
    pub backlog_mean_bytes: f64,
    /// Most packets that waited at once.
    pub backlog_max_packets: u64,
    /// Most bytes that waited at once.
    pub backlog_max_bytes: Bytes,
    /// Time packets waited before their transmission: mean.
    pub delay_mean: Duration,
    /// Median.
    pub delay_p50: Duration,
    /// 95th percentile.
    pub delay_p95: Duration,
    /// 99th percentile.
    pub delay_p99: Duration,
    /// Longest.
    pub delay_max: Duration,
    /// Packets dropped for want of buffer.
    pub dropped_overflow: u64,
    /// Packets dropped early by the discipline.
    pub dropped_early: u64,
    /// Packets lost on the link itself.
    pub lost_on_link: u64,
    /// Packets marked instead of dropped.
    pub marked: u64,
}

/// How exactly an emulated link did as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EmulatedLink {
    /// The link's name.
    pub name: String,
    /// How the kernel scheduled the thread that moved the packets.
    pub scheduling: String,
    /// Packets given to the hosts.
    pub packets: u64,
    /// Their delay beyond the time that was due: median.
    pub late_p50: Duration,
    /// 99th percentile.
    pub late_p99: Duration,
    /// Most.
    pub late_max: Duration,
    /// Packets lost before the emulator saw them.
    pub unseen: u64,
    /// Why the numbers of the run do not count; none where they do.
    pub objections: Vec<String>,
}

/// Statistics of one link's queue, and of the flows across that link, in one window of time.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WindowResult {
    /// The window's name.
    pub window: String,
    /// The link's name.
    pub link: String,
    /// When it opened.
    pub from: Instant,
    /// When it closed: as asked for, or at the end of the run.
    pub to: Instant,
    /// How often a packet joined or left the queue. The next four fields are of the backlog then, without
    /// the packet being sent.
    pub backlog_records: u64,
    /// Mean over these records; NaN without any, as the next.
    pub backlog_mean_bytes: f64,
    /// Coefficient of variation: standard deviation over mean.
    pub backlog_cov: f64,
    /// Least.
    pub backlog_min_bytes: Bytes,
    /// Most.
    pub backlog_max_bytes: Bytes,
    /// Mean of the backlog over time.
    pub backlog_time_mean_bytes: f64,
    /// Packets dropped for want of buffer.
    pub dropped_overflow: u64,
    /// Packets dropped early by the discipline.
    pub dropped_early: u64,
    /// Packets marked instead of dropped.
    pub marked: u64,
    /// Payload that senders of flows across this link sent for the first time.
    pub entered: Rate,
    /// Coefficient of variation of that over samples; NaN without any.
    pub entered_cov: f64,
    /// Payload of flows across this link that reached the receiving applications.
    pub goodput: Rate,
    /// Coefficient of variation of that over samples; NaN without any.
    pub goodput_cov: f64,
    /// Retransmissions of flows across this link.
    pub retransmissions: u64,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event {
    /// The time of the event.
    pub time: Instant,
    /// The flow: its place in [`RunResult::flows`].
    pub flow: u32,
    /// The kind of the event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EventKind {
    /// The flow started.
    Started,
    /// The flow's data was all delivered.
    Completed,
    /// Fast recovery began.
    Recovery,
    /// The retransmission timer ran out.
    Timeout,
    /// A timeout or recovery was found to have been unnecessary.
    Spurious,
    /// The window was cut for a congestion mark.
    EcnCut,
    /// The connection was given up and made anew.
    Reconnect,
}

impl EventKind {
    /// Every kind at the place of its number.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// As tables and files write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Completed => "completed",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::Spurious => "spurious",
            Self::EcnCut => "ecn-cut",
            Self::Reconnect => "reconnect",
        }
    }
}

/// Samples over time of one flow or queue.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Series {
    /// Name of the flow or link.
    pub subject: String,
    /// When each sample was taken.
    pub times: Vec<Instant>,
    /// The sampled quantities; every column is as long as `times`.
    pub columns: Vec<Column>,
}

/// One sampled quantity.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Column {
    /// Name that ends in the unit: `cwnd_bytes`, `srtt_ms`, `goodput_bps`, `backlog_packets`.
    pub name: String,
    /// The samples; NaN where there was nothing to sample.
    pub values: Vec<f64>,
}

/// Jain's fairness index of `shares`: 1 where all are equal, `1/n` where one has everything (Jain,
/// Chiu, Hawe 1984, eq. 1). Nothing to share is fair.
#[must_use]
pub fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index_of_equal_shares_is_one_and_of_one_taker_one_nth() {
        assert!((jain_index(&[2.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert!((jain_index(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        assert!((jain_index(&[]) - 1.0).abs() < 1e-12);
    }
}
