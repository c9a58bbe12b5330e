//! Congestion control in the running kernel. Needs root, BPF and TUN; says why it skips elsewhere.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::congestion::fs_at::{FsAt, Mode};
use suimon_algorithms::congestion::reno::Reno;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Limits,
};
use suimon_algorithms::probe::Probe;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_linux::congestion::{
    self, Algorithm, CongestionError, Event, Loaded, Record, Trace, choose, on_host,
};
use suimon_scenario::LinkSpec;
use suimon_units::{Bytes, Instant as Simulated};

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
    let address = SocketAddr::from((hosts.paths[0].far, 5_001));
    let listener = hosts.far.run(|| TcpListener::bind(address)).unwrap().unwrap();
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
        let mut stream = hosts.near.run(|| connect(address, &own.0.kernel_name)).unwrap();
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

/// What the Rust FS-AT would tell of its inner values.
#[derive(Default)]
struct Inner {
    space: u64,
    target: u64,
    rtt_min_us: u32,
}

impl Probe for Inner {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "space_bytes" => self.space = value as u64,
            "target_bytes" => self.target = value as u64,
            "rtt_min_ms" => self.rtt_min_us = (value * 1e3).round() as u32,
            _ => {}
        }
    }
}

/// What a replay met.
#[derive(Debug, Default)]
struct Replayed {
    acks: usize,
    controlled: usize,
    app_limited: usize,
    selective: usize,
    losses: usize,
    radio: usize,
    marks: usize,
    undone: usize,
}

/// Feeds what the kernel saw to the Rust FS-AT and holds every ACK's target, space and shortest round-trip time, and
/// every loss's judgement, against what the kernel made of it: equal to the byte.
fn replay(records: &[Record]) -> Replayed {
    let mut met = Replayed::default();
    let mut fs_at: Option<FsAt<Reno>> = None;
    let mut limits = Limits::initial(Bytes::ZERO);
    let mut radio = 0;
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.number as usize, number, "no record is missing");
        let now = Simulated::from_nanos(record.now_us * 1_000);
        let mss = Bytes::new(u64::from(record.mss));
        if record.event() == Event::Start {
            assert!(number == 0);
            limits = Limits::initial(mss * u64::from(record.values.cwnd_segments));
            let mut new = FsAt::new(Reno::default(), Mode::Printed, false, Bytes::new(8_000));
            new.on_established(now, &mut limits);
            fs_at = Some(new);
        }
        let fs_at = fs_at.as_mut().expect("a connection starts first");
        let flight_size = Bytes::new(u64::from(record.flight_size));
        limits.cwnd = mss * u64::from(record.values.cwnd_segments);
        let congestion = |kind| Congestion { now, kind, flight_size, snd_nxt: 0, mss };
        match record.event() {
            Event::Ack => {
                let ack = Ack {
                    now,
                    newly_acked: Bytes::new(u64::from(record.newly_acked)),
                    delivered: Bytes::new(u64::from(record.delivered)),
                    marked: Bytes::ZERO,
                    rtt: (record.rtt_us > 0)
                        .then(|| suimon_units::Duration::from_micros(u64::from(record.rtt_us))),
                    snd_una: 0,
                    snd_nxt: 0,
                    flight_size,
                    prior_flight_size: flight_size,
                    snd_wnd: Bytes::new(u64::from(record.snd_wnd)),
                    mss,
                    cwnd_limited: true,
                    app_limited: record.app_limited == 1,
                    in_recovery: true,
                    counting: AckCounting::PerAck,
                };
                fs_at.on_ack(&ack, &mut limits);
                met.acks += 1;
                met.controlled += usize::from(record.values.target_bytes > 0);
                met.app_limited += usize::from(record.app_limited == 1);
                met.selective += usize::from(record.newly_acked == 0 && record.delivered > 0);
            }
            Event::Loss | Event::Mark => {
                let kind =
                    if record.event() == Event::Loss { CongestionKind::Loss } else { CongestionKind::Ecn };
                let mut after = Limits { ssthresh: Bytes::new(1), ..limits };
                let cwnd = after.cwnd;
                fs_at.on_congestion(&congestion(kind), &mut after);
                // (10) keeps at least cwnd, which over Reno (11) never does at half the flight or less.
                if record.event() == Event::Loss {
                    assert_eq!(
                        record.radio == 1,
                        !fs_at.passed_on(),
                        "judged otherwise at record {number}, cwnd {cwnd}"
                    );
                    met.losses += 1;
                    radio += usize::from(record.radio == 1);
                } else {
                    met.marks += 1;
                }
            }
            Event::Undo => met.undone += 1,
            Event::Path => fs_at.forget_path(),
            Event::Start | Event::Timeout | Event::End => {}
        }
        let mut inner = Inner::default();
        fs_at.probe(&mut inner);
        let kernel = (record.values.target_bytes, record.values.space_bytes, record.values.rtt_min_us);
        assert_eq!((inner.target, inner.space, inner.rtt_min_us), kernel, "record {number}: {record:?}");
    }
    met.radio = radio;
    met
}

