//! A link in one line, for the command line.

use std::fmt::{Display, Write as _};
use std::path::Path;
use std::sync::Arc;

use suimon_algorithms::RandomStream;
use suimon_algorithms::registry::{AlgorithmSpec, Registry, Role};
use suimon_model::{Buffer, Capacity, Impairments, Link};
use suimon_units::{Duration, Probability, Rate};

use crate::error::{Problem, ScenarioError, closest};
use crate::reader::words::{self, enter, keys};
use crate::reader::{AnyKey, Document, Key, Node, Table, Value, Word};
use crate::scheme::algorithm;
use crate::text;
use crate::trace::{CellularModel, Opportunities, RateSchedule, read_capacity};

/// After this time a synthetic cell starts again.
const SYNTHETIC: Duration = Duration::from_secs(120);
const RTT: &str = "the round-trip time without queueing, such as 180ms";

/// A link by rate and round-trip time.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSpec {
    /// The way there, but for its delay and queue: `bottleneck` from `sender` to `receiver`. Its outages hold either
    /// way.
    pub link: Link,
    /// Round-trip time without queueing, half of it in each direction.
    pub rtt: Duration,
    /// The rate of the way back, where two were given. It then has a buffer and a queue as the way there has, and is
    /// reported too.
    pub back: Option<Rate>,
    /// The way back of a scenario's link, whose buffer, losses and queue need not be those of the way there; its queue
    /// holds beside the queue that the way there has of its own.
    pub own_back: Option<Box<Link>>,
    /// The keys of a scenario's link that say the same, as far as it was read from words.
    keys: Table,
}

impl LinkSpec {
    /// The round-trip time over a recorded link that is named alone.
    const RECORDED_RTT: Duration = Duration::from_millis(40);

    /// A link with a buffer of 1000 packets, as a Linux interface has, and no loss.
    #[must_use]
    pub fn new(capacity: Capacity, rtt: Duration) -> Self {
        Self::with_keys(capacity, Table::default(), rtt)
    }

    /// As [`LinkSpec::new`], over the link that is recorded at `path`: a trace, or a schedule of rates.
    ///
    /// # Errors
    /// When the file does not read.
    pub fn recorded(path: impl AsRef<Path>, rtt: Duration) -> Result<Self, ScenarioError> {
        let (capacity, keys) = recording(path.as_ref())?;
        Ok(Self::with_keys(capacity, keys, rtt))
    }

    /// The first link of the scenario at `path` that has a way back: its way there and back, and its delays.
    ///
    /// # Errors
    /// When the file does not read, or has no such link with a rate known beforehand on the way back.
    pub fn of_scenario(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        let path = path.as_ref();
        let (_, scenario) = Document::read(path)?.plan()?.point(0)?;
        let back_of = |link: &Link| {
            let name = Link::other_direction(&link.name);
            scenario.links.iter().find(|other| other.name == name)
        };
        let pair = scenario.links.iter().find_map(|link| Some((link, back_of(link)?)));
        let rate = pair.and_then(|(_, back)| back.capacity.mean_rate());
        let (Some((there, back)), Some(rate)) = (pair, rate) else {
            let accepted =
                "a scenario with a [[link]] whose ways have rates, such as `suimon measure --save` writes";
            return Err(refuse(&path.display().to_string(), &"has no link with two rates", accepted));
        };
        let (rtt, queue) = (there.delay + back.delay, there.queue.clone());
        let mut spec = Self::new(there.capacity.clone(), rtt);
        let wire = spec.link;
        spec.link =
            Link { name: wire.name, from: wire.from, to: wire.to, queue, reported: true, ..there.clone() };
        spec.back = Some(rate);
        spec.own_back = Some(Box::new(back.clone()));
        Ok(spec)
    }

    fn with_keys(capacity: Capacity, keys: Table, rtt: Duration) -> Self {
        let buffer = text::buffer(text::DEFAULT_BUFFER).expect("the default buffer reads, as a test shows");
        let wire = Link::delaying("bottleneck".to_owned(), "sender", "receiver", Duration::ZERO);
        Self {
            link: Link { capacity, buffer, reported: true, ..wire },
            rtt,
            back: None,
            own_back: None,
            keys,
        }
    }

    /// Whether the words that it was read from say the key of a link called `name`.
    #[must_use]
    pub fn says(&self, name: &str) -> bool {
        self.keys.get(name).is_some()
    }

