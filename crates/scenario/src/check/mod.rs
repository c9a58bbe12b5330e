//! What must hold in every scenario, however it was made.

mod flow;
mod link;

use std::collections::HashSet;
use std::fmt::Display;

use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units::{Bytes, Duration, Instant};

use self::flow::{check_aggregate, check_flow};
pub(crate) use self::link::check_capacity;
use self::link::{SharedRadios, check_link};
use crate::error::{Problem, ScenarioError};
use crate::model::{Link, Scenario, Window};
use crate::topology::Topology;

/// Longest time that anything may take: a year.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Largest IP packet.
const MAX_PACKET_SIZE: Bytes = Bytes::new(65_535);
/// Largest transfer and buffer: a petabyte, far from where sums of byte counts overflow.
const MAX_SIZE: Bytes = Bytes::new(1_000_000_000_000_000);
/// Most samples of one series.
const MAX_SAMPLES: u64 = 1_000_000;

/// Checks at a key path; `Err` carries the path below it and what is wrong there.
pub(crate) type Checked = Result<(), (String, Problem)>;

impl Scenario {
    /// Checks what the types do not: names are unique, routes exist, times are in order, sizes are
    /// sensible. The readers of this crate have done it; whoever builds a scenario by hand should.
    ///
    /// # Errors
    /// The first thing that does not hold, with its key path as in a scenario file.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.checked().map_err(|(key, problem)| ScenarioError::new(&self.name, problem).at_key(key))
    }

    pub(crate) fn checked(&self) -> Checked {
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

fn above_zero(key: &str, is_zero: bool) -> Checked {
    if is_zero { refuse(key, &0, "is nothing", "more than zero") } else { Ok(()) }
}

fn time(key: &str, value: Duration) -> Checked {
    if value > MAX_TIME { refuse(key, &value, "is too long", "at most a year (8760h)") } else { Ok(()) }
}

fn within(key: &str, value: Duration, least: Duration, most: Duration) -> Checked {
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

#[cfg(test)]
mod tests {
    use suimon_algorithms::registry::{AlgorithmSpec, Role};
    use suimon_units::{Probability, Rate};

    use super::*;
    use crate::model::{Buffer, Capacity, Start, Traffic};
    use crate::{Comparison, LinkSpec, OnOff, Scheme};

    fn scenario() -> Scenario {
        let link = LinkSpec::parse("2Mbit 180ms 96kB").unwrap();
        Comparison::new(link, vec![Scheme::parse("reno").unwrap()]).runs().unwrap().remove(0).scenario
    }

    /// What is said of the scenario after `change`.
    fn message(change: impl FnOnce(&mut Scenario)) -> String {
        let mut scenario = scenario();
        assert_eq!(scenario.check(), Ok(()));
        change(&mut scenario);
        scenario.check().unwrap_err().to_string()
    }

    fn tcp(scenario: &mut Scenario) -> &mut crate::TcpFlow {
        match &mut scenario.flows[0].traffic {
            Traffic::Tcp(tcp) => tcp,
            Traffic::Udp(_) => unreachable!("comparisons are of TCP flows"),
        }
    }

    #[test]
    fn an_estimator_needs_a_series_to_speak_in() {
        let with_estimator = |s: &mut Scenario| {
            s.links[0].estimator = Some(AlgorithmSpec::parse(Role::Estimator, "bursts").unwrap());
        };
        let unreported = message(|s| {
            with_estimator(s);
            s.links[0].reported = false;
        });
        assert!(unreported.ends_with("accepted: reported = true"), "{unreported}");
        let unrecorded = message(|s| {
            with_estimator(s);
            s.record.interval = None;
        });
        assert!(unrecorded.ends_with("accepted: a record_interval other than \"off\""), "{unrecorded}");
    }

    #[test]
    fn times_are_in_order_and_no_longer_than_a_year() {
        let second = Duration::from_secs(1);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(message(|s| s.duration = Duration::ZERO).contains("duration: \"0\" is nothing"));
        assert!(message(|s| s.duration = Duration::MAX).contains("at most a year"));
        assert!(message(|s| s.record.warmup = s.duration).contains("warmup"));
        assert!(message(|s| s.record.interval = Some(Duration::from_nanos(1))).contains("samples"));
        assert!(message(|s| s.record.interval = Some(Duration::ZERO)).contains("record_interval"));
        assert!(
            message(|s| s.flows[0].start = Start::At(at(60)))
                .contains("start: \"60 s\" is not before the end")
        );
        assert!(message(|s| s.flows[0].start = Start::Between(at(2), at(1))).contains("two times in order"));
        assert!(
            message(|s| s.flows[0].stop = Some(Instant::ZERO))
                .contains("stop: \"0 ns\" is not after the start")
        );
        assert!(
            message(|s| tcp(s).on_off = Some(OnOff { on: second, off: Duration::ZERO }))
                .contains("on_off.off")
        );
        let window = |from, to, sample| {
            let window = Window { name: "w".to_owned(), from: at(from), to: at(to), sample };
            message(|s| s.record.windows = vec![window])
        };
        assert!(window(5, 5, second).contains("window.w.to: \"5 s\" is not after \"from\""));
        assert!(window(5, 61, second).contains("window.w.to: \"61 s\" is after the end"));
        assert!(window(5, 60, Duration::ZERO).contains("window.w.sample"));
        assert!(window(5, 60, Duration::from_nanos(1)).contains("samples"));
        assert!(message(|s| s.links[0].delay = Duration::MAX).contains("link.bottleneck.delay"));
    }

    #[test]
    fn sizes_are_sensible() {
        assert!(
            message(|s| tcp(s).window = Bytes::new(1_447)).contains("window: \"1.447 kB\" is out of range")
        );
        assert!(message(|s| tcp(s).window = Bytes::new((1 << 30) + 1)).contains("out of range"));
        assert!(message(|s| tcp(s).size = Some(Bytes::ZERO)).contains("flow.reno.size"));
        assert!(message(|s| tcp(s).profile.mss = Bytes::new(65_535)).contains("stack.mss"));
        assert!(message(|s| tcp(s).profile.initial_window = 0).contains("stack.initial_window"));
        assert!(message(|s| tcp(s).profile.rto_min = Duration::ZERO).contains("stack.rto_min"));
        assert!(message(|s| s.links[0].buffer = Buffer::Packets(0)).contains("more than zero"));
        let text = message(|s| s.links[0].buffer = Buffer::Bytes(Bytes::new(1_499)));
        assert!(
            text.contains("link.bottleneck.buffer: \"1.499 kB\" holds no packet; accepted: at least 1.5 kB"),
            "{text}"
        );
        assert!(
            message(|s| s.links[1].buffer = Buffer::Bytes(Bytes::new(51)))
                .contains("bottleneck-reverse.buffer")
        );
    }

    #[test]
    fn names_are_unique_and_ends_are_connected() {
        assert!(message(|s| s.links.clear()).contains("at least one link"));
        assert!(message(|s| s.flows.clear()).contains("at least one flow"));
        assert!(message(|s| s.flows.push(s.flows[0].clone())).contains("a second flow is called \"reno\""));
        assert!(message(|s| s.links.push(s.links[0].clone())).contains("a second link"));
        assert!(message(|s| s.links[0].to = "sender".to_owned()).contains("both ends"));
        let text = message(|s| s.flows[0].to = "reciever".to_owned());
        assert!(text.contains("no node is called \"reciever\" (did you mean \"receiver\"?)"), "{text}");
        assert!(message(|s| s.flows[0].to = "sender".to_owned()).contains("another node"));
        let text = message(|s| {
            for link in &mut s.links {
                (link.capacity, link.delay) = (Capacity::Rate(Rate::MAX), Duration::ZERO);
            }
        });
        assert!(text.contains("flow.reno.to: \"receiver\" is no time away"), "{text}");
        assert!(message(|s| s.links.truncate(1)).contains("no links lead from \"receiver\" to \"sender\""));
    }

    #[test]
    fn a_route_may_have_many_hops_and_cycles() {
        let mut scenario = scenario();
        let node = |nth: usize| if nth == 0 { "receiver".to_owned() } else { format!("n{nth}") };
        for hop in 0..1_000 {
            for (from, to) in [(hop, hop + 1), (hop + 1, hop)] {
                let name = format!("{from}-{to}");
                scenario.links.push(Link {
                    name,
                    from: node(from),
                    to: node(to),
                    ..scenario.links[0].clone()
                });
            }
        }
        scenario.flows[0].to = node(1_000);
        assert_eq!(scenario.check(), Ok(()));
        scenario.links[1_500].buffer = Buffer::Bytes(Bytes::new(9));
        assert!(scenario.check().is_err());
    }

    #[test]
    fn lists_of_capacity_made_by_hand_are_checked_too() {
        let ms = Duration::from_millis;
        let steps = |steps: &[(Duration, Rate)]| Capacity::Steps { steps: steps.into(), period: ms(10) };
        let times = |times: &[Duration]| Capacity::Opportunities { times: times.into(), period: ms(10) };
        let rate = Rate::from_bps(1);
        for capacity in [
            times(&[]),
            times(&[ms(2), ms(1)]),
            times(&[ms(11)]),
            steps(&[]),
            steps(&[(ms(0), Rate::ZERO)]),
            steps(&[(ms(1), rate)]),
            steps(&[(ms(0), rate), (ms(0), rate)]),
            steps(&[(ms(0), rate), (ms(10), rate)]),
            Capacity::Rate(Rate::ZERO),
        ] {
            let text = format!("{capacity:?}");
            assert!(message(|s| s.links[0].capacity = capacity).contains("link.bottleneck."), "{text}");
        }
        let mut good = scenario();
        good.links[0].capacity = times(&[ms(1), ms(1), ms(10)]);
        good.links[0].loss = crate::Loss::Random(Probability::ONE);
        assert_eq!(good.check(), Ok(()));
    }
}
