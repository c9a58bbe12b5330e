//! A server, an honest user beside it, and what both are to stay like.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::keys::PrivateKey;
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_scenario::LinkSpec;
use suimon_testing::serve_names;

const PORT: u16 = 4_443;
const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_464);
const SOCKS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1_080);
/// A target that answers, one that says nothing, and one that never stops.
pub(super) const ANSWERS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_090);
pub(super) const SILENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_091);
pub(super) const FLOODS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_092);
/// The answer's length.
const ANSWER: usize = 1_000;

/// Descriptors that the server may have.
pub(super) const DESCRIPTORS: usize = 512;
/// Memory that docs/bond.md promises for one session with the options below: reordering, data that has not arrived, packets,
/// 64 kB for each stream and what all may hold beyond; and what a server takes without any.
pub(super) const MEMORY: u64 = (8 + 4 + 16 + 16 + 4) * 1_000_000 + IDLE_MEMORY;
const IDLE_MEMORY: u64 = 32_000_000;
const OPTIONS: &str = "--reorder-buffer 8MB --send-buffer 4MB --max-streams 256 --stream-memory 4MB \
                       --session-timeout 5s --max-sessions 16 --log error";

/// Both hosts, with both ends of the bond as processes.
pub(super) struct Arena {
    pub(super) server_key: PrivateKey,
    pub(super) hostile_key: PrivateKey,
    /// Of another honest user.
    pub(super) other_key: PrivateKey,
    hosts: TwoHosts,
    server: Child,
    client: Child,
    folder: tempfile::TempDir,
}

impl Drop for Arena {
    fn drop(&mut self) {
        for child in [&mut self.client, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Arena {
    pub(super) fn open() -> Self {
        suimon_service::descriptors::raise_limit();
        let droptail = AlgorithmSpec::parse(Role::Queue, "droptail").unwrap();
        let link = LinkSpec::parse("100Mbit 80ms 500packets").unwrap().links(&droptail);
        let hosts = TwoHosts::new(&Setup::default(), &[link]).unwrap();
        serve_targets(&hosts.far);
        let names = hosts.far.run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 53))).unwrap().unwrap();
        serve_names(names);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
        let keys = ["server", "honest", "hostile", "other"].map(|name| {
            let key = PrivateKey::generate().unwrap();
            key.write(&folder.path().join(name)).unwrap();
            key
        });
        let [server_key, honest_key, hostile_key, other_key] = keys;
        let [honest, hostile, other] = [&honest_key, &hostile_key, &other_key].map(PrivateKey::public);
        let server = start(
            &hosts.far,
            folder.path(),
            &format!(
                "mount --bind resolv.conf /etc/resolv.conf && ulimit -n {DESCRIPTORS} && exec $0 bond server \
                 --listen 0.0.0.0:{PORT} --key server --client {honest} --client {hostile} --client {other} --control server.sock \
                 --metrics {METRICS} {OPTIONS}"
            ),
        );
        let client = start(
            &hosts.near,
            folder.path(),
            &format!(
                "exec $0 bond client --server {}:{PORT} --server-key {} --key honest --via {} --socks {SOCKS} \
                 --control client.sock --log error",
                hosts.paths[0].far,
                server_key.public(),
                hosts.paths[0].device
            ),
        );
        let arena = Self { server_key, hostile_key, other_key, hosts, server, client, folder };
        let ends = Instant::now() + Duration::from_secs(15);
        while let Err(error) = arena.request() {
            assert!(Instant::now() < ends, "nothing works before any attack: {error}");
            thread::sleep(Duration::from_millis(50));
        }
        arena
    }

    pub(super) fn port(&self) -> u16 {
        PORT
    }

    pub(super) fn far(&self) -> &Namespace {
        &self.hosts.far
    }

    /// The time for an honest request over the bond, by name.
    pub(super) fn request(&self) -> io::Result<Duration> {
        let began = Instant::now();
        let mut stream = self.hosts.near.run(|| TcpStream::connect(SOCKS)).map_err(io::Error::other)??;
        stream.set_read_timeout(Some(LIMIT))?;
        let name = b"honest.example";
        let asks =
            [&[5, 1, 0, 5, 1, 0, 3, name.len() as u8][..], name, &ANSWERS.port().to_be_bytes()].concat();
        stream.write_all(&asks)?;
        let mut answers = [0; 12];
        stream.read_exact(&mut answers)?;
        if answers[3] != 0 {
            return Err(io::Error::other(format!("SOCKS refuses with {}", answers[3])));
        }
        stream.write_all(b"?")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        assert_eq!(answer, [b'!'; ANSWER], "no other bytes");
        Ok(began.elapsed())
    }

    /// The server's memory in bytes, all there is where it is gone; and its descriptors.
    pub(super) fn server_holds(&self) -> (u64, usize) {
        let process = Path::new("/proc").join(self.server.id().to_string());
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let descriptors = fs::read_dir(process.join("fd")).map_or(0, Iterator::count);
        (kilobytes.unwrap_or(u64::MAX / 1_024) * 1_024, descriptors)
    }

    /// Connects to where the server tells metrics.
    pub(super) fn metrics(&self) -> io::Result<TcpStream> {
        self.hosts.far.run(|| TcpStream::connect(METRICS)).map_err(io::Error::other)?
    }

    /// Asks the server how it goes, by both ways.
    pub(super) fn ask(&self) -> io::Result<()> {
        let mut stream = self.metrics()?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        assert!(page.contains("suimon_bond_streams"), "{page}");
        let control = self.folder.path().join("server.sock");
        let mut status = Command::new(attacked());
        let said = status.args(["bond", "status", "--json", "--control"]).arg(control).output()?;
        if said.status.success() { Ok(()) } else { Err(io::Error::other("no status")) }
    }
}

/// The command under attack: this build's, or the one that `SUIMON_ATTACKED` names.
fn attacked() -> String {
    std::env::var("SUIMON_ATTACKED").unwrap_or_else(|_| env!("CARGO_BIN_EXE_suimon").to_owned())
}

fn start(namespace: &Namespace, folder: &Path, script: &str) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, &attacked()]);
    namespace.spawn(command.current_dir(folder).stdin(Stdio::null())).unwrap()
}

fn serve_targets(far: &Namespace) {
    let listen = |at| far.run(|| TcpListener::bind(at)).unwrap().unwrap();
    let [answers, silent, floods] = [ANSWERS, SILENT, FLOODS].map(listen);
    thread::spawn(move || {
        for mut stream in answers.incoming().flatten() {
            thread::spawn(move || {
                stream.set_read_timeout(Some(LIMIT))?;
                stream.read_exact(&mut [0])?;
                stream.write_all(&[b'!'; ANSWER])
            });
        }
    });
    thread::spawn(move || {
        for mut stream in silent.incoming().flatten() {
            // Until the other end goes.
            thread::spawn(move || stream.read(&mut [0]));
        }
    });
    thread::spawn(move || {
        for mut stream in floods.incoming().flatten() {
            thread::spawn(move || while stream.write_all(&[0; 65_536]).is_ok() {});
        }
    });
}

/// An honest request that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(5);
