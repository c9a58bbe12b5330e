//! A published evaluation, re-run and judged claim by claim.

mod claims;
mod columns;
mod estimation;
mod figures;
mod heat_maps;
mod judge;
mod measure;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

pub use claims::{Experiment, Paper};
use suimon_report::{Basis, Headings, ReportHeader, Verdict, VerdictRow, VerdictTable};
use suimon_results::RunResult;
use suimon_scenario::{Document, Run};

use crate::VERSION;
use crate::error::StudyError;
use crate::findings::Findings;

/// Which experiments of a paper are to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// Those that are simulated.
    Simulated,
    /// Those that are run live, beside the simulator.
    Live,
    /// Those that are run on links and queues of the kernel, beside the simulator.
    Kernel,
}

/// An experiment with its results, or why there are none.
struct Outcome<'a> {
    experiment: &'a Experiment,
    results: Result<Vec<RunResult>, String>,
    /// Why some of its runs were left out.
    left_out: Option<String>,
}

/// A paper re-run.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Verdicts, charts and runs.
    pub findings: Findings,
    /// How many claims that once held do not hold any more.
    pub broken: usize,
}

/// Re-runs `experiments` of the paper called `name` by `simulate`, and judges them; `command` asked for it. Runs for which
/// `left_out` has a reason are not made, and what is measured in them is not tested.
///
/// # Errors
/// When a scenario does not read, or a claim asks for what its experiment does not yield, or `simulate` fails.
pub fn evaluate<E: From<StudyError>>(
    name: &str,
    paper: &Paper,
    experiments: &[&Experiment],
    command: String,
    left_out: impl Fn(&Run) -> Option<String>,
    simulate: impl FnOnce(&[Run]) -> Result<Vec<RunResult>, E>,
) -> Result<Judged, E> {
    let outcomes = run_all(paper, experiments, left_out, simulate)?;
    let verdicts: Vec<_> =
        outcomes.iter().map(|outcome| judge_outcome(paper, outcome)).collect::<Result<_, _>>()?;
    let figures = figures::draw(paper, &outcomes)?;
    let heat_maps = heat_maps::draw(paper, &outcomes)?;
    let broken: usize = verdicts.iter().map(|(_, broken)| broken).sum();
    // An experiment that others judge has nothing to say of its own.
    let speaks = |table: &VerdictTable| !table.rows.is_empty() || table.note.is_some();
    let verdicts: Vec<_> = verdicts.into_iter().map(|(table, _)| table).filter(speaks).collect();
    let notes = vec![summary(&verdicts)];
    // What is judged together was run apart.
    let own = outcomes.into_iter().filter(|outcome| outcome.experiment.scenario.is_some());
    let runs = own.filter_map(|outcome| outcome.results.ok()).flatten().collect();
    let header = ReportHeader {
        title: paper.title.clone(),
        description: paper.description.clone(),
        command,
        version: VERSION.to_owned(),
        scenario_text: None,
    };
    let findings = Findings { verdicts, figures, heat_maps, notes, ..Findings::new(header, name, runs) };
    Ok(Judged { findings, broken })
}

/// The folder of the paper called `name`, in the first of `places` that has it.
///
/// # Errors
/// When none has it; the message lists what there is.
pub fn find(name: &str, places: &[PathBuf]) -> Result<PathBuf, StudyError> {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let found =
        places.iter().map(|place| place.join(name)).find(|folder| folder.join("claims.toml").is_file());
    if let Some(folder) = found.filter(|_| is_name(name)) {
        return Ok(folder);
    }
    // Once each, though two places may be the same.
    let known: BTreeSet<_> = places.iter().flat_map(|place| papers_in(place)).collect();
    let accepted = match known.len() {
        0 => {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            format!("none is in {}", places.join(", "))
        }
        _ => known.into_iter().collect::<Vec<_>>().join(", "),
    };
    Err(StudyError::input("name", format!("unknown paper \"{name}\"; accepted: {accepted}")))
}

fn papers_in(place: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().join("claims.toml").is_file());
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// How many of a paper's claims hold, of so many that are judged, by what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<Basis, (usize, usize)>);

impl Tally {
    fn add(&mut self, basis: Basis, holds: bool) {
        let (held, judged) = self.0.entry(basis).or_default();
        *held += usize::from(holds);
        *judged += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.0.iter().map(|(basis, (held, judged))| {
            let what = match basis {
                Basis::Printed => "numbers printed",
                Basis::Ordering => "orderings",
                Basis::SameThroughput => "same throughput",
                Basis::Reference => "numbers from elsewhere",
                Basis::Own => "bars of this project",
            };
            format!("{what}: {held} of {judged}")
        });
        f.write_str(&named.collect::<Vec<_>>().join("; "))
    }
}

impl Paper {
    /// The claims that held when `claims.toml` was written, of those that are judged without running anything live.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let live = |name: &str| {
            self.experiments.iter().any(|one| one.world() != World::Simulated && one.name == name)
        };
        let mut tally = Tally::default();
        for claim in self.claims.iter().filter(|claim| !live(&claim.experiment)) {
            for cell in claim.cells.iter().filter(|cell| cell.is_judged()) {
                tally.add(claim.basis_of(cell), cell.missed.is_none());
            }
        }
        tally
    }

    /// All experiments of a world, or only the one called `name`, with those that it takes together.
    ///
    /// # Errors
    /// When none is called so.
    pub fn select(&self, name: Option<&str>, world: World) -> Result<Vec<&Experiment>, StudyError> {
        let mut of_world = self.experiments.iter().filter(|one| one.world() == world).peekable();
        if of_world.peek().is_none() {
            let option = if world == World::Kernel { "--kernel" } else { "--live" };
            let problem = format!("\"{}\" has nothing to run so; accepted: without {option}", self.title);
            return Err(StudyError::input("name", problem));
        }
        let chosen = self.experiments.iter().find(|experiment| name == Some(experiment.name.as_str()));
        let wanted = |experiment: &&Experiment| match chosen {
            Some(chosen) => chosen.name == experiment.name || chosen.batch.contains(&experiment.name),
            None => name.is_none(),
        };
        let (selected, others): (Vec<_>, Vec<_>) = of_world.partition(wanted);
        if selected.is_empty() {
            let accepted: Vec<_> = others.iter().map(|experiment| experiment.name.as_str()).collect();
            let name = name.unwrap_or_default();
            let problem = format!("unknown experiment \"{name}\"; accepted: {}", accepted.join(", "));
            return Err(StudyError::input("experiment", problem));
        }
        Ok(selected)
    }
}

