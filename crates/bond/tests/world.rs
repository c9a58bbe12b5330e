//! Both ends in network namespaces of their own. Needs root, or the right to make namespaces and devices; skips
//! elsewhere, and says why.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::control::Report;
use suimon_bond::keys::{AuthorizedKeys, PrivateKey, PublicKey, client_config, server_config};
use suimon_bond::mux::MuxLimits;
use suimon_bond::session::SessionConfig;
use suimon_bond::{
    Carrier, Carriers, Classes, Client, ClientConfigBond, Fail, Server, ServerConfigBond, ServerEnd, Tunnel,
    Via, serve_forward,
};
use suimon_emulator::{Setup, TwoHosts, Way};
use suimon_linux::{Namespace, Route};
use suimon_scenario::{Link, LinkSpec};
use suimon_service::Names;
use suimon_testing::{assert_in_time, can_emulate, in_time};
use suimon_units::Bytes;
use tokio::sync::oneshot;

/// Where clients of the bond find the server, programs the client, and the server its target.
pub(crate) const SERVER_PORT: u16 = 4_443;
pub(crate) const ENTRY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8_080);
pub(crate) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_090);

pub(crate) fn session() -> SessionConfig {
    SessionConfig {
        scheduler: AlgorithmSpec::parse(Role::Path, "look-ahead").unwrap(),
        reorder_buffer: Bytes::new(1_000_000),
        send_buffer: Bytes::new(2_000_000),
        mux: MuxLimits {
            streams: 1_100,
            window: 16_384,
            window_most: 1_000_000,
            pool: 4_000_000,
            queue: 1_000_000,
            packets: 100_000,
        },
    }
}

/// An end that runs on a thread in a namespace until it is dropped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<bool>>,
    thread: Option<JoinHandle<()>>,
    report: Arc<dyn Fn() -> Report + Send + Sync>,
}