    /// Reads `RATE RTT [BUFFER] [loss=P] [jitter=TIME] [reorder=P/TIME] [detour=TIME/FROM..TO] [outages=FROM..TO,..]`, as in `2Mbit 180ms 96kB`. In
    /// place of the rate, `RATE/RATE` gives the way back a rate of its own, as in `20/5Mbit`; `trace=FILE` reads a Mahimahi trace, `schedule=FILE` a CSV schedule, `FILE` either, and
    /// a name such as `lte-driving` generates two minutes of [`CellularModel`] with seed 1, and
    /// `hsdpa PA3 10dB` and `wifi 802.11b 2Mbit` are radios, with `KEY=VALUE` for any key that a scenario's
    /// `hsdpa` or `[[medium]]` has. After `wifi` the round-trip time may be left out. The name of a file that
    /// is there is a trace or a schedule, whichever it holds; after it the round-trip time may be left out
    /// too, and is 40 ms then.
    ///
    /// # Errors
    /// When a word is not understood, which the message names, or a file does not read.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let (spec, rtt) = Self::read(text, None)?;
        if rtt { Ok(spec) } else { Err(missing(RTT)) }
    }

    /// As [`LinkSpec::parse`], where the round-trip time may be left out; whether it was given.
    ///
    /// # Errors
    /// As there.
    pub fn parse_partly(text: &str) -> Result<(Self, bool), ScenarioError> {
        Self::read(text, None)
    }

    /// As [`LinkSpec::parse`], where a round-trip time that is left out is this one.
    ///
    /// # Errors
    /// As there.
    pub fn parse_with_rtt(text: &str, otherwise: Duration) -> Result<Self, ScenarioError> {
        Self::read(text, Some(otherwise)).map(|(spec, _)| spec)
    }

    /// As [`LinkSpec::parse`], where the round-trip time does not matter and may be left out.
    ///
    /// # Errors
    /// As there, and where the way back has a rate of its own.
    pub fn parse_capacity(text: &str) -> Result<Capacity, ScenarioError> {
        let (spec, _) = Self::read(text, Some(Duration::ZERO))?;
        match spec.back {
            Some(_) => Err(refuse(text, &"has two rates", "one rate, since only one direction is asked for")),
            None => Ok(spec.link.capacity),
        }
    }

    /// The link, and whether its round-trip time is known.
    fn read(text: &str, otherwise: Option<Duration>) -> Result<(Self, bool), ScenarioError> {
        let mut words = words(text);
        let back = two_rates(&mut words)?;
        let (capacity, keys, otherwise) = match recorded(&mut words)? {
            Some((capacity, keys)) => (capacity, keys, otherwise.or(Some(Self::RECORDED_RTT))),
            None => {
                let (capacity, keys) = capacity(&mut words)?;
                (capacity, keys, otherwise)
            }
        };
        capacity.check()?;
        let mut is_known = true;
        let mut words = words.iter().map(String::as_str).peekable();
        let rtt = match (words.peek(), otherwise) {
            // A WLAN is near, so that nothing need be said of it.
            (word, _) if matches!(capacity, Capacity::Wifi(_)) && word.is_none_or(|word| !is_time(word)) => {
                Duration::ZERO
            }
            (Some(word), Some(rtt)) if !is_time(word) => rtt,
            (Some(word), None) if word.contains('=') || text::buffer(word).is_ok() => {
                is_known = false;
                Duration::ZERO
            }
            (Some(word), _) => {
                let rtt = word.parse().map_err(|error| refuse(word, &error, RTT))?;
                words.next();
                rtt
            }
            (None, Some(rtt)) => rtt,
            (None, None) => {
                is_known = false;
                Duration::ZERO
            }
        };
        let mut link = Self { back, ..Self::with_keys(capacity, keys, rtt) };
        let mut seen = Vec::new();
        for word in words {
            let name = match word.split_once('=') {
                Some((name, _)) => name,
                None if text::buffer(word).is_ok() => BUFFER,
                None => return Err(refuse(word, &format!("not understood{}", hint(word)), &options())),
            };
            if seen.contains(&name) {
                return Err(refuse(word, &format!("a second {name}"), "one of each"));
            }
            seen.push(name);
            link.set(word)?;
        }
        Ok((link, is_known))
    }

    /// What [`LinkSpec::set_key`] takes: the names of words behind the round-trip time, and `buffer`.
    pub fn settable() -> impl Iterator<Item = &'static str> {
        keys().map(|(key, word)| name(key, word))
    }

    /// Sets what the word called `called` says to `value`, such as `loss` to `1%`; returns the word.
    ///
    /// # Errors
    /// When there is no such word, or it is not said so.
    pub fn set_key(&mut self, called: &str, value: &str) -> Result<String, ScenarioError> {
        let joined: String = value.split_whitespace().collect();
        match keys().find(|(key, word)| name(key, *word) == called) {
            Some((key, Word::Bare(_))) => enter(key, value, &mut self.link, &mut self.keys).map(|()| joined),
            _ => {
                let word = format!("{called}={joined}");
                self.set(&word).map(|()| word)
            }
        }
    }

    /// Whether `text` has more than one word, a number and its unit being one: more than how fast a wire is.
    #[must_use]
    pub fn is_line(text: &str) -> bool {
        words(text).len() > 1
    }

    /// Sets the buffer to what `text` says: `96kB`, `50 packets` or `unbounded`.
    ///
    /// # Errors
    /// When it is none of those.
    pub fn set_buffer(&mut self, text: &str) -> Result<(), ScenarioError> {
        self.set_key(BUFFER, text)?;
        self.hold(self.link.buffer);
        Ok(())
    }

    /// Both directions, `queue` in front of the first, which is called `bottleneck` and leads from `sender` to
    /// `receiver`. The way back has a queue too where it has a rate of its own; else it is as fast as it comes, but for a
    /// medium, where answers contend too.
    #[must_use]
    pub fn links(&self, queue: &AlgorithmSpec) -> [Link; 2] {
        let there = self.rtt / 2;
        let bottleneck = Link { delay: there, queue: queue.clone(), ..self.link.clone() };
        let back = self.rtt - there + bottleneck.capacity.uplink_delay();
        let reverse = Link {
            capacity: match (&bottleneck.capacity, self.back) {
                // Answers contend for the medium too.
                (Capacity::Wifi(medium), _) => Capacity::Wifi(Arc::clone(medium)),
                (_, back) => Capacity::Rate(back.unwrap_or(Rate::MAX)),
            },
            impairments: Impairments {
                outages: bottleneck.impairments.outages.clone(),
                ..Impairments::default()
            },
            ..Link::delaying(Link::other_direction(&bottleneck.name), &bottleneck.to, &bottleneck.from, back)
        };
        let reverse = match self.back {
            Some(_) => Link {
                buffer: bottleneck.buffer,
                queue: bottleneck.queue.clone(),
                overhead: bottleneck.overhead,
                reported: true,
                ..reverse
            },
            None => reverse,
        };
        let reverse = match &self.own_back {
            Some(own) => Link {
                capacity: match own.capacity {
                    Capacity::Rate(_) => reverse.capacity,
                    _ => own.capacity.clone(),
                },
                buffer: own.buffer,
                queue: if *queue == self.link.queue { own.queue.clone() } else { queue.clone() },
                overhead: own.overhead,
                impairments: own.impairments.clone(),
                ..reverse
            },
            None => reverse,
        };
        [bottleneck, reverse]
    }

    /// Lets `buffer` hold either way.
    pub fn hold(&mut self, buffer: Buffer) {
        self.link.buffer = buffer;
        if let Some(back) = &mut self.own_back {
            back.buffer = buffer;
        }
    }

    /// Sets what a word behind the round-trip time says: a buffer, `loss=1%`, `jitter=1ms`, `reorder=1%/10ms`,
    /// `detour=60ms/10s..15s`, `outages=10s..15s`.
    ///
    /// # Errors
    /// When it is none of those.
    pub fn set(&mut self, word: &str) -> Result<(), ScenarioError> {
        let not_understood = || refuse(word, &"not understood", &options());
        let Some((name, value)) = word.split_once('=') else {
            return self.set_buffer(word).map_err(|_| not_understood());
        };
        if name == BUFFER {
            return self.set_buffer(value).map_err(|error| refuse(word, error.problem(), text::BUFFER));
        }
        let named = |word: &Word| matches!(word, Word::Named { name: known, .. } if *known == name);
        let (key, _) = keys().find(|(_, word)| named(word)).ok_or_else(|| {
            let known = closest(name, keys().map(|(key, word)| self::name(key, word)));
            let hint = known.map_or_else(String::new, |known| format!(" (did you mean {known}={value}?)"));
            refuse(word, &format!("not understood{hint}"), &options())
        })?;
        enter(key, value, &mut self.link, &mut self.keys).map_err(|error| {
            // The fault of a part, where the key has some.
            let part = error.key().and_then(|key| key.rsplit('.').next()).unwrap_or_default();
            let inner = <dyn AnyKey>::inner(key).and_then(|section| section.key(part));
            let accepted = inner.map_or_else(|| key.accepted_in_line(), AnyKey::accepted_in_line);
            refuse(word, error.problem(), &accepted)
        })
    }

    /// The same link as a scenario has it, in TOML: the table `link` without name and ends, and `[[medium]]` where it
    /// has one. Files that it names are so from the root on.
    ///
    /// # Errors
    /// Where a scenario has no such link: a synthetic cell, or one that was not read from words.
    pub fn tables(&self) -> Result<String, ScenarioError> {
        let mut keys = self.keys.clone();
        if let Some(Value::Text(name)) = keys.get("rate").map(|rate| &rate.value)
            && CellularModel::named(name).is_some()
        {
            let accepted = format!("a trace of it, as `suimon trace generate --like {name}` prints");
            return Err(refuse(name, &"a scenario has no such link", &accepted));
        }
        if keys.entries.is_empty() {
            return Err(missing(&accepted_capacity()));
        }
        let medium = keys.get("medium").and_then(Node::table).cloned();
        if let Some(name) = medium.as_ref().and_then(|medium| medium.get("name")) {
            keys.insert("medium", name.clone());
        }
        let mut reverse = Table::default();
        match self.back {
            Some(rate) => {
                let buffer = keys.get("buffer").cloned();
                reverse.insert("rate", Node::text(&format!("{}bit", rate.as_bps())));
                reverse.insert("buffer", buffer.unwrap_or_else(|| Node::text(text::DEFAULT_BUFFER)));
                reverse.insert("reported", Node { line: None, value: Value::Flag(true) });
            }
            None => {
                if !self.link.capacity.is_radio() {
                    reverse.insert("rate", Node::text("unlimited"));
                }
                reverse.insert("buffer", Node::text("unbounded"));
            }
        }
        keys.insert("delay", Node::text(&exact(self.rtt / 2)));
        keys.insert("reverse", Node { line: None, value: Value::Table(reverse) });
        let mut text = String::new();
        for (header, table) in [("[link]", Some(keys)), ("[[medium]]", medium)] {
            for (nth, entry) in table.iter().flat_map(|table| &table.entries).enumerate() {
                let header = if nth == 0 { format!("{header}\n") } else { String::new() };
                let _ = writeln!(text, "{header}{} = {}", entry.key, entry.node.to_toml());
            }
        }
        Ok(text)
    }
}

