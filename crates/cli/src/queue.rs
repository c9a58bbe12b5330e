//! `suimon queue`: arrival policies in the kernel, in front of a device's queue.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use suimon_algorithms::queue::integer::{ONE, Program};
use suimon_algorithms::queue::DropReason;
use suimon_algorithms::queue::policy::Verdict;
use suimon_linux::congestion::on_host;
use suimon_linux::queue::{self, Counts, Loaded, Options, POLICIES, Policy, QueueError, Trace, find_loaded, loaded};
use suimon_linux::queue_trace::{self, Head, Record, ReplayError, Replayed};
use suimon_units::{Bytes, Rate};

use crate::error::CliError;
use crate::plain_table::{clear_terminal, print_checks, print_json, table};

const EXAMPLE: &str = "\
Examples:
  suimon queue check
  sudo suimon queue load rtt-aqm --dev eth1 --rate 18Mbit
  sudo suimon queue load dpd-qt:multiplier=10 --dev eth1 --rate 18Mbit --in-front-of
  sudo suimon queue stat
  sudo suimon queue unload eth1";

/// Room of a queue where none is given: what this time brings, and so much at least.
const BUFFER_TIME: suimon_units::Duration = suimon_units::Duration::from_millis(100);
const LEAST_BUFFER: Bytes = Bytes::new(30_000);
/// RTT-AQM's target where none is given: what this time brings, and ten full packets at least.
const TARGET_TIME: suimon_units::Duration = suimon_units::Duration::from_millis(15);
const LEAST_TARGET: Bytes = Bytes::new(15_000);
/// How often the clock and an interruption are looked at.
const WAIT: Duration = Duration::from_millis(200);
const VIEWED_EVERY: Duration = Duration::from_secs(1);

/// Keep a router's queue short by an arrival policy in its kernel
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Load a policy at a device; one that is there is replaced between two packets
    Load(Load),
    /// What can be loaded, and what is
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take the policy at a device away, and the queue that came with it
    Unload {
        /// The device
        device: String,
    },
    /// The queue, the marks and drops, and what the policy sees
    Stat {
        /// The device; all in this network namespace where none is named
        device: Option<String>,
        /// Print JSON
        #[arg(long, conflicts_with = "metrics")]
        json: bool,
        /// Print the text that Prometheus reads
        #[arg(long)]
        metrics: bool,
        /// Show the table on the whole terminal, anew every second, until interrupted
        #[arg(long, conflicts_with_all = ["json", "metrics"])]
        view: bool,
    },
    /// Every packet and its verdict as they come, until interrupted
    Trace {
        /// The device
        device: String,
        /// Print JSON, an object a line, which `suimon queue replay` reads
        #[arg(long)]
        json: bool,
        /// Let the policy begin anew, so that the trace can be replayed
        #[arg(long)]
        afresh: bool,
        /// Stop after so many seconds
        #[arg(long, value_name = "SECONDS")]
        seconds: Option<u64>,
    },
    /// Does the policy in Rust give the same verdicts on a trace as the program in the kernel gave
    Replay {
        /// What `suimon queue trace --json --afresh` has written
        trace: PathBuf,
    },
    /// Does this machine support it, and if not what is missing
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct Load {
    /// Which, with settings as in a scenario: rtt-aqm:target=30kB
    policy: String,
    /// The device whose outgoing packets wait
    #[arg(long, value_name = "DEVICE")]
    dev: String,
    /// The rate of the link behind it, somewhat below what the modem takes
    #[arg(long)]
    rate: Rate,
    /// Room for packets that wait; what 100 ms bring, and 30 kB at least, where not given
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Keep the qdisc that the device has, whose rate --rate then tells
    #[arg(long)]
    in_front_of: bool,
    /// Let the packets that come in at the device wait, rather than those that leave it: they are led through a device
    /// of their own, whose name is printed
    #[arg(long, conflicts_with = "in_front_of")]
    down: bool,
    /// The seed of the policy's random numbers; drawn where not given
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.action {
        Action::Load(options) => on_host(|| load(options)),
        Action::List { json } => on_host(|| list(*json)),
        Action::Unload { device } => on_host(|| unload(device)),
        Action::Stat { device, view: true, .. } => on_host(|| view(device.as_deref())),
        Action::Stat { device, json, metrics, .. } => on_host(|| stat(device.as_deref(), *json, *metrics)),
        Action::Trace { device, json, afresh, seconds } => {
            on_host(|| trace(device, *json, *afresh, *seconds))
        }
        Action::Check { json } => on_host(|| check(*json)),
        Action::Replay { trace } => replay(trace),
    }
}

