//! Every sender on every link, ranked: who fills links, keeps queues short, and leaves others their part.

use std::num::NonZeroUsize;

use serde::Serialize;
use serde_json::{Map, Value, json};
use suimon_algorithms::registry::Registry;
use suimon_results::{FlowResult, RunResult};
use suimon_scenario::{Run, Start};
use suimon_units::{Duration, Instant};

use crate::comparison::Comparison;
use crate::error::StudyError;

/// The senders that take part where nobody says which.
pub const SENDERS: &[&str] = &[
    "reno",
    "cubic",
    "hystart-plus-plus+cubic",
    "cubic-2.1",
    "cubic-linux",
    "bic",
    "vegas",
    "vegas-linux",
    "compound",
    "highspeed",
    "scalable",
    "htcp",
    "westwood",
    "veno",
    "illinois",
    "hybla",
    "yeah",
    "ledbat-plus-plus",
    "cdg",
    "copa",
    "copa:mode_switching=false",
    "bbr",
    "bbr3",
    "vivace",
    "verus",
    "sprout-ewma",
    "nv",
    "lp",
    "dctcp",
    "prague",
    "drs",
    "fs-at",
    "fs-at:mode=fit",
    "fs-at+cubic",
    "fs-at-open",
    "fs-at-open:compete=false",
];

/// A link of the championship.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// As `suimon compare --link` takes it.
    pub link: &'static str,
    /// The queue discipline in front of it.
    pub queue: &'static str,
    /// How many flows the sender has.
    pub flows: u64,
    /// As many flows beside them, where there are some.
    pub rival: Option<&'static str>,
}

const fn alone(link: &'static str, flows: u64) -> Course {
    Course { link, queue: "droptail", flows, rival: None }
}

const fn beside(link: &'static str, flows: u64, rival: &'static str) -> Course {
    Course { link, queue: "droptail", flows, rival: Some(rival) }
}

const fn under(queue: &'static str, flows: u64) -> Course {
    Course { link: "10Mbit 40ms 1000packets", queue, flows, rival: None }
}

/// The links: wires, shared queues, rivals, losses, radios and queue disciplines.
pub const COURSES: &[Course] = &[
    alone("2Mbit 10ms 1000packets", 1),
    alone("2Mbit 40ms 1000packets", 1),
    alone("2Mbit 200ms 1000packets", 1),
    alone("10Mbit 10ms 1000packets", 1),
    alone("10Mbit 40ms 1000packets", 1),
    alone("10Mbit 40ms 33packets", 1),
    alone("10Mbit 200ms 1000packets", 1),
    alone("100Mbit 10ms 1000packets", 1),
    alone("100Mbit 40ms 1000packets", 1),
    alone("100Mbit 200ms 1000packets", 1),
    alone("2Mbit 40ms 1000packets", 4),
    alone("10Mbit 40ms 1000packets", 2),
    alone("10Mbit 40ms 1000packets", 4),
    alone("10Mbit 40ms 1000packets", 8),
    alone("10Mbit 40ms 1000packets", 16),
    alone("100Mbit 40ms 1000packets", 8),
    alone("10Mbit 40ms 33packets", 4),
    beside("10Mbit 40ms 17packets", 1, "cubic"),
    beside("10Mbit 40ms 33packets", 1, "cubic"),
    beside("10Mbit 40ms 67packets", 1, "cubic"),
    beside("10Mbit 40ms 133packets", 1, "cubic"),
    beside("10Mbit 40ms 33packets", 1, "reno"),
    beside("10Mbit 40ms 133packets", 1, "reno"),
    beside("50Mbit 40ms 167packets", 4, "cubic"),
    alone("10Mbit 40ms 1000packets loss=0.5%", 1),
    alone("10Mbit 40ms 1000packets loss=1%", 1),
    alone("10Mbit 40ms 1000packets loss=2%", 1),
    alone("50Mbit 100ms 1000packets loss=1%", 1),
    alone("10Mbit 40ms 1000packets jitter=5ms", 1),
    alone("10Mbit 40ms 1000packets reorder=1%/5ms", 1),
    alone("10Mbit 40ms 1000packets outages=10s..11s", 1),
    alone("hsdpa PA3 10dB 40ms 1000packets", 1),
    alone("hsdpa PB3 10dB 40ms 1000packets", 1),
    alone("hsdpa VA30 10dB 40ms 1000packets", 1),
    alone("lte-driving 40ms 1000packets", 1),
    alone("lte-driving 40ms 1000packets", 4),
    under("codel", 4),
    under("fq-codel", 4),
    under("pie", 4),
    under("rtt-aqm", 4),
];

/// How long a race is.
const RACE: &str = "30s";
/// Flows start at random within this time.
const STARTS_WITHIN: Duration = Duration::from_millis(100);