impl Running {
    fn start<T>(
        namespace: &Namespace,
        make: impl FnOnce() -> T + Send + 'static,
        report: impl Fn(&T) -> Report + Send + Sync + 'static,
        close: impl AsyncFnOnce(T) + Send + 'static,
    ) -> Self
    where
        T: Clone + Send + Sync + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let (told, made) = std::sync::mpsc::channel();
        let namespace = namespace.clone();
        let thread = thread::spawn(move || {
            namespace.enter().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let end = make();
                told.send(end.clone()).unwrap();
                if stopped.await == Ok(true) {
                    close(end).await;
                }
            });
        });
        let end = made.recv().expect("it starts");
        Self { stop: Some(stop), thread: Some(thread), report: Arc::new(move || report(&end)) }
    }

    pub(crate) fn server(namespace: &Namespace, key: &PrivateKey, clients: &[PublicKey]) -> Self {
        Self::server_at(namespace, Ipv4Addr::UNSPECIFIED.into(), key, clients)
    }

    pub(crate) fn server_at(
        namespace: &Namespace,
        address: IpAddr,
        key: &PrivateKey,
        clients: &[PublicKey],
    ) -> Self {
        Self::server_of(namespace, (address, true), key, clients)
    }

    /// A server that takes no QUIC.
    pub(crate) fn server_over_tcp(namespace: &Namespace, key: &PrivateKey, clients: &[PublicKey]) -> Self {
        Self::server_of(namespace, (Ipv4Addr::UNSPECIFIED.into(), false), key, clients)
    }

    fn server_of(
        namespace: &Namespace,
        (address, takes_quic): (IpAddr, bool),
        key: &PrivateKey,
        clients: &[PublicKey],
    ) -> Self {
        let clients: AuthorizedKeys = clients.iter().copied().collect();
        let config = ServerConfigBond {
            tls: Arc::new(server_config(key, &clients).unwrap()),
            clients,
            path_buffer: None,
            cc: Some("cubic".to_owned()),
            quic_cc: "cubic".parse().unwrap(),
            reset_secret: key.reset_secret(),
            session: session(),
            sessions: 4,
            path_timeout: Duration::from_secs(2),
            session_timeout: Duration::from_secs(60),
            names: Names::of_host(),
        };
        let make = move || {
            let server = Server::new(config);
            let address = SocketAddr::new(address, SERVER_PORT);
            let listener = TcpListener::bind(address).unwrap();
            listener.set_nonblocking(true).unwrap();
            if takes_quic {
                let (by_quic, socket) = (server.clone(), UdpSocket::bind(address).unwrap());
                tokio::spawn(async move { by_quic.serve_quic(socket).await });
            }
            let serving = server.clone();
            tokio::spawn(async move {
                serving.serve(tokio::net::TcpListener::from_std(listener).unwrap()).await;
            });
            server
        };
        Self::start(namespace, make, Server::report, async |server: Server| server.close().await)
    }

    pub(crate) fn client(
        namespace: &Namespace,
        key: &PrivateKey,
        server_key: PublicKey,
        server: IpAddr,
        via: &[&str],
    ) -> Self {
        Self::client_of(namespace, Self::client_config(key, server_key, server, via))
    }

    pub(crate) fn client_of(namespace: &Namespace, config: ClientConfigBond) -> Self {
        let make = move || {
            let (client, _) = Client::start(config).unwrap();
            forward(&client);
            client
        };
        Self::start(namespace, make, Client::report, async |client: Client| client.close().await)
    }

    /// A client that takes all traffic of its host, beside forwarding as another does.
    pub(crate) fn tunnel(
        namespace: &Namespace,
        key: &PrivateKey,
        server_key: PublicKey,
        server: IpAddr,
        via: &[&str],
        fail: Fail,
    ) -> Self {
        let config =
            ClientConfigBond { beside_tunnel: true, ..Self::client_config(key, server_key, server, via) };
        let make = move || {
            let tunnel = Tunnel::open("through%d").unwrap();
            let (client, packets) = Client::start(config).unwrap();
            tunnel.routes(fail).keep(&client).unwrap();
            let carried = client.clone();
            tokio::spawn(async move { tunnel.serve(carried, packets).await });
            forward(&client);
            client
        };
        Self::start(namespace, make, Client::report, async |client: Client| client.close().await)
    }

    pub(crate) fn client_config(
        key: &PrivateKey,
        server_key: PublicKey,
        server: IpAddr,
        via: &[&str],
    ) -> ClientConfigBond {
        ClientConfigBond {
            servers: vec![server_end(key, server_key, server)],
            via: via.iter().map(|via| via.parse::<Via>().unwrap()).collect(),
            carriers: Carriers::Only(Carrier::Tcp),
            cc: Some("cubic".to_owned()),
            quic_cc: "cubic".parse().unwrap(),
            path_buffer: None,
            session: session(),
            classes: Classes::default(),
            path_timeout: Duration::from_secs(2),
            session_timeout: Duration::from_secs(60),
            beside_tunnel: false,
        }
    }

    pub(crate) fn report(&self) -> Report {
        (self.report)()
    }

    /// Waits until so many paths are up.
    pub(crate) fn wait_for_paths(&self, paths: usize, most: Duration) {
        let until = Instant::now() + most;
        loop {
            let report = self.report();
            let up = report.sessions.first().map_or(0, |session| session.status.paths.len());
            if up == paths {
                return;
            }
            assert_in_time!(Instant::now() < until, "{up} of {paths} paths: {report:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it as a process that is killed does: without a word.
    pub(crate) fn kill(mut self) {
        self.stop.take();
        self.thread.take().unwrap().join().unwrap();
    }
}

pub(crate) fn server_end(key: &PrivateKey, server_key: PublicKey, server: IpAddr) -> ServerEnd {
    let address = SocketAddr::new(server, SERVER_PORT);
    let tls = Arc::new(client_config(key, server_key).unwrap());
    ServerEnd { name: address.to_string(), tls, addresses: Some(vec![address]) }
}

/// Carries what comes to the entry on to the target.
fn forward(client: &Client) {
    let listener = TcpListener::bind(ENTRY).unwrap();
    listener.set_nonblocking(true).unwrap();
    let client = client.clone();
    tokio::spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        serve_forward(listener, TARGET.to_string().parse().unwrap(), client).await;
    });
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(true);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A bond over emulated links.
pub(crate) struct World {
    pub(crate) client: Option<Running>,
    pub(crate) server: Option<Running>,
    pub(crate) hosts: TwoHosts,
    pub(crate) server_key: PrivateKey,
    pub(crate) client_key: PrivateKey,
}

fn link(text: &str) -> [Link; 2] {
    let queue = AlgorithmSpec::parse(Role::Queue, "droptail").unwrap();
    LinkSpec::parse(text).unwrap().links(&queue)
}

impl World {
    pub(crate) fn new(links: &[&str]) -> Self {
        Self::over(Carrier::Tcp, links)
    }

    /// Every connection is of that carrier.
    pub(crate) fn over(carrier: Carrier, links: &[&str]) -> Self {
        let links: Vec<_> = links.iter().map(|text| link(text)).collect();
        let hosts = TwoHosts::new(&Setup::default(), &links).unwrap();
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let server = Running::server(&hosts.far, &server_key, &[client_key.public()]);
        let via: Vec<_> = hosts.paths.iter().map(|path| path.device.as_str()).collect();
        let address = hosts.paths[0].far.into();
        let config = ClientConfigBond {
            carriers: Carriers::Only(carrier),
            ..Running::client_config(&client_key, server_key.public(), address, &via)
        };
        let client = Running::client_of(&hosts.near, config);
        client.wait_for_paths(links.len(), Duration::from_secs(10));
        Self { client: Some(client), server: Some(server), hosts, server_key, client_key }
    }

    fn client(&self) -> &Running {
        self.client.as_ref().expect("only who kills it takes it")
    }

    fn both(&self) -> (&Namespace, &Namespace) {
        (&self.hosts.near, &self.hosts.far)
    }
}

/// Runs `test` over each carrier.
pub(crate) fn each_carrier(test: impl Fn(Carrier) + Copy) {
    for carrier in [Carrier::Tcp, Carrier::Quic] {
        eprintln!("over {carrier:?}");
        in_time(|| test(carrier));
    }
}

/// The `index`th byte that programs send.
fn byte(index: u64) -> u8 {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

pub(crate) fn pattern(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(byte).collect()
}

/// The outcome of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Got {
    pub(crate) bytes: u64,
    longest_stall: Duration,
}

/// Reads to the end; every byte must be the one that was sent.
fn check(stream: &mut TcpStream) -> std::io::Result<Got> {
    let mut buffer = vec![0; 1 << 16];
    let (mut got, mut last) = (Got::default(), Instant::now());
    loop {
        let count = stream.read(&mut buffer)?;
        got.longest_stall = got.longest_stall.max(last.elapsed());
        last = Instant::now();
        if count == 0 {
            return Ok(got);
        }
        assert!(buffer[..count] == pattern(got.bytes, count), "bytes {}.. differ", got.bytes);
        got.bytes += count as u64;
    }
}

fn fill(stream: &mut TcpStream, bytes: u64) -> std::io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let len = (bytes - done).min(1 << 16) as usize;
        stream.write_all(&pattern(done, len))?;
        done += len as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

pub(crate) fn listen(namespace: &Namespace) -> TcpListener {
    namespace.run(|| TcpListener::bind(TARGET)).unwrap().unwrap()
}

pub(crate) fn connect(namespace: &Namespace) -> TcpStream {
    namespace.run(|| TcpStream::connect(ENTRY)).unwrap().unwrap()
}

/// Sends `bytes` each way over one stream while `meanwhile` happens; gives the arrivals (up, down).
pub(crate) fn exchange(
    (near, far): (&Namespace, &Namespace),
    bytes: u64,
    meanwhile: impl FnOnce(),
) -> (Got, Got) {
    let listener = listen(far);
    let stream = connect(near);
    thread::scope(|scope| {
        let target = scope.spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            both_ways(stream, bytes)
        });
        let program = scope.spawn(move || both_ways(stream, bytes));
        meanwhile();
        (target.join().unwrap(), program.join().unwrap())
    })
}

