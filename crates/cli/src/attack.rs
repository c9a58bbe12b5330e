//! `suimon attack`: the network on which a sender does worst.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use suimon_study::attack::{Attack, Found, Worst};

use crate::error::CliError;
use crate::output::{check_folder, naming, tell};
use crate::plain_table::{print_json, table};
use crate::progress::Progress;

const EXAMPLE: &str = "\
Examples:
  suimon attack --cc fs-at-open --worst delay
  suimon attack --cc fs-at --worst harm --networks 2000 --save worst.toml
  suimon run worst.toml

Each network is a line with a rate, a delay, a buffer, a queue discipline, losses, jitter and outages, with flows of the \
sender and of CUBIC, and is judged by the means of three runs. The worst one found is made as simple as it can be, and \
--save writes it as a scenario.";

/// Search for the network on which a sender does worst beside its rivals
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The sender
    #[arg(long = "cc", value_name = "NAME")]
    sender: String,
    /// What it is to be bad at
    #[arg(long, value_name = "MEASURE", value_enum)]
    worst: Measure,
    /// What it is compared with; for harm it is always CUBIC
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "cubic,bbr,copa,vegas-linux,fs-at"
    )]
    rivals: Vec<String>,
    /// How many networks to try
    #[arg(long, value_name = "COUNT", default_value = "400", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    networks: u32,
    /// Decides which networks are tried
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    /// Write the network as a scenario
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Measure {
    /// Goodput of all flows but an upload
    Utilisation,
    /// 95th percentile of the queueing delay, beside rivals with as much goodput
    Delay,
    /// Jain's index of its own flows, beside rivals with as much goodput
    Fairness,
    /// Goodput of CUBIC flows beside it
    Harm,
}

impl Measure {
    fn worst(self) -> Worst {
        match self {
            Self::Utilisation => Worst::Utilisation,
            Self::Delay => Worst::Delay,
            Self::Fairness => Worst::Fairness,
            Self::Harm => Worst::Harm,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    arguments.save.iter().try_for_each(|path| check_folder("--save", path))?;
    let attack = Attack {
        sender: arguments.sender.clone(),
        rivals: arguments.rivals.clone(),
        worst: arguments.worst.worst(),
        networks: arguments.networks as usize,
        seed: arguments.seed,
    };
    let found = {
        let progress = Progress::new(attack.duration());
        attack.run(&progress)?
    };
    if let Some(path) = &arguments.save {
        std::fs::write(path, &found.scenario).map_err(|error| naming("--save", path)(error.into()))?;
    }
    if arguments.json {
        return print_json(&found);
    }
    show(&found, arguments)
}

fn show(found: &Found, arguments: &Arguments) -> Result<(), CliError> {
    let mut rows = table(&["sender", "Mbit/s", "of these others", "p95, ms", "Jain"]);
    for one in &found.outcomes {
        rows.add_row([
            one.sender.clone(),
            format!("{:.2}", one.goodput_mbps),
            format!("{:.2}", one.others_mbps),
            format!("{:.1}", one.delay_p95_ms),
            format!("{:.3}", one.jain_index),
        ]);
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n", rows.trim_fmt())?;
    if found.factor > 1.0 {
        let (factor, sender, rival) = (found.factor, &arguments.sender, &found.rival);
        writeln!(
            out,
            "{rival} is {factor:.2} times as good as {sender} here, the worst of {} networks.",
            arguments.networks
        )?;
    } else {
        writeln!(out, "On none of {} networks is a rival better.", arguments.networks)?;
    }
    match &arguments.save {
        Some(path) => tell(format_args!("wrote {}; run it: suimon run {0}", path.display())),
        None => write!(out, "\n{}", found.scenario)?,
    }
    Ok(())
}
