//! Bad input: one message that names file, key and accepted values; exit code 2, or 3 where a file cannot be
//! written; and nothing that was there before is lost.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{SCENARIO, contents, fails, project, refuses, succeeds};
use tempfile::TempDir;

/// A folder with `scenario.toml`, in which `from` is replaced by `to`.
fn with(from: &str, to: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    assert!(SCENARIO.contains(from), "{from}");
    fs::write(folder.path().join("scenario.toml"), SCENARIO.replacen(from, to, 1)).unwrap();
    folder
}

fn file(name: &str, text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    folder
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "no {part:?} in: {message}");
    }
}

#[test]
fn a_scenario_is_refused_with_file_line_key_and_what_is_accepted() {
    for (from, to, parts) in [
        (
            "delay =",
            "dellay =",
            [
                "scenario.toml:6: link.bottleneck.dellay: unknown key",
                "did you mean \"delay\"",
                "accepted: name,",
            ],
        ),
        (
            "rate = \"1Mbit\"",
            "rate = 1000000",
            ["scenario.toml:5: link.bottleneck.rate:", "has no unit", "accepted: bit, kbit"],
        ),
        (
            "\"10ms\"",
            "\"10\"",
            ["scenario.toml:6: link.bottleneck.delay:", "\"10\" has no unit", "accepted: ns"],
        ),
        (
            "\"1Mbit\"",
            "\"-1Mbit\"",
            ["scenario.toml:5: link.bottleneck.rate:", "\"-1Mbit\" is negative", "accepted: bit"],
        ),
        (
            "\"reno\"",
            "\"rno\"",
            ["scenario.toml:11: flow.main.cc:", "did you mean \"reno\"", "accepted: reno,"],
        ),
        (
            "to = \"b\"",
            "to = \"c\"",
            ["scenario.toml:10: flow.main.to:", "no node is called \"c\"", "accepted: a"],
        ),
        ("rate = \"1Mbit\"\n", "", ["scenario.toml:2: link.bottleneck", "missing", "accepted: a rate"]),
        (
            "rate = \"1Mbit\"",
            "trace = \"none.down\"",
            ["scenario.toml:5: link.bottleneck.trace:", "cannot read none.down", "No such file"],
        ),
        ("[[flow]]", "[[flow", ["scenario.toml:7", "]]", "expected"]),
    ] {
        let folder = with(from, to);
        says(&refuses(folder.path(), &["run", "scenario.toml", "--no-files"]), &parts);
    }
}

