//! Several servers for a client, and the clients of a server as they change.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use suimon_bond::keys::{AuthorizedKeys, PrivateKey, PublicKey, client_config, server_config};
use suimon_bond::{Carriers, Classes, Client, ClientConfigBond, Server, ServerConfigBond, ServerEnd, Via};
use suimon_linux::{Namespace, Route};
use suimon_service::Names;
use suimon_testing::{assert_in_time, can_emulate, in_time};

use crate::world::{Running, connect, listen, plain_hosts, server_end, session};

/// Another address behind both networks of plain hosts.
fn second_address(near: &Namespace, far: &Namespace) -> IpAddr {
    let address = IpAddr::V4(Ipv4Addr::new(10, 88, 0, 2));
    far.add_address("lo", address, 32).unwrap();
    for path in 1..=2 {
        let route = Route::default_via(Ipv4Addr::new(10, 77, path, 2).into(), &format!("near{path}"));
        let route = Route { destination: Some((address, 32)), table: 100 + u32::from(path), ..route };
        near.add_route(&route).unwrap();
    }
    address
}

#[test]
fn new_streams_go_to_another_server_within_two_seconds_where_no_path_to_the_first_answers() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        for is_killed in [true, false] {
            let (near, far, first) = plain_hosts();
            let second = second_address(&near, &far);
            let keys = [0; 3].map(|_| PrivateKey::generate().unwrap());
            let [first_key, second_key, client_key] = &keys;
            let first_server = Running::server_at(&far, first, first_key, &[client_key.public()]);
            let _second = Running::server_at(&far, second, second_key, &[client_key.public()]);
            let servers: Vec<ServerEnd> = [(first_key, first), (second_key, second)]
                .map(|(key, address)| server_end(client_key, key.public(), address))
                .to_vec();
            let config = ClientConfigBond {
                servers: servers.clone(),
                ..Running::client_config(client_key, first_key.public(), first, &["near1", "near2"])
            };
            let client = Running::client_of(&near, config);
            client.wait_for_paths(2, Duration::from_secs(5));
            assert_eq!(client.report().sessions[0].status.server.as_ref(), Some(&servers[0].name));
            let listener = listen(&far);
            let mut old = connect(&near);
            let _target = listener.accept().unwrap();
            listener.set_nonblocking(true).unwrap();

            let began = Instant::now();
            let _silent = if is_killed {
                first_server.kill();
                None
            } else {
                let gone = ["address", "del", "10.88.0.1/32", "dev", "lo"];
                assert!(far.run(|| Command::new("ip").args(gone).status()).unwrap().unwrap().success());
                Some(first_server)
            };
            // A program that asks again and again.
            let mut asking = Vec::new();
            while listener.accept().is_err() {
                assert_in_time!(began.elapsed() < Duration::from_secs(2), "no stream, killed: {is_killed}");
                asking.push(connect(&near));
                thread::sleep(Duration::from_millis(50));
            }
            eprintln!("killed: {is_killed}: a new stream after {:?}", began.elapsed());
            old.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let end = old.read(&mut [0]).unwrap_err();
            assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset, "no end that looks like one: {end}");
            let status = client.report().sessions[0].status.clone();
            assert_eq!(status.server.as_ref(), Some(&servers[1].name), "{status:?}");
            let why = format!("as no path to {} answered", servers[0].name);
            assert_eq!((status.ended, status.last_end), (1, Some(why)));
        }
    });
}

/// A silence of all paths is no silence of the server.
#[test]
fn a_client_stays_with_its_server_where_both_are_out_of_reach_for_a_while() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, first) = plain_hosts();
        let second = second_address(&near, &far);
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let servers = [first, second].map(|address| {
            (
                Running::server_at(&far, address, &server_key, &[client_key.public()]),
                server_end(&client_key, server_key.public(), address),
            )
        });
        let config = ClientConfigBond {
            servers: servers.iter().map(|(_, end)| end.clone()).collect(),
            ..Running::client_config(&client_key, server_key.public(), first, &["near1", "near2"])
        };
        let client = Running::client_of(&near, config);
        client.wait_for_paths(2, Duration::from_secs(5));
        let devices = ["far1", "far2"];
        let set = |state: &str| {
            for device in devices {
                let change = ["link", "set", device, state];
                assert!(far.run(|| Command::new("ip").args(change).status()).unwrap().unwrap().success());
            }
        };
        set("down");
        thread::sleep(Duration::from_millis(3_000));
        set("up");
        client.wait_for_paths(2, Duration::from_secs(5));
        let status = client.report().sessions[0].status.clone();
        assert_eq!((status.server.as_ref(), status.ended), (Some(&servers[0].1.name), 0), "{status:?}");
    });
}

fn client(server: SocketAddr, server_key: PublicKey, key: &PrivateKey) -> Client {
    let tls = Arc::new(client_config(key, server_key).unwrap());
    let config = ClientConfigBond {
        servers: vec![ServerEnd { name: server.to_string(), tls, addresses: None }],
        via: vec![Via::Address("127.0.0.1".parse().unwrap())],
        carriers: Carriers::Auto,
        cc: None,
        quic_cc: "cubic".parse().unwrap(),
        path_buffer: None,
        session: session(),
        classes: Classes::default(),
        path_timeout: Duration::from_secs(2),
        session_timeout: Duration::from_secs(60),
        beside_tunnel: false,
    };
    Client::start(config).unwrap().0
}

#[test]
fn clients_come_and_go_with_the_servers_list_and_the_others_notice_nothing() {
    in_time(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let [server_key, kept, removed] = [0; 3].map(|_| PrivateKey::generate().unwrap());
        let keys = [kept.public(), removed.public()];
        let clients: AuthorizedKeys = keys.into_iter().collect();
        let server = Server::new(ServerConfigBond {
            tls: Arc::new(server_config(&server_key, &clients).unwrap()),
            clients,
            path_buffer: None,
            cc: None,
            quic_cc: "cubic".parse().unwrap(),
            reset_secret: server_key.reset_secret(),
            session: session(),
            sessions: 4,
            path_timeout: Duration::from_secs(2),
            session_timeout: Duration::from_secs(60),
            names: Names::of_host(),
        });
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let serving = server.clone();
            tokio::spawn(async move { serving.serve(listener).await });
            let [kept, removed] = [kept, removed].map(|key| client(address, server_key.public(), &key));
            let wait = async |paths: usize| {
                let until = Instant::now() + Duration::from_secs(2);
                while removed.status().paths.len() != paths {
                    assert_in_time!(Instant::now() < until, "{paths} paths: {:?}", removed.status());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            wait(1).await;
            assert_eq!(server.set_clients([keys[0]]).await, 1, "one session ends");
            wait(0).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(removed.status().paths.len(), 0, "it does not come back");
            assert_eq!(server.status().iter().map(|(key, _)| *key).collect::<Vec<_>>(), [keys[0]]);
            assert_eq!(server.set_clients(keys).await, 0);
            wait(1).await;
            assert_eq!((kept.status().paths.len(), kept.status().ended), (1, 0));
        });
    });
}