fn both_ways(stream: TcpStream, bytes: u64) -> Got {
    let mut reader = stream.try_clone().unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    let mut writer = stream;
    thread::scope(|scope| {
        scope.spawn(move || fill(&mut writer, bytes).unwrap());
        check(&mut reader).unwrap()
    })
}

#[test]
fn streams_use_all_paths_both_ways() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        // In virtual time, where there are guests: a guest's processor is slow, and other work makes no copies there.
        let world = World::over(carrier, &["6Mbit 4ms 100packets", "3Mbit 30ms 100packets"]);
        // The paths' shares of the start differ from run to run: they are a small part of this.
        let bytes = 3_000_000;
        let (up, down) = exchange(world.both(), bytes, || ());
        assert_eq!((up.bytes, down.bytes), (bytes, bytes));
        // The status is half a second old at most.
        thread::sleep(Duration::from_millis(600));
        let status = &world.client().report().sessions[0].status;
        assert!(status.session.received_bytes > bytes && status.streams == 0, "{status:?}");
        for path in &status.paths {
            assert_in_time!(path.sent_bytes > bytes / 10 && path.received_bytes > bytes / 10, "{status:?}");
        }
        let twice = status.session.duplicate_bytes;
        eprintln!("{twice} of {bytes} bytes came twice");
        assert_in_time!(twice < bytes / 10, "{twice} bytes came twice though nothing was cut");
    });
}

