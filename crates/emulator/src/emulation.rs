//! Links between namespaces: set up, run, changed while they run, taken down.

use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use suimon_linux::schedule::{Awake, Scheduling};
use suimon_linux::wake::{Waker, waker};
use suimon_linux::{Clock, LinuxError, Namespace, Tun, TunOptions};
use suimon_model::{Capacity, Link};
use suimon_units::{Duration, Rate};

use crate::direction::{Direction, State};
use crate::forwarder::{Change, Forwarder, Moved, Order};
use crate::gate::Gate;
use crate::log::{PacketRecords, log};
use crate::marks::{Marks, Measuring};
use crate::packet::FlowKey;
use crate::radios::groups;
use crate::statistics::{LinkReport, LinkStatistics};

/// One end of a link: a device in a namespace.
#[derive(Debug, Clone)]
pub struct End {
    /// The namespace of the device.
    pub namespace: Namespace,
    /// The device's name, up to 15 bytes; `%d` in it stands for the first number that makes it unique there.
    pub device: String,
    /// The device's addresses, with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// A link between two ends.
#[derive(Debug, Clone)]
pub struct LinkSetup {
    /// The link from the first end to the second, and the way back. `from` and `to` matter only to tell the stations of
    /// a medium apart. Links that name one cell or medium share it.
    pub directions: [Link; 2],
    /// The ends.
    pub ends: [End; 2],
    /// Propagation delay that packets of some flows have beside the link's, in each direction.
    pub flow_delays: [Vec<(FlowKey, Duration)>; 2],
}

/// The settings of an emulation.
#[derive(Debug, Clone)]
pub struct Setup {
    /// All randomness derives from it.
    pub seed: u64,
    /// How the threads that move packets are to be scheduled, where the kernel lets them.
    pub scheduling: Scheduling,
    /// Keep this machine's cores from halting, see [`Awake`]: for measurements, rather than for a link that is there
    /// all day.
    pub awake: bool,
    /// Hosts hand over TCP data unsplit, which is split into packets before the queue. No packet on the link
    /// differs; only the work of the hosts does.
    pub segmentation: bool,
    /// The largest packet.
    pub mtu: u32,
    /// The interval at which statistics are published and series sampled.
    pub interval: Duration,
    /// Tell the fate of each packet: see [`Emulation::records`].
    pub log: bool,
    /// The clock stands at zero until this time has passed, so that all is in place when it begins to run.
    pub starts_in: Duration,
    /// The scope of totals and windows.
    pub measuring: Measuring,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            seed: 1,
            scheduling: Scheduling::RealTime,
            awake: true,
            segmentation: true,
            mtu: 1_500,
            interval: Duration::from_millis(100),
            log: false,
            starts_in: Duration::ZERO,
            measuring: Measuring::default(),
        }
    }
}

/// Links that run. They end where this does.
#[derive(Debug)]
pub struct Emulation {
    clock: Clock,
    links: Vec<RunningLink>,
    threads: Vec<RunningThread>,
    _awake: Option<Awake>,
    records: Mutex<Option<PacketRecords>>,
}

#[derive(Debug)]
struct RunningLink {
    devices: [(Namespace, String); 2],
    published: Arc<Mutex<Option<LinkStatistics>>>,
    /// The place of the thread that moves its packets, and its own among the links of this thread.
    moved_by: (usize, usize),
}

/// A thread that moves the packets of a link, or of several that share a radio.
#[derive(Debug)]
struct RunningThread {
    orders: Sender<Order>,
    waker: Waker,
    thread: Option<JoinHandle<Result<Vec<LinkReport>, LinuxError>>>,
}

/// The directions of a link that a change is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the first end to the second.
    There,
    /// From the second end to the first.
    Back,
    /// Both ways.
    Both,
}

/// The packets that may wait in a device for the emulator; it reads them at once.
const DEVICE_QUEUE: u32 = 10_000;

impl Emulation {
    /// Makes the devices of `links`, takes them up, and moves packets from then on.
    ///
    /// # Errors
    /// Without the right to make devices in those namespaces, or where a name or address is taken.
    pub fn start(setup: &Setup, links: &[LinkSetup]) -> Result<Self, LinuxError> {
        Self::start_with(setup, links, None)
    }

