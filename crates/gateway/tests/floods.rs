//! Clients that mean no good: what they take is bounded, and the others go on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;
use suimon_gateway::{Gateway, Limits, Side, Sides, serve_forward};
use suimon_service::Names;
use suimon_units::Bytes;

const PATIENCE: Duration = Duration::from_secs(20);
const CLIENTS: usize = 60;

/// A gateway in front of a server that sends as much to each connection as it takes, and the gateway's address.
fn flooded() -> (tokio::runtime::Runtime, Gateway, SocketAddr) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut connection, _)) = server.accept() {
            thread::spawn(move || while connection.write_all(&[0; 16_384]).is_ok() {});
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let side =
        Side { congestion_control: Some("reno".to_owned()), receive_buffer: Some(Bytes::new(131_072)) };
    let limits = Limits { connections: 2 * CLIENTS, of_client: 2 * CLIENTS };
    let gateway = Gateway::new(Sides { radio: side.clone(), lan: side }, limits, Names::of_host());
    let inside = runtime.enter();
    let listener = gateway.sides().radio.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve_forward(gateway.clone(), listener, to.to_string().parse().unwrap()));
    drop(inside);
    (runtime, gateway, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client
}

fn open_connections(gateway: &Gateway) -> usize {
    gateway.report().clients.iter().map(|client| client.connections.len()).sum()
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "it never came");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A client that reads gets a megabyte in time.
fn assert_serves(address: SocketAddr) {
    let mut client = connect(address);
    let mut buffer = vec![0; 1_000_000];
    client.read_exact(&mut buffer).unwrap();
}

#[test]
fn clients_that_do_not_read_hold_a_bounded_part_each() {
    let (_runtime, gateway, address) = flooded();
    let slow: Vec<_> = (0..CLIENTS).map(|_| connect(address)).collect();
    for client in &slow {
        SockRef::from(client).set_recv_buffer_size(16_384).unwrap();
    }
    wait_until(|| open_connections(&gateway) == CLIENTS);
    assert_serves(address);
    let report = gateway.report();
    // As one: the window that a loopback client opens at first, and a segment of 64 kB beyond what may wait unsent.
    let held: u64 = report.clients.iter().map(|client| client.held_bytes).sum();
    assert!(held < 400_000 * CLIENTS as u64, "{held} bytes are held");
    drop(slow);
    wait_until(|| open_connections(&gateway) <= 1);
}

#[test]
fn a_storm_of_resets_leaves_nothing() {
    let (_runtime, gateway, address) = flooded();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert_serves(address);
    wait_until(|| open_connections(&gateway) == 0);
    let before = descriptors();
    for nth in 0..1_000 {
        let client = connect(address);
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        if nth % 2 == 0 {
            let _ = (&client).read(&mut [0; 1]);
        }
    }
    assert_serves(address);
    wait_until(|| open_connections(&gateway) == 0);
    // Tests beside this one have descriptors of their own, where they share its process.
    wait_until(|| descriptors() < before + 3 * CLIENTS + 100);
}
