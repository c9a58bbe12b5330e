//! Whatever the input, a reader answers with a value or with a refusal that names its source.

use proptest::prelude::*;
use suimon_scenario::trace::{Opportunities, RateSchedule};
use suimon_scenario::{Document, LinkSpec, ScenarioError, Scheme, print_defaults};

const SOURCE: &str = "input.toml";

const VALID: &str = r#"
name = "wired"
seeds = 2
duration = "60s"
[[link]]
name = "bottleneck"
between = ["r1", "r2"]
rate = "1Mbit"
delay = "90ms"
buffer = "50 packets"
loss = { to_bad = "1%", to_good = 0.3 }
reordering = { probability = "1%", delay = "10ms" }
[link.reverse]
rate = "64kbit"
[[flow]]
name = "main"
from = "r1"
to = "r2"
count = 4
start = ["0s", "5s"]
cc = { name = "vegas", alpha = 3 }
stack = { delayed_ack = false, initial_window = 2 }
[[flow]]
name = "cross"
from = "r2"
to = "r1"
udp = { rate = "500kbit", packet = "512B" }
on_off = { on = "20s", off = "20s" }
[[cell]]
name = "c"
[[medium]]
name = "w"
standard = "802.11b"
rate = "11Mbit"
[[link]]
name = "radio"
between = ["r3", "r4"]
hsdpa = { profile = "PA3", geometry = "10dB", cell = "c", handover_every = "30s" }
[[link]]
name = "wlan"
between = ["r4", "r5"]
medium = "w"
overhead = "8B"
[[matrix]]
name = "rate"
set = ["link.bottleneck.rate", "link.*.reverse.rate"]
values = ["64kbit", "384kbit"]
[[matrix]]
set = "flow.*.cc"
values = ["reno", "cubic"]
"#;

fn names_its_source<T>(result: Result<T, ScenarioError>, source: &str) -> Result<(), TestCaseError> {
    if let Err(error) = result {
        let message = error.to_string();
        prop_assert!(message.starts_with(source) && message.len() > source.len() + 5, "{message}");
        prop_assert!(message.len() < 5_000, "{message}");
    }
    Ok(())
}

fn read(text: &str) -> Result<(), TestCaseError> {
    match Document::parse(text, SOURCE) {
        Ok(document) => names_its_source(document.runs(), SOURCE),
        Err(error) => names_its_source::<()>(Err(error), SOURCE),
    }
}

/// Values of every kind, right and wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        (0_i64..20).prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        Just("nan".to_owned()),
        Just("-inf".to_owned()),
        Just("1979-05-27".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[\"r1\", \"r2\"]".to_owned()),
        Just("{ name = \"vegas\", alpha = [] }".to_owned()),
        "[0-9]{1,20}(\\.[0-9])?( ?(ms|s|h|Mbit|kbit|bit|B|kB|GB|packets|%))?"
            .prop_map(|text| format!("\"{text}\"")),
        "[a-z0-9:=+/*._-]{0,12}".prop_map(|text| format!("\"{text}\"")),
        prop::sample::select(vec![
            "r1",
            "r2",
            "main",
            "bottleneck",
            "reno",
            "vegas:alpha=1",
            "fixed",
            "droptail",
            "unlimited",
            "unbounded",
            "off",
            "linux-6",
            "bytes:2",
            "prr",
            "flow.*.cc",
            "link.*",
            "duration",
            "seed",
            "link.bottleneck.reverse",
            "flow.main.stack.mss",
        ])
        .prop_map(|text| format!("\"{text}\"")),
    ]
}