/// What a sender did on one link: means over seeds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Score {
    /// What all flows got, rivals too, in Mbit/s.
    pub goodput_mbps: f64,
    /// The share of the link's capacity that was used, where the link has one.
    pub utilisation: Option<f64>,
    /// The 95th percentile of the time that packets waited, in milliseconds.
    pub delay_p95_ms: f64,
    /// Jain's index of all flows, rivals too.
    pub jain_index: f64,
    /// `goodput * rtt / (rtt + delay_p95) * jain_index`: Kleinrock's power, times fairness.
    pub power: f64,
}

/// A sender's place.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// The sender.
    pub sender: String,
    /// The mean over links of its power over that of the best there.
    pub mean_of_best: f64,
    /// Links on which nobody has more power.
    pub wins: usize,
    /// The least of its powers over that of the best there.
    pub worst_of_best: f64,
    /// Mean over the links that have a capacity.
    pub utilisation: f64,
    /// Mean over links, in milliseconds.
    pub delay_p95_ms: f64,
    /// Mean over links.
    pub jain_index: f64,
    /// In the order of [`COURSES`].
    pub scores: Vec<Score>,
}

impl Course {
    /// The course in words.
    #[must_use]
    pub fn title(&self) -> String {
        let mut title = self.link.to_owned();
        if self.queue != "droptail" {
            title = format!("{title}, {}", self.queue);
        }
        if self.flows > 1 {
            title = format!("{title}, {} flows", self.flows);
        }
        if let Some(rival) = self.rival {
            title = format!("{title}, beside as many {rival}");
        }
        title
    }

    fn runs(&self, sender: &str, seeds: NonZeroUsize, registry: &Registry) -> Result<Vec<Run>, StudyError> {
        let mut fields: Map<String, Value> = Map::new();
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("link", json!(self.link));
        set("queues", json!([self.queue]));
        set("flows", json!(self.flows.to_string()));
        set("seconds", json!(RACE));
        set("window", json!("16MB"));
        set("seeds", json!(seeds));
        match self.rival {
            Some(rival) => {
                set("senders", json!([sender, rival]));
                set("mixed", json!(true));
            }
            None => {
                set("senders", json!([sender]));
            }
        }
        let mut runs = Comparison::from_fields(fields)?.runs(registry)?;
        for run in &mut runs {
            run.scenario.record.interval = None;
            let start = Start::Between(Instant::ZERO, Instant::ZERO + STARTS_WITHIN);
            run.scenario.flows.iter_mut().for_each(|flow| flow.start = start);
        }
        Ok(runs)
    }

    fn score(&self, results: &[RunResult]) -> Score {
        let mean =
            |of: &dyn Fn(&RunResult) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
        let queue = |run: &RunResult| run.queues.first().cloned();
        let uses: Vec<f64> = results.iter().filter_map(|run| queue(run)?.utilisation).collect();
        let utilisation = (!uses.is_empty()).then(|| uses.iter().sum::<f64>() / uses.len() as f64);
        let goodput = mean(&|run| run.flows.iter().map(|flow| flow.goodput.as_bps_f64()).sum::<f64>() / 1e6);
        let delay = mean(&|run| queue(run).map_or(0.0, |queue| queue.delay_p95.as_millis_f64()));
        let jain = mean(&|run| jain_index(run.flows.iter()));
        let rtt = mean(&|run| {
            run.flows.iter().filter_map(|flow| flow.rtt_min).min().map_or(0.0, Duration::as_millis_f64)
        });
        let power = goodput * rtt / (rtt + delay).max(f64::MIN_POSITIVE) * jain;
        Score { goodput_mbps: goodput, utilisation, delay_p95_ms: delay, jain_index: jain, power }
    }
}

fn mean_use(scores: &[Score]) -> f64 {
    let uses: Vec<f64> = scores.iter().filter_map(|score| score.utilisation).collect();
    if uses.is_empty() { 0.0 } else { uses.iter().sum::<f64>() / uses.len() as f64 }
}

/// Jain's index of what `flows` got.
pub(crate) fn jain_index<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> f64 {
    let goodputs: Vec<f64> = flows.map(|flow| flow.goodput.as_bps_f64()).collect();
    let (sum, squares) =
        goodputs.iter().fold((0.0, 0.0), |(sum, squares), one| (sum + one, squares + one * one));
    if squares == 0.0 { 0.0 } else { sum * sum / (goodputs.len() as f64 * squares) }
}

/// The runs of `senders` on all courses, course by course.
///
/// # Errors
/// When a sender is not known.
pub fn runs(senders: &[String], seeds: NonZeroUsize, registry: &Registry) -> Result<Vec<Run>, StudyError> {
    let mut runs = Vec::new();
    for course in COURSES {
        for sender in senders {
            runs.extend(course.runs(sender, seeds, registry)?);
        }
    }
    Ok(runs)
}

