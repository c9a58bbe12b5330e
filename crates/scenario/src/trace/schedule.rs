//! Schedules: which rate a link has from when on.

use std::path::Path;
use std::sync::Arc;

use suimon_units::{Duration, Rate};

use super::{LATEST_MILLIS, MAX_FILE, read_text};
use crate::error::{Problem, ScenarioError};
use suimon_model::Capacity;

const HEADER: &str = "a header of two columns, the first of time, time_s, time_ms, the second of rate, \
                      rate_bps, rate_kbps, rate_mbps";

/// Rates and since when each holds. The list starts again after its period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateSchedule {
    steps: Arc<[(Duration, Rate)]>,
    period: Duration,
}

impl RateSchedule {
    /// Reads the schedule at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, and as [`RateSchedule::parse`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = read_text(path, MAX_FILE).map_err(|problem| ScenarioError::new(&name, problem))?;
        Self::parse(&text, &name)
    }

    /// Reads CSV with a header such as `time_s,rate_bps`; under the header `time,rate` each value
    /// carries its own unit. A last row without a rate says when the schedule starts again; without
    /// one, the last rate holds as long as the one before it, and a single one for a second.
    /// `source_name` is for messages.
    ///
    /// # Errors
    /// When the header or a value is not as said, the first time is not zero, a time is not later
    /// than the one before, or every rate is zero. Messages name the line.
    pub fn parse(text: &str, source_name: &str) -> Result<Self, ScenarioError> {
        let fail = |line, problem| Err(ScenarioError::new(source_name, problem).at_line(line));
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
        let columns = match reader.headers().map(Columns::read) {
            Ok(Some(columns)) => columns,
            Ok(None) if text.trim().is_empty() => {
                return fail(None, Problem::Missing { accepted: HEADER.to_owned() });
            }
            _ => {
                let text = text.lines().next().unwrap_or_default().chars().take(40).collect();
                let accepted = HEADER.to_owned();
                return fail(Some(1), Problem::Value { text, reason: "is not the header", accepted });
            }
        };
        let mut rows = Rows::default();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map(|position| line_number(position.line()));
                ScenarioError::new(source_name, Problem::Syntax { message: error.to_string() }).at_line(line)
            })?;
            let line = record.position().map(|position| line_number(position.line()));
            if let Err(problem) = columns.row(&record).and_then(|(time, rate)| rows.push(time, rate)) {
                return fail(line, problem);
            }
        }
        rows.finish().or_else(|problem| fail(None, problem))
    }

    /// Since when and which rate, ascending; the first at zero.
    #[must_use]
    pub fn steps(&self) -> &[(Duration, Rate)] {
        &self.steps
    }

    /// When the list starts again.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }
}

impl From<RateSchedule> for Capacity {
    fn from(schedule: RateSchedule) -> Self {
        Self::Steps { steps: schedule.steps, period: schedule.period }
    }
}

fn line_number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// Units of the two columns; empty where each value carries its own.
struct Columns {
    time: &'static str,
    rate: &'static str,
}

impl Columns {
    fn read(header: &csv::StringRecord) -> Option<Self> {
        let mut names = header.iter();
        let (Some(time), Some(rate), None) = (names.next(), names.next(), names.next()) else { return None };
        let time = match time {
            "time" => "",
            "time_s" => "s",
            "time_ms" => "ms",
            _ => return None,
        };
        let rate = match rate {
            "rate" => "",
            "rate_bps" => "bit",
            "rate_kbps" => "kbit",
            "rate_mbps" => "Mbit",
            _ => return None,
        };
        Some(Self { time, rate })
    }

    fn row(&self, record: &csv::StringRecord) -> Result<(Duration, Option<Rate>), Problem> {
        let (time, rate) = match (record.get(0), record.get(1), record.get(2)) {
            (Some(time), rate, None) => (time, rate.unwrap_or_default()),
            _ => {
                let text = record.iter().collect::<Vec<_>>().join(",").chars().take(40).collect();
                let accepted = "a time and a rate".to_owned();
                return Err(Problem::Value { text, reason: "has other columns than the header", accepted });
            }
        };
        let cut = |text: &str, unit| format!("{}{unit}", text.chars().take(40).collect::<String>());
        let time: Duration = cut(time, self.time).parse()?;
        let rate = if rate.is_empty() { None } else { Some(cut(rate, self.rate).parse()?) };
        Ok((time, rate))
    }
}

