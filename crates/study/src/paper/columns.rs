//! Numbers of runs by table and column: those that the files of a report have, in a unit of choice.

use std::cell::OnceCell;
use std::ops::Range;

use suimon_report::{Table, Tables, Unit};
use suimon_results::RunResult;

use super::claims::{Fold, Measure};
use super::estimation;
use super::measure::Refusal;

/// The tables that a measure may name: those with a row for a thing, not for a sample or an event.
const TABLES: [&str; 6] = ["runs", "flows", "aggregates", "queues", "windows", "emulated"];

/// The runs of an experiment and their tables, each made when it is first asked for.
pub(super) struct Results<'a> {
    pub(super) runs: &'a [RunResult],
    sheets: [OnceCell<Sheet>; TABLES.len()],
}

/// A table, and which of its rows are about each run.
struct Sheet {
    table: Table,
    rows: Vec<Range<usize>>,
}

impl Sheet {
    fn new(runs: &[RunResult], name: &str) -> Self {
        let table = Tables::only(runs, name);
        let mut rows = vec![0..0; runs.len()];
        for row in 0..table.rows() {
            let run = table.number("run", row).map_or(0, |run| run as usize - 1);
            if rows[run].is_empty() {
                rows[run] = row..row;
            }
            rows[run].end = row + 1;
        }
        Self { table, rows }
    }
}

impl<'a> Results<'a> {
    pub(super) fn new(runs: &'a [RunResult]) -> Self {
        Self { runs, sheets: Default::default() }
    }

    /// What `measure` is of, for the run at `position`: of the flows with an algorithm where one is given, in a window
    /// where one is given.
    pub(super) fn quantity(
        &self,
        position: usize,
        measure: &Measure,
        algorithm: Option<&str>,
        window: Option<&str>,
    ) -> Result<f64, Refusal> {
        let Some((name, column)) = measure.of.split_once('.') else {
            return estimation::quantity(&self.runs[position], measure, window);
        };
        let Some(place) = TABLES.iter().position(|table| *table == name) else {
            return Err(format!("unknown table \"{name}\"; accepted: {}", TABLES.join(", ")));
        };
        let sheet = self.sheets[place].get_or_init(|| Sheet::new(self.runs, name));
        let columns = [Some(column), measure.minus.as_deref()];
        for column in columns.into_iter().flatten() {
            check_column(&sheet.table, column)?;
        }
        let rows = rows(sheet, position, measure, algorithm, window)?;
        let value = |row: usize| {
            let number = |column: &str| sheet.table.number(column, row).unwrap_or(f64::NAN);
            number(column) - measure.minus.as_deref().map_or(0.0, number)
        };
        let sum: f64 = rows.iter().map(|row| value(*row)).sum();
        let folded = match measure.rows {
            Some(Fold::Sum) => sum,
            _ => sum / rows.len() as f64,
        };
        in_unit(folded, column, measure.unit.as_deref())
    }
}

/// Refuses a column that the table does not have, or that has no number in any row.
fn check_column(table: &Table, column: &str) -> Result<(), Refusal> {
    let name = table.name();
    if !table.columns().iter().any(|known| known.name == column) {
        let known: Vec<_> = table.columns().iter().map(|column| column.name.as_str()).collect();
        return Err(format!("unknown column \"{column}\" of {name}; accepted: {}", known.join(", ")));
    }
    if (0..table.rows()).all(|row| table.number(column, row).is_none()) {
        return Err(format!("\"{name}.{column}\" has no number in any run of this experiment"));
    }
    Ok(())
}

/// The rows about the run that are measured: those of some flows, or else a single one.
fn rows(
    sheet: &Sheet,
    position: usize,
    measure: &Measure,
    algorithm: Option<&str>,
    window: Option<&str>,
) -> Result<Vec<usize>, Refusal> {
    let (table, name) = (&sheet.table, sheet.table.name());
    for (key, is_given, goes_with) in [
        ("flows", algorithm.is_some(), &["flows"][..]),
        ("group", measure.group.is_some(), &["flows"]),
        ("window", window.is_some(), &["windows"]),
        ("link", measure.link.is_some(), &["windows", "queues", "emulated"]),
        ("rows", measure.rows.is_some(), &["flows"]),
    ] {
        if is_given && !goes_with.contains(&name) {
            return Err(format!(
                "\"{key}\" does not go with {name}; accepted: with {}",
                goes_with.join(", ")
            ));
        }
    }
    let is = |row: usize, column: &str, wanted: Option<&str>| {
        wanted.is_none_or(|wanted| table.text(column, row) == Some(wanted))
    };
    let is_of = |row: usize| {
        algorithm
            .is_none_or(|name| table.text("algorithm", row).and_then(|of| of.split(':').next()) == Some(name))
    };
    let is_in = |row: usize| {
        let named = |group| table.text("flow", row).is_some_and(|flow| estimation::is_of_group(flow, group));
        measure.group.as_deref().is_none_or(named)
    };
    let all = sheet.rows[position].clone();
    let link = measure.link.as_deref();
    let rows: Vec<_> = all
        .clone()
        .filter(|row| is(*row, "window", window) && is(*row, "link", link) && is_of(*row) && is_in(*row))
        .collect();
    let known = || {
        let texts = |row| ["window", "link", "algorithm"].map(|column| table.text(column, row).unwrap_or(""));
        let known: Vec<_> = all.clone().map(|row| texts(row).join(" ").trim().to_owned()).collect();
        known.join(", ")
    };
    match rows.as_slice() {
        [] => Err(format!("no row of {name} is of that; accepted: {}", known())),
        [_, _, ..] if name != "flows" => {
            Err(format!("several rows of {name} are of that; accepted: {}", known()))
        }
        _ => Ok(rows),
    }
}

/// `value` of `column` in `unit`, or in the unit of the column's name.
fn in_unit(value: f64, column: &str, unit: Option<&str>) -> Result<f64, Refusal> {
    Ok(match (Unit::of_column(column), unit) {
        (_, None) => value,
        (Unit::BitsPerSecond, Some("kbit/s")) | (Unit::Bytes, Some("kB")) => value / 1e3,
        (Unit::BitsPerSecond, Some("Mbit/s")) | (Unit::Bytes, Some("MB")) => value / 1e6,
        (Unit::Other(_), Some("%")) => 100.0 * value,
        (own, Some(unit)) => {
            let accepted = match own {
                Unit::BitsPerSecond => "kbit/s, Mbit/s",
                Unit::Bytes => "kB, MB",
                Unit::Other(_) => "%",
                Unit::Packets | Unit::Milliseconds | Unit::Seconds => "none",
            };
            return Err(format!("\"{column}\" is not told in {unit}; accepted: {accepted}"));
        }
    })
}
