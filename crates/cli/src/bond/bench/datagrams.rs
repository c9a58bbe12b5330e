//! What datagrams on one path cost a stream over both (Oguchi, Tanaka, Shigeno: Path Selection using Buffer Conditions for
//! Bandwidth Aggregation, §5): as much as they take, or more.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_emulator::{Setup, TwoHosts};
use suimon_scenario::Link;
use suimon_units::{self as units, Bytes, Rate};

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::reliable::{Progress, Way, transfer};
use super::{links, long, mbit, print, scheduler};
use crate::error::CliError;
use crate::output::tell;

/// Measure what datagrams on the first path cost a stream over all of them, by scheduler
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The links; datagrams share the first
    #[arg(long, value_name = "LINKS", default_value = "2Mbit 4ms 33packets; 10Mbit 2ms 33packets")]
    paths: String,
    /// How much is sent as datagrams
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "500kbit,1Mbit")]
    rates: Vec<Rate>,
    /// Payload of each datagram
    #[arg(long, value_name = "BYTES", default_value = "512B")]
    datagram: Bytes,
    /// What a connection may hold, as in the paper
    #[arg(long, value_name = "BYTES", default_value = "16384B")]
    path_buffer: Bytes,
    /// Schedulers of the bond
    #[arg(
        long,
        value_name = "SCHEDULER,...",
        value_delimiter = ',',
        value_parser = scheduler,
        default_value = "round-robin,least-buffered,look-ahead"
    )]
    schedulers: Vec<AlgorithmSpec>,
    /// Congestion control of the bond's connections
    #[arg(long, value_name = "NAME", default_value = "reno")]
    cc: String,
    /// How long each transfer is measured
    #[arg(long, value_name = "TIME", default_value = "20s")]
    time: units::Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    scheduler: String,
    datagrams_bps: u64,
    /// Of the stream.
    goodput_bps: u64,
    /// How much less that is than without datagrams, in units of what they brought.
    loss: Option<f64>,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let links = links(&arguments.paths)?;
    let mut rows = Vec::new();
    for scheduler in &arguments.schedulers {
        let (_, alone) = measure(arguments, &links, scheduler, Rate::ZERO)?;
        let mut push = |datagrams: Rate, goodput: Rate, loss: Option<f64>| {
            let name = scheduler.label();
            tell(format_args!("{name}, {datagrams} of datagrams: {}", mbit(goodput.as_bps())));
            rows.push(Row {
                scheduler: name.to_owned(),
                datagrams_bps: datagrams.as_bps(),
                goodput_bps: goodput.as_bps(),
                loss,
            });
        };
        push(Rate::ZERO, alone, None);
        for rate in &arguments.rates {
            let (datagrams, goodput) = measure(arguments, &links, scheduler, *rate)?;
            let loss = (alone.as_bps_f64() - goodput.as_bps_f64()) / datagrams.as_bps_f64().max(1.0);
            push(datagrams, goodput, Some(loss));
        }
    }
    let header = ["scheduler", "datagrams received", "goodput", "loss per datagrams"];
    print(&rows, arguments.json, &header, 1, |row| {
        vec![
            row.scheduler.clone(),
            mbit(row.datagrams_bps),
            mbit(row.goodput_bps),
            row.loss.map_or_else(String::new, |loss| format!("{loss:.2}")),
        ]
    })
}

/// Goodput of datagrams and of the stream.
fn measure(
    arguments: &Arguments,
    links: &[[Link; 2]],
    scheduler: &AlgorithmSpec,
    rate: Rate,
) -> Result<(Rate, Rate), CliError> {
    let emulated = TwoHosts::new(&Setup::default(), links)?;
    let hosts = Hosts::emulated(&emulated);
    let options = Options {
        cc: arguments.cc.clone(),
        path_buffer: Some(arguments.path_buffer),
        ..Options::new(scheduler)
    };
    let _bond = Bond::start(&hosts, &options)?;
    let progress = Progress::default();
    let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true };
    let path = &emulated.paths[0];
    let socket = |namespace: &suimon_linux::Namespace, address: IpAddr| {
        namespace.run(|| UdpSocket::bind(SocketAddr::new(address, PORT)))
    };
    let (source, sink) = (socket(&hosts.near, path.near.into())??, socket(&hosts.far, path.far.into())??);
    source.connect(sink.local_addr()?)?;
    let began = Instant::now();
    let (from, until) = (began + WARMUP, began + WARMUP + long(arguments.time));
    let size = usize::try_from(arguments.datagram.get()).unwrap_or(usize::MAX).clamp(1, MAX_DATAGRAM);
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
    Ok((Rate::of(datagrams, arguments.time), Rate::of(carried, arguments.time)))
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
