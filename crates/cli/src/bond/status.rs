//! `suimon bond status`: how it goes, once or as it goes.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use comfy_table::{CellAlignment, Table, TableStyle};
use suimon_bond::control::{Report, SessionReport};
use suimon_bond::status::PathStatusView;
use suimon_service::control::{ask, socket_path};

use crate::error::CliError;
use crate::plain_table::clear_terminal;

const EXAMPLE: &str = "\
Example:
  suimon bond status --watch
  suimon bond status --json | jq '.sessions[0].paths[] | {name, rtt_ms}'";

/// Show each path's rate, send buffer, round-trip time, queue, losses, and what waits for reordering
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The socket of the process to ask, as its --control says; by default those of a client and a server here
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show it again every second until interrupted
    #[arg(long, visible_alias = "view")]
    watch: bool,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = std::io::stdout().lock();
    loop {
        let report = runtime.block_on(find(arguments))?;
        if arguments.json {
            serde_json::to_writer(&mut out, &report).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            if arguments.watch {
                clear_terminal()?;
            }
            write!(out, "{}", show(&report))?;
        }
        out.flush()?;
        if !arguments.watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

async fn find(arguments: &Arguments) -> Result<Report, CliError> {
    let paths = match &arguments.control {
        Some(path) => vec![path.clone()],
        None => vec![socket_path("suimon-bond-client"), socket_path("suimon-bond-server")],
    };
    let mut silent = Vec::new();
    for path in paths {
        match ask(&path).await {
            Ok(report) => return Ok(report),
            Err(error) => silent.push(format!("{} ({error})", path.display())),
        }
    }
    let places = silent.join(", nor at ");
    let problem = format!(
        "nobody answers at {places}; is a `suimon bond client` or `server` running, and as this user?"
    );
    Err(CliError::Option { option: "--control", problem })
}

fn show(report: &Report) -> String {
    if report.sessions.is_empty() {
        return format!("{}: no sessions\n", report.role);
    }
    report.sessions.iter().map(|session| show_session(&report.role, session)).collect()
}

fn show_session(role: &str, session: &SessionReport) -> String {
    let status = &session.status;
    let of = session.client.as_ref().map(|client| format!(" of {client}"));
    let with = status.server.as_ref().map(|server| format!(" with {server}"));
    let who = of.or(with).unwrap_or_default();
    let aggregate = &status.session;
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header([
        "path",
        "over",
        "out",
        "in",
        "send buffer",
        "unsent",
        "cwnd",
        "rtt",
        "min",
        "queue",
        "loss",
        "again",
        "up",
        "",
    ]);
    for path in &status.paths {
        let ms = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
        table.add_row([
            path.name.clone(),
            path.carrier.to_string(),
            mbit(path.sent_bps),
            mbit(path.received_bps),
            kilobytes(path.buffered_bytes),
            kilobytes(path.unsent_bytes),
            kilobytes(path.cwnd_bytes),
            ms(path.rtt_ms),
            ms(path.rtt_min_ms),
            ms(path.queue_ms),
            format!("{:.1} %", path.loss * 100.0),
            path.retransmitted_segments.to_string(),
            format!("{:.0} s", path.up_s),
            state(path),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let paths = if status.paths.is_empty() { "  no path is up\n".to_owned() } else { format!("{table}\n") };
    let before = match (status.ended, &status.last_end) {
        (1.., Some(why)) => format!("  sessions that ended before: {}; the last {why}\n", status.ended),
        _ => String::new(),
    };
    let first = match (aggregate.realtime_bytes, aggregate.copied_bytes) {
        (0, 0) => String::new(),
        (realtime, copied) => format!(
            "  real-time {}; copied to a second path {}, {:.1} % of what was sent\n",
            kilobytes(realtime),
            kilobytes(copied),
            100.0 * copied as f64 / aggregate.sent_bytes.max(1) as f64,
        ),
    };
    format!(
        "{role}: session{who}, {} streams; sent {}, received {}; waiting for reordering {}, twice {}\n{first}{before}{paths}",
        status.streams,
        kilobytes(aggregate.sent_bytes),
        kilobytes(aggregate.received_bytes),
        kilobytes(aggregate.reorder_bytes),
        kilobytes(aggregate.duplicate_bytes),
    )
}

/// What is worth a word of a path.
fn state(path: &PathStatusView) -> String {
    let stalled = path.stalled.then(|| "stalled".to_owned());
    let shares = !path.shares_with.is_empty();
    let shared = shares.then(|| format!("one bottleneck with {}", path.shares_with.join(", ")));
    stalled.into_iter().chain(shared).collect::<Vec<_>>().join(", ")
}

fn mbit(bps: u64) -> String {
    format!("{:.2} Mbit/s", bps as f64 / 1e6)
}

fn kilobytes(bytes: u64) -> String {
    if bytes < 10_000_000 {
        format!("{:.1} kB", bytes as f64 / 1e3)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}
