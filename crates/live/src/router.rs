//! Links of the kernel's own devices: a pair of them each, with a token bucket and a queue discipline where a link has a
//! rate, and every packet that comes to it recorded.

use std::collections::VecDeque;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time;

use suimon_algorithms::queue::{Backlog, DropReason};
use suimon_emulator::{ClosedWindow, DirectionStatistics, Lateness, LinkReport, LinkStatistics, Refused};
use suimon_link::{QueueMeter, SeriesBuilder};
use suimon_linux::queue::{self, Loaded, Options, Record, Trace};
use suimon_linux::schedule::Scheduling;
use suimon_linux::{Clock, Namespace};
use suimon_model::{Link, Scenario, Window};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::discipline::{Discipline, bytes_of};
use crate::error::LiveError;
use crate::plan::{Plan, PlannedLink, rate_of};

/// The links of a scenario, as long as this lives.
#[derive(Debug)]
pub(crate) struct Routers {
    clock: Clock,
    links: Vec<[Option<Watched>; 2]>,
}

/// The queue of one direction of a link, and a thread that reads its records.
#[derive(Debug)]
struct Watched {
    host: Namespace,
    loaded: Loaded,
    over: Arc<AtomicBool>,
    reader: Option<JoinHandle<Seen>>,
    /// Drops and marks are the program's own, rather than those of a discipline that it watches.
    decides: bool,
}

/// What a reader has seen.
#[derive(Debug, Default)]
struct Seen {
    records: Vec<Record>,
    /// Of a discipline of the kernel's own: its drops and marks at each of the times that were asked for.
    counted: Vec<(Instant, Counted)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    drops: u64,
    marks: u64,
}

/// A reader of records waits no longer than this before it looks whether the run is over.
const PATIENCE: time::Duration = time::Duration::from_millis(50);

impl Routers {
    /// Joins `hosts` by the links of `plan`; the clock begins after `starts_in`.
    pub(crate) fn start(
        starts_in: Duration,
        scenario: &Scenario,
        plan: &Plan,
        hosts: &[Namespace],
    ) -> Result<Self, LiveError> {
        for (index, link) in plan.links.iter().enumerate() {
            let device = device(index);
            let [one, other] = link.ends.map(|end| &hosts[end]);
            one.add_veth(&device, other, &device)?;
            for host in [one, other] {
                host.set_point_to_point(&device)?;
                host.set_up(&device)?;
            }
        }
        for (host, delay) in &plan.answers_after {
            let link = plan.links.iter().position(|link| link.ends.contains(host));
            let link = link.expect("a host is at the end of a link");
            let command = format!("root netem delay {}us limit 100000", delay.as_nanos() / 1_000);
            tc(&hosts[*host], &device(link), &command)?;
        }
        let mut links: Vec<[Option<Watched>; 2]> = Vec::new();
        for (index, link) in plan.links.iter().enumerate() {
            let mut ways = [None, None];
            for (way, direction) in link.directions.iter().enumerate() {
                if let Some(rate) = rate_of(direction) {
                    let host = &hosts[link.ends[way]];
                    ways[way] = Some(Watched::load(host, &device(index), direction, rate, scenario)?);
                }
            }
            links.push(ways);
        }
        // Loading takes its time.
        let clock = Clock::start_in(starts_in);
        for watched in links.iter_mut().flatten().flatten() {
            watched.watch(scenario, clock)?;
        }
        Ok(Self { clock, links })
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Takes the queues away, and gives the report of each link until `end`.
    pub(crate) fn finish(mut self, scenario: &Scenario, plan: &Plan, end: Instant) -> Vec<LinkReport> {
        let report = |(watched, link): (&mut [Option<Watched>; 2], &PlannedLink)| {
            let mut ways = [0, 1].map(|way| {
                let seen = watched[way].as_mut().map(|one| (one.decides, one.stop()));
                Way::of(&link.directions[way], seen, scenario, self.clock, end)
            });
            let closed = [0, 1].map(|way| std::mem::take(&mut ways[way].windows));
            LinkReport {
                statistics: LinkStatistics {
                    name: link.directions[0].name.clone(),
                    at: end,
                    rtt: Duration::ZERO,
                    directions: ways.map(|way| way.statistics),
                    lateness: Lateness::default(),
                    scheduling: Scheduling::Ordinary,
                    unseen: 0,
                },
                series: link.directions.each_ref().map(|link| SeriesBuilder::new(&link.name).finish()),
                flow_series: [Vec::new(), Vec::new()],
                windows: closed,
                flows: [Vec::new(), Vec::new()],
            }
        };
        self.links.iter_mut().zip(&plan.links).map(report).collect()
    }
}

/// The device of this link at either end.
fn device(link: usize) -> String {
    format!("link{link}")
}

/// Gives a device a queue discipline by `tc`, which knows the options of each.
fn tc(host: &Namespace, device: &str, what: &str) -> Result<(), LiveError> {
    let mut command = Command::new("tc");
    command.args(["qdisc", "add", "dev", device]).args(what.split_whitespace());
    let refused = |source: io::Error| LiveError::Discipline { command: what.to_owned(), source };
    let child = host.spawn(command.stdin(Stdio::null()).stderr(Stdio::piped()))?;
    let done = child.wait_with_output().map_err(refused)?;
    if done.status.success() {
        return Ok(());
    }
    Err(refused(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned())))
}