/// One connection over `link`, traced and replayed.
fn replayed(
    algorithm: &str,
    link: &str,
    queue: &str,
    ecn: bool,
    length: Duration,
    burst: Option<usize>,
) -> Replayed {
    let own = Own::load(algorithm);
    let hosts = hosts(link, queue);
    if ecn {
        hosts.near.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
        hosts.far.set_sysctl("ipv4/tcp_ecn", "1").unwrap();
    }
    let records = traced(&own, || {
        transfer(&hosts, &own, length, burst);
    });
    drop(hosts);
    let met = replay(&records);
    eprintln!("{algorithm} over {link}, {queue}: {met:?}");
    met
}

const LENGTH: Duration = Duration::from_secs(4);

#[test]
fn a_bulk_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    for algorithm in ["fs-at", "fs-at+cubic"] {
        let met = replayed(algorithm, "10Mbit 40ms 200packets", "droptail", false, LENGTH, None);
        assert!(met.acks > 1_000 && met.controlled > met.acks / 2, "{met:?}");
    }
}

#[test]
fn an_application_limited_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "5Mbit 60ms 100packets", "droptail", false, LENGTH, Some(40_000));
    assert!(met.app_limited > 50, "{met:?}");
}

#[test]
fn a_lossy_transfer_replays_ack_for_ack_and_loss_for_loss() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets loss=1%", "droptail", false, LENGTH, None);
    assert!(met.losses >= 3 && met.selective > 10, "{met:?}");
}

#[test]
fn a_reordered_transfer_replays_ack_for_ack() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets reorder=2%/15ms", "droptail", false, LENGTH, None);
    assert!(met.selective > 50, "{met:?}");
}

#[test]
fn a_marked_transfer_replays_ack_for_ack_and_takes_no_mark_for_the_radios() {
    if !can_load() {
        return;
    }
    let met = replayed("fs-at", "10Mbit 40ms 200packets", "codel", true, LENGTH, None);
    assert!(met.marks > 2 && met.radio == 0, "{met:?}");
}

#[test]
fn vegas_and_compound_load_and_carry_data() {
    if !can_load() {
        return;
    }
    for (algorithm, least_queue, most_queue) in [("vegas", 0.5, 6.0), ("compound", 6.0, 60.0)] {
        let own = Own::load(algorithm);
        let hosts = hosts("10Mbit 40ms 60packets", "droptail");
        let got = transfer(&hosts, &own, LENGTH, None);
        let reports = hosts.emulation.finish().unwrap();
        let queue = &reports[0].statistics.directions[0].totals;
        eprintln!("{algorithm}: {got} bytes, mean backlog {} packets", queue.backlog_mean_packets);
        assert!(got as f64 > 0.8 * 10e6 / 8.0 * LENGTH.as_secs_f64(), "{algorithm}: {got}");
        assert!((least_queue..most_queue).contains(&queue.backlog_mean_packets), "{queue:?}");
    }
}

fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}

/// How many of our programs' maps the kernel holds, whoever loaded them.
fn maps_in_kernel() -> usize {
    libbpf_rs::query::MapInfoIter::default().filter(|map| map.name.to_string_lossy() == "connections").count()
}

/// Connections from one namespace to itself under `own`, both ends.
fn connections(namespace: &Namespace, own: &Own, count: usize) -> Vec<TcpStream> {
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    choose(&listener, &own.0.kernel_name).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| (0..count).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
        let connect = || (0..count).map(|_| TcpStream::connect(address).unwrap()).collect::<Vec<_>>();
        let mut both = namespace.run(connect).unwrap();
        both.extend(accepted.join().unwrap());
        both
    })
}

/// Waits until `done`, as what the kernel frees it frees a little later.
fn soon(done: impl Fn() -> bool) -> bool {
    (0..100).any(|_| {
        let is_done = done();
        if !is_done {
            thread::sleep(Duration::from_millis(100));
        }
        is_done
    })
}

#[test]
fn a_hundred_loads_and_unloads_leave_nothing_even_under_connections() {
    if !can_load() {
        return;
    }
    let namespace = Namespace::new().unwrap();
    let mut names = Vec::new();
    for round in 0..100 {
        let own = Own::load("fs-at");
        let mut streams = connections(&namespace, &own, 1);
        streams[1].write_all(&[0; 10_000]).unwrap();
        if round % 2 == 0 {
            drop(streams);
            drop(own);
        } else {
            // The connections outlive what they use.
            names.push(own.0.kernel_name.clone());
            drop(own);
            streams[1].write_all(&[0; 10_000]).unwrap();
            assert!(!available().contains(names.last().unwrap()));
        }
    }
    drop(namespace);
    // Tests that run beside this one hold a few, and not for long.
    assert!(soon(|| maps_in_kernel() <= 8), "{} maps are left", maps_in_kernel());
}

