//! The results in a sentence or two of plain language.

use suimon_units::Duration;

use crate::advice::{CHANGE_AXIS, UNCHANGED, rank};
use crate::estimate::Estimate;
use crate::grade::Grade;
use crate::numbers::significant;
use crate::summary::{RunSummary, SeedGroup, groups_of_seeds};

/// Goodputs closer than this ratio are called the same.
const SAME_GOODPUT: f64 = 0.98;
/// Delays that differ by less, and by less than a tenth of the longer one, are called the same.
const SAME_DELAY: Duration = Duration::from_millis(1);
const SAME_DELAY_SHARE: f64 = 0.1;

/// Says the result, for someone who does not read tables; of each scenario apart, since runs over
/// different links do not compare.
#[must_use]
pub fn sentence(summaries: &[RunSummary<'_>]) -> String {
    if summaries.is_empty() {
        return "There is no run.".to_owned();
    }
    let scenarios = summaries.chunk_by(|a, b| a.run.scenario == b.run.scenario);
    scenarios.map(of_one_scenario).collect::<Vec<_>>().join(" ")
}

fn of_one_scenario(summaries: &[RunSummary<'_>]) -> String {
    let graded: Vec<Measured<'_>> = summaries.iter().filter_map(Measured::new).collect();
    let has_call = summaries.iter().any(|summary| summary.call.is_some());
    if let Some(groups) = groups_of_seeds(summaries).filter(|groups| groups.len() > 1 && !has_call)
        && !groups.iter().any(|group| group.runs.iter().any(|summary| sweeps_but_for_seeds(summary)))
        && let Some(told) = over_seeds(&groups)
    {
        return told;
    }
    if let Some(today) = graded.iter().find(|run| run.is_unchanged()) {
        return changed(today, &graded);
    }
    match (summaries, graded.as_slice()) {
        ([one], []) => format!("{} moved {}.", one.name, rate(one)),
        ([_], [one]) => single(one),
        (_, []) => format!("{} runs; none reports a link, so latency is not graded.", summaries.len()),
        (_, graded) if summaries.iter().any(sweeps) => many(summaries.len(), graded),
        (_, graded) => match choices(graded).as_slice() {
            [one] => single(one),
            several => compared(several),
        },
    }
}

/// The runs that one may choose among. Beside streams over several paths, a path alone is only their measure.
fn choices<'a>(graded: &[Measured<'a>]) -> Vec<Measured<'a>> {
    let paths = |run: &Measured<'_>| run.summary.run.aggregates.iter().map(|stream| stream.flows.len()).max();
    let several = graded.iter().any(|run| paths(run) > Some(1));
    graded.iter().filter(|run| !several || paths(run) != Some(1)).copied().collect()
}

#[derive(Clone, Copy)]
struct Measured<'a> {
    summary: &'a RunSummary<'a>,
    delay: Duration,
    grade: Grade,
}

impl<'a> Measured<'a> {
    fn new(summary: &'a RunSummary<'a>) -> Option<Self> {
        Some(Self { summary, delay: summary.delay()?, grade: summary.grade? })
    }

    fn goodput(&self) -> f64 {
        self.summary.total.goodput.as_bps_f64()
    }

    /// Whether its packets wait as long as those of `other`, but for noise.
    fn waits_as(&self, other: &Self) -> bool {
        let (short, long) = (self.delay.min(other.delay), self.delay.max(other.delay));
        long - short < SAME_DELAY || (long - short) < long.mul_f64(SAME_DELAY_SHARE)
    }

    fn is_unchanged(&self) -> bool {
        self.summary.run.labels.iter().any(|(axis, value)| axis == CHANGE_AXIS && value == UNCHANGED)
    }

    fn delay_and_grade(&self) -> String {
        format!("{} (grade {})", delay(self.delay), self.grade)
    }
}

/// What a line is like as it is, and what the best change makes of it.
fn changed(today: &Measured<'_>, graded: &[Measured<'_>]) -> String {
    let told = format!(
        "As it is, the line gets grade {} for calls: 5 % of a call's packets wait {} or longer behind other traffic.",
        today.grade,
        delay(today.delay)
    );
    let rank = |run: &&Measured<'_>| (rank(run.grade, run.goodput() / today.goodput()), run.delay);
    match graded.iter().filter(|run| run.delay < today.delay).min_by_key(rank) {
        Some(best) => {
            format!(
                "{told} The best change that was tried, {}, brings {}.",
                best.summary.name,
                best.delay_and_grade()
            )
        }
        None => told,
    }
}

/// Whether a run belongs to a sweep over quantities: comparing throughput over those says nothing.
fn sweeps(summary: &RunSummary<'_>) -> bool {
    summary.run.labels.iter().any(|(_, value)| crate::sweep::quantity(value).is_some())
}

