//! `suimon cc`: congestion control in the kernel.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use suimon_linux::congestion::{
    self, ALGORITHMS, Algorithm, CongestionError, Event, Record, Status, Trace, find_loaded, loaded, on_host,
};
use suimon_linux::congestion_trace::{self, Line as TraceLine, ReplayError, Replayed};

use crate::error::CliError;
use crate::plain_table::{print_checks, print_json, table};

const EXAMPLE: &str = "\
Examples:
  suimon cc check
  sudo suimon cc load fs-at
  iperf3 -C fs_at -c server
  sudo suimon cc stat fs-at
  sudo suimon cc unload fs-at

A program asks for it by setsockopt(TCP_CONGESTION), a route by `ip route ... congctl fs_at`, a machine or a \
network namespace by `sysctl -w net.ipv4.tcp_congestion_control=fs_at`.";

/// Load congestion control into the kernel, and watch it there
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Load one, so that connections can choose it; it stays until it is unloaded or the machine restarts
    Load {
        /// Which: as `suimon cc list` shows them
        name: String,
        /// The kernel's name for it, where another one than its own is wanted
        #[arg(long = "as", value_name = "NAME")]
        kernel_name: Option<String>,
    },
    /// List the algorithms that can be loaded, and those that are
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take one away; connections that use it keep it until they end
    Unload {
        /// Which
        name: String,
        /// Also where it is the default for new connections, which then keep it
        #[arg(long)]
        force: bool,
    },
    /// Its connections: shortest round trip, measured bandwidth-delay product, window, losses and their judgement
    Stat {
        /// Which; all that are loaded where none is named
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Every acknowledgement, loss and mark as it comes, until interrupted
    Trace {
        /// Which
        name: String,
        /// Print JSON, an object a line
        #[arg(long)]
        json: bool,
        /// Only connections to or from this port
        #[arg(long)]
        port: Option<u16>,
        /// Stop after so many seconds
        #[arg(long, value_name = "SECONDS")]
        seconds: Option<u64>,
    },
    /// Does fs-at-open in Rust decide as the program in the kernel did, event by event
    Replay {
        /// What `suimon cc trace fs-at-open --json` has written
        trace: PathBuf,
    },
    /// Does this machine support it, and if not what is missing
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.action {
        Action::Load { name, kernel_name } => on_host(|| load(name, kernel_name.as_deref())),
        Action::List { json } => on_host(|| list(*json)),
        Action::Unload { name, force } => on_host(|| unload(name, *force)),
        Action::Stat { name, json } => on_host(|| stat(name.as_deref(), *json)),
        Action::Trace { name, json, port, seconds } => on_host(|| trace(name, *json, *port, *seconds)),
        Action::Check { json } => on_host(|| check(*json)),
        Action::Replay { trace } => replay(trace),
    }
}

fn load(name: &str, kernel_name: Option<&str>) -> Result<(), CliError> {
    let algorithm = Algorithm::named(name)?;
    let done = congestion::load(algorithm, kernel_name.unwrap_or(algorithm.kernel_name))?;
    writeln!(io::stdout(), "{} is loaded; the kernel calls it {}.", algorithm.name, done.kernel_name)?;
    Ok(())
}

fn unload(name: &str, force: bool) -> Result<(), CliError> {
    let one = find_loaded(name)?;
    let users = congestion::unload(&one, force)?;
    let kept = match users {
        0 => String::new(),
        1 => " One connection keeps it until it ends.".to_owned(),
        users => format!(" {users} connections keep it until they end."),
    };
    writeln!(io::stdout(), "{} is unloaded: no new connection can choose it.{kept}", one.kernel_name)?;
    Ok(())
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    kernel_names: Vec<String>,
    summary: &'static str,
}

fn list(json: bool) -> Result<(), CliError> {
    congestion::remove_leftovers();
    let all = loaded()?;
    let entries = ALGORITHMS.iter().map(|algorithm| {
        let of_it = all.iter().filter(|one| one.algorithm.name == algorithm.name);
        Entry {
            name: algorithm.name,
            kernel_names: of_it.map(|one| one.kernel_name.clone()).collect(),
            summary: algorithm.summary,
        }
    });
    let entries: Vec<_> = entries.collect();
    if json {
        return print_json(&entries);
    }
    let mut table = table(&["name", "loaded as", ""]);
    for entry in &entries {
        let names =
            if entry.kernel_names.is_empty() { "-".to_owned() } else { entry.kernel_names.join(", ") };
        table.add_row([entry.name, &names, entry.summary]);
    }
    writeln!(io::stdout(), "{}", table.trim_fmt())?;
    Ok(())
}

#[derive(Serialize)]
struct Line<'a> {
    algorithm: &'a str,
    #[serde(flatten)]
    status: Status,
}

