//! `suimon gateway status` and `stat`: how it goes.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;
use comfy_table::{CellAlignment, Table, TableStyle};
use suimon_gateway::report::Report;
use suimon_service::control::{ask, socket_path};

use super::NAME;
use crate::error::CliError;
use crate::plain_table::clear_terminal;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The socket of the gateway to ask, as its --control says
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show it anew each second, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    view: bool,
}

/// Between one look and the next.
const SECOND: Duration = Duration::from_secs(1);

impl Arguments {
    /// Prints what `print` says, once or again and again.
    pub(super) fn show(&self, print: fn(&Self, &Report) -> Result<(), CliError>) -> Result<(), CliError> {
        if !self.view {
            return print(self, &find(self)?);
        }
        if !io::stdout().is_terminal() {
            let problem = "standard output is no terminal; accepted: --json".to_owned();
            return Err(CliError::Option { option: "--view", problem });
        }
        loop {
            let report = find(self)?;
            clear_terminal()?;
            print(self, &report)?;
            thread::sleep(SECOND);
        }
    }
}

pub(super) fn clients(arguments: &Arguments, report: &Report) -> Result<(), CliError> {
    if arguments.json {
        // Connections are the matter of `stat`.
        let clients = report.clients.iter().map(|client| {
            let mut one = serde_json::to_value(client).expect("plain data");
            one["connections"] = client.connections.len().into();
            one["rtt_ms"] = client.rtt_ms().into();
            one["rtt_min_ms"] = client.rtt_min_ms().into();
            one
        });
        let mut all = serde_json::to_value(report).expect("plain data");
        all["clients"] = clients.collect();
        return Ok(writeln!(io::stdout(), "{all:#}")?);
    }
    let header = ["client", "connections", "to it", "from it", "rtt", "min", "held", "queue at the radio"];
    let rows = report.clients.iter().map(|client| {
        vec![
            client.client.clone(),
            client.connections.len().to_string(),
            mbit(client.to_radio_bps),
            mbit(client.to_lan_bps),
            ms(client.rtt_ms()),
            ms(client.rtt_min_ms()),
            kilobytes(client.held_bytes),
            kilobytes(client.queue_bytes),
        ]
    });
    print_table(report, &header, 1, rows)
}

pub(super) fn connections(arguments: &Arguments, report: &Report) -> Result<(), CliError> {
    if arguments.json {
        let text = serde_json::to_string_pretty(report).map_err(io::Error::from)?;
        return Ok(writeln!(io::stdout(), "{text}")?);
    }
    let header =
        ["client", "server", "open", "to it", "from it", "rtt", "min", "cwnd", "held", "queue at the radio", "again"];
    let rows = report.clients.iter().flat_map(|client| &client.connections).map(|one| {
        vec![
            one.client.clone(),
            one.server.clone(),
            format!("{:.0} s", one.open_s),
            mbit(one.to_radio_bps),
            mbit(one.to_lan_bps),
            ms(one.rtt_ms),
            ms(one.rtt_min_ms),
            kilobytes(one.cwnd_bytes),
            kilobytes(one.held_bytes),
            kilobytes(one.queue_bytes),
            one.retransmitted_segments.to_string(),
        ]
    });
    print_table(report, &header, 2, rows)
}

fn find(arguments: &Arguments) -> Result<Report, CliError> {
    let path = arguments.control.clone().unwrap_or_else(|| socket_path(NAME));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(ask(&path)).map_err(|error| CliError::Option {
        option: "--control",
        problem: format!(
            "nobody answers at {} ({error}); is a `suimon gateway` running, and as this user?",
            path.display()
        ),
    })
}

/// A table whose first `texts` columns are text and the others numbers.
fn print_table(
    report: &Report,
    header: &[&str],
    texts: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_header(header.to_vec()).add_rows(rows);
    for column in table.column_iter_mut().skip(texts) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "Connections split so far: {}; {} over a limit, {} without a server; {} to clients, {} to servers",
        report.split,
        report.turned_away,
        report.failed,
        kilobytes(report.to_radio_bytes),
        kilobytes(report.to_lan_bytes),
    )?;
    if report.clients.is_empty() {
        writeln!(out, "No connections.")?;
    } else {
        writeln!(out, "{}", table.trim_fmt())?;
    }
    Ok(())
}

fn mbit(bps: u64) -> String {
    format!("{:.2} Mbit/s", bps as f64 / 1e6)
}

fn ms(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"))
}

fn kilobytes(bytes: u64) -> String {
    if bytes < 10_000_000 {
        format!("{:.1} kB", bytes as f64 / 1e3)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}