/// The queue discipline that drops what finds no room, and nothing else.
///
/// # Panics
/// Never: the registry has it.
#[must_use]
pub fn drop_tail() -> AlgorithmSpec {
    algorithm(&Registry::standard(), Role::Queue, "droptail")
        .expect("drop tail is registered, as the scenario tests show")
}

/// The word that goes by its value alone.
const BUFFER: &str = "buffer";

/// What `word`, which says `key`, is called.
fn name(key: &Key<Link>, word: Word) -> &'static str {
    match word {
        Word::Bare(_) => key.about.name,
        Word::Named { name, .. } | Word::Radio { name, .. } => name,
    }
}

/// What a word without a name may have been meant as, after the words that say it is not understood.
fn hint(word: &str) -> String {
    let meant = if word.ends_with('%') && word.parse::<Probability>().is_ok() {
        format!("loss={word}")
    } else if is_time(word) {
        format!("jitter={word}")
    } else if word.parse::<Rate>().is_ok() {
        return ", a second rate (two are written 20/5Mbit)".to_owned();
    } else {
        return String::new();
    };
    format!(" (did you mean {meant}?)")
}

/// What may stand behind the round-trip time, in words.
fn options() -> String {
    let option = |(key, word): (&Key<Link>, Word)| match word {
        Word::Bare(examples) => format!("a {} ({examples})", key.about.name),
        Word::Named { name, example, .. } => format!("{name}={example}"),
        Word::Radio { name, .. } => name.to_owned(),
    };
    keys().map(option).collect::<Vec<_>>().join(", ")
}

