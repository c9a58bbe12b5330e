//! `suimon bond bench`: the bond over emulated links, beside kernel MPTCP and each path alone in the same run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::keys::PrivateKey;
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_scenario::{Link, LinkSpec};
use suimon_units::{self as units, Bytes, Rate};

use crate::error::CliError;

const EXAMPLE: &str = "\
Example:
  suimon bond bench                                              # two pairs of links, both buffers, some 3 min
  suimon bond bench --paths '20Mbit 30ms; trace=lte.down 80ms' --receive-buffer 512kB
  suimon bond bench --schedulers look-ahead,least-buffered,lowest-rtt --json

Needs root, or the right to make network namespaces; nothing of this host's network is touched.";

/// Measure the bond over emulated links, beside kernel MPTCP and each path alone
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Links of one setting, apart by semicolons, each as `suimon link` reads it; several settings by repeating it
    #[arg(long, value_name = "LINKS", default_values = PAIRS)]
    paths: Vec<String>,
    /// What the receiver may hold: the bond's reorder buffer, and the kernel's receive buffers
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "256kB,4MB")]
    receive_buffer: Vec<Bytes>,
    /// Schedulers of the bond
    #[arg(long, value_name = "SCHEDULER,...", value_delimiter = ',', default_value = "look-ahead")]
    schedulers: Vec<String>,
    /// Congestion control of every connection
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    time: units::Duration,
    /// How long each transfer runs before
    #[arg(long, value_name = "TIME", default_value = "3s")]
    warmup: units::Duration,
    /// Streams at once, which share the paths
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    streams: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A slow path beside a quick one, as in the paper, and a far one beside a fast one.
const PAIRS: [&str; 2] =
    ["10Mbit 2ms 60packets; 3Mbit 40ms 60packets", "50Mbit 20ms 170packets; 5Mbit 200ms 170packets"];