fn load(options: &Load) -> Result<(), CliError> {
    if options.rate == Rate::ZERO {
        return Err(CliError::Input("--rate: \"0\": a link has a rate; accepted: 18Mbit".to_owned()));
    }
    let buffer = options.buffer.unwrap_or_else(|| options.rate.amount_in(BUFFER_TIME).max(LEAST_BUFFER));
    let seed = options.seed.map_or_else(random_seed, Ok)?;
    let (policy, settings) = policy_of(&options.policy, options.rate, buffer, seed)?;
    let one = queue::load(
        policy,
        &Options {
            device: options.dev.clone(),
            rate: options.rate,
            buffer,
            in_front_of: options.in_front_of,
            incoming: options.down,
            settings,
        },
    )?;
    let behind = if one.owns_qdisc { "a token bucket of" } else { "the queue that is there, taken for" };
    let (name, rate) = (one.policy.name, options.rate);
    let incoming = one.incoming().map(|from| format!(", which gets what comes in at {from}")).unwrap_or_default();
    let device = format!("{}{incoming}", one.device);
    writeln!(io::stdout(), "{name} is loaded at {device}, in front of {behind} {rate}; room for {buffer}.")?;
    Ok(())
}

/// The policy of `text`, in front of a link of `rate` with room for `buffer`, and its settings as the program has them.
pub(crate) fn policy_of(
    text: &str,
    rate: Rate,
    buffer: Bytes,
    seed: u64,
) -> Result<(&'static Policy, Vec<u64>), CliError> {
    let text = with_target(text, rate, buffer);
    let (program, settings) =
        Program::read(&text, rate, buffer, seed).map_err(|error| CliError::Input(error.to_string()))?;
    let policy = POLICIES.iter().find(|policy| policy.name == program.name);
    let policy = policy.ok_or_else(|| CliError::Input(format!("{} is not in this build", program.name)))?;
    Ok((policy, settings.program_words()))
}

/// RTT-AQM's target where none is given: PIE's 15 ms (RFC 8033, `QDELAY_REF`), as half of a router's buffer is long.
fn with_target(policy: &str, rate: Rate, buffer: Bytes) -> String {
    if policy.split(':').next() != Some("rtt-aqm") || policy.contains(":target=") {
        return policy.to_owned();
    }
    let target = rate.amount_in(TARGET_TIME).max(LEAST_TARGET).min(buffer);
    format!("{policy}:target={}B", target.get())
}

