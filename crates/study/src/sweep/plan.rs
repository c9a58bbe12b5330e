//! What a sweep is: everything that its results depend on, and how its runs fall into parts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suimon_report::ReportHeader;
use suimon_scenario::{Document, Plan, Run, Scenario};
use suimon_units::Duration;

use crate::VERSION;
use crate::error::StudyError;
use crate::findings::quoted;

/// What a sweep's folder holds beside its parts, as `sweep.json`. Two sweeps with equal manifests give the
/// same bytes, so that one can go on where the other stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the program.
    version: String,
    /// The scenario's name.
    pub name: String,
    /// The scenario file as it was read.
    scenario: String,
    /// What `--set` said, in order.
    settings: Vec<String>,
    /// Whether events and samples are written too.
    pub series: bool,
    /// The kernel that it runs on, where that is not the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// Traces and schedules, each with a digest of its content.
    files: Vec<(String, String)>,
    /// How many runs there are.
    pub runs: u64,
    /// How many of them each part holds; the last one holds the rest.
    pub runs_per_part: u64,
}

/// A sweep before it begins.
#[derive(Debug)]
pub struct Sweep<'a> {
    pub(super) plan: Plan<'a>,
    /// What it is.
    pub manifest: Manifest,
    pub(super) header: ReportHeader,
    /// Simulated time of the runs at each point of the matrix.
    durations: Arc<[Duration]>,
}

impl<'a> Sweep<'a> {
    /// Checks every point of the matrix, since nobody wants to hear of a wrong value after a night.
    /// `settings` are those of `document` that its text does not have; with `series`, events and samples are kept.
    ///
    /// # Errors
    /// What is not right about the document.
    pub fn new(document: &'a Document, settings: &[String], series: bool) -> Result<Self, StudyError> {
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
        let runs_per_part = runs.div_ceil(PARTS).min(MAX_RUNS).max(runs.div_ceil(MAX_PARTS));
        let runs_per_part = runs_per_part.min(MAX_ROWS / most_rows).max(1);
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
            kernel: None,
            files: files.collect(),
            runs,
            runs_per_part,
        };
        let header = header(document, &manifest, first.description);
        Ok(Self { plan, manifest, header, durations: durations.into() })
    }

    /// A sweep that was checked before and is described by `manifest`. Without its `durations`, which another process
    /// need not know, [`Sweep::duration`] has no answer.
    ///
    /// # Errors
    /// When the document is not right, or a trace has another content here than there.
    pub fn checked(
        document: &'a Document,
        manifest: Manifest,
        durations: Option<Arc<[Duration]>>,
    ) -> Result<Self, StudyError> {
        let plan = document.plan()?;
        let (_, first) = plan.point(0)?;
        let header = header(document, &manifest, first.description);
        Ok(Self { plan, manifest, header, durations: durations.unwrap_or_default() })
    }

    /// The same on a kernel: its version, with all else on which results depend, and the options that ask for it.
    #[must_use]
    pub fn on_kernel(mut self, kernel: String, options: &str) -> Self {
        self.manifest.kernel = Some(kernel);
        self.header.command = format!("{} {options}", self.header.command);
        self
    }

    /// The run of this number among all.
    ///
    /// # Errors
    /// What is not right about its point of the matrix.
    pub fn run(&self, nth: u64) -> Result<Run, StudyError> {
        let mut run = self.plan.run(nth)?;
        if !self.manifest.series {
            run.scenario.record.interval = None;
        }
        Ok(run)
    }

    /// Simulated time of the runs at each point of the matrix.
    #[must_use]
    pub fn durations(&self) -> Arc<[Duration]> {
        Arc::clone(&self.durations)
    }

    /// The traces that were read so far are those that the sweep was begun with.
    pub(super) fn check_files(&self) -> Result<(), StudyError> {
        let changed = self.plan.files().into_iter().find(|(path, digest)| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !self.manifest.files.contains(&(name.into_owned(), format!("{digest:016x}")))
        });
        match changed {
            None => Ok(()),
            Some((path, _)) => Err(StudyError::Folder {
                path,
                problem:
                    "differs from the file that the sweep began with; accepted: the same on every machine"
                        .to_owned(),
            }),
        }
    }

    /// Simulated time of all runs in `parts`.
    #[must_use]
    pub fn duration(&self, parts: &[u64]) -> Duration {
        parts.iter().fold(Duration::ZERO, |sum, part| sum + self.duration_of(*part))
    }

    /// Simulated time of all runs in `part`.
    fn duration_of(&self, part: u64) -> Duration {
        let of = |run| self.durations[(run / self.plan.seeds()) as usize];
        self.manifest.runs_in(part).map(of).fold(Duration::ZERO, |sum, duration| sum + duration)
    }
}

impl Manifest {
    /// How it stands in `sweep.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a manifest has text keys, so it always serialises") + "\n"
    }

    /// Reads what [`Manifest::to_json`] wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.runs.div_ceil(self.runs_per_part)
    }

    /// The runs in `part`, counted from zero.
    #[must_use]
    pub fn runs_in(&self, part: u64) -> std::ops::Range<u64> {
        let first = part.saturating_mul(self.runs_per_part).min(self.runs);
        first..first.saturating_add(self.runs_per_part).min(self.runs)
    }

    /// What sets `self` apart from `other`, where their results would not belong together.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let differ = [
            (self.version != other.version, "version of suimon"),
            (self.name != other.name, "name"),
            (self.scenario != other.scenario, "scenario file"),
            (self.settings != other.settings, "--set"),
            (self.series != other.series, "--series"),
            (self.kernel != other.kernel, "place to run (simulator, or kernel and seed)"),
            (self.files != other.files, "trace"),
            // Nothing else is left that could change these.
            (self != other, "division into parts"),
        ];
        differ.into_iter().find_map(|(differs, what)| differs.then_some(what))
    }
}

fn header(document: &Document, manifest: &Manifest, description: String) -> ReportHeader {
    ReportHeader {
        title: manifest.name.clone(),
        description,
        command: command(document, &manifest.settings, manifest.series),
        version: VERSION.to_owned(),
        scenario_text: None,
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
    words.into_iter().map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
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

/// Most runs of a part, unless there were too many parts.
const MAX_RUNS: u64 = 100;

/// Most parts, unless they had too many rows: a folder with more names takes its time.
const MAX_PARTS: u64 = 100_000;

/// Most rows of one table in a part, unless one run has more: some 100 MB while it is written.
const MAX_ROWS: u64 = 250_000;

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
        let on = |kernel: &str| {
            Sweep::new(&document(10), &[], false).unwrap().on_kernel(kernel.to_owned(), "").manifest
        };
        assert_eq!(on("7.2").difference(&on("7.2")), None);
        for other in [&one, &on("6.1")] {
            assert_eq!(on("7.2").difference(other), Some("place to run (simulator, or kernel and seed)"));
        }
        let newer = Manifest { version: "9".to_owned(), ..one.clone() };
        assert_eq!(one.difference(&newer), Some("version of suimon"));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), one);
    }
}
