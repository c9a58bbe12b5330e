//! Results as tables for a terminal.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
};
use suimon_results::RunResult;

use crate::grade::Grade;
use crate::header::ReportHeader;
use crate::observations::observations;
use crate::results_table::{ResultColumn, ResultRow, ResultTable, Section};
use crate::sentence::sentence;
use crate::summary::{RunSummary, groups_of_seeds, summarise};
use crate::verdict::{Verdict, VerdictTable};

/// Options of the drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Whether to colour; the caller knows whether this goes to a terminal, and the value of `NO_COLOR`.
    pub colour: bool,
    /// Columns of the terminal.
    pub width: u16,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

/// More runs than this get one compact table.
const DETAILED_RUNS: usize = 40;
/// Rows beyond this are left to the files.
const MAX_ROWS: usize = 400;

/// The results for a terminal: a sentence, the tables, and how the grade is defined.
#[must_use]
pub fn terminal(header: &ReportHeader, runs: &[RunResult], options: TerminalOptions) -> String {
    let summaries = summarise(runs);
    let results = ResultTable::new(&summaries);
    let essential = |column: &ResultColumn| column.essential;
    let latency = |column: &ResultColumn| column.section == Section::Latency;
    let cost = |column: &ResultColumn| column.section == Section::Cost;
    let streams = |column: &ResultColumn| column.section == Section::Streams;
    let mut blocks = Vec::new();
    if !header.title.is_empty() {
        blocks.push(header.title.clone());
    }
    let applications = |column: &ResultColumn| column.section == Section::Applications;
    let has_call = results.columns.iter().any(applications);
    let has_intervals = groups_of_seeds(&summaries).is_some();
    if has_call {
        // Where each number has its interval, only so many fit a terminal.
        let few = |column: &ResultColumn| ["p95", "lost", "median"].contains(&column.detail);
        let shown = |column: &ResultColumn| {
            (applications(column) && (!has_intervals || few(column))) || column.title == "Goodput"
        };
        blocks.push(draw(&results, &shown, true, options));
    } else if has_intervals || summaries.len() > DETAILED_RUNS {
        blocks.push(draw(&results, &essential, true, options));
    } else {
        blocks.push(draw(&results, &latency, true, options));
        if results.columns.iter().any(streams) {
            blocks.push(draw(&results, &streams, false, options));
        }
        blocks.push(draw(&results, &cost, false, options));
    }
    blocks.extend(windows(&summaries, options));
    if results.rows.len() > MAX_ROWS {
        blocks.push(format!("{} more rows are in the files only.", results.rows.len() - MAX_ROWS));
    }
    if summaries.iter().any(|summary| summary.grade.is_some()) {
        let legend = if has_call { Grade::legend_of_calls() } else { Grade::legend() };
        blocks.push(wrapped(&legend, options.width));
    }
    blocks
        .extend(observations(&summaries).iter().map(|note| wrapped(&format!("Note: {note}"), options.width)));
    blocks.push(wrapped(&sentence(&summaries), options.width));
    blocks.join("\n\n") + "\n"
}

