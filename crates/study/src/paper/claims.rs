//! A paper as data: its experiments, its claims with what was printed, its figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use suimon_report::Basis;

use super::World;
use crate::error::StudyError;

/// `claims.toml` of a paper's folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The file that this was read from, for messages.
    #[serde(skip)]
    pub(crate) file: PathBuf,
    /// Its title.
    pub title: String,
    pub(crate) description: String,
    #[serde(rename = "experiment")]
    pub(crate) experiments: Vec<Experiment>,
    #[serde(rename = "claim")]
    pub(crate) claims: Vec<Claim>,
    #[serde(rename = "figure", default)]
    pub(crate) figures: Vec<FigureSpec>,
    #[serde(rename = "heat_map", default)]
    pub(crate) heat_maps: Vec<HeatMapSpec>,
}

/// One scenario of the paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name.
    pub name: String,
    pub(crate) title: String,
    /// The scenario file, beside `claims.toml`.
    pub(crate) scenario: Option<PathBuf>,
    /// Instead of a scenario: the runs of these experiments as one batch.
    #[serde(default)]
    pub(crate) batch: Vec<String>,
    /// A file that does not come with the project; without it the experiment is not tested.
    pub(crate) needs: Option<PathBuf>,
    /// It is run in both worlds: simulated, and live.
    #[serde(default)]
    pub(crate) live: bool,
    /// It is run in both worlds: simulated, and on links and queues of the kernel.
    #[serde(default)]
    pub(crate) kernel: bool,
    /// What a reader should know, such as how the setting differs from the paper's.
    pub(crate) note: Option<String>,
}

impl Experiment {
    /// Where it is run.
    pub(crate) fn world(&self) -> World {
        match self {
            Self { kernel: true, .. } => World::Kernel,
            Self { live: true, .. } => World::Live,
            _ => World::Simulated,
        }
    }
}

/// A claim: one measurement, at one or several places of the matrix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) experiment: String,
    /// In words.
    pub(crate) claim: String,
    /// Which runs: values of axes.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, String>,
    pub(crate) measure: Measure,
    /// Prints the measured number, as in `"{} packets"`; one decimal unless `digits` says otherwise.
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default = "one")]
    pub(crate) digits: usize,
    /// What its cells judge; else see [`Cell::basis`].
    pub(crate) basis: Option<Basis>,
    /// The axis that the cells' `at` are values of.
    pub(crate) axis: Option<String>,
    /// One row of the verdict each.
    #[serde(rename = "cell")]
    pub(crate) cells: Vec<Cell>,
}

fn one() -> usize {
    1
}

/// What is measured of a set of runs; runs that differ only in their seed are averaged.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measure {
    /// A column of a table, as in `flows.goodput_bps`; or what an estimator was off by: see `estimation.rs`.
    pub(crate) of: String,
    /// Less this column of the same row.
    pub(crate) minus: Option<String>,
    /// In this unit rather than that of the column.
    pub(crate) unit: Option<String>,
    /// What counts of the rows of several flows; else their mean.
    pub(crate) rows: Option<Fold>,
    /// Over this window of the scenario rather than all that was measured.
    pub(crate) window: Option<String>,
    /// The mean over these windows rather than over one.
    #[serde(default)]
    pub(crate) pooled: Vec<Part>,
    /// Of this link rather than the one whose packets wait longest.
    pub(crate) link: Option<String>,
    /// What counts of runs that differ only in their seed.
    #[serde(default)]
    pub(crate) seeds: OverSeeds,
    /// Of the flows with this algorithm only.
    pub(crate) flows: Option<String>,
    /// Of the flows that the scenario has under this name only. An estimator is then held to the mean of their smoothed
    /// round-trip times.
    pub(crate) group: Option<String>,
    /// Divided by the same quantity of the flows with this algorithm.
    pub(crate) over_flows: Option<String>,
    /// How far that quotient is from one, whoever has more: the magnitude of its natural logarithm.
    #[serde(default)]
    pub(crate) unevenness: bool,
    /// Set against the same quantity at these values of axes.
    pub(crate) against: Option<BTreeMap<String, String>>,
    /// Set against the same quantity over this window.
    pub(crate) against_window: Option<String>,
    /// How: see [`Relation`].
    pub(crate) relation: Option<Relation>,
    /// Divided by the same, set against the same, at these values of axes.
    pub(crate) per: Option<BTreeMap<String, String>>,
    /// Where, along this axis, the quantity falls through this level.
    pub(crate) falls_through: Option<Crossing>,
}

impl Measure {
    /// What is `of`, in `unit`.
    pub(crate) fn plain(of: &str, unit: Option<&str>) -> Self {
        Self {
            of: of.to_owned(),
            minus: None,
            unit: unit.map(str::to_owned),
            rows: None,
            window: None,
            pooled: Vec::new(),
            link: None,
            seeds: OverSeeds::Mean,
            flows: None,
            group: None,
            over_flows: None,
            unevenness: false,
            against: None,
            against_window: None,
            relation: None,
            per: None,
            falls_through: None,
        }
    }
}

/// One of several windows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) window: String,
    /// See [`Measure::group`].
    pub(crate) group: Option<String>,
}

/// One number of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fold {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
}

/// One number of several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OverSeeds {
    /// Their mean.
    #[default]
    Mean,
    /// Their mean, where they are no sample of one thing: without an interval.
    Average,
    /// The middle one of the means of runs that differ only in their seed, or the mean of the middle two.
    Median,
    /// The largest.
    Most,
    /// The smallest.
    Least,
}

/// How a number is set against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Relation {
    /// How much smaller, in percent of the other.
    Saving,
    /// In percent of the other.
    Percent,
    /// How much larger, in percent of the other.
    Change,
    /// How much less, in the quantity's unit.
    Less,
}

