//! `suimon paper`: re-runs a published evaluation and judges it claim by claim.

use std::path::{Path, PathBuf};

use clap::Args;
use suimon_report::Verdict;
use suimon_scenario::Run;
use suimon_study::paper::{Judged, Paper, World, evaluate, find};
use suimon_study::{Pair, compare_windows, in_both_worlds};

use crate::error::CliError;
use crate::live::LiveOptions;
use crate::output::{OutputOptions, command_line};
use crate::part::Part;
use crate::progress::{simulate, simulate_totals};
use crate::view::ViewOptions;

const EXAMPLE: &str = "\
Examples:
  suimon paper fs-at
  suimon paper fs-at --experiment wired --json
  sudo suimon paper fs-at --kernel
  suimon paper rtt-aqm --kernel --lab
  sudo suimon paper dpd-qt --live

Exits with 1 if a claim that once held no longer does.";

/// Re-run a paper's evaluation and judge it claim by claim
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The paper: a folder under papers/
    name: String,
    /// Where the papers' folders are [default: ./papers, or those beside the program]
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Only this experiment
    #[arg(long, value_name = "NAME")]
    experiment: Option<String>,
    /// On the running kernel, with its own queues where the paper is about queues, beside the simulator; needs root
    #[arg(long, conflicts_with = "live")]
    kernel: bool,
    #[command(flatten)]
    live: LiveOptions,
    #[command(flatten)]
    view: ViewOptions,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    arguments.output.check()?;
    if arguments.output.with_series() && arguments.output.folder(&arguments.name).is_none() {
        let problem = "events and samples of a paper's runs are files; accepted: with --out DIR".to_owned();
        return Err(CliError::Option { option: "--series", problem });
    }
    let folder = find(&arguments.name, &places(arguments))?;
    if folder.join("kernel.toml").exists() && (arguments.kernel || arguments.live.is_virtual()) {
        Part::BPF.require()?;
        #[cfg(feature = "bpf")]
        return transfers(arguments, &folder);
    }
    let paper = Paper::read(&folder)?;
    let world = match arguments.live.is_wanted() {
        _ if arguments.kernel => World::Kernel,
        true => World::Live,
        false => World::Simulated,
    };
    let experiments = paper.select(arguments.experiment.as_deref(), world)?;
    let mut beside = Vec::new();
    let Judged { mut findings, mut broken } = evaluate(
        &arguments.name,
        &paper,
        &experiments,
        command_line(),
        |run| arguments.live.left_out(run),
        |runs| match world {
            World::Simulated if arguments.output.with_series() => Ok::<_, CliError>(simulate(runs)),
            World::Simulated => Ok(simulate_totals(runs)),
            World::Live => Ok(in_both_worlds(arguments.live.beside_simulation(
                runs,
                std::slice::from_ref(&folder),
                &arguments.view,
            )?)),
            World::Kernel => {
                let pairs = on_kernel_links(arguments, runs, &folder)?;
                beside = compare_windows(&pairs);
                Ok(in_both_worlds(pairs))
            }
        },
    )?;
    let rows = beside.iter().flat_map(|table| &table.rows);
    broken += rows.filter(|row| row.verdict == Verdict::NotReproduced).count();
    findings.verdicts.splice(0..0, beside);
    arguments.output.deliver(&findings)?;
    match broken {
        0 => Ok(()),
        1 => Err(CliError::ClaimsBroken("a claim".to_owned(), "does")),
        count => Err(CliError::ClaimsBroken(format!("{count} claims"), "do")),
    }
}

/// The paper's transfers over emulated links, which all run together.
#[cfg(feature = "bpf")]
fn transfers(arguments: &Arguments, folder: &Path) -> Result<(), CliError> {
    if arguments.experiment.is_some() {
        let problem = "this paper's transfers run together; accepted: none with --kernel".to_owned();
        return Err(CliError::Option { option: "--experiment", problem });
    }
    crate::paper_kernel::execute(folder, arguments.output.json(), &arguments.live, &arguments.view)
}

#[cfg(feature = "bpf")]
fn on_kernel_links(arguments: &Arguments, runs: &[Run], folder: &Path) -> Result<Vec<Pair>, CliError> {
    arguments.live.on_kernel_links(runs, &[folder.to_owned()], &arguments.view)
}

#[cfg(not(feature = "bpf"))]
fn on_kernel_links(_: &Arguments, _: &[Run], _: &Path) -> Result<Vec<Pair>, CliError> {
    Part::BPF.refuse()
}

/// Where papers may be.
fn places(arguments: &Arguments) -> Vec<PathBuf> {
    if let Some(from) = &arguments.from {
        return vec![from.clone()];
    }
    let mut places = vec![PathBuf::from("papers")];
    let program = std::env::current_exe().ok();
    if let Some(beside) = program.as_deref().and_then(Path::parent) {
        // As built (target/release/suimon) and as installed (bin/suimon).
        places.extend(["../../papers", "../share/suimon/papers"].map(|place| beside.join(place)));
    }
    places
}