/// The places that the `results` of [`runs`] give, best first.
#[must_use]
pub fn standings(senders: &[String], seeds: NonZeroUsize, results: &[RunResult]) -> Vec<Standing> {
    let of_course = senders.len() * seeds.get();
    let scores: Vec<Vec<Score>> = results
        .chunks(of_course)
        .zip(COURSES)
        .map(|(of_course, course)| of_course.chunks(seeds.get()).map(|one| course.score(one)).collect())
        .collect();
    let best: Vec<f64> =
        scores.iter().map(|scores| scores.iter().map(|score| score.power).fold(0.0, f64::max)).collect();
    let mut standings: Vec<Standing> = senders
        .iter()
        .enumerate()
        .map(|(nth, sender)| {
            let own: Vec<Score> = scores.iter().map(|scores| scores[nth]).collect();
            let parts: Vec<f64> = own
                .iter()
                .zip(&best)
                .map(|(score, best)| if *best > 0.0 { score.power / best } else { 0.0 })
                .collect();
            let mean = |of: &dyn Fn(&Score) -> f64| own.iter().map(of).sum::<f64>() / own.len() as f64;
            Standing {
                sender: sender.clone(),
                mean_of_best: parts.iter().sum::<f64>() / parts.len() as f64,
                wins: parts.iter().filter(|part| **part >= 1.0).count(),
                worst_of_best: parts.iter().copied().fold(f64::INFINITY, f64::min),
                utilisation: mean_use(&own),
                delay_p95_ms: mean(&|score| score.delay_p95_ms),
                jain_index: mean(&|score| score.jain_index),
                scores: own,
            }
        })
        .collect();
    standings.sort_by(|a, b| b.mean_of_best.total_cmp(&a.mean_of_best));
    standings
}

/// One page with the ranks and every score.
#[must_use]
pub fn page(standings: &[Standing], seeds: NonZeroUsize, command: &str) -> String {
    let mut page = format!(
        "# Championship\n\n{} senders on {} links, {seeds} seeds of {RACE} each. This command made the page:\n\n```sh\n# untested: takes minutes\n{command}\n```\n\n\
         The power of a sender on a link is `goodput * rtt / (rtt + delay) * jain`, with the 95th percentile of the queueing delay. \
         Places go by the mean of its power over that of the best on each link.\n\n\
         | place | sender | of the best, mean | worst | wins | use | p95, ms | Jain |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        standings.len(),
        COURSES.len(),
    );
    for (place, one) in (1..).zip(standings) {
        page += &format!(
            "| {place} | `{}` | {:.3} | {:.3} | {} | {:.3} | {:.0} | {:.3} |\n",
            one.sender,
            one.mean_of_best,
            one.worst_of_best,
            one.wins,
            one.utilisation,
            one.delay_p95_ms,
            one.jain_index
        );
    }
    page += "\n## Links\n\nEach cell is goodput in Mbit/s, the 95th percentile of the queueing delay in ms, and Jain's index.\n\n| link |";
    standings.iter().for_each(|one| page += &format!(" {} |", one.sender));
    page += &format!("\n| --- |{}\n", " --- |".repeat(standings.len()));
    for (nth, course) in COURSES.iter().enumerate() {
        page += &format!("| {} |", course.title());
        for one in standings {
            let score = one.scores[nth];
            page += &format!(
                " {:.2} / {:.0} / {:.2} |",
                score.goodput_mbps, score.delay_p95_ms, score.jain_index
            );
        }
        page += "\n";
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Unobserved, simulate_totals};

    fn senders(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_sender_and_link_of_the_championship_reads() {
        let one = NonZeroUsize::MIN;
        let runs = runs(&senders(SENDERS), one, &Registry::standard()).unwrap();
        assert_eq!(runs.len(), SENDERS.len() * COURSES.len());
        assert!(SENDERS.len() >= 25 && COURSES.len() >= 40);
    }

    #[test]
    fn the_sender_with_the_shorter_queue_at_the_same_use_comes_first() {
        let (names, one) = (senders(&["cubic", "vegas"]), NonZeroUsize::MIN);
        let mut all = runs(&names, one, &Registry::standard()).unwrap();
        // Only the first links, and short: the others count as if nobody had sent.
        all.truncate(2 * 5);
        all.iter_mut().for_each(|run| run.scenario.duration = Duration::from_secs(10));
        let results = simulate_totals(&all, &Unobserved);
        let standings = standings(&names, one, &results);
        assert_eq!(standings[0].sender, "vegas");
        assert!((0.0..=1.0).contains(&standings[1].mean_of_best));
        let again = simulate_totals(&all, &Unobserved);
        assert_eq!(results, again, "same runs, same bytes");
    }
}