/// `time` so that it reads back to the same.
fn exact(time: Duration) -> String {
    let shown: String = time.to_string().split_whitespace().collect();
    if shown.parse() == Ok(time) { shown } else { format!("{}ns", time.as_nanos()) }
}

/// How fast a link is, and the keys of a scenario that say so.
type Read = (Capacity, Table);

/// The one key of a scenario that says how fast a link is.
fn one(key: &str, value: Node) -> Table {
    let mut table = Table::default();
    table.insert(key, value);
    table
}

/// The key `key` that names the file at `path`, from the root on.
fn file(key: &str, path: &Path) -> Table {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    one(key, Node::text(&path.to_string_lossy()))
}

/// The link that is recorded at `path`.
fn recording(path: &Path) -> Result<Read, ScenarioError> {
    let capacity = read_capacity(path)?;
    let key = if matches!(capacity, Capacity::Steps { .. }) { "schedule" } else { "trace" };
    Ok((capacity, file(key, path)))
}

/// Takes the file of a recorded link off the beginning of `words`, where there is one of that name.
fn recorded(words: &mut Vec<String>) -> Result<Option<Read>, ScenarioError> {
    match words.first().map(Path::new).filter(|path| path.is_file()) {
        Some(path) => {
            let read = recording(path)?;
            words.remove(0);
            Ok(Some(read))
        }
        None => Ok(None),
    }
}