/// Drops and marks of all queue disciplines of a device.
fn counted(host: &Namespace, device: &str) -> Option<Counted> {
    let mut command = Command::new("tc");
    command.args(["-s", "-j", "qdisc", "show", "dev", device]);
    let child = host.spawn(command.stdin(Stdio::null()).stdout(Stdio::piped())).ok()?;
    let said = child.wait_with_output().ok()?;
    let all: Vec<serde_json::Value> = serde_json::from_slice(&said.stdout).ok()?;
    // The innermost one's: those around it count its drops too.
    let own = all.last()?;
    let number = |value: &serde_json::Value, name: &str| value[name].as_u64().unwrap_or(0);
    let tins = own["tins"].as_array().into_iter().flatten();
    let marks = number(own, "marked") + number(own, "ecn_mark");
    Some(Counted {
        drops: number(own, "drops"),
        marks: marks + tins.map(|tin| number(tin, "ecn_mark")).sum::<u64>(),
    })
}

impl Watched {
    fn load(
        host: &Namespace,
        device: &str,
        link: &Link,
        rate: Rate,
        scenario: &Scenario,
    ) -> Result<Self, LiveError> {
        let refused = |problem: String| LiveError::Scenario {
            scenario: scenario.name.clone(),
            key: format!("link.{}.queue", link.name),
            problem,
        };
        let bucket = format!(
            "root handle 1: stab overhead -14 linklayer ethernet tbf rate {}bit burst 1600 limit 64mb",
            rate.as_bps()
        );
        let discipline = Discipline::of(link, rate, scenario.seed).map_err(refused)?;
        let (policy, settings, decides) = match &discipline {
            Discipline::Program(policy, settings) => (*policy, settings.clone(), true),
            Discipline::Own(own) => {
                tc(host, device, &bucket)?;
                tc(host, device, &format!("parent 1: handle 10: {own}"))?;
                let (policy, settings) = Discipline::watcher(rate);
                (policy, settings, false)
            }
            Discipline::Shaping(own) => {
                tc(host, device, &format!("root handle 10: {own}"))?;
                let (policy, settings) = Discipline::watcher(rate);
                (policy, settings, false)
            }
        };
        let options = Options {
            device: device.to_owned(),
            rate,
            buffer: bytes_of(link),
            in_front_of: !decides,
            settings,
        };
        let loaded = host.run(|| queue::load(policy, &options))??;
        let over = Arc::new(AtomicBool::new(false));
        Ok(Self { host: host.clone(), loaded, over, reader: None, decides })
    }

    /// Begins to read records.
    fn watch(&mut self, scenario: &Scenario, clock: Clock) -> Result<(), LiveError> {
        let trace = Trace::afresh(&self.loaded)?;
        // Counts of a discipline of the kernel's own are read where windows begin and end.
        let mut due: Vec<Instant> =
            scenario.record.windows.iter().flat_map(|one| [one.from, one.to]).collect();
        due.push(Instant::ZERO + scenario.record.warmup);
        due.sort_unstable_by(|a, b| b.cmp(a));
        let decides = self.decides;
        if decides {
            due.clear();
        }
        let (stop, host, device) = (Arc::clone(&self.over), self.host.clone(), self.loaded.device.clone());
        self.reader = Some(thread::spawn(move || {
            let mut seen = Seen::default();
            while !stop.load(Ordering::Relaxed) {
                seen.records.extend(trace.wait(PATIENCE));
                while let Some(at) = due.pop_if(|at| *at <= clock.now()) {
                    seen.counted.extend(counted(&host, &device).map(|counted| (at, counted)));
                }
            }
            seen.records.extend(trace.wait(time::Duration::ZERO));
            if !decides {
                seen.counted.extend(counted(&host, &device).map(|counted| (clock.now(), counted)));
            }
            seen
        }));
        Ok(())
    }

    fn stop(&mut self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        let reader = self.reader.take().map(|thread| thread.join());
        // It may be gone with its device.
        let _ = self.host.run(|| queue::unload(&self.loaded));
        reader
            .map_or_else(Seen::default, |seen| seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One direction of a link, from its records.
struct Way {
    statistics: DirectionStatistics,
    windows: Vec<ClosedWindow>,
}

/// What a record's `verdict` says.
const MARKED: u32 = 1;
const DROPPED: u32 = 2;
const NO_ROOM: u32 = 3;

impl Way {
    fn of(link: &Link, seen: Option<(bool, Seen)>, scenario: &Scenario, clock: Clock, end: Instant) -> Self {
        let rate = rate_of(link);
        let mut again = Again::new(link, rate.unwrap_or(Rate::MAX), scenario);
        if let Some((decides, mut seen)) = seen {
            // Records of several processors come in another order than their packets.
            seen.records.sort_by_key(|record| record.number);
            for record in &seen.records {
                let now = clock.at_monotonic(record.now_ns);
                if now > Instant::ZERO && now < end {
                    if decides { again.on_packet(now, record) } else { again.on_backlog(now, record) }
                }
            }
            again.finish(end);
            if !decides {
                again.count(&seen.counted);
            }
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
    fn new(link: &Link, rate: Rate, scenario: &'a Scenario) -> Self {
        let specs = scenario.record.windows.as_slice();
        let mut due = vec![(Instant::ZERO + scenario.record.warmup, None)];
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
        match record.verdict {
            DROPPED => return self.meter.on_dropped(DropReason::Early),
            NO_ROOM => return self.meter.on_dropped(DropReason::Overflow),
            _ => {}
        }
        let (size, marked) = (Bytes::new(record.size_bytes), record.verdict == MARKED);
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
