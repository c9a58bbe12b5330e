//! What datagrams on one path cost a stream over both (Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions for
//! Bandwidth Aggregation, §5): as much as they take, or more.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts};
use suimon_scenario::Link;
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units::{self as units, Bytes, Rate};

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::reliable::{PATIENCE, Progress, Way, transfer};
use super::{links, long};
use crate::error::LabError;

/// Measure what datagrams on the first path cost a stream over all of them, by scheduler
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Datagrams {
    /// The links; datagrams share the first
    #[arg(long, value_name = "LINKS", default_value = "2Mbit 4ms 33packets; 10Mbit 2ms 33packets")]
    pub paths: Parsed<Paths>,
    /// How much is sent as datagrams
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "500kbit,1Mbit")]
    pub rates: Vec<Parsed<Rate>>,
    /// Payload of each datagram
    #[arg(long, value_name = "BYTES", default_value = "512B")]
    pub datagram: Parsed<Bytes>,
    /// What a connection may hold, as in the paper
    #[arg(long, value_name = "BYTES", default_value = "16384B")]
    pub path_buffer: Parsed<Bytes>,
    /// Schedulers of the bond
    #[arg(
        long,
        value_name = "SCHEDULER,...",
        value_delimiter = ',',
        default_value = "round-robin,least-buffered,look-ahead"
    )]
    pub schedulers: Vec<Parsed<PathScheduler>>,
    /// Congestion control of the bond's connections
    #[arg(long, value_name = "NAME", default_value = "reno")]
    pub cc: String,
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub time: Parsed<units::Duration>,
}

/// As the options say.
impl Default for Datagrams {
    fn default() -> Self {
        defaults()
    }
}

/// A stream beside datagrams.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The bond's scheduler.
    pub scheduler: String,
    /// Payload of the datagrams that came.
    pub datagrams_bps: u64,
    /// Goodput of the stream.
    pub goodput_bps: u64,
    /// How much less that is than without datagrams, in units of what they brought.
    pub loss: Option<f64>,
}

impl Datagrams {
    /// Sends a stream between two ends of the bond, which `program` runs, beside datagrams of each rate; `tell` gets
    /// each row when it is there.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer is given up.
    pub fn measure(&self, program: &Path, tell: impl Fn(&Row)) -> Result<Vec<Row>, LabError> {
        let links = links(&self.paths.0);
        let mut rows = Vec::new();
        for scheduler in &self.schedulers {
            let options = Options {
                carrier: "tcp",
                cc: self.cc.clone(),
                path_buffer: Some(*self.path_buffer),
                ..Options::new(program, &scheduler.0)
            };
            let mut push = |datagrams: Rate, goodput: Rate, loss: Option<f64>| {
                let row = Row {
                    scheduler: scheduler.0.label().to_owned(),
                    datagrams_bps: datagrams.as_bps(),
                    goodput_bps: goodput.as_bps(),
                    loss,
                };
                tell(&row);
                rows.push(row);
            };
            let (_, alone) = measure(self, &links, &options, Rate::ZERO)?;
            push(Rate::ZERO, alone, None);
            for rate in &self.rates {
                let (datagrams, goodput) = measure(self, &links, &options, **rate)?;
                let loss = (alone.as_bps_f64() - goodput.as_bps_f64()) / datagrams.as_bps_f64().max(1.0);
                push(datagrams, goodput, Some(loss));
            }
        }
        Ok(rows)
    }
}

/// Goodput of datagrams and of the stream.
fn measure(
    bench: &Datagrams,
    links: &[[Link; 2]],
    options: &Options<'_>,
    rate: Rate,
) -> Result<(Rate, Rate), LabError> {
    let emulated = TwoHosts::new(&Setup::default(), links)?;
    let hosts = Hosts::emulated(&emulated);
    let _bond = Bond::start(&hosts, options)?;
    let progress = Progress::default();
    let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true, patience: PATIENCE };
    let path = &emulated.paths[0];
    let socket = |namespace: &suimon_linux::Namespace, address: IpAddr| {
        namespace.run(|| UdpSocket::bind(SocketAddr::new(address, PORT)))
    };
    let (source, sink) = (socket(&hosts.near, path.near.into())??, socket(&hosts.far, path.far.into())??);
    source.connect(sink.local_addr()?)?;
    let began = Instant::now();
    let (from, until) = (began + WARMUP, began + WARMUP + long(*bench.time));
    let size = usize::try_from(bench.datagram.get()).unwrap_or(usize::MAX).clamp(1, MAX_DATAGRAM);
    let moved = thread::scope(|scope| {
        let stream = scope.spawn(|| transfer(&way, u64::MAX, &progress));
        scope.spawn(|| send(&source, rate, size, until));
        let datagrams = scope.spawn(|| count(&sink, from, until));
        let at = |when: Instant| {
            thread::sleep(when.saturating_duration_since(Instant::now()));
            progress.received()
        };
        let before = at(from);
        let carried = Bytes::new(at(until) - before);
        progress.finish();
        let stream = stream.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let datagrams = datagrams.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        stream.map(|_| (datagrams, carried))
    });
    let (datagrams, carried) = moved?;
    Ok((Rate::of(datagrams, *bench.time), Rate::of(carried, *bench.time)))
}

/// Datagrams of `size` bytes at an even `rate`.
fn send(socket: &UdpSocket, rate: Rate, size: usize, until: Instant) {
    if rate == Rate::ZERO {
        return;
    }
    let pause = long(rate.transmission_time(Bytes::new(size as u64)));
    let bytes = vec![0; size];
    let mut next = Instant::now();
    while next < until {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // What finds no room is lost, as datagrams are.
        let _ = socket.send(&bytes);
        next += pause;
    }
}

fn count(socket: &UdpSocket, from: Instant, until: Instant) -> Bytes {
    let _ = socket.set_read_timeout(Some(Duration::from_millis(100)));
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut received = 0;
    while Instant::now() < until {
        if let Ok(len) = socket.recv(&mut buffer)
            && Instant::now() >= from
        {
            received += len as u64;
        }
    }
    Bytes::new(received)
}

const WARMUP: Duration = Duration::from_secs(5);
const PORT: u16 = 5_003;
/// UDP's payload over IPv4.
const MAX_DATAGRAM: usize = 65_507;
