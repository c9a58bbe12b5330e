//! A line in files: a scenario of it, a table over time, and metrics.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use suimon_measure::estimate::{QueueKind, Way};
use suimon_measure::{Direction, Line, Recording};
use suimon_service::Metrics;

use super::show::grade;
use crate::error::CliError;

/// Writes the line as a scenario; a direction that varies gets a schedule in a file beside it.
pub(super) fn scenario(line: &Line, to: &str, file: &Path) -> Result<(), CliError> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let texts = scenario_texts(line, to, &stem).ok_or_else(|| {
        let problem = "the measurement ended before both directions were known; accepted: a whole one".to_owned();
        CliError::Option { option: "--save", problem }
    })?;
    for (nth, (name, text)) in texts.iter().enumerate() {
        let path = if nth == 0 { file.to_owned() } else { file.with_file_name(name) };
        fs::write(path, text)?;
    }
    Ok(())
}

/// The names and the contents of a scenario's files, itself first: `line.toml` may have `line-download.csv`. None where a direction
/// is not known.
pub(super) fn scenario_texts(line: &Line, to: &str, stem: &str) -> Option<Vec<(String, String)>> {
    let ways = [line.download.as_ref()?, line.upload.as_ref()?];
    let name = |direction: Direction| format!("{stem}-{}.csv", direction.as_str());
    let schedules = [0, 1].map(|nth| ways[nth].varies.then(|| name(Direction::BOTH[nth])));
    let mut texts = vec![(format!("{stem}.toml"), text(line, ways, &schedules, to))];
    for (way, schedule) in ways.into_iter().zip(schedules) {
        texts.extend(schedule.map(|name| (name, rates(way))));
    }
    Some(texts)
}

/// The settled part of what arrived, as a schedule of rates.
fn rates(way: &Way) -> String {
    let settled = &way.capacity[way.capacity.len() / 3..];
    let first = settled.first().map_or(0.0, |point| point.at_s);
    let row = |at_s: f64, mbps: f64| format!("{:.3},{mbps:.4}\n", at_s - first);
    let rows: String = settled.iter().map(|point| row(point.at_s, point.mbps)).collect();
    format!("time_s,rate_mbps\n{rows}")
}

/// A scenario of the line with a download and an upload.
fn text(line: &Line, ways: [&Way; 2], schedules: &[Option<String>; 2], to: &str) -> String {
    let mut text = format!(
        "# The line to {to}, as suimon measure found it.\nname = \"line\"\nduration = \"60s\"\n\n\
         [[link]]\nname = \"line\"\nbetween = [\"server\", \"client\"]\n"
    );
    let delay = format!("{:.3}ms", line.idle.propagation_ms / 2.0);
    for (nth, (way, schedule)) in ways.into_iter().zip(schedules).enumerate() {
        text += if nth == 0 { "" } else { "[link.reverse]\n" };
        text += &keys(way, schedule.as_deref(), &delay, line.idle.loss_percent / 2.0);
    }
    for (direction, from, to) in
        [(Direction::Download, "server", "client"), (Direction::Upload, "client", "server")]
    {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[flow]]\nname = \"{}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 4\ncc = \"cubic\"\n",
            direction.as_str()
        );
    }
    text
}

fn keys(way: &Way, schedule: Option<&str>, delay: &str, loss_percent: f64) -> String {
    let mut text = match schedule {
        Some(name) => format!("schedule = \"{name}\"\n"),
        None => format!("rate = \"{:.0}kbit\"\n", way.capacity_mbps * 1e3),
    };
    text += &format!("delay = \"{delay}\"\n");
    let queue = match way.queue {
        QueueKind::Fair => Some("fq-codel"),
        QueueKind::Aqm => Some("codel"),
        QueueKind::DropTail | QueueKind::Unknown => None,
    };
    match (queue, way.buffer) {
        (Some(queue), _) => text += &format!("queue = \"{queue}\"\nbuffer = \"{AMPLE}\"\n"),
        (None, Some(buffer)) => text += &format!("buffer = \"{}B\"\n", buffer.bytes.max(LARGEST)),
        (None, None) => {}
    }
    if loss_percent > 0.0 {
        text += &format!("loss = \"{loss_percent:.3}%\"\n");
    }
    text + "reported = true\n"
}

