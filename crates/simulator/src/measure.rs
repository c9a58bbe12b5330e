//! What is measured while a scenario runs.

use suimon_algorithms::queue::{Backlog, DropReason};
use suimon_algorithms::{Probe, congestion::CongestionControl};
use suimon_results::{Column, DelayHistogram, QueueResult, RateSpread, Series};
use suimon_scenario as scenario;
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::tcp::{Receiver, Sender};
use crate::windows::QueueWindow;

/// Keeps the books of one queue and link.
#[derive(Debug)]
pub(crate) struct QueueMeter {
    name: String,
    discipline: String,
    colour: &'static str,
    since: Instant,
    totals: QueueTotals,
    backlog: Backlog,
    changed_at: Instant,
    /// What the next sample of the series needs.
    sample: SampleTotals,
    /// Windows that are open.
    windows: Vec<QueueWindow>,
}

#[derive(Debug, Default)]
struct QueueTotals {
    packets: u64,
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

#[derive(Debug, Default)]
struct SampleTotals {
    bytes: Bytes,
    packets: u64,
    delay: Duration,
    dropped: u64,
}

impl QueueMeter {
    pub(crate) fn new(link: &scenario::Link) -> Self {
        Self {
            name: link.name.clone(),
            discipline: link.queue.label().to_owned(),
            colour: link.queue.colour(),
            since: Instant::ZERO,
            totals: QueueTotals::default(),
            backlog: Backlog::default(),
            changed_at: Instant::ZERO,
            sample: SampleTotals::default(),
            windows: Vec::new(),
        }
    }

    /// The window of this index opens; the queue is up to date.
    pub(crate) fn open_window(&mut self, now: Instant, window: usize) {
        self.integrate(now);
        self.windows.push(QueueWindow::new(window));
    }

    /// The window of this index closes; gives the link's name and what its queue did.
    pub(crate) fn close_window(&mut self, now: Instant, window: usize) -> Option<(String, QueueWindow)> {
        self.integrate(now);
        let position = self.windows.iter().position(|open| open.is_of(window))?;
        Some((self.name.clone(), self.windows.remove(position)))
    }

    /// The warm-up is over: begin anew with what waits now.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.totals = QueueTotals { max: self.backlog, ..QueueTotals::default() };
        self.since = now;
        self.changed_at = now;
    }

    pub(crate) fn on_sent(&mut self, size: u32, waited: Duration, marked: bool) {
        let size = Bytes::new(u64::from(size));
        self.totals.packets += 1;
        self.totals.bytes += size;
        if marked {
            self.totals.marked += 1;
            self.windows.iter_mut().for_each(|window| window.marked += 1);
        }
        self.totals.delays.record(waited);
        self.sample.bytes += size;
        self.sample.packets += 1;
        self.sample.delay += waited;
    }

    pub(crate) fn on_dropped(&mut self, reason: DropReason) {
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
        self.sample.dropped += 1;
    }

    #[inline(always)]
    pub(crate) fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
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

    // Few runs have windows, so what they cost stays off the way of the packets of others.
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

