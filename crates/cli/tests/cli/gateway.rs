//! `suimon gateway` between two devices: three namespaces in a row, a client, the gateway and a server.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use suimon_linux::{Namespace, Route};

/// The namespaces, and a process in the middle one.
struct Row {
    client: Namespace,
    middle: Namespace,
    server: Namespace,
    folder: tempfile::TempDir,
}

const CLIENT: [&str; 2] = ["10.9.1.2", "fd09:1::2"];
const SERVER: [&str; 2] = ["10.9.2.2", "fd09:2::2"];
const PATIENCE: Duration = Duration::from_secs(20);

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Row {
    fn new() -> Option<Self> {
        // Rules for other users' namespaces, and real root's right to have them.
        if !suimon_testing::can_emulate()
            || std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.contains("4294967295"))
        {
            return None;
        }
        let [client, middle, server] = [(); 3].map(|()| Namespace::new().unwrap());
        client.add_veth("rad0", &middle, "wwan0").unwrap();
        server.add_veth("srv0", &middle, "eth0").unwrap();
        for (end, device, own, near, gateways) in [
            (&client, "rad0", CLIENT, "wwan0", ["10.9.1.1", "fd09:1::1"]),
            (&server, "srv0", SERVER, "eth0", ["10.9.2.1", "fd09:2::1"]),
        ] {
            for (address, gateway) in own.into_iter().zip(gateways) {
                let prefix = if ip(address).is_ipv4() { 24 } else { 64 };
                end.add_address(device, ip(address), prefix).unwrap();
                middle.add_address(near, ip(gateway), prefix).unwrap();
            }
            end.set_up(device).unwrap();
            middle.set_up(near).unwrap();
        }
        for gateway in ["10.9.1.1", "fd09:1::1"] {
            client.add_route(&Route::default_via(ip(gateway), "rad0")).unwrap();
        }
        // Whatever else the server is asked to send on, it says that there is no way.
        for (network, prefix, gateway) in [("10.9.1.0", 24, "10.9.2.1"), ("fd09:1::", 64, "fd09:2::1")] {
            let route = Route::default_via(ip(gateway), "srv0");
            server.add_route(&Route { destination: Some((ip(network), prefix)), ..route }).unwrap();
        }
        server.set_sysctl("ipv4/ip_forward", "1").unwrap();
        let beyond = Route::default_via(ip(SERVER[0]), "eth0");
        middle.add_route(&Route { destination: Some((ip("10.9.3.0"), 24)), ..beyond }).unwrap();
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            middle.set_sysctl(key, "1").unwrap();
        }
        Some(Self { client, middle, server, folder: tempfile::tempdir().unwrap() })
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("gateway.sock")
    }

    fn start(&self, options: &[&str]) -> Running {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_suimon"));
        command.args(["gateway", "--lan", "eth0", "--radio", "wwan0", "--radio-cc", "reno", "--control"]);
        command.arg(self.control()).args(options).stdin(Stdio::null()).stderr(log);
        Running(self.middle.spawn(&mut command).unwrap())
    }

    /// Waits until `--control` answers, which comes last.
    fn wait(&self) {
        wait_for(|| std::os::unix::net::UnixStream::connect(self.control()).ok());
    }

    fn report(&self) -> serde_json::Value {
        let mut socket = std::os::unix::net::UnixStream::connect(self.control()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn listen(&self, address: &str) -> TcpListener {
        let address = SocketAddr::new(ip(address), 0);
        self.server.run(|| TcpListener::bind(address)).unwrap().unwrap()
    }

    fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let connected = self.client.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap()?;
        connected.set_read_timeout(Some(PATIENCE))?;
        Ok(connected)
    }

    /// Rules and routes that a gateway sets, where there are any.
    fn left(&self) -> Vec<String> {
        let run = |words: &str| {
            let mut words = words.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words).stdout(Stdio::piped()).stderr(Stdio::null());
            let output = self.middle.spawn(&mut command).unwrap().wait_with_output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let rules = ["ip -4 rule", "ip -6 rule"].map(run).concat();
        let rules = rules.lines().filter(|line| line.contains("0x5350")).map(str::to_owned);
        let routes = ["ip -4 route show table 21328", "ip -6 route show table 21328"].map(run).concat();
        rules.chain(routes.lines().map(str::to_owned)).collect()
    }
}

/// A gateway, killed with the value.
struct Running(Child);

impl Running {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}

/// Both ends say something; the address that the server sees.
fn talk(row: &Row, listener: &TcpListener) -> IpAddr {
    let mut client = row.connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, from) = listener.accept().unwrap();
    server.write_all(b"220 ready").unwrap();
    client.read_exact(&mut [0; 9]).unwrap();
    client.write_all(b"quit").unwrap();
    drop(client);
    let mut said = String::new();
    server.read_to_string(&mut said).unwrap();
    assert_eq!(said, "quit");
    from.ip()
}

