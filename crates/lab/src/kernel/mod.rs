//! A paper's experiments on the running kernel, beside the simulator.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use suimon_algorithms::registry::Registry;
use suimon_results::RunResult;
use suimon_scenario::Run;
use suimon_study::comparison::{Parsed, SenderName};
use suimon_study::{Comparison, StudyError};
use suimon_units::{Bytes, Duration};

pub use self::programs::{Program, Told, Transfer};
use self::programs::{Programs, installed};
use crate::error::LabError;

/// `kernel.toml` of a paper's folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is about.
    pub description: String,
    duration: Parsed<Duration>,
    window: Parsed<Bytes>,
    cc: Vec<SenderName>,
    agreement: f64,
    agreement_packets: f64,
    #[serde(rename = "link")]
    links: Vec<LinkOf>,
    #[serde(rename = "bar", default)]
    bars: Vec<Bar>,
    programs: Option<Programs>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkOf {
    name: String,
    link: String,
    #[serde(default = "one")]
    seeds: NonZeroUsize,
    /// A file that does not come with the project; without it the link is left out.
    needs: Option<PathBuf>,
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// What must hold of a ratio, in the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bar {
    claim: String,
    of: Of,
    cc: String,
    link: String,
    beside_cc: Option<String>,
    beside_link: Option<String>,
    least: Option<f64>,
    most: Option<f64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Of {
    Backlog,
    Throughput,
}

/// Of one transfer, or a mean over the seeds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Measured {
    /// Goodput.
    pub throughput_kbps: f64,
    /// Packets that waited: mean over time.
    pub backlog_mean_packets: f64,
    /// Most packets that waited at once.
    pub backlog_max_packets: f64,
    /// How long packets waited: 95th percentile.
    pub delay_p95_ms: f64,
    /// The emulator's own 99th percentile of lateness: the kernel's only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_p99_ms: Option<f64>,
}

/// One congestion control over one link, in both worlds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The link's name.
    pub link: String,
    /// The congestion control.
    pub cc: String,
    /// On the kernel.
    pub kernel: Measured,
    /// In the simulator.
    pub simulator: Measured,
    /// Both throughputs are as near as the experiment wants.
    pub throughput_agrees: bool,
    /// Both mean backlogs are.
    pub backlog_agrees: bool,
}

/// What a program got, and the ping beside it.
#[derive(Debug, Serialize)]
pub struct ProgramRow {
    /// The program.
    pub program: Program,
    /// The link's name.
    pub link: String,
    /// The congestion control.
    pub cc: String,
    /// What the program says of itself.
    pub throughput_kbps: f64,
    /// Median of the pings.
    pub ping_p50_ms: Option<f64>,
    /// Their 95th percentile.
    pub ping_p95_ms: Option<f64>,
}

/// A ratio, and whether it is what it must be.
#[derive(Debug, Serialize)]
pub struct Judged {
    /// In words.
    pub claim: String,
    /// What the ratio must be, in words.
    pub bar: String,
    /// The ratio on the kernel.
    pub kernel: f64,
    /// The ratio in the simulator.
    pub simulator: f64,
    /// The kernel meets the bar; `None` where there is none.
    pub holds: Option<bool>,
}

/// What an experiment comes to.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Transfers, one row a link and congestion control.
    pub rows: Vec<Row>,
    /// Ratios of these.
    pub bars: Vec<Judged>,
    /// Programs of everybody's.
    pub programs: Vec<ProgramRow>,
    /// Why rows are missing.
    pub left_out: Vec<String>,
}

/// Link and congestion control, by name.
type Cell = (String, String);
type Cells = BTreeMap<Cell, Measured>;

