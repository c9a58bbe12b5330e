//! QUIC and TCP as carriers of paths: which of them is used, and what only QUIC bears.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use suimon_bond::keys::PrivateKey;
use suimon_bond::status::PathStatusView;
use suimon_bond::{Carrier, Carriers, ClientConfigBond};
use suimon_linux::Namespace;
use suimon_testing::{assert_in_time, can_emulate, in_time};

use crate::world::{Running, SERVER_PORT, each_carrier, exchange, plain_hosts, server_end};

/// A client over both interfaces that chooses its carriers itself.
fn choosing(near: &Namespace, keys: [&PrivateKey; 2], server: IpAddr) -> Running {
    let [server_key, client_key] = keys;
    let config = ClientConfigBond {
        carriers: Carriers::Auto,
        ..Running::client_config(client_key, server_key.public(), server, &["near1", "near2"])
    };
    Running::client_of(near, config)
}

fn carriers(running: &Running) -> Vec<Carrier> {
    running.report().sessions[0].status.paths.iter().map(|path| path.carrier).collect()
}

/// Ends what runs beside a test, however the test ends.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time until `client` has both paths.
fn time_to_paths(client: &Running, began: Instant) -> Duration {
    client.wait_for_paths(2, Duration::from_secs(5));
    began.elapsed()
}

#[test]
fn quic_is_used_where_udp_passes_and_tcp_where_it_does_not() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let server = Running::server(&far, &server_key, &[client_key.public()]);
        let client = choosing(&near, [&server_key, &client_key], address);
        client.wait_for_paths(2, Duration::from_secs(5));
        // Where the machine is too busy for a handshake within the head start, TCP is there first.
        assert_in_time!(carriers(&client) == [Carrier::Quic; 2], "{:?}", carriers(&client));
        let (up, down) = exchange((&near, &far), 1_000_000, || ());
        assert_eq!((up.bytes, down.bytes), (1_000_000, 1_000_000));
        assert_eq!(carriers(&server), [Carrier::Quic; 2], "the server says so too");
        drop((client, server));

        // A port at which nobody listens is told by the kernel, and TCP does not wait.
        let server = Running::server_over_tcp(&far, &server_key, &[client_key.public()]);
        let began = Instant::now();
        let client = choosing(&near, [&server_key, &client_key], address);
        let took = time_to_paths(&client, began);
        assert_eq!(carriers(&client), [Carrier::Tcp; 2]);
        assert_in_time!(took < Duration::from_millis(200), "{took:?}");
        drop(client);

        // A network that lets no UDP pass says nothing.
        let _sink = far.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, SERVER_PORT))).unwrap().unwrap();
        let began = Instant::now();
        let client = choosing(&near, [&server_key, &client_key], address);
        let took = time_to_paths(&client, began);
        assert_eq!(carriers(&client), [Carrier::Tcp; 2]);
        assert_in_time!(took < Duration::from_millis(800), "{took:?}");
        let (up, down) = exchange((&near, &far), 1_000_000, || ());
        assert_eq!((up.bytes, down.bytes), (1_000_000, 1_000_000));
        drop(server);
    });
}

/// Firewalls change without a word to the host.
#[test]
fn a_path_that_had_to_take_tcp_takes_quic_once_udp_passes() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let firewall = |what: &str| {
            let rule = format!("rule {what} pref 1 ipproto udp sport {SERVER_PORT} prohibit");
            let status = far.run(|| Command::new("ip").args(rule.split(' ')).status()).unwrap().unwrap();
            assert!(status.success(), "{rule}");
        };
        firewall("add");
        let client = choosing(&near, [&server_key, &client_key], address);
        client.wait_for_paths(2, Duration::from_secs(5));
        assert_eq!(carriers(&client), [Carrier::Tcp; 2]);
        firewall("del");
        let began = Instant::now();
        while carriers(&client) != [Carrier::Quic; 2] {
            assert_in_time!(began.elapsed() < Duration::from_secs(8), "{:?}", client.report());
            let (up, down) = exchange((&near, &far), 1_000_000, || ());
            assert_eq!((up.bytes, down.bytes), (1_000_000, 1_000_000));
        }
        let paths = client.report().sessions[0].status.paths.clone();
        assert!(paths.iter().all(|path| path.connections == 2), "one connection after the other: {paths:?}");
    });
}

#[test]
fn strangers_get_no_path_and_strange_servers_neither() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key, stranger] = [0; 3].map(|_| PrivateKey::generate().unwrap());
        let server = Running::server(&far, &server_key, &[client_key.public()]);
        for (key, expected) in [(&stranger, &server_key), (&client_key, &stranger)] {
            let config = ClientConfigBond {
                carriers: Carriers::Only(carrier),
                ..Running::client_config(key, expected.public(), address, &["near1"])
            };
            let refused = Running::client_of(&near, config);
            thread::sleep(Duration::from_millis(800));
            assert!(refused.report().sessions[0].status.paths.is_empty());
            assert!(server.report().sessions.is_empty());
        }
    });
}

/// A router between client and server that maps the client's port to one of its own, and to another one whenever it forgets.
struct Nat {
    inside: UdpSocket,
    server: SocketAddr,
    forgets: AtomicBool,
    over: AtomicBool,
}

