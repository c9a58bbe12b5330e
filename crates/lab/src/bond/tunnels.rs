//! Tunnels of other projects between two hosts: WireGuard with a failover, engarde below it, glorytun.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use suimon_emulator::TwoHosts;
use suimon_linux::{LinuxError, Namespace};
use suimon_scenario::{Capacity, Link};
use tempfile::TempDir;

use super::ends::{End, folder};
use super::sockets::run;
use crate::error::LabError;

/// A tunnel and the programs that carry it; they end with it.
#[derive(Debug)]
pub(super) struct Tunnel {
    near: Namespace,
    /// The name by which the near host's WireGuard knows the far one.
    peer: String,
    programs: Vec<End>,
    folder: TempDir,
}

impl Tunnel {
    /// The far host's address within a tunnel, and the near one's.
    pub(super) const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 2));
    const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 1));
    /// WireGuard's port at both ends.
    pub(super) const PORT: u16 = 51_820;
}

/// WireGuard, whose near end sends to `endpoint`. Needs `wg`, and the kernel's module.
pub(super) fn wireguard(hosts: &TwoHosts, endpoint: &str) -> Result<Tunnel, LabError> {
    let folder = folder("wireguard")?;
    let ends = [(&hosts.near, Tunnel::NEAR, "near.key"), (&hosts.far, Tunnel::FAR, "far.key")];
    let mut publics = Vec::new();
    for (_, _, name) in &ends {
        let private = answer("wg", &["genkey"], "")?;
        fs::write(folder.path().join(name), &private)?;
        publics.push(answer("wg", &["pubkey"], &private)?.trim().to_owned());
    }
    for ((namespace, address, name), peer) in ends.iter().zip(publics.iter().rev()) {
        run(namespace, "ip", &["link", "add", DEVICE, "type", "wireguard"])?;
        let key = folder.path().join(name).display().to_string();
        let port = Tunnel::PORT.to_string();
        let mut arguments = vec!["set", DEVICE, "private-key", &key, "listen-port", &port];
        arguments.extend(["peer", peer, "allowed-ips", "0.0.0.0/0"]);
        if *address == Tunnel::NEAR {
            arguments.extend(["endpoint", endpoint]);
        }
        run(namespace, "wg", &arguments)?;
        namespace.add_address(DEVICE, *address, 24)?;
        namespace.set_up(DEVICE)?;
    }
    let near = hosts.near.clone();
    Ok(Tunnel { near, peer: publics.swap_remove(1), programs: Vec::new(), folder })
}

/// WireGuard over engarde: `engarde-client` and `engarde-server` have to be on the `PATH`.
pub(super) fn engarde(hosts: &TwoHosts) -> Result<Tunnel, LabError> {
    let mut tunnel = wireguard(hosts, ENGARDE_ENTRY)?;
    let overrides: String = (hosts.paths.iter())
        .map(|path| format!("    - ifName: {}\n      dstAddr: {}:{ENGARDE_PORT}\n", path.device, path.far))
        .collect();
    let client = format!(
        "client:\n  listenAddr: {ENGARDE_ENTRY}\n  dstAddr: {}:{ENGARDE_PORT}\n  writeTimeout: 10\n  \
         excludedInterfaces: [lo, {DEVICE}]\n  dstOverrides:\n{overrides}",
        hosts.paths[0].far
    );
    let server = format!(
        "server:\n  listenAddr: 0.0.0.0:{ENGARDE_PORT}\n  dstAddr: 127.0.0.1:{}\n  clientTimeout: 30\n  writeTimeout: 10\n",
        Tunnel::PORT
    );
    for (namespace, program, text) in
        [(&hosts.far, "engarde-server", server), (&hosts.near, "engarde-client", client)]
    {
        let file = tunnel.folder.path().join(program);
        fs::write(&file, text)?;
        tunnel.programs.push(start(namespace, program, &[&file.display().to_string()])?);
    }
    thread::sleep(TO_BEGIN);
    Ok(tunnel)
}