fn stat(name: Option<&str>, json: bool) -> Result<(), CliError> {
    let ones = match name {
        Some(name) => vec![find_loaded(name)?],
        None => loaded()?,
    };
    let mut lines = Vec::new();
    for one in &ones {
        let of_one = one.connections()?;
        lines.extend(of_one.into_iter().map(|status| Line { algorithm: &one.kernel_name, status }));
    }
    if json {
        return print_json(&lines);
    }
    let mut table = table(&[
        "algorithm",
        "connection",
        "rtt_min",
        "srtt",
        "rcv_bytes",
        "target",
        "space",
        "cwnd",
        "in flight",
        "radio",
        "congestion",
        "marks",
        "timeouts",
    ]);
    for line in &lines {
        let Status { values, counts, .. } = &line.status;
        table.add_row([
            line.algorithm.to_owned(),
            format!("{} > {}", line.status.local, line.status.remote),
            milliseconds(values.rtt_min_us),
            milliseconds(line.status.srtt_us),
            kilobytes(values.rcv_bytes),
            if values.target_bytes == 0 { "off".to_owned() } else { kilobytes(values.target_bytes) },
            kilobytes(values.space_bytes),
            format!("{} packets", values.cwnd_segments),
            kilobytes(line.status.flight_size.into()),
            counts.radio.to_string(),
            counts.congestion.to_string(),
            counts.marks.to_string(),
            counts.timeouts.to_string(),
        ]);
    }
    let mut out = io::stdout().lock();
    if lines.is_empty() {
        writeln!(out, "No connections.")?;
    } else {
        writeln!(out, "{}", table.trim_fmt())?;
    }
    Ok(())
}

/// How often the clock and an interruption are looked at.
const WAIT: Duration = Duration::from_millis(200);

fn trace(name: &str, json: bool, port: Option<u16>, seconds: Option<u64>) -> Result<(), CliError> {
    let one = find_loaded(name)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let trace = Trace::begin(&one)?;
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut out = io::BufWriter::new(io::stdout().lock());
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
        for record in trace.wait(WAIT) {
            if port.is_some_and(|port| ![record.local_port, record.remote_port].contains(&port)) {
                continue;
            }
            if json {
                serde_json::to_writer(&mut out, &TraceLine::from(record)).map_err(io::Error::from)?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", line(&record))?;
            }
        }
        out.flush()?;
    }
    match trace.lost() {
        0 => Ok(()),
        lost => {
            writeln!(io::stderr(), "suimon: {lost} events found no room and are missing")?;
            Ok(())
        }
    }
}

fn line(record: &Record) -> String {
    let seconds = record.now_us as f64 / 1e6;
    let event = format!("{:?}", record.event()).to_lowercase();
    let target = match record.values.target_bytes {
        0 => "off".to_owned(),
        bytes => bytes.to_string(),
    };
    format!(
        "{seconds:.6} s  connection {}  {event:<7}  confirmed {} B  rtt {}  in flight {} B  target {target} B  space {} B  cwnd {}{}",
        record.connection,
        record.delivered,
        milliseconds(record.rtt_us),
        record.flight_size,
        record.values.space_bytes,
        record.values.cwnd_segments,
        if record.event() == Event::Loss && record.radio == 1 { "  (the radio's)" } else { "" },
    )
}

fn replay(path: &Path) -> Result<(), CliError> {
    let wrong = |error: ReplayError| CliError::Input(format!("{}: {error}", path.display()));
    let file = File::open(path).map_err(|error| wrong(error.into()))?;
    let Replayed { connections, events, acknowledgements, congestions, differ, first, left_out } =
        congestion_trace::replay(io::BufReader::new(file)).map_err(wrong)?;
    let without = match left_out {
        0 => String::new(),
        left_out => format!(" {left_out} events are left out, since one before them is missing in the trace."),
    };
    writeln!(
        io::stdout(),
        "fs-at-open: {events} events of {connections} connections ({acknowledgements} acknowledgements, {congestions} \
         losses, marks and timeouts), {differ} decisions differ.{without}"
    )?;
    match first {
        Some(first) => Err(CliError::Failed(format!("{differ} decisions differ, first: {first}"))),
        None => Ok(()),
    }
}

fn check(json: bool) -> Result<(), CliError> {
    match print_checks(congestion::checks(), json)? {
        Some(finding) => Err(CongestionError::Unsupported(finding).into()),
        None => Ok(()),
    }
}

fn milliseconds(micros: u32) -> String {
    if micros == 0 { "-".to_owned() } else { format!("{:.1} ms", f64::from(micros) / 1e3) }
}

fn kilobytes(bytes: u64) -> String {
    format!("{:.1} kB", bytes as f64 / 1e3)
}