#[test]
fn a_scenario_that_is_not_there_or_no_text_is_refused_by_name() {
    let folder = file("binary.toml", "");
    fs::write(folder.path().join("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    says(&refuses(folder.path(), &["run", "none.toml"]), &["none.toml", "No such file"]);
    says(&refuses(folder.path(), &["run", "."]), &["cannot read it", "directory"]);
    says(&refuses(folder.path(), &["run", "binary.toml"]), &["binary.toml", "UTF-8"]);
}

#[test]
fn a_trace_is_refused_with_file_line_and_what_is_accepted() {
    for (name, text, parts) in [
        ("t.down", "", ["t.down: missing", "milliseconds a line"]),
        ("t.down", "5\n3\n", ["t.down:2: \"3\" is earlier", "none less than the one before"]),
        ("t.down", "5\n1.5\n", ["t.down:2: \"1.5\" is not a whole number", "milliseconds a line"]),
        ("t.down", "-1\n", ["t.down:1: \"-1\"", "milliseconds a line"]),
        ("t.csv", "time,rate\n", ["t.csv", "accepted"]),
        ("t.csv", "time,rate\n0s,1Mbit\n0s,2Mbit\n", ["t.csv:3", "accepted"]),
        ("t.csv", "time,rate\n0s,-1Mbit\n9s,\n", ["t.csv:2", "\"-1Mbit\" is negative"]),
        ("t.csv", "time,rate\n0s,1000\n9s,\n", ["t.csv:2", "\"1000\" has no unit"]),
    ] {
        let folder = file(name, text);
        says(&refuses(folder.path(), &["compare", "--trace", name, "--no-files"]), &parts);
    }
    let nothing = TempDir::new().unwrap();
    let message = refuses(nothing.path(), &["compare", "--trace", "none.down"]);
    says(&message, &["none.down", "No such file"]);
    says(&refuses(nothing.path(), &["trace", "describe", "none.down"]), &["none.down", "No such file"]);
}

#[test]
fn options_are_refused_by_name_with_what_is_accepted() {
    let link = ["compare", "--no-files", "--link", "1Mbit 20ms"];
    for (arguments, parts) in [
        (
            vec!["compare", "--link", "nonsense"],
            vec!["--link: \"nonsense\"", "accepted: a rate such as 2Mbit"],
        ),
        (vec!["compare", "--link", ""], vec!["--link: missing", "accepted: a rate such as 2Mbit"]),
        (vec!["compare", "--link", "2Mbit"], vec!["--link: missing", "accepted: the round-trip time"]),
        (vec!["compare", "--link", "2MB 10ms"], vec!["--link: \"2MB\"", "accepted: a rate such as 2Mbit"]),
        (vec!["compare", "--link", "trace=none 10ms"], vec!["none", "No such file"]),
        ([&link[..], &["--cc", "nope"]].concat(), vec!["--cc: ", "\"nope\"", "accepted: reno,"]),
        ([&link[..], &["--cc", "vegas:alpha=x"]].concat(), vec!["--cc: ", "alpha", "accepted: a number"]),
        ([&link[..], &["--cc", "vegas:alfa=1"]].concat(), vec!["--cc: ", "alfa", "accepted: alpha"]),
        ([&link[..], &["--queue", "nope"]].concat(), vec!["--queue: ", "\"nope\"", "accepted: droptail"]),
        ([&link[..], &["--profile", "bsd"]].concat(), vec!["--profile: ", "\"bsd\"", "accepted: linux-6"]),
        ([&link[..], &["--flows", "0"]].concat(), vec!["--flows: ", "accepted: at least one"]),
        ([&link[..], &["--duration", "0s"]].concat(), vec!["--duration: ", "accepted: more than zero"]),
        (vec!["list", "nope"], vec!["NAME: ", "\"nope\"", "accepted: reno"]),
        (vec!["paper", "nope"], vec!["NAME: ", "\"nope\"", "accepted: ", "fs-at"]),
        (vec!["paper", "../papers/fs-at"], vec!["NAME: ", "accepted: ", "fs-at"]),
        (
            vec!["paper", "fs-at", "--experiment", "nope"],
            vec!["--experiment: ", "\"nope\"", "accepted: wired, hsdpa, loss, fairness"],
        ),
        (vec!["trace", "generate", "--deviation", "99"], vec!["--deviation: ", "accepted: 0 to 2"]),
    ] {
        says(&refuses(&project(), &arguments), &parts);
    }
    let folder = with("reno", "reno");
    for (set, parts) in [
        ("duration", ["--set: \"duration\"", "accepted: KEY=VALUE"]),
        ("duration=5", ["duration: \"5\" has no unit", "accepted: ns"]),
        ("link.bottle.rate=1Mbit", ["no link is called \"bottle\"", "accepted: bottleneck"]),
        ("seeds=0", ["seeds: \"0\" is out of range", "accepted: a whole number from 1 to 100000"]),
        ("flow.main.colour=red", ["flow.main.colour: unknown key", "accepted: name"]),
    ] {
        says(&refuses(folder.path(), &["run", "scenario.toml", "--no-files", "--set", set]), &parts);
    }
}

/// What the argument parser refuses: options that do not go together in its own form, values as all others.
#[test]
fn values_of_options_are_refused_with_the_option() {
    for (arguments, parts) in [
        (
            &["compare"][..],
            ["<--link <LINK>|--line <FILE>|--trace <FILE>|--paths <LINKS>|--preset <NAME>|--down <RATE>>"],
        ),
        (
            &["compare", "--link", "1Mbit 20ms", "--seeds", "-1"],
            ["suimon: --seeds: \"-1\": accepted: a whole number from 1 to"],
        ),
        (&["sweep", "x.toml", "--jobs", "0"], ["accepted: a whole number from 1 to"]),
        (&["compare", "--link", "1Mbit 20ms", "--trace", "x"], ["cannot be used with"]),
        (&["compare", "--link", "1Mbit 20ms", "--duration", "5"], ["suimon: --duration: \"5\" has no unit"]),
        (&["compare", "--link", "1Mbit 20ms", "--window=-1kB"], ["\"-1kB\" is negative"]),
        (&["compare", "--link", "1Mbit 20ms", "--no-files", "--out", "x"], ["cannot be used with"]),
        (&["run"], ["SCENARIO.toml"]),
        (&["rum"], ["unrecognized subcommand 'rum'"]),
        (&[], ["Usage"]),
    ] {
        says(&fails(&project(), arguments, 2), &parts);
    }
}

#[test]
fn the_exit_code_tells_where_nobody_reads_the_message() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_suimon"));
    let status = command.args(["list", "nope"]).stderr(writer).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn what_cannot_be_written_ends_with_3_and_names_the_folder() {
    let folder = with("reno", "reno");
    fs::write(folder.path().join("taken"), "mine").unwrap();
    for out in ["taken", "taken/below"] {
        let message = fails(folder.path(), &["run", "scenario.toml", "--out", out], 3);
        says(&message, &["suimon: cannot create the folder", out]);
    }
    assert_eq!(fs::read(folder.path().join("taken")).unwrap(), b"mine");
    fs::create_dir_all(folder.path().join("out/report.html")).unwrap();
    let message = fails(folder.path(), &["run", "scenario.toml", "--out", "out", "--force"], 3);
    says(&message, &["suimon: cannot write", "out/report.html"]);
}

#[test]
fn a_refusal_leaves_earlier_results_as_they_were() {
    let folder = with("reno", "reno");
    let run = |set: &'static str| ["run", "scenario.toml", "--out", "out", "--set", set];
    succeeds(folder.path(), &run("seed=1"));
    let out = folder.path().join("out");
    let before = contents(&out);
    assert!(before.iter().any(|(name, _)| name == "report.html"));
    refuses(folder.path(), &run("duration=5"));
    fs::write(folder.path().join("scenario.toml"), "duration = 1").unwrap();
    refuses(folder.path(), &run("seed=1"));
    assert_eq!(contents(&out), before);
}

#[test]
fn a_paper_whose_claims_do_not_read_is_refused_by_file_and_line() {
    let paper = |claims: &str| {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("mine")).unwrap();
        fs::write(folder.path().join("mine/claims.toml"), claims).unwrap();
        folder
    };
    let run = |folder: &Path| fails(folder, &["paper", "mine", "--from", "."], 2);
    says(&run(paper("title = 1").path()), &["suimon: ./mine/claims.toml", "line 1"]);
    says(&run(paper("titel = \"x\"").path()), &["./mine/claims.toml", "titel"]);
    let unknown = "title = \"x\"\ndescription = \"\"\nexperiment = []\n[[claim]]\nexperiment = \"gone\"\n\
                   claim = \"c\"\nmeasure = { of = \"goodput_bps\" }\ncell = []\n";
    says(&run(paper(unknown).path()), &["./mine/claims.toml", "unknown experiment \"gone\""]);
}

#[test]
fn a_bench_of_the_bond_refuses_a_scheduler_before_it_starts() {
    let folder = TempDir::new().unwrap();
    for command in ["faults --scheduler", "cuts --scheduler", "speed --schedulers", "--schedulers"] {
        let mut arguments = vec!["bond", "bench"];
        arguments.extend(command.split(' '));
        arguments.push("nosuch");
        let message = fails(folder.path(), &arguments, 2);
        says(&message, &["unknown path scheduler \"nosuch\"", "accepted: least-buffered, look-ahead"]);
    }
}

#[test]
fn metrics_of_a_bond_stay_at_this_host() {
    let folder = tempfile::tempdir().unwrap();
    let key = succeeds(folder.path(), &["bond", "keygen", "key"]);
    assert_eq!(succeeds(folder.path(), &["bond", "pubkey", "key"]), key);
    for address in ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"] {
        let server = ["bond", "server", "--key", "key", "--client", key.trim(), "--metrics", address];
        says(&refuses(folder.path(), &server), &["--metrics: ", address, "no", "loopback"]);
    }
}

#[test]
fn flows_and_servers_of_a_bond_that_are_none_are_refused_with_what_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let key = succeeds(folder.path(), &["bond", "keygen", "key"]);
    let client = [
        "bond",
        "client",
        "--key",
        "key",
        "--via",
        "lo",
        "--socks",
        "127.0.0.1:0",
        "--server",
        "a:1",
        "--server-key",
        key.trim(),
    ];
    let with = |more: &[&'static str]| refuses(folder.path(), &[&client[..], more].concat());
    says(&with(&["--realtime", "icmp/3478"]), &["--realtime", "icmp/3478", "accepted: udp/PORT"]);
    says(&with(&["--redundant", "udp/9-8"]), &["--redundant", "udp/9-8", "accepted: udp/PORT"]);
    let two = [&client[..], &["--server", "b:1", "--server", "c:1", "--server-key", key.trim()]].concat();
    says(&refuses(folder.path(), &two), &["--server-key: ", "2 keys for 3 servers"]);
}
