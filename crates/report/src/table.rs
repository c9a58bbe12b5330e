//! Tables of typed columns: defined once, written as CSV, Parquet and JSON.

#[cfg(feature = "arrow")]
mod arrow;

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer};
use serde::Serialize;

use crate::numbers::Compact;

/// A table of typed columns, all equally long.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    name: &'static str,
    columns: Vec<TableColumn>,
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Name, with the unit at its end where there is one: `goodput_bps`.
    pub name: String,
    /// One value a row.
    pub values: Values,
}

/// The values of a column; none where a row has none.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Text.
    Text(Words),
    /// Counts.
    Count(Numbers<u64>),
    /// Measurements; all finite.
    Number(Numbers<f64>),
}

/// Numbers in the buffers that Arrow has for them, so that nothing copies them on the way to a file or a data frame.
#[derive(Debug, Clone)]
pub struct Numbers<T: ArrowNativeType> {
    values: ScalarBuffer<T>,
    /// The rows without a number; `None`: all rows have one.
    nulls: Option<NullBuffer>,
}

impl<T: ArrowNativeType> Numbers<T> {
    fn get(&self, row: usize) -> Option<T> {
        self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then(|| self.values[row])
    }
}

/// The number in the place of a missing value does not matter.
impl<T: ArrowNativeType> PartialEq for Numbers<T> {
    fn eq(&self, other: &Self) -> bool {
        let rows = self.values.len();
        rows == other.values.len() && (0..rows).all(|row| self.get(row) == other.get(row))
    }
}

impl<T: ArrowNativeType> From<Vec<T>> for Numbers<T> {
    fn from(values: Vec<T>) -> Self {
        Self { values: values.into(), nulls: None }
    }
}

impl<T: ArrowNativeType> FromIterator<Option<T>> for Numbers<T> {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(rows: I) -> Self {
        let (mut values, mut is_there) = (Vec::new(), Vec::new());
        for value in rows {
            is_there.push(value.is_some());
            values.push(value.unwrap_or_default());
        }
        let nulls = Some(NullBuffer::from(is_there)).filter(|nulls| nulls.null_count() > 0);
        Self { values: values.into(), nulls }
    }
}

/// Texts of which many are the same: each is kept once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words {
    words: Vec<Arc<str>>,
    /// The place of each row's word; [`Words::NONE`] where it has none.
    places: Vec<i32>,
}

impl Words {
    const NONE: i32 = -1;

    fn get(&self, row: usize) -> Option<&str> {
        usize::try_from(self.places[row]).ok().map(|place| &*self.words[place])
    }
}

/// Collects [`Words`].
#[derive(Debug, Default)]
pub(crate) struct WordsBuilder {
    words: Words,
    known: HashMap<Arc<str>, i32>,
}

impl WordsBuilder {
    /// Adds `word` for so many rows.
    pub(crate) fn push(&mut self, word: Option<Arc<str>>, rows: usize) {
        let place = word.map_or(Words::NONE, |word| self.place(word));
        self.words.places.extend(std::iter::repeat_n(place, rows));
    }

    fn place(&mut self, word: Arc<str>) -> i32 {
        // Most rows have the word of the row before.
        let last = self.words.places.last().copied().unwrap_or(Words::NONE);
        let is_last = |last: usize| Arc::ptr_eq(&self.words.words[last], &word);
        if usize::try_from(last).is_ok_and(is_last) {
            return last;
        }
        if let Some(place) = self.known.get(&word) {
            return *place;
        }
        let place = i32::try_from(self.words.words.len()).expect("a table has fewer words than 2^31");
        self.words.words.push(word.clone());
        self.known.insert(word, place);
        place
    }

    pub(crate) fn finish(self) -> Words {
        self.words
    }
}

/// Numbers of which those that are not finite are none.
pub(crate) fn finite(values: Vec<f64>) -> Numbers<f64> {
    if values.iter().all(|value| value.is_finite()) {
        return values.into();
    }
    let is_finite = BooleanBuffer::collect_bool(values.len(), |row| values[row].is_finite());
    Numbers { values: values.into(), nulls: Some(NullBuffer::new(is_finite)) }
}

/// One value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Count(u64),
    Number(f64),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Text(words) => words.places.len(),
            Self::Count(numbers) => numbers.values.len(),
            Self::Number(numbers) => numbers.values.len(),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<Value<'_>> {
        match self {
            Self::Text(words) => words.get(row).map(Value::Text),
            Self::Count(numbers) => numbers.get(row).map(Value::Count),
            Self::Number(numbers) => numbers.get(row).map(Value::Number),
        }
    }
}

