//! `suimon paper`: re-runs a published evaluation and judges it claim by claim.

mod claims;
mod estimation;
mod figures;
mod judge;
mod measure;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_report::{ReportHeader, Verdict, VerdictRow, VerdictTable};
use suimon_results::RunResult;
use suimon_scenario::{Document, Run};

use self::claims::{Experiment, Paper};
use crate::error::CliError;
use crate::output::{Findings, OutputOptions, VERSION, command_line};
use crate::progress::simulate;

const EXAMPLE: &str = "\
Examples:
  suimon paper fs-at
  suimon paper fs-at --experiment wired --json

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
    #[command(flatten)]
    output: OutputOptions,
}

/// An experiment with its results, or why there are none.
struct Outcome<'a> {
    experiment: &'a Experiment,
    results: Result<Vec<RunResult>, String>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let folder = folder(arguments)?;
    let paper = Paper::read(&folder)?;
    let experiments = select(&paper, arguments)?;
    let outcomes = run_all(&folder, &experiments)?;
    let verdicts: Vec<_> =
        outcomes.iter().map(|outcome| judge_outcome(&paper, outcome)).collect::<Result<_, _>>()?;
    let figures = figures::draw(&paper, &outcomes)?;
    let broken: usize = verdicts.iter().map(|(_, broken)| broken).sum();
    let verdicts: Vec<_> = verdicts.into_iter().map(|(table, _)| table).collect();
    let notes = summary(&verdicts);
    let results: Vec<RunResult> =
        outcomes.into_iter().filter_map(|outcome| outcome.results.ok()).flatten().collect();
    let header = ReportHeader {
        title: paper.title.clone(),
        description: paper.description.clone(),
        command: command_line(),
        version: VERSION.to_owned(),
        scenario_text: None,
    };
    arguments.output.deliver(Findings {
        header,
        name: &arguments.name,
        runs: &results,
        verdicts,
        figures,
        notes,
    })?;
    match broken {
        0 => Ok(()),
        1 => Err(CliError::ClaimsBroken("a claim".to_owned(), "does")),
        count => Err(CliError::ClaimsBroken(format!("{count} claims"), "do")),
    }
}

/// The folder of the paper, where it is looked for first found first.
fn folder(arguments: &Arguments) -> Result<PathBuf, CliError> {
    let mut places: Vec<PathBuf> = match &arguments.from {
        Some(from) => vec![from.clone()],
        None => vec![PathBuf::from("papers")],
    };
    let program = std::env::current_exe().ok();
    if arguments.from.is_none()
        && let Some(beside) = program.as_deref().and_then(Path::parent)
    {
        // As built (target/release/suimon) and as installed (bin/suimon).
        places.extend(["../../papers", "../share/suimon/papers"].map(|place| beside.join(place)));
    }
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let found = places
        .iter()
        .map(|place| place.join(&arguments.name))
        .find(|folder| folder.join("claims.toml").is_file());
    if let Some(folder) = found.filter(|_| is_name(&arguments.name)) {
        return Ok(folder);
    }
    // Once each, though the folder here and that beside the program may be the same.
    let known: BTreeSet<_> = places.iter().flat_map(|place| papers_in(place)).collect();
    let accepted = match known.len() {
        0 => "none was found; use --from".to_owned(),
        _ => known.into_iter().collect::<Vec<_>>().join(", "),
    };
    Err(CliError::Option {
        option: "NAME",
        problem: format!("unknown paper \"{}\"; accepted: {accepted}", arguments.name),
    })
}

fn papers_in(place: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().join("claims.toml").is_file());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn select<'a>(paper: &'a Paper, arguments: &Arguments) -> Result<Vec<&'a Experiment>, CliError> {
    let wanted =
        |experiment: &&Experiment| arguments.experiment.as_ref().is_none_or(|name| *name == experiment.name);
    let selected: Vec<_> = paper.experiments.iter().filter(wanted).collect();
    if selected.is_empty() {
        let accepted: Vec<_> = paper.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        let name = arguments.experiment.as_deref().unwrap_or_default();
        return Err(CliError::Option {
            option: "--experiment",
            problem: format!("unknown experiment \"{name}\"; accepted: {}", accepted.join(", ")),
        });
    }
    Ok(selected)
}

/// Runs all experiments together, so that the cores stay busy to the end.
fn run_all<'a>(folder: &Path, experiments: &[&'a Experiment]) -> Result<Vec<Outcome<'a>>, CliError> {
    let mut runs: Vec<Run> = Vec::new();
    let mut parts = Vec::new();
    for experiment in experiments {
        let missing = experiment.needs.as_ref().map(|file| folder.join(file)).filter(|file| !file.is_file());
        if let Some(file) = missing {
            parts.push((*experiment, Err(format!("{} is not there", file.display()))));
            continue;
        }
        let mut own = Document::read(folder.join(&experiment.scenario))?.runs()?;
        for run in &mut own {
            run.labels.insert(0, ("experiment".to_owned(), experiment.name.clone()));
        }
        parts.push((*experiment, Ok(own.len())));
        runs.append(&mut own);
    }
    let mut results = simulate(&runs).into_iter();
    let outcomes = parts.into_iter().map(|(experiment, part)| Outcome {
        experiment,
        results: part.map(|count| results.by_ref().take(count).collect()),
    });
    Ok(outcomes.collect())
}

/// The verdicts of one experiment, and how many claims that once held do not.
fn judge_outcome(paper: &Paper, outcome: &Outcome<'_>) -> Result<(VerdictTable, usize), CliError> {
    let mut rows = Vec::new();
    let mut broken = 0;
    for claim in paper.claims.iter().filter(|claim| claim.experiment == outcome.experiment.name) {
        for judged in judge::judge(paper, claim, outcome.results.as_deref().ok())? {
            broken += usize::from(judged.once_held && judged.row.verdict == Verdict::NotReproduced);
            rows.push(judged.row);
        }
    }
    let why_not = outcome.results.as_ref().err().map(|reason| format!("Not tested: {reason}."));
    let note = [outcome.experiment.note.clone(), why_not].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let table = VerdictTable {
        title: outcome.experiment.title.clone(),
        note: (!note.is_empty()).then_some(note),
        rows,
    };
    Ok((table, broken))
}

fn summary(tables: &[VerdictTable]) -> Vec<String> {
    let rows: Vec<&VerdictRow> = tables.iter().flat_map(|table| &table.rows).collect();
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    vec![format!(
        "Of {} numbers {} are reproduced, {} are not, {} are shown without a judgement, {} were not tested.",
        rows.len(),
        count(Verdict::Reproduced),
        count(Verdict::NotReproduced),
        count(Verdict::Shown),
        count(Verdict::NotTested),
    )]
}
