//! `suimon paper NAME --kernel`: a paper's experiments on the running kernel, beside the simulator.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::{ContentArrangement, Table, TableStyle};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_linux::congestion::{Algorithm, Held, choose, hold};
use suimon_linux::tcp::limit_window;
use suimon_scenario::{Comparison, LinkSpec, Scheme};
use suimon_study::StudyError;
use suimon_units::Bytes;

use crate::error::CliError;
use crate::progress::{Progress, simulate};

/// `kernel.toml` of a paper's folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    description: String,
    #[serde(deserialize_with = "of_text")]
    duration: suimon_units::Duration,
    #[serde(deserialize_with = "of_text")]
    window: Bytes,
    cc: Vec<String>,
    agreement: f64,
    agreement_packets: f64,
    #[serde(rename = "link")]
    links: Vec<LinkOf>,
    #[serde(rename = "bar", default)]
    bars: Vec<Bar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkOf {
    name: String,
    link: String,
    #[serde(default = "one")]
    seeds: u64,
    /// A file that does not come with the project; without it the link is left out.
    needs: Option<PathBuf>,
}

/// A quantity with its unit.
fn of_text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(deserializer: D) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn one() -> u64 {
    1
}

/// What must hold of a ratio, in the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bar {
    claim: String,
    of: Of,
    cc: String,
    link: String,
    beside_cc: Option<String>,
    beside_link: Option<String>,
    least: Option<f64>,
    most: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    Backlog,
    Throughput,
}

/// Means over the seeds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Measured {
    throughput_kbps: f64,
    backlog_mean_packets: f64,
    backlog_max_packets: f64,
    delay_p95_ms: f64,
    /// Of a datagram there and back, twice a second; the kernel's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    ping_p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ping_p95_ms: Option<f64>,
    /// The emulator's own 99th percentile of lateness: the kernel's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness_p99_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Row {
    link: String,
    cc: String,
    kernel: Measured,
    simulator: Measured,
    throughput_agrees: bool,
    backlog_agrees: bool,
}

