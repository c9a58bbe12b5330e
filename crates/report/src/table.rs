//! Tables of typed columns: defined once, written as CSV, Parquet and JSON.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

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

/// The values of a column; `None` where a row has none.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Text.
    Text(Vec<Option<Arc<str>>>),
    /// Counts.
    Count(Vec<Option<u64>>),
    /// Measurements; all finite.
    Number(Vec<Option<f64>>),
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
            Self::Text(values) => values.len(),
            Self::Count(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<Value<'_>> {
        match self {
            Self::Text(values) => values[row].as_deref().map(Value::Text),
            Self::Count(values) => values[row].map(Value::Count),
            Self::Number(values) => values[row].map(Value::Number),
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

    /// Its columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The table in Arrow's form.
    #[must_use]
    pub fn record_batch(&self) -> RecordBatch {
        let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
        for column in &self.columns {
            let (kind, array): (DataType, ArrayRef) = match &column.values {
                Values::Text(values) => {
                    (DataType::Utf8, Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()))
                }
                Values::Count(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values.clone()))),
                Values::Number(values) => (DataType::Float64, Arc::new(Float64Array::from(values.clone()))),
            };
            fields.push(Field::new(&column.name, kind, true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns are equally long")
    }

    /// Adds a column.
    pub(crate) fn push(&mut self, name: impl Into<String>, values: Values) {
        debug_assert!(self.columns.is_empty() || values.len() == self.rows(), "columns are equally long");
        self.columns.push(TableColumn { name: name.into(), values });
    }
}

/// Rows of a table as JSON objects, their keys in the order of the columns.
pub(crate) struct JsonRows<'a>(pub(crate) &'a Table);

impl Serialize for JsonRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.rows()))?;
        for row in 0..self.0.rows() {
            rows.serialize_element(&JsonRow { table: self.0, row })?;
        }
        rows.end()
    }
}

struct JsonRow<'a> {
    table: &'a Table,
    row: usize,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.table.columns.len()))?;
        for column in &self.table.columns {
            map.serialize_key(&column.name)?;
            match column.values.get(self.row) {
                None => map.serialize_value(&())?,
                Some(Value::Text(text)) => map.serialize_value(text)?,
                Some(Value::Count(count)) => map.serialize_value(&count)?,
                Some(Value::Number(number)) => map.serialize_value(&Compact(number))?,
            }
        }
        map.end()
    }
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
        self.table.push(name, Values::Text(self.rows.iter().map(value).collect()));
    }

    pub(crate) fn count(&mut self, name: impl Into<String>, value: impl Fn(&R) -> Option<u64>) {
        self.table.push(name, Values::Count(self.rows.iter().map(value).collect()));
    }

    pub(crate) fn number(&mut self, name: impl Into<String>, value: impl Fn(&R) -> Option<f64>) {
        let finite = |row| value(row).filter(|number| number.is_finite());
        self.table.push(name, Values::Number(self.rows.iter().map(finite).collect()));
    }

    pub(crate) fn build(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_rows_keep_the_order_of_columns_and_show_missing_values() {
        let mut builder = TableBuilder::new("t", &[1_u64, 2]);
        builder.text("zeta", |n| Some(Arc::from(format!("row {n}"))));
        builder.count("alpha", |n| (*n > 1).then_some(*n));
        builder.number("ratio", |n| Some(1.0 / (*n as f64 - 1.0)));
        let text = serde_json::to_string(&JsonRows(&builder.build())).unwrap();
        assert_eq!(
            text,
            r#"[{"zeta":"row 1","alpha":null,"ratio":null},{"zeta":"row 2","alpha":2,"ratio":1}]"#
        );
    }

    #[test]
    fn a_table_without_rows_is_an_empty_list() {
        let builder = TableBuilder::new("t", &[] as &[u64]);
        assert_eq!(serde_json::to_string(&JsonRows(&builder.build())).unwrap(), "[]");
    }
}
