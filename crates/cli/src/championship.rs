//! `suimon championship`: every sender on every link.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use comfy_table::{ContentArrangement, Table, TableStyle};
use suimon_algorithms::registry::Registry;
use suimon_study::championship::{SENDERS, Standing, page, runs, standings};
use suimon_study::numbers::count;

use crate::error::CliError;
use crate::output::{check_folder, command_line, naming, tell};
use crate::plain_table::print_json;
use crate::progress::simulate_totals;

const EXAMPLE: &str = "\
Examples:
  suimon championship
  suimon championship --cc fs-at,fs-at-open,bbr,cubic --seeds 3
  suimon championship --page championship.md

Places go by power: goodput, times round trip over round trip and queueing delay (95th percentile), times \
Jain's index of fairness; the mean over links, each beside the best sender there.";

/// Run every sender on forty links and rank them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Senders [default: all of the championship]
    #[arg(long = "cc", value_name = "NAMES", value_delimiter = ',')]
    senders: Vec<String>,
    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value = "20", value_parser = count)]
    seeds: NonZeroUsize,
    /// Write a page with the ranks and every score, as Markdown
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    arguments.page.iter().try_for_each(|path| check_folder("--page", path))?;
    let senders = if arguments.senders.is_empty() {
        SENDERS.iter().map(|name| (*name).to_owned()).collect()
    } else {
        arguments.senders.clone()
    };
    let runs = runs(&senders, arguments.seeds, &Registry::standard())?;
    let results = simulate_totals(&runs);
    let standings = standings(&senders, arguments.seeds, &results);
    // The page comes last: where it can't be written, the ranks are not lost.
    if arguments.json {
        print_json(&standings)?;
    } else {
        show(&standings)?;
    }
    if let Some(path) = &arguments.page {
        std::fs::write(path, page(&standings, arguments.seeds, &command_line()))
            .map_err(|error| naming("--page", path)(error.into()))?;
        tell(format_args!("wrote {}", path.display()));
    }
    Ok(())
}

fn show(standings: &[Standing]) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["", "sender", "of the best", "worst", "wins", "use, %", "p95, ms", "Jain"]);
    for (place, one) in (1..).zip(standings) {
        table.add_row([
            format!("{place}"),
            one.sender.clone(),
            format!("{:.3}", one.mean_of_best),
            format!("{:.3}", one.worst_of_best),
            one.wins.to_string(),
            format!("{:.1}", one.utilisation * 100.0),
            format!("{:.0}", one.delay_p95_ms),
            format!("{:.3}", one.jain_index),
        ]);
    }
    writeln!(io::stdout().lock(), "{}", table.trim_fmt())?;
    Ok(())
}
