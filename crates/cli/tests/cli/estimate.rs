//! `suimon estimate`: captures of kernel TCP over links of known round-trip time.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::{contents, fails, json, project, refuses, succeeds, suimon, text};

/// Twelve flows, half of them 40 ms and half 100 ms away without a queue; a receiver that acknowledges
/// every packet, as the paper's does.
fn every_ack() -> String {
    capture("every-ack.pcap")
}

fn capture(name: &str) -> String {
    let path = project().join("crates/capture/tests/data").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Of each group of flows alone: an average over estimates of both takes more of them than these four
/// seconds have.
#[test]
fn bursts_of_kernel_tcp_are_told_within_a_tenth() {
    let folder = TempDir::new().unwrap();
    for (group, estimator) in ["10.1.0.0/24", "fd00:1::/64"]
        .into_iter()
        .flat_map(|group| [(group, "bursts"), (group, "bursts:dt=10ms")])
    {
        let mut representative = Vec::new();
        for seed in ["1", "2", "3", "4", "5"] {
            let capture = every_ack();
            let arguments = ["estimate", "--pcap", &capture, "--json", "--host", group, "--estimators"];
            let result = json(folder.path(), &[&arguments[..], &[estimator, "--seed", seed]].concat());
            let told = &result["estimators"][0];
            if told["estimates"] == 0 {
                continue;
            }
            assert!(number(&told["error_median"]) < 0.1, "{group} {told}");
            representative.push(number(&told["representative_error"]));
        }
        representative.sort_by(f64::total_cmp);
        assert!(representative.len() >= 3, "{group} {estimator}: {representative:?}");
        assert!(representative[representative.len() / 2] < 0.1, "{group} {estimator}: {representative:?}");
    }
}

#[test]
fn the_true_round_trip_is_that_of_the_link() {
    let folder = TempDir::new().unwrap();
    let result =
        json(folder.path(), &["estimate", "--pcap", &every_ack(), "--json", "--from", "10.1.0.0/24"]);
    let flows = result["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 6);
    for flow in flows {
        assert!((40.0..60.0).contains(&number(&flow["rtt_min_ms"])), "{flow}");
        assert!((9.9..11.0).contains(&number(&flow["sender_side_mean_ms"])), "{flow}");
        let sum = number(&flow["sender_side_mean_ms"]) + number(&flow["receiver_side_mean_ms"]);
        assert!((sum - number(&flow["rtt_mean_ms"])).abs() < 1e-3, "{flow}");
    }
    let series = ["estimate", "--pcap", &every_ack(), "--json", "--series", "--interval", "500ms"];
    let result = json(folder.path(), &series);
    let rows = result["series"].as_array().unwrap();
    assert!((8..=9).contains(&rows.len()), "{}", rows.len());
    let late = &rows[6];
    // Ten or twelve of unequal rates.
    assert!((10.0..=12.0).contains(&number(&late["flows_active"])), "{late}");
    let (effective, estimated) = (number(&late["flows_effective"]), number(&late["flows_estimated"]));
    assert!((estimated / effective - 1.0).abs() < 0.25, "{late}");
}

/// Losses that the simulator knows, as its capture shows them where packets are sent.
#[test]
fn losses_and_retransmissions_are_those_of_the_simulator() {
    let folder = TempDir::new().unwrap();
    let link =
        ["compare", "--no-files", "--json", "--link", "10Mbit 40ms 100packets loss=1%", "--cc", "reno"];
    let whole = json(folder.path(), &[&link[..], &["--duration", "20s", "--pcapng", "a.pcapng"]].concat());
    let result = json(folder.path(), &["estimate", "a.pcapng", "--json"]);
    let (simulated, read) = (&whole["flows"][0], &result["flows"][0]);
    assert!(number(&simulated["retransmissions"]) > 50.0, "{simulated}");
    assert_eq!(read["retransmissions"], simulated["retransmissions"]);
    assert_eq!(read["retransmissions"], result["capture"]["retransmissions"]);
    assert!((number(&read["loss"]) / 0.01 - 1.0).abs() < 0.5, "{read}");
    let order = ["rtt_min_ms", "rtt_p50_ms", "rtt_p95_ms", "rtt_p99_ms"].map(|key| number(&read[key]));
    assert!(order.is_sorted() && order[0] > 40.0, "{order:?}");
}

#[test]
fn standard_input_is_as_good_as_a_file() {
    let folder = TempDir::new().unwrap();
    let from_file = json(folder.path(), &["estimate", "--pcap", &every_ack(), "--json"]);
    let mut child = suimon()
        .args(["estimate", "--pcap", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(every_ack()).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let piped: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(piped["capture"]["name"], "standard input");
    for key in ["estimators", "flows", "flow_estimates"] {
        assert_eq!(piped[key], from_file[key], "{key}");
    }
}

#[test]
fn files_hold_the_series_and_do_not_vary() {
    let folder = TempDir::new().unwrap();
    for out in ["a", "b"] {
        let printed = succeeds(folder.path(), &["estimate", "--pcap", &every_ack(), "--out", out]);
        assert!(printed.contains(&format!("\nReport: {out}/report.html\n")), "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    }
    let files = contents(&folder.path().join("a"));
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for table in ["estimators", "flows", "flow_estimates", "series", "flow_series"] {
        for ending in ["csv", "parquet"] {
            assert!(names.contains(&format!("{table}.{ending}").as_str()), "{names:?}");
        }
    }
    let tables = |out: &str| {
        let of = contents(&folder.path().join(out)).into_iter();
        of.filter(|(name, _)| name.ends_with(".csv")).collect::<Vec<_>>()
    };
    assert_eq!(tables("a"), tables("b"));
    let series = fs::read_to_string(folder.path().join("a/series.csv")).unwrap();
    let head = "time_s,data_packets,flows_active,flows_effective,flows_estimated,rtt_true_ms,bursts_ms";
    assert!(series.starts_with(head), "{series}");
    let page = fs::read_to_string(folder.path().join("a/report.html")).unwrap();
    for part in ["Representative RTT", "Time-sequence graph of 10.1.0.10:40000", "\"title\":\"Estimators\""] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_is_not_asked_for_is_left_out() {
    let folder = TempDir::new().unwrap();
    let flows = |arguments: &[&str]| {
        let capture = every_ack();
        let all = [&["estimate", "--pcap", &capture, "--json"], arguments].concat();
        json(folder.path(), &all)["flows"].as_array().unwrap().len()
    };
    assert_eq!(flows(&[]), 12);
    assert_eq!(flows(&["--port", "40000,40001"]), 2);
    assert_eq!(flows(&["--host", "fd00:1::/64"]), 6);
    assert_eq!(flows(&["--to", "fd00:2::2", "--port", "5001"]), 6);
    assert_eq!(flows(&["--from", "10.2.0.0/16"]), 0, "ACKs carry no data");
    assert_eq!(flows(&["--max-flows", "3", "--from", "10.1.0.0/24"]), 3);
}

#[test]
fn a_capture_that_is_cut_off_is_used_as_far_as_it_goes() {
    let folder = TempDir::new().unwrap();
    let whole = fs::read(every_ack()).unwrap();
    fs::write(folder.path().join("cut.pcap"), &whole[..whole.len() / 2]).unwrap();
    let printed = succeeds(folder.path(), &["estimate", "--pcap", "cut.pcap", "--no-files"]);
    assert!(printed.contains("Note: The capture is cut off at byte "), "{printed}");
    fs::write(folder.path().join("none.pcap"), &whole[..24]).unwrap();
    let printed = succeeds(folder.path(), &["estimate", "--pcap", "none.pcap", "--no-files"]);
    assert!(printed.contains("0 packets in 0 s; 0 with data"), "{printed}");
}

#[test]
fn bad_input_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("text.pcap"), "time,rate\n").unwrap();
    let mut damaged = fs::read(every_ack()).unwrap();
    damaged[24 + 8..24 + 12].fill(0xff);
    fs::write(folder.path().join("damaged.pcap"), &damaged).unwrap();
    for (arguments, parts) in [
        (&["--pcap", "none.pcap"][..], &["none.pcap: cannot read it: No such file"][..]),
        (&["--pcap", "."], &[".: cannot read it: ", "directory"]),
        (&["--pcap", "text.pcap"], &["text.pcap: not a capture", "accepted: pcap and pcapng"]),
        (&["--pcap", "damaged.pcap"], &["damaged.pcap: damaged at byte 24, after 0 packets"]),
        (&["--pcap", "x", "--estimators", "burst"], &["--estimators: ", "\"burst\"", "accepted: bursts"]),
        (&["--pcap", "x", "--estimators", "bursts:dt=5"], &["--estimators: dt = \"5\"", "such as 10ms"]),
        (&["--pcap", "x", "--estimators", "bursts,bursts"], &["--estimators: bursts stands there twice"]),
        (&["--pcap", "x", "--interval", "0s"], &["--interval: ", "accepted: a time"]),
    ] {
        let message = refuses(folder.path(), &[&["estimate"], arguments].concat());
        for part in parts {
            assert!(message.contains(part), "no {part:?} in: {message}");
        }
    }
    for (option, value, accepted) in [
        ("--host", "example.org", "accepted: an IPv4"),
        ("--max-flows", "0", "accepted: a whole number from 1"),
    ] {
        let message = fails(folder.path(), &["estimate", "--pcap", "x", option, value], 2);
        assert!(message.contains(option) && message.contains(accepted), "{message}");
    }
}