/// The queues in the scenario's windows; nothing where it has none, or too many rows to read.
fn windows(summaries: &[RunSummary<'_>], options: TerminalOptions) -> Option<String> {
    let count: usize = summaries.iter().map(|summary| summary.run.windows.len()).sum();
    if count == 0 || count > MAX_ROWS {
        return None;
    }
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut table = blank(options);
    let headings = [
        "Window\nlink",
        "Backlog\nmean\nkB",
        "COV\n\n",
        "min\n\nkB",
        "max\n\nkB",
        "Overflow\n\npackets",
        "Dropped\nearly\npackets",
        "Marked\n\npackets",
        "Goodput\n\nMbit/s",
        "COV\n\n",
    ];
    let headings = headings.iter().map(|heading| right((*heading).to_owned()));
    table.set_header(std::iter::once(Cell::new("Run")).chain(headings));
    for summary in summaries {
        for window in &summary.run.windows {
            let kilobytes = |bytes: f64| right(format!("{:.1}", bytes / 1e3));
            table.add_row([
                Cell::new(&summary.name),
                right(format!("{} {}", window.window, window.link)),
                kilobytes(window.backlog_mean_bytes),
                right(format!("{:.3}", window.backlog_cov)),
                kilobytes(window.backlog_min_bytes.as_f64()),
                kilobytes(window.backlog_max_bytes.as_f64()),
                right(window.dropped_overflow.to_string()),
                right(window.dropped_early.to_string()),
                right(window.marked.to_string()),
                right(format!("{:.3}", window.goodput.as_bps_f64() / 1e6)),
                right(format!("{:.4}", window.goodput_cov)),
            ]);
        }
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
        if column.index > 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    Some(trimmed(&table))
}

/// The results as a LaTeX table, whose rules are those of the package `booktabs`.
#[must_use]
pub fn latex(header: &ReportHeader, runs: &[RunResult]) -> String {
    let escaped = |text: &str| {
        let escape = |c: char| match c {
            '%' | '&' | '_' | '#' | '$' | '{' | '}' => format!("\\{c}"),
            '±' => "$\\pm$".to_owned(),
            '–' => "--".to_owned(),
            '×' => "$\\times$".to_owned(),
            c => c.to_string(),
        };
        text.chars().map(escape).collect::<String>()
    };
    let summaries = summarise(runs);
    let results = ResultTable::new(&summaries);
    let of_call = results.columns.iter().any(|column| column.section == Section::Applications);
    let is_shown = |column: &ResultColumn| {
        let own = if of_call { Section::Applications } else { Section::Latency };
        column.section == own || column.title == "Goodput"
    };
    let shown: Vec<usize> =
        (0..results.columns.len()).filter(|nth| is_shown(&results.columns[*nth])).collect();
    let heading = shown.iter().map(|nth| {
        let ResultColumn { title, detail, unit, .. } = &results.columns[*nth];
        let words = [*title, *detail, *unit];
        escaped(&words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    });
    let line = |first: String, cells: Vec<String>, grade: String| {
        let cells: Vec<_> = std::iter::once(first).chain(cells).chain([grade]).collect();
        format!("{} \\\\\n", cells.join(" & "))
    };
    let mut text = format!(
        "% {}\n% {}\n\\begin{{tabular}}{{l{}l}}\n",
        header.title,
        header.command,
        "r".repeat(shown.len())
    );
    text += "\\toprule\n";
    text += &line("Run".to_owned(), heading.collect(), "Grade".to_owned());
    text += "\\midrule\n";
    for row in &results.rows {
        let cells = shown.iter().map(|nth| escaped(&row.cells[*nth])).collect();
        text +=
            &line(escaped(&row.name), cells, row.grade.map_or_else(String::new, |grade| grade.to_string()));
    }
    text + "\\bottomrule\n\\end{tabular}\n"
}

/// Verdicts for a terminal.
#[must_use]
pub fn terminal_verdicts(tables: &[VerdictTable], options: TerminalOptions) -> String {
    let mut blocks = Vec::new();
    for verdicts in tables {
        let mut table = blank(options);
        table.set_header(verdicts.headings.columns());
        for row in &verdicts.rows {
            let colour = match row.verdict {
                Verdict::Reproduced => Color::Green,
                Verdict::NotReproduced => Color::Red,
                Verdict::NotTested | Verdict::Shown => Color::DarkGrey,
            };
            let texts = [&row.claim, &row.paper, &row.tolerance, &row.measured];
            let mut cells: Vec<Cell> = texts.into_iter().map(Cell::new).collect();
            cells.push(Cell::new(row.verdict.as_str()).fg(colour));
            table.add_row(cells);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        blocks.push(verdicts.title.clone());
        blocks.push(trimmed(&table));
        blocks.extend(verdicts.note.as_ref().map(|note| wrapped(note, options.width)));
    }
    blocks.join("\n\n") + "\n"
}

/// One line a table of verdicts: how many of its judged numbers are reproduced, and how many are not judged.
#[must_use]
pub fn terminal_summary(tables: &[VerdictTable], options: TerminalOptions) -> String {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut table = blank(options);
    let counts = ["Reproduced", "Not", "Shown", "Not tested"];
    table.set_header(
        std::iter::once(Cell::new("Experiment")).chain(counts.map(|name| right(name.to_owned()))),
    );
    for verdicts in tables {
        let count = |verdict| verdicts.rows.iter().filter(|row| row.verdict == verdict).count();
        let of = [Verdict::Reproduced, Verdict::NotReproduced, Verdict::Shown, Verdict::NotTested].map(count);
        let cells = of.map(|count| right(if count == 0 { String::new() } else { count.to_string() }));
        table.add_row(std::iter::once(Cell::new(&verdicts.title)).chain(cells));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    trimmed(&table) + "\n"
}

/// Every number that is not reproduced, with its cause where one is known.
#[must_use]
pub fn terminal_misses(tables: &[VerdictTable], options: TerminalOptions) -> String {
    let rows = tables.iter().flat_map(|table| &table.rows);
    let missed = rows.filter(|row| row.verdict == Verdict::NotReproduced).map(|row| {
        let cause = row.cause.as_deref().unwrap_or("No cause is known.");
        let text = format!("{}: {}, for {} ({}). {cause}", row.claim, row.measured, row.paper, row.tolerance);
        wrapped(&text, options.width)
    });
    missed.collect::<Vec<_>>().join("\n")
}

pub(crate) fn blank(options: TerminalOptions) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─')));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(options.width);
    if options.colour {
        table.enforce_styling();
        table.style_text_only();
    } else {
        table.force_no_tty();
    }
    table
}

fn draw(
    results: &ResultTable,
    shown: &dyn Fn(&ResultColumn) -> bool,
    with_grade: bool,
    options: TerminalOptions,
) -> String {
    let columns: Vec<usize> =
        (0..results.columns.len()).filter(|column| shown(&results.columns[*column])).collect();
    let mut table = blank(options);
    let mut heading = vec![Cell::new("Run")];
    for column in &columns {
        let ResultColumn { title, detail, unit, .. } = &results.columns[*column];
        let lines = [*title, *detail, *unit];
        let text = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        heading.push(Cell::new(text).set_alignment(CellAlignment::Right));
    }
    if with_grade {
        heading.push(Cell::new("Grade").set_alignment(CellAlignment::Right));
    }
    table.set_header(heading);
    for row in results.rows.iter().take(MAX_ROWS) {
        table.add_row(cells(row, &columns, with_grade));
    }
    let content: usize = table.column_max_content_widths().into_iter().map(usize::from).sum();
    // Two blanks between columns read better, but a name in one piece comes first.
    let gap = if content + 2 * (columns.len() + 1) <= usize::from(options.width) { 2 } else { 1 };
    for column in table.column_iter_mut() {
        column.set_padding((0, gap));
        if column.index > 0 {
            // Numbers never wrap; where room is short, the name does.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    trimmed(&table)
}

fn cells(row: &ResultRow, columns: &[usize], with_grade: bool) -> Vec<Cell> {
    let name = if row.part { format!("  {}", row.name) } else { row.name.clone() };
    let mut cells = vec![Cell::new(name)];
    cells.extend(
        columns.iter().map(|column| Cell::new(&row.cells[*column]).set_alignment(CellAlignment::Right)),
    );
    if with_grade {
        let grade = row.grade.map_or_else(
            || Cell::new(""),
            |grade| Cell::new(grade).fg(colour(grade)).add_attribute(Attribute::Bold),
        );
        cells.push(grade.set_alignment(CellAlignment::Right));
    }
    cells
}

fn colour(grade: Grade) -> Color {
    match grade {
        Grade::APlus | Grade::A => Color::Green,
        Grade::B | Grade::C => Color::Yellow,
        Grade::D | Grade::F => Color::Red,
    }
}

/// The table without blanks at the ends of lines.
pub(crate) fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// `text` broken into lines of at most `width` characters where words allow.
pub(crate) fn wrapped(text: &str, width: u16) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= usize::from(width) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{comparison, flow, queue, run};
    use crate::verdict::VerdictRow;

    fn plain(runs: &[RunResult]) -> String {
        terminal(
            &ReportHeader { title: "DSL".to_owned(), ..ReportHeader::default() },
            runs,
            TerminalOptions::default(),
        )
    }

    #[test]
    fn a_table_for_latex_escapes_what_latex_reads() {
        let header = ReportHeader { title: "DSL".to_owned(), ..ReportHeader::default() };
        let text = latex(&header, &comparison());
        assert!(text.contains("Link use \\% & Backlog mean packets"), "{text}");
        assert!(text.contains("cubic, droptail & 3.50 & 98.5"), "{text}");
        assert!(text.ends_with("& F \\\\\n\\bottomrule\n\\end{tabular}\n"), "{text}");
    }

    #[test]
    fn a_comparison_shows_two_tables_the_thresholds_and_a_sentence() {
        let text = plain(&comparison());
        assert!(text.starts_with("DSL\n\nRun "), "{text}");
        let row = |name: &str| -> Vec<Vec<&str>> {
            text.lines()
                .filter(|line| line.starts_with(name))
                .map(|line| line.split_whitespace().skip(2).collect())
                .collect()
        };
        assert_eq!(
            row("cubic, droptail  "),
            [
                vec!["3.50", "98.5", "12.3", "18.4", "65", "97.5", "240", "480", "600", "F"],
                vec!["121", "300", "3", "2", "4", "0", "0", "1", "–"],
            ]
        );
        assert!(text.contains("A+ < 5 ms, A < 30 ms, B < 60 ms, C < 200 ms, D < 400 ms, F beyond."));
        assert!(text.contains("fs-at, droptail kept the shortest queue"));
    }

    #[test]
    fn lines_fit_a_hundred_columns_and_names_stay_whole_where_they_can() {
        let mut runs = comparison();
        runs[0].labels[0].1 = "fs-at:mode=fit".to_owned();
        let text = plain(&runs);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(text.contains("\nfs-at:mode=fit, droptail "), "{text}");
    }

    #[test]
    fn many_runs_get_one_compact_table() {
        let runs: Vec<_> = (0..=DETAILED_RUNS)
            .map(|i| run(&[("n", &i.to_string())], vec![flow("a", "reno", 1_000)], vec![queue("l", 1.0)]))
            .collect();
        let text = plain(&runs);
        assert_eq!(text.lines().filter(|line| line.starts_with("Run ")).count(), 1);
        assert_eq!(text.lines().filter(|line| line.ends_with("A+")).count(), DETAILED_RUNS + 1);
        assert!(!text.contains("p50") && text.contains("p95"), "{text}");
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert!(!plain(&comparison()).contains('\x1b'));
        let options = TerminalOptions { colour: true, ..TerminalOptions::default() };
        assert!(terminal(&ReportHeader::default(), &comparison(), options).contains("\x1b["));
    }

    #[test]
    fn verdicts_stand_beside_their_claims() {
        let row = VerdictRow {
            claim: "Backlog against Reno".to_owned(),
            paper: "−78 %".to_owned(),
            tolerance: "± 3".to_owned(),
            measured: "−77 %".to_owned(),
            verdict: Verdict::Reproduced,
            basis: None,
            cause: None,
        };
        let table = VerdictTable {
            title: "Table 1".to_owned(),
            headings: crate::Headings::Paper,
            note: None,
            rows: vec![row],
        };
        let text = terminal_verdicts(&[table], TerminalOptions::default());
        assert!(text.starts_with("Table 1\n\n"), "{text}");
        assert!(text.contains("Backlog against Reno  −78 %  ± 3        −77 %     reproduced\n"), "{text}");
    }
}