/// The size of a full packet, in bytes.
const LARGEST: u64 = 1_500;
/// The buffer of a managed queue, which such a queue does not fill: fq_codel's default.
const AMPLE: &str = "10240 packets";

/// Writes each probe with its round-trip time, and what arrived of the load then.
pub(super) fn table(line: &Line, recording: &Recording, file: &Path) -> Result<(), CliError> {
    Ok(fs::write(file, table_text(line, recording))?)
}

/// The same as text.
pub(super) fn table_text(line: &Line, recording: &Recording) -> String {
    let mut text = "time_s,load,rtt_ms,arriving_mbps\n".to_owned();
    for probe in &recording.probes {
        let loaded = Direction::BOTH.into_iter().find_map(|direction| {
            let span = recording.load(direction)?.span;
            span.has(probe.sent_us).then(|| (direction, (probe.sent_us - span.from_us) as f64 / 1e6))
        });
        let arriving = loaded.and_then(|(direction, since_s)| {
            let points = &line.way(direction)?.capacity;
            points.iter().rev().find(|point| point.at_s <= since_s).map(|point| format!("{:.4}", point.mbps))
        });
        let rtt = probe.answer.map(|(_, at)| format!("{:.3}", at.saturating_sub(probe.sent_us) as f64 / 1e3));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:.6},{},{},{}",
            probe.sent_us as f64 / 1e6,
            loaded.map_or("idle", |(direction, _)| direction.as_str()),
            rtt.unwrap_or_default(),
            arriving.unwrap_or_default(),
        );
    }
    text
}

/// Writes the line as metrics, for the textfile collector of Prometheus' node exporter, which must not see half a file.
pub(super) fn metrics(line: &Line, to: &str, file: &Path) -> Result<(), CliError> {
    let new = file.with_extension("new");
    fs::write(&new, metrics_text(line, to))?;
    Ok(fs::rename(&new, file)?)
}

/// A metric of a direction: its name, its meaning, and its value.
type OfWay = (&'static str, &'static str, fn(&Way) -> f64);

fn metrics_text(line: &Line, to: &str) -> String {
    let mut metrics = Metrics::new("suimon_line");
    let idle = &line.idle;
    for (name, help, value) in [
        ("idle_rtt_seconds", "Median round-trip time without load.", idle.rtt_ms / 1e3),
        ("idle_jitter_seconds", "Mean difference of round-trip times one after the other.", idle.jitter_ms / 1e3),
        ("idle_loss_ratio", "Share of probes lost without load.", idle.loss_percent / 1e2),
    ] {
        metrics.add((name, "gauge", help), [([("to", to.to_owned())], value)]);
    }
    let of_ways: [OfWay; 7] = [
        ("capacity_bits_per_second", "What the line carries, in IP packets.", |way| way.capacity_mbps * 1e6),
        ("loaded_rtt_p95_seconds", "Round-trip time beside a load, 95th percentile.", |way| way.rtt_p95_ms / 1e3),
        ("queue_p95_seconds", "What packets of others wait beside a load, 95th percentile.", |way| {
            way.queue_p95_ms / 1e3
        }),
        ("own_queue_p95_seconds", "What packets of the load wait, 95th percentile.", |way| way.own_queue_p95_ms / 1e3),
        ("loss_ratio", "Share of probes lost beside a load.", |way| way.loss_percent / 1e2),
        ("buffer_bytes", "What the buffer was seen to hold.", |way| way.buffer.map_or(0.0, |buffer| buffer.bytes as f64)),
        ("grade", "The grade, from 0 for A+ to 5 for F.", |way| f64::from(grade(way) as u8)),
    ];
    for (name, help, value) in of_ways {
        let samples = Direction::BOTH.into_iter().filter_map(|direction| {
            let way = line.way(direction)?;
            let labels = [("to", to.to_owned()), ("direction", direction.as_str().to_owned())];
            Some((labels, value(way)))
        });
        metrics.add((name, "gauge", help), samples);
    }
    metrics.finish()
}

