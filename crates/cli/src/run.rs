//! `suimon run`: scenarios from files.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use suimon_report::ReportHeader;
use suimon_scenario::{Document, print_defaults};
use suimon_study::{Findings, VERSION, compare_worlds, in_both_worlds, topology};

use crate::error::CliError;
use crate::live::LiveOptions;
use crate::output::{OutputOptions, command_line};
use crate::progress::simulate;
use crate::view::ViewOptions;

const EXAMPLE: &str = "\
Example:
  suimon run --print-defaults > my.toml
  suimon run my.toml --set duration=10s --set flow.main.cc=fs-at
  sudo suimon run my.toml --live --beside-simulation
  suimon run my.toml --lab --beside-simulation";

/// Run scenario files and show the result
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// Scenario files; several are shown together, told apart by name
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "print_defaults")]
    scenarios: Vec<PathBuf>,
    /// Set a key of every scenario, as in duration=10s or link.bottleneck.rate=2Mbit
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print a scenario with every key, its default and its meaning
    #[arg(long, conflicts_with_all = ["scenarios", "set"])]
    print_defaults: bool,
    #[command(flatten)]
    live: LiveOptions,
    /// With --live or --lab: simulate the same and show both worlds side by side
    #[arg(long)]
    beside_simulation: bool,
    #[command(flatten)]
    view: ViewOptions,
    #[cfg(feature = "capture")]
    #[command(flatten)]
    capture: crate::pcapng::CaptureOptions,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    if arguments.print_defaults {
        return Ok(std::io::stdout().write_all(print_defaults().as_bytes())?);
    }
    arguments.output.check()?;
    let settings = arguments.set.iter().map(|text| setting(text)).collect::<Result<Vec<_>, _>>()?;
    let mut runs = Vec::new();
    let mut texts = Vec::new();
    for path in &arguments.scenarios {
        let mut document = Document::read(path)?;
        for (key, value) in &settings {
            document.set(key, value)?;
        }
        let mut of_document = document.runs()?;
        if arguments.scenarios.len() > 1 {
            for run in &mut of_document {
                run.labels.insert(0, ("scenario".to_owned(), run.scenario.name.clone()));
            }
        }
        runs.append(&mut of_document);
        texts.push(document.text().to_owned());
    }
    if arguments.beside_simulation && !arguments.live.is_wanted() {
        let problem = "a simulation is beside itself; accepted: with --live or --lab".to_owned();
        return Err(CliError::Option { option: "--beside-simulation", problem });
    }
    if arguments.view.is_wanted() && !arguments.live.is_wanted() {
        let problem = "a simulation is over before it could be seen; accepted: with --live".to_owned();
        return Err(CliError::Option { option: "--view, --web", problem });
    }
    #[cfg(feature = "capture")]
    arguments.capture.record(&runs)?;
    let (results, worlds) = match (arguments.live.is_wanted(), arguments.beside_simulation) {
        (false, _) => (simulate(&runs), None),
        (true, false) => (arguments.live.run(&runs, &[], &arguments.view)?, None),
        (true, true) => {
            let pairs = arguments.live.beside_simulation(&runs, &[], &arguments.view)?;
            let table = compare_worlds(&pairs);
            (in_both_worlds(pairs), Some(table))
        }
    };
    let first = &runs[0].scenario;
    let mut names: Vec<_> = runs.iter().map(|run| run.scenario.name.as_str()).collect();
    names.dedup();
    let mut descriptions: Vec<_> = runs.iter().map(|run| run.scenario.description.as_str()).collect();
    descriptions.dedup();
    let header = ReportHeader {
        title: names.join(", "),
        description: descriptions.join(" "),
        command: command_line(),
        version: VERSION.to_owned(),
        scenario_text: Some(texts.join("\n")),
    };
    let topology = topology(&runs);
    arguments.output.deliver(&Findings { worlds, topology, ..Findings::new(header, &first.name, results) })
}

/// Reads KEY=VALUE.
pub(crate) fn setting(text: &str) -> Result<(&str, &str), CliError> {
    text.split_once('=').ok_or_else(|| CliError::Option {
        option: "--set",
        problem: format!("\"{text}\" is not a setting; accepted: KEY=VALUE, as in duration=10s"),
    })
}