    /// As [`Emulation::start`]; packets to the second ends wait for `gate`.
    pub(crate) fn start_with(
        setup: &Setup,
        links: &[LinkSetup],
        gate: Option<&Arc<Gate>>,
    ) -> Result<Self, LinuxError> {
        let clock = Clock::start_in(setup.starts_in);
        let (writer, records) = if setup.log { Some(log()) } else { None }.unzip();
        let mut running: Vec<Option<RunningLink>> = links.iter().map(|_| None).collect();
        let mut threads = Vec::new();
        let directions: Vec<_> = links.iter().flat_map(|link| link.directions.clone()).collect();
        for group in groups(&directions, setup.seed) {
            let (mut tuns, mut directions, mut moved) = (Vec::new(), Vec::new(), Vec::new());
            for (place, index) in group.links.iter().copied().enumerate() {
                let link = &links[index];
                let ends = [open(setup, &link.ends[0])?, open(setup, &link.ends[1])?];
                let devices =
                    [0, 1].map(|end| (link.ends[end].namespace.clone(), ends[end].name().to_owned()));
                tuns.extend(ends);
                for (way, direction) in link.directions.iter().enumerate() {
                    let mut direction = Direction::new(direction, setup.seed);
                    direction.passing.log = writer.as_ref().map(|writer| writer.of(index, way));
                    direction.set_flow_delays(&link.flow_delays[way]);
                    directions.push(direction);
                }
                let published = Arc::new(Mutex::new(None));
                moved.push(Moved::new(
                    &link.directions,
                    Marks::new(&setup.measuring),
                    Arc::clone(&published),
                ));
                running[index] = Some(RunningLink { devices, published, moved_by: (threads.len(), place) });
            }
            let (orders, received) = channel();
            let (waker, woken) = waker()?;
            let forwarder = Forwarder {
                clock,
                links: moved,
                tuns,
                directions,
                segmentation: setup.segmentation,
                radios: group.radios,
                orders: received,
                woken,
                interval: setup.interval,
                sampled_at: clock.now(),
                scheduling: Scheduling::Ordinary,
                gate: gate.cloned(),
            };
            let scheduling = setup.scheduling;
            let thread = std::thread::Builder::new()
                .name(format!("link {}", group.links[0]))
                .spawn(move || forwarder.run(scheduling))
                .map_err(|error| LinuxError::new("starting a thread", error))?;
            threads.push(RunningThread { orders, waker, thread: Some(thread) });
        }
        let running = running.into_iter().flatten().collect();
        let awake = setup.awake.then(Awake::begin);
        Ok(Self { clock, links: running, threads, _awake: awake, records: Mutex::new(records) })
    }

    /// The clock that all times of it are by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The names of the devices of a link, at its first and second end.
    #[must_use]
    pub fn devices(&self, link: usize) -> [&str; 2] {
        self.links[link].devices.each_ref().map(|(_, name)| name.as_str())
    }

    /// The statistics of each link, at most the interval old; `None` of a link that has not run that long yet.
    #[must_use]
    pub fn statistics(&self) -> Vec<Option<LinkStatistics>> {
        let of = |link: &RunningLink| link.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.links.iter().map(of).collect()
    }

    /// The records of all packets, where [`Setup::log`] asked for them; once.
    pub fn records(&self) -> Option<PacketRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Loses all that is on a link and comes to it, until [`Emulation::restore`].
    pub fn cut(&self, link: usize, way: Way) {
        self.order(link, way, || Change::State(State::Cut));
    }

    /// Lets nothing leave the queues of a link, until [`Emulation::restore`]; new packets wait as far as there is
    /// room.
    pub fn hold(&self, link: usize, way: Way) {
        self.order(link, way, || Change::State(State::Held));
    }

    /// Undoes [`Emulation::cut`] and [`Emulation::hold`].
    pub fn restore(&self, link: usize, way: Way) {
        self.order(link, way, || Change::State(State::Open));
    }

    /// Changes how fast a link sends, from the next packet on. A rate of zero holds it, as [`Emulation::hold`] does.
    ///
    /// # Panics
    /// Where `capacity` is a radio, which a link has from its start or not at all.
    pub fn set_capacity(&self, link: usize, way: Way, capacity: &Capacity) {
        assert!(!capacity.is_radio(), "a link does not become a radio while it runs");
        if *capacity == Capacity::Rate(Rate::ZERO) {
            self.hold(link, way);
        } else {
            self.order(link, way, || Change::Capacity(capacity.clone()));
        }
    }

    /// Changes the propagation delay of a link, from the next packet on.
    pub fn set_delay(&self, link: usize, way: Way, delay: Duration) {
        self.order(link, way, || Change::Delay(delay));
    }