#[cfg(test)]
mod tests {
    use suimon_measure::estimate::{Buffer, Idle, Point};
    use suimon_scenario::{LinkSpec, drop_tail};

    use super::*;

    fn way(mbps: f64, queue: QueueKind) -> Way {
        Way {
            capacity_mbps: mbps,
            capacity_p10_mbps: mbps,
            capacity_p90_mbps: mbps,
            varies: false,
            goodput_mbps: mbps,
            rtt_p50_ms: 90.0,
            rtt_p95_ms: 100.0,
            rtt_p99_ms: 110.0,
            queue_p50_ms: 30.0,
            queue_p95_ms: 40.0,
            own_queue_p50_ms: 30.0,
            own_queue_p95_ms: 40.0,
            loss_percent: 0.0,
            retransmitted_percent: 1.0,
            buffer: Some(Buffer { ms: 120.0, bytes: 300_000, is_at_least: false }),
            queue,
            responsiveness: None,
            capacity: (0..90).map(|nth| Point { at_s: f64::from(nth) * 0.1, mbps: 1.0 + f64::from(nth % 2) }).collect(),
        }
    }

    fn line() -> Line {
        Line {
            idle: Idle {
                rtt_ms: 60.5,
                rtt_min_ms: 60.1,
                rtt_p95_ms: 61.0,
                jitter_ms: 0.2,
                loss_percent: 0.0,
                propagation_ms: 60.0,
            },
            download: Some(way(20.0, QueueKind::DropTail)),
            upload: Some(way(5.0, QueueKind::Fair)),
            first_hop: None,
        }
    }

    #[test]
    fn a_saved_line_reads_back_as_the_link_that_was_measured() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("line.toml");
        scenario(&line(), "vps", &file).unwrap();
        let spec = LinkSpec::of_scenario(&file).unwrap();
        let [there, back] = spec.links(&spec.link.queue);
        assert_eq!(spec.rtt, "60ms".parse().unwrap());
        assert_eq!(there.capacity.mean_rate(), Some("20Mbit".parse().unwrap()));
        assert_eq!(there.buffer, "300kB".parse::<suimon_units::Bytes>().map(suimon_scenario::Buffer::Bytes).unwrap());
        assert_eq!(back.capacity.mean_rate(), Some("5Mbit".parse().unwrap()));
        assert_eq!((there.queue, back.queue.name()), (drop_tail(), "fq-codel"));
        let mut half = line();
        half.upload = None;
        assert!(scenario(&half, "vps", &file).unwrap_err().to_string().contains("accepted: a whole one"));
    }

    #[test]
    fn a_line_that_varies_is_saved_with_a_schedule() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("line.toml");
        let mut line = line();
        line.download.as_mut().unwrap().varies = true;
        scenario(&line, "vps", &file).unwrap();
        assert!(folder.path().join("line-download.csv").exists());
        let mean = LinkSpec::of_scenario(&file).unwrap().link.capacity.mean_rate().unwrap();
        assert!((1_450_000..1_550_000).contains(&mean.as_bps()), "{mean}");
    }

    #[test]
    fn metrics_have_a_value_for_each_direction() {
        let text = metrics_text(&line(), "vps");
        for line in [
            "suimon_line_idle_rtt_seconds{to=\"vps\"} 0.0605",
            "suimon_line_capacity_bits_per_second{to=\"vps\",direction=\"upload\"} 5000000",
            "suimon_line_grade{to=\"vps\",direction=\"download\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
    }
}