#[test]
fn a_cut_path_costs_a_timeout_and_no_byte() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let world = World::over(carrier, &["20Mbit 10ms 100packets", "10Mbit 30ms 100packets"]);
        let (up, down) = exchange(world.both(), 5_000_000, || {
            thread::sleep(Duration::from_millis(500));
            world.hosts.emulation.cut(0, Way::Both);
            thread::sleep(Duration::from_millis(3_000));
            world.hosts.emulation.restore(0, Way::Both);
            world.client().wait_for_paths(2, Duration::from_secs(5));
        });
        assert_eq!((up.bytes, down.bytes), (5_000_000, 5_000_000));
        eprintln!("stalls: {:?} up, {:?} down", up.longest_stall, down.longest_stall);
        assert_in_time!(
            up.longest_stall.max(down.longest_stall) < Duration::from_millis(1_500),
            "{up:?} {down:?}"
        );
    });
}

#[test]
fn a_session_without_paths_for_seconds_goes_on_where_it_was() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let world = World::over(carrier, &["20Mbit 10ms 100packets", "10Mbit 30ms 100packets"]);
        let cut = Duration::from_millis(4_000);
        let (up, down) = exchange(world.both(), 4_000_000, || {
            thread::sleep(Duration::from_millis(500));
            for path in 0..2 {
                world.hosts.emulation.cut(path, Way::Both);
            }
            thread::sleep(cut);
            let paths = world.client().report().sessions[0].status.paths.clone();
            assert_in_time!(paths.is_empty(), "both are given up: {paths:?}");
            for path in 0..2 {
                world.hosts.emulation.restore(path, Way::Both);
            }
        });
        assert_eq!((up.bytes, down.bytes), (4_000_000, 4_000_000));
        let stall = up.longest_stall.max(down.longest_stall);
        eprintln!("stall: {stall:?} of {cut:?} without any path");
        assert_in_time!(stall > cut && stall < cut + Duration::from_secs(3), "{stall:?}");
    });
}

