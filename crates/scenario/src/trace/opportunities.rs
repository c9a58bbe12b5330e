//! Mahimahi traces: when a link may send.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use suimon_units::{Duration, Rate};

use super::{LATEST_MILLIS, MAX_FILE, read_text};
use crate::error::{Problem, ScenarioError};
use suimon_model::Capacity;

const ACCEPTED: &str = "one whole number of milliseconds a line, none less than the one before";

/// A Mahimahi trace: times at which a link may send one packet of 1500 bytes. The list starts again
/// after the last of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunities {
    times: Arc<[Duration]>,
    period: Duration,
}

impl Opportunities {
    /// Opportunities at `times`, in whole milliseconds; parts of one are cut off, since the format
    /// has none.
    ///
    /// # Errors
    /// When there are none, one is earlier than the one before, or the last is at zero.
    pub fn new(times: impl IntoIterator<Item = Duration>) -> Result<Self, ScenarioError> {
        Self::from_millis(times.into_iter().map(|time| Ok((None, time.as_nanos() / 1_000_000))), "trace")
    }

    /// Opportunities at `times`, each put off to the next whole millisecond, over a list of whole milliseconds that
    /// is no shorter than `period`; the last one stands at its end, as the format asks.
    ///
    /// # Errors
    /// When there are none.
    pub fn over(times: impl IntoIterator<Item = Duration>, period: Duration) -> Result<Self, ScenarioError> {
        let whole = |time: Duration| time.as_nanos().div_ceil(1_000_000).max(1);
        let mut millis: Vec<u64> = times.into_iter().map(whole).collect();
        // The list ends with its last opportunity, so that a silent end would get lost.
        if let Some(last) = millis.last_mut() {
            *last = (*last).max(whole(period));
        }
        Self::from_millis(millis.into_iter().map(|millis| Ok((None, millis))), "trace")
    }

    /// Reads the trace at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`Opportunities::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = read_text(path, MAX_FILE).map_err(|problem| ScenarioError::new(&name, problem))?;
        Self::parse(&text, &name)
    }

    /// Reads a trace: a whole number of milliseconds a line. Spaces around it, carriage returns and
    /// blank lines at the end are tolerated. `source_name` is for messages.
    ///
    /// # Errors
    /// When a line is not a number or is less than the one before, when the last is zero, and when
    /// there are none. Messages name the line.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ScenarioError> {
        let lines = text.trim_end().lines().enumerate().map(|(index, line)| {
            let number = Some(index + 1);
            match line.trim().parse::<u64>() {
                Ok(millis) => Ok((number, millis)),
                Err(_) => Err(refuse(source_name, line.trim(), "is not a whole number").at_line(number)),
            }
        });
        Self::from_millis(lines, source_name)
    }

    fn from_millis(
        lines: impl Iterator<Item = Result<(Option<usize>, u64), ScenarioError>>,
        source_name: &str,
    ) -> Result<Self, ScenarioError> {
        let mut times = Vec::new();
        let mut last = 0;
        for line in lines {
            let (number, millis) = line?;
            let refuse = |reason| Err(refuse(source_name, &millis.to_string(), reason).at_line(number));
            if millis < last {
                return refuse("is earlier than the line before");
            }
            if millis > LATEST_MILLIS {
                return refuse("is later than a year");
            }
            last = millis;
            times.push(Duration::from_millis(millis));
        }
        if times.is_empty() {
            let problem = Problem::Missing { accepted: ACCEPTED.to_owned() };
            return Err(ScenarioError::new(source_name, problem));
        }
        if last == 0 {
            return Err(refuse(source_name, "0", "is the last line, so the trace has no length"));
        }
        Ok(Self { times: times.into(), period: Duration::from_millis(last) })
    }

    /// When the link may send, ascending.
    #[must_use]
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// When the list starts again: the last of its times.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The rate of a link that uses every opportunity in full.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        Rate::of(Capacity::OPPORTUNITY * self.times.len() as u64, self.period)
    }

    /// The trace in Mahimahi's format, which [`Opportunities::parse`] reads back.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.times.len() * 7);
        for time in &*self.times {
            writeln!(text, "{}", time.as_nanos() / 1_000_000).expect("writing to a string cannot fail");
        }
        text
    }
}

impl From<Opportunities> for Capacity {
    fn from(trace: Opportunities) -> Self {
        Self::Opportunities { times: trace.times, period: trace.period }
    }
}

fn refuse(source_name: &str, text: &str, reason: &'static str) -> ScenarioError {
    let text = text.chars().take(40).collect();
    ScenarioError::new(source_name, Problem::Value { text, reason, accepted: ACCEPTED.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_reads_and_writes_the_same() {
        let text = "0\n3\n3\n10\n";
        let trace = Opportunities::parse(text, "t").unwrap();
        assert_eq!(trace.times().len(), 4);
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_800_000));
        assert_eq!(trace.to_text(), text);
        assert_eq!(Opportunities::new(trace.times().iter().copied()), Ok(trace));
    }

    #[test]
    fn carriage_returns_and_blank_lines_at_the_end_are_tolerated() {
        let trace = Opportunities::parse("1\r\n 2\r\n\r\n\n", "t").unwrap();
        assert_eq!(trace.to_text(), "1\n2\n");
    }

    #[test]
    fn refusals_name_the_line() {
        let line = |text| Opportunities::parse(text, "t.down").unwrap_err().line();
        assert_eq!(line("1\n2\nx\n"), Some(3));
        assert_eq!(line("1\n\n2\n"), Some(2));
        assert_eq!(line("5\n4\n"), Some(2));
        assert_eq!(line("-1\n"), Some(1));
        assert_eq!(line("1.5\n"), Some(1));
        assert_eq!(line("99999999999999\n"), Some(1));
        let message = Opportunities::parse("5\n4\n", "t.down").unwrap_err().to_string();
        assert!(
            message.starts_with("t.down:2: \"4\" is earlier than the line before; accepted:"),
            "{message}"
        );
    }

    #[test]
    fn a_trace_without_length_is_refused() {
        assert!(Opportunities::parse("", "t").unwrap_err().to_string().contains("missing"));
        assert!(Opportunities::parse("\n\n", "t").is_err());
        assert!(Opportunities::parse("0\n0\n", "t").unwrap_err().to_string().contains("no length"));
        assert!(Opportunities::read("/nonexistent").unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn measured_traces_read_and_write_the_same() {
        let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces"));
        let Ok(entries) = std::fs::read_dir(directory) else {
            println!("skipped: no measured traces beside the repository, at ../shared/traces");
            return;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "down" || extension == "up") {
                let trace = Opportunities::read(&path).unwrap();
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(trace.to_text(), text, "{}", path.display());
                let rate = trace.mean_rate();
                assert!(rate > Rate::from_bps(100_000) && rate < Rate::from_bps(100_000_000), "{rate}");
            }
        }
    }
}