    /// Stops, takes the devices away, and gives the report of each link.
    ///
    /// # Errors
    /// A link ended before, by an error of the kernel.
    ///
    /// # Panics
    /// The thread of a link panicked.
    pub fn finish(mut self) -> Result<Vec<LinkReport>, LinuxError> {
        // The counts of packets that found no room are read while the devices are still there.
        let lost = |(namespace, device): &(Namespace, String)| {
            namespace.device_counters(device).map_or(0, |counters| counters.sent_dropped)
        };
        let unseen: Vec<u64> = self.links.iter().map(|link| link.devices.iter().map(lost).sum()).collect();
        let reports = self.threads.iter_mut().map(RunningThread::stop).collect::<Result<Vec<_>, _>>()?;
        let mut reports: Vec<_> = reports.into_iter().map(Vec::into_iter).collect();
        // The links of a thread are in the order of all.
        let of_link = |(link, unseen): (&RunningLink, u64)| {
            let mut report = reports[link.moved_by.0].next().expect("a thread reports on each of its links");
            report.statistics.unseen = unseen;
            report
        };
        Ok(self.links.iter().zip(unseen).map(of_link).collect())
    }

    fn order(&self, link: usize, way: Way, change: impl Fn() -> Change) {
        let (thread, place) = self.links[link].moved_by;
        let thread = &self.threads[thread];
        let ways: &[usize] = match way {
            Way::There => &[0],
            Way::Back => &[1],
            Way::Both => &[0, 1],
        };
        for way in ways {
            // A link that has ended is not changed any more.
            let _ = thread.orders.send(Order::Change { direction: 2 * place + way, change: change() });
        }
        thread.waker.wake();
    }
}

impl RunningThread {
    fn end(&mut self) -> Option<JoinHandle<Result<Vec<LinkReport>, LinuxError>>> {
        let _ = self.orders.send(Order::Stop);
        self.waker.wake();
        self.thread.take()
    }

    fn stop(&mut self) -> Result<Vec<LinkReport>, LinuxError> {
        let thread = self.end().expect("a thread is stopped once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for RunningThread {
    fn drop(&mut self) {
        if let Some(thread) = self.end() {
            let _ = thread.join();
        }
    }
}

fn open(setup: &Setup, end: &End) -> Result<Tun, LinuxError> {
    let options = TunOptions { segmentation: setup.segmentation };
    let tun = Tun::open(&end.namespace, &end.device, options)?;
    end.namespace.set_device_limits(tun.name(), setup.mtu, DEVICE_QUEUE)?;
    // A kernel without IPv6 has no such value. With it, the device would be given an address that nobody asked for,
    // and its host would talk over the link by itself.
    let has_ipv6 = end.namespace.set_sysctl(&format!("ipv6/conf/{}/addr_gen_mode", tun.name()), "1").is_ok();
    end.namespace.set_up(tun.name())?;
    for (address, prefix) in end.addresses.iter().filter(|(address, _)| has_ipv6 || address.is_ipv4()) {
        end.namespace.add_address(tun.name(), *address, *prefix)?;
    }
    Ok(tun)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::thread::sleep;
    use std::time::Duration;

    use suimon_algorithms::registry::{AlgorithmSpec, Role};
    use suimon_scenario::LinkSpec;
    use suimon_testing::{can_emulate, in_time};

    use super::*;
    use crate::TwoHosts;

    /// Processor time that the thread of the first link has taken (`/proc/PID/task/TID/schedstat`, in ns).
    fn time_of_thread() -> Duration {
        let mut tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let is_it =
            |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "link 0\n");
        let text = fs::read_to_string(tasks.find(is_it).unwrap().join("schedstat")).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// A thread may have taken an order before the wake for it comes. If it stayed awake then, it would keep the only processor of a
    /// machine from all others.
    #[test]
    fn a_thread_that_is_woken_for_nothing_sleeps_again() {
        if !can_emulate() {
            return;
        }
        in_time(|| {
            let queue = AlgorithmSpec::parse(Role::Queue, "droptail").unwrap();
            let link = LinkSpec::parse("10Mbit 20ms").unwrap().links(&queue);
            let hosts = TwoHosts::new(&Setup::default(), &[link]).unwrap();
            hosts.emulation.threads[0].waker.wake();
            sleep(Duration::from_millis(100));
            let before = time_of_thread();
            sleep(Duration::from_millis(100));
            let took = time_of_thread() - before;
            assert!(took < Duration::from_millis(30), "{took:?} of 100 ms");
        });
    }
}