/// A tenth of a second stands for some minutes.
#[test]
fn random_cuts_lose_nothing() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let world = World::over(carrier, &["20Mbit 10ms 100packets", "10Mbit 30ms 100packets"]);
        let (up, down) = exchange(world.both(), 5_000_000, || {
            let mut seed = 7_u64;
            let mut random = |most: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) % most
            };
            for _ in 0..24 {
                let path = random(2) as usize;
                let way = [Way::There, Way::Back, Way::Both][random(3) as usize];
                world.hosts.emulation.cut(path, way);
                thread::sleep(Duration::from_millis(random(400)));
                world.hosts.emulation.restore(path, way);
                thread::sleep(Duration::from_millis(random(100)));
            }
        });
        assert_eq!((up.bytes, down.bytes), (5_000_000, 5_000_000));
        eprintln!("stalls: {:?} up, {:?} down", up.longest_stall, down.longest_stall);
    });
}

#[test]
fn a_restarted_server_ends_streams_with_an_error_and_serves_new_ones() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let mut world = World::over(carrier, &["20Mbit 4ms 100packets", "10Mbit 30ms 100packets"]);
        let listener = listen(&world.hosts.far);
        let mut stream = connect(&world.hosts.near);
        let (mut target, _) = listener.accept().unwrap();
        target.write_all(b"half of an ans").unwrap();
        let mut answer = [0; 14];
        stream.read_exact(&mut answer).unwrap();
        world.server.take().unwrap().kill();
        drop((listener, target));
        world.server =
            Some(Running::server(&world.hosts.far, &world.server_key, &[world.client_key.public()]));
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let end = stream.read(&mut answer).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::ConnectionReset, "no end that looks like one: {end}");
        let (up, down) = exchange(world.both(), 100_000, || ());
        assert_eq!((up.bytes, down.bytes), (100_000, 100_000));
        world.client().wait_for_paths(2, Duration::from_secs(5));
    });
}

#[test]
fn a_client_comes_back_whenever_its_server_does() {
    if !can_emulate() {
        return;
    }
    each_carrier(|carrier| {
        let mut world = World::over(carrier, &["20Mbit 4ms 100packets", "10Mbit 30ms 100packets"]);
        for told in [true, false] {
            let server = world.server.take().unwrap();
            // A server that is told to end says so to its clients; one that is killed says nothing.
            if told {
                drop(server);
            } else {
                server.kill();
            }
            thread::sleep(Duration::from_secs(3));
            let listener = listen(&world.hosts.far);
            listener.set_nonblocking(true).unwrap();
            world.server =
                Some(Running::server(&world.hosts.far, &world.server_key, &[world.client_key.public()]));
            // A program that asks again and again.
            let back = Instant::now();
            let asking: Vec<_> = (0..20)
                .map_while(|_| {
                    let stream = connect(&world.hosts.near);
                    thread::sleep(Duration::from_millis(100));
                    listener.accept().is_err().then_some(stream)
                })
                .collect();
            assert_in_time!(asking.len() < 20, "no stream within {:?}", back.elapsed());
            let status = &world.client().report().sessions[0].status;
            let why = if told { "as the other end closed it" } else { "as the server has lost it" };
            assert_eq!(status.last_end.as_deref(), Some(why), "{status:?}");
            assert!(status.ended >= 1, "{status:?}");
            // The connections that the client gave up come too, and are none of the next exchange's.
            thread::sleep(Duration::from_millis(500));
            while listener.accept().is_ok() {}
            drop((listener, asking));
            let (up, down) = exchange(world.both(), 100_000, || ());
            assert_eq!((up.bytes, down.bytes), (100_000, 100_000));
        }
    });
}

#[test]
fn a_server_first_reached_after_the_session_was_given_up_is_served() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let hosts = TwoHosts::new(&Setup::default(), &[link("20Mbit 4ms 100packets")]).unwrap();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let via = [hosts.paths[0].device.as_str()];
        let server = hosts.paths[0].far.into();
        let config = ClientConfigBond {
            session_timeout: Duration::from_millis(200),
            ..Running::client_config(&client_key, server_key.public(), server, &via)
        };
        let client = Running::client_of(&hosts.near, config);
        thread::sleep(Duration::from_secs(1));
        let _server = Running::server(&hosts.far, &server_key, &[client_key.public()]);
        client.wait_for_paths(1, Duration::from_secs(2));
        let (up, down) = exchange((&hosts.near, &hosts.far), 100_000, || ());
        assert_eq!((up.bytes, down.bytes), (100_000, 100_000));
    });
}

