//! A line in words and as JSON.

use std::path::Path;

use comfy_table::{CellAlignment, Table, TableStyle};
use serde_json::{Value, json};
use suimon_measure::estimate::{FirstHop, QueueKind, Way};
use suimon_measure::{Direction, Line};
use suimon_report::Grade;
use suimon_units::Duration;

/// The grade of a direction: by what others wait there while it is loaded.
pub(super) fn grade(way: &Way) -> Grade {
    Grade::of(Duration::from_secs_f64(way.queue_p95_ms / 1e3))
}

/// The direction with the worse grade, where one was loaded.
fn worse(line: &Line) -> Option<(Direction, &Way)> {
    let ways = Direction::BOTH.into_iter().filter_map(|direction| Some((direction, line.way(direction)?)));
    ways.max_by(|a, b| a.1.queue_p95_ms.total_cmp(&b.1.queue_p95_ms))
}

pub(super) fn json(line: &Line, to: &str) -> Value {
    let mut value = serde_json::to_value(line).expect("plain data");
    value["to"] = to.into();
    for direction in Direction::BOTH {
        if let Some(way) = line.way(direction) {
            value[direction.as_str()]["grade"] = json!(grade(way));
        }
    }
    value["grade"] = json!(worse(line).map(|(_, way)| grade(way)));
    value["meaning"] = meaning(line).into();
    value
}

