//! Links of the kernel's own devices: a pair of them each, with a token bucket and a queue discipline where a link has a
//! rate, and every packet that comes to it recorded.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time;

use suimon_emulator::{Lateness, LinkReport, LinkStatistics};
use suimon_link::SeriesBuilder;
use suimon_linux::queue::{self, Loaded, Options, Trace};
use suimon_linux::schedule::Scheduling;
use suimon_linux::{Clock, Namespace};
use suimon_model::{Link, Record, Scenario};
use suimon_units::{Duration, Instant, Rate};

use crate::discipline::{Discipline, bytes_of};
use crate::error::LiveError;
use crate::plan::{Plan, rate_of};
use crate::recorded::{Counted, Seen, Way};

/// The links of a scenario, as long as this lives.
#[derive(Debug)]
pub(crate) struct Routers {
    clock: Clock,
    links: Vec<Joined>,
    measured: Record,
}

/// A link, and what is watched of its directions.
#[derive(Debug)]
struct Joined {
    directions: [Link; 2],
    watched: [Option<Watched>; 2],
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
        let mut links = Vec::new();
        for (index, link) in plan.links.iter().enumerate() {
            let mut watched = [None, None];
            for (way, direction) in link.directions.iter().enumerate() {
                if let Some(rate) = rate_of(direction) {
                    let host = &hosts[link.ends[way]];
                    watched[way] = Some(Watched::load(host, &device(index), direction, rate, scenario)?);
                }
            }
            links.push(Joined { directions: link.directions.clone(), watched });
        }
        // Loading takes its time.
        let clock = Clock::start_in(starts_in);
        for watched in links.iter_mut().flat_map(|link| &mut link.watched).flatten() {
            watched.watch(&scenario.record, clock)?;
        }
        Ok(Self { clock, links, measured: scenario.record.clone() })
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Takes the queues away, and gives the report of each link until `end`.
    pub(crate) fn finish(mut self, end: Instant) -> Vec<LinkReport> {
        let (clock, measured) = (self.clock, &self.measured);
        let report = |Joined { directions, watched }: &mut Joined| {
            let seen = watched.each_mut().map(|one| one.as_mut().map(Watched::stop));
            let [there, back] = seen;
            let ways = [(&directions[0], there), (&directions[1], back)]
                .map(|(link, seen)| Way::of(link, seen.unwrap_or_default(), measured, clock, end));
            let [there, back] = ways;
            LinkReport {
                statistics: LinkStatistics {
                    name: directions[0].name.clone(),
                    at: end,
                    rtt: Duration::ZERO,
                    directions: [there.statistics, back.statistics],
                    lateness: Lateness::default(),
                    scheduling: Scheduling::Ordinary,
                    unseen: 0,
                },
                series: directions.each_ref().map(|link| SeriesBuilder::new(&link.name).finish()),
                flow_series: [Vec::new(), Vec::new()],
                windows: [there.windows, back.windows],
                flows: [Vec::new(), Vec::new()],
            }
        };
        self.links.iter_mut().map(report).collect()
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
            incoming: false,
            settings,
        };
        let loaded = host.run(|| queue::load(policy, &options))??;
        let over = Arc::new(AtomicBool::new(false));
        Ok(Self { host: host.clone(), loaded, over, reader: None, decides })
    }

    /// Begins to read records.
    fn watch(&mut self, measured: &Record, clock: Clock) -> Result<(), LiveError> {
        let trace = Trace::afresh(&self.loaded)?;
        // Counts of a discipline of the kernel's own are read where windows begin and end.
        let mut due: Vec<Instant> = measured.windows.iter().flat_map(|one| [one.from, one.to]).collect();
        due.push(Instant::ZERO + measured.warmup);
        due.sort_unstable_by(|a, b| b.cmp(a));
        let decides = self.decides;
        if decides {
            due.clear();
        }
        let (stop, host, device) = (Arc::clone(&self.over), self.host.clone(), self.loaded.device.clone());
        self.reader = Some(thread::spawn(move || {
            let mut seen = Seen { watched_only: !decides, ..Seen::default() };
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
        let reader = self.reader.take().map(JoinHandle::join);
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