    /// `potential` tells how many bytes the link could have sent between two times.
    pub(crate) fn result(
        mut self,
        end: Instant,
        potential: impl FnOnce(Instant, Instant) -> Option<Bytes>,
    ) -> QueueResult {
        self.integrate(end);
        let nanos = end.saturating_since(self.since).as_nanos().max(1) as f64;
        let totals = self.totals;
        QueueResult {
            name: self.name,
            discipline: self.discipline,
            colour: self.colour.to_owned(),
            packets: totals.packets,
            bytes: totals.bytes,
            utilisation: potential(self.since, end).map(|all| totals.bytes.as_f64() / all.as_f64().max(1.0)),
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
    pub(crate) fn sample(&mut self, interval: Duration, probe: &mut dyn Probe) {
        let sample = std::mem::take(&mut self.sample);
        probe.value("backlog_packets", self.backlog.packets as f64);
        probe.value("backlog_bytes", self.backlog.bytes.as_f64());
        let delay = sample.delay.as_millis_f64() / sample.packets as f64;
        probe.value("delay_ms", if sample.packets > 0 { delay } else { f64::NAN });
        probe.value("throughput_bps", Rate::of(sample.bytes, interval).as_bps_f64());
        probe.value("dropped_packets", sample.dropped as f64);
    }
}

/// How a flow's rate varies: a sample of every so many packets.
#[derive(Debug)]
pub(crate) struct SpreadMeter {
    packets_a_sample: u64,
    packets: u64,
    bytes: Bytes,
    since: Instant,
    samples: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl SpreadMeter {
    pub(crate) fn new(packets_a_sample: u64) -> Self {
        Self {
            packets_a_sample,
            packets: 0,
            bytes: Bytes::ZERO,
            since: Instant::ZERO,
            samples: 0,
            sum: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: 0.0,
        }
    }

    /// The first sample begins now.
    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self { since: now, ..Self::new(self.packets_a_sample) };
    }

    /// A packet of `size` has arrived.
    pub(crate) fn on_packet(&mut self, now: Instant, size: u32) {
        self.packets += 1;
        self.bytes += Bytes::new(u64::from(size));
        // Packets that come at once make one sample: it has no rate before the clock moves on.
        if self.packets < self.packets_a_sample || now <= self.since {
            return;
        }
        let rate = self.bytes.as_f64() * 8.0 / now.saturating_since(self.since).as_secs_f64();
        self.samples += 1;
        self.sum += rate;
        self.squares += rate * rate;
        self.min = self.min.min(rate);
        self.max = self.max.max(rate);
        (self.packets, self.bytes, self.since) = (0, Bytes::ZERO, now);
    }

    pub(crate) fn result(&self) -> Option<RateSpread> {
        let mean = (self.samples > 0).then(|| self.sum / self.samples as f64)?;
        let variance = self.squares / self.samples as f64 - mean * mean;
        let rate = |bps: f64| Rate::from_bps(bps.round() as u64);
        Some(RateSpread {
            samples: self.samples,
            mean: rate(mean),
            deviation: rate(variance.max(0.0).sqrt()),
            min: rate(self.min),
            max: rate(self.max),
        })
    }
}

/// The values of one sample of a TCP connection.
pub(crate) fn sample_tcp(sender: &Sender, receiver: &Receiver, probe: &mut dyn Probe) {
    let limits = sender.limits();
    let limit = |bytes: Bytes| if bytes == Bytes::MAX { f64::NAN } else { bytes.as_f64() };
    let millis = |time: Option<Duration>| time.map_or(f64::NAN, Duration::as_millis_f64);
    probe.value("cwnd_bytes", limits.cwnd.as_f64());
    probe.value("ssthresh_bytes", limit(limits.ssthresh));
    probe.value("flight_bytes", sender.flight_size().as_f64());
    probe.value("rtt_ms", millis(sender.counters.rtt_last));
    probe.value("srtt_ms", millis(sender.srtt()));
    let cc: &dyn CongestionControl = sender.cc();
    cc.probe(probe);
    receiver.window().probe(probe);
}

/// A series under construction: every sample adds a value to each column.
#[derive(Debug)]
pub(crate) struct SeriesBuilder {
    series: Series,
}

impl SeriesBuilder {
    pub(crate) fn new(subject: &str) -> Self {
        Self { series: Series { subject: subject.to_owned(), times: Vec::new(), columns: Vec::new() } }
    }

    /// Starts the sample of `now`; the values follow.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.series.times.push(now);
    }

    pub(crate) fn finish(mut self) -> Series {
        self.pad(self.series.times.len());
        self.series
    }

    fn pad(&mut self, len: usize) {
        for column in &mut self.series.columns {
            column.values.resize(len, f64::NAN);
        }
    }
}

impl Probe for SeriesBuilder {
    fn value(&mut self, name: &'static str, value: f64) {
        let rows = self.series.times.len();
        let position = self.series.columns.iter().position(|column| column.name == name);
        let column = match position {
            Some(position) => &mut self.series.columns[position],
            None => {
                self.series.columns.push(Column { name: name.to_owned(), values: Vec::new() });
                self.series.columns.last_mut().expect("a column was just added")
            }
        };
        // A value that was not told in earlier samples has none there.
        column.values.resize(rows.saturating_sub(1), f64::NAN);
        column.values.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_rate_count_the_same_however_long_they_took() {
        let mut meter = SpreadMeter::new(2);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        meter.begin(at(10));
        assert_eq!(meter.result(), None);
        for millis in [11, 20, 21, 40, 50] {
            meter.on_packet(at(millis), 500);
        }
        // 8 kbit in 10 ms and in 20 ms; the fifth packet makes no sample.
        let spread = meter.result().unwrap();
        assert_eq!((spread.samples, spread.min.as_bps(), spread.max.as_bps()), (2, 400_000, 800_000));
        assert_eq!((spread.mean.as_bps(), spread.deviation.as_bps()), (600_000, 200_000));
    }

    #[test]
    fn a_column_that_comes_late_or_stops_early_has_gaps_there() {
        let mut builder = SeriesBuilder::new("x");
        builder.begin(Instant::from_nanos(1));
        builder.value("a", 1.0);
        builder.begin(Instant::from_nanos(2));
        builder.value("b", 2.0);
        let series = builder.finish();
        let column = |index: usize| series.columns[index].values.clone();
        assert_eq!(column(0)[0], 1.0);
        assert!(column(0)[1].is_nan() && column(1)[0].is_nan());
        assert_eq!(column(1)[1], 2.0);
    }
}