fn sweeps_but_for_seeds(summary: &RunSummary<'_>) -> bool {
    let own = summary.run.labels.iter().filter(|(axis, _)| axis != "seed");
    own.into_iter().any(|(_, value)| crate::sweep::quantity(value).is_some())
}

/// Which setting has the shortest queue by the means over seeds, and which differ by no more than chance.
fn over_seeds(groups: &[SeedGroup<'_>]) -> Option<String> {
    let delay = |group: &SeedGroup<'_>| {
        let delays = group.runs.iter().map(|summary| Some(summary.delay()?.as_millis_f64()));
        delays.collect::<Option<Vec<_>>>().map(|delays| Estimate::of(&delays))
    };
    let delays: Vec<(&str, Estimate)> =
        groups.iter().map(|group| Some((group.name.as_str(), delay(group)?))).collect::<Option<_>>()?;
    let (name, shortest) = *delays.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    let seeds = groups.iter().map(|group| group.runs.len()).max()?;
    let alike = delays.iter().filter(|(other, delay)| *other != name && delay.overlaps(shortest));
    let alike: Vec<&str> = alike.map(|(other, _)| *other).collect();
    let told = format!(
        "Over {seeds} seeds each, {name} kept the shortest queue: 95 % of packets waited at most {shortest} ms"
    );
    Some(if alike.is_empty() {
        format!("{told}, which no other comes near to by chance.")
    } else {
        format!("{told}; that of {} differs by no more than chance.", enumerated(&alike))
    })
}

fn single(one: &Measured<'_>) -> String {
    let used = one.summary.slowest.and_then(|queue| queue.utilisation).map_or_else(String::new, |share| {
        format!(" and kept the link {} % busy", significant(share * 100.0))
    });
    format!(
        "{} moved {}{used}; 95 % of packets waited at most {} in the queue: grade {}.",
        one.summary.name,
        rate(one.summary),
        delay(one.delay),
        one.grade
    )
}

fn compared(graded: &[Measured<'_>]) -> String {
    let Some(shortest) = graded.iter().min_by_key(|run| run.delay) else {
        return String::new();
    };
    // Of those that are equally fast, the one that keeps packets waiting least.
    let faster = |a: &Measured<'_>, b: &Measured<'_>| {
        b.goodput() > a.goodput() || (b.goodput() == a.goodput() && b.delay < a.delay)
    };
    let Some(fastest) = graded.iter().reduce(|a, b| if faster(a, b) { b } else { a }) else {
        return String::new();
    };
    let (name, delay) = (&shortest.summary.name, shortest.delay_and_grade());
    let rate_of = rate(shortest.summary);
    let share = shortest.goodput() / fastest.goodput();
    let is_as_fast = share >= SAME_GOODPUT;
    let as_short: Vec<&Measured<'_>> = graded.iter().filter(|run| run.waits_as(shortest)).collect();
    let others = || graded.iter().filter(|run| !run.waits_as(shortest));
    let next = others().min_by_key(|run| run.delay).map_or_else(String::new, |run| {
        format!("; the next shortest is that of {} with {}", run.summary.name, run.delay_and_grade())
    });
    let equally_fast = graded.iter().all(|run| run.goodput() / fastest.goodput() >= SAME_GOODPUT);
    if as_short.len() > 1 {
        let names: Vec<&str> = as_short.iter().map(|run| run.summary.name.as_str()).collect();
        let ties = format!("{} keep equally short queues", enumerated(&names));
        let fast = if equally_fast { format!(", and all are as fast ({rate_of})") } else { String::new() };
        return format!("{ties}{fast}: 95 % of packets waited at most {delay}{next}.");
    }
    if equally_fast {
        return format!(
            "All are as fast ({rate_of}), and {name} kept the shortest queue: 95 % of packets waited at most \
             {delay}{next}."
        );
    }
    if std::ptr::eq(shortest, fastest) {
        return format!(
            "{name} is both the fastest, with {rate_of}, and the one with the shortest queue: 95 % of packets \
             waited at most {delay}{next}."
        );
    }
    let moved = if is_as_fast {
        format!("as fast as any ({rate_of})")
    } else {
        format!("at {} % of the highest throughput ({rate_of})", significant(share * 100.0))
    };
    format!(
        "{name} kept the shortest queue, {moved}: 95 % of packets waited at most {delay}. {}, the fastest with {}, \
         made them wait up to {}.",
        fastest.summary.name,
        rate(fastest.summary),
        fastest.delay_and_grade()
    )
}

/// `a, b and c`.
fn enumerated(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => names.join(", "),
    }
}

