//! What a connection through a gateway may tell from one without.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ipnet::IpNet;
use socket2::SockRef;
use suimon_gateway::report::Report;
use suimon_gateway::{Gateway, Limits, Side, Sides, serve_forward, serve_socks};
use suimon_service::{Names, Target};
use suimon_testing::serve_names;
use suimon_units::Bytes;

/// A gateway at a port of this host, which ends with the value.
struct Running {
    address: SocketAddr,
    gateway: Gateway,
    _runtime: tokio::runtime::Runtime,
}

const LIMITS: Limits = Limits { connections: 100, of_client: 3 };
/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway that leads to `server`, or without one a SOCKS proxy for all.
fn start(server: Option<SocketAddr>) -> Running {
    let server = server.map(|server| server.to_string().parse().unwrap());
    start_with(Names::of_host(), server, Vec::new())
}

/// A gateway that leads to `server`, or without one a SOCKS proxy for hosts of the `allowed` networks.
fn start_with(names: Names, server: Option<Target>, allowed: Vec<IpNet>) -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let side =
        Side { congestion_control: Some("reno".to_owned()), receive_buffer: Some(Bytes::new(131_072)) };
    let gateway = Gateway::new(Sides { radio: side.clone(), lan: side }, LIMITS, names);
    let _inside = runtime.enter();
    let listener = gateway.sides().radio.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    match server {
        Some(server) => {
            runtime.spawn(serve_forward(gateway.clone(), listener, server));
        }
        None => drop(runtime.spawn(serve_socks(gateway.clone(), listener, allowed))),
    }
    drop(_inside);
    Running { address, gateway, _runtime: runtime }
}

fn connect(running: &Running) -> TcpStream {
    let tcp = TcpStream::connect(running.address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp
}

/// A connection through a gateway: the client's end and the server's.
fn pair() -> (Running, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = start(Some(listener.local_addr().unwrap()));
    let client = connect(&running);
    let (server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    (running, client, server)
}

fn reset(tcp: TcpStream) {
    SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    drop(tcp);
}

/// What `look` finds once it finds something.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}

fn open_connections(report: &Report) -> usize {
    report.clients.iter().map(|client| client.connections.len()).sum()
}

#[test]
fn each_direction_ends_by_itself_and_a_server_may_speak_first() {
    let (running, mut client, mut server) = pair();
    server.write_all(b"220 ready\r\n").unwrap();
    let mut banner = [0; 11];
    client.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"220 ready\r\n");
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    server.write_all(b"answer").unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
    drop(client);
    wait_for(|| (open_connections(&running.gateway.report()) == 0).then_some(()));
    let report = running.gateway.report();
    assert_eq!((report.split, report.to_radio_bytes, report.to_lan_bytes), (1, 17, 8));
}

#[test]
fn a_reset_goes_on_as_a_reset_after_what_came_before_it() {
    // Toward the client, which reads slowly, and toward the server.
    for toward_client in [true, false] {
        let (running, client, server) = pair();
        let (mut far, near) = if toward_client { (client, server) } else { (server, client) };
        SockRef::from(&far).set_recv_buffer_size(16_384).unwrap();
        let mut writer = near.try_clone().unwrap();
        writer.write_all(&[7; 50_000]).unwrap();
        // The kernel throws away what it has not sent when it resets.
        wait_for(|| (suimon_linux::tcp::unacknowledged(&near).unwrap() == Bytes::ZERO).then_some(()));
        drop(writer);
        reset(near);
        thread::sleep(Duration::from_millis(100));
        let mut got = 0;
        let mut buffer = [0; 10_000];
        let end = loop {
            match far.read(&mut buffer) {
                Ok(0) => panic!("an end in order, after {got} bytes"),
                Ok(count) => got += count,
                Err(error) => break error,
            }
        };
        assert_eq!((got, end.kind()), (50_000, io::ErrorKind::ConnectionReset), "{toward_client}");
        wait_for(|| (open_connections(&running.gateway.report()) == 0).then_some(()));
    }
}

#[test]
fn a_reset_by_an_end_that_had_finished_goes_on_too() {
    let (running, client, mut server) = pair();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    reset(client);
    let gone = wait_for(|| server.write(b"x").err());
    assert!(matches!(gone.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{gone}");
    wait_for(|| (open_connections(&running.gateway.report()) == 0).then_some(()));
}

#[test]
fn a_server_that_refuses_is_a_reset_for_the_client() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let running = start(Some(closed));
    let refused = connect(&running).read(&mut [0; 1]).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(running.gateway.report().failed, 1);
}

#[test]
fn a_client_that_does_not_read_stops_the_server_and_is_held_no_more_for() {
    let (running, client, mut server) = pair();
    SockRef::from(&client).set_recv_buffer_size(16_384).unwrap();
    SockRef::from(&server).set_send_buffer_size(16_384).unwrap();
    server.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut taken = 0;
    while let Ok(count) = server.write(&[0; 16_384]) {
        taken += count;
        assert!(taken < 4_000_000, "the gateway takes what the client does not");
    }
    let report = running.gateway.report();
    let held = report.clients[0].held_bytes;
    // The window that a loopback client opens at first, and a segment of 64 kB beyond what may wait unsent.
    assert!(held < 400_000, "{held} bytes are held");
    drop(client);
}

#[test]
fn a_client_over_its_limit_is_turned_away_and_the_others_go_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = start(Some(listener.local_addr().unwrap()));
    let (sender, servers) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((server, _)) = listener.accept() {
            sender.send(server).unwrap();
        }
    });
    let mut open = Vec::new();
    for _ in 0..LIMITS.of_client {
        open.push((connect(&running), servers.recv_timeout(PATIENCE).unwrap()));
    }
    let error = connect(&running).read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    for (client, server) in &mut open {
        server.write_all(b"x").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
    }
    assert_eq!(running.gateway.report().turned_away, 1);
    drop(open);
    wait_for(|| (open_connections(&running.gateway.report()) == 0).then_some(()));
    connect(&running).write_all(b"x").unwrap();
    servers.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_proxy_leads_nobody_to_its_own_host() {
    let running = start(None);
    let own_service = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (target, name) in [(own_service, "a service"), (running.address, "itself")] {
        let mut client = connect(&running);
        let SocketAddr::V4(target) = target else { unreachable!() };
        let port = target.port().to_be_bytes();
        client.write_all(&[&[5, 1, 0, 5, 1, 0, 1][..], &target.ip().octets(), &port].concat()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer[..4], [5, 0, 5, 2], "{name}");
    }
}

#[test]
fn the_server_s_name_is_asked_of_name_servers() {
    let names = UdpSocket::bind("127.0.0.1:0").unwrap();
    let servers = [names.local_addr().unwrap()];
    serve_names(names);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("server.example.:{}", listener.local_addr().unwrap().port());
    let running = start_with(Names::of_servers(&servers), Some(target.parse().unwrap()), Vec::new());
    let mut client = connect(&running);
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"220 ready").unwrap();
    drop(server);
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "220 ready");
}

#[test]
fn the_proxy_serves_hosts_of_the_allowed_networks_only() {
    for (allowed, is_served) in [("127.0.0.0/8", true), ("10.0.0.0/8", false), ("::/0", false)] {
        let running = start_with(Names::of_host(), None, vec![allowed.parse().unwrap()]);
        let mut client = connect(&running);
        // A proxy that does not serve resets, before or after it is greeted.
        let greeted = client.write_all(&[5, 1, 0]).and_then(|()| client.read_exact(&mut [0; 2]));
        assert_eq!(greeted.is_ok(), is_served, "{allowed}: {greeted:?}");
    }
}
