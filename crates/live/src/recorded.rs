//! A queue of the kernel, made again from the record of every packet that came to it.

use std::collections::VecDeque;

use suimon_algorithms::queue::Backlog;
use suimon_algorithms::queue::policy::Verdict;
use suimon_emulator::{ClosedWindow, DirectionStatistics, Refused};
use suimon_link::QueueMeter;
use suimon_linux::Clock;
use suimon_linux::queue_trace::Record;
use suimon_model::{Link, Record as Measured, Window};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::plan::rate_of;

/// What was seen of a queue.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// A discipline of the kernel's own decides, and the program only records.
    pub(crate) watched_only: bool,
    pub(crate) records: Vec<Record>,
    /// Of such a discipline: its drops and marks at each of the times that were asked for.
    pub(crate) counted: Vec<(Instant, Counted)>,
}

/// What a discipline has counted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) drops: u64,
    pub(crate) marks: u64,
}

/// One direction of a link, from its records.
pub(crate) struct Way {
    pub(crate) statistics: DirectionStatistics,
    pub(crate) windows: Vec<ClosedWindow>,
}

impl Way {
    pub(crate) fn of(link: &Link, mut seen: Seen, measured: &Measured, clock: Clock, end: Instant) -> Self {
        let rate = rate_of(link);
        let mut again = Again::new(link, rate.unwrap_or(Rate::MAX), measured);
        // Records of several processors come in another order than their packets.
        seen.records.sort_by_key(|record| record.number);
        for record in &seen.records {
            let now = clock.at_monotonic(record.now_ns);
            if now > Instant::ZERO && now < end {
                if seen.watched_only { again.on_backlog(now, record) } else { again.on_packet(now, record) }
            }
        }
        again.finish(end);
        if seen.watched_only {
            again.count(&seen.counted);
        }
        again.report(end, rate)
    }
}

/// A queue made again from the packets that came to it, counted as the simulator counts its own: what waits, without the
/// packet that is being sent, whenever a packet joins or leaves.
struct Again<'a> {
    meter: QueueMeter,
    rate: Rate,
    /// When the packets that came so far will all be sent.
    free: Instant,
    /// Packets that wait: when each leaves, its size, how long it will have waited, and whether it was marked.
    waiting: VecDeque<(Instant, Bytes, Duration, bool)>,
    backlog: Backlog,
    specs: &'a [Window],
    /// Openings and closings of windows, and the end of the warm-up (`None`); the latest first.
    due: Vec<(Instant, Option<(usize, bool)>)>,
    closed: Vec<ClosedWindow>,
    dropped: u64,
    marked: u64,
}

