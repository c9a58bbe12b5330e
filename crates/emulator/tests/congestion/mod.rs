//! Congestion control in the running kernel. Needs root, BPF and TUN; says why it skips elsewhere.

mod lifecycle;
mod open;
mod path;
mod replay;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::congestion::{self, Algorithm, CongestionError, Loaded, Record, Trace, on_host};
use suimon_linux::namespace::Namespace;
use suimon_linux::tcp::choose;
use suimon_scenario::LinkSpec;
use suimon_testing::{assert_in_time, in_time};

/// Whether this machine can load; says why where not.
fn can_load() -> bool {
    let missing = congestion::checks().into_iter().find(|check| !check.is_fine);
    if let Some(check) = &missing {
        eprintln!("skipped: {}", check.finding);
    }
    missing.is_none()
}

/// Loaded under a name of this test's own, and unloaded with it.
struct Own(Loaded);

impl Own {
    fn load(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let algorithm = Algorithm::named(name).unwrap();
        let kernel_name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(on_host(|| congestion::load(algorithm, &kernel_name)).unwrap_or_else(|error| panic!("{error}")))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let unloaded: Result<_, CongestionError> = on_host(|| congestion::unload(&self.0, true));
        assert!(unloaded.is_ok() || thread::panicking(), "{unloaded:?}");
    }
}

fn hosts(link: &str, queue: &str) -> TwoHosts {
    let queue = AlgorithmSpec::parse(Role::Queue, queue).unwrap();
    TwoHosts::new(&Setup::default(), &[LinkSpec::parse(link).unwrap().links(&queue)]).unwrap()
}

/// Sends from the near host to the far one under `own` for so long: as fast as it goes, or `burst` bytes every 150 ms.
fn transfer(hosts: &TwoHosts, own: &Own, length: Duration, burst: Option<usize>) -> u64 {
    send(hosts, 5_001, &own.0.kernel_name, length, burst)
}

/// The same to any port, under any congestion control of the kernel.
fn send(hosts: &TwoHosts, port: u16, control: &str, length: Duration, burst: Option<usize>) -> u64 {
    let address = SocketAddr::from((hosts.paths[0].far, port));
    send_between(&hosts.near, &hosts.far, address, control, length, burst)
}

/// The same the other way, as fast as it goes.
fn upload(hosts: &TwoHosts, port: u16, control: &str, length: Duration) -> u64 {
    let address = SocketAddr::from((hosts.paths[0].near, port));
    send_between(&hosts.far, &hosts.near, address, control, length, None)
}

fn send_between(
    from: &Namespace,
    to: &Namespace,
    address: SocketAddr,
    control: &str,
    length: Duration,
    burst: Option<usize>,
) -> u64 {
    let listener = to.run(|| TcpListener::bind(address)).unwrap().unwrap();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 1 << 16];
            let mut got = 0;
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                got += read as u64;
            }
            got
        });
        let mut stream = from.run(|| connect(address, control)).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let ends = Instant::now() + length;
        let data = vec![0; burst.unwrap_or(1 << 16)];
        while Instant::now() < ends {
            let _ = stream.write(&data);
            if burst.is_some() {
                thread::sleep(Duration::from_millis(150));
            }
        }
        drop(stream);
        receiver.join().unwrap()
    })
}

/// Connects with the congestion control called `name` from the first segment on.
fn connect(address: SocketAddr, name: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    choose(&stream, name).unwrap();
    stream
}

/// Everything that the kernel told while `work` ran and a little after it.
fn traced(own: &Own, work: impl FnOnce()) -> Vec<Record> {
    let trace = Trace::begin(&own.0).unwrap();
    let stop = AtomicBool::new(false);
    let stop = &stop;
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut all = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                all.extend(trace.wait(Duration::from_millis(50)));
            }
            all.extend(trace.wait(Duration::from_millis(50)));
            assert_eq!(trace.lost(), 0);
            all
        });
        work();
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    })
}

const LENGTH: Duration = Duration::from_secs(4);

#[test]
fn vegas_and_compound_load_and_carry_data() {
    if !can_load() {
        return;
    }
    in_time(|| {
        for (algorithm, least_queue, most_queue) in [("vegas", 0.5, 6.0), ("compound", 6.0, 60.0)] {
            let own = Own::load(algorithm);
            let hosts = hosts("10Mbit 40ms 60packets", "droptail");
            let got = transfer(&hosts, &own, LENGTH, None);
            let reports = hosts.emulation.finish().unwrap();
            let queue = &reports[0].statistics.directions[0].totals;
            eprintln!("{algorithm}: {got} bytes, mean backlog {} packets", queue.backlog_mean_packets);
            assert_in_time!(got as f64 > 0.8 * 10e6 / 8.0 * LENGTH.as_secs_f64(), "{algorithm}: {got}");
            assert_in_time!((least_queue..most_queue).contains(&queue.backlog_mean_packets), "{queue:?}");
        }
    });
}
