//! Both ends of a bond as processes, each in a namespace of its own.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use suimon_algorithms::registry::AlgorithmSpec;
use suimon_bond::keys::PrivateKey;
use suimon_emulator::TwoHosts;
use suimon_linux::{Namespace, Route};
use suimon_units::Bytes;
use tempfile::TempDir;

use crate::error::LabError;

/// Where programs of the near host find the bond, and where that leads at the far one.
pub(super) const ENTRY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5_002);
pub(super) const TARGET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5_001);
const BOND_PORT: u16 = 4_443;
/// What `suimon bond --carrier` takes, and has unless told otherwise.
pub(super) const CARRIERS: [&str; 3] = ["auto", "quic", "tcp"];
/// What `suimon bond --quic-cc` has unless told otherwise.
pub(super) const QUIC_CC: &str = "cubic";

/// Two hosts and what the bond is to go by.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    pub(super) near: Namespace,
    pub(super) far: Namespace,
    /// The server's address.
    pub(super) server: IpAddr,
    /// The near host's interfaces.
    pub(super) via: Vec<String>,
}

impl Hosts {
    /// Those that are joined by emulated links.
    pub(super) fn emulated(hosts: &TwoHosts) -> Self {
        Self {
            near: hosts.near.clone(),
            far: hosts.far.clone(),
            server: hosts.paths[0].far.into(),
            via: hosts.paths.iter().map(|path| path.device.clone()).collect(),
        }
    }

    /// Two that are joined by `paths` pairs of devices, as fast as the machine, and the server at an address behind all.
    pub(super) fn plain(paths: u8) -> Result<Self, LabError> {
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        let server = IpAddr::V4(Ipv4Addr::new(10, 88, 0, 1));
        far.add_address("lo", server, 32)?;
        let via = (1..=paths).map(|path| format!("near{path}")).collect();
        let hosts = Self { near, far, server, via };
        for path in 1..=paths {
            hosts.plug(path)?;
            // The first rule of a source stays when its interface goes.
            hosts.near.add_rule_from(Self::of_near(path), Self::table(path))?;
        }
        Ok(hosts)
    }

    fn of_near(path: u8) -> IpAddr {
        Ipv4Addr::new(10, 77, path, 1).into()
    }

    fn table(path: u8) -> u32 {
        100 + u32::from(path)
    }

    /// Joins plain hosts by their pair of devices number `path`.
    pub(super) fn plug(&self, path: u8) -> Result<(), LabError> {
        let (device, peer) = (format!("near{path}"), format!("far{path}"));
        self.near.add_veth(&device, &self.far, &peer)?;
        let other = IpAddr::V4(Ipv4Addr::new(10, 77, path, 2));
        self.near.add_address(&device, Self::of_near(path), 24)?;
        self.far.add_address(&peer, other, 24)?;
        self.near.set_up(&device)?;
        self.far.set_up(&peer)?;
        let route = Route::default_via(other, &device);
        let route = Route { destination: Some((self.server, 32)), table: Self::table(path), ..route };
        Ok(self.near.add_route(&route)?)
    }
}

/// What both ends are told.
#[derive(Debug, Clone)]
pub(super) struct Options<'a> {
    /// The command that both ends run.
    pub(super) program: &'a Path,
    pub(super) scheduler: AlgorithmSpec,
    pub(super) cc: String,
    /// What carries the connections, and the sender of those over QUIC.
    pub(super) carrier: &'a str,
    pub(super) quic_cc: &'a str,
    pub(super) reorder_buffer: Bytes,
    pub(super) path_buffer: Option<Bytes>,
    /// All traffic of the near host goes over the bond.
    pub(super) tun: bool,
    /// What else the client is told.
    pub(super) client: Vec<String>,
}

impl<'a> Options<'a> {
    /// As `suimon bond` has them unless told otherwise.
    pub(super) fn new(program: &'a Path, scheduler: &AlgorithmSpec) -> Self {
        Self {
            program,
            scheduler: scheduler.clone(),
            cc: "cubic".to_owned(),
            carrier: CARRIERS[0],
            quic_cc: QUIC_CC,
            reorder_buffer: Bytes::new(8_000_000),
            path_buffer: None,
            tun: false,
            client: Vec::new(),
        }
    }
}

/// Both ends, killed when dropped.
#[derive(Debug)]
pub(super) struct Bond {
    client: End,
    server: End,
    program: PathBuf,
    of_server: Vec<String>,
    hosts: Hosts,
    folder: TempDir,
}