/// glorytun: it has to be on the `PATH`, and its paths are told the links' rates.
pub(super) fn glorytun(hosts: &TwoHosts, links: &[[Link; 2]]) -> Result<Tunnel, LabError> {
    let folder = folder("glorytun")?;
    let key = folder.path().join("key");
    fs::write(&key, answer("glorytun", &["keygen"], "")?)?;
    let (key, server) = (key.display().to_string(), hosts.paths[0].far.to_string());
    let far = ["bind", "keyfile", &key, "dev", "glory-far"];
    let near = ["bind", "keyfile", &key, "dev", "glory-near", "to", "addr", &server];
    let programs = vec![start(&hosts.far, "glorytun", &far)?, start(&hosts.near, "glorytun", &near)?];
    thread::sleep(TO_BEGIN);
    let ends = [
        (&hosts.far, "glory-far", Tunnel::FAR, Tunnel::NEAR),
        (&hosts.near, "glory-near", Tunnel::NEAR, Tunnel::FAR),
    ];
    for (namespace, device, own, other) in ends {
        let [own, other] = [own, other].map(|address| address.to_string());
        run(namespace, "ip", &["address", "add", &own, "peer", &other, "dev", device])?;
        namespace.set_up(device)?;
    }
    for (path, link) in hosts.paths.iter().zip(links) {
        let address = path.near.to_string();
        let mut arguments = vec!["path", "dev", "glory-near", "addr", &address, "set", "up"];
        let rate = match &link[0].capacity {
            Capacity::Rate(rate) => Some((rate.as_bps() / 8).to_string()),
            _ => None,
        };
        match &rate {
            Some(rate) => arguments.extend(["rate", "fixed", "tx", rate, "rx", rate]),
            None => arguments.extend(["rate", "auto"]),
        }
        run(&hosts.near, "glorytun", &arguments)?;
    }
    thread::sleep(TO_BEGIN);
    Ok(Tunnel { near: hosts.near.clone(), peer: String::new(), programs, folder })
}

/// Sends WireGuard's packets over the first path that gives answers, as routers with several lines do.
#[derive(Debug)]
pub(super) struct Failover {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Failover {
    /// Asks over each path of `hosts` once every `probe`.
    pub(super) fn start(hosts: &TwoHosts, tunnel: &Tunnel, probe: Duration) -> Result<Self, LabError> {
        let over = Arc::new(AtomicBool::new(false));
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PROBE_PORT));
        let echo = hosts.far.run(|| UdpSocket::bind(any))??;
        echo.set_read_timeout(Some(LOOK))?;
        let mut ways = Vec::new();
        for path in &hosts.paths {
            let socket = hosts.near.run(|| UdpSocket::bind((path.near, 0)))??;
            socket.connect((path.far, PROBE_PORT))?;
            socket.set_nonblocking(true)?;
            ways.push(Way { socket, far: path.far.into(), unanswered: 0 });
        }
        let (near, peer) = (tunnel.near.clone(), tunnel.peer.clone());
        let ends = over.clone();
        let answering = thread::spawn(move || {
            let mut buffer = [0; 8];
            while !ends.load(Ordering::Relaxed) {
                if let Ok((count, from)) = echo.recv_from(&mut buffer) {
                    let _ = echo.send_to(&buffer[..count], from);
                }
            }
        });
        let ends = over.clone();
        let asking = thread::spawn(move || ask(&mut ways, &near, &peer, (probe, &ends)));
        Ok(Self { over, threads: vec![answering, asking] })
    }
}

impl Drop for Failover {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A path as the failover sees it.
#[derive(Debug)]
struct Way {
    socket: UdpSocket,
    far: IpAddr,
    unanswered: u32,
}

fn ask(ways: &mut [Way], near: &Namespace, peer: &str, (probe, ends): (Duration, &AtomicBool)) {
    let mut current = 0;
    while !ends.load(Ordering::Relaxed) {
        for way in &mut *ways {
            let mut buffer = [0; 8];
            way.unanswered += 1;
            while way.socket.recv(&mut buffer).is_ok() {
                way.unanswered = 0;
            }
            let _ = way.socket.send(&[0]);
        }
        let first = ways.iter().position(|way| way.unanswered < MISSING);
        if let Some(best) = first.filter(|best| *best != current) {
            current = best;
            let endpoint = SocketAddr::new(ways[best].far, Tunnel::PORT).to_string();
            // Where it fails, the next answer that is missing tries again.
            let _ = run(near, "wg", &["set", DEVICE, "peer", peer, "endpoint", &endpoint]);
        }
        let next = Instant::now() + probe;
        while Instant::now() < next && !ends.load(Ordering::Relaxed) {
            thread::sleep(LOOK.min(next.saturating_duration_since(Instant::now())));
        }
    }
}

/// What `program` prints for `input`.
fn answer(program: &str, arguments: &[&str], input: &str) -> Result<String, LabError> {
    let missing = |error| LinuxError::new(format!("starting {program}"), error);
    let mut command = Command::new(program);
    let command = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(missing)?;
    child.stdin.take().expect("asked for").write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    String::from_utf8(output.stdout).map_err(|error| io::Error::other(error).into())
}

/// Starts a program whose words are nobody's business.
fn start(namespace: &Namespace, program: &str, arguments: &[&str]) -> Result<End, LabError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(End(namespace.spawn(&mut command)?))
}

const DEVICE: &str = "wg0";
const ENGARDE_ENTRY: &str = "127.0.0.1:59401";
const ENGARDE_PORT: u16 = 59_501;
const PROBE_PORT: u16 = 5_003;
/// Answers that are missing in a row from a path that is given up.
const MISSING: u32 = 3;
/// How often the failover looks whether it shall end.
const LOOK: Duration = Duration::from_millis(50);
/// Programs are ready by then.
const TO_BEGIN: Duration = Duration::from_secs(1);
