//! The runs of a document, one at a time.

use std::path::PathBuf;

use super::Document;
use super::files::Files;
use super::matrix::Axis;
use super::node::Table;
use crate::error::{Problem, ScenarioError};
use suimon_model::Run;
use suimon_model::Scenario;

/// Pairs of axis and value, in the order of the axes.
type Labels = Vec<(String, String)>;

/// Most points of a matrix: each is checked before any runs, at some 20 µs.
const MAX_POINTS: u64 = 1_000_000;

/// Most runs of a plan: a thousand years of a machine.
const MAX_RUNS: u64 = 100_000_000_000;

/// What a [`Document`] asks for: the points of its matrix in order, the last axis varying fastest, and a run
/// for each seed at each point.
///
/// Runs are made when asked for, so that a thousand million take no more memory than one. Threads may
/// share it.
#[derive(Debug)]
pub struct Plan<'a> {
    document: &'a Document,
    files: Files,
    axes: Vec<Axis>,
    /// The document without its matrix.
    base: Table,
    points: u64,
    seeds: u64,
}

impl<'a> Plan<'a> {
    pub(super) fn new(document: &'a Document) -> Result<Self, ScenarioError> {
        let refuse = |problem| ScenarioError::new(document.source_name(), problem);
        let too_many = |limit| Problem::TooMany { what: "more runs".to_owned(), limit };
        let axes = document.axes()?;
        let points = axes.iter().try_fold(1_u64, |count, axis| count.checked_mul(axis.len() as u64));
        let Some(points) = points.filter(|count| *count <= MAX_POINTS) else {
            return Err(refuse(too_many(MAX_POINTS)).at_key("matrix"));
        };
        let mut base = document.root.clone();
        base.remove("matrix");
        let seeds = document.fields(&base)?.field("seeds")?.count()?;
        if seeds > 1 && axes.iter().any(|axis| axis.name() == "seed") {
            let problem = Problem::Exclusive { other: "a matrix called seed".to_owned() };
            return Err(document.error_at(&base, "seeds", problem, None));
        }
        if points.saturating_mul(seeds) > MAX_RUNS {
            return Err(refuse(too_many(MAX_RUNS)));
        }
        Ok(Self { files: Files::new(&document.directory), document, axes, base, points, seeds })
    }

    /// How many combinations of values the matrix has, at least one.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.points
    }

    /// How many runs each point has, at least one.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.points * self.seeds
    }

    /// The `nth` point of the matrix, counted from zero: its labels, and the scenario of its first seed.
    ///
    /// # Errors
    /// What is not right about its values, with line and key.
    ///
    /// # Panics
    /// Where there are not so many.
    pub fn point(&self, nth: u64) -> Result<(Labels, Scenario), ScenarioError> {
        assert!(nth < self.points, "point {nth} of {}", self.points);
        let mut root = self.base.clone();
        let mut labels = Vec::with_capacity(self.axes.len() + 1);
        let mut below = self.points;
        for axis in &self.axes {
            below /= axis.len() as u64;
            // The remainder is below the number of values, so it fits.
            let position = (nth / below % axis.len() as u64) as usize;
            labels.push((axis.name().to_owned(), axis.label(position).to_owned()));
            axis.apply(&self.document.registry, &mut root, position)
                .map_err(|(key, problem)| self.document.error_at(&root, &key, problem, axis.line()))?;
        }
        Ok((labels, self.document.scenario(&root, &self.files)?))
    }

    /// The `nth` run, counted from zero, as in [`Document::runs`].
    ///
    /// # Errors
    /// As [`Plan::point`].
    ///
    /// # Panics
    /// Where there are not so many.
    pub fn run(&self, nth: u64) -> Result<Run, ScenarioError> {
        let (mut labels, mut scenario) = self.point(nth / self.seeds)?;
        scenario.seed = scenario.seed.wrapping_add(nth % self.seeds);
        if self.seeds > 1 {
            labels.push(("seed".to_owned(), scenario.seed.to_string()));
        }
        Ok(Run { labels, scenario })
    }

    /// The traces and schedules that the points asked for so far have named, each with a digest of its
    /// content.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.files.digests()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{FLOW, LINK};
    use super::*;

    const AXES: &str = "[[matrix]]\nset = \"link.bottleneck.rate\"\nvalues = [\"64kbit\", \"1Mbit\"]\n\
                        [[matrix]]\nset = \"flow.*.cc\"\nvalues = [\"reno\", \"vegas\", \"cubic\"]";

    #[test]
    fn runs_made_one_at_a_time_are_those_made_together() {
        for seeds in ["", "seeds = 5"] {
            let text = [seeds, LINK, FLOW, AXES].join("\n");
            let document = Document::parse(&text, "test.toml").unwrap();
            let plan = document.plan().unwrap();
            let one_by_one: Vec<_> = (0..plan.runs()).map(|nth| plan.run(nth).unwrap()).collect();
            assert_eq!(one_by_one, document.runs().unwrap());
        }
    }

    #[test]
    fn a_file_that_changes_has_another_digest() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.toml");
        std::fs::write(&path, [&LINK.replace("rate = \"1Mbit\"", "trace = \"t\""), FLOW].join("\n")).unwrap();
        let document = Document::read(&path).unwrap();
        let digest = |trace: &str| {
            std::fs::write(directory.path().join("t"), trace).unwrap();
            let plan = document.plan().unwrap();
            plan.point(0).unwrap();
            let files = plan.files();
            assert_eq!(files.len(), 1);
            assert!(files[0].0.ends_with("t"));
            files[0].1
        };
        assert_eq!(digest("1\n2\n"), digest("1\n2\n"));
        assert_ne!(digest("1\n2\n"), digest("1\n3\n"));
    }
}
