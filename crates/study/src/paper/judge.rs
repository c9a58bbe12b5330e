//! Verdicts: what was measured against what the paper printed.

use std::collections::BTreeMap;

use suimon_report::{Estimate, Verdict, VerdictRow};

use super::claims::{Cell, Claim, Measure, Paper};
use super::columns::Results;
use super::measure::{Refusal, select, take, values_of};
use crate::error::StudyError;

/// The axis of a scenario's seeds.
const SEED: &str = "seed";

/// A row of the verdict, and whether it once held.
pub(super) struct Judged {
    pub(super) row: VerdictRow,
    pub(super) once_held: bool,
}

/// Judges every cell of `claim`. Without results none is tested; where `some_left_out`, those are not which have none.
pub(super) fn judge(
    paper: &Paper,
    claim: &Claim,
    results: Option<&Results<'_>>,
    some_left_out: bool,
) -> Result<Vec<Judged>, StudyError> {
    let mut before = None;
    let mut judged = Vec::new();
    for cell in &claim.cells {
        let refuse = |problem| paper.refuse(format!("claim \"{}\": {problem}", claim.claim));
        let has_run = |results: &&Results<'_>| !select(results.runs, &place(claim, cell)).is_empty();
        let results = results.filter(|results| !some_left_out || has_run(results));
        let measured =
            results.map(|results| measure(claim, cell, results, None)).transpose().map_err(refuse)?;
        let mut row = row(claim, cell, measured, before.map(|(_, mean)| mean));
        if let (Verdict::NotReproduced, Some(results)) = (row.verdict, results) {
            let singly = singly(claim, cell, before.map(|(cell, _)| cell), results).map_err(refuse)?;
            let why = [singly, cell.missed.clone()].into_iter().flatten().collect::<Vec<_>>().join(" ");
            row.cause = (!why.is_empty()).then_some(why);
        }
        judged.push(Judged { row, once_held: cell.missed.is_none() });
        before = measured.map(|estimate| (cell, estimate.mean));
    }
    Ok(judged)
}

/// The number of `cell`, of all seeds or of one.
fn measure(
    claim: &Claim,
    cell: &Cell,
    results: &Results<'_>,
    seed: Option<&str>,
) -> Result<Estimate, Refusal> {
    let mut at = place(claim, cell);
    at.extend(seed.map(|seed| (SEED.to_owned(), seed.to_owned())));
    let window = cell.window.as_ref().or(claim.measure.window.as_ref()).cloned();
    take(results, &at, &Measure { window, ..claim.measure.clone() })
}

/// Where in the matrix `cell` is measured.
fn place(claim: &Claim, cell: &Cell) -> BTreeMap<String, String> {
    let own = claim.axis.iter().cloned().zip(cell.at.iter().cloned());
    claim.at.clone().into_iter().chain(own).collect()
}

/// In how many single runs the claim holds: a paper may have had one.
fn singly(
    claim: &Claim,
    cell: &Cell,
    before: Option<&Cell>,
    results: &Results<'_>,
) -> Result<Option<String>, Refusal> {
    let seeds = values_of(&select(results.runs, &place(claim, cell)), SEED);
    let mut holds = 0;
    for seed in &seeds {
        let mean = |cell: &Cell| measure(claim, cell, results, Some(seed)).map(|estimate| estimate.mean);
        let before = before.map(mean).transpose()?;
        holds += usize::from(verdict(cell, Some(mean(cell)?), before) == Verdict::Reproduced);
    }
    Ok((seeds.len() > 1).then(|| format!("Holds in {holds} of {} single seeds.", seeds.len())))
}

