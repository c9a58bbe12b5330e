//! One run, from the first namespace to the result.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use suimon_emulator::{Emulation, End, LinkReport, LinkSetup, LinkStatistics, Measuring, Setup};
use suimon_linux::schedule::{Scheduling, Urgency, become_real_time};
use suimon_linux::{Clock, LinuxError, Namespace, Route};
use suimon_model::Scenario;
use suimon_results::RunResult;
use suimon_units::{Duration, Instant};

use crate::endpoints::{Shared, Stage};
use crate::error::LiveError;
use crate::plan::{Links, Plan, slowest};
use crate::result::Statistics;
#[cfg(feature = "bpf")]
use crate::router::Routers;
use crate::stack_options::KernelNames;
use crate::streams::LiveStream;

/// Follows runs. Several may go on at once.
pub trait Observer: Sync {
    /// Takes the state of a run; called ten times a second.
    fn glance(&self, glance: &Glance<'_>);
}

/// A run as it is now.
#[derive(Debug)]
pub struct Glance<'a> {
    /// The number of the run.
    pub run: usize,
    /// The scenario's name.
    pub scenario: &'a str,
    /// The labels that set the run apart from others.
    pub labels: &'a [(String, String)],
    /// The time of the run that has passed.
    pub passed: Duration,
    /// The emulated links; none before they have run for the first interval.
    pub links: &'a [LinkStatistics],
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn glance(&self, _glance: &Glance<'_>) {}
}

/// Runs `scenario` on real stacks: it takes as long as the scenario says.
///
/// `labels` are passed on to the result; they set this run apart in a comparison.
///
/// # Errors
/// The scenario cannot be run live, or the kernel refuses something.
pub fn run(
    scenario: &Scenario,
    labels: &[(String, String)],
    observer: &dyn Observer,
) -> Result<RunResult, LiveError> {
    let scenario = Scenario::split(Cow::Borrowed(scenario));
    let plan = Plan::new(&scenario, &available()?, &KernelNames::new(), Links::Emulated)?;
    thread::scope(|scope| {
        let run = scope.spawn(|| run_planned(&scenario, labels, 0, &plan, observer));
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The congestion controls that the kernel has.
pub(crate) fn available() -> Result<Vec<String>, LiveError> {
    let names = Namespace::current()?.sysctl("ipv4/tcp_available_congestion_control")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// The time to set everything up before the clock begins to run, and the further time for each flow.
const SET_UP: Duration = Duration::from_millis(300);
const SET_UP_FLOW: Duration = Duration::from_millis(3);

/// The interval between readings of flows' statistics; and where links are the kernel's, which come with many flows to a
/// guest, whose processor is slow.
const TICK: Duration = Duration::from_millis(5);
const KERNEL_TICK: Duration = Duration::from_millis(50);
/// The interval between calls of an observer.
const GLANCE: Duration = Duration::from_millis(100);

/// Runs `scenario`, which was [split](Scenario::split), by its plan. Takes the calling thread for it, which does not get
/// its priority back.
pub(crate) fn run_planned(
    scenario: &Scenario,
    labels: &[(String, String)],
    number: usize,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<RunResult, LiveError> {
    // And so the threads that it starts. A thread that others push aside while it holds a socket keeps the kernel
    // from handling the packets that arrive there: ACKs wait, and the segments that they release come as a burst.
    let real_time = become_real_time(Urgency::Link).is_ok();
    let hosts = (0..plan.hosts).map(|_| host(plan)).collect::<Result<Vec<_>, _>>()?;
    let interval = scenario.record.interval.unwrap_or(GLANCE);
    let setup = Setup {
        seed: scenario.seed,
        scheduling: Scheduling::RealTime,
        // Packets come one by one, as the simulator's do.
        segmentation: false,
        mtu: plan.mtu,
        interval,
        starts_in: SET_UP + SET_UP_FLOW * plan.flows.len() as u64,
        measuring: Measuring { warmup: scenario.record.warmup, windows: scenario.record.windows.clone() },
        ..Setup::default()
    };
    let path = Path::open(&setup, scenario, plan, &hosts)?;
    let clock = path.clock();
    let (over, failed) = (AtomicBool::new(false), AtomicBool::new(false));
    let failed = &failed;
    let end = Instant::ZERO + scenario.duration;
    let shared: Vec<Shared> = plan.flows.iter().map(|_| Shared::default()).collect();
    let shared = &shared[..];
    let streams = LiveStream::all(scenario, plan, shared);
    let stage = Stage {
        clock,
        end,
        over: &over,
        timestamps: plan.timestamps,
        slowest: slowest(plan.links.iter().flat_map(|link| &link.directions)),
        streams: &streams,
    };
    let refused = |index: usize| {
        let flow = scenario.flows[index].name.clone();
        move |source: io::Error| LiveError::Socket { flow, source }
    };
    let mut statistics = Statistics::new(scenario, plan, shared, &streams);
    if !real_time {
        statistics.note("Live: the hosts' threads run under SCHED_OTHER, so that a busy machine makes bursts of their packets.".to_owned());
    }
    let reports = thread::scope(|scope| -> Result<_, LiveError> {
        // However this ends, the threads of the flows end.
        let ends = Over(&over);
        let mut threads = Vec::new();
        let watched = |done: io::Result<()>| {
            failed.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        };
        for (index, planned) in plan.flows.iter().enumerate() {
            let (flow, own, stage) = (&scenario.flows[index], &shared[index], &stage);
            let (from, to) = (&hosts[planned.hosts.0], &hosts[planned.hosts.1]);
            let listener = stage.listen(to, flow, planned).map_err(refused(index))?;
            let onward = plan.halves.iter().find(|(_, inward)| *inward == index).map(|(outward, _)| *outward);
            threads.push((
                index,
                scope.spawn(move || {
                    watched(match onward {
                        Some(at) => {
                            let outward = (&scenario.flows[at], &plan.flows[at]);
                            stage.split(to, listener, outward, &shared[at])
                        }
                        None => stage.receive(listener, planned, own),
                    })
                }),
            ));
            // The second half of a split connection begins at its gateway.
            if plan.halves.iter().all(|(outward, _)| *outward != index) {
                let onward = onward.map(|at| &shared[at]);
                threads.push((
                    index,
                    scope.spawn(move || watched(stage.send(from, flow, planned, (own, onward)))),
                ));
            }
        }
        for stream in &streams {
            let (stage, flow) = (&stage, stream.first_flow());
            threads.push((flow, scope.spawn(move || watched(stream.send(stage)))));
        }
        if clock.now() > Instant::ZERO {
            statistics
                .note("Live: setting up took longer than planned, so that flows began late.".to_owned());
        }
        let tick = if plan.links_by == Links::Kernel { KERNEL_TICK } else { TICK };
        let mut next_glance = Instant::ZERO;
        loop {
            let now = clock.now();
            statistics.keep(now);
            if now >= next_glance {
                let links = path.statistics();
                let passed = now.saturating_since(Instant::ZERO).min(scenario.duration);
                let scenario = scenario.name.as_str();
                observer.glance(&Glance { run: number, scenario, labels, passed, links: &links });
                next_glance = now + GLANCE;
            }
            if now >= end || statistics.is_complete() || failed.load(Ordering::Relaxed) {
                break;
            }
            clock.sleep_until((now + tick).min(statistics.next()).min(end));
        }
        statistics.finish(clock.now());
        // The links stop at once, so that none counts later packets.
        let reports = path.finish(clock.now());
        drop(ends);
        for (index, thread) in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(refused(index))?;
        }
        Ok(reports?)
    })?;
    let mut result = statistics.result(labels, &reports);
    if plan.links_by == Links::Kernel {
        result.emulated.clear();
    }
    Ok(result)
}

/// Tells the threads of the flows that the run is over when this goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A host that remembers nothing of earlier connections.
fn host(plan: &Plan) -> Result<Namespace, LinuxError> {
    let host = Namespace::new()?;
    let timestamps = if plan.timestamps { "1" } else { "0" };
    for (key, value) in [
        ("ipv4/ip_forward", "1"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        // Routes say which flows ask for it.
        ("ipv4/tcp_ecn", "2"),
        // Or a flow whose first SYN the queue drops would go without for good (RFC 3168 §6.1.1.1).
        ("ipv4/tcp_ecn_fallback", "0"),
        ("ipv4/tcp_timestamps", timestamps),
        ("ipv4/tcp_sack", "1"),
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/tcp_wmem", "4096 262144 67108864"),
    ] {
        host.set_sysctl(key, value)?;
    }
    Ok(host)
}

/// The links of a run.
enum Path {
    Emulated(Emulation),
    #[cfg(feature = "bpf")]
    Kernel(Routers),
}

impl Path {
    /// The links of `plan` between `hosts`, which get their addresses and routes.
    fn open(setup: &Setup, scenario: &Scenario, plan: &Plan, hosts: &[Namespace]) -> Result<Self, LiveError> {
        for (host, address) in &plan.addresses {
            hosts[*host].add_address("lo", (*address).into(), 32)?;
        }
        let path = match plan.links_by {
            Links::Emulated => Self::Emulated(emulate(setup, plan, hosts)?),
            #[cfg(feature = "bpf")]
            Links::Kernel => Self::Kernel(Routers::start(setup.starts_in, scenario, plan, hosts)?),
            #[cfg(not(feature = "bpf"))]
            Links::Kernel => {
                let scenario = scenario.name.clone();
                let problem = "this build loads no programs; accepted: emulated links".to_owned();
                return Err(LiveError::Scenario { scenario, key: "link".to_owned(), problem });
            }
        };
        for (index, link) in plan.links.iter().enumerate() {
            for host in link.ends {
                hosts[host].set_most_segments(&format!("link{index}"), 1)?;
            }
        }
        for route in &plan.routes {
            let (host, options) = (route.host, route.options);
            let route = Route {
                destination: Some((route.to.into(), 32)),
                via: None,
                device: format!("link{}", route.link),
                table: Route::MAIN,
                local: false,
            };
            hosts[host].add_route_with(&route, options)?;
        }
        Ok(path)
    }

    fn clock(&self) -> Clock {
        match self {
            Self::Emulated(emulation) => emulation.clock(),
            #[cfg(feature = "bpf")]
            Self::Kernel(routers) => routers.clock(),
        }
    }

    /// The links that can be looked at while they run.
    fn statistics(&self) -> Vec<LinkStatistics> {
        match self {
            Self::Emulated(emulation) => emulation.statistics().into_iter().flatten().collect(),
            #[cfg(feature = "bpf")]
            Self::Kernel(_) => Vec::new(),
        }
    }

    #[cfg_attr(not(feature = "bpf"), expect(unused_variables, reason = "the emulator's clock is its own"))]
    fn finish(self, end: Instant) -> Result<Vec<LinkReport>, LinuxError> {
        match self {
            Self::Emulated(emulation) => emulation.finish(),
            #[cfg(feature = "bpf")]
            Self::Kernel(routers) => Ok(routers.finish(end)),
        }
    }
}

fn emulate(setup: &Setup, plan: &Plan, hosts: &[Namespace]) -> Result<Emulation, LiveError> {
    let end = |host: usize, index: usize| End {
        namespace: hosts[host].clone(),
        device: format!("link{index}"),
        addresses: Vec::new(),
    };
    let links: Vec<_> = plan
        .links
        .iter()
        .enumerate()
        .map(|(index, link)| LinkSetup {
            directions: link.directions.clone(),
            ends: link.ends.map(|host| end(host, index)),
            flow_delays: link.flow_delays.clone(),
        })
        .collect();
    Ok(Emulation::start(setup, &links)?)
}