#[derive(Debug, Serialize)]
struct Judged {
    claim: String,
    bar: String,
    kernel: f64,
    simulator: f64,
    /// `None` where there is no bar.
    holds: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Results {
    rows: Vec<Row>,
    bars: Vec<Judged>,
}

/// So many links at once: each takes a thread that sleeps, and the machine must stay calm.
const TOGETHER: usize = 20;
const PING_EVERY: Duration = Duration::from_millis(500);

/// Runs the experiment in `folder` and prints it.
pub(crate) fn execute(folder: &Path, json: bool) -> Result<(), CliError> {
    let file = folder.join("kernel.toml");
    let unreadable = |problem: String| StudyError::Claims { file: file.clone(), problem };
    let text = std::fs::read_to_string(&file).map_err(|error| unreadable(error.to_string()))?;
    let mut experiment: Experiment = toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    experiment.links.retain(|link| link.needs.as_ref().is_none_or(|file| file.exists()));
    let simulator = simulated(&experiment)?;
    let kernel = on_kernel(&experiment)?;
    let rows = rows(&experiment, &kernel, &simulator);
    let bars = experiment.bars.iter().filter_map(|bar| judge(bar, &kernel, &simulator)).collect();
    let results = Results { rows, bars };
    if json {
        let text = serde_json::to_string_pretty(&results).map_err(io::Error::from)?;
        return Ok(writeln!(io::stdout(), "{text}")?);
    }
    Ok(print(&experiment, &results)?)
}

/// Link and congestion control, by name.
type Cells = BTreeMap<(String, String), Measured>;

fn simulated(experiment: &Experiment) -> Result<Cells, CliError> {
    let mut runs = Vec::new();
    let mut cells = Vec::new();
    for link in &experiment.links {
        let spec = LinkSpec::parse(&link.link)?;
        for cc in &experiment.cc {
            let comparison = Comparison {
                duration: experiment.duration,
                window: experiment.window,
                seeds: link.seeds,
                record_interval: None,
                ..Comparison::new(spec.clone(), vec![Scheme::parse(cc)?])
            };
            let of_cell = comparison.runs()?;
            cells.extend(of_cell.iter().map(|_| (link.name.clone(), cc.clone())));
            runs.extend(of_cell);
        }
    }
    let measured = simulate(&runs).into_iter().map(|result| {
        let (flow, queue) = (&result.flows[0], &result.queues[0]);
        Measured {
            throughput_kbps: flow.goodput.as_bps_f64() / 1e3,
            backlog_mean_packets: queue.backlog_mean_packets,
            backlog_max_packets: queue.backlog_max_packets as f64,
            delay_p95_ms: queue.delay_p95.as_millis_f64(),
            ..Measured::default()
        }
    });
    Ok(means(cells.into_iter().zip(measured)))
}

fn on_kernel(experiment: &Experiment) -> Result<Cells, CliError> {
    let mut names = BTreeMap::new();
    let mut held: Vec<Held> = Vec::new();
    for (number, cc) in experiment.cc.iter().enumerate() {
        // The kernel has its own Reno, CUBIC and BBR.
        let name = match Algorithm::named(cc) {
            Ok(algorithm) => {
                let name = format!("s{}_{number}", std::process::id());
                held.push(hold(algorithm, &name)?);
                name
            }
            Err(_) => cc.clone(),
        };
        names.insert(cc.clone(), name);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let jobs: Vec<_> = experiment
        .links
        .iter()
        .flat_map(|link| experiment.cc.iter().map(move |cc| (link, cc)))
        .flat_map(|(link, cc)| (1..=link.seeds).map(move |seed| (link, cc, seed)))
        .collect();
    let batches: Vec<_> = jobs.chunks(TOGETHER).collect();
    let duration = Duration::from_nanos(experiment.duration.as_nanos());
    let progress = Progress::new(experiment.duration * batches.len() as u64);
    let mut found = Vec::new();
    for batch in batches {
        let results: Vec<Result<Measured, CliError>> = thread::scope(|scope| {
            let clock = scope.spawn(|| tick(duration, &progress));
            let running: Vec<_> = batch
                .iter()
                .map(|(link, cc, seed)| {
                    let (name, window) = (&names[*cc], experiment.window);
                    scope.spawn(move || transfer(&link.link, name, *seed, window, duration))
                })
                .collect();
            let results = running
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            let results = results.collect();
            let _ = clock.join();
            results
        });
        for ((link, cc, _), result) in batch.iter().zip(results) {
            found.push(((link.name.clone(), (*cc).clone()), result?));
        }
        if stop.load(Ordering::Relaxed) {
            progress.finish();
            return Err(CliError::Output(io::Error::from(io::ErrorKind::Interrupted)));
        }
    }
    progress.finish();
    drop(held);
    Ok(means(found.into_iter()))
}

fn tick(duration: Duration, progress: &Progress) {
    let step = Duration::from_millis(250);
    for _ in 0..duration.as_millis() / step.as_millis() {
        thread::sleep(step);
        progress.advance_by(step.as_nanos() as u64);
    }
}

/// One transfer by the kernel over an emulated link of its own, with datagrams there and back meanwhile.
fn transfer(
    link: &str,
    name: &str,
    seed: u64,
    window: Bytes,
    duration: Duration,
) -> Result<Measured, CliError> {
    let droptail = AlgorithmSpec::parse(Role::Queue, "droptail").map_err(io::Error::other)?;
    let directions = LinkSpec::parse(link)?.links(&droptail);
    let hosts = TwoHosts::new(&Setup { seed, ..Setup::default() }, &[directions])?;
    let address = SocketAddr::from((hosts.paths[0].far, 5_001));
    let listener = hosts.far.run(|| TcpListener::bind(address))??;
    limit_window(&listener, window)?;
    let (received, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (near, far, far_address) = (&hosts.near, &hosts.far, hosts.paths[0].far);
    let pings = thread::scope(|scope| -> Result<Vec<f64>, CliError> {
        let (received, over) = (&received, &over);
        scope.spawn(move || -> io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(PING_EVERY))?;
            let mut buffer = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                limit_window(&stream, window)?;
                match stream.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => _ = received.fetch_add(read as u64, Ordering::Relaxed),
                    Err(_) => {}
                }
            }
            Ok(())
        });
        let pings = scope.spawn(move || ping([near, far], far_address, over));
        let ends = Instant::now() + duration;
        let sent = send(near, address, name, ends);
        over.store(true, Ordering::Relaxed);
        let pings = pings.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent?;
        pings
    })?;
    let received = received.load(Ordering::Relaxed);
    let reports = hosts.emulation.finish()?;
    let statistics = &reports[0].statistics;
    let queue = &statistics.directions[0].totals;
    Ok(Measured {
        throughput_kbps: received as f64 * 8.0 / duration.as_secs_f64() / 1e3,
        backlog_mean_packets: queue.backlog_mean_packets,
        backlog_max_packets: queue.backlog_max_packets as f64,
        delay_p95_ms: queue.delay_p95.as_millis_f64(),
        ping_p50_ms: quantile(&pings, 0.5),
        ping_p95_ms: quantile(&pings, 0.95),
        lateness_p99_ms: Some(statistics.lateness.p99.as_millis_f64()),
    })
}