fn row(claim: &Claim, cell: &Cell, measured: Option<Estimate>, before: Option<f64>) -> VerdictRow {
    let with_unit = |number: f64| format!("{number:.*}{}", claim.digits, claim.unit);
    let shown = |Estimate { mean, half_width }| match half_width {
        None => with_unit(mean),
        Some(half) => format!("{mean:.*} ± {}", claim.digits, with_unit(half)),
    };
    let paper = match &cell.paper {
        None => "-".to_owned(),
        Some(toml::Value::String(words)) => words.clone(),
        Some(_) => cell.expected().map_or_else(String::new, with_unit),
    };
    VerdictRow {
        claim: [Some(&claim.claim), cell.at.as_ref(), cell.window.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
        paper,
        tolerance: tolerance(claim, cell),
        measured: measured.map_or_else(|| "-".to_owned(), shown),
        verdict: verdict(cell, measured.map(|estimate| estimate.mean), before),
        basis: cell.is_judged().then(|| claim.basis_of(cell)),
        cause: None,
    }
}

fn tolerance(claim: &Claim, cell: &Cell) -> String {
    let unit = &claim.unit;
    let mut parts = Vec::new();
    if let Some(within) = cell.within {
        parts.push(format!("± {within}{unit}"));
    }
    if let Some(percent) = cell.within_percent {
        parts.push(format!("± {percent} %"));
    }
    if let Some(bound) = cell.at_least {
        parts.push(format!("≥ {bound}{unit}"));
    }
    if let Some(bound) = cell.at_most {
        parts.push(format!("≤ {bound}{unit}"));
    }
    if cell.more_than_before {
        parts.push("more than in the row above".to_owned());
    }
    let around = cell.reference.map(|reference| format!("{reference:.*}{unit} ", claim.digits));
    let bounds = if parts.is_empty() { "-".to_owned() } else { parts.join(", ") };
    around.unwrap_or_default() + &bounds
}

fn verdict(cell: &Cell, measured: Option<f64>, before: Option<f64>) -> Verdict {
    let Some(measured) = measured else { return Verdict::NotTested };
    let off = cell.expected().map(|expected| ((measured - expected).abs(), expected.abs()));
    let mut tests = vec![
        cell.within.and_then(|within| off.map(|(off, _)| off <= within)),
        cell.within_percent.and_then(|percent| off.map(|(off, expected)| off <= expected * percent / 100.0)),
        cell.at_least.map(|bound| measured >= bound),
        cell.at_most.map(|bound| measured <= bound),
    ];
    if cell.more_than_before {
        tests.push(Some(before.is_some_and(|before| measured > before)));
    }
    let tests: Vec<bool> = tests.into_iter().flatten().collect();
    match tests.as_slice() {
        [] => Verdict::Shown,
        tests if tests.iter().all(|passed| *passed) => Verdict::Reproduced,
        _ => Verdict::NotReproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> Cell {
        toml::from_str(text).expect("a cell of a test reads")
    }

    #[test]
    fn a_number_is_reproduced_up_to_its_tolerance_and_no_further() {
        let cell = cell("paper = 65\nwithin = 1");
        assert_eq!(verdict(&cell, Some(66.0), None), Verdict::Reproduced);
        assert_eq!(verdict(&cell, Some(66.1), None), Verdict::NotReproduced);
        assert_eq!(verdict(&cell, None, None), Verdict::NotTested);
    }

    #[test]
    fn all_bounds_must_hold() {
        let cell = cell("paper = 13\nat_least = 12\nat_most = 18");
        assert_eq!(verdict(&cell, Some(18.0), None), Verdict::Reproduced);
        assert_eq!(verdict(&cell, Some(11.9), None), Verdict::NotReproduced);
        assert_eq!(verdict(&cell, Some(18.1), None), Verdict::NotReproduced);
    }

    #[test]
    fn without_a_tolerance_a_number_is_only_shown() {
        assert_eq!(verdict(&cell("paper = 28"), Some(34.0), None), Verdict::Shown);
    }

    #[test]
    fn an_order_is_tested_against_the_row_above() {
        let cell = cell("paper = \"more\"\nmore_than_before = true");
        assert_eq!(verdict(&cell, Some(2.0), Some(1.0)), Verdict::Reproduced);
        assert_eq!(verdict(&cell, Some(1.0), Some(1.0)), Verdict::NotReproduced);
        assert_eq!(verdict(&cell, Some(1.0), None), Verdict::NotReproduced);
    }
}
