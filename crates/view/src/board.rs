//! The statistics of all links, now and earlier.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use suimon_emulator::{DirectionStatistics, LinkStatistics};
use suimon_units::{Bytes, Duration};

/// The place where links put their statistics, and where views find them. Threads share it.
#[derive(Debug, Default)]
pub struct Board {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    title: String,
    links: Vec<Link>,
    /// The number of updates, so that a reader can ask for the new ones.
    posted: u64,
}

/// One link as it is, and as it was.
#[derive(Debug)]
pub(crate) struct Link {
    group: String,
    pub(crate) now: LinkStatistics,
    pub(crate) samples: VecDeque<Sample>,
}

/// One direction of a link in one interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Sample {
    #[serde(skip)]
    number: u64,
    at_s: f64,
    pub(crate) directions: [Point; 2],
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Point {
    pub(crate) throughput_bps: f64,
    pub(crate) backlog_bytes: f64,
    /// NaN is written as null: nothing left in the interval.
    pub(crate) sojourn_ms: f64,
    pub(crate) marked: u64,
    pub(crate) dropped: u64,
}

/// Samples that are kept of each link: ten minutes of ten a second.
const HISTORY: usize = 6_000;

/// Links that are kept; the one of which nothing was heard for longest is forgotten first.
const MAX_LINKS: usize = 64;

impl Board {
    /// An empty board under this heading.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { inner: Mutex::new(Inner { title: title.to_owned(), ..Inner::default() }) }
    }

    /// Takes the statistics of the links of `group`, a run or a command.
    pub fn post(&self, group: &str, links: &[LinkStatistics]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for statistics in links {
            inner.post(group, statistics);
        }
    }

    pub(crate) fn title(&self) -> String {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).title.clone()
    }

    /// All links, with at most so many of their latest samples.
    pub(crate) fn links(&self, samples: usize) -> Vec<Link> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = |link: &Link| {
            let from = link.samples.len().saturating_sub(samples);
            Link {
                group: link.group.clone(),
                now: link.now.clone(),
                samples: link.samples.range(from..).copied().collect(),
            }
        };
        inner.links.iter().map(latest).collect()
    }

    /// Everything as JSON, of samples those posted after `since`.
    pub(crate) fn json(&self, since: u64) -> String {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let document = Document {
            title: &inner.title,
            posted: inner.posted,
            links: inner.links.iter().map(|link| LinkJson::of(link, since)).collect(),
        };
        serde_json::to_string(&document).expect("a board has text keys, so it always serialises")
    }
}

impl Inner {
    fn post(&mut self, group: &str, statistics: &LinkStatistics) {
        let known = |link: &Link| link.group == group && link.now.name == statistics.name;
        let place = self.links.iter().position(known).unwrap_or_else(|| {
            if self.links.len() >= MAX_LINKS {
                let latest = |link: &Link| link.samples.back().map(|sample| sample.number);
                let quiet = (0..self.links.len()).min_by_key(|place| latest(&self.links[*place]));
                quiet.map(|quiet| self.links.remove(quiet));
            }
            let (group, now) = (group.to_owned(), statistics.clone());
            self.links.push(Link { group, now, samples: VecDeque::new() });
            self.links.len() - 1
        });
        let link = &mut self.links[place];
        if !link.samples.is_empty() && link.now.at == statistics.at {
            return;
        }
        let point = |way: usize| {
            let (now, before) = (&statistics.directions[way], &link.now.directions[way]);
            Point {
                throughput_bps: now.throughput.as_bps_f64(),
                backlog_bytes: now.backlog.bytes.as_f64(),
                sojourn_ms: now.sojourn.map_or(f64::NAN, Duration::as_millis_f64),
                marked: now.totals.marked.saturating_sub(before.totals.marked),
                dropped: now.lost().saturating_sub(before.lost()),
            }
        };
        self.posted += 1;
        let sample = Sample {
            number: self.posted,
            at_s: statistics.at.as_secs_f64(),
            directions: [point(0), point(1)],
        };
        if link.samples.len() >= HISTORY {
            link.samples.pop_front();
        }
        link.samples.push_back(sample);
        link.now = statistics.clone();
    }
}

/// A direction of a link that readers are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) link: &'a Link,
    pub(crate) way: usize,
}

impl Shown<'_> {
    pub(crate) fn statistics(&self) -> &DirectionStatistics {
        &self.link.now.directions[self.way]
    }

    /// The link's, or where both of its ways are shown, the way's.
    pub(crate) fn name(&self) -> String {
        self.link.in_group(&self.statistics().totals.name)
    }
}

/// True of all but a way back that takes no more than its time: where nothing ever waited nor was lost.
fn is_shown(link: &LinkStatistics, way: usize) -> bool {
    let direction = &link.directions[way];
    let totals = &direction.totals;
    way == 0 || totals.utilisation.is_some() || totals.delay_max > Duration::ZERO || direction.lost() > 0
}

