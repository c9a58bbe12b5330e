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

use crate::error::Problem;

/// Latest time of a trace or schedule, in milliseconds: a year.
const LATEST_MILLIS: u64 = 365 * 24 * 3_600 * 1_000;

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