fn accepted_capacity() -> String {
    let cells: Vec<_> = CellularModel::NAMED.iter().map(|(name, _)| *name).collect();
    let cells = cells.join(", ");
    format!(
        "a rate such as 2Mbit, unlimited, a file with a trace, trace=FILE, schedule=FILE, {}, {cells}",
        words::accepted_radios()
    )
}

/// Takes what says how fast the link is off the beginning of `words`.
fn capacity(words: &mut Vec<String>) -> Result<Read, ScenarioError> {
    if words.is_empty() {
        return Err(missing(&accepted_capacity()));
    }
    if let Some((capacity, key, table)) = words::radio(words)? {
        return Ok((capacity, one(key, Node::of_table(table))));
    }
    let word = words.remove(0);
    let word = word.as_str();
    if let Some(model) = CellularModel::named(word) {
        let trace = model.generate(SYNTHETIC, &mut RandomStream::new(1, "cellular"))?;
        return Ok((trace.into(), one("rate", Node::text(word))));
    }
    match word.split_once('=') {
        Some(("trace", path)) => Ok((Opportunities::read(path)?.into(), file("trace", Path::new(path)))),
        Some(("schedule", path)) => Ok((RateSchedule::read(path)?.into(), file("schedule", Path::new(path)))),
        _ => match text::link_rate(word) {
            Ok(rate) => Ok((Capacity::Rate(rate), one("rate", Node::text(word)))),
            Err(_) if Path::new(word).is_file() => recording(Path::new(word)),
            Err(_) if word.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '.') => {
                Err(refuse(word, &"is neither a rate nor a file that is here", &accepted_capacity()))
            }
            Err(error) => Err(refuse(word, &error, &accepted_capacity())),
        },
    }
}

/// Where the first of `words` is two rates, as in `20/5Mbit` or `20Mbit/768kbit`: leaves the first there and gives the
/// second, whose unit holds for both where the first has none.
fn two_rates(words: &mut [String]) -> Result<Option<Rate>, ScenarioError> {
    let is_digit = |c: char| c.is_ascii_digit();
    let Some(word) = words.first_mut().filter(|word| word.starts_with(is_digit)) else { return Ok(None) };
    let Some((there, back)) = word.split_once('/').filter(|(_, back)| back.starts_with(is_digit)) else {
        return Ok(None);
    };
    let unit = back.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_unit = there.ends_with(|c: char| c.is_ascii_alphabetic());
    let there = if has_unit { there.to_owned() } else { format!("{there}{unit}") };
    let rate = text::rate(back).map_err(|error| refuse(word, &error, &accepted_capacity()))?;
    *word = there;
    Ok(Some(rate))
}

fn is_time(word: &str) -> bool {
    word.parse::<Duration>().is_ok()
}

/// The words of `text`, a number and a unit after it as one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = !word.contains('=') && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        match words.last_mut() {
            Some(last) if is_unit && last.ends_with(|c: char| c.is_ascii_digit()) => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn missing(accepted: &str) -> ScenarioError {
    ScenarioError::new("link", Problem::Missing { accepted: format!("{accepted}, as in 2Mbit 180ms 96kB") })
}

fn refuse(word: &str, reason: &dyn Display, accepted: &str) -> ScenarioError {
    let word = word.chars().take(text::MAX_LENGTH).collect();
    // What a unit says of the word repeats the word and what it accepts.
    let reason = reason.to_string();
    let reason =
        reason.split("; accepted").next().unwrap_or_default().rsplit("\" ").next().unwrap_or_default();
    ScenarioError::new(
        "link",
        Problem::Word { word, reason: reason.to_owned(), accepted: accepted.to_owned() },
    )
}

#[cfg(test)]
mod tests {
    use crate::Document;
    use suimon_model::{Buffer, Loss, Outage};
    use suimon_units::{Bytes, Instant};

    use super::*;

    #[test]
    fn a_rate_a_round_trip_time_and_a_buffer_make_a_link() {
        let link = LinkSpec::parse("2Mbit 180ms 96kB").unwrap();
        assert_eq!(link.link.capacity, Capacity::Rate(Rate::from_bps(2_000_000)));
        assert_eq!(link.rtt, Duration::from_millis(180));
        assert_eq!(link.link.buffer, Buffer::Bytes(Bytes::new(96_000)));
        assert_eq!(LinkSpec::parse("2 Mbit 180 ms 96 kB"), Ok(link));
    }

