//! `suimon bond bench`: the bond between network namespaces of this host, measured.

use std::io::{self, Write};
use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{CellAlignment, Table, TableStyle};
use serde::Serialize;
use suimon_lab::bond::Digests;
use suimon_lab::bond::cuts::Cuts;
use suimon_lab::bond::datagrams::Datagrams;
use suimon_lab::bond::faults::Faults;
use suimon_lab::bond::goodput::{Goodput, News};
use suimon_lab::bond::rivals::{self, Rivals};
use suimon_lab::bond::shared::Shared;
use suimon_lab::bond::speed::Speed;
use suimon_lab::bond::waits::Waits;
use suimon_units::{Bytes, Rate};

use crate::error::CliError;
use crate::output::tell;

const EXAMPLE: &str = "\
Example:
  suimon bond bench                                              # two pairs of links, both buffers, some 3 min
  suimon bond bench --paths '20Mbit 30ms; trace=lte.down 80ms' --receive-buffer 512kB
  suimon bond bench --schedulers look-ahead,least-buffered,lowest-rtt --json
  suimon bond bench speed                                        # over links that have no bound
  suimon bond bench faults --bytes 1GB                           # paths cut, a device unplugged, a server restarted
  suimon bond bench cuts --seed 1                                # a day of random cuts in minutes
  suimon bond bench waits                                        # requests and a call beside a download, and through cuts
  suimon bond bench rivals                                       # beside kernel MPTCP, WireGuard, engarde, glorytun
  suimon bond bench shared                                       # two paths through one bottleneck, beside another connection
  suimon bond bench datagrams                                    # what datagrams on one path cost

Needs root, or the right to make network namespaces; nothing of this host's network is touched.";

/// Measure the bond over emulated links, beside kernel MPTCP and each path alone
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    goodput: Goodput,
    #[command(flatten)]
    form: Form,
}

// How rows are printed. Not a doc comment: clap would show it in place of what the command does.
#[derive(Debug, Args)]
#[group(skip)]
struct Form {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Speed(Bench<Speed>),
    Faults(Bench<Faults>),
    Cuts(Bench<Cuts>),
    Datagrams(Bench<Datagrams>),
    Waits(Bench<Waits>),
    Rivals(Bench<Rivals>),
    Shared(Bench<Shared>),
}

#[derive(Debug, Args)]
struct Bench<B: Args> {
    #[command(flatten)]
    bench: B,
    #[command(flatten)]
    form: Form,
}

/// Both ends are this program.
const PROGRAM: &str = "/proc/self/exe";

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.command {
        None => goodput(&arguments.goodput, arguments.form.json),
        Some(Command::Speed(one)) => speed(&one.bench, one.form.json),
        Some(Command::Faults(one)) => faults(&one.bench, one.form.json),
        Some(Command::Cuts(one)) => cuts(&one.bench, one.form.json),
        Some(Command::Datagrams(one)) => datagrams(&one.bench, one.form.json),
        Some(Command::Waits(one)) => waits(&one.bench, one.form.json),
        Some(Command::Rivals(one)) => rivals(&one.bench, one.form.json),
        Some(Command::Shared(one)) => shared(&one.bench, one.form.json),
    }
}

fn goodput(bench: &Goodput, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM), |news| match news {
        News::Row(row) => {
            let buffer = Bytes::new(row.receive_buffer_bytes);
            tell(format_args!("{} | {buffer} | {}: {}", row.paths, row.scheme, mbit(row.goodput_bps)));
        }
        News::NoMptcp(paths, buffer, error) => {
            tell(format_args!("{paths} | {buffer} | kernel MPTCP: none, {error}"));
        }
    })?;
    let header = ["paths", "receive buffer", "scheme", "goodput", "of the sum"];
    print(&rows, json, &header, 3, |row| {
        vec![
            row.paths.clone(),
            Bytes::new(row.receive_buffer_bytes).to_string(),
            row.scheme.clone(),
            mbit(row.goodput_bps),
            format!("{:.3}", row.share),
        ]
    })
}

fn speed(bench: &Speed, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM))?;
    let header = ["scheme", "goodput", "processors, client", "server", "SHA-256"];
    print(&rows, json, &header, 1, |row| {
        vec![
            row.scheme.clone(),
            mbit(row.goodput_bps),
            format!("{:.2}", row.client_processors),
            format!("{:.2}", row.server_processors),
            row.sha256.to_string(),
        ]
    })?;
    check_whole(rows.iter().map(|row| row.sha256))
}

fn faults(bench: &Faults, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM))?;
    let header = ["fault", "bytes", "time", "goodput", "longest stall", "streams", "SHA-256"];
    print(&rows, json, &header, 1, |row| {
        vec![
            row.fault.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned()),
            Bytes::new(row.bytes).to_string(),
            format!("{:.1} s", row.time_s),
            mbit(row.goodput_bps),
            format!("{:.2} s", row.longest_stall_s),
            row.streams.to_string(),
            row.sha256.to_string(),
        ]
    })?;
    check_whole(rows.iter().map(|row| row.sha256))
}

