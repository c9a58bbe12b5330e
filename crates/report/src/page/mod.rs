//! One HTML page that holds everything: results, charts, verdicts, and their origin.
//!
//! The page needs no network and no other file. Everything that came from outside (names, commands,
//! texts) goes in as data, never as markup.

mod data;
mod downsample;
mod figure;
mod over_axis;
mod panels;
mod template;
mod text_table;

use std::path::Path;

pub use figure::{
    Axis, Figure, FigureSeries, Point, Scale, SeriesStyle, Unit, delay_distribution,
    throughput_against_backlog,
};
use suimon_results::RunResult;
pub use text_table::{TextRow, TextTable};

use crate::advice::Advice;
use crate::error::ReportError;
use crate::header::ReportHeader;
use crate::heat_map::HeatMap;
use crate::topology::Topology;
use crate::verdict::VerdictTable;

/// The contents of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The origin of the results.
    pub header: &'a ReportHeader,
    /// The runs. Table, grades, charts over time and throughput against backlog follow from them.
    pub runs: &'a [RunResult],
    /// One sentence for the top of the page; where it is empty, one that follows from the runs.
    pub lead: String,
    /// The network, where it is drawn.
    pub topology: Option<Topology>,
    /// Changes that were tried, best first; shown before the results.
    pub advice: Vec<Advice>,
    /// Further charts, in order.
    pub figures: Vec<Figure>,
    /// The verdicts on a paper's claims; shown before the results.
    pub verdicts: Vec<VerdictTable>,
    /// Grids of numbers, shown behind the claims.
    pub heat_maps: Vec<HeatMap>,
    /// Further tables, in order.
    pub tables: Vec<TextTable>,
    /// Sentences that a reader should know, shown after the results.
    pub notes: Vec<String>,
}

impl<'a> Page<'a> {
    /// A page with the views that follow from `runs`, and nothing else yet.
    #[must_use]
    pub fn new(header: &'a ReportHeader, runs: &'a [RunResult]) -> Self {
        Self {
            header,
            runs,
            lead: String::new(),
            topology: None,
            advice: Vec::new(),
            figures: Vec::new(),
            verdicts: Vec::new(),
            heat_maps: Vec::new(),
            tables: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The page as HTML: the same bytes for the same results.
    #[must_use]
    pub fn render(&self) -> String {
        template::fill(&self.header.title, &data::json(self))
    }

    /// Writes the page to `path`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        std::fs::write(path, self.render()).map_err(ReportError::file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;

    fn page(title: &str) -> String {
        let mut runs = comparison();
        runs[0].labels[0].1 = "</script><script>alert(1)</script>".to_owned();
        let header = ReportHeader { title: title.to_owned(), ..ReportHeader::default() };
        Page::new(&header, &runs).render()
    }

    #[test]
    fn the_page_asks_for_nothing_outside_itself() {
        let html = page("Comparison");
        for outside in ["src=", "<link", "@import", "url(", "fetch("] {
            assert!(!html.contains(outside), "{outside}");
        }
    }

    #[test]
    fn names_cannot_become_markup() {
        let html = page("<b>{{data}} & more</b>");
        assert!(html.contains("<title>&lt;b&gt;{{data}} &amp; more&lt;/b&gt;</title>"));
        assert!(!html.contains("<script>alert"));
        assert!(html.contains(r"\u003c/script>"));
        assert_eq!(html.matches("</script>").count(), 3, "data, library and page are the only scripts");
    }

    #[test]
    fn the_same_results_give_the_same_page() {
        assert_eq!(page("Comparison"), page("Comparison"));
    }

    #[test]
    fn the_library_comes_with_its_licence() {
        assert!(page("Comparison").contains("Permission is hereby granted, free of charge"));
    }

    #[test]
    fn an_error_names_the_page_that_could_not_be_written() {
        let header = ReportHeader::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("report.html");
        let error = Page::new(&header, &[]).write(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
    }
}
