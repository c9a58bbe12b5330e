//! Plain tables, JSON and checks of commands that look at the kernel.

#[cfg(any(feature = "bond", feature = "bpf", feature = "gateway"))]
use std::io::IsTerminal;
use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, TableStyle};
use serde::Serialize;
#[cfg(feature = "bpf")]
use suimon_linux::congestion::Check;

use crate::error::CliError;

/// A table without lines; without a header where all names are empty.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_content_arrangement(ContentArrangement::Disabled);
    if header.iter().any(|name| !name.is_empty()) {
        table.set_header(header.to_vec());
    }
    table
}

/// Clears a terminal, for what is shown anew: the cursor to the first place, and all below it cleared (ECMA-48, CUP and
/// ED). Elsewhere the next is appended.
#[cfg(any(feature = "bond", feature = "bpf", feature = "gateway"))]
pub(crate) fn clear_terminal() -> io::Result<()> {
    let mut out = io::stdout();
    if out.is_terminal() { write!(out, "\x1b[H\x1b[J") } else { Ok(()) }
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
    Ok(writeln!(io::stdout(), "{text}")?)
}

#[cfg(feature = "bpf")]
/// Prints `checks`. Gives the finding of the first that is not met.
pub(crate) fn print_checks(checks: Vec<Check>, json: bool) -> Result<Option<String>, CliError> {
    if json {
        print_json(&checks)?;
    } else {
        let mut table = table(&["", "", ""]);
        for check in &checks {
            table.add_row([if check.is_fine { "ok" } else { "missing" }, check.what, &check.finding]);
        }
        writeln!(io::stdout(), "{}", table.trim_fmt())?;
    }
    Ok(checks.into_iter().find(|check| !check.is_fine).map(|check| check.finding))
}
