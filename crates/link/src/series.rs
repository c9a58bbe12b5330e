//! Samples over time, as they are taken.

use suimon_algorithms::Probe;
use suimon_results::{Column, Series};
use suimon_units::Instant;

/// A series under construction: every sample adds a value to each column.
#[derive(Debug)]
pub struct SeriesBuilder {
    series: Series,
}

impl SeriesBuilder {
    /// The series of `subject`, empty.
    #[must_use]
    pub fn new(subject: &str) -> Self {
        Self { series: Series { subject: subject.to_owned(), times: Vec::new(), columns: Vec::new() } }
    }

    /// Starts the sample of `now`; the values follow.
    pub fn begin(&mut self, now: Instant) {
        self.series.times.push(now);
    }

    /// The series.
    #[must_use]
    pub fn finish(mut self) -> Series {
        self.pad(self.series.times.len());
        self.series
    }

    fn pad(&mut self, len: usize) {
        for column in &mut self.series.columns {
            column.values.resize(len, f64::NAN);
        }
    }
}

impl Probe for SeriesBuilder {
    fn value(&mut self, name: &'static str, value: f64) {
        let rows = self.series.times.len();
        let position = self.series.columns.iter().position(|column| column.name == name);
        let column = match position {
            Some(position) => &mut self.series.columns[position],
            None => {
                self.series.columns.push(Column { name: name.to_owned(), values: Vec::new() });
                self.series.columns.last_mut().expect("a column was just added")
            }
        };
        // A value that was not told in earlier samples has none there.
        column.values.resize(rows.saturating_sub(1), f64::NAN);
        column.values.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_comes_late_or_stops_early_has_gaps_there() {
        let mut builder = SeriesBuilder::new("x");
        builder.begin(Instant::from_nanos(1));
        builder.value("a", 1.0);
        builder.begin(Instant::from_nanos(2));
        builder.value("b", 2.0);
        let series = builder.finish();
        let column = |index: usize| series.columns[index].values.clone();
        assert_eq!(column(0)[0], 1.0);
        assert!(column(0)[1].is_nan() && column(1)[0].is_nan());
        assert_eq!(column(1)[1], 2.0);
    }
}
