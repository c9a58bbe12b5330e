//! Goodput over emulated links, beside kernel MPTCP and each path alone in the same run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::{LinuxError, Namespace};
use suimon_scenario::Link;
use suimon_units::{self as units, Bytes, Rate};

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::{links, long, mbit, print, scheduler};
use crate::error::CliError;
use crate::output::tell;

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Links of one setting, apart by semicolons, each as `suimon link` reads it; several settings by repeating it
    #[arg(long, value_name = "LINKS", default_values = PAIRS)]
    paths: Vec<String>,
    /// What the receiver may hold: the bond's reorder buffer, and the kernel's receive buffers
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "256kB,4MB")]
    receive_buffer: Vec<Bytes>,
    /// Schedulers of the bond
    #[arg(
        long,
        value_name = "SCHEDULER,...",
        value_delimiter = ',',
        value_parser = scheduler,
        default_value = "look-ahead"
    )]
    schedulers: Vec<AlgorithmSpec>,
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
    for paths in &arguments.paths {
        let links = links(paths)?;
        for buffer in &arguments.receive_buffer {
            setting(arguments, paths, &links, *buffer, &mut rows)?;
        }
    }
    let header = ["paths", "receive buffer", "scheme", "goodput", "of the sum"];
    print(&rows, arguments.json, &header, 3, |row| {
        vec![
            row.paths.clone(),
            Bytes::new(row.receive_buffer_bytes).to_string(),
            row.scheme.clone(),
            mbit(row.goodput_bps),
            format!("{:.3}", row.share),
        ]
    })
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
        tell(format_args!("{paths} | {buffer} | {scheme}: {}", mbit(goodput.as_bps())));
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
    });
    match goodput {
        Ok(goodput) => push("kernel MPTCP".to_owned(), goodput, sum),
        // With little room to reorder in, the kernel resets some connections: that ends its row, not the comparison.
        Err(error) => tell(format_args!("{paths} | {buffer} | kernel MPTCP: none, {error}")),
    }
    for scheduler in &arguments.schedulers {
        let world = World::new(links, buffer)?;
        let options = Options {
            scheduler: scheduler.clone(),
            cc: arguments.cc.clone(),
            reorder_buffer: buffer,
            path_buffer: None,
        };
        let bond = Bond::start(&Hosts::emulated(&world.hosts), &options)?;
        let goodput =
            world.transfer(arguments, TARGET, arguments.streams, |_| connect(Protocol::TCP, ENTRY, None))?;
        drop(bond);
        push(format!("bond, {}", scheduler.label()), goodput, sum);
    }
    Ok(())
}

/// Two hosts for one transfer: nothing is left of the one before.
struct World {
    hosts: TwoHosts,
    /// Transfers begin then: at the same time of the links, whatever it takes to get ready.
    begins: Instant,
}

impl World {
    fn new(links: &[[Link; 2]], buffer: Bytes) -> Result<Self, CliError> {
        let hosts = TwoHosts::new(&Setup::default(), links)?;
        let sizes = format!("4096 {0} {0}", buffer.get());
        hosts.far.set_sysctl("ipv4/tcp_rmem", &sizes)?;
        Ok(Self { hosts, begins: Instant::now() + TO_GET_READY })
    }

    fn ip(namespace: &Namespace, arguments: &[&str]) -> Result<(), CliError> {
        let mut child = namespace.spawn(Command::new("ip").args(arguments))?;
        let status = child.wait()?;
        if status.success() {
            return Ok(());
        }
        let command = format!("ip {}", arguments.join(" "));
        Err(LinuxError::new(command, std::io::Error::other(status.to_string())).into())
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
        thread::sleep(self.begins.saturating_duration_since(Instant::now()));
        let connected =
            self.hosts.near.run(|| (0..streams).map(&connect).collect::<Result<Vec<_>, _>>())??;
        let from = self.begins.max(Instant::now()) + long(arguments.warmup);
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

/// Both ends of a bond are up by then.
const TO_GET_READY: Duration = Duration::from_secs(2);
/// `IPPROTO_MPTCP` (include/uapi/linux/in.h).
const IPPROTO_MPTCP: i32 = 262;
/// Where a sink listens that is asked without a bond.
const PORT: u16 = TARGET.port();