impl Nat {
    fn route(&self) {
        let outside = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (mut mapped, mut client, mut buffer) = (outside(), None, vec![0; 65_536]);
        while !self.over.load(Ordering::Relaxed) {
            if self.forgets.swap(false, Ordering::Relaxed) {
                mapped = outside();
            }
            if let Ok((len, from)) = self.inside.recv_from(&mut buffer) {
                client = Some(from);
                let _ = mapped.send_to(&buffer[..len], self.server);
            } else if let (Ok(len), Some(client)) = (mapped.recv(&mut buffer), client) {
                let _ = self.inside.send_to(&buffer[..len], client);
            } else {
                thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

#[test]
fn a_nat_that_forgets_costs_quic_no_connection() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let host = Namespace::new().unwrap();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let server_at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), SERVER_PORT);
        let _server = Running::server_at(&host, server_at.ip(), &server_key, &[client_key.public()]);
        let inside =
            host.run(|| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), SERVER_PORT))).unwrap().unwrap();
        inside.set_nonblocking(true).unwrap();
        let through = inside.local_addr().unwrap().ip();
        let nat = Nat { inside, server: server_at, forgets: false.into(), over: false.into() };
        thread::scope(|scope| {
            scope.spawn(|| host.run(|| nat.route()).unwrap());
            let _ending = Ending(&nat.over);
            let config = ClientConfigBond {
                servers: vec![server_end(&client_key, server_key.public(), through)],
                carriers: Carriers::Only(Carrier::Quic),
                ..Running::client_config(&client_key, server_key.public(), through, &["127.0.0.1"])
            };
            let client = Running::client_of(&host, config);
            client.wait_for_paths(1, Duration::from_secs(5));
            let (up, down) = exchange((&host, &host), 3_000_000, || {
                for _ in 0..5 {
                    nat.forgets.store(true, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(50));
                }
            });
            assert_eq!((up.bytes, down.bytes), (3_000_000, 3_000_000));
            // While nothing is sent, too.
            nat.forgets.store(true, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(1_200));
            let (up, _) = exchange((&host, &host), 100_000, || ());
            assert_eq!(up.bytes, 100_000);
            let paths = client.report().sessions[0].status.paths.clone();
            assert_eq!((paths.len(), paths[0].connections), (1, 1), "it is the first connection: {paths:?}");
        });
    });
}

#[test]
fn a_changed_address_costs_a_connection_and_no_byte() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let config = ClientConfigBond {
            carriers: Carriers::Only(carrier),
            ..Running::client_config(&client_key, server_key.public(), address, &["near1", "near2"])
        };
        let client = Running::client_of(&near, config);
        client.wait_for_paths(2, Duration::from_secs(5));
        let ip = |arguments: &[&str]| {
            let status = near.run(|| Command::new("ip").args(arguments).status()).unwrap().unwrap();
            assert!(status.success(), "{arguments:?}");
        };
        let (up, down) = exchange((&near, &far), 3_000_000, || {
            ip(&["rule", "add", "from", "10.77.2.9", "lookup", "102"]);
            ip(&["address", "add", "10.77.2.9/24", "dev", "near2"]);
            ip(&["address", "del", "10.77.2.1/24", "dev", "near2"]);
            // The kernel takes the routes over that address away with it.
            ip(&["address", "replace", "10.77.2.9/24", "dev", "near2"]);
            ip(&["route", "replace", "10.88.0.1/32", "via", "10.77.2.2", "dev", "near2", "table", "102"]);
            let until = Instant::now() + Duration::from_secs(5);
            let moved = || {
                let paths = client.report().sessions[0].status.paths.clone();
                let of = |path: &PathStatusView| path.local.clone().unwrap_or_default();
                paths.iter().any(|path| of(path).starts_with("10.77.2.9:"))
            };
            while !moved() {
                assert_in_time!(Instant::now() < until, "{:?}", client.report());
                thread::sleep(Duration::from_millis(20));
            }
        });
        assert_eq!((up.bytes, down.bytes), (3_000_000, 3_000_000));
        assert_eq!(client.report().sessions[0].status.ended, 0, "it is one session");
    });
}

/// More than a server takes of one network at once, with handshakes that go no further than the token.
#[test]
fn a_flood_of_datagrams_keeps_nobody_out() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let flood = far.run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).unwrap().unwrap();
                let mut state = 1_u64;
                while !over.load(Ordering::Relaxed) {
                    // Packets that seem to begin a connection, to go on with one, and neither.
                    let mut bytes: Vec<u8> = (0..1_200)
                        .map(|_| {
                            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            (state >> 56) as u8
                        })
                        .collect();
                    match state >> 62 {
                        0 => bytes[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]),
                        1 => bytes[0] = 0x43,
                        2 => bytes[..5].copy_from_slice(&[0xc3, 1, 2, 3, 4]),
                        _ => {}
                    }
                    let _ = flood.send_to(&bytes, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), SERVER_PORT));
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let _ending = Ending(&over);
            let began = Instant::now();
            let client = choosing(&near, [&server_key, &client_key], address);
            let took = time_to_paths(&client, began);
            let chosen = carriers(&client);
            let (up, down) = exchange((&near, &far), 1_000_000, || ());
            assert_eq!((up.bytes, down.bytes), (1_000_000, 1_000_000));
            assert_in_time!(chosen == [Carrier::Quic; 2], "{chosen:?}");
            assert_in_time!(took < Duration::from_millis(500), "{took:?}");
        });
    });
}
