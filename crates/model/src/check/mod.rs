//! What must hold in every scenario, however it was made.

mod flow;
mod link;

use std::collections::HashSet;
use std::fmt::Display;

use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units::{Bytes, Duration, Instant};

use self::flow::{check_aggregate, check_flow};
use self::link::check_link;
use crate::capacity::SharedRadios;
use crate::error::{Invalid, Problem};
use crate::link::Link;
use crate::scenario::{Scenario, Window};
use crate::topology::Topology;

/// Longest time that anything may take: a year.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Largest IP packet.
const MAX_PACKET_SIZE: Bytes = Bytes::new(65_535);
/// Largest transfer and buffer: a petabyte, far from where sums of byte counts overflow.
const MAX_SIZE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Most samples of one series.
const MAX_SAMPLES: u64 = 1_000_000;
/// Most samples of all flows, aggregates and links together: some 600 MB.
const MAX_ALL_SAMPLES: u64 = 10_000_000;

/// Checks at a key path; `Err` carries the path below it and what is wrong there.
pub(crate) type Checked = Result<(), (String, Problem)>;

impl Scenario {
    /// Checks what the types do not: names are unique, routes exist, times are in order, sizes are
    /// sensible. Readers of scenarios have done it; whoever builds one by hand should.
    ///
    /// # Errors
    /// The first thing that does not hold, with its key path as in a scenario file.
    pub fn check(&self) -> Result<(), Invalid> {
        self.checked().map_err(|(key, problem)| Invalid { subject: self.name.clone(), key, problem })
    }

    fn checked(&self) -> Checked {
        time("duration", self.duration)?;
        above_zero("duration", self.duration == Duration::ZERO)?;
        if self.record.warmup >= self.duration {
            return refuse("warmup", &self.record.warmup, "is not before the end", "less than the duration");
        }
        if let Some(interval) = self.record.interval {
            above_zero("record_interval", interval == Duration::ZERO)?;
            if self.duration.as_nanos() / interval.as_nanos() > MAX_SAMPLES {
                let accepted = format!("at most {MAX_SAMPLES} samples in a run");
                return refuse("record_interval", &interval, "is too short for the duration", accepted);
            }
            let links = self.links.iter().filter(|link| link.reported).count();
            let series = self.flows.len() + self.aggregates.len() + links;
            if (self.duration.as_nanos() / interval.as_nanos()).saturating_mul(series as u64)
                > MAX_ALL_SAMPLES
            {
                let accepted =
                    format!("at most {MAX_ALL_SAMPLES} samples of all {series} series together, \"off\"");
                return refuse("record_interval", &interval, "is too short for so many series", accepted);
            }
        }
        unique("window", self.record.windows.iter().map(|window| &window.name))?;
        for window in &self.record.windows {
            check_window(window, self.duration)
                .map_err(|(key, problem)| (format!("window.{}.{key}", window.name), problem))?;
        }
        above_zero("rate_spread", self.record.rate_spread == Some(0))?;
        if self.links.is_empty() {
            return Err(("link".to_owned(), Problem::Missing { accepted: "at least one link".to_owned() }));
        }
        if self.flows.is_empty() {
            return Err(("flow".to_owned(), Problem::Missing { accepted: "at least one flow".to_owned() }));
        }
        unique("link", self.links.iter().map(|link| &link.name))?;
        unique("flow", self.flows.iter().map(|flow| &flow.name))?;
        let mut shared = SharedRadios::default();
        for link in &self.links {
            let checked =
                check_link(link).and_then(|()| shared.check(link)).and_then(|()| self.check_estimator(link));
            checked.map_err(|(key, problem)| match key.strip_prefix('/') {
                // The fault of a radio that the link shares.
                Some(absolute) => (absolute.to_owned(), problem),
                None => (format!("link.{}.{key}", link.name), problem),
            })?;
        }
        unique("aggregate", self.aggregates.iter().map(|aggregate| &aggregate.name))?;
        for (position, aggregate) in self.aggregates.iter().enumerate() {
            check_aggregate(aggregate, &self.flows, &self.aggregates[..position])
                .map_err(|(key, problem)| (format!("aggregate.{}.{key}", aggregate.name), problem))?;
        }
        let mut topology = Topology::new(&self.links);
        for flow in &self.flows {
            check_flow(flow, self.duration).and_then(|()| topology.check(flow)).map_err(
                |(key, problem)| match key.strip_prefix('/') {
                    // The fault of a link that the flow uses.
                    Some(absolute) => (absolute.to_owned(), problem),
                    None => (format!("flow.{}.{key}", flow.name), problem),
                },
            )?;
        }
        Ok(())
    }
}

impl Scenario {
    /// An estimator speaks in the link's series alone.
    fn check_estimator(&self, link: &Link) -> Checked {
        let refused = |estimator: &AlgorithmSpec, what, accepted: &str| {
            refuse("estimator", &estimator.label(), what, accepted)
        };
        match &link.estimator {
            Some(estimator) if !link.reported => {
                refused(estimator, "is on a link that is not reported", "reported = true")
            }
            Some(estimator) if self.record.interval.is_none() => {
                refused(estimator, "has no series to speak in", "a record_interval other than \"off\"")
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn refuse<T>(
    key: &str,
    value: &dyn Display,
    reason: &'static str,
    accepted: impl Into<String>,
) -> Result<T, (String, Problem)> {
    Err((key.to_owned(), Problem::Value { text: value.to_string(), reason, accepted: accepted.into() }))
}

pub(crate) fn above_zero(key: &str, is_zero: bool) -> Checked {
    if is_zero { refuse(key, &0, "is nothing", "more than zero") } else { Ok(()) }
}

pub(crate) fn time(key: &str, value: Duration) -> Checked {
    if value > MAX_TIME { refuse(key, &value, "is too long", "at most a year (8760h)") } else { Ok(()) }
}

pub(crate) fn within(key: &str, value: Duration, least: Duration, most: Duration) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(key, &value, "is out of range", format!("{least} to {most}"))
}

fn bytes(key: &str, value: Bytes, least: Bytes, most: Bytes) -> Checked {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(key, &value, "is out of range", format!("{least} to {most}"))
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a String>) -> Checked {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err((format!("{what}.{name}"), Problem::Duplicate { what, name: name.clone() }));
        }
    }
    Ok(())
}

fn check_window(window: &Window, duration: Duration) -> Checked {
    let to = window.to.saturating_since(Instant::ZERO);
    if window.to <= window.from {
        return refuse("to", &to, "is not after \"from\"", "a later time");
    }
    if to > duration {
        return refuse("to", &to, "is after the end", "at most the duration");
    }
    above_zero("sample", window.sample == Duration::ZERO)?;
    if duration.as_nanos() / window.sample.as_nanos() > MAX_SAMPLES {
        let accepted = format!("at most {MAX_SAMPLES} samples in a run");
        return refuse("sample", &window.sample, "is too short for the duration", accepted);
    }
    Ok(())
}
