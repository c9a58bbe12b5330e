//! The files of a line that a browser measured.

use serde_json::Value;
use suimon_measure::estimate::Way;
use suimon_measure::server::Document;
use suimon_measure::{Direction, Line, Recording};
use suimon_report::{Curve, Panel, Picture};

use super::{save, show};

const COLOURS: [&str; 3] = ["#8a94a3", "#14648f", "#c2571a"];

/// The line as JSON, as a picture, as a scenario, and all that was seen, for `--read`.
pub(super) fn documents(line: &Line, recording: &Recording, to: &str) -> Vec<Document> {
    let document = |name: &str, media_type, content: Vec<u8>| Document { name: name.to_owned(), media_type, content };
    let mut json = show::json(line, to);
    json["rows"] = rows(line);
    let mut documents = vec![
        document("line.json", "application/json", format!("{json:#}\n").into_bytes()),
        document("line.svg", "image/svg+xml", picture(line, recording, to).svg().into_bytes()),
        document("line.csv", "text/csv; charset=utf-8", save::table_text(line, recording).into_bytes()),
    ];
    for (name, content) in save::scenario_texts(line, to, "line").unwrap_or_default() {
        let media_type = if name.ends_with(".csv") { "text/csv; charset=utf-8" } else { "application/toml" };
        documents.push(document(&name, media_type, content.into_bytes()));
    }
    documents
}

/// The table that the command prints, for the page.
fn rows(line: &Line) -> Value {
    show::rows(line).into_iter().map(|row| Value::from(row.to_vec())).collect()
}

/// Round trips and rates over time.
pub(super) fn picture(line: &Line, recording: &Recording, to: &str) -> Picture {
    let of_probes = |name: &str, colour, has: &dyn Fn(u64) -> bool| {
        let sent = recording.probes.iter().filter(|probe| has(probe.sent_us));
        let point = |probe: &suimon_measure::Probe| {
            let back = probe.answer?.1;
            Some((probe.sent_us as f64 / 1e6, back.saturating_sub(probe.sent_us) as f64 / 1e3))
        };
        Curve { name: name.to_owned(), colour, points: sent.filter_map(point).collect(), is_dots: true }
    };
    let span = |direction| recording.load(direction).map(|load| load.span);
    let is_loaded = |at, direction| span(direction).is_some_and(|span| span.has(at));
    let mut round_trips = vec![of_probes("idle", COLOURS[0], &|at| {
        !Direction::BOTH.into_iter().any(|direction| is_loaded(at, direction))
    })];
    let mut rates = Vec::new();
    for (direction, colour) in Direction::BOTH.into_iter().zip(&COLOURS[1..]) {
        let (Some(way), Some(span)) = (line.way(direction), span(direction)) else { continue };
        round_trips.push(of_probes(&format!("beside the {}", direction.as_str()), colour, &|at| is_loaded(at, direction)));
        let start = span.from_us as f64 / 1e6;
        rates.push(Curve {
            name: direction.as_str().to_owned(),
            colour,
            points: way.capacity.iter().map(|point| (start + point.at_s, point.mbps)).collect(),
            is_dots: false,
        });
    }
    let panel = |label: &str, curves| Panel { label: label.to_owned(), curves };
    let mut notes = vec![show::meaning(line)];
    notes.extend(Direction::BOTH.into_iter().filter_map(|direction| Some(note(direction, line.way(direction)?))));
    Picture {
        title: format!("The line to {to}"),
        notes,
        panels: vec![panel("Round trip (ms)", round_trips), panel("Arriving (Mbit/s)", rates)],
    }
}

fn note(direction: Direction, way: &Way) -> String {
    format!(
        "{}: {}; 95 % of others wait up to {}; queue {}; grade {}",
        direction.as_str(),
        show::mbps(way.capacity_mbps),
        show::ms(way.queue_p95_ms),
        way.queue.as_str(),
        show::grade(way)
    )
}
