//! What a study has found out, and its files.

use std::path::{Path, PathBuf};

use suimon_report::{
    Advice, Figure, HeatMap, Page, ReportError, ReportHeader, Table, Tables, Topology, VerdictTable,
    write_csv,
};
use suimon_results::RunResult;

/// What was found out.
#[derive(Debug, Clone)]
pub struct Findings {
    /// What made them.
    pub header: ReportHeader,
    /// Short name, for a folder.
    pub name: String,
    /// The runs, in order.
    pub runs: Vec<RunResult>,
    /// The network of the runs, where it can be drawn.
    pub topology: Option<Topology>,
    /// What runs came to in two worlds, where they were run in both.
    pub worlds: Option<VerdictTable>,
    /// What became of a paper's claims.
    pub verdicts: Vec<VerdictTable>,
    /// Changes that were tried, best first; `None` where none was.
    pub advice: Option<Vec<Advice>>,
    /// Charts beside those that follow from the runs.
    pub figures: Vec<Figure>,
    /// Grids of numbers.
    pub heat_maps: Vec<HeatMap>,
    /// Sentences that a reader should know.
    pub notes: Vec<String>,
}

impl Findings {
    /// `runs` and what made them, and nothing else.
    #[must_use]
    pub fn new(header: ReportHeader, name: &str, runs: Vec<RunResult>) -> Self {
        let name = name.to_owned();
        Self {
            header,
            name,
            runs,
            topology: None,
            worlds: None,
            verdicts: Vec::new(),
            advice: None,
            figures: Vec::new(),
            heat_maps: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The page that shows them.
    #[must_use]
    pub fn page(&self) -> Page<'_> {
        // The verdicts on a paper speak of hundreds of runs, which are in the tables.
        let shown = if self.verdicts.is_empty() { self.runs.as_slice() } else { &[] };
        let mut page = Page::new(&self.header, shown);
        page.advice = self.advice.clone().unwrap_or_default();
        page.topology.clone_from(&self.topology);
        page.figures.clone_from(&self.figures);
        page.heat_maps.clone_from(&self.heat_maps);
        page.verdicts = self.worlds.iter().chain(&self.verdicts).cloned().collect();
        page.notes.clone_from(&self.notes);
        page
    }

    /// Writes tables and page into `folder`, which is made if missing; gives the page's path.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ReportError> {
        write_tables(folder, &self.header, &Tables::new(&self.runs))?;
        let report = folder.join("report.html");
        self.page().write(&report)?;
        Ok(report)
    }
}

/// Writes tables in each form that programs read.
///
/// # Errors
/// When a file cannot be written.
pub fn write_tables<'a>(
    folder: &Path,
    header: &ReportHeader,
    tables: impl IntoIterator<Item = &'a Table> + Copy,
) -> Result<(), ReportError> {
    write_csv(folder, tables)?;
    #[cfg(feature = "parquet")]
    suimon_report::write_parquet(folder, header, tables)?;
    // CSV has no place for it.
    #[cfg(not(feature = "parquet"))]
    let _ = header;
    Ok(())
}

/// A word as a shell takes it for one.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !"\"'$&|;<>*?()#\\`[]{}~!".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_read_otherwise_is_quoted() {
        for plain in ["--cc", "reno,cubic", "flow.main.cc=fs-at+cubic", "10.1.0.0/16", "30,50@100s"] {
            assert_eq!(quoted(plain), plain);
        }
        for word in ["2Mbit 180ms", "a;b", "link.*.rate", "`id`", "~/x", "{a,b}", "a\\b", ""] {
            assert_eq!(quoted(word), format!("'{word}'"));
        }
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
