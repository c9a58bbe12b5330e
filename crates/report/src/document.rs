//! JSON documents with tables in them.

use std::io::{self, Write};

use serde::Serialize;

use crate::table::Table;

/// A JSON document, written key by key in `serde_json`'s layout for readers.
///
/// Tables may have millions of rows. Their names and words are put into JSON once and not row by row, and no table is
/// held as text.
#[derive(Debug)]
pub(crate) struct JsonDocument<W> {
    into: W,
    is_empty: bool,
}

impl<W: Write> JsonDocument<W> {
    pub(crate) fn new(mut into: W) -> io::Result<Self> {
        into.write_all(b"{")?;
        Ok(Self { into, is_empty: true })
    }

    fn key(&mut self, name: &str) -> io::Result<()> {
        let before: &[u8] = if self.is_empty { b"\n  \"" } else { b",\n  \"" };
        self.is_empty = false;
        self.into.write_all(before)?;
        self.into.write_all(name.as_bytes())?;
        self.into.write_all(b"\": ")
    }

    /// Adds a value; a `name` needs no escapes.
    pub(crate) fn value(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.key(name)?;
        let value = serde_json::to_string_pretty(value);
        let value = value.expect("a report has text keys, so it always serialises");
        // In JSON a text has no line breaks of its own.
        self.into.write_all(value.replace('\n', "\n  ").as_bytes())
    }

    /// Adds the rows of a table as objects, their keys in the order of the columns.
    pub(crate) fn rows(&mut self, name: &str, table: &Table) -> io::Result<()> {
        self.key(name)?;
        table.write_json_rows(&mut self.into)
    }

    /// Ends the document with a line break.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.into.write_all(b"\n}\n")?;
        self.into.flush()
    }
}

/// What `write` writes, as text.
pub(crate) fn text_of(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut text = Vec::new();
    write(&mut text).expect("memory takes all that is written to it");
    String::from_utf8(text).expect("JSON is text")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::table::TableBuilder;

    #[test]
    fn a_document_has_the_layout_of_serde_json() {
        let mut builder = TableBuilder::new("t", &[1_u64, 2]);
        builder.text("a \"b\"", |n| (*n > 1).then(|| "two\nlines".into()));
        builder.number("ratio", |n| Some(1.0 / (*n as f64 - 1.0)));
        builder.count("whole", |n| Some(*n));
        let empty = TableBuilder::new("none", &[] as &[u64]).build();
        let text = text_of(|into| {
            let mut document = JsonDocument::new(into)?;
            document.value("header", &json!({ "list": [1, { "deep": "x\ny" }], "none": [] }))?;
            document.rows("rows", &builder.build())?;
            document.rows("no_rows", &empty)?;
            document.value("last", &0.5)?;
            document.finish()
        });
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rows"][1], json!({ "a \"b\"": "two\nlines", "ratio": 1, "whole": 2 }));
        // Values keep their keys sorted, as they are here but for the order of the four.
        let mut same = String::from("{\n");
        for (nth, name) in ["header", "rows", "no_rows", "last"].into_iter().enumerate() {
            let part = serde_json::to_string_pretty(&value[name]).unwrap().replace('\n', "\n  ");
            same += &format!("  \"{name}\": {part}{}\n", if nth < 3 { "," } else { "" });
        }
        assert_eq!(text, same + "}\n");
    }
}