pub(crate) fn random_seed() -> Result<u64, CliError> {
    let mut bytes = [0; 8];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn unload(device: &str) -> Result<(), CliError> {
    let one = find_loaded(device)?;
    queue::unload(&one)?;
    let with = if one.owns_qdisc { ", and its token bucket with it" } else { "" };
    writeln!(io::stdout(), "{} is unloaded from {}{with}.", one.policy.name, one.device)?;
    Ok(())
}

#[derive(Serialize)]
struct Entry {
    policy: &'static str,
    devices: Vec<String>,
    summary: &'static str,
}

fn list(json: bool) -> Result<(), CliError> {
    queue::remove_leftovers();
    let all = loaded();
    let summaries = suimon_algorithms::registry::descriptions(suimon_algorithms::registry::Role::Queue);
    let entries: Vec<_> = POLICIES
        .iter()
        .map(|policy| Entry {
            policy: policy.name,
            devices: all.iter().filter(|one| one.policy.name == policy.name).map(place).collect(),
            summary: summaries.iter().find(|one| one.name == policy.name).map_or("", |one| one.summary),
        })
        .collect();
    if json {
        return print_json(&entries);
    }
    let mut table = table(&["policy", "loaded at", ""]);
    for entry in &entries {
        let devices = if entry.devices.is_empty() { "-".to_owned() } else { entry.devices.join(", ") };
        table.add_row([entry.policy, &devices, entry.summary]);
    }
    writeln!(io::stdout(), "{}", table.trim_fmt())?;
    Ok(())
}

/// The device, and whether it is in another network namespace.
fn place(one: &Loaded) -> String {
    let device = &one.device;
    match one.incoming() {
        _ if !one.is_here() => format!("{device} (in another network namespace)"),
        Some(from) => format!("{device} (into {from})"),
        None => device.clone(),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    device: &'a str,
    policy: &'a str,
    #[serde(flatten)]
    counts: Counts,
}

/// Shows the table every second, until interrupted.
fn view(device: Option<&str>) -> Result<(), CliError> {
    let stop = until_signal()?;
    while !stop.load(Ordering::Relaxed) {
        clear_terminal()?;
        stat(device, false, false)?;
        let shown = Instant::now();
        while shown.elapsed() < VIEWED_EVERY && !stop.load(Ordering::Relaxed) {
            thread::sleep(WAIT);
        }
    }
    Ok(())
}

/// Becomes true at an interruption.
pub(crate) fn until_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn stat(device: Option<&str>, json: bool, metrics: bool) -> Result<(), CliError> {
    let ones = match device {
        Some(device) => vec![find_loaded(device)?],
        None => loaded().into_iter().filter(Loaded::is_here).collect(),
    };
    let mut lines = Vec::new();
    for one in &ones {
        lines.push(Line { device: &one.device, policy: one.policy.name, counts: one.counts()? });
    }
    if json {
        return print_json(&lines);
    }
    if metrics {
        return print_metrics(&lines);
    }
    let mut table = table(&[
        "device", "policy", "packets", "backlog", "mean", "largest", "marks", "drops", "overflows", "probability", "RTT",
        "flows",
    ]);
    for Line { device, policy, counts } in &lines {
        let known = |value: u64, text: String| if value == 0 { "-".to_owned() } else { text };
        table.add_row([
            (*device).to_owned(),
            (*policy).to_owned(),
            counts.packets.to_string(),
            kilobytes(counts.backlog_bytes as f64),
            kilobytes(counts.mean_backlog_bytes()),
            kilobytes(counts.largest_backlog_bytes as f64),
            counts.marks.to_string(),
            counts.drops.to_string(),
            counts.overflows.to_string(),
            format!("{:.5}", probability(counts)),
            known(counts.rtt_ns, format!("{:.1} ms", counts.rtt_ns as f64 / 1e6)),
            known(counts.flows_65536, format!("{:.1}", counts.flows_65536 as f64 / 65_536.0)),
        ]);
    }
    let mut out = io::stdout().lock();
    if lines.is_empty() {
        writeln!(out, "Nothing is loaded in this network namespace.")?;
    } else {
        writeln!(out, "{}", table.trim_fmt())?;
    }
    for Line { device, counts, .. } in &lines {
        if counts.super_packets > 0 {
            writeln!(
                out,
                "{device}: {} packets held several segments, and each was judged as one: \
                 ethtool -K DEVICE gro off on the devices where they come in keeps them apart.",
                counts.super_packets
            )?;
        }
    }
    Ok(())
}

fn probability(counts: &Counts) -> f64 {
    counts.probability_2_32 as f64 / ONE as f64
}

fn print_metrics(lines: &[Line<'_>]) -> Result<(), CliError> {
    type Value = fn(&Counts) -> f64;
    let metrics: [(&str, &str, Value); 9] = [
        ("packets_total", "counter", |counts| counts.packets as f64),
        ("bytes_total", "counter", |counts| counts.bytes as f64),
        ("marks_total", "counter", |counts| counts.marks as f64),
        ("drops_total", "counter", |counts| counts.drops as f64),
        ("overflows_total", "counter", |counts| counts.overflows as f64),
        ("backlog_bytes", "gauge", |counts| counts.backlog_bytes as f64),
        ("probability", "gauge", probability),
        ("rtt_seconds", "gauge", |counts| counts.rtt_ns as f64 / 1e9),
        ("flows", "gauge", |counts| counts.flows_65536 as f64 / 65_536.0),
    ];
    let mut out = io::stdout().lock();
    for (name, kind, value) in metrics {
        writeln!(out, "# TYPE suimon_queue_{name} {kind}")?;
        for Line { device, policy, counts } in lines {
            writeln!(out, "suimon_queue_{name}{{device=\"{device}\",policy=\"{policy}\"}} {}", value(counts))?;
        }
    }
    Ok(())
}

fn trace(device: &str, json: bool, afresh: bool, seconds: Option<u64>) -> Result<(), CliError> {
    let one = find_loaded(device)?;
    let stop = until_signal()?;
    let trace = if afresh { Trace::afresh(&one) } else { Trace::begin(&one) }?;
    let lost_before = one.counts()?.lost_records;
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut out = io::BufWriter::new(io::stdout().lock());
    if json {
        let settings = one.settings()?;
        let words = std::array::from_fn(|word| settings[3 + word]);
        let [bytes_per_second, buffer_bytes, seed] = [settings[0], settings[1], settings[2]];
        let head = Head { policy: one.policy.name.to_owned(), bytes_per_second, buffer_bytes, seed, words };
        serde_json::to_writer(&mut out, &head).map_err(io::Error::from)?;
        writeln!(out)?;
        out.flush()?;
    }
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until) {
        for record in trace.wait(WAIT) {
            if json {
                serde_json::to_writer(&mut out, &record).map_err(io::Error::from)?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", line(&record))?;
            }
        }
        out.flush()?;
    }
    let lost = one.counts()?.lost_records - lost_before;
    if lost > 0 {
        writeln!(io::stderr(), "suimon: {lost} records found no room and are missing")?;
    }
    Ok(())
}

fn line(record: &Record) -> String {
    let verdict = match record.verdict() {
        Some(Verdict::Pass) => "passed",
        Some(Verdict::Mark) => "marked",
        Some(Verdict::Drop(DropReason::Overflow)) => "no room",
        Some(Verdict::Drop(_)) => "dropped",
        None => "?",
    };
    format!(
        "{:.6} s  {verdict:<7}  {} B of flow {:08x}, finds {} B in {} packets",
        record.now_ns as f64 / 1e9,
        record.size_bytes,
        record.flow,
        record.backlog_bytes,
        record.backlog_packets,
    )
}

fn replay(path: &Path) -> Result<(), CliError> {
    let wrong = |error: ReplayError| CliError::Input(format!("{}: {error}", path.display()));
    let file = fs::File::open(path).map_err(|error| wrong(error.into()))?;
    let Replayed { policy, packets, differ, is_cut } = queue_trace::replay(io::BufReader::new(file)).map_err(wrong)?;
    let missing = if is_cut { " The packet behind them is missing in the trace." } else { "" };
    writeln!(io::stdout(), "{policy}: {packets} packets, {differ} verdicts differ.{missing}")?;
    if differ > 0 { Err(CliError::Failed(format!("{differ} verdicts differ"))) } else { Ok(()) }
}

fn check(json: bool) -> Result<(), CliError> {
    match print_checks(queue::checks(), json)? {
        Some(finding) => Err(QueueError::Unsupported(finding).into()),
        None => Ok(()),
    }
}

fn kilobytes(bytes: f64) -> String {
    format!("{:.1} kB", bytes / 1e3)
}