/// Two hosts joined by plain devices, each on a network of its own, and the server at an address behind both.
pub(crate) fn plain_hosts() -> (Namespace, Namespace, IpAddr) {
    let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let server = IpAddr::V4(Ipv4Addr::new(10, 88, 0, 1));
    far.add_address("lo", server, 32).unwrap();
    for path in 1..=2 {
        plug(&near, &far, path, server);
    }
    (near, far, server)
}

fn plug(near: &Namespace, far: &Namespace, path: u8, server: IpAddr) {
    let (device, peer) = (format!("near{path}"), format!("far{path}"));
    near.add_veth(&device, far, &peer).unwrap();
    let [own, other] = [1, 2].map(|host| IpAddr::V4(Ipv4Addr::new(10, 77, path, host)));
    near.add_address(&device, own, 24).unwrap();
    far.add_address(&peer, other, 24).unwrap();
    near.set_up(&device).unwrap();
    far.set_up(&peer).unwrap();
    let route = Route { destination: Some((server, 32)), ..Route::default_via(other, &device) };
    near.add_route(&Route { table: 100 + u32::from(path), ..route }).unwrap();
    let _ = near.add_rule_from(own, 100 + u32::from(path));
    // A kernel lets a device carry packets some time after it was set up, and a connection that begins before that waits for a second.
    let knock = || TcpStream::connect_timeout(&SocketAddr::new(other, 9), Duration::from_millis(100));
    let refused =
        |_| near.run(knock).unwrap().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    assert!((0..50).any(refused), "{device} carries nothing");
}

#[test]
fn an_interface_that_is_unplugged_and_plugged_in_again_is_used_again() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let client = Running::client(&near, &client_key, server_key.public(), address, &["near1", "near2"]);
        client.wait_for_paths(2, Duration::from_secs(5));
        near.delete_device("near2").unwrap();
        // The kernel tells: no timeout is waited for.
        client.wait_for_paths(1, Duration::from_millis(1_000));
        let (up, down) = exchange((&near, &far), 2_000_000, || {
            plug(&near, &far, 2, address);
            client.wait_for_paths(2, Duration::from_secs(3));
        });
        assert_eq!((up.bytes, down.bytes), (2_000_000, 2_000_000));
    });
}

#[test]
fn a_thousand_streams_at_once_each_get_their_own() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        const STREAMS: usize = 1_000;
        let (near, far, address) = plain_hosts();
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let client = Running::client(&near, &client_key, server_key.public(), address, &["near1", "near2"]);
        client.wait_for_paths(2, Duration::from_secs(5));
        let listener = listen(&far);
        thread::scope(|scope| {
            scope.spawn(|| {
                let accepted: Vec<_> = (0..STREAMS).map(|_| listener.accept().unwrap().0).collect();
                for mut stream in accepted {
                    let mut message = [0; 8];
                    stream.read_exact(&mut message).unwrap();
                    let answer = message.repeat(1_000);
                    stream.write_all(&answer).unwrap();
                }
            });
            let mut streams: Vec<_> = (0..STREAMS).map(|_| connect(&near)).collect();
            for (index, stream) in streams.iter_mut().enumerate() {
                stream.write_all(&(index as u64).to_be_bytes()).unwrap();
            }
            for (index, stream) in streams.iter_mut().enumerate() {
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).unwrap();
                assert_eq!(answer, (index as u64).to_be_bytes().repeat(1_000));
            }
        });
    });
}

