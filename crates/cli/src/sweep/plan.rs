//! What a sweep is: everything that its results depend on, and how its runs fall into parts.

use serde::{Deserialize, Serialize};
use suimon_report::ReportHeader;
use suimon_scenario::{Document, Plan, Scenario};
use suimon_units::Duration;

use crate::error::CliError;
use crate::output::{VERSION, quoted};

/// What a sweep's folder holds beside its parts, as `sweep.json`. Two sweeps with equal manifests give the
/// same bytes, so that one can go on where the other stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Of the program.
    version: String,
    /// The scenario's name.
    pub(crate) name: String,
    /// The scenario file as it was read.
    scenario: String,
    /// What `--set` said, in order.
    settings: Vec<String>,
    /// Whether events and samples are written too.
    pub(crate) series: bool,
    /// Traces and schedules, each with a digest of its content.
    files: Vec<(String, String)>,
    /// How many runs there are.
    pub(crate) runs: u64,
    /// How many of them each part holds; the last one holds the rest.
    runs_per_part: u64,
}

/// A sweep before it begins.
pub(crate) struct Sweep<'a> {
    pub(crate) plan: Plan<'a>,
    pub(crate) manifest: Manifest,
    pub(crate) header: ReportHeader,
    /// Simulated time of the runs at each point of the matrix.
    durations: Vec<Duration>,
}

impl<'a> Sweep<'a> {
    /// Checks every point of the matrix, since nobody wants to hear of a wrong value after a night.
    pub(crate) fn new(document: &'a Document, settings: &[String], series: bool) -> Result<Self, CliError> {
        let plan = document.plan()?;
        let (_, first) = plan.point(0)?;
        let mut durations = Vec::new();
        let mut most_rows = 1;
        for nth in 0..plan.points() {
            let (_, scenario) = plan.point(nth)?;
            most_rows = most_rows.max(rows(&scenario, series));
            durations.push(scenario.duration);
        }
        let runs = plan.runs();
        let runs_per_part = runs.div_ceil(PARTS).min(MOST_ROWS / most_rows).clamp(1, MOST_RUNS);
        let files = plan.files().into_iter().map(|(path, digest)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, format!("{digest:016x}"))
        });
        let manifest = Manifest {
            version: VERSION.to_owned(),
            name: first.name,
            scenario: document.text().to_owned(),
            settings: settings.to_vec(),
            series,
            files: files.collect(),
            runs,
            runs_per_part,
        };
        let header = ReportHeader {
            title: manifest.name.clone(),
            description: first.description,
            command: command(document, settings, series),
            version: VERSION.to_owned(),
            scenario_text: None,
        };
        Ok(Self { plan, manifest, header, durations })
    }

    /// Simulated time of all runs in `part`.
    pub(crate) fn duration(&self, part: u64) -> Duration {
        let of = |run| self.durations[(run / self.plan.seeds()) as usize];
        self.manifest.runs_in(part).map(of).fold(Duration::ZERO, |sum, duration| sum + duration)
    }
}

impl Manifest {
    /// How many parts there are.
    pub(crate) fn parts(&self) -> u64 {
        self.runs.div_ceil(self.runs_per_part)
    }

    /// The runs in `part`, counted from zero.
    pub(crate) fn runs_in(&self, part: u64) -> std::ops::Range<u64> {
        let first = part.saturating_mul(self.runs_per_part).min(self.runs);
        first..first.saturating_add(self.runs_per_part).min(self.runs)
    }

    /// What sets `self` apart from `other`, where their results would not belong together.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let differ = [
            (self.version != other.version, "version of suimon"),
            (self.name != other.name, "name"),
            (self.scenario != other.scenario, "scenario file"),
            (self.settings != other.settings, "--set"),
            (self.series != other.series, "--series"),
            (self.files != other.files, "trace"),
            // Nothing else is left that could change these.
            (self != other, "division into parts"),
        ];
        differ.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

/// The command as files tell it: without what must not change them, such as the number of cores.
fn command(document: &Document, settings: &[String], series: bool) -> String {
    let file = std::path::Path::new(document.source_name()).file_name().unwrap_or_default();
    let mut words = vec!["suimon".to_owned(), "sweep".to_owned(), file.to_string_lossy().into_owned()];
    for setting in settings {
        words.extend(["--set".to_owned(), setting.clone()]);
    }
    if series {
        words.push("--series".to_owned());
    }
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// About how many rows a run of `scenario` adds to its largest table.
fn rows(scenario: &Scenario, series: bool) -> u64 {
    let subjects = (scenario.flows.len() + scenario.links.len()) as u64;
    let samples = match scenario.record.interval {
        Some(interval) if series => scenario.duration.as_nanos() / interval.as_nanos(),
        _ => 1,
    };
    subjects * samples.max(1)
}

/// Parts of a sweep that has enough runs: enough that what a kill costs, the part at work, is little.
const PARTS: u64 = 250;

/// Most runs of a part.
const MOST_RUNS: u64 = 100;

/// Most rows of one table in a part, unless one run has more: some 100 MB while it is written.
const MOST_ROWS: u64 = 250_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn document(seeds: u64) -> Document {
        let text = format!(
            "seeds = {seeds}\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit\"\n\
             [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
        );
        Document::parse(&text, "test.toml").unwrap()
    }

    fn manifest(seeds: u64, settings: &[String], series: bool) -> Manifest {
        Sweep::new(&document(seeds), settings, series).unwrap().manifest
    }

    #[test]
    fn every_run_is_in_exactly_one_part() {
        for runs in [1, 249, 250, 251, 999, 99_999] {
            let manifest = manifest(runs, &[], false);
            let all: Vec<_> = (0..manifest.parts()).flat_map(|part| manifest.runs_in(part)).collect();
            assert!(all.iter().copied().eq(0..runs), "{runs}");
            assert!((0..manifest.parts()).all(|part| !manifest.runs_in(part).is_empty()));
        }
        assert_eq!(manifest(100_000, &[], false).parts(), 1_000);
        assert_eq!(manifest(500, &[], false).parts(), 250);
    }

    #[test]
    fn samples_make_parts_smaller() {
        // 60 s at 100 ms, a flow and two directions of a link: 1 800 rows a run.
        assert_eq!(manifest(100_000, &[], true).runs_in(0).count(), 100);
        let mut document = document(100_000);
        document.set("record_interval", "1ms").unwrap();
        let sweep = Sweep::new(&document, &[], true).unwrap();
        assert_eq!(sweep.manifest.runs_in(0), 0..1);
    }

    #[test]
    fn manifests_tell_what_differs() {
        let one = manifest(10, &[], false);
        assert_eq!(one.difference(&one.clone()), None);
        assert_eq!(one.difference(&manifest(11, &[], false)), Some("scenario file"));
        assert_eq!(one.difference(&manifest(10, &["seed=1".to_owned()], false)), Some("--set"));
        assert_eq!(one.difference(&manifest(10, &[], true)), Some("--series"));
        let newer = Manifest { version: "9".to_owned(), ..one.clone() };
        assert_eq!(one.difference(&newer), Some("version of suimon"));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), one);
    }
}