impl Table {
    /// An empty table.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, columns: Vec::new() }
    }

    /// Name of the table, and of its file without the ending.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The columns of the table, in order.
    #[must_use]
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The number in a column; none where it has none, is text, or there is no such column.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn number(&self, column: &str, row: usize) -> Option<f64> {
        match self.values(column)?.get(row)? {
            Value::Count(count) => Some(count as f64),
            Value::Number(number) => Some(number),
            Value::Text(_) => None,
        }
    }

    /// The text in a column; none where it has none, is a number, or there is no such column.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn text(&self, column: &str, row: usize) -> Option<&str> {
        match self.values(column)?.get(row)? {
            Value::Text(text) => Some(text),
            Value::Count(_) | Value::Number(_) => None,
        }
    }

    fn values(&self, column: &str) -> Option<&Values> {
        self.columns.iter().find(|known| known.name == column).map(|column| &column.values)
    }

    /// Writes the rows as a list of JSON objects, their keys in the order of the columns: what a key of a document has.
    ///
    /// # Errors
    /// When `out` does not take them.
    pub(crate) fn write_json_rows(&self, out: &mut impl Write) -> io::Result<()> {
        let columns: Vec<_> = self.columns.iter().map(JsonColumn::new).collect();
        let mut line = vec![b'['];
        for row in 0..self.rows() {
            line.extend_from_slice(if row == 0 { b"\n    {" } else { b",\n    {" });
            for (nth, column) in columns.iter().enumerate() {
                line.extend_from_slice(if nth == 0 { b"\n" } else { b",\n" });
                column.write(row, &mut line);
            }
            line.extend_from_slice(b"\n    }");
            out.write_all(&line)?;
            line.clear();
        }
        line.extend_from_slice(if self.rows() == 0 { b"]" } else { b"\n  ]" });
        out.write_all(&line)
    }

    /// Adds a column.
    pub(crate) fn push(&mut self, name: impl Into<String>, values: Values) {
        debug_assert!(self.columns.is_empty() || values.len() == self.rows(), "columns are equally long");
        self.columns.push(TableColumn { name: name.into(), values });
    }
}

/// A column whose name and words are JSON already.
struct JsonColumn<'a> {
    /// The name as a key, with the text before it in a row.
    key: Vec<u8>,
    words: Vec<Vec<u8>>,
    values: &'a Values,
}

impl<'a> JsonColumn<'a> {
    fn new(column: &'a TableColumn) -> Self {
        let mut key = b"      ".to_vec();
        write_json(&mut key, &column.name);
        key.extend_from_slice(b": ");
        let words = match &column.values {
            Values::Text(words) => words.words.as_slice(),
            Values::Count(_) | Values::Number(_) => &[],
        };
        let in_json = |word: &Arc<str>| {
            let mut text = Vec::new();
            write_json(&mut text, &**word);
            text
        };
        Self { key, words: words.iter().map(in_json).collect(), values: &column.values }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        match self.values {
            Values::Text(words) => match usize::try_from(words.places[row]) {
                Ok(place) => out.extend_from_slice(&self.words[place]),
                Err(_) => out.extend_from_slice(b"null"),
            },
            Values::Count(counts) => write_json(out, &counts.get(row)),
            Values::Number(numbers) => write_json(out, &numbers.get(row).map(Compact)),
        }
    }
}

fn write_json(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("memory takes all that is written to it");
}

/// Builds the columns of a table from rows, so that each column is one line: its name and its value.
pub(crate) struct TableBuilder<'a, R> {
    table: Table,
    rows: &'a [R],
}

impl<'a, R> TableBuilder<'a, R> {
    pub(crate) fn new(name: &'static str, rows: &'a [R]) -> Self {
        Self { table: Table::new(name), rows }
    }

    pub(crate) fn text(&mut self, name: impl Into<String>, value: impl Fn(&R) -> Option<Arc<str>>) {
        let mut words = WordsBuilder::default();
        self.rows.iter().for_each(|row| words.push(value(row), 1));
        self.table.push(name, Values::Text(words.finish()));
    }

    pub(crate) fn count(&mut self, name: impl Into<String>, value: impl Fn(&R) -> Option<u64>) {
        self.table.push(name, Values::Count(self.rows.iter().map(value).collect()));
    }

    pub(crate) fn number(&mut self, name: impl Into<String>, value: impl Fn(&R) -> Option<f64>) {
        let values = self.rows.iter().map(|row| value(row).unwrap_or(f64::NAN)).collect();
        self.table.push(name, Values::Number(finite(values)));
    }

    pub(crate) fn build(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(table: &Table) -> String {
        let mut text = Vec::new();
        table.write_json_rows(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn json_rows_keep_the_order_of_columns_and_show_missing_values() {
        let mut builder = TableBuilder::new("t", &[1_u64, 2]);
        builder.text("zeta", |n| Some(Arc::from(format!("row {n}"))));
        builder.count("alpha", |n| (*n > 1).then_some(*n));
        builder.number("ratio", |n| Some(1.0 / (*n as f64 - 1.0)));
        let text = json(&builder.build());
        assert_eq!(
            text.split_whitespace().collect::<Vec<_>>().join(" "),
            r#"[ { "zeta": "row 1", "alpha": null, "ratio": null }, { "zeta": "row 2", "alpha": 2, "ratio": 1 } ]"#
        );
    }

    #[test]
    fn a_table_without_rows_is_an_empty_list() {
        let builder = TableBuilder::new("t", &[] as &[u64]);
        assert_eq!(json(&builder.build()), "[]");
    }
}