#[test]
fn a_stalled_reader_holds_no_more_than_its_window_and_holds_up_nobody() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let world = World::new(&["100Mbit 2ms 1000packets", "100Mbit 2ms 1000packets"]);
        let listener = listen(&world.hosts.far);
        let mut stuck = connect(&world.hosts.near);
        let (unread, _) = listener.accept().unwrap();
        drop(listener);
        stuck.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
        while stuck.write(&[1; 65_536]).is_ok() {}
        let (up, _) = exchange(world.both(), 2_000_000, || ());
        assert_eq!(up.bytes, 2_000_000);
        // The status is half a second old at most, and then of both streams.
        thread::sleep(Duration::from_millis(600));
        let server = world.server.as_ref().unwrap().report();
        let client = world.client().report();
        let [held, waiting] =
            [&server, &client].map(|report| report.sessions[0].status.session.streams_bytes);
        let most = session().mux.window_most;
        assert!(held > 0 && held <= most, "{held} of {most}");
        assert!(waiting <= session().mux.queue, "{waiting}");
        drop(unread);
    });
}

#[test]
fn what_is_no_client_is_closed_soon_and_keeps_none_out() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
        let server = Running::server(&far, &server_key, &[client_key.public()]);
        // Something else altogether, and someone who says nothing.
        let to = SocketAddr::new(address, SERVER_PORT);
        let knock = || near.run(|| TcpStream::connect_timeout(&to, Duration::from_secs(1))).unwrap();
        near.add_route(&Route {
            destination: Some((address, 32)),
            ..Route::default_via(IpAddr::V4(Ipv4Addr::new(10, 77, 1, 2)), "near1")
        })
        .unwrap();
        let mut web = knock().unwrap();
        web.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        web.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut answer = Vec::new();
        let _ = web.read_to_end(&mut answer);
        assert!(answer.len() < 10, "an alert at most: {answer:?}");
        // More handshakes than one network may have under way, and none of them sends a byte: the rightful client, of the
        // same network, gets in all the same, and all others are closed within a second or so.
        let mut slow: Vec<_> = (0..40).map(|_| knock().unwrap()).collect();
        let began = Instant::now();
        let client = Running::client(&near, &client_key, server_key.public(), address, &["near1", "near2"]);
        client.wait_for_paths(2, Duration::from_millis(800));
        for (nth, silent) in slow.iter_mut().enumerate() {
            silent.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let closed = silent.read(&mut [0; 10]);
            assert!(matches!(closed, Ok(0)), "{nth} after {:?}: {closed:?}", began.elapsed());
        }
        assert_in_time!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(server.report().sessions.len(), 1);
    });
}