    #[test]
    fn the_link_of_a_scenario_keeps_what_each_of_its_ways_has() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("line.toml");
        let flow = "[[flow]]\nname = \"main\"\nfrom = \"server\"\nto = \"client\"\n";
        let link = "[[link]]\nname = \"line\"\nbetween = [\"server\", \"client\"]\nrate = \"20Mbit\"\ndelay = \"30ms\"\n\
            buffer = \"300kB\"\nqueue = \"codel\"\n";
        std::fs::write(
            &file,
            format!("{flow}{link}[link.reverse]\nrate = \"5Mbit\"\nbuffer = \"9kB\"\nloss = \"1%\"\n"),
        )
        .unwrap();
        let mut spec = LinkSpec::of_scenario(&file).unwrap();
        assert_eq!((spec.rtt, spec.back), (Duration::from_millis(60), Some(Rate::from_bps(5_000_000))));
        let [there, back] = spec.links(&spec.link.queue);
        assert_eq!(
            (there.name.as_str(), there.from.as_str(), there.queue.name()),
            ("bottleneck", "sender", "codel")
        );
        assert_eq!(there.buffer, Buffer::Bytes(Bytes::new(300_000)));
        assert_eq!((back.buffer, back.queue.name()), (Buffer::Bytes(Bytes::new(9_000)), "droptail"));
        assert_eq!(back.capacity, Capacity::Rate(Rate::from_bps(5_000_000)));
        assert_ne!(back.impairments, Impairments::default());
        // What is tried holds either way.
        spec.hold(Buffer::Packets(7));
        let [there, back] = spec.links(&drop_tail());
        assert_eq!((there.buffer, back.buffer), (Buffer::Packets(7), Buffer::Packets(7)));
        assert_eq!((there.queue.name(), back.queue.name()), ("droptail", "droptail"));
        std::fs::write(&file, format!("{flow}{link}[link.reverse]\nrate = \"unlimited\"\n")).unwrap();
        let refused = LinkSpec::of_scenario(&file).unwrap_err().to_string();
        assert!(refused.contains("has no link with two rates; accepted: a scenario"), "{refused}");
    }

    #[test]
    fn two_rates_are_a_way_there_and_a_way_back_with_a_queue_each() {
        for text in [
            "20/5Mbit 60ms 50packets",
            "20/5 Mbit/s 60 ms buffer=50packets",
            "20Mbit/5000kbit 60ms 50packets",
        ] {
            let spec = LinkSpec::parse(text).unwrap();
            let [there, back] = spec.links(&drop_tail());
            assert_eq!(there.capacity, Capacity::Rate(Rate::from_bps(20_000_000)), "{text}");
            assert_eq!(back.capacity, Capacity::Rate(Rate::from_bps(5_000_000)), "{text}");
            assert_eq!((there.buffer, back.buffer), (Buffer::Packets(50), Buffer::Packets(50)));
            assert!(back.reported && back.queue == there.queue);
        }
        let (spec, has_rtt) = LinkSpec::parse_partly("20/5Mbit").unwrap();
        assert!(!has_rtt && !spec.says("buffer"));
        assert!(LinkSpec::parse_partly("20Mbit 5ms 9kB").unwrap().0.says("buffer"));
    }

    #[test]
    fn further_words_come_in_any_order() {
        let link = LinkSpec::parse("unlimited 10ms reorder=1%/10ms loss=0.5% 50 packets jitter=1ms").unwrap();
        assert_eq!(link.link.capacity, Capacity::Rate(Rate::MAX));
        assert_eq!(link.link.buffer, Buffer::Packets(50));
        assert_eq!(link.link.impairments.loss, Loss::Random(Probability::clamped(0.005)));
        assert_eq!(link.link.impairments.jitter, Duration::from_millis(1));
        assert_eq!(link.link.impairments.reordering.unwrap().delay, Duration::from_millis(10));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let link = LinkSpec::parse("2Mbit 180ms outages=1s..2s,5s..").unwrap();
        let expected = [(at(1), at(2)), (at(5), Instant::MAX)].map(|(from, to)| Outage { from, to });
        assert_eq!(link.link.impairments.outages, expected);
    }

    #[test]
    fn a_radio_is_named_with_what_sets_it_apart() {
        let link = LinkSpec::parse("hsdpa VA30 -5dB 180ms cqi_delay=6ms 96kB harq_transmissions=2").unwrap();
        let Capacity::Hsdpa(terminal) = &link.link.capacity else { panic!("a radio") };
        assert_eq!(terminal.user.profile.to_string(), "VA30");
        assert_eq!(terminal.user.geometry.to_string(), "-5 dB");
        assert_eq!(
            (terminal.user.cqi_delay, terminal.user.harq_transmissions),
            (Duration::from_millis(6), 2)
        );
        assert_eq!(
            (link.rtt, link.link.buffer),
            (Duration::from_millis(180), Buffer::Bytes(Bytes::new(96_000)))
        );
        let rest = suimon_radio::hsdpa::UserParameters::new(terminal.user.profile, terminal.user.geometry);
        assert_eq!((terminal.user.power, terminal.user.category), (rest.power, rest.category));
        let near = LinkSpec::parse("wifi 802.11b 2Mbit cw_min=15 50 packets").unwrap();
        assert_eq!((near.rtt, near.link.buffer), (Duration::ZERO, Buffer::Packets(50)));
        let link = LinkSpec::parse("wifi 802.11b 2Mbit 4ms cw_min=15 50 packets").unwrap();
        let Capacity::Wifi(medium) = &link.link.capacity else { panic!("a radio") };
        assert_eq!((medium.parameters.cw_min, medium.parameters.rate), (15, Rate::from_bps(2_000_000)));
        assert_eq!(LinkSpec::parse("wifi 802.11a 6Mbit").unwrap().rtt, Duration::ZERO);
        assert_eq!(LinkSpec::parse_capacity("hsdpa ST 0dB").unwrap(), {
            let user =
                suimon_radio::hsdpa::UserParameters::new("ST".parse().unwrap(), "0dB".parse().unwrap());
            Capacity::Hsdpa(Box::new(crate::Hsdpa::new(user)))
        });
    }

    #[test]
    fn a_file_that_is_there_is_a_recorded_link() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cell.down");
        std::fs::write(&path, "10\n20\n30\n").unwrap();
        let path = path.display();
        let link = LinkSpec::parse(&format!("{path}")).unwrap();
        assert!(matches!(link.link.capacity, Capacity::Opportunities { .. }));
        assert_eq!(link.rtt, Duration::from_millis(40));
        let link = LinkSpec::parse(&format!("{path} 50packets loss=1%")).unwrap();
        assert_eq!((link.rtt, link.link.buffer), (Duration::from_millis(40), Buffer::Packets(50)));
        let link = LinkSpec::parse(&format!("{path} 90ms 50packets")).unwrap();
        assert_eq!((link.rtt, link.link.buffer), (Duration::from_millis(90), Buffer::Packets(50)));
    }

    #[test]
    fn a_synthetic_cell_goes_by_its_name() {
        let link = LinkSpec::parse("lte-driving 50ms 100 packets").unwrap();
        let Capacity::Opportunities { times, period } = &link.link.capacity else { panic!("a trace") };
        let rate = Rate::of(Bytes::new(1_500) * times.len() as u64, *period);
        assert!(rate > Rate::from_bps(6_000_000) && rate < Rate::from_bps(20_000_000), "{rate}");
        assert_eq!(LinkSpec::parse("lte-driving 50ms 100 packets"), Ok(link));
    }

    #[test]
    fn the_buffer_can_be_set_alone() {
        let mut link = LinkSpec::new(Capacity::Rate(Rate::MAX), Duration::from_millis(1));
        assert_eq!(link.link.buffer, Buffer::Packets(1_000));
        link.set_buffer("96kB").unwrap();
        assert_eq!(link.link.buffer, Buffer::Bytes(Bytes::new(96_000)));
        let message = link.set_buffer("96").unwrap_err().to_string();
        assert!(
            message.starts_with("link: buffer: \"96\" has no unit; accepted: packets or bytes"),
            "{message}"
        );
    }

    #[test]
    fn a_scenario_of_the_tables_has_the_same_links() {
        let flow = "[[flow]]\nname = \"main\"\nfrom = \"sender\"\nto = \"receiver\"";
        let ends = "[[link]]\nname = \"bottleneck\"\nbetween = [\"sender\", \"receiver\"]";
        for line in [
            "2Mbit 180ms 96kB",
            "2 Mbit 33333ns 45 kB jitter=1ms reorder=1%/10ms",
            "unlimited 40ms 50packets loss=0.5% outages=1s..1.5s,3s..",
            "hsdpa VA30 0dB harq_transmissions=2 delivery=paced 100ms 96kB",
            "wifi 802.11b 11Mbit cw_min=15 preamble=short loss=1%",
        ] {
            let spec = LinkSpec::parse(line).unwrap();
            let tables = spec.tables().unwrap().replace("[link]", ends);
            let run = Document::parse(&format!("{tables}\n{flow}"), "test.toml").unwrap().runs().unwrap();
            let [there, back] = spec.links(&drop_tail());
            // A scenario has one delay for both ways.
            let same = back.delay == there.delay + there.capacity.uplink_delay();
            let back = if same { back } else { Link { delay: there.delay, ..back } };
            assert_eq!(run[0].scenario.links, [there, back], "{line}");
        }
        let synthetic = LinkSpec::parse("lte-driving 50ms").unwrap().tables().unwrap_err().to_string();
        assert!(synthetic.contains("suimon trace generate --like lte-driving"), "{synthetic}");
        assert!(LinkSpec::new(Capacity::Rate(Rate::MAX), Duration::ZERO).tables().is_err());
    }

    #[test]
    fn every_word_of_a_line_is_settable_by_its_name_to_its_example() {
        let mut link = LinkSpec::parse("2Mbit 180ms").unwrap();
        let mut set = |(key, word)| {
            let example = match word {
                Word::Bare(examples) => examples.split(", ").next().unwrap(),
                Word::Named { example, .. } => example,
                Word::Radio { .. } => unreachable!("a radio stands in place of the rate"),
            };
            link.set_key(name(key, word), example).unwrap()
        };
        let words: Vec<_> = keys().map(&mut set).collect();
        assert_eq!(words.len(), LinkSpec::settable().count());
        let line = LinkSpec::parse(&format!("2Mbit 180ms {}", words.join(" "))).unwrap();
        assert_eq!(link.link, line.link);
        assert_ne!(link.link.impairments, Impairments::default());
    }

    #[test]
    fn a_refusal_names_the_word_and_what_is_accepted() {
        let message = |text| LinkSpec::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("2MB 180ms"),
            "link: \"2MB\": has an unknown unit: bits are meant by Mbit, bytes by MB/s; accepted: a rate such as 2Mbit, unlimited, a file with a trace, trace=FILE, schedule=FILE, hsdpa PROFILE GEOMETRY, wifi STANDARD RATE, \
             3g-driving, lte-walking, lte-driving, 5g-walking, 5g-driving"
        );
        assert!(message("").contains("accepted: a rate"), "{}", message(""));
        assert!(
            message("lte.down 90ms")
                .contains("\"lte.down\": is neither a rate nor a file that is here; accepted")
        );
        assert!(message("2Mbit").contains("accepted: the round-trip time"));
        assert!(message("2Mbit 180").contains("\"180\": has no unit"));
        assert!(message("2Mbit 180ms 96").contains("\"96\": not understood; accepted: a buffer"));
        assert!(message("2Mbit 180ms los=1%").contains("\"los=1%\": not understood"));
        assert!(message("2Mbit 180ms loss=101%").contains("out of range"));
        assert!(message("2Mbit 180ms 1kB 2kB").contains("a second buffer"));
        assert!(
            message("2Mbit 180ms 500packets 1%").contains("\"1%\": not understood (did you mean loss=1%?)")
        );
        assert!(message("2Mbit 180ms 5ms").contains("\"5ms\": not understood (did you mean jitter=5ms?)"));
        assert!(message("20Mbit 60ms 5Mbit").contains("a second rate (two are written 20/5Mbit)"));
        assert!(message("2Mbit 180ms los=1%").contains("not understood (did you mean loss=1%?)"));
        assert!(message("2Mbit 180ms loss=1").contains("may be meant as 1 % or as all; accepted: "));
        assert!(message("20/5Mb 60ms").contains("bits are meant by Mbit, bytes by MB/s"));
        assert!(message("20/0Mbit 60ms").contains("no rate at which anything moves"));
        let both = LinkSpec::parse_capacity("20/5Mbit").unwrap_err().to_string();
        assert!(both.contains("has two rates; accepted: one rate"), "{both}");
        assert!(message("2Mbit 180ms reorder=1%").contains("SHARE/DELAY"));
        assert!(message("2Mbit 180ms outages=10s").contains("is not a period; accepted: periods, such as"));
        assert!(message("2Mbit 180ms outages=1s..2").contains("has no unit; accepted: periods"));
        assert!(message("0Mbit 180ms").contains("0Mbit"));
        assert!(message("hsdpa PA3 10 180ms").starts_with("link: hsdpa.geometry: \"10\" has no unit"));
        assert!(message("hsdpa PA 10dB 180ms").contains("\"PA\" is not a profile; accepted: ST"));
        assert!(message("wifi 802.11n 2Mbit").contains("wifi.standard: \"802.11n\" is not accepted"));
        assert!(
            message("wifi 802.11b 3Mbit")
                .contains("medium.wifi.rate: \"3 Mbit/s\" is no rate of the standard")
        );
        assert!(
            message("hsdpa PA3 10dB 1ms cqi_period=0ms")
                .contains("hsdpa.cqi_period: \"0 ns\" is out of range")
        );
        assert!(
            message("hsdpa PA3 10dB 1ms handover_gap=2min")
                .contains("handover_gap: \"120 s\" is out of range")
        );
        assert!(message("wifi 802.11b 2Mbit slots=1").contains("\"slots=1\": not understood"));
        assert!(message("hsdpa").starts_with("link: hsdpa.profile: missing"));
        assert!(message("hsdpa PA3 10dB").contains("accepted: the round-trip time"));
        assert!(message("hsdpa PA3 10dB 180ms delivery=x").contains("accepted: in-order, paced"));
        assert!(message("trace=/nonexistent 180ms").contains("/nonexistent: cannot read it"));
    }
}