/// A program, killed when dropped.
#[derive(Debug)]
pub(super) struct End(pub(super) Child);

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of this user alone, which goes when it is dropped: keys lie in it.
pub(super) fn folder(name: &str) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(&format!("suimon-{name}-bench-")).tempdir()
}

impl Bond {
    /// Starts both and waits until all paths are up.
    pub(super) fn start(hosts: &Hosts, options: &Options<'_>) -> Result<Self, LabError> {
        let folder = folder("bond")?;
        let [server_key, client_key] = ["server.key", "client.key"].map(|name| folder.path().join(name));
        let (server, client) = (PrivateKey::generate()?, PrivateKey::generate()?);
        server.write(&server_key)?;
        client.write(&client_key)?;
        let address = SocketAddr::new(hosts.server, BOND_PORT).to_string();
        let text = |path: &Path| path.display().to_string();
        let shared = |end: &str, key: &Path| {
            let socket = folder.path().join(format!("{end}.sock"));
            let mut arguments = vec!["bond".to_owned(), end.to_owned(), "--key".to_owned(), text(key)];
            arguments
                .extend(["--scheduler", options.scheduler.label(), "--cc", &options.cc].map(str::to_owned));
            // Builds before there was a choice are measured too.
            if options.carrier != CARRIERS[0] {
                arguments.extend(["--carrier", options.carrier].map(str::to_owned));
            }
            if options.quic_cc != QUIC_CC {
                arguments.extend(["--quic-cc", options.quic_cc].map(str::to_owned));
            }
            arguments.extend(["--log".to_owned(), "error".to_owned(), "--control".to_owned(), text(&socket)]);
            arguments.extend(["--reorder-buffer".to_owned(), format!("{}B", options.reorder_buffer.get())]);
            if let Some(buffer) = options.path_buffer {
                arguments.extend(["--path-buffer".to_owned(), format!("{}B", buffer.get())]);
            }
            arguments
        };
        let mut of_server = shared("server", &server_key);
        of_server.extend(["--listen", &address, "--client", &client.public().to_string()].map(str::to_owned));
        let mut of_client = shared("client", &client_key);
        of_client
            .extend(["--server", &address, "--server-key", &server.public().to_string()].map(str::to_owned));
        of_client.extend(["--via".to_owned(), hosts.via.join(",")]);
        of_client.extend(["--forward".to_owned(), format!("{ENTRY}={TARGET}")]);
        of_client.extend(options.tun.then(|| "--tun".to_owned()));
        of_client.extend(options.client.iter().cloned());
        let server = spawn(&hosts.far, options.program, &of_server)?;
        thread::sleep(Duration::from_millis(200));
        let client = spawn(&hosts.near, options.program, &of_client)?;
        let program = options.program.to_owned();
        let bond = Self { client, server, program, of_server, hosts: hosts.clone(), folder };
        bond.wait_for_paths(hosts.via.len())?;
        Ok(bond)
    }

    /// Ends the server as a crash would.
    pub(super) fn kill_server(&mut self) {
        let _ = self.server.0.kill();
        let _ = self.server.0.wait();
    }

    /// Starts it anew.
    pub(super) fn start_server(&mut self) -> Result<(), LabError> {
        self.server = spawn(&self.hosts.far, &self.program, &self.of_server)?;
        Ok(())
    }

    /// Time of the processors that the client and the server have taken.
    pub(super) fn processor_time(&self) -> Result<[Duration; 2], LabError> {
        Ok([processor_time(self.client.0.id())?, processor_time(self.server.0.id())?])
    }

    /// Waits until the client has `paths` paths.
    pub(super) fn wait_for_paths(&self, paths: usize) -> Result<(), LabError> {
        let control = self.folder.path().join("client.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if let Ok(report) =
                runtime.block_on(suimon_service::control::ask::<suimon_bond::control::Report>(&control))
                && report.sessions.first().is_some_and(|session| session.status.paths.len() == paths)
            {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err(LabError::NoBond { paths })
    }
}

fn spawn(namespace: &Namespace, program: &Path, arguments: &[String]) -> Result<End, LabError> {
    let mut command = Command::new(program);
    Ok(End(namespace.spawn(command.args(arguments).stdin(Stdio::null()))?))
}

/// Fields 14 and 15 of proc_pid_stat(5): ticks in user mode and in the kernel.
fn processor_time(process: u32) -> Result<Duration, LabError> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1_000 / TICKS))
}

/// `USER_HZ`, which is 100 on every architecture that this runs on.
const TICKS: u64 = 100;
