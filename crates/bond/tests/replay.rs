//! An attacker that has recorded a client cannot replay it. The test runs over loopback and needs no rights.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::keys::{PrivateKey, client_config, server_config};
use suimon_bond::mux::MuxLimits;
use suimon_bond::session::SessionConfig;
use suimon_bond::{Carrier, Carriers, Client, ClientConfigBond, Server, ServerConfigBond, ServerEnd, Via};
use suimon_service::Names;
use suimon_units::Bytes;

fn session() -> SessionConfig {
    SessionConfig {
        scheduler: AlgorithmSpec::parse(Role::Path, "look-ahead").unwrap(),
        reorder_buffer: Bytes::new(1_000_000),
        send_buffer: Bytes::new(1_000_000),
        mux: MuxLimits {
            streams: 16,
            window: 16_384,
            window_most: 100_000,
            pool: 100_000,
            queue: 100_000,
            packets: 10_000,
        },
    }
}

/// Passes one connection on to `to` and gives back the bytes of its client.
fn record(listener: &TcpListener, to: SocketAddr) -> Vec<u8> {
    let (client, _) = listener.accept().unwrap();
    let server = TcpStream::connect(to).unwrap();
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let (mut client, mut server, mut said) = (client, server, Vec::new());
    let mut buffer = [0; 4_096];
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        said.extend_from_slice(&buffer[..count]);
        if server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    said
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(5);
    while !done() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_recorded_client_played_again_is_refused_and_leaves_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let clients = [client_key.public()].into_iter().collect();
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
        session_timeout: Duration::from_secs(2),
        names: Names::of_host(),
    });
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    runtime.spawn(async move { serving.serve(listener).await });

    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let through = between.local_addr().unwrap();
    let recording = thread::spawn(move || record(&between, address));
    let client = runtime.block_on(async {
        let config = ClientConfigBond {
            servers: vec![ServerEnd {
                name: through.to_string(),
                tls: Arc::new(client_config(&client_key, server_key.public()).unwrap()),
                addresses: None,
            }],
            via: vec![Via::Address("127.0.0.1".parse().unwrap())],
            carriers: Carriers::Only(Carrier::Tcp),
            cc: None,
            quic_cc: "cubic".parse().unwrap(),
            path_buffer: None,
            session: session(),
            classes: suimon_bond::Classes::default(),
            path_timeout: Duration::from_secs(2),
            session_timeout: Duration::from_secs(2),
            beside_tunnel: false,
        };
        Client::start(config).unwrap().0
    });
    wait("the recorded client gets in", || client.status().paths.len() == 1);
    runtime.block_on(client.close());
    let said = recording.join().unwrap();
    assert!(said.len() > 500, "a whole handshake: {} bytes", said.len());
    wait("its session ends", || server.report().sessions.is_empty());

    // More often than handshakes of one address may be open at once, so that none may be kept.
    for _ in 0..40 {
        let mut again = TcpStream::connect(address).unwrap();
        again.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
        again.write_all(&said).unwrap();
        let mut answer = Vec::new();
        // To the end, which comes sooner than that of one who says nothing.
        let ended = again.read_to_end(&mut answer);
        assert!(ended.is_ok() || ended.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
        assert!(server.report().sessions.is_empty(), "no session comes of it");
    }
}