const CONNECTOR: &str = "SUIMON_TEST_CONNECTOR";
const MANY: usize = 10_000;

/// Lets this process hold as many sockets as it may.
fn allow_many_sockets() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

/// Not a test of its own: the process at the other end of the next one's connections.
#[test]
fn connector_of_many() {
    if let Ok(address) = std::env::var(CONNECTOR) {
        allow_many_sockets();
        let address: SocketAddr = address.parse().unwrap();
        let streams: Vec<_> = (0..MANY).map(|_| TcpStream::connect(address).unwrap()).collect();
        // Until the other end has seen enough.
        let _ = std::io::stdin().read(&mut [0]);
        drop(streams);
    }
}

#[test]
fn ten_thousand_connections_are_listed_and_freed() {
    if !can_load() {
        return;
    }
    allow_many_sockets();
    let own = Own::load("fs-at");
    let namespace = Namespace::new().unwrap();
    let listener = namespace.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    choose(&listener, &own.0.kernel_name).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "connector_of_many"]).env(CONNECTOR, listener.local_addr().unwrap().to_string());
    let mut child = namespace.spawn(command.stdin(Stdio::piped()).stdout(Stdio::null())).unwrap();
    let mut streams: Vec<_> = (0..MANY).map(|_| listener.accept().unwrap().0).collect();
    for stream in &mut streams {
        stream.write_all(&[0; 1_000]).unwrap();
    }
    let listed = own.0.connections().unwrap();
    assert_eq!(listed.len(), MANY);
    assert!(listed.iter().all(|one| one.values.space_bytes >= 8_000 && one.local.ip().is_loopback()));
    drop(streams);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(soon(|| own.0.connections().unwrap().is_empty()));
}

const KILLED_LOADER: &str = "SUIMON_TEST_LOADER";

/// Not a test of its own: the process that the next one kills.
#[test]
fn loader_to_be_killed() {
    if let Ok(name) = std::env::var(KILLED_LOADER) {
        let algorithm = Algorithm::named("fs-at").unwrap();
        let loaded: Result<_, CongestionError> = on_host(|| congestion::load(algorithm, &name));
        assert!(loaded.is_ok());
    }
}

#[test]
fn a_loader_killed_at_any_point_leaves_all_or_nothing() {
    if !can_load() {
        return;
    }
    let (mut complete, mut nothing) = (0, 0);
    for round in 0..24_u64 {
        let name = format!("k{}_{round}", std::process::id());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loader_to_be_killed"])
            .env(KILLED_LOADER, &name)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(round * 12));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = on_host(|| congestion::find_loaded(&name));
        if let Ok(one) = found {
            assert!(available().contains(&name), "what is listed is there");
            on_host(|| congestion::unload(&one, false)).unwrap();
            complete += 1;
        } else {
            assert!(soon(|| !available().contains(&name)), "what is not listed is not there");
            nothing += 1;
        }
        // What was left half-way is in nobody's way.
        let algorithm = Algorithm::named("fs-at").unwrap();
        let again: Result<_, CongestionError> = on_host(|| {
            let one = congestion::load(algorithm, &name)?;
            congestion::unload(&one, false)
        });
        assert_eq!(again.unwrap(), 0);
    }
    eprintln!("killed: {complete} complete, {nothing} nothing");
    assert!(nothing > 0);
}

#[test]
fn loading_twice_or_unloading_a_default_is_refused() {
    if !can_load() {
        return;
    }
    let own = Own::load("vegas");
    let again: Result<_, CongestionError> = on_host(|| congestion::load(own.0.algorithm, &own.0.kernel_name));
    assert!(matches!(again, Err(CongestionError::AlreadyLoaded(_))), "{again:?}");
    let taken: Result<_, CongestionError> = on_host(|| congestion::load(own.0.algorithm, "reno"));
    assert!(matches!(taken, Err(CongestionError::NameTaken(_))), "{taken:?}");
    let bad: Result<_, CongestionError> = on_host(|| congestion::load(own.0.algorithm, "a/b"));
    assert!(matches!(bad, Err(CongestionError::BadName(_))), "{bad:?}");
    let namespace = Namespace::new().unwrap();
    namespace.set_sysctl("ipv4/tcp_congestion_control", &own.0.kernel_name).unwrap();
    let refused: Result<_, CongestionError> = namespace.run(|| congestion::unload(&own.0, false)).unwrap();
    assert!(matches!(refused, Err(CongestionError::IsDefault { .. })), "{refused:?}");
    namespace.set_sysctl("ipv4/tcp_congestion_control", "reno").unwrap();
}
