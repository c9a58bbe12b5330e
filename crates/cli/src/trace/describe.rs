//! `suimon trace describe`: a trace in numbers, as text and as a picture.

use std::fs;
use std::io::Write;

use suimon_report::{Curve, Panel, Picture};
use suimon_scenario::trace::Opportunities;

use super::Describe;
use crate::error::CliError;
use crate::output::naming;

/// The bits that an opportunity carries.
const OPPORTUNITY_BITS: f64 = 12_000.0;
/// The size of the drawing, in characters.
const COLUMNS: usize = 72;
const ROWS: usize = 8;
/// Points of the picture, at most; each covers a tenth of a second at least.
const POINTS: u64 = 600;
const SHORTEST_MS: u64 = 100;
/// Eighths of a character.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn execute(options: &Describe, out: &mut impl Write) -> Result<(), CliError> {
    let trace = Opportunities::read(&options.file)?;
    let window_ms = (length_ms(&trace) / POINTS).max(SHORTEST_MS);
    let rates = rates_mbps(&trace, window_ms);
    if let Some(file) = &options.svg {
        fs::write(file, picture(&trace, &rates, window_ms, &options.file.display().to_string()).svg())
            .map_err(|error| naming("--svg", file)(error.into()))?;
    }
    let mut sorted = rates_mbps(&trace, SHORTEST_MS);
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let [p10, p50, p90] = [0.1, 0.5, 0.9].map(at);
    let silence_ms = longest_silence_ms(&trace);
    if options.json {
        let json = serde_json::json!({
            "length_s": length_ms(&trace) as f64 / 1e3,
            "mean_mbps": trace.mean_rate().as_bps() as f64 / 1e6,
            "p10_mbps": p10,
            "p50_mbps": p50,
            "p90_mbps": p90,
            "longest_silence_ms": silence_ms,
            "packets": trace.times().len(),
        });
        return Ok(writeln!(out, "{json:#}")?);
    }
    writeln!(out, "{}", options.file.display())?;
    writeln!(out, "length     {:.1}", trace.period())?;
    writeln!(out, "mean rate  {:.3}", trace.mean_rate())?;
    writeln!(out, "over 0.1 s {p10:.2} to {p90:.2} Mbit/s (10 and 90 %), median {p50:.2} Mbit/s")?;
    writeln!(out, "silence    {silence_ms} ms at most")?;
    writeln!(out, "packets    {}", trace.times().len())?;
    Ok(write!(out, "\n{}", drawing(&trace))?)
}

fn length_ms(trace: &Opportunities) -> u64 {
    (trace.period().as_nanos() / 1_000_000).max(1)
}

/// The rate in each whole window of so many milliseconds, and in one where the trace is shorter.
fn rates_mbps(trace: &Opportunities, window_ms: u64) -> Vec<f64> {
    let windows = (length_ms(trace) / window_ms).max(1) as usize;
    let mut counts = vec![0_u32; windows];
    for time in trace.times() {
        // The opportunity at the end belongs to the last window.
        let window = (time.as_nanos() / 1_000_000).saturating_sub(1) / window_ms;
        if let Some(count) = counts.get_mut(window as usize) {
            *count += 1;
        }
    }
    counts.into_iter().map(|count| f64::from(count) * OPPORTUNITY_BITS / window_ms as f64 / 1e3).collect()
}

fn longest_silence_ms(trace: &Opportunities) -> u64 {
    let times: Vec<u64> = trace.times().iter().map(|time| time.as_nanos() / 1_000_000).collect();
    let first = times.first().copied().unwrap_or(0);
    times.windows(2).map(|pair| pair[1] - pair[0]).chain([first]).max().unwrap_or(0)
}

fn picture(trace: &Opportunities, rates: &[f64], window_ms: u64, name: &str) -> Picture {
    let at_s = |nth: usize| (nth as f64 + 0.5) * window_ms as f64 / 1e3;
    let curve = Curve {
        name: format!("over {} s", window_ms as f64 / 1e3),
        colour: "#14648f",
        points: rates.iter().enumerate().map(|(nth, rate)| (at_s(nth), *rate)).collect(),
        is_dots: false,
    };
    Picture {
        title: name.to_owned(),
        notes: vec![format!("{:.1}, {:.3} in the mean", trace.period(), trace.mean_rate())],
        panels: vec![Panel { label: "Rate (Mbit/s)".to_owned(), curves: vec![curve] }],
    }
}

/// The rate over time in characters, with what the highest stands for.
fn drawing(trace: &Opportunities) -> String {
    let window_ms = length_ms(trace).div_ceil(COLUMNS as u64).max(1);
    let rates = rates_mbps(trace, window_ms);
    let most = rates.iter().copied().fold(1e-9, f64::max);
    let heights: Vec<usize> =
        rates.iter().map(|rate| (rate / most * (ROWS * 8) as f64).round() as usize).collect();
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let label = if row == ROWS - 1 { format!("{most:.1} Mbit/s") } else { String::new() };
        let bars: String =
            heights.iter().map(|height| BLOCKS[height.saturating_sub(row * 8).min(8)]).collect();
        text += &format!("{label:>13} |{}\n", bars.trim_end());
    }
    let end = format!("{:.1} s", length_ms(trace) as f64 / 1e3);
    text + &format!(
        "{:>13} +{}\n{:>13}  0{end:>width$}\n",
        "0",
        "-".repeat(rates.len()),
        "",
        width = rates.len().max(end.len() + 2) - 1
    )
}

#[cfg(test)]
mod tests {
    use suimon_units::Duration;

    use super::*;

    #[test]
    fn rates_silence_and_drawing_follow_the_opportunities() {
        // 12 Mbit/s for a second, nothing for a second, 24 Mbit/s for a second.
        let times = (1..=1_000).chain((2_001..=3_000).flat_map(|at| [at, at]));
        let trace = Opportunities::new(times.map(Duration::from_millis)).unwrap();
        let rates = rates_mbps(&trace, 100);
        assert_eq!(rates.len(), 30);
        for (range, rate) in [(0..10, 12.0), (10..20, 0.0), (20..30, 24.0)] {
            assert!(rates[range].iter().all(|found| (found - rate).abs() < 1e-9), "{rates:?}");
        }
        assert_eq!(longest_silence_ms(&trace), 1_001);
        let drawn = drawing(&trace);
        let rows: Vec<&str> = drawn.lines().collect();
        assert!(rows[0].starts_with("  24.") || rows[0].contains("24.0 Mbit/s |"), "{drawn}");
        assert_eq!(rows.len(), ROWS + 2);
        let full = rows[ROWS - 1].chars().filter(|c| *c == '█').count();
        assert!((46..=50).contains(&full), "{drawn}");
        assert!(picture(&trace, &rates, 100, "cell").svg().contains("over 0.1 s"));
    }

    #[test]
    fn a_trace_of_one_opportunity_is_drawn_too() {
        let trace = Opportunities::new([Duration::from_millis(7)]).unwrap();
        assert_eq!(rates_mbps(&trace, 100).len(), 1);
        assert!(drawing(&trace).contains("0.0 s"));
    }
}