fn many(runs: usize, graded: &[Measured<'_>]) -> String {
    let grades: Vec<String> = Grade::ALL
        .iter()
        .map(|grade| (grade, graded.iter().filter(|run| run.grade == *grade).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(grade, count)| format!("{count} × {grade}"))
        .collect();
    let ends = graded.iter().min_by_key(|run| run.delay).zip(graded.iter().max_by_key(|run| run.delay));
    let ends = ends.map_or_else(String::new, |(best, worst)| {
        format!(
            " The 95th percentile of queueing delay lies between {} ({}) and {} ({}).",
            delay(best.delay),
            best.summary.name,
            delay(worst.delay),
            worst.summary.name
        )
    });
    format!("{runs} runs, graded for latency under load: {}.{ends}", grades.join(", "))
}

fn rate(summary: &RunSummary<'_>) -> String {
    let bps = summary.total.goodput.as_bps_f64();
    let (unit, factor) = crate::results_table::rate_unit(bps);
    format!("{} {unit}", significant(bps / factor))
}

fn delay(delay: Duration) -> String {
    let ms = delay.as_millis_f64();
    if ms >= 1_000.0 { format!("{} s", significant(ms / 1e3)) } else { format!("{} ms", significant(ms)) }
}

#[cfg(test)]
mod tests {
    use suimon_results::RunResult;

    use super::*;
    use crate::samples::{comparison, flow, queue, run, stream};
    use crate::summary::summarise;

    #[test]
    fn a_single_run_is_told_by_itself() {
        let runs = [run(&[], vec![flow("web", "cubic", 3_456_000)], vec![queue("l", 2_480.0)])];
        assert_eq!(
            sentence(&summarise(&runs)),
            "cubic moved 3.46 Mbit/s and kept the link 98.5 % busy; 95 % of packets waited at most 2.48 s in \
             the queue: grade F."
        );
    }

    #[test]
    fn a_comparison_sets_the_shortest_queue_against_the_fastest() {
        assert_eq!(
            sentence(&summarise(&comparison())),
            "fs-at, droptail kept the shortest queue, at 97.1 % of the highest throughput (3.40 Mbit/s): 95 % of \
             packets waited at most 12.0 ms (grade A). cubic, droptail, the fastest with 3.50 Mbit/s, made them \
             wait up to 480 ms (grade F)."
        );
    }

    #[test]
    fn the_best_in_both_respects_is_said_to_be_so() {
        let mut runs = comparison();
        runs[1].flows[0].goodput = suimon_units::Rate::from_bps(1_000_000);
        assert_eq!(
            sentence(&summarise(&runs)),
            "fs-at, droptail is both the fastest, with 3.40 Mbit/s, and the one with the shortest queue: 95 % of \
             packets waited at most 12.0 ms (grade A); the next shortest is that of cubic, droptail with 480 ms \
             (grade F)."
        );
    }

    #[test]
    fn a_path_alone_is_no_choice_among_schedulers() {
        let over = |scheme: &str, flows: &[&str], delay| {
            let aggregates = vec![stream(scheme, flows, 3_000_000)];
            RunResult {
                aggregates,
                ..run(&[("scheme", scheme)], vec![flow("a", "cubic", 1)], vec![queue("l", delay)])
            }
        };
        let runs = [
            over("ecf", &["a", "b"], 80.0),
            over("redundant", &["a", "b"], 30.0),
            over("b alone", &["b"], 5.0),
        ];
        let told = sentence(&summarise(&runs));
        assert!(
            told.starts_with("All are as fast (3.00 Mbit/s), and redundant kept the shortest queue"),
            "{told}"
        );
        assert!(!told.contains("alone"), "{told}");
        let told = sentence(&summarise(&runs[1..]));
        assert!(told.starts_with("redundant moved"), "{told}");
        let told = sentence(&summarise(&runs[2..]));
        assert!(told.starts_with("b alone moved"), "{told}");
    }

    #[test]
    fn runs_of_different_scenarios_are_not_compared() {
        let one = |scenario: &str, bps| {
            let labels = [("scenario", scenario)];
            let mut run = run(&labels, vec![flow("web", "cubic", bps)], vec![queue("l", 12.0)]);
            run.scenario = scenario.to_owned();
            run
        };
        assert_eq!(
            sentence(&summarise(&[one("wired", 1_000_000), one("cellular", 2_000_000)])),
            "wired moved 1.00 Mbit/s and kept the link 98.5 % busy; 95 % of packets waited at most 12.0 ms in the \
             queue: grade A. cellular moved 2.00 Mbit/s and kept the link 98.5 % busy; 95 % of packets waited at \
             most 12.0 ms in the queue: grade A."
        );
    }

    #[test]
    fn a_sweep_is_told_by_its_grades_and_its_extremes() {
        let runs: Vec<_> = [("64kbit", 900.0), ("1Mbit", 40.0), ("10Mbit", 1.0)]
            .into_iter()
            .map(|(rate, delay)| run(&[("rate", rate)], vec![flow("a", "reno", 1)], vec![queue("l", delay)]))
            .collect();
        assert_eq!(
            sentence(&summarise(&runs)),
            "3 runs, graded for latency under load: 1 × A+, 1 × B, 1 × F. The 95th percentile of queueing delay \
             lies between 1.00 ms (10Mbit) and 900 ms (64kbit)."
        );
    }
}
