//! A line as a data file of flent (<https://flent.org>), version 4 of its format.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use suimon_measure::{Direction, Line, Recording};

use crate::error::CliError;

/// The test of flent whose plots fit: a ping beside a download and an upload.
const TEST: &str = "tcp_bidirectional";
const PING: &str = "Ping (ms) ICMP";
/// Between one value of a series and the next, in seconds: flent's default.
const STEP_S: f64 = 0.2;

/// Writes the line for flent.
pub(super) fn write(line: &Line, recording: &Recording, to: &str, file: &Path) -> Result<(), CliError> {
    let last_us = recording.probes.last().map_or(0, |probe| probe.sent_us);
    let begun = SystemTime::now() - Duration::from_micros(last_us);
    let begun_s = begun.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let text = serde_json::to_string(&data(line, recording, to, begun_s)).map_err(io::Error::from)?;
    Ok(fs::write(file, text)?)
}

/// Seconds since the first probe, and a value.
type Series = Vec<(f64, f64)>;

fn data(line: &Line, recording: &Recording, to: &str, begun_s: f64) -> Value {
    let round_trip = |probe: &suimon_measure::Probe| {
        let (_, back) = probe.answer?;
        Some((probe.sent_us as f64 / 1e6, back.saturating_sub(probe.sent_us) as f64 / 1e3))
    };
    let pings: Series = recording.probes.iter().filter_map(round_trip).collect();
    let rates = |direction| -> Series {
        let (Some(way), Some(load)) = (line.way(direction), recording.load(direction)) else { return Vec::new() };
        let from_s = load.span.from_us as f64 / 1e6;
        way.capacity.iter().map(|point| (from_s + point.at_s, point.mbps)).collect()
    };
    let series = [
        ("TCP download", "Mbits/s", rates(Direction::Download)),
        ("TCP upload", "Mbits/s", rates(Direction::Upload)),
        (PING, "ms", pings),
    ];
    let length_s = recording.probes.last().map_or(0.0, |probe| probe.sent_us as f64 / 1e6);
    let steps = (length_s / STEP_S) as usize + 1;
    let mut results = serde_json::Map::new();
    let (mut raw, mut meta) = (results.clone(), results.clone());
    for (name, units, points) in &series {
        let values = points.iter().map(|(at_s, value)| json!({ "t": begun_s + at_s, "val": value }));
        results.insert((*name).to_owned(), json!(stepped(points, steps)));
        raw.insert((*name).to_owned(), values.collect());
        meta.insert((*name).to_owned(), json!({ "UNITS": units }));
    }
    let time = iso_time(begun_s);
    json!({
        "version": 4,
        "metadata": {
            "NAME": TEST, "TITLE": format!("suimon measure to {to}"), "HOST": to, "HOSTS": [to], "TIME": time, "T0": time,
            "LENGTH": length_s.round(), "TOTAL_LENGTH": length_s.round(), "STEP_SIZE": STEP_S, "TEST_PARAMETERS": {},
            "IP_VERSION": if recording.is_ipv6 { 6 } else { 4 }, "SERIES_META": meta,
            "NOTE": "Probes of 32 bytes by UDP, where flent has pings; the upload comes after the download.",
        },
        "x_values": (0..steps).map(|step| step as f64 * STEP_S).collect::<Vec<_>>(),
        "results": results,
        "raw_values": raw,
    })
}

/// The mean of what there is in each step, and nothing where there is none.
fn stepped(points: &Series, steps: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); steps];
    for (at_s, value) in points {
        if let Some((sum, count)) = sums.get_mut((at_s / STEP_S) as usize) {
            (*sum, *count) = (*sum + value, *count + 1);
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// Seconds since 1970 as `2026-11-23T12:00:00.000000Z`.
fn iso_time(unix_s: f64) -> String {
    let (whole, micros) = (unix_s as i64, (unix_s.fract() * 1e6) as u32);
    let (days, second) = (whole.div_euclid(86_400), whole.rem_euclid(86_400));
    // "civil_from_days" of Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013): years begin in March, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0.0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400.5, "2000-02-29T00:00:00.500000Z"),
            (1_735_689_599.0, "2024-12-31T23:59:59.000000Z"),
            (1_795_435_200.25, "2026-11-23T12:00:00.250000Z"),
        ] {
            assert_eq!(iso_time(unix_s), text);
        }
    }

    #[test]
    fn a_step_has_the_mean_of_its_values() {
        let points = vec![(0.0, 1.0), (0.1, 3.0), (0.5, 7.0), (9.0, 1.0)];
        assert_eq!(stepped(&points, 3), [Some(2.0), None, Some(7.0)]);
    }
}