#[test]
fn all_traffic_of_a_host_goes_through_and_the_host_is_as_it_was_afterwards() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        let (near, far, address) = plain_hosts();
        // Beyond the server, where no path leads.
        let beyond = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5));
        far.add_address("lo", beyond, 32).unwrap();
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let _server = Running::server(&far, &server_key, &[client_key.public()]);
        let before = near.devices().unwrap();
        let via = ["near1", "10.77.2.1"];
        let client = Running::tunnel(&near, &client_key, server_key.public(), address, &via, Fail::Closed);
        client.wait_for_paths(2, Duration::from_secs(5));

        let web = SocketAddr::new(beyond, 8_000);
        let listener = far.run(|| TcpListener::bind(web)).unwrap().unwrap();
        let stream = near.run(|| TcpStream::connect(web)).unwrap().unwrap();
        let (up, down) = thread::scope(|scope| {
            let target = scope.spawn(|| both_ways(listener.accept().unwrap().0, 20_000_000));
            let down = both_ways(stream, 20_000_000);
            (target.join().unwrap(), down)
        });
        assert_eq!((up.bytes, down.bytes), (20_000_000, 20_000_000));
        let nobody = near.run(|| TcpStream::connect(SocketAddr::new(beyond, 9))).unwrap().unwrap_err();
        assert_eq!(nobody.kind(), ErrorKind::ConnectionRefused, "as if it were asked itself");

        let echo = far.run(|| UdpSocket::bind(SocketAddr::new(beyond, 7))).unwrap().unwrap();
        let asking = near.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        for socket in [&echo, &asking] {
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        let mut buffer = vec![0; 65_536];
        for len in [1, 1_472, 9_000, 65_000] {
            asking.send_to(&pattern(0, len), echo.local_addr().unwrap()).unwrap();
            let (came, from) = echo.recv_from(&mut buffer).unwrap();
            assert!(buffer[..came] == pattern(0, len), "{len} bytes there");
            echo.send_to(&pattern(7, len), from).unwrap();
            let (came, from) = asking.recv_from(&mut buffer).unwrap();
            assert!(buffer[..came] == pattern(7, len), "{len} bytes back");
            assert_eq!(from, echo.local_addr().unwrap());
        }
        // Root too needs its group in there.
        far.set_sysctl("ipv4/ping_group_range", "0 0").unwrap();
        let mut ping = Command::new("ping");
        let ping = ping
            .args(["-c", "3", "-i", "0.2", "-W", "5", "-s", "1000", &beyond.to_string()])
            .stdout(Stdio::piped());
        let said = near.spawn(ping).unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains("3 received") && said.contains("1008 bytes from 203.0.113.5"), "{said}");
        // The status is half a second old at most. Chance decides which path carries how much of a short exchange.
        thread::sleep(Duration::from_millis(600));
        for path in &client.report().sessions[0].status.paths {
            assert_in_time!(path.sent_bytes + path.received_bytes > 100_000, "over both: {path:?}");
        }
        // As a process that is killed: its device goes with it, and its routes with that.
        client.kill();
        assert_eq!(near.devices().unwrap(), before);
        let unreachable = near.run(|| TcpStream::connect_timeout(&web, Duration::from_secs(1))).unwrap();
        assert!(unreachable.is_err(), "no route is left: {unreachable:?}");
    });
}

#[test]
fn without_any_path_traffic_goes_around_the_bond_only_where_the_user_said_so() {
    if !can_emulate() {
        return;
    }
    in_time(|| {
        for fail in [Fail::Open, Fail::Closed] {
            let (near, far, address) = plain_hosts();
            let beyond = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5));
            far.add_address("lo", beyond, 32).unwrap();
            let gateway = IpAddr::V4(Ipv4Addr::new(10, 77, 1, 2));
            near.add_route(&Route::default_via(gateway, "near1")).unwrap();
            let [server_key, client_key] = [0; 2].map(|_| PrivateKey::generate().unwrap());
            let server = Running::server(&far, &server_key, &[client_key.public()]);
            let via = ["near1", "near2"];
            let client = Running::tunnel(&near, &client_key, server_key.public(), address, &via, fail);
            client.wait_for_paths(2, Duration::from_secs(5));
            let web = SocketAddr::new(beyond, 8_000);
            let listener = far.run(|| TcpListener::bind(web)).unwrap().unwrap();
            listener.set_nonblocking(true).unwrap();
            // Whether a connection to the web server comes over the bond; none where none comes.
            let over_the_bond = || {
                let limit = Duration::from_millis(500);
                let _asking = near.run(|| TcpStream::connect_timeout(&web, limit)).unwrap().ok()?;
                let (_, from) = listener.accept().ok()?;
                Some(from.ip() == beyond)
            };
            assert_eq!(over_the_bond(), Some(true), "{fail:?}");
            server.kill();
            thread::sleep(Duration::from_millis(3_500));
            let expected = match fail {
                Fail::Open => Some(false),
                Fail::Closed => None,
            };
            assert_eq!(over_the_bond(), expected, "{fail:?}");
            let _server = Running::server(&far, &server_key, &[client_key.public()]);
            client.wait_for_paths(2, Duration::from_secs(2));
            // The connection that nobody took before comes late.
            thread::sleep(Duration::from_millis(500));
            while listener.accept().is_ok() {}
            assert_eq!(over_the_bond(), Some(true), "{fail:?}");
        }
    });
}