/// One transfer.
#[derive(Debug, Serialize)]
struct Row {
    paths: String,
    receive_buffer_bytes: u64,
    scheme: String,
    goodput_bps: u64,
    /// Of the sum of the paths alone.
    share: f64,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for scheduler in &arguments.schedulers {
        AlgorithmSpec::parse(Role::Path, scheduler)
            .map_err(|error| CliError::Option { option: "--schedulers", problem: error.to_string() })?;
    }
    for paths in &arguments.paths {
        let links = paths.split(';').map(link).collect::<Result<Vec<_>, _>>()?;
        for buffer in &arguments.receive_buffer {
            setting(arguments, paths, &links, *buffer, &mut rows)?;
        }
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(&rows).map_err(std::io::Error::from)?;
        println!("{text}");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header([
        "paths",
        "receive buffer",
        "scheme",
        "goodput",
        "of the sum",
    ]);
    for row in &rows {
        table.add_row([
            row.paths.clone(),
            Bytes::new(row.receive_buffer_bytes).to_string(),
            row.scheme.clone(),
            format!("{:.3} Mbit/s", row.goodput_bps as f64 / 1e6),
            format!("{:.3}", row.share),
        ]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}

fn link(text: &str) -> Result<[Link; 2], CliError> {
    let queue = AlgorithmSpec::parse(Role::Queue, "droptail").expect("the registry has it");
    let spec = LinkSpec::parse(text.trim()).map_err(|error| CliError::of_link("--paths", error))?;
    let mut links = spec.links(&queue);
    // The way back is not what is measured: as fast, and never full.
    if !matches!(links[1].capacity, suimon_scenario::Capacity::Rate(_)) {
        links[1].capacity = suimon_scenario::Capacity::Rate(Rate::from_bps(10_000_000));
    }
    Ok(links)
}

fn setting(
    arguments: &Arguments,
    paths: &str,
    links: &[[Link; 2]],
    buffer: Bytes,
    rows: &mut Vec<Row>,
) -> Result<(), CliError> {
    let mut sum = 0;
    let mut push = |scheme: String, goodput: Rate, sum: u64| {
        eprintln!("{paths} | {buffer} | {scheme}: {:.3} Mbit/s", goodput.as_bps() as f64 / 1e6);
        rows.push(Row {
            paths: paths.to_owned(),
            receive_buffer_bytes: buffer.get(),
            scheme,
            goodput_bps: goodput.as_bps(),
            share: goodput.as_bps() as f64 / sum.max(1) as f64,
        });
    };
    let mut alone = Vec::new();
    for path in 0..links.len() {
        let world = World::new(links, buffer)?;
        let far = SocketAddr::from((world.hosts.paths[path].far, PORT));
        let goodput =
            world.transfer(arguments, far, 1, |_| connect(Protocol::TCP, far, Some(&arguments.cc)))?;
        sum += goodput.as_bps();
        alone.push(goodput);
    }
    for (path, goodput) in alone.into_iter().enumerate() {
        push(format!("path {} alone", path + 1), goodput, sum);
    }
    let world = World::new(links, buffer)?;
    world.offer_subflows()?;
    let far = SocketAddr::from((world.hosts.paths[0].far, PORT));
    let goodput = world.transfer(arguments, far, arguments.streams, |_| {
        connect(Protocol::from(IPPROTO_MPTCP), far, Some(&arguments.cc))
    })?;
    push("kernel MPTCP".to_owned(), goodput, sum);
    for scheduler in &arguments.schedulers {
        let world = World::new(links, buffer)?;
        let bond = world.bond(scheduler, &arguments.cc, buffer)?;
        let sink = SocketAddr::from(([127, 0, 0, 1], PORT));
        let entry = SocketAddr::from(([127, 0, 0, 1], ENTRY));
        let goodput =
            world.transfer(arguments, sink, arguments.streams, |_| connect(Protocol::TCP, entry, None))?;
        drop(bond);
        push(format!("bond, {scheduler}"), goodput, sum);
    }
    Ok(())
}

/// Two hosts for one transfer: nothing is left of the one before.
struct World {
    hosts: TwoHosts,
}

/// Both ends of a bond, killed when dropped.
struct Bond {
    children: Vec<Child>,
    _keys: Keys,
}

/// A folder that goes when it is dropped.
struct Keys(PathBuf);

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Bond {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl World {
    fn new(links: &[[Link; 2]], buffer: Bytes) -> Result<Self, CliError> {
        let hosts = TwoHosts::new(&Setup::default(), links)?;
        let sizes = format!("4096 {0} {0}", buffer.get());
        hosts.far.set_sysctl("ipv4/tcp_rmem", &sizes)?;
        Ok(Self { hosts })
    }

    fn ip(namespace: &Namespace, arguments: &[&str]) -> Result<(), CliError> {
        let mut child = namespace.spawn(Command::new("ip").args(arguments))?;
        let status = child.wait()?;
        if status.success() {
            return Ok(());
        }
        let problem = format!("`ip {}` failed: {status}", arguments.join(" "));
        Err(CliError::Output(std::io::Error::other(problem)))
    }

    /// Lets MPTCP use every path.
    fn offer_subflows(&self) -> Result<(), CliError> {
        for namespace in [&self.hosts.near, &self.hosts.far] {
            Self::ip(namespace, &["mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"])?;
        }
        for path in &self.hosts.paths[1..] {
            let address = path.near.to_string();
            Self::ip(
                &self.hosts.near,
                &["mptcp", "endpoint", "add", &address, "dev", &path.device, "subflow"],
            )?;
        }
        Ok(())
    }

    fn bond(&self, scheduler: &str, cc: &str, buffer: Bytes) -> Result<Bond, CliError> {
        let folder = std::env::temp_dir().join(format!("suimon-bond-bench-{}", std::process::id()));
        let keys = Keys(folder.clone());
        std::fs::create_dir_all(&folder)?;
        let [server_key, client_key] = ["server.key", "client.key"].map(|name| folder.join(name));
        let (server, client) = (PrivateKey::generate()?, PrivateKey::generate()?);
        server.write(&server_key)?;
        client.write(&client_key)?;
        let far = SocketAddr::from((self.hosts.paths[0].far, BOND_PORT));
        let via: Vec<_> = self.hosts.paths.iter().map(|path| path.device.clone()).collect();
        let shared = |end: &str| {
            let mut command = Command::new("/proc/self/exe");
            command.args(["bond", end, "--scheduler", scheduler, "--cc", cc, "--log", "error", "--control"]);
            command.arg(folder.join(format!("{end}.sock")));
            command.args(["--reorder-buffer", &format!("{}B", buffer.get())]).stdin(Stdio::null());
            command
        };
        let mut of_server = shared("server");
        of_server.args(["--listen", &far.to_string(), "--client", &client.public().to_string(), "--key"]);
        of_server.arg(&server_key);
        let mut of_client = shared("client");
        of_client.args(["--server", &far.to_string(), "--server-key", &server.public().to_string()]);
        of_client.args(["--via", &via.join(","), "--forward", &format!("{ENTRY}=127.0.0.1:{PORT}"), "--key"]);
        of_client.arg(&client_key);
        let mut bond = Bond { children: Vec::new(), _keys: keys };
        bond.children.push(self.hosts.far.spawn(&mut of_server)?);
        thread::sleep(Duration::from_millis(200));
        bond.children.push(self.hosts.near.spawn(&mut of_client)?);
        wait_for_paths(&folder.join("client.sock"), via.len())?;
        Ok(bond)
    }

    /// Goodput at a sink in the far host that listens at `sink`, of `streams` connections that the near host makes.
    fn transfer(
        &self,
        arguments: &Arguments,
        sink: SocketAddr,
        streams: usize,
        connect: impl Fn(usize) -> std::io::Result<TcpStream> + Sync,
    ) -> Result<Rate, CliError> {
        let mptcp = Protocol::from(IPPROTO_MPTCP);
        // A listener of MPTCP takes plain TCP too.
        let listener = self.hosts.far.run(|| listen(mptcp, sink))??;
        let connected =
            self.hosts.near.run(|| (0..streams).map(&connect).collect::<Result<Vec<_>, _>>())??;
        let from = Instant::now() + long(arguments.warmup);
        let until = from + long(arguments.time);
        let received = thread::scope(|scope| {
            let sinks: Vec<_> = (0..streams)
                .map(|_| {
                    let listener = &listener;
                    scope.spawn(move || drain(listener, from, until))
                })
                .collect();
            for stream in connected {
                scope.spawn(move || fill(stream, until));
            }
            sinks.into_iter().map(|sink| sink.join().unwrap_or(Ok(0))).sum::<std::io::Result<u64>>()
        })?;
        Ok(Rate::of(Bytes::new(received), arguments.time))
    }
}

/// Waits until the client behind the control socket has its paths.
fn wait_for_paths(control: &Path, paths: usize) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if let Ok(report) = runtime.block_on(suimon_bond::control::ask(control))
            && report.sessions.first().is_some_and(|session| session.status.paths.len() == paths)
        {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(CliError::Output(std::io::Error::other("the bond's paths did not come up within 10 s")))
}

fn listen(protocol: Protocol, address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

fn connect(protocol: Protocol, to: SocketAddr, cc: Option<&str>) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(protocol))?;
    if let Some(cc) = cc {
        socket.set_tcp_congestion(cc.as_bytes())?;
    }
    socket.connect(&to.into())?;
    Ok(socket.into())
}

/// Bytes that come over one connection between `from` and `until`.
fn drain(listener: &TcpListener, from: Instant, until: Instant) -> std::io::Result<u64> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut buffer = vec![0; 1 << 17];
    let mut received = 0;
    while Instant::now() < until {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) if Instant::now() >= from => received += count as u64,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    // What is still under way is of no interest.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    Ok(received)
}

fn fill(mut stream: TcpStream, until: Instant) {
    let data = vec![0x5a; 1 << 16];
    let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
    while Instant::now() < until {
        match stream.write(&data) {
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}

fn long(duration: units::Duration) -> Duration {
    Duration::from_nanos(duration.as_nanos())
}

/// `IPPROTO_MPTCP` (include/uapi/linux/in.h).
const IPPROTO_MPTCP: i32 = 262;
const PORT: u16 = 5_001;
const ENTRY: u16 = 5_002;
const BOND_PORT: u16 = 4_443;
