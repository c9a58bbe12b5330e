//! Mistakes that users make: each is told in one line that says what is accepted, ends with the code that the help
//! gives, and leaves nothing behind. Spellings that can mean one thing only are no mistakes.

use std::fs;

use crate::{SCENARIO, run_in, text};
use tempfile::TempDir;

/// A link, for options beside it.
const LINK: [&str; 4] = ["compare", "--no-files", "--link", "20Mbit 60ms"];

/// A mistake: the arguments, the exit code, and what the message says.
type Mistake<'a> = (&'a [&'a str], i32, &'a [&'a str]);

/// Mistakes in the words of `suimon compare --link`.
const LINES: &[(&str, &[&str])] = &[
    ("2M 60ms", &["\"2M\": has an unknown unit: bits are meant by Mbit, bytes by MB/s"]),
    ("2Mb 60ms", &["\"2Mb\": has an unknown unit: bits are meant by Mbit, bytes by MB/s"]),
    ("2MB 60ms", &["bits are meant by Mbit, bytes by MB/s"]),
    ("500k 60ms", &["bits are meant by kbit, bytes by kB/s"]),
    ("1G 60ms", &["bits are meant by Gbit, bytes by GB/s"]),
    ("20/5M 60ms", &["\"20/5M\": has an unknown unit: bits are meant by Mbit"]),
    ("20/0Mbit 60ms", &["no rate at which anything moves"]),
    ("20/x 60ms", &["\"20/x\": ", "accepted: a rate"]),
    ("20 60ms", &["\"20\": has no unit; accepted: a rate such as 2Mbit"]),
    ("20Mbit", &["missing; accepted: the round-trip time", "--rtt"]),
    ("20Mbit 60", &["\"60\": has no unit; accepted: the round-trip time"]),
    ("20Mbit 500packets", &["missing; accepted: the round-trip time"]),
    ("20Mbit 60ms 500packets 1%", &["\"1%\": not understood (did you mean loss=1%?)"]),
    ("20Mbit 60ms 1%", &["\"1%\": not understood (did you mean loss=1%?)"]),
    ("20Mbit 60ms loss=1", &["\"loss=1\": may be meant as 1 % or as all; accepted: "]),
    ("20Mbit 60ms loss=2", &["out of range"]),
    ("20Mbit 60ms los=1%", &["not understood (did you mean loss=1%?)"]),
    ("20Mbit 60ms delay=5ms", &["\"delay=5ms\": not understood"]),
    ("20Mbit 60ms 5ms", &["\"5ms\": not understood (did you mean jitter=5ms?)"]),
    ("20Mbit 60ms 5Mbit", &["a second rate (two are written 20/5Mbit)"]),
    ("20Mbit 60ms 500", &["\"500\": not understood; accepted: a buffer (96kB, 50packets, unbounded)"]),
    ("20Mbit 60ms 500pkg", &["\"500pkg\": not understood"]),
    ("20Mbit 60ms 9kB 500packets", &["a second buffer; accepted: one of each"]),
    ("20Mbit 60ms loss=1% loss=2%", &["a second loss"]),
    ("-20Mbit 60ms", &["is negative"]),
    ("0Mbit 60ms", &["no rate at which anything moves"]),
    ("lte-drivin 60ms", &["accepted: a rate", "lte-driving"]),
    ("", &["missing; accepted: a rate"]),
];

/// Mistakes in options beside a link.
const BESIDE: &[(&[&str], &[&str])] = &[
    (&["--buffer", "500"], &["--buffer: ", "\"500\" has no unit; accepted: packets or bytes"]),
    (
        &["--rtt", "10ms"],
        &["--rtt: the link has a round-trip time of 60 ms already; accepted: one of the two"],
    ),
    (&["--loss", "1"], &["--loss: ", "may be meant as 1 % or as all"]),
    (&["--loss", "150%"], &["--loss: ", "out of range"]),
    (&["--up", "5"], &["--up: \"5\" has no unit"]),
    (&["--cc", "cubik"], &["--cc: ", "did you mean \"cubic\"?"]),
    (&["--cc", "bbr,BBR"], &["--cc: a second algorithm is called \"bbr\""]),
    (&["--queue", "fq_code"], &["--queue: ", "did you mean \"fq-codel\"?"]),
    (&["--queue", "fq_codel,fq-codel"], &["--queue: a second queue discipline is called \"fq-codel\""]),
    (&["--flows", "many"], &["--flows: \"many\": is no count"]),
    (&["--duration", "60"], &["--duration: \"60\" has no unit"]),
    (&["--seeds", "0"], &["--seeds: \"0\": accepted: a whole number from 1"]),
    (&["--size", "10M"], &["--size: ", "\"10M\" has an unknown unit"]),
    (&["--scheduler", "ecf"], &["--scheduler: goes with --paths"]),
];

/// Mistakes of whole commands.
const COMMANDS: &[Mistake<'_>] = &[
    (&["compare", "--preset", "office"], 2, &["--preset: ", "accepted: home, phone, starlink, rrul"]),
    (
        &["compare", "--preset", "home", "--buffer", "9kB"],
        2,
        &["--buffer: the link has a buffer of its own already"],
    ),
    (&["compare", "--down", "20Mbit"], 2, &["--rtt: missing; accepted: the round-trip time"]),
    (&["compare", "20/5Mbit 60ms"], 2, &["\"20/5Mbit 60ms\": is no option", "--link \"20/5Mbit 60ms\""]),
    (&["compare", "20Mbit", "60ms"], 2, &["\"20Mbit\": is no option; accepted: a link behind --link"]),
    (
        &["compare", "--link", "20/5Mbit 60ms", "--up", "2Mbit"],
        2,
        &["--up: the link has a way back at 5 Mbit/s"],
    ),
    (&["compare", "--paths", "10Mbit 1ms; 3Mb 2ms"], 2, &["path-2: \"3Mb\": has an unknown unit"]),
    (&["compare", "--trace", "none.down"], 2, &["none.down", "No such file"]),
    (
        &["compare", "--link", "20Mbit 60ms", "--out", "taken"],
        2,
        &["--out: taken holds other files", "--force"],
    ),
    (
        &["run", "scenario.toml", "--out", "taken"],
        2,
        &["--out: taken holds other files; accepted: a new or empty"],
    ),
    (&["run", "scenario.toml", "--set", "link.bottleneck.loss=1"], 2, &["may be meant as 1 % or as all"]),
    (&["run", "scenario.toml", "--set", "link.bottleneck.rate=2Mb"], 2, &["bits are meant by Mbit"]),
    (&["run", "scenario.toml", "--set", "link.bottleneck.queue=fq_code"], 2, &["did you mean \"fq-codel\"?"]),
    (&["new", "scenario.toml"], 2, &["scenario.toml is there already; accepted: a new file"]),
    (&["estimate", "none.pcap"], 2, &["none.pcap", "No such file"]),
    (&["run", "none.toml"], 2, &["none.toml", "No such file"]),
    (&["paper", "fs_at"], 2, &["NAME: unknown paper \"fs_at\""]),
    (
        &["paper", "fs-at", "--series", "--json"],
        2,
        &["--series: events and samples of a paper's runs are files"],
    ),
    (&["list", "kubic"], 2, &["NAME: ", "\"kubic\""]),
];

/// A folder with a scenario, and one that holds something.
fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    fs::create_dir(folder.path().join("taken")).unwrap();
    fs::write(folder.path().join("taken/notes.txt"), "mine").unwrap();
    folder
}

#[test]
fn each_mistake_is_told_in_one_line_and_leaves_nothing_behind() {
    let texts: Vec<_> = LINES.iter().map(|(line, _)| format!("--link={line}")).collect();
    let lines = texts.iter().zip(LINES).map(|(line, (_, says))| (vec!["compare", line], 2, *says));
    let beside = BESIDE.iter().map(|(options, says)| ([&LINK, *options].concat(), 2, *says));
    let commands = COMMANDS.iter().map(|(arguments, code, says)| (arguments.to_vec(), *code, *says));
    let all: Vec<_> = lines.chain(beside).chain(commands).collect();
    assert!(all.len() >= 50, "{}", all.len());
    let place = folder();
    let papers = crate::project().join("papers");
    for (mut arguments, code, says) in all {
        let papers = papers.to_str().unwrap();
        if arguments[0] == "paper" {
            arguments.extend(["--from", papers]);
        }
        let output = run_in(place.path(), &arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?} prints");
        assert_eq!(message.trim_end().lines().count(), 1, "{arguments:?}: {message}");
        assert!(message.starts_with("suimon: "), "{arguments:?}: {message}");
        for part in says {
            assert!(message.contains(part), "{arguments:?}: no {part:?} in: {message}");
        }
        let mut left: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["scenario.toml", "taken"], "{arguments:?} writes");
        assert_eq!(fs::read_dir(place.path().join("taken")).unwrap().count(), 1, "{arguments:?} writes");
    }
}

