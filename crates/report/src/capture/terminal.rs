//! A capture as tables for a terminal.

use comfy_table::{Cell, CellAlignment, Color, ColumnConstraint};
use suimon_results::{CaptureResult, CapturedFlow, EstimatorVerdict, RttPercentiles};
use suimon_units::Duration;

use super::{capture_losses, capture_notes, capture_verdict};
use crate::header::ReportHeader;
use crate::numbers::{MISSING, significant};
use crate::terminal::{TerminalOptions, blank, trimmed, wrapped};

/// Flows that are shown; the files hold all.
const SHOWN_FLOWS: usize = 20;
/// The facts of a capture and the estimates from it, for a terminal.
#[must_use]
pub fn terminal_capture(header: &ReportHeader, result: &CaptureResult, options: TerminalOptions) -> String {
    let mut blocks = vec![header.title.clone(), sentence(result)];
    if !result.flows.is_empty() {
        blocks.push(flows(result, options));
        if result.flows.len() > SHOWN_FLOWS {
            blocks.push(format!("{} more flows are in the files only.", result.flows.len() - SHOWN_FLOWS));
        }
    }
    if result.data_packets > 0 {
        blocks.push(estimators(result, options));
    }
    blocks.push(wrapped(&capture_losses(result), options.width));
    blocks.push(wrapped(&capture_verdict(result), options.width));
    blocks.extend(capture_notes(result).iter().map(|note| wrapped(&format!("Note: {note}"), options.width)));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n") + "\n"
}

fn sentence(result: &CaptureResult) -> String {
    let flows = match result.flows.len() {
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    };
    format!(
        "{} packets in {} s; {} with data, of {flows}.",
        result.packets,
        significant(result.duration.as_secs_f64()),
        result.data_packets
    )
}

/// The heading of an estimator's mean, in three lines.
fn short(name: &str) -> String {
    let (name, settings) = name.split_at(name.find(':').unwrap_or(name.len()));
    format!("{name}\n{}\nms", if settings.is_empty() { "mean" } else { settings })
}

/// Estimators whose means stand beside the facts of flows, as many as the terminal has room for.
fn estimators_with_room(result: &CaptureResult, options: TerminalOptions) -> usize {
    /// Packets, loss and four round-trip times, with the space between.
    const FACTS: usize = 9 + 6 + 4 * 6;
    const SPACE: usize = 2;
    let name = result.flows.iter().map(|flow| flow.name.len()).max().unwrap_or_default();
    let mut left = usize::from(options.width).saturating_sub(name + SPACE + FACTS);
    let widths = result.estimators.iter().map(|estimator| {
        let widest = short(&estimator.name).lines().map(str::len).max().unwrap_or_default();
        widest + SPACE
    });
    widths
        .take_while(|width| {
            let fits = *width <= left;
            left = left.saturating_sub(*width);
            fits
        })
        .count()
}

fn flows(result: &CaptureResult, options: TerminalOptions) -> String {
    let shown = &result.estimators[..estimators_with_room(result, options)];
    let mut table = blank(options);
    let mut heading = vec![Cell::new("Flow")];
    let mut head = |text: String| heading.push(Cell::new(text).set_alignment(CellAlignment::Right));
    for text in ["Packets", "Loss\n\n%", "RTT\nmin\nms", "RTT\np50\nms", "RTT\np95\nms", "RTT\np99\nms"] {
        head(text.to_owned());
    }
    for estimator in shown {
        head(short(&estimator.name));
    }
    table.set_header(heading);
    let mut largest: Vec<&CapturedFlow> = result.flows.iter().collect();
    // Stable: of equally large ones the first comes first.
    largest.sort_by_key(|flow| std::cmp::Reverse(flow.packets));
    for flow in largest.into_iter().take(SHOWN_FLOWS) {
        let known = flow.rtt.mean().is_some();
        let mut row = vec![Cell::new(&flow.name)];
        let mut cell = |text: String| row.push(Cell::new(text).set_alignment(CellAlignment::Right));
        cell(flow.packets.to_string());
        cell(percent(flow.loss()));
        cell(ms(known.then_some(flow.rtt.min)));
        let rtts = flow.rtt_percentiles;
        let of = |percentile: fn(RttPercentiles) -> Duration| ms(rtts.map(percentile));
        cell(of(|rtts| rtts.p50));
        cell(of(|rtts| rtts.p95));
        cell(of(|rtts| rtts.p99));
        for estimates in &flow.estimates[..shown.len()] {
            cell(ms(estimates.mean()));
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index > 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    trimmed(&table)
}

fn estimators(result: &CaptureResult, options: TerminalOptions) -> String {
    let mut table = blank(options);
    let titles = [
        "Estimates",
        "Bias\nmedian\n%",
        "Error\nmedian\n%",
        "RTT_rep\nmean\nms",
        "true\nmean\nms",
        "RTT_rep\nerror\n%",
        "Memory\n\nbytes",
        "Verdict",
    ];
    let mut heading = vec![Cell::new("Estimator")];
    heading.extend(titles.map(|title| Cell::new(title).set_alignment(CellAlignment::Right)));
    table.set_header(heading);
    for estimator in &result.estimators {
        let cells = [
            estimator.estimates.to_string(),
            percent(estimator.bias_median),
            percent(estimator.error_median),
            ms(estimator.representative_mean),
            ms(estimator.true_mean),
            percent(estimator.representative_error),
            estimator.memory.get().to_string(),
            estimator.verdict().as_str().to_owned(),
        ];
        let fails = estimator.verdict() == EstimatorVerdict::Fails;
        let shown = |cell: Cell| if fails { cell.fg(Color::DarkGrey) } else { cell };
        let mut row = vec![shown(Cell::new(&estimator.name))];
        row.extend(cells.map(|cell| shown(Cell::new(cell).set_alignment(CellAlignment::Right))));
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    trimmed(&table)
}

pub(super) fn ms(time: Option<Duration>) -> String {
    time.map_or_else(|| MISSING.to_owned(), |time| significant(time.as_millis_f64()))
}

pub(super) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| MISSING.to_owned(), |ratio| significant(100.0 * ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::samples::two_flows;

    #[test]
    fn flows_and_estimators_have_a_row_each() {
        let header = ReportHeader { title: "link.pcap".to_owned(), ..ReportHeader::default() };
        let text = terminal_capture(&header, &two_flows(), TerminalOptions::default());
        assert!(
            text.starts_with("link.pcap\n\n1000 packets in 2.00 s; 310 with data, of 2 flows.\n"),
            "{text}"
        );
        let row = |name: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().collect()
        };
        assert_eq!(row("10.0.0.1:1 > 10.0.0.2:80"), ["300", "3.00", "40.0", "48.0", "59.0", "60.0", "44.0"]);
        assert_eq!(row("b "), ["10", "–", "–", "–", "–", "–", "–"]);
        assert_eq!(row("bursts"), ["1", "-12.0", "12.0", "44.0", "50.0", "12.0", "200", "rough"]);
        assert!(text.contains("\nNote: Skipped packets: 3 not IP.\n"), "{text}");
    }

    #[test]
    fn of_many_flows_the_largest_are_shown() {
        let mut result = two_flows();
        for nth in 0..30 {
            let mut flow = result.flows[1].clone();
            flow.name = format!("flow-{nth}");
            flow.packets = 100 + nth;
            result.flows.push(flow);
        }
        let text = terminal_capture(&ReportHeader::default(), &result, TerminalOptions::default());
        assert!(text.contains("flow-29 ") && !text.contains("flow-3 "), "{text}");
        assert!(text.contains("12 more flows are in the files only."), "{text}");
    }
}
