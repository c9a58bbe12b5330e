//! Links whose rate varies: recordings, schedules and synthetic ones.

mod cellular;
mod opportunities;
mod schedule;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use cellular::CellularModel;
pub use opportunities::Opportunities;
pub use schedule::RateSchedule;

use crate::error::{Problem, ScenarioError};
use suimon_model::Capacity;

/// Latest time of a trace or schedule, in milliseconds: a year.
const LATEST_MILLIS: u64 = 365 * 24 * 3_600 * 1_000;

/// Largest file of either format: a day of a fast link.
pub(crate) const MAX_FILE: u64 = 256 << 20;

/// Reads the file at `path` as what it is: a schedule where it starts with a header, and else a trace.
///
/// # Errors
/// When the file cannot be read, and as [`RateSchedule::parse`] and [`Opportunities::parse`].
pub fn read_capacity(path: impl AsRef<Path>) -> Result<Capacity, ScenarioError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let text = read_text(path, MAX_FILE).map_err(|problem| ScenarioError::new(&name, problem))?;
    if text.trim_start().starts_with("time") {
        RateSchedule::parse(&text, &name).map(Into::into)
    } else {
        Opportunities::parse(&text, &name).map(Into::into)
    }
}

/// The text of the file at `path`, if it is no larger than `largest` bytes.
pub(crate) fn read_text(path: &Path, largest: u64) -> Result<String, Problem> {
    let unreadable = |message: String| Problem::Unreadable { path: path.display().to_string(), message };
    let io = |error: std::io::Error| unreadable(error.to_string());
    let file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    // A device or a pipe may never end, so the size in the directory is not trusted.
    file.take(largest + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > largest {
        return Err(unreadable(format!("it is larger than {} MiB", largest >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cell");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_capacity(&path)
        };
        assert!(matches!(read("1\n2\n"), Ok(Capacity::Opportunities { .. })));
        assert!(matches!(read("time_s,rate_bps\n0,1\n"), Ok(Capacity::Steps { .. })));
        assert!(read("").unwrap_err().to_string().contains("missing"));
        assert!(
            read_capacity(directory.path().join("none")).unwrap_err().to_string().contains("cannot read")
        );
    }
}
