//! A line as a scenario.

use std::fmt::Write as _;
use std::path::Path;

use suimon_measure::estimate::{QueueKind, Way};
use suimon_measure::{Direction, Line};

use crate::error::CliError;

pub(super) fn save(line: &Line, to: &str, file: &Path) -> Result<(), CliError> {
    let (Some(download), Some(upload)) = (&line.download, &line.upload) else {
        let problem = "the measurement ended before both directions were known; accepted: a whole one".to_owned();
        return Err(CliError::Option { option: "--save", problem });
    };
    Ok(std::fs::write(file, scenario(line, download, upload, to))?)
}

/// A scenario of the line with a download and an upload.
fn scenario(line: &Line, download: &Way, upload: &Way, to: &str) -> String {
    // Writing to a string cannot fail.
    let mut text = format!("# The line to {to}, as suimon measure found it.\nname = \"line\"\nduration = \"60s\"\n\n");
    let _ = writeln!(text, "[[link]]\nname = \"line\"\nbetween = [\"server\", \"client\"]");
    let delay = format!("{:.3}ms", line.idle.propagation_ms / 2.0);
    text += &way(download, &delay, line.idle.loss_percent / 2.0);
    text += "reported = true\n[link.reverse]\n";
    text += &way(upload, &delay, line.idle.loss_percent / 2.0);
    text += "reported = true\n";
    for (direction, from, to) in
        [(Direction::Download, "server", "client"), (Direction::Upload, "client", "server")]
    {
        let name = direction.as_str();
        let _ = write!(
            text,
            "\n[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = 4\ncc = \"cubic\"\n"
        );
    }
    text
}

fn way(way: &Way, delay: &str, loss_percent: f64) -> String {
    let mut text = format!("rate = \"{}bit\"\ndelay = \"{delay}\"\n", (way.capacity_mbps * 1e6).round());
    let queue = match way.queue {
        QueueKind::Fair => Some("fq-codel"),
        QueueKind::Aqm => Some("codel"),
        QueueKind::DropTail | QueueKind::Unknown => None,
    };
    match (queue, way.buffer) {
        (Some(queue), _) => {
            let _ = writeln!(text, "queue = \"{queue}\"");
        }
        // Half a packet short of what it holds, as the longest wait was seen by a small one. A packet fits at least.
        (None, Some(buffer)) => {
            let _ = writeln!(text, "buffer = \"{}B\"", buffer.bytes.max(LARGEST));
        }
        (None, None) => {}
    }
    if loss_percent > 0.0 {
        let _ = writeln!(text, "loss = \"{loss_percent:.3}%\"");
    }
    text
}

/// The size of a full packet, in bytes.
const LARGEST: u64 = 1_500;
