//! Notes that a reader needs before trusting a row: odd runs are reported, never silently shown.

use suimon_units::Bytes;

use crate::summary::{RunSummary, groups_of_seeds};

/// The most runs that an observation names; beyond them it counts.
const NAMED_RUNS: usize = 3;

/// Oddities of `summaries`, each a sentence.
#[must_use]
pub fn observations(summaries: &[RunSummary<'_>]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |what: &str, applies: &dyn Fn(&RunSummary<'_>) -> bool| {
        let names: Vec<&str> = summaries
            .iter()
            .filter(|summary| applies(summary))
            .map(|summary| summary.name.as_str())
            .collect();
        if !names.is_empty() {
            notes.push(format!("{what}: {}.", listed(&names)));
        }
    };
    note("No flow, so nothing was measured", &|s| s.run.flows.is_empty());
    note("A flow delivered nothing while measured", &|s| {
        s.run.flows.iter().any(|flow| flow.delivered == Bytes::ZERO)
    });
    note("No link was reported, so there is no grade", &|s| s.run.queues.is_empty());
    note("More events than record_events keeps; the others are only counted", &|s| s.run.events_not_kept > 0);
    for group in groups_of_seeds(summaries).iter().flatten().filter(|group| group.runs.len() > 1) {
        let same = |other: &&RunSummary<'_>| {
            let (one, other) = (group.runs[0].run, other.run);
            one.flows == other.flows && one.queues == other.queues && one.applications == other.applications
        };
        if group.runs.iter().all(same) {
            notes.push(format!(
                "Nothing in {} is random: each of its {} seeds gave the same run.",
                group.name,
                group.runs.len()
            ));
        }
    }
    notes.extend(lateness(summaries));
    for note in summaries.iter().flat_map(|summary| &summary.run.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// How late the emulator of live runs was, and where that was too late.
fn lateness(summaries: &[RunSummary<'_>]) -> Vec<String> {
    // Of no packets there is nothing to say.
    let links = || summaries.iter().flat_map(|summary| &summary.run.emulated).filter(|link| link.packets > 0);
    let Some(latest) = links().map(|link| link.late_p99).max() else { return Vec::new() };
    let most = links().map(|link| link.late_max).max().unwrap_or_default();
    let mut notes = vec![format!(
        "The emulator gave 99 % of the packets to the hosts at most {latest:.2} late, all of them at most {most:.2}."
    )];
    let objected: Vec<_> = summaries
        .iter()
        .filter_map(|summary| {
            Some((&summary.name, summary.run.emulated.iter().find_map(|link| link.objections.first())?))
        })
        .map(|(name, objection)| format!("{name} ({objection})"))
        .collect();
    if objected.is_empty() {
        notes.push("The numbers count.".to_owned());
    } else {
        let names: Vec<&str> = objected.iter().map(String::as_str).collect();
        notes.push(format!("Numbers that do not count, as the emulator was too late: {}.", listed(&names)));
    }
    notes
}

fn listed(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED_RUNS)].join("; ");
    match names.len().saturating_sub(NAMED_RUNS) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{flow, queue, run};
    use crate::summary::summarise;

    #[test]
    fn a_sound_run_gives_no_observation() {
        let runs = [run(&[], vec![flow("a", "cubic", 1_000)], vec![queue("l", 1.0)])];
        assert_eq!(observations(&summarise(&runs)), [""; 0]);
    }

    #[test]
    fn seeds_of_runs_without_chance_are_told() {
        let seeds = |bps: [u64; 2]| -> Vec<_> {
            let one = |(nth, bps): (usize, u64)| {
                let seed = (nth + 1).to_string();
                run(&[("cc", "cubic"), ("seed", &seed)], vec![flow("a", "cubic", bps)], vec![queue("l", 1.0)])
            };
            bps.into_iter().enumerate().map(one).collect()
        };
        assert_eq!(
            observations(&summarise(&seeds([1_000, 1_000]))),
            ["Nothing in cubic is random: each of its 2 seeds gave the same run."]
        );
        assert_eq!(observations(&summarise(&seeds([1_000, 2_000]))), [""; 0]);
    }

    #[test]
    fn odd_runs_are_named_and_many_of_them_counted() {
        let mut runs: Vec<_> = (0..5)
            .map(|i| run(&[("n", &i.to_string())], vec![flow("a", "cubic", 0)], vec![queue("l", 1.0)]))
            .collect();
        runs.push(run(&[("n", "9")], vec![], vec![]));
        runs[0].events_not_kept = 1;
        assert_eq!(
            observations(&summarise(&runs)),
            [
                "No flow, so nothing was measured: dsl, 9.",
                "A flow delivered nothing while measured: cubic, 0; cubic, 1; cubic, 2; and 2 more.",
                "No link was reported, so there is no grade: dsl, 9.",
                "More events than record_events keeps; the others are only counted: cubic, 0.",
            ]
        );
    }
}