/// Lines of keys that exist, under headers that exist, in any order.
fn structured() -> impl Strategy<Value = String> {
    let defaults = print_defaults();
    let keys: Vec<String> = defaults
        .lines()
        .filter_map(|line| {
            line.trim_start_matches(['#', ' ']).split_once(" = ").map(|(key, _)| key.to_owned())
        })
        .collect();
    let line = prop_oneof![
        3 => prop::sample::select(VALID.lines().map(str::to_owned).collect::<Vec<_>>()),
        3 => (prop::sample::select(keys), value()).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => prop::sample::select(vec![
            "[[link]]", "[[flow]]", "[[matrix]]", "[link.reverse]", "[flow.stack]", "[flow.udp]", "[link]",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
}

/// A valid document in which one line got another value.
fn one_value_changed() -> impl Strategy<Value = String> {
    (any::<prop::sample::Index>(), value()).prop_map(|(index, value)| {
        let changed = index.index(VALID.lines().count());
        let line = |(nth, line): (usize, &str)| match line.split_once(" = ") {
            Some((key, _)) if nth == changed => format!("{key} = {value}"),
            _ => line.to_owned(),
        };
        VALID.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
    })
}

/// A document in which bytes were overwritten, cut out or doubled.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), any::<u8>(), 0_usize..20, 0_u8..3);
    prop::collection::vec(edit, 1..8).prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (index, byte, length, kind) in edits {
            if bytes.is_empty() {
                break;
            }
            let from = index.index(bytes.len());
            let to = (from + length).min(bytes.len());
            match kind {
                0 => bytes[from] = byte,
                1 => drop(bytes.drain(from..to)),
                _ => {
                    let copy = bytes[from..to].to_vec();
                    bytes.splice(from..from, copy);
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[test]
fn the_document_that_is_mutated_is_valid() {
    assert_eq!(Document::parse(VALID, SOURCE).unwrap().runs().unwrap().len(), 8);
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let text = format!("name = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(Document::parse(&text, SOURCE).is_err());
    }
    assert!(Document::parse(&format!("[{}]", vec!["a"; 100_000].join(".")), SOURCE).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn mutated_scenarios_are_read_or_refused(text in mutated(VALID)) {
        read(&text)?;
    }

    #[test]
    fn scenarios_with_one_other_value_are_read_or_refused(text in one_value_changed()) {
        read(&text)?;
    }

    #[test]
    fn structured_scenarios_are_read_or_refused(text in structured()) {
        read(&text)?;
    }

    #[test]
    fn keys_set_from_outside_are_taken_or_refused(key in "[a-z.*]{0,30}", value in value()) {
        let mut document = Document::parse(VALID, SOURCE).unwrap();
        for key in [key.as_str(), "link.bottleneck", "flow.*.start", "flow.main.stack"] {
            if let Err(error) = document.set(key, &value) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
        names_its_source(document.runs(), SOURCE)?;
    }

    #[test]
    fn traces_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        lines in "([0-9]{1,22}\r?\n){0,9}",
        rows in "time(_s|_ms)?,rate(_bps|_mbps)?\n([0-9.-]{0,9}(s|ms)?,[0-9.]{0,9}(Mbit)?\n){0,9}",
    ) {
        for text in [&String::from_utf8_lossy(&bytes).into_owned(), &lines, &rows] {
            names_its_source(RateSchedule::parse(text, SOURCE), SOURCE)?;
            let trace = Opportunities::parse(text, SOURCE);
            if let Ok(trace) = &trace {
                prop_assert_eq!(&Opportunities::parse(&trace.to_text(), SOURCE), &Ok(trace.clone()));
            }
            names_its_source(trace, SOURCE)?;
        }
    }

    #[test]
    fn shorthands_are_read_or_refused(
        any in ".{0,60}",
        words in "([0-9.]{1,20}(Mbit|ms|kB|packets|%)|loss=|jitter=|reorder=|1%/|unlimited| ){0,9}",
        rest in "( ([a-z]{1,8}|cqi_delay|cqi_period|category|slot|cw_min|cw_max|retry_limit)=[0-9.%/ms]{0,9}| [0-9]{1,20}kB){0,4}",
    ) {
        let radio = format!("hsdpa {words}{rest}");
        let wlan = format!("wifi 802.11b {words}{rest}");
        for text in [&any, &words, &format!("2Mbit 180ms{rest}"), &radio, &wlan] {
            names_its_source(LinkSpec::parse(text), "link")?;
            names_its_source(Scheme::parse(text), "scheme")?;
        }
    }
}
