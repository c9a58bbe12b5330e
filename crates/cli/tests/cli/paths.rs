//! `suimon compare --paths`: one stream over several links.

use std::fs;

use crate::{json, refuses, succeeds};
use tempfile::TempDir;

#[test]
fn schedulers_are_set_beside_each_path_alone() {
    let folder = TempDir::new().unwrap();
    let paths = "10Mbit 10ms 30packets; 3Mbit 60ms 30packets";
    let arguments =
        ["compare", "--paths", paths, "--scheduler", "look-ahead,round-robin", "--duration", "20s"];
    let results = json(folder.path(), &[&arguments[..], &["--json"]].concat());
    let rows = results["aggregates"].as_array().unwrap();
    let goodput = |row: usize| rows[row]["goodput_bps"].as_f64().unwrap();
    let share = |row: usize| rows[row]["share_of_paths"].as_f64();
    assert_eq!(rows.len(), 4, "two paths alone, two schedulers");
    assert_eq!((rows[0]["flows"].as_str(), share(0)), (Some("path-1"), None));
    let sum = goodput(0) + goodput(1);
    assert!((share(2).unwrap() - goodput(2) / sum).abs() < 1e-6);
    assert!(share(2).unwrap() > 0.95, "look-ahead reaches the sum: {:?}", share(2));
    assert!(share(3).unwrap() < 0.6, "round robin waits for the slower path: {:?}", share(3));
    let output = succeeds(folder.path(), &arguments);
    for part in ["path-1: 10Mbit 10ms 30packets; path-2:", "Of paths'", "Reorder", "stall", "path-2 alone"] {
        assert!(output.contains(part), "no {part} in: {output}");
    }
    assert!(folder.path().join("suimon-out/paths/report.html").is_file());
}

#[test]
fn an_outage_costs_a_stream_no_byte() {
    let folder = TempDir::new().unwrap();
    let paths = "10Mbit 10ms 50packets outages=3s..8s; 4Mbit 60ms 50packets";
    let arguments = ["compare", "--paths", paths, "--scheduler", "look-ahead", "--size", "10MB", "--json"];
    let results = json(folder.path(), &arguments);
    let stream = &results["aggregates"][2];
    assert_eq!(stream["delivered_bytes"].as_u64(), Some(10_000_000));
    assert!(stream["reconnections"].as_u64() > Some(0));
    let stall = stream["longest_stall_ms"].as_f64().unwrap();
    assert!(stall < 2.0 * 260.0, "two timeouts of 200 ms and a round trip: {stall}");
}

#[test]
fn a_path_may_be_a_trace() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("cell.down"),
        (1..=100).map(|ms| format!("{}\n", ms * 10)).collect::<String>(),
    )
    .unwrap();
    let arguments = ["compare", "--paths", "cell.down; 1Mbit 5ms", "--duration", "5s", "--json"];
    assert_eq!(json(folder.path(), &arguments)["aggregates"].as_array().unwrap().len(), 8);
}

#[test]
fn refusals_name_the_option_the_path_and_what_is_accepted() {
    let folder = TempDir::new().unwrap();
    for (arguments, parts) in [
        (&["--paths", "10Mbit 1ms; 3MB 2ms"][..], ["--paths: path-2: \"3MB\"", "accepted: a rate"]),
        (&["--paths", "10Mbit 1ms; no.down"][..], ["--paths: path-2: \"no.down\"", "a file with a trace"]),
        (&["--paths", "1Mbit 1ms", "--scheduler", "fast"][..], ["--scheduler: unknown", "look-ahead"]),
        (&["--link", "1Mbit 1ms", "--send-buffer", "1MB"][..], ["--send-buffer: goes with --paths", "3Mbit"]),
        (&["--paths", "1Mbit 1ms outages=5s"][..], ["path-1: \"outages=5s\"", "accepted: periods"]),
        (
            &["--paths", "1Mbit 1ms outages=5s..2s"][..],
            ["link.path-1.outages", "does not end after it begins"],
        ),
    ] {
        let message = refuses(folder.path(), &[&["compare"], arguments].concat());
        for part in parts {
            assert!(message.contains(part), "no {part:?} in: {message}");
        }
    }
}