impl Experiment {
    /// Reads `kernel.toml` in `folder`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(folder: &Path) -> Result<Self, LabError> {
        let file = folder.join("kernel.toml");
        let unreadable = |problem: String| StudyError::Claims { file: file.clone(), problem };
        let text = std::fs::read_to_string(&file).map_err(|error| unreadable(error.to_string()))?;
        let mut experiment: Self = toml::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        let names: BTreeSet<_> = experiment.links.iter().map(|link| link.name.clone()).collect();
        let of_programs = experiment.programs.iter().flat_map(|programs| &programs.links);
        if let Some(unknown) = of_programs.clone().find(|name| !names.contains(*name)) {
            let accepted = names.iter().cloned().collect::<Vec<_>>().join("; ");
            let problem = format!("programs.links: there is no link \"{unknown}\"; accepted: {accepted}");
            return Err(unreadable(problem).into());
        }
        experiment.links.retain(|link| link.needs.as_ref().is_none_or(|file| file.exists()));
        Ok(experiment)
    }

    /// The files that its links need, beside its folder.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.links.iter().filter_map(|link| link.needs.as_deref())
    }

    /// Makes every transfer, those of programs too, by `live` on a kernel; makes every transfer but theirs by `simulate`.
    ///
    /// # Errors
    /// Where it cannot be run.
    pub fn measure<E: From<LabError>>(
        &self,
        live: impl FnOnce(&[Run], &[Transfer<'_>]) -> Result<(Vec<RunResult>, Vec<Told>), E>,
        simulate: impl FnOnce(&[Run]) -> Vec<RunResult>,
    ) -> Result<Results, E> {
        let (cells, runs): (Vec<_>, Vec<_>) = self.runs()?.into_iter().unzip();
        let (transfers, left_out) = self.transfers();
        let (live, told) = live(&runs, &transfers)?;
        let simulated = simulate(&as_emulated(runs, &live));
        let of = |results: &[RunResult]| means(cells.iter().zip(results.iter().map(Measured::of)));
        let (kernel, simulator) = (of(&live), of(&simulated));
        Ok(Results {
            rows: self.rows(&kernel, &simulator),
            bars: self.bars.iter().filter_map(|bar| bar.judge(&kernel, &simulator)).collect(),
            programs: program_rows(&transfers, told),
            left_out,
        })
    }

    /// Each transfer, with the cell that it belongs to.
    fn runs(&self) -> Result<Vec<(Cell, Run)>, LabError> {
        let mut all = Vec::new();
        for link in &self.links {
            for cc in &self.cc {
                let comparison = Comparison {
                    senders: vec![cc.clone()],
                    duration: Some(self.duration.clone()),
                    window: self.window.clone(),
                    seeds: link.seeds,
                    ..Comparison::over(&link.link)?
                };
                for mut run in comparison.runs(&Registry::standard())? {
                    run.scenario.record.interval = None;
                    all.push(((link.name.clone(), cc.to_string()), run));
                }
            }
        }
        Ok(all)
    }

    fn rows(&self, kernel: &Cells, simulator: &Cells) -> Vec<Row> {
        let cells =
            self.links.iter().flat_map(|link| self.cc.iter().map(|cc| (link.name.clone(), cc.to_string())));
        let row = |cell: Cell| {
            let (kernel, simulator) = (*kernel.get(&cell)?, *simulator.get(&cell)?);
            let near = |a: f64, b: f64, least: f64| (a - b).abs() <= (self.agreement * b).max(least);
            Some(Row {
                throughput_agrees: near(kernel.throughput_kbps, simulator.throughput_kbps, 0.0),
                backlog_agrees: near(
                    kernel.backlog_mean_packets,
                    simulator.backlog_mean_packets,
                    self.agreement_packets,
                ),
                link: cell.0,
                cc: cell.1,
                kernel,
                simulator,
            })
        };
        cells.filter_map(row).collect()
    }

    /// The transfers of programs that are installed, and why others are left out.
    fn transfers(&self) -> (Vec<Transfer<'_>>, Vec<String>) {
        let Some(programs) = &self.programs else { return (Vec::new(), Vec::new()) };
        let (there, left_out) = installed();
        let mut transfers = Vec::new();
        for program in there {
            for link in self.links.iter().filter(|link| programs.links.contains(&link.name)) {
                for cc in &self.cc {
                    transfers.extend((1..=link.seeds.get() as u64).map(|seed| Transfer {
                        program,
                        link_name: &link.name,
                        link: &link.link,
                        seed,
                        cc: cc.as_str(),
                        window: *self.window,
                        programs,
                    }));
                }
            }
        }
        (transfers, left_out)
    }
}

/// A row for each program, link and congestion control, over its seeds.
fn program_rows(transfers: &[Transfer<'_>], told: Vec<Told>) -> Vec<ProgramRow> {
    let told: Vec<_> = transfers.iter().zip(told).collect();
    let row = |of: &[(&Transfer<'_>, Told)]| {
        let pings: Vec<f64> = of.iter().flat_map(|(_, told)| &told.pings).copied().collect();
        let (program, link, cc) = of[0].0.cell();
        ProgramRow {
            program,
            link: link.to_owned(),
            cc: cc.to_owned(),
            throughput_kbps: of.iter().map(|(_, told)| told.throughput_kbps).sum::<f64>() / of.len() as f64,
            ping_p50_ms: quantile(&pings, 0.5),
            ping_p95_ms: quantile(&pings, 0.95),
        }
    };
    told.chunk_by(|(a, _), (b, _)| a.cell() == b.cell()).map(row).collect()
}

/// The same for the simulator, which is told what the hosts and the emulator do and it does not: the senders' writes
/// have an end, and packets come a little late.
fn as_emulated(mut runs: Vec<Run>, live: &[RunResult]) -> Vec<Run> {
    for (run, live) in runs.iter_mut().zip(live) {
        suimon_live::behave_as_live(&mut run.scenario);
        let late = live.emulated.first().map_or(Duration::ZERO, |link| link.late_p50);
        for link in run.scenario.links.iter_mut() {
            link.delay += late;
        }
    }
    runs
}

impl Measured {
    fn of(result: &RunResult) -> Self {
        let (flow, queue) = (&result.flows[0], &result.queues[0]);
        Self {
            throughput_kbps: flow.goodput.as_bps_f64() / 1e3,
            backlog_mean_packets: queue.backlog_mean_packets,
            backlog_max_packets: queue.backlog_max_packets as f64,
            delay_p95_ms: queue.delay_p95.as_millis_f64(),
            lateness_p99_ms: result.emulated.first().map(|link| link.late_p99.as_millis_f64()),
        }
    }
}

fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// The mean of each cell over its seeds.
fn means<'a>(all: impl Iterator<Item = (&'a Cell, Measured)>) -> Cells {
    let mut grouped: BTreeMap<_, Vec<Measured>> = BTreeMap::new();
    for (cell, measured) in all {
        grouped.entry(cell.clone()).or_default().push(measured);
    }
    let of_group = |of: Vec<Measured>| {
        let mean = |value: fn(&Measured) -> f64| of.iter().map(value).sum::<f64>() / of.len() as f64;
        let late = of.iter().filter_map(|one| one.lateness_p99_ms).reduce(f64::max);
        Measured {
            throughput_kbps: mean(|one| one.throughput_kbps),
            backlog_mean_packets: mean(|one| one.backlog_mean_packets),
            backlog_max_packets: mean(|one| one.backlog_max_packets),
            delay_p95_ms: mean(|one| one.delay_p95_ms),
            lateness_p99_ms: late,
        }
    };
    grouped.into_iter().map(|(cell, of)| (cell, of_group(of))).collect()
}

impl Bar {
    fn judge(&self, kernel: &Cells, simulator: &Cells) -> Option<Judged> {
        let ratio = |cells: &Cells| {
            let value = |link: &String, cc: &String| {
                let cell = cells.get(&(link.clone(), cc.clone()))?;
                Some(match self.of {
                    Of::Backlog => cell.backlog_mean_packets,
                    Of::Throughput => cell.throughput_kbps,
                })
            };
            let beside = (self.beside_link.as_ref(), self.beside_cc.as_ref());
            let beside = value(beside.0.unwrap_or(&self.link), beside.1.unwrap_or(&self.cc))?;
            Some(value(&self.link, &self.cc)? / beside)
        };
        let (kernel, simulator) = (ratio(kernel)?, ratio(simulator)?);
        let (bar, holds) = match (self.least, self.most) {
            (Some(least), _) => (format!("at least {:.0} %", 100.0 * least), Some(kernel >= least)),
            (None, Some(most)) => (format!("at most {:.0} %", 100.0 * most), Some(kernel <= most)),
            (None, None) => (String::new(), None),
        };
        Some(Judged { claim: self.claim.clone(), bar, kernel, simulator, holds })
    }
}