/// As much as goes until `ends`.
fn send(near: &Namespace, address: SocketAddr, name: &str, ends: Instant) -> Result<(), CliError> {
    let mut stream = near.run(|| TcpStream::connect(address))??;
    choose(&stream, name)?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    let data = vec![0; 1 << 16];
    while Instant::now() < ends {
        // A full buffer times out.
        let _ = stream.write(&data);
    }
    Ok(())
}

/// Round-trip times in milliseconds of small datagrams, one at a time.
fn ping([near, far]: [&Namespace; 2], address: Ipv4Addr, over: &AtomicBool) -> Result<Vec<f64>, CliError> {
    let address = SocketAddr::from((address, 7));
    let echo = far.run(|| UdpSocket::bind(address))??;
    let near = near.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
    echo.set_read_timeout(Some(PING_EVERY))?;
    near.set_read_timeout(Some(PING_EVERY * 10))?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    let _ = echo.send_to(&buffer[..length], from);
                }
            }
        });
        let mut times = Vec::new();
        let mut buffer = [0; 64];
        for number in 0_u64.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let sent = Instant::now();
            near.send_to(&[&number.to_be_bytes()[..], &[0; 48]].concat(), address)?;
            while let Ok((8.., _)) = near.recv_from(&mut buffer) {
                // What comes late is not taken for the next.
                if buffer[..8] == number.to_be_bytes() {
                    times.push(sent.elapsed().as_secs_f64() * 1e3);
                    break;
                }
            }
            thread::sleep(PING_EVERY.saturating_sub(sent.elapsed()));
        }
        Ok(times)
    })
}

fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// The mean of each cell over its seeds.
fn means(all: impl Iterator<Item = ((String, String), Measured)>) -> Cells {
    let mut grouped: BTreeMap<_, Vec<Measured>> = BTreeMap::new();
    for (cell, measured) in all {
        grouped.entry(cell).or_default().push(measured);
    }
    let mean = |of: &[Measured], value: &dyn Fn(&Measured) -> f64| {
        of.iter().map(value).sum::<f64>() / of.len() as f64
    };
    let maybe = |of: &[Measured], value: &dyn Fn(&Measured) -> Option<f64>| {
        let known: Vec<_> = of.iter().filter_map(value).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let of_group = |of: Vec<Measured>| Measured {
        throughput_kbps: mean(&of, &|one| one.throughput_kbps),
        backlog_mean_packets: mean(&of, &|one| one.backlog_mean_packets),
        backlog_max_packets: mean(&of, &|one| one.backlog_max_packets),
        delay_p95_ms: mean(&of, &|one| one.delay_p95_ms),
        ping_p50_ms: maybe(&of, &|one| one.ping_p50_ms),
        ping_p95_ms: maybe(&of, &|one| one.ping_p95_ms),
        lateness_p99_ms: maybe(&of, &|one| one.lateness_p99_ms),
    };
    grouped.into_iter().map(|(cell, of)| (cell, of_group(of))).collect()
}

fn rows(experiment: &Experiment, kernel: &Cells, simulator: &Cells) -> Vec<Row> {
    let cells = experiment
        .links
        .iter()
        .flat_map(|link| experiment.cc.iter().map(|cc| (link.name.clone(), cc.clone())));
    let row = |cell: (String, String)| {
        let (kernel, simulator) = (*kernel.get(&cell)?, *simulator.get(&cell)?);
        let near = |a: f64, b: f64, least: f64| (a - b).abs() <= (experiment.agreement * b).max(least);
        Some(Row {
            throughput_agrees: near(kernel.throughput_kbps, simulator.throughput_kbps, 0.0),
            backlog_agrees: near(
                kernel.backlog_mean_packets,
                simulator.backlog_mean_packets,
                experiment.agreement_packets,
            ),
            link: cell.0,
            cc: cell.1,
            kernel,
            simulator,
        })
    };
    cells.filter_map(row).collect()
}

fn judge(bar: &Bar, kernel: &Cells, simulator: &Cells) -> Option<Judged> {
    let ratio = |cells: &Cells| {
        let value = |link: &String, cc: &String| {
            let cell = cells.get(&(link.clone(), cc.clone()))?;
            Some(match bar.of {
                Of::Backlog => cell.backlog_mean_packets,
                Of::Throughput => cell.throughput_kbps,
            })
        };
        let beside =
            value(bar.beside_link.as_ref().unwrap_or(&bar.link), bar.beside_cc.as_ref().unwrap_or(&bar.cc))?;
        Some(value(&bar.link, &bar.cc)? / beside)
    };
    let (kernel, simulator) = (ratio(kernel)?, ratio(simulator)?);
    let (text, holds) = match (bar.least, bar.most) {
        (Some(least), _) => (format!("at least {:.0} %", 100.0 * least), Some(kernel >= least)),
        (None, Some(most)) => (format!("at most {:.0} %", 100.0 * most), Some(kernel <= most)),
        (None, None) => (String::new(), None),
    };
    Some(Judged { claim: bar.claim.clone(), bar: text, kernel, simulator, holds })
}

fn print(experiment: &Experiment, results: &Results) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n", experiment.description)?;
    let table = |header: &[&str]| {
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        table.set_content_arrangement(ContentArrangement::Disabled).set_header(header.to_vec());
        table
    };
    let mut numbers = table(&[
        "link",
        "cc",
        "kbit/s: kernel",
        "simulator",
        "backlog, packets: kernel",
        "simulator",
        "most",
        "ping p50",
        "p95",
        "agree",
    ]);
    for row in &results.rows {
        let ping = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0} ms"));
        numbers.add_row([
            row.link.clone(),
            row.cc.clone(),
            format!("{:.0}", row.kernel.throughput_kbps),
            format!("{:.0}", row.simulator.throughput_kbps),
            format!("{:.1}", row.kernel.backlog_mean_packets),
            format!("{:.1}", row.simulator.backlog_mean_packets),
            format!("{:.0} / {:.0}", row.kernel.backlog_max_packets, row.simulator.backlog_max_packets),
            ping(row.kernel.ping_p50_ms),
            ping(row.kernel.ping_p95_ms),
            match (row.throughput_agrees, row.backlog_agrees) {
                (true, true) => "both",
                (true, false) => "throughput",
                (false, true) => "backlog",
                (false, false) => "neither",
            }
            .to_owned(),
        ]);
    }
    writeln!(out, "{}\n", numbers.trim_fmt())?;
    let mut bars = table(&["claim", "bar", "kernel", "simulator", ""]);
    for bar in &results.bars {
        let verdict = match bar.holds {
            Some(true) => "holds",
            Some(false) => "missed",
            None => "",
        };
        bars.add_row([
            bar.claim.clone(),
            bar.bar.clone(),
            format!("{:.1} %", 100.0 * bar.kernel),
            format!("{:.1} %", 100.0 * bar.simulator),
            verdict.to_owned(),
        ]);
    }
    writeln!(out, "{}", bars.trim_fmt())?;
    let late = results.rows.iter().filter_map(|row| row.kernel.lateness_p99_ms).fold(0.0, f64::max);
    writeln!(out, "\nThe emulator gave 99 % of packets at most {late:.2} ms late, on the worst link.")
}