#[derive(Default)]
struct Rows {
    steps: Vec<(Duration, Rate)>,
    end: Option<Duration>,
}

impl Rows {
    fn push(&mut self, time: Duration, rate: Option<Rate>) -> Result<(), Problem> {
        let refuse = |reason, accepted: &str| {
            Err(Problem::Value { text: time.to_string(), reason, accepted: accepted.to_owned() })
        };
        match (self.steps.last(), rate) {
            _ if self.end.is_some() => refuse("follows the row without a rate", "no row after that"),
            _ if time > Duration::from_millis(LATEST_MILLIS) => refuse("is too late", "at most a year"),
            (Some((last, _)), _) if time <= *last => {
                refuse("is not later than the row before", "ascending times")
            }
            (None, None) => refuse("has no rate", "a rate in the first row"),
            (None, _) if time != Duration::ZERO => refuse("is the first time", "zero"),
            (_, Some(rate)) => {
                self.steps.push((time, rate));
                Ok(())
            }
            (_, None) => {
                self.end = Some(time);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<RateSchedule, Problem> {
        let period = match (self.end, self.steps.as_slice()) {
            (_, []) => return Err(Problem::Missing { accepted: "rows of a time and a rate".to_owned() }),
            (Some(end), _) => end,
            (None, [.., (before, _), (last, _)]) => *last + (*last - *before),
            (None, [_]) => Duration::from_secs(1),
        };
        if self.steps.iter().all(|(_, rate)| *rate == Rate::ZERO) {
            return Err(Problem::Value {
                text: Rate::ZERO.to_string(),
                reason: "is the rate of every row, so nothing ever moves",
                accepted: "some rate above zero".to_owned(),
            });
        }
        Ok(RateSchedule { steps: self.steps.into(), period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RateSchedule, ScenarioError> {
        RateSchedule::parse(text, "rates.csv")
    }

    #[test]
    fn the_header_names_the_units_or_each_value_does() {
        let expected =
            [(Duration::ZERO, Rate::from_bps(2_000_000)), (Duration::from_millis(500), Rate::ZERO)];
        let bare = parse("time_s,rate_bps\n0,2000000\n0.5,0\n").unwrap();
        let units = parse("time, rate\r\n0s, 2Mbit\r\n500ms, 0bit\r\n").unwrap();
        let scaled = parse("time_ms,rate_mbps\n0,2\n500,0\n").unwrap();
        assert_eq!(bare.steps(), expected);
        assert_eq!(bare, units);
        assert_eq!(bare, scaled);
    }

    #[test]
    fn the_last_rate_holds_as_long_as_the_one_before_or_until_a_row_without_rate() {
        assert_eq!(parse("time_s,rate_mbps\n0,1\n2,3\n").unwrap().period(), Duration::from_secs(4));
        assert_eq!(parse("time_s,rate_mbps\n0,1\n2,3\n9,\n").unwrap().period(), Duration::from_secs(9));
        assert_eq!(parse("time_s,rate_mbps\n0,1\n").unwrap().period(), Duration::from_secs(1));
    }

    #[test]
    fn refusals_name_the_line() {
        let line = |text| parse(text).unwrap_err().line();
        assert_eq!(line("0,1\n1,2\n"), Some(1));
        assert_eq!(line("time_s,rate_bps\n0,1\nx,2\n"), Some(3));
        assert_eq!(line("time_s,rate_bps\n0,1\n0,2\n"), Some(3));
        assert_eq!(line("time_s,rate_bps\n1,1\n"), Some(2));
        assert_eq!(line("time_s,rate_bps\n0,-1\n"), Some(2));
        assert_eq!(line("time_s,rate_bps\n0,1,2\n"), Some(2));
        assert_eq!(line("time_s,rate_bps\n0,1\n2,\n3,1\n"), Some(4));
        assert_eq!(line("time,rate\n0s,1\n"), Some(2));
    }

    #[test]
    fn a_schedule_that_never_moves_anything_is_refused() {
        assert!(parse("time_s,rate_bps\n0,0\n1,0\n").unwrap_err().to_string().contains("nothing ever moves"));
        assert!(parse("").unwrap_err().to_string().starts_with("rates.csv: missing"));
        assert!(parse("time_s,rate_bps\n").is_err());
    }
}