/// A level on the way along an axis.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crossing {
    pub(crate) axis: String,
    pub(crate) level: f64,
}

/// One number of a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cell {
    /// Value of the claim's axis.
    pub(crate) at: Option<String>,
    /// The window, where the claim's measure gives none.
    pub(crate) window: Option<String>,
    /// The paper's number, or its words; none where it has neither.
    pub(crate) paper: Option<toml::Value>,
    /// Instead of that: a number from elsewhere, for example ns-2's.
    pub(crate) reference: Option<f64>,
    /// What counts as the same; without any of these the number is only shown.
    pub(crate) within: Option<f64>,
    pub(crate) within_percent: Option<f64>,
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
    /// It is more than in the cell before.
    #[serde(default)]
    pub(crate) more_than_before: bool,
    /// Why the claim did not hold when this was written: then a miss is no reason to fail.
    pub(crate) missed: Option<String>,
}

impl Cell {
    /// The number that the tolerance is around.
    pub(crate) fn expected(&self) -> Option<f64> {
        let number = |value: &toml::Value| {
            value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
        };
        self.reference.or_else(|| self.paper.as_ref().and_then(number))
    }

    /// Whether the cell is judged, and not only shown.
    pub(crate) fn is_judged(&self) -> bool {
        let bounds = [self.within, self.within_percent, self.at_least, self.at_most];
        self.more_than_before || bounds.iter().any(Option::is_some)
    }

    /// What the cell judges, where its claim does not say: the paper's number, or its words on an order.
    fn own_basis(&self) -> Basis {
        match &self.paper {
            None if self.reference.is_some() => Basis::Reference,
            None => Basis::Own,
            Some(toml::Value::String(_)) => Basis::Ordering,
            Some(_) => Basis::Printed,
        }
    }

    /// The problem with the cell, if there is any.
    fn problem(&self) -> Option<&'static str> {
        if self.paper.is_some() && self.reference.is_some() {
            return Some("accepted: either paper or reference");
        }
        let around = self.within.is_some() || self.within_percent.is_some();
        (around && self.expected().is_none()).then_some("\"within\" needs a number as paper or reference")
    }
}

impl Claim {
    /// What `cell` judges.
    pub(crate) fn basis_of(&self, cell: &Cell) -> Basis {
        self.basis.unwrap_or_else(|| cell.own_basis())
    }
}

/// A chart of the paper's page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    pub(crate) experiment: String,
    pub(crate) title: String,
    pub(crate) caption: Option<String>,
    /// An axis of the matrix, or a column of a table.
    pub(crate) x: String,
    /// Where `x` is a column: the unit.
    pub(crate) x_unit: Option<String>,
    #[serde(default)]
    pub(crate) logarithmic_x: bool,
    pub(crate) y: Measure,
    pub(crate) y_label: String,
    pub(crate) y_unit: String,
    /// One line for each value of this axis.
    pub(crate) lines: String,
    /// Only these runs.
    #[serde(default)]
    pub(crate) at: BTreeMap<String, String>,
    /// Where `x` is a quantity: it is that of the runs with these values of axes.
    #[serde(default)]
    pub(crate) x_at: BTreeMap<String, String>,
}

/// Heat maps of the paper's page, one for each value of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeatMapSpec {
    pub(crate) experiment: String,
    pub(crate) title: String,
    pub(crate) caption: Option<String>,
    /// The axes that tell the rows apart, where a run has them.
    pub(crate) rows: Vec<String>,
    /// The axis of the columns.
    pub(crate) columns: String,
    /// The axis with a map for each of its values.
    pub(crate) maps: String,
    /// Only the runs in which that axis has one of these values.
    pub(crate) of: Vec<String>,
    pub(crate) measure: Measure,
    /// Values from which on a cell is as cold and as hot as they get.
    pub(crate) range: (f64, f64),
}

impl Paper {
    /// Reads `claims.toml` in `folder`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(folder: &Path) -> Result<Self, StudyError> {
        let file = folder.join("claims.toml");
        let refuse = |problem: String| StudyError::Claims { file: file.clone(), problem };
        let text = std::fs::read_to_string(&file).map_err(|error| refuse(error.to_string()))?;
        let mut paper: Self =
            toml::from_str(&text).map_err(|error| refuse(error.to_string().trim_end().to_owned()))?;
        let known = |name: &String| paper.experiments.iter().any(|experiment| experiment.name == *name);
        let named = (paper.claims.iter().map(|claim| &claim.experiment))
            .chain(paper.figures.iter().map(|figure| &figure.experiment))
            .chain(paper.heat_maps.iter().map(|map| &map.experiment))
            .chain(paper.experiments.iter().flat_map(|experiment| &experiment.batch));
        if let Some(unknown) = named.into_iter().find(|name| !known(name)) {
            let accepted: Vec<_> = paper.experiments.iter().map(|e| e.name.as_str()).collect();
            let accepted = accepted.join(", ");
            return Err(refuse(format!("unknown experiment \"{unknown}\"; accepted: {accepted}")));
        }
        let one = |experiment: &&Experiment| experiment.scenario.is_some() != experiment.batch.is_empty();
        if let Some(experiment) = paper.experiments.iter().find(one) {
            let name = &experiment.name;
            return Err(refuse(format!("experiment \"{name}\": accepted: either scenario or batch")));
        }
        for claim in &paper.claims {
            if let Some(problem) = claim.cells.iter().find_map(Cell::problem) {
                return Err(refuse(format!("claim \"{}\": {problem}", claim.claim)));
            }
        }
        paper.file = file;
        Ok(paper)
    }

    /// A refusal of something in this file.
    pub(crate) fn refuse(&self, problem: String) -> StudyError {
        StudyError::Claims { file: self.file.clone(), problem }
    }
}