impl Link {
    pub(crate) fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        [0, 1].into_iter().filter(|way| is_shown(&self.now, *way)).map(|way| Shown { link: self, way })
    }

    /// `name`, told apart from that of other groups.
    fn in_group(&self, name: &str) -> String {
        match self.group.as_str() {
            "" => name.to_owned(),
            group => format!("{group}: {name}"),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    posted: u64,
    links: Vec<LinkJson<'a>>,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    name: String,
    late_p99_us: f64,
    late_max_us: f64,
    scheduling: String,
    directions: [DirectionJson; 2],
    samples: Vec<&'a Sample>,
}

#[derive(Serialize)]
struct DirectionJson {
    name: String,
    shown: bool,
    discipline: String,
    colour: String,
    backlog_packets: u64,
    marked: u64,
    dropped: u64,
    flows: Vec<FlowJson>,
    flow_count: u64,
}

#[derive(Serialize)]
struct FlowJson {
    name: String,
    share: f64,
    marked: u64,
    dropped: u64,
}

/// Flows that a reader is shown by name.
pub(crate) const SHOWN_FLOWS: usize = 12;

impl<'a> LinkJson<'a> {
    fn of(link: &'a Link, since: u64) -> Self {
        let micros = |time: Duration| time.as_millis_f64() * 1e3;
        Self {
            name: link.in_group(&link.now.name),
            late_p99_us: micros(link.now.lateness.p99),
            late_max_us: micros(link.now.lateness.max),
            scheduling: link.now.scheduling.to_string(),
            directions: [0, 1].map(|way| DirectionJson::of(&link.now, way)),
            samples: link.samples.iter().filter(|sample| sample.number > since).collect(),
        }
    }
}

impl DirectionJson {
    fn of(link: &LinkStatistics, way: usize) -> Self {
        let direction = &link.directions[way];
        let all = direction.totals.bytes.max(Bytes::new(1)).as_f64();
        let flow = |flow: &suimon_emulator::FlowShare| FlowJson {
            name: flow.key.to_string(),
            share: flow.bytes.as_f64() / all,
            marked: flow.marked,
            dropped: flow.dropped,
        };
        Self {
            name: direction.totals.name.clone(),
            shown: is_shown(link, way),
            discipline: direction.totals.discipline.clone(),
            colour: direction.totals.colour.clone(),
            backlog_packets: direction.backlog.packets,
            marked: direction.totals.marked,
            dropped: direction.lost(),
            flows: direction.flows.iter().take(SHOWN_FLOWS).map(flow).collect(),
            flow_count: direction.flow_count,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use suimon_emulator::Lateness;
    use suimon_linux::schedule::Scheduling;
    use suimon_results::QueueResult;
    use suimon_units::{Instant, Rate};

    /// A link at a time, that has marked and dropped so many.
    pub(crate) fn link(name: &str, millis: u64, marked: u64, overflow: u64) -> LinkStatistics {
        let totals = |name: &str| QueueResult {
            name: name.to_owned(),
            discipline: "red".to_owned(),
            colour: "#123456".to_owned(),
            packets: 10,
            bytes: Bytes::new(15_000),
            utilisation: Some(0.5),
            backlog_mean_packets: 1.0,
            backlog_mean_bytes: 1_500.0,
            backlog_max_packets: 2,
            backlog_max_bytes: Bytes::new(3_000),
            delay_mean: Duration::ZERO,
            delay_p50: Duration::ZERO,
            delay_p95: Duration::ZERO,
            delay_p99: Duration::ZERO,
            delay_max: Duration::ZERO,
            dropped_overflow: overflow,
            dropped_early: 0,
            lost_on_link: 0,
            marked,
        };
        let direction = |name: &str| DirectionStatistics {
            backlog: Default::default(),
            throughput: Rate::from_bps(1_000_000),
            sojourn: None,
            totals: totals(name),
            refused: Default::default(),
            flows: Vec::new(),
            flow_count: 0,
        };
        LinkStatistics {
            name: name.to_owned(),
            at: Instant::ZERO + Duration::from_millis(millis),
            rtt: Duration::ZERO,
            directions: [direction(name), direction(&format!("{name}-reverse"))],
            lateness: Lateness::default(),
            scheduling: Scheduling::Ordinary,
            unseen: 0,
        }
    }

    /// The same, with a way back that has no rate.
    pub(crate) fn one_way(name: &str, millis: u64) -> LinkStatistics {
        let mut link = link(name, millis, 0, 0);
        link.directions[1].totals.utilisation = None;
        link
    }

    #[test]
    fn samples_count_what_is_new_and_a_reader_gets_them_once() {
        let board = Board::new("two links");
        board.post("a", &[link("x", 100, 3, 0)]);
        board.post("a", &[link("x", 200, 5, 1)]);
        // Told again of the same time, nothing is new.
        board.post("a", &[link("x", 200, 5, 1)]);
        board.post("b", &[link("x", 200, 0, 0)]);
        let links = board.links(10);
        assert_eq!(
            links.iter().map(|link| link.in_group(&link.now.name)).collect::<Vec<_>>(),
            ["a: x", "b: x"]
        );
        assert_eq!(links[0].samples.len(), 2);
        let point = links[0].samples[1].directions[0];
        assert_eq!((point.marked, point.dropped), (2, 1));
        let all: serde_json::Value = serde_json::from_str(&board.json(0)).unwrap();
        assert_eq!(all["links"][0]["samples"].as_array().unwrap().len(), 2);
        let news: serde_json::Value =
            serde_json::from_str(&board.json(all["posted"].as_u64().unwrap())).unwrap();
        assert!(
            news["links"].as_array().unwrap().iter().all(|link| link["samples"] == serde_json::json!([]))
        );
    }

    #[test]
    fn history_is_bounded() {
        let board = Board::new("");
        for millis in 0..HISTORY as u64 + 10 {
            board.post("", &[link("x", millis, 0, 0)]);
        }
        assert_eq!(board.links(usize::MAX)[0].samples.len(), HISTORY);
        for group in 0..100 {
            board.post(&group.to_string(), &[link("x", 1, 0, 0)]);
            board.post("", &[link("x", HISTORY as u64 + 10 + group, 0, 0)]);
        }
        let links = board.links(1);
        assert_eq!(links.len(), MAX_LINKS);
        assert!(links.iter().any(|link| link.group.is_empty()), "one that goes on is kept");
    }
}