/// Runs all experiments together, so that the cores stay busy to the end.
fn run_all<'a, E: From<StudyError>>(
    paper: &Paper,
    experiments: &[&'a Experiment],
    left_out: impl Fn(&Run) -> Option<String>,
    simulate: impl FnOnce(&[Run]) -> Result<Vec<RunResult>, E>,
) -> Result<Vec<Outcome<'a>>, E> {
    let folder = paper.file.parent().unwrap_or(Path::new(""));
    let mut runs: Vec<Run> = Vec::new();
    let mut parts = Vec::new();
    for experiment in experiments {
        let Some(scenario) = &experiment.scenario else { continue };
        let missing = experiment.needs.as_ref().map(|file| folder.join(file)).filter(|file| !file.is_file());
        if let Some(file) = missing {
            parts.push((*experiment, Err(format!("{} is not there", file.display())), None));
            continue;
        }
        let mut own = Document::read(folder.join(scenario))
            .and_then(|document| document.runs())
            .map_err(StudyError::from)?;
        for run in &mut own {
            run.labels.insert(0, ("experiment".to_owned(), experiment.name.clone()));
        }
        let reason = own.iter().find_map(&left_out);
        own.retain(|run| left_out(run).is_none());
        parts.push((*experiment, Ok(own.len()), reason));
        runs.append(&mut own);
    }
    let results = simulate(&runs)?;
    // What is run in several worlds yields several results a run, next to each other.
    let worlds = results.len() / runs.len().max(1);
    let mut results = results.into_iter();
    let outcomes = parts.into_iter().map(|(experiment, part, left_out)| Outcome {
        experiment,
        results: part.map(|count| results.by_ref().take(count * worlds).collect()),
        left_out,
    });
    let mut outcomes: Vec<_> = outcomes.collect();
    for experiment in experiments.iter().filter(|experiment| experiment.scenario.is_none()) {
        let results = batch(experiment, &outcomes);
        let of_batch = outcomes.iter().filter(|outcome| experiment.batch.contains(&outcome.experiment.name));
        let left_out = of_batch.filter_map(|outcome| outcome.left_out.clone()).next();
        outcomes.push(Outcome { experiment, results, left_out });
    }
    Ok(outcomes)
}

/// The runs of all experiments that `experiment` takes together; why not, where one has none.
fn batch(experiment: &Experiment, outcomes: &[Outcome<'_>]) -> Result<Vec<RunResult>, String> {
    let mut runs = Vec::new();
    for name in &experiment.batch {
        match outcomes.iter().find(|outcome| outcome.experiment.name == *name) {
            Some(Outcome { results: Ok(results), .. }) => runs.extend_from_slice(results),
            Some(Outcome { results: Err(reason), .. }) => return Err(reason.clone()),
            None => return Err(format!("experiment \"{name}\" was not run")),
        }
    }
    Ok(runs)
}

/// The verdicts of one experiment, and how many claims that once held do not.
fn judge_outcome(paper: &Paper, outcome: &Outcome<'_>) -> Result<(VerdictTable, usize), StudyError> {
    let results = outcome.results.as_deref().ok().map(columns::Results::new);
    let mut rows = Vec::new();
    let mut broken = 0;
    for claim in paper.claims.iter().filter(|claim| claim.experiment == outcome.experiment.name) {
        for judged in judge::judge(paper, claim, results.as_ref(), outcome.left_out.is_some())? {
            broken += usize::from(judged.once_held && judged.row.verdict == Verdict::NotReproduced);
            rows.push(judged.row);
        }
    }
    let why_not = outcome.results.as_ref().err().or(outcome.left_out.as_ref());
    let why_not = why_not.map(|reason| format!("Not tested: {reason}."));
    let note = [outcome.experiment.note.clone(), why_not].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let table = VerdictTable {
        title: outcome.experiment.title.clone(),
        headings: Headings::Paper,
        note: (!note.is_empty()).then_some(note),
        rows,
    };
    Ok((table, broken))
}

/// How many claims hold of each kind, and how many are not judged.
fn summary(tables: &[VerdictTable]) -> String {
    let rows: Vec<&VerdictRow> = tables.iter().flat_map(|table| &table.rows).collect();
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let mut tally = Tally::default();
    for row in &rows {
        if let (Some(basis), Verdict::Reproduced | Verdict::NotReproduced) = (row.basis, row.verdict) {
            tally.add(basis, row.verdict == Verdict::Reproduced);
        }
    }
    let others = [(Verdict::Shown, "shown without a judgement"), (Verdict::NotTested, "not tested")];
    let others = others.into_iter().filter(|(verdict, _)| count(*verdict) > 0);
    let others = others.map(|(verdict, what)| format!("; {} {what}", count(verdict)));
    format!("{tally}{}.", others.collect::<String>())
}