pub(super) fn text(line: &Line, to: &str, saved: Option<&Path>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(["", "download", "upload"]);
    for row in rows(line) {
        table.add_row(row);
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let idle = &line.idle;
    let mut text = format!(
        "The line to {to}\n\nidle round trip {}, 95 % below {}; jitter {}, lost {}\n\n{}\n\n{}\n",
        ms(idle.rtt_ms),
        ms(idle.rtt_p95_ms),
        ms(idle.jitter_ms),
        percent(idle.loss_percent),
        table.trim_fmt(),
        meaning(line),
    );
    text += &line.first_hop.as_ref().map(first_hop).unwrap_or_default();
    match saved {
        Some(file) => text += &format!("What would help: suimon compare --line {}\n", file.display()),
        None => text += "What would help: measure with --save line.toml, then suimon compare --line line.toml\n",
    }
    text
}

/// The round trips to the gateway, in words.
fn first_hop(hop: &FirstHop) -> String {
    let beside = [("download", hop.download_rtt_p95_ms), ("upload", hop.upload_rtt_p95_ms)];
    let said = beside.iter().filter_map(|(name, loaded)| Some(format!(", beside the {name} {}", ms((*loaded)?))));
    format!(
        "First hop {}: idle {}{} (95 % below), lost {}\n",
        hop.address,
        ms(hop.rtt_p95_ms),
        said.collect::<String>(),
        percent(hop.loss_percent)
    )
}

/// A quantity in each direction, in words.
pub(super) fn rows(line: &Line) -> Vec<[String; 3]> {
    let cell = |way: &Option<Way>, value: fn(&Way) -> String| way.as_ref().map_or_else(|| "-".to_owned(), value);
    let row = |(name, value): &Row| [(*name).to_owned(), cell(&line.download, *value), cell(&line.upload, *value)];
    let has_rpm = [&line.download, &line.upload].into_iter().flatten().any(|way| way.responsiveness.is_some());
    ROWS.iter().map(row).chain(has_rpm.then(|| row(&RPM))).collect()
}

type Row = (&'static str, fn(&Way) -> String);

const ROWS: &[Row] = &[
    ("capacity", |way| {
        if way.varies {
            format!("{} to {}", mbps(way.capacity_p10_mbps), mbps(way.capacity_p90_mbps))
        } else {
            mbps(way.capacity_mbps)
        }
    }),
    ("loaded round trip, half below", |way| ms(way.rtt_p50_ms)),
    ("loaded round trip, 95 % below", |way| ms(way.rtt_p95_ms)),
    ("others wait, 95 % below", |way| ms(way.queue_p95_ms)),
    ("the load waits, 95 % below", |way| ms(way.own_queue_p95_ms)),
    ("buffer", |way| {
        way.buffer.map_or_else(
            || "-".to_owned(),
            |buffer| {
                let least = if buffer.is_at_least { "at least " } else { "" };
                format!("{least}{}, {}", kilobytes(buffer.bytes), ms(buffer.ms))
            },
        )
    }),
    ("queue", |way| way.queue.as_str().to_owned()),
    ("lost beside the load", |way| percent(way.loss_percent)),
    ("sent again by the load", |way| percent(way.retransmitted_percent)),
    ("grade", |way| grade(way).to_string()),
];

/// Shown where it was asked for.
const RPM: Row = ("round trips a minute (TCP only)", |way| {
    way.responsiveness.map_or_else(|| "-".to_owned(), |found| format!("{:.0} RPM", found.rpm))
});

/// Whether the access line lies beyond the gateway. It does not where the gateway is the provider's, as behind a modem
/// that is no router: then the gateway is about as far as the server, or has a public address.
fn is_in_house(hop: &FirstHop, line: &Line) -> bool {
    const AS_FAR: f64 = 0.9;
    // RFC 6598 shares 100.64.0.0/10 among providers, tunnels and emulated networks.
    let is_shared = hop.address.octets()[0] == 100 && hop.address.octets()[1] & 0xc0 == 64;
    let is_public = !(hop.address.is_private() || hop.address.is_link_local() || is_shared);
    !is_public && hop.rtt_ms < AS_FAR * line.idle.rtt_ms
}

/// What the numbers mean for the user, and where to begin.
pub(super) fn meaning(line: &Line) -> String {
    let Some((direction, way)) = worse(line) else {
        return "The line was measured idle only.".to_owned();
    };
    let effect = match grade(way) {
        Grade::APlus => "nothing to notice, not even in games",
        Grade::A => "calls and games are unharmed",
        Grade::B => "calls are fine, games feel it",
        Grade::C => "calls suffer",
        Grade::D => "calls break up, and pages hesitate",
        Grade::F => "calls, games and remote work are hard or impossible",
    };
    // Most of the wait is on this side of the gateway.
    let near = line.first_hop.filter(|hop| is_in_house(hop, line)).and_then(|hop| hop.added_ms(direction));
    let is_near = near.is_some_and(|added| added > 0.5 * way.queue_p95_ms);
    let cause = match (way.queue, grade(way)) {
        (_, Grade::APlus | Grade::A) => "There is nothing to change.",
        _ if is_near => "Packets wait at the first hop already: the Wi-Fi is the place to begin, not the access line.",
        (QueueKind::DropTail, _) => "The buffer is too deep: a queue such as cake or fq-codel in front of it helps.",
        (QueueKind::Aqm, _) => "The queue is managed, and still too long: flows that wait apart help.",
        (QueueKind::Fair, _) => "Flows wait apart, and packets still wait: a shaper below the line's rate helps.",
        (QueueKind::Unknown, _) => "The load did not fill the buffer.",
    };
    format!(
        "Grade {}: beside {} 95 % of the packets of others wait up to {}; {effect}. {cause}",
        grade(way),
        match direction {
            Direction::Download => "a download",
            Direction::Upload => "an upload",
        },
        ms(way.queue_p95_ms),
    )
}

pub(super) fn ms(ms: f64) -> String {
    format!("{} ms", significant(ms))
}

pub(super) fn mbps(mbps: f64) -> String {
    if mbps < 1.0 { format!("{} kbit/s", significant(mbps * 1e3)) } else { format!("{} Mbit/s", significant(mbps)) }
}

fn percent(percent: f64) -> String {
    format!("{} %", significant(percent))
}

fn kilobytes(bytes: u64) -> String {
    let kilobytes = bytes as f64 / 1e3;
    if kilobytes < 1e3 { format!("{} kB", significant(kilobytes)) } else { format!("{} MB", significant(kilobytes / 1e3)) }
}

/// Three digits that count, and none behind the point from a hundred on.
pub(super) fn significant(value: f64) -> String {
    match value {
        _ if value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ if value == 0.0 => "0".to_owned(),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use suimon_measure::estimate::Idle;

    use super::*;

    #[test]
    fn a_gateway_of_the_provider_is_not_in_the_house() {
        let idle = Idle {
            rtt_ms: 20.0,
            rtt_min_ms: 20.0,
            rtt_p95_ms: 21.0,
            jitter_ms: 0.1,
            loss_percent: 0.0,
            propagation_ms: 20.0,
        };
        let line = Line { idle, download: None, upload: None, first_hop: None };
        for (address, rtt_ms, is_near) in [
            ([192, 168, 1, 1], 2.0, true),
            ([192, 168, 1, 1], 17.9, true),
            ([192, 168, 1, 1], 18.0, false),
            ([100, 64, 0, 1], 2.0, true),
            ([100, 128, 0, 1], 2.0, false),
            ([198, 51, 100, 1], 2.0, false),
        ] {
            let hop = FirstHop {
                address: Ipv4Addr::from(address),
                rtt_ms,
                rtt_p95_ms: rtt_ms,
                download_rtt_p95_ms: None,
                upload_rtt_p95_ms: None,
                loss_percent: 0.0,
            };
            assert_eq!(is_in_house(&hop, &line), is_near, "{address:?}, {rtt_ms} ms");
        }
    }
}
