//! Tables of text that a page shows as they are.

use serde::Serialize;

/// A table of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextTable {
    /// Heading.
    pub title: String,
    /// Headings of the columns, the row's name first.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<TextRow>,
}

/// A row of a [`TextTable`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextRow {
    /// A cell a column.
    pub cells: Vec<String>,
    /// Whether the row is shown in grey, since its numbers are not to be used.
    pub muted: bool,
}