fn cuts(bench: &Cuts, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM))?;
    let header = ["direction", "cuts in all", "bytes", "goodput", "longest stall", "streams", "SHA-256"];
    print(&rows, json, &header, 1, |row| {
        vec![
            row.direction.to_owned(),
            row.cuts.to_string(),
            Bytes::new(row.bytes).to_string(),
            mbit(row.goodput_bps),
            format!("{:.2} s", row.longest_stall_s),
            row.streams.to_string(),
            row.sha256.to_string(),
        ]
    })?;
    check_whole(rows.iter().map(|row| row.sha256))
}

fn datagrams(bench: &Datagrams, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM), |row| {
        let datagrams = Rate::from_bps(row.datagrams_bps);
        tell(format_args!("{}, {datagrams} of datagrams: {}", row.scheduler, mbit(row.goodput_bps)));
    })?;
    let header = ["scheduler", "datagrams received", "goodput", "loss per datagrams"];
    print(&rows, json, &header, 1, |row| {
        vec![
            row.scheduler.clone(),
            mbit(row.datagrams_bps),
            mbit(row.goodput_bps),
            row.loss.map_or_else(String::new, |loss| format!("{loss:.2}")),
        ]
    })
}

fn waits(bench: &Waits, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM), |row| {
        tell(format_args!("{}, {} beside {}: {:.1} ms", row.over, row.what, row.beside, row.median_ms));
    })?;
    let header = ["over", "what", "beside", "count", "median", "99 of 100", "longest", "lost"];
    print(&rows, json, &header, 3, |row| {
        let ms = |ms: f64| format!("{ms:.1} ms");
        vec![
            row.over.clone(),
            row.what.clone(),
            row.beside.clone(),
            row.count.to_string(),
            ms(row.median_ms),
            ms(row.p99_ms),
            ms(row.longest_ms),
            row.lost.map_or_else(String::new, |lost| format!("{:.1} %", lost * 100.0)),
        ]
    })
}

fn shared(bench: &Shared, json: bool) -> Result<(), CliError> {
    let rows = bench.measure(Path::new(PROGRAM), |row| {
        tell(format_args!("{}: {} beside {}", row.scheme, mbit(row.goodput_bps), mbit(row.other_bps)));
    })?;
    let header = ["scheme", "goodput", "the other connection", "ratio"];
    print(&rows, json, &header, 1, |row| {
        vec![
            row.scheme.clone(),
            mbit(row.goodput_bps),
            mbit(row.other_bps),
            format!("{:.2}", row.ratio),
        ]
    })
}

fn rivals(bench: &Rivals, json: bool) -> Result<(), CliError> {
    let name = |scheme: rivals::Scheme| {
        scheme.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let rows = bench.measure(Path::new(PROGRAM), |news| match news {
        rivals::News::Row(row) => {
            tell(format_args!("{}: {}", name(row.scheme), mbit(row.goodput_bps)));
        }
        rivals::News::None(scheme, error) => tell(format_args!("{}: not measured, {error}", name(*scheme))),
    })?;
    let mut header = [
        "scheme",
        "goodput",
        "beside a call",
        "call idle, 99 of 100: up",
        "down",
        "beside the download: up",
        "down",
    ]
    .map(str::to_owned)
    .to_vec();
    for path in 1..=rows.iter().map(|row| row.cuts.len()).max().unwrap_or_default() {
        header.push(format!("path {path} cut: stall"));
        header.extend(["silence", "lost"].map(str::to_owned));
    }
    let header: Vec<_> = header.iter().map(String::as_str).collect();
    let ms = |ms: &f64| format!("{ms:.1} ms");
    print(&rows, json, &header, 1, |row| {
        let mut cells = vec![name(row.scheme), mbit(row.goodput_bps), mbit(row.beside_call_bps)];
        cells.extend(row.idle_p99_ms.iter().chain(&row.p99_ms).map(ms));
        for cut in &row.cuts {
            cells.extend([ms(&cut.stall_ms), ms(&cut.silence_ms), format!("{:.1} %", cut.lost * 100.0)]);
        }
        cells
    })
}

/// Refuses measurements of transfers of which not all brought what was sent.
fn check_whole(mut digests: impl Iterator<Item = Digests>) -> Result<(), CliError> {
    if digests.all(|digests| digests == Digests::Equal) {
        return Ok(());
    }
    Err(CliError::Failed("what came is not what was sent".to_owned()))
}

/// Prints `rows` for programs, or as a table for people, the columns from `numbers` on aligned to the right.
fn print<R: Serialize>(
    rows: &[R],
    json: bool,
    header: &[&str],
    numbers: usize,
    cells: impl Fn(&R) -> Vec<String>,
) -> Result<(), CliError> {
    let mut out = io::stdout();
    if json {
        return Ok(writeln!(out, "{}", serde_json::to_string_pretty(rows).map_err(io::Error::from)?)?);
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header(header.iter().copied());
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(writeln!(out, "{table}")?)
}

fn mbit(bps: u64) -> String {
    format!("{:.3} Mbit/s", bps as f64 / 1e6)
}
