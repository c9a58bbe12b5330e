//! `suimon cc`: what it refuses anywhere, and a round of it where this machine can load.

use tempfile::tempdir;

use super::{json, run_in, succeeds, text};

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let folder = tempdir().unwrap();
    for (arguments, problem) in [
        (
            &["cc", "load", "bbr"][..],
            "accepted: fs-at, fs-at+cubic, fs-at-shared, fs-at-open, vegas, compound",
        ),
        (&["cc", "load", "fs-at", "--as", "fs-at"], "accepted: up to 15 letters, digits and underscores"),
        (&["cc", "unload", "no_such_one"], "no_such_one is not loaded"),
        (&["cc", "replay", "no_such_trace.json"], "no_such_trace.json: No such file"),
    ] {
        let output = run_in(folder.path(), arguments);
        if output.status.code() == Some(4) && text(&output.stderr).contains("run this by sudo") {
            eprintln!("skipped: {arguments:?} reads a folder that only root may read");
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(problem), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn one_is_loaded_listed_watched_and_unloaded() {
    let folder = tempdir().unwrap();
    let check = run_in(folder.path(), &["cc", "check"]);
    if !check.status.success() {
        eprintln!("skipped: {}", text(&check.stderr));
        return;
    }
    let name = format!("c{}", std::process::id());
    // A folder that any user may open and lock.
    let lock = std::fs::File::open("/run").unwrap();
    lock.lock().unwrap();
    let said = succeeds(folder.path(), &["cc", "load", "fs-at", "--as", &name]);
    assert!(said.contains(&name), "{said}");
    let twice = run_in(folder.path(), &["cc", "load", "fs-at", "--as", &name]);
    assert!(text(&twice.stderr).contains("already loaded"), "{}", text(&twice.stderr));
    // As a loader leaves it that is killed before its last pin.
    let left = std::path::Path::new("/run/suimon/bpf/fs-at").join(format!("{name}x"));
    std::fs::create_dir(&left).unwrap();
    let listed = json(folder.path(), &["cc", "list", "--json"]);
    assert!(listed.to_string().contains(&name), "{listed}");
    assert!(!left.exists());
    assert_eq!(json(folder.path(), &["cc", "stat", &name, "--json"]).as_array().map(Vec::len), Some(0));
    assert_eq!(succeeds(folder.path(), &["cc", "trace", &name, "--json", "--seconds", "1"]), "");
    let behind = ["shell", "--quiet", "--link", "1Mbit", "--cc", &name, "--", "cat"];
    let used = [&behind[..], &["/proc/sys/net/ipv4/tcp_congestion_control"]].concat();
    assert_eq!(succeeds(folder.path(), &used).trim(), name);
    let said = succeeds(folder.path(), &["cc", "unload", &name]);
    assert!(said.contains("is unloaded"), "{said}");
    let listed = json(folder.path(), &["cc", "list", "--json"]);
    assert!(!listed.to_string().contains(&name), "{listed}");
}

/// An event of the open mode in slow start, as `suimon cc trace --json` writes it.
fn traced(event: &str, number: u32, cwnd: u32, kernel_cwnd: u32, decided: u32) -> String {
    serde_json::json!({
        "event": event, "connection": 7, "now_us": 5_000_000 + number * 50_000, "number": number,
        "rcv_bytes": 0, "target_bytes": 0, "space_bytes": 0, "rtt_min_us": 40_000, "queueing_us": 0, "mode": 1,
        "cwnd_segments": cwnd, "queued_half_segments": 0, "dwnd_segments": 0, "newly_acked": 1_448,
        "delivered": 1_448, "flight_size": 1_448, "prior_flight_size": 2_896, "outstanding": 1_448, "snd_wnd": 65_536,
        "rtt_us": 40_000 + number, "mss": 1_448, "snd_cwnd": cwnd, "ssthresh": 20, "kernel_cwnd": kernel_cwnd,
        "below": if event == "ack" { cwnd } else { 0 }, "decided": decided, "local_port": 1, "remote_port": 2,
        "ca_state": 0, "app_limited": 0, "radio": 0,
    })
    .to_string()
}

#[test]
fn a_trace_is_replayed_without_root_and_a_decision_that_differs_is_named() {
    let folder = tempdir().unwrap();
    let start = traced("start", 0, 10, 10, 0);
    let of = |lines: &[&str]| {
        std::fs::write(folder.path().join("trace.json"), lines.join("\n")).unwrap();
        run_in(folder.path(), &["cc", "replay", "trace.json"])
    };
    // (10) of the paper: without a queue the threshold stays.
    let output = of(&[&start, &traced("ack", 1, 12, 0, 12), &traced("loss", 2, 12, 0, 20)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let expected = "fs-at-open: 3 events of 1 connections (1 acknowledgements, 1 losses, marks and timeouts), \
        0 decisions differ.";
    assert_eq!(text(&output.stdout).trim(), expected);
    let output = of(&[&start, &traced("ack", 1, 12, 0, 13)]);
    assert_eq!(output.status.code(), Some(1));
    let problem = "connection 7, event 1: the decision in segments is 13 in the kernel and 12 here";
    assert!(text(&output.stderr).contains(problem), "{}", text(&output.stderr));
}

/// A paper of one link, with one bar that holds and one that cannot.
const KERNEL: &str = r#"
description = "A test"
duration = "4s"
window = "96kB"
cc = ["reno", "fs-at"]
agreement = 0.1
agreement_packets = 1.0

[[link]]
name = "2 Mbit/s"
link = "2Mbit 40ms unbounded"

[programs]
links = ["2 Mbit/s"]
iperf3 = "2s"
download = "300kB"

[[bar]]
claim = "half the queue"
of = "backlog"
cc = "fs-at"
link = "2 Mbit/s"
beside_cc = "reno"
most = 0.5

[[bar]]
claim = "twice the throughput"
of = "throughput"
cc = "fs-at"
link = "2 Mbit/s"
beside_cc = "reno"
least = 2.0
"#;

#[test]
fn a_papers_experiment_runs_on_the_kernel_with_programs_and_ping() {
    let folder = tempdir().unwrap();
    let check = run_in(folder.path(), &["cc", "check"]);
    if !check.status.success() {
        eprintln!("skipped: {}", text(&check.stderr));
        return;
    }
    let paper = folder.path().join("small");
    std::fs::create_dir(&paper).unwrap();
    std::fs::write(paper.join("claims.toml"), "").unwrap();
    std::fs::write(paper.join("kernel.toml"), KERNEL).unwrap();
    let output = run_in(folder.path(), &["paper", "small", "--from", ".", "--kernel", "--json"]);
    assert_eq!(output.status.code(), Some(1), "a bar is missed: {}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let holds: Vec<_> = told["bars"].as_array().unwrap().iter().map(|bar| bar["holds"].as_bool()).collect();
    assert_eq!(holds, [Some(true), Some(false)], "{told}");
    assert_eq!(told["rows"].as_array().unwrap().len(), 2);
    let left_out = told["left_out"].as_array().unwrap();
    let programs = told["programs"].as_array().unwrap();
    assert!(programs.len() == 4 || !left_out.is_empty(), "{told}");
    for row in programs {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!((1_000.0..2_000.0).contains(&number("throughput_kbps")), "{row}");
        assert!((40.0..1_000.0).contains(&number("ping_p50_ms")), "{row}");
    }
}

#[test]
fn a_papers_experiment_with_an_unknown_link_is_refused_with_those_there_are() {
    let folder = tempdir().unwrap();
    let paper = folder.path().join("small");
    std::fs::create_dir(&paper).unwrap();
    std::fs::write(paper.join("claims.toml"), "").unwrap();
    let unknown = KERNEL.replace("links = [\"2 Mbit/s\"]", "links = [\"3 Mbit/s\"]");
    std::fs::write(paper.join("kernel.toml"), unknown).unwrap();
    let output = run_in(folder.path(), &["paper", "small", "--from", ".", "--kernel"]);
    assert_eq!(output.status.code(), Some(2));
    let problem = text(&output.stderr);
    assert!(problem.contains("no link \"3 Mbit/s\"; accepted: 2 Mbit/s"), "{problem}");
}
