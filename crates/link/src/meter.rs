//! The statistics of a queue and the link behind it.

use suimon_algorithms::Probe;
use suimon_algorithms::queue::{Backlog, DropReason};
use suimon_model as scenario;
use suimon_results::{DelayHistogram, QueueResult};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::window::QueueWindow;

/// The statistics of one queue and link.
#[derive(Debug, Clone)]
pub struct QueueMeter {
    name: String,
    discipline: String,
    colour: String,
    since: Instant,
    totals: QueueTotals,
    backlog: Backlog,
    changed_at: Instant,
    /// The totals sent at the last sample of the series, and the drops since.
    sampled: Sent,
    dropped: u64,
    /// Windows that are open.
    windows: Vec<QueueWindow>,
}

#[derive(Debug, Clone, Default)]
struct QueueTotals {
    bytes: Bytes,
    marked: u64,
    overflow: u64,
    early: u64,
    lost_on_link: u64,
    max: Backlog,
    /// Integrals over time, in packet-nanoseconds and byte-nanoseconds.
    packet_time: u128,
    byte_time: u128,
    delays: DelayHistogram,
}

/// The totals sent, with the time in the queue in nanoseconds. Only differences count, which may wrap.
#[derive(Debug, Clone, Default)]
struct Sent {
    packets: u64,
    bytes: u64,
    delay: u64,
}

impl Sent {
    fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.wrapping_sub(before.packets),
            bytes: self.bytes.wrapping_sub(before.bytes),
            delay: self.delay.wrapping_sub(before.delay),
        }
    }
}

impl QueueMeter {
    /// The meter of `link`, empty and since the beginning.
    #[must_use]
    pub fn new(link: &scenario::Link) -> Self {
        Self {
            name: link.name.clone(),
            discipline: link.queue.label().to_owned(),
            colour: link.queue.colour().to_owned(),
            since: Instant::ZERO,
            totals: QueueTotals::default(),
            backlog: Backlog::default(),
            changed_at: Instant::ZERO,
            sampled: Sent::default(),
            dropped: 0,
            windows: Vec::new(),
        }
    }

    /// The link's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The window of this index opens; the queue is up to date.
    pub fn open_window(&mut self, now: Instant, window: usize) {
        self.integrate(now);
        self.windows.push(QueueWindow::new(window));
    }

    /// Closes the window of this index; gives the link's name and the queue's statistics.
    pub fn close_window(&mut self, now: Instant, window: usize) -> Option<(String, QueueWindow)> {
        self.integrate(now);
        let position = self.windows.iter().position(|open| open.is_of(window))?;
        Some((self.name.clone(), self.windows.remove(position)))
    }

    /// The warm-up is over: begins anew with the present backlog.
    pub fn restart(&mut self, now: Instant) {
        self.sampled = self.sampled.since(&self.sent());
        self.totals = QueueTotals { max: self.backlog, ..QueueTotals::default() };
        self.since = now;
        self.changed_at = now;
    }

    /// A packet left that had `waited` so long, newly `marked` or not.
    pub fn on_sent(&mut self, size: u32, waited: Duration, marked: bool) {
        self.totals.bytes += Bytes::new(u64::from(size));
        if marked {
            self.totals.marked += 1;
            self.windows.iter_mut().for_each(|window| window.marked += 1);
        }
        self.totals.delays.record(waited);
    }

    fn sent(&self) -> Sent {
        let QueueTotals { bytes, delays, .. } = &self.totals;
        Sent { packets: delays.count(), bytes: bytes.get(), delay: delays.sum().as_nanos() }
    }

    /// A packet was dropped or lost.
    pub fn on_dropped(&mut self, reason: DropReason) {
        match reason {
            DropReason::Overflow => {
                self.totals.overflow += 1;
                self.windows.iter_mut().for_each(|window| window.overflow += 1);
            }
            DropReason::Early => {
                self.totals.early += 1;
                self.windows.iter_mut().for_each(|window| window.early += 1);
            }
            DropReason::Link => self.totals.lost_on_link += 1,
        }
        self.dropped += 1;
    }

    /// The backlog from `now` on.
    #[inline(always)]
    pub fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
        self.integrate(now);
        if !self.windows.is_empty() {
            self.record_in_windows(backlog);
        }
        self.backlog = backlog;
        let max = &mut self.totals.max;
        max.packets = max.packets.max(backlog.packets);
        max.bytes = max.bytes.max(backlog.bytes);
    }

    fn integrate(&mut self, now: Instant) {
        let time = u128::from(now.saturating_since(self.changed_at).as_nanos());
        self.totals.packet_time += u128::from(self.backlog.packets) * time;
        let byte_time = u128::from(self.backlog.bytes.get()) * time;
        self.totals.byte_time += byte_time;
        if !self.windows.is_empty() {
            self.add_to_windows(byte_time);
        }
        self.changed_at = now;
    }

    // Few runs have windows, so their cost stays off the way of the packets of others.
    #[cold]
    fn record_in_windows(&mut self, backlog: Backlog) {
        if backlog != self.backlog {
            self.windows.iter_mut().for_each(|window| window.record(backlog.bytes));
        }
    }

    #[cold]
    fn add_to_windows(&mut self, byte_time: u128) {
        self.windows.iter_mut().for_each(|window| window.byte_time += byte_time);
    }

    /// The result until `end`; `potential` tells how many bytes the link could have sent between two times.
    #[must_use]
    pub fn result(
        mut self,
        end: Instant,
        potential: impl FnOnce(Instant, Instant) -> Option<Bytes>,
    ) -> QueueResult {
        self.integrate(end);
        let nanos = end.saturating_since(self.since).as_nanos().max(1) as f64;
        let totals = self.totals;
        // A packet under way at the end counts whole, so that a link that is always busy may seem to send a packet more.
        let used = |all: Bytes| (totals.bytes.as_f64() / all.as_f64().max(1.0)).min(1.0);
        QueueResult {
            name: self.name,
            discipline: self.discipline,
            colour: self.colour,
            packets: totals.delays.count(),
            bytes: totals.bytes,
            utilisation: potential(self.since, end).map(used),
            backlog_mean_packets: totals.packet_time as f64 / nanos,
            backlog_mean_bytes: totals.byte_time as f64 / nanos,
            backlog_max_packets: totals.max.packets,
            backlog_max_bytes: totals.max.bytes,
            delay_mean: totals.delays.mean(),
            delay_p50: totals.delays.quantile(0.5),
            delay_p95: totals.delays.quantile(0.95),
            delay_p99: totals.delays.quantile(0.99),
            delay_max: totals.delays.max(),
            dropped_overflow: totals.overflow,
            dropped_early: totals.early,
            lost_on_link: totals.lost_on_link,
            marked: totals.marked,
        }
    }

    /// The values of one sample over the `interval` before it.
    pub fn sample(&mut self, interval: Duration, probe: &mut dyn Probe) {
        let sent = self.sent();
        let new = sent.since(&self.sampled);
        self.sampled = sent;
        probe.value("backlog_packets", self.backlog.packets as f64);
        probe.value("backlog_bytes", self.backlog.bytes.as_f64());
        let delay = Duration::from_nanos(new.delay).as_millis_f64() / new.packets as f64;
        probe.value("delay_ms", if new.packets > 0 { delay } else { f64::NAN });
        probe.value("throughput_bps", Rate::of(Bytes::new(new.bytes), interval).as_bps_f64());
        probe.value("dropped_packets", std::mem::take(&mut self.dropped) as f64);
    }
}
