//! A paper's heat maps, of what was measured here.

use std::collections::BTreeMap;

use suimon_report::{Heat, HeatMap};

use super::Outcome;
use super::claims::{HeatMapSpec, Paper};
use super::columns::Results;
use super::measure::{Refusal, label, select, take, values_of};
use crate::error::StudyError;

/// Those of all experiments that were run.
pub(super) fn draw(paper: &Paper, outcomes: &[Outcome<'_>]) -> Result<Vec<HeatMap>, StudyError> {
    let mut maps = Vec::new();
    for spec in &paper.heat_maps {
        let outcome = outcomes.iter().find(|outcome| outcome.experiment.name == spec.experiment);
        if let Some(Ok(runs)) = outcome.map(|outcome| &outcome.results) {
            let results = Results::new(runs);
            for of in &spec.of {
                let map = map(spec, of, &results);
                maps.push(
                    map.map_err(|problem| paper.refuse(format!("heat map \"{}\": {problem}", spec.title)))?,
                );
            }
        }
    }
    Ok(maps)
}

/// The map of runs in which the axis of the maps is `of`.
fn map(spec: &HeatMapSpec, of: &str, results: &Results<'_>) -> Result<HeatMap, Refusal> {
    let place = BTreeMap::from([(spec.maps.clone(), of.to_owned())]);
    let chosen = select(results.runs, &place);
    let columns = values_of(&chosen, &spec.columns);
    let mut rows: Vec<BTreeMap<String, String>> = Vec::new();
    for run in &chosen {
        let axes = spec.rows.iter().filter_map(|axis| Some((axis.clone(), label(run, axis)?.to_owned())));
        let row: BTreeMap<_, _> = axes.collect();
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let heats = |row: &BTreeMap<String, String>| {
        let heat = |column: &String| {
            let mut at = place.clone();
            at.extend(row.clone());
            at.insert(spec.columns.clone(), column.clone());
            let value = take(results, &at, &spec.measure)?.mean;
            Ok(Some(Heat::between(value, spec.range)))
        };
        let name = spec.rows.iter().filter_map(|axis| row.get(axis).map(String::as_str));
        let heats = columns.iter().map(heat).collect::<Result<Vec<_>, Refusal>>()?;
        Ok((name.collect::<Vec<_>>().join(", "), heats))
    };
    Ok(HeatMap {
        group: spec.title.clone(),
        title: of.to_owned(),
        caption: spec.caption.clone(),
        rows: rows.iter().map(heats).collect::<Result<_, Refusal>>()?,
        columns,
    })
}
