//! Loading, unloading, and leftovers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use suimon_linux::Namespace;
use suimon_linux::congestion::{self, Algorithm, CongestionError, on_host};
use suimon_linux::tcp::choose;

use super::{Own, can_load};

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

/// Waits until `done`, as the kernel frees objects a little later.
fn soon(done: impl Fn() -> bool) -> bool {
    (0..600).any(|_| {
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
            // The connections outlive the algorithm's unloading.
            names.push(own.0.kernel_name.clone());
            drop(own);
            streams[1].write_all(&[0; 10_000]).unwrap();
            // Unloading waits for a second at most, and a busy kernel may take longer to let go of the name.
            assert!(soon(|| !available().contains(names.last().unwrap())));
        }
    }
    drop(namespace);
    // Tests that run beside this one hold a few, and not for long.
    assert!(soon(|| maps_in_kernel() <= 8), "{} maps are left", maps_in_kernel());
}

/// The name by which this program runs the `test` of this file alone.
fn full_name(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
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
    command
        .args(["--exact", &full_name("connector_of_many")])
        .env(CONNECTOR, listener.local_addr().unwrap().to_string());
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
            .args(["--exact", &full_name("loader_to_be_killed")])
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
        // Leftovers of a killed loader are in nobody's way.
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
