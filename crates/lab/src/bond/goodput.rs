//! Goodput over emulated links, beside kernel MPTCP and each path alone in the same run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use socket2::SockRef;
use suimon_emulator::{Setup, TwoHosts};
use suimon_scenario::Link;
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units::{self as units, Bytes, Rate};

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, QUIC_CC, TARGET};
use super::sockets::{Transport, offer_subflows};
use super::{links, long};
use crate::error::LabError;

/// Goodput of the bond over emulated links, beside kernel MPTCP and each path alone
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default, deny_unknown_fields)]
pub struct Goodput {
    /// Links of one setting, apart by semicolons, each as `suimon link` reads it; several settings by repeating it
    #[arg(long, value_name = "LINKS", default_values = PAIRS)]
    pub paths: Vec<Parsed<Paths>>,
    /// What the receiver may hold: the bond's reorder buffer, and the kernel's receive buffers
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "256kB,4MB")]
    pub receive_buffer: Vec<Parsed<Bytes>>,
    /// Schedulers of the bond
    #[arg(long, value_name = "SCHEDULER,...", value_delimiter = ',', default_value = "look-ahead")]
    pub schedulers: Vec<Parsed<PathScheduler>>,
    /// Congestion control of every connection
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: String,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
    /// Congestion control of the bond's connections over QUIC
    #[arg(long, value_name = "SENDER", default_value = QUIC_CC)]
    pub quic_cc: String,
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Parsed<units::Duration>,
    /// How long each transfer runs before
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub warmup: Parsed<units::Duration>,
    /// Streams at once, which share the paths
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub streams: usize,
}

/// As the options say.
impl Default for Goodput {
    fn default() -> Self {
        defaults()
    }
}

/// A slow path beside a quick one, as in the paper, and a far one beside a fast one.
const PAIRS: [&str; 2] =
    ["10Mbit 2ms 60packets; 3Mbit 40ms 60packets", "50Mbit 20ms 170packets; 5Mbit 200ms 170packets"];

/// One transfer.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The links.
    pub paths: String,
    /// What the receiver may hold.
    pub receive_buffer_bytes: u64,
    /// What carried the data: the bond under a scheduler, kernel MPTCP, or a path alone.
    pub scheme: String,
    /// Payload over time.
    pub goodput_bps: u64,
    /// Of the sum of the paths alone.
    pub share: f64,
}

/// What is told while it is measured.
#[derive(Debug)]
pub enum News<'a> {
    /// A transfer is over.
    Row(&'a Row),
    /// Kernel MPTCP carried nothing over these links with this receive buffer, for a reason.
    NoMptcp(&'a str, Bytes, &'a LabError),
}

impl Goodput {
    /// Makes every transfer; `program` runs the bond's ends, and `tell` gets each row when it is there.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer fails.
    pub fn measure(&self, program: &Path, tell: impl Fn(&News<'_>)) -> Result<Vec<Row>, LabError> {
        let mut rows = Vec::new();
        for paths in &self.paths {
            for buffer in &self.receive_buffer {
                self.setting(program, paths, **buffer, &tell, &mut rows)?;
            }
        }
        Ok(rows)
    }

    fn setting(
        &self,
        program: &Path,
        paths: &Parsed<Paths>,
        buffer: Bytes,
        tell: &impl Fn(&News<'_>),
        rows: &mut Vec<Row>,
    ) -> Result<(), LabError> {
        let (name, links) = (paths.to_string(), links(&paths.0));
        let mut sum = 0;
        let mut push = |scheme: String, goodput: Rate, sum: u64| {
            let row = Row {
                paths: name.clone(),
                receive_buffer_bytes: buffer.get(),
                scheme,
                goodput_bps: goodput.as_bps(),
                share: goodput.as_bps() as f64 / sum.max(1) as f64,
            };
            tell(&News::Row(&row));
            rows.push(row);
        };
        let mut alone = Vec::new();
        for path in 0..links.len() {
            let world = World::new(&links, buffer)?;
            let far = SocketAddr::from((world.hosts.paths[path].far, PORT));
            let goodput = world.transfer(self, far, 1, |_| Transport::Tcp.connect(far, Some(&self.cc)))?;
            sum += goodput.as_bps();
            alone.push(goodput);
        }
        for (path, goodput) in alone.into_iter().enumerate() {
            push(format!("path {} alone", path + 1), goodput, sum);
        }
        let world = World::new(&links, buffer)?;
        offer_subflows(&world.hosts)?;
        let far = SocketAddr::from((world.hosts.paths[0].far, PORT));
        let goodput =
            world.transfer(self, far, self.streams, |_| Transport::Mptcp.connect(far, Some(&self.cc)));
        match goodput {
            Ok(goodput) => push("kernel MPTCP".to_owned(), goodput, sum),
            // With little room to reorder in, the kernel resets some connections: that ends its row, not the comparison.
            Err(error) => tell(&News::NoMptcp(&name, buffer, &error)),
        }
        for scheduler in &self.schedulers {
            let world = World::new(&links, buffer)?;
            let options = Options {
                cc: self.cc.clone(),
                carrier: &self.carrier,
                quic_cc: &self.quic_cc,
                reorder_buffer: buffer,
                ..Options::new(program, &scheduler.0)
            };
            let bond = Bond::start(&Hosts::emulated(&world.hosts), &options)?;
            let goodput =
                world.transfer(self, TARGET, self.streams, |_| Transport::Tcp.connect(ENTRY, None))?;
            drop(bond);
            push(format!("bond, {}", scheduler.0.label()), goodput, sum);
        }
        Ok(())
    }
}

/// Two hosts for one transfer: nothing is left of the one before.
struct World {
    hosts: TwoHosts,
    /// Transfers begin then: at the same time of the links, whatever it takes to get ready.
    begins: Instant,
}

impl World {
    fn new(links: &[[Link; 2]], buffer: Bytes) -> Result<Self, LabError> {
        let hosts = TwoHosts::new(&Setup::default(), links)?;
        let sizes = format!("4096 {0} {0}", buffer.get());
        hosts.far.set_sysctl("ipv4/tcp_rmem", &sizes)?;
        Ok(Self { hosts, begins: Instant::now() + TO_GET_READY })
    }

    /// Goodput at a sink in the far host that listens at `sink`, of `streams` connections that the near host makes.
    fn transfer(
        &self,
        goodput: &Goodput,
        sink: SocketAddr,
        streams: usize,
        connect: impl Fn(usize) -> std::io::Result<TcpStream> + Sync,
    ) -> Result<Rate, LabError> {
        let listener = self.hosts.far.run(|| Transport::Mptcp.listen(sink))??;
        thread::sleep(self.begins.saturating_duration_since(Instant::now()));
        let connected =
            self.hosts.near.run(|| (0..streams).map(&connect).collect::<Result<Vec<_>, _>>())??;
        let from = self.begins.max(Instant::now()) + long(*goodput.warmup);
        let until = from + long(*goodput.time);
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
        Ok(Rate::of(Bytes::new(received), *goodput.time))
    }
}

/// Bytes that come over one connection between `from` and `until`.
pub(super) fn drain(listener: &TcpListener, from: Instant, until: Instant) -> std::io::Result<u64> {
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

/// Sends without end until then.
pub(super) fn fill(mut stream: TcpStream, until: Instant) {
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
/// Where a sink listens that is asked without a bond.
const PORT: u16 = TARGET.port();