#[test]
fn a_spelling_that_can_mean_one_thing_only_is_accepted() {
    let place = folder();
    let short = ["--no-files", "--duration", "1s", "--cc", "reno"];
    for line in [
        "2mbit 60ms",
        "2 MBit/s 60 ms",
        "2Mbps 60ms",
        "2mbps 60ms",
        "250kB/s 60ms",
        "2Mbits 60ms",
        "20/5 Mbit/s 60ms",
        "20Mbit/768kbit 60ms",
        "20Mbit 60ms buffer=500packets",
        "20Mbit 60ms loss=0.01",
        "20Mbit 60ms loss=100%",
    ] {
        let output = run_in(place.path(), &[&["compare", "--link", line][..], &short].concat());
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    }
    for options in [
        ["--queue", "fq_codel"],
        ["--queue", "FQ-CoDel"],
        ["--cc", "BBR"],
        ["--cc", "FS-AT"],
        ["--cc", "fs_at+cubic"],
        ["--cc", "DRS"],
        ["--buffer", "500packets"],
        ["--loss", "1%"],
        ["--up", "5Mbit"],
        ["--preset", "HOME"],
    ] {
        let over: &[&str] = if options[0] == "--preset" { &[] } else { &LINK[2..] };
        let arguments = [&["compare", "--no-files", "--duration", "1s"], over, &options[..]].concat();
        let output = run_in(place.path(), &arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_new_scenario_runs_and_compares_two_queues() {
    let place = TempDir::new().unwrap();
    crate::succeeds(place.path(), &["new", "my.toml"]);
    let written = fs::read_to_string(place.path().join("my.toml")).unwrap();
    assert!(written.lines().count() <= 40, "{written}");
    assert_eq!(crate::succeeds(place.path(), &["new"]), written);
    let whole = crate::json(place.path(), &["run", "my.toml", "--json", "--set", "duration=2s"]);
    assert_eq!(whole["runs"].as_array().unwrap().len(), 2);
    assert_eq!(whole["queues"].as_array().unwrap().len(), 4, "both directions are reported");
    assert_eq!(whole["notes"].as_array().unwrap().len(), 0);
}

/// What stands beside a link applies to it, and the title says the buffer, also one that nobody gave.
#[test]
fn the_buffer_stands_in_the_title() {
    let place = folder();
    for (options, title) in [
        (&["--buffer", "500packets"][..], "reno over 20Mbit 60ms 500packets\n"),
        (&[][..], "reno over 20Mbit 60ms buffer 1000 packets (the default)\n"),
        (&["--up", "5Mbit"][..], "reno over 20Mbit 60ms up 5Mbit buffer 1000 packets (the default)\n"),
    ] {
        let short = ["--duration", "1s", "--cc", "reno"];
        let output = run_in(place.path(), &[&LINK[..], options, &short].concat());
        let shown = text(&output.stdout);
        assert!(shown.starts_with(title), "{options:?}: {shown}");
    }
}
