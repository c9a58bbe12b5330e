//! The statistics of a link: while it runs, and at the end.

use suimon_algorithms::queue::Backlog;
use suimon_link::QueueWindow;
use suimon_linux::schedule::Scheduling;
use suimon_results::{DelayHistogram, QueueResult, Series};
use suimon_units::{Duration, Instant, Rate};

use crate::direction::Refused;
use crate::flows::FlowShare;

/// A link as it was a moment ago: at most the sampling interval.
#[derive(Debug, Clone)]
pub struct LinkStatistics {
    /// The name of the link's first direction.
    pub name: String,
    /// The time of these statistics, by the emulation's clock.
    pub at: Instant,
    /// The link's round-trip time without queueing.
    pub rtt: Duration,
    /// Each direction; the first leads from the first end to the second.
    pub directions: [DirectionStatistics; 2],
    /// The lateness of packets at the far host.
    pub lateness: Lateness,
    /// The kernel's scheduling of the thread that moves the packets.
    pub scheduling: Scheduling,
    /// Packets that hosts sent and that were lost before the emulator saw them, since it was too slow; known at the
    /// end.
    pub unseen: u64,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct DirectionStatistics {
    /// The backlog now.
    pub backlog: Backlog,
    /// The throughput in the latest interval.
    pub throughput: Rate,
    /// The mean sojourn time of packets that left in the latest interval; `None` where nothing left.
    pub sojourn: Option<Duration>,
    /// The totals since the start.
    pub totals: QueueResult,
    /// Packets that never came to the queue.
    pub refused: Refused,
    /// The flows that got most.
    pub flows: Vec<FlowShare>,
    /// The number of flows.
    pub flow_count: u64,
}

impl DirectionStatistics {
    /// Packets that were dropped or lost since the start, for whatever reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.totals.dropped_overflow + self.totals.dropped_early + self.totals.lost_on_link
    }
}

/// The lateness of packets at the far host: the delay that the emulator itself added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Packets given.
    pub packets: u64,
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Largest.
    pub max: Duration,
}

impl Lateness {
    pub(crate) fn of(histogram: &DelayHistogram) -> Self {
        Self {
            packets: histogram.count(),
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
        }
    }
}

/// The statistics of a link from its start to its end.
#[derive(Debug, Clone)]
pub struct LinkReport {
    /// The link's statistics at the end.
    pub statistics: LinkStatistics,
    /// Samples over time, of each direction.
    pub series: [Series; 2],
    /// Samples over time, of the flows of each direction that got much.
    pub flow_series: [Vec<Series>; 2],
    /// The queue of each direction in each window of the setup that opened, in the order in which the windows closed.
    pub windows: [Vec<ClosedWindow>; 2],
    /// The share of each flow in each direction, the largest first.
    pub flows: [Vec<FlowShare>; 2],
}

/// The statistics of a queue in a window of time.
#[derive(Debug, Clone)]
pub struct ClosedWindow {
    /// The number of the window in the setup.
    pub window: usize,
    /// The time of its opening.
    pub from: Instant,
    /// The time of its closing.
    pub to: Instant,
    /// The statistics of the queue.
    pub queue: QueueWindow,
}