impl<'a> Again<'a> {
    fn new(link: &Link, rate: Rate, measured: &'a Measured) -> Self {
        let specs = measured.windows.as_slice();
        let mut due = vec![(Instant::ZERO + measured.warmup, None)];
        for (index, window) in specs.iter().enumerate() {
            due.extend([(window.from, Some((index, true))), (window.to, Some((index, false)))]);
        }
        due.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            meter: QueueMeter::new(link),
            rate,
            free: Instant::ZERO,
            waiting: VecDeque::new(),
            backlog: Backlog::default(),
            specs,
            due,
            closed: Vec::new(),
            dropped: 0,
            marked: 0,
        }
    }

    /// A packet of a first-in-first-out queue whose verdicts are known.
    fn on_packet(&mut self, now: Instant, record: &Record) {
        self.proceed(now);
        let verdict = record.verdict();
        if let Some(Verdict::Drop(reason)) = verdict {
            return self.meter.on_dropped(reason);
        }
        let (size, marked) = (Bytes::new(record.size_bytes), verdict == Some(Verdict::Mark));
        let turn = now.max(self.free);
        self.free = turn + self.rate.transmission_time(size);
        if turn > now {
            self.waiting.push_back((turn, size, turn.saturating_since(now), marked));
            self.joins(now, size);
        } else {
            self.meter.on_sent(size.get() as u32, Duration::ZERO, marked);
        }
    }

    /// A packet of any other queue, by the backlog that it finds. Packets that leave find the lengths that packets which
    /// come do, since a queue falls below each length as often as it rises above.
    fn on_backlog(&mut self, now: Instant, record: &Record) {
        self.proceed(now);
        let size = Bytes::new(record.size_bytes);
        let waits = self.rate.transmission_time(Bytes::new(record.backlog_bytes));
        let turn = now.max(self.free).min(now + waits + self.rate.transmission_time(Bytes::new(1_500)));
        self.free = turn + self.rate.transmission_time(size);
        let found = Backlog { packets: record.backlog_packets, bytes: Bytes::new(record.backlog_bytes) };
        self.backlog = found;
        self.meter.on_backlog(now, found);
        self.meter.on_sent(size.get() as u32, turn.saturating_since(now), false);
        if record.backlog_bytes > 0 || turn > now {
            self.joins(now, size);
        }
    }

    fn joins(&mut self, now: Instant, size: Bytes) {
        self.backlog = Backlog { packets: self.backlog.packets + 1, bytes: self.backlog.bytes + size };
        self.meter.on_backlog(now, self.backlog);
    }

    /// What happens until `now`: packets leave, windows open and close.
    fn proceed(&mut self, now: Instant) {
        loop {
            let leaves = self.waiting.front().map_or(Instant::MAX, |(turn, ..)| *turn);
            let due = self.due.last().map_or(Instant::MAX, |(at, _)| *at);
            if leaves.min(due) > now {
                return;
            }
            if due <= leaves {
                self.pass_mark();
            } else if let Some((turn, size, waited, marked)) = self.waiting.pop_front() {
                let Backlog { packets, bytes } = self.backlog;
                self.backlog = Backlog { packets: packets - 1, bytes: bytes - size };
                self.meter.on_sent(size.get() as u32, waited, marked);
                self.meter.on_backlog(turn, self.backlog);
            }
        }
    }

    fn pass_mark(&mut self) {
        match self.due.pop() {
            Some((at, None)) => self.meter.restart(at),
            Some((at, Some((window, true)))) => self.meter.open_window(at, window),
            Some((at, Some((window, false)))) => self.close(at, window),
            None => {}
        }
    }

    fn close(&mut self, at: Instant, window: usize) {
        if let Some((_, queue)) = self.meter.close_window(at, window) {
            self.closed.push(ClosedWindow { window, from: self.specs[window].from, to: at, queue });
        }
    }

    fn finish(&mut self, end: Instant) {
        self.proceed(end);
        for window in 0..self.specs.len() {
            self.close(end, window);
        }
    }

    /// Drops and marks in windows, and since the warm-up, of a discipline that counts them itself.
    fn count(&mut self, counted: &[(Instant, Counted)]) {
        let at = |time: Instant| {
            let found = counted.iter().find(|(at, _)| *at >= time).or(counted.last());
            found.map_or_else(Counted::default, |(_, counted)| *counted)
        };
        for closed in &mut self.closed {
            let (from, to) = (at(closed.from), at(closed.to));
            closed.queue.early = to.drops - from.drops;
            closed.queue.marked = to.marks - from.marks;
        }
        let (first, last) = (counted.first(), counted.last());
        if let (Some((_, first)), Some((_, last))) = (first, last) {
            (self.dropped, self.marked) = (last.drops - first.drops, last.marks - first.marks);
        }
    }

    fn report(self, end: Instant, rate: Option<Rate>) -> Way {
        let potential = |from: Instant, to: Instant| Some(rate?.amount_in(to.saturating_since(from)));
        let mut totals = self.meter.result(end, potential);
        totals.dropped_early += self.dropped;
        totals.marked += self.marked;
        let statistics = DirectionStatistics {
            backlog: Backlog::default(),
            throughput: Rate::ZERO,
            sojourn: None,
            totals,
            refused: Refused::default(),
            flows: Vec::new(),
            flow_count: 0,
        };
        Way { statistics, windows: self.closed }
    }
}

#[cfg(test)]
mod tests {
    use suimon_scenario::{LinkSpec, drop_tail};

    use super::*;

    fn record(number: u64, verdict: u32) -> Record {
        Record {
            number,
            now_ns: 0,
            backlog_bytes: 0,
            backlog_packets: 0,
            size_bytes: 1_250,
            flow: 1,
            ecn: 2,
            opens_connection: 0,
            verdict,
            segments: 1,
        }
    }

    #[test]
    fn a_queue_made_again_holds_what_waits_behind_the_packet_that_is_sent() {
        let [link, _] = LinkSpec::parse("1Mbit 10ms 100kB").unwrap().links(&drop_tail());
        let window = Window {
            name: "w".to_owned(),
            from: Instant::ZERO,
            to: Instant::from_nanos(100_000_000),
            sample: Duration::from_millis(100),
        };
        let measured = Measured { windows: vec![window], ..Measured::default() };
        let mut again = Again::new(&link, Rate::from_bps(1_000_000), &measured);
        // 10 ms each: one is sent from 1 ms on, two wait, of which one is marked; one is dropped, and one finds no room.
        let at = Instant::from_nanos(1_000_000);
        for (number, verdict) in [(0, 0), (1, 1), (2, 0), (3, 2), (4, 3)] {
            again.on_packet(at, &record(number, verdict));
        }
        again.finish(Instant::from_nanos(100_000_000));
        let way = again.report(Instant::from_nanos(100_000_000), Some(Rate::from_bps(1_000_000)));
        let queue = &way.windows[0].queue;
        // It rises to one and two, and falls to one and none.
        assert_eq!((queue.lengths.count, queue.lengths.extremes), (4, Some((0, 2_500))));
        assert_eq!(queue.lengths.mean(), 1_250.0);
        assert_eq!((queue.marked, queue.early, queue.overflow), (1, 1, 1));
        let totals = way.statistics.totals;
        assert_eq!((totals.packets, totals.bytes, totals.marked), (3, Bytes::new(3_750), 1));
        assert_eq!(totals.delay_max, Duration::from_millis(20));
        // 2500 B wait for 10 ms and 1250 B for 10 ms, of 100.
        assert_eq!(totals.backlog_mean_bytes, 375.0);
    }
}