#[test]
fn both_addresses_are_kept_and_a_refusal_is_a_refusal() {
    let Some(row) = Row::new() else { return };
    let listeners = SERVER.map(|address| row.listen(address));
    let excepted = row.listen(SERVER[0]);
    let port = excepted.local_addr().unwrap().port().to_string();
    let running = row.start(&["--except", &port]);
    row.wait();
    for (listener, client) in listeners.iter().zip(CLIENT) {
        assert_eq!(talk(&row, listener), ip(client));
    }
    assert_eq!(row.report()["split"], 2);
    assert_eq!(talk(&row, &excepted), ip(CLIENT[0]));
    assert_eq!(row.report()["split"], 2, "the port passes unsplit");
    for address in SERVER {
        let refused = row.connect(SocketAddr::new(ip(address), 9)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
    let missing = row.connect("10.9.3.1:80".parse().unwrap()).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::HostUnreachable);
    assert_eq!(row.report()["failed"], 3);
    drop(running);
}

#[test]
fn a_connection_that_a_server_opens_is_split_too() {
    let Some(row) = Row::new() else { return };
    let listener = row.client.run(|| TcpListener::bind((ip(CLIENT[0]), 0))).unwrap().unwrap();
    let _running = row.start(&[]);
    row.wait();
    let to = listener.local_addr().unwrap();
    let mut server = row.server.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap().unwrap();
    let (mut client, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), ip(SERVER[0]));
    server.write_all(b"news").unwrap();
    client.read_exact(&mut [0; 4]).unwrap();
    // The gateway counts after it has sent, so the client may have all before.
    let report = wait_for(|| {
        let report = row.report();
        (report["clients"][0]["connections"][0]["to_radio_bytes"] == 4).then_some(report)
    });
    assert_eq!(report["clients"][0]["client"], CLIENT[0], "the client is who is behind the radio");
}

#[test]
fn what_is_over_a_limit_passes_unsplit() {
    let Some(row) = Row::new() else { return };
    let listener = row.listen(SERVER[0]);
    let _running = row.start(&["--max-of-client", "1"]);
    row.wait();
    let held = row.connect(listener.local_addr().unwrap()).unwrap();
    let _ = listener.accept().unwrap();
    assert_eq!(talk(&row, &listener), ip(CLIENT[0]));
    // The first is carried from the moment that both ends are connected, a little later than its client hears of it.
    let counts = || {
        let report = row.report();
        (report["split"].as_u64(), report["turned_away"].as_u64())
    };
    let deadline = Instant::now() + PATIENCE;
    while counts().0 == Some(0) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(counts(), (Some(1), Some(1)));
    drop(held);
}

#[test]
fn told_to_stop_it_lets_connections_end_and_new_ones_pass() {
    let Some(row) = Row::new() else { return };
    let listener = row.listen(SERVER[0]);
    let mut running = row.start(&[]);
    row.wait();
    let mut client = row.connect(listener.local_addr().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    running.signal("-TERM");
    wait_for(|| {
        let before = row.report()["split"].clone();
        talk(&row, &listener);
        (row.report()["split"] == before).then_some(())
    });
    server.write_all(b"the last").unwrap();
    client.read_exact(&mut [0; 8]).unwrap();
    drop((client, server));
    assert!(wait_for(|| running.0.try_wait().unwrap()).success());
    assert_eq!(row.left(), [""; 0]);
    talk(&row, &listener);
}

/// As many times as `SUIMON_HALF_OPEN` says.
#[test]
fn connections_that_no_server_answers_are_bounded_and_others_go_on() {
    let Some(row) = Row::new() else { return };
    let silent = "10.9.4.1:80".parse::<SocketAddr>().unwrap();
    let beyond = Route::default_via(ip(SERVER[0]), "eth0");
    row.middle.add_route(&Route { destination: Some((ip("10.9.4.0"), 24)), ..beyond }).unwrap();
    let mut blackhole = Command::new("ip");
    blackhole.args(["route", "add", "blackhole", "10.9.4.0/24"]);
    assert!(row.server.spawn(&mut blackhole).unwrap().wait().unwrap().success());
    let listener = row.listen(SERVER[1]);
    let running = row.start(&["--max-of-client", "64"]);
    row.wait();
    let count = std::env::var("SUIMON_HALF_OPEN").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let half_open: Vec<_> = (0..count)
        .map(|_| {
            let begin = || Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None);
            let socket = row.client.run(begin).unwrap().unwrap();
            let _ = socket.connect(&silent.into());
            socket
        })
        .collect();
    // Another client, by its address, is served meanwhile.
    assert_eq!(talk(&row, &listener), ip(CLIENT[1]));
    let report = wait_for(|| {
        let report = row.report();
        (report["turned_away"].as_u64().unwrap() >= count - 64).then_some(report)
    });
    assert_eq!(report["split"], 1);
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kilobytes: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 100_000, "{kilobytes} kB");
    drop(half_open);
}

/// As many times as `SUIMON_KILLS` says.
#[test]
fn killed_at_any_time_it_leaves_nothing_and_connections_pass() {
    let Some(row) = Row::new() else { return };
    let listener = row.listen(SERVER[0]);
    let kills = std::env::var("SUIMON_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut random = 1_u64;
    let mut killed_at_work = 0;
    for kill in 0..kills {
        let mut running = row.start(&[]);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis(random >> 32 & 0xff));
        let open = row.connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        killed_at_work += u32::from(!row.left().is_empty());
        running.0.kill().unwrap();
        let began = Instant::now();
        running.0.wait().unwrap();
        wait_for(|| row.left().is_empty().then_some(()));
        // The helper has a processor to wait for.
        assert!(began.elapsed() < Duration::from_secs(1), "kill {kill}: {:?}", began.elapsed());
        assert_eq!(talk(&row, &listener), ip(CLIENT[0]), "kill {kill}");
        drop((open, server));
    }
    assert!(killed_at_work > 0, "no gateway had begun");
}
