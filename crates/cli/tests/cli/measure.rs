//! `suimon measure` over an emulated link, and `suimon compare --line`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::{fails, refuses, succeeds};

#[test]
fn a_line_is_measured_written_and_read_again() {
    if !suimon_testing::can_emulate() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [record, saved, csv, metrics] = ["record.json", "line.toml", "line.csv", "line.prom"].map(path);
    let suimon = env!("CARGO_BIN_EXE_suimon");
    let server = format!("{suimon} measure --serve --log error");
    let client = format!(
        "sleep 0.5; exec {suimon} measure far --json --load 1s --record {record} --save {saved} --csv {csv} \
         --prometheus {metrics}"
    );
    let [down, up] = ["50Mbit 10ms 200kB", "20Mbit 10ms 100kB"];
    let shell =
        ["shell", "--quiet", "--down", down, "--up", up, "--server", &server, "--", "sh", "-c", &client];
    let said = succeeds(folder.path(), &shell);
    let line: Value = serde_json::from_str(&said).unwrap();
    assert!(line["idle"]["rtt_ms"].as_f64().unwrap() < 100.0, "{line}");
    for (direction, mbps) in [("download", 50.0), ("upload", 20.0)] {
        // How near it comes is for bench/line.py to say, in virtual time.
        let found = line[direction]["capacity_mbps"].as_f64().unwrap();
        assert!((0.3 * mbps..2.0 * mbps).contains(&found), "{line}");
        assert!(line[direction]["grade"].is_string(), "{line}");
    }
    assert!(fs::read_to_string(&saved).unwrap().contains("[link.reverse]"));
    assert!(fs::read_to_string(&csv).unwrap().starts_with("time_s,load,rtt_ms,arriving_mbps\n0."));
    assert!(fs::read_to_string(&metrics).unwrap().contains("suimon_line_capacity_bits_per_second{"));
    let again: Value =
        serde_json::from_str(&succeeds(folder.path(), &["measure", "--read", &record, "--json"])).unwrap();
    assert_eq!(again["download"], line["download"]);
    let text = succeeds(folder.path(), &["measure", "--read", &record]);
    assert!(text.contains("capacity") && text.contains("Grade"), "{text}");
}

#[test]
fn a_line_that_varies_is_recorded_and_described() {
    if !suimon_testing::can_emulate() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let suimon = env!("CARGO_BIN_EXE_suimon");
    let server = format!("{suimon} measure --serve --log error");
    let client =
        format!("sleep 0.5; exec {suimon} measure record far --out cell --length 1s --only download --json");
    // 12 Mbit/s in the first half of each second, 2.4 Mbit/s in the second.
    let times = (1..=500).chain((501..=1_000).step_by(5)).map(|at: u32| format!("{at}\n"));
    fs::write(folder.path().join("played.down"), times.collect::<String>()).unwrap();
    let [down, up] = ["played.down 10ms 200kB", "5Mbit 10ms 100kB"];
    let shell =
        ["shell", "--quiet", "--down", down, "--up", up, "--server", &server, "--", "sh", "-c", &client];
    let said: Value = serde_json::from_str(&succeeds(folder.path(), &shell)).unwrap();
    // How near it comes is for bench/recorded.py to say.
    let mean = said["download"]["mean_mbps"].as_f64().unwrap();
    assert!((2.0..14.0).contains(&mean), "{said}");
    assert!(!folder.path().join("cell.up").exists());
    let described = succeeds(folder.path(), &["trace", "describe", "cell.down", "--svg", "cell.svg"]);
    assert!(described.contains("mean rate") && described.contains('█'), "{described}");
    assert!(fs::read_to_string(folder.path().join("cell.svg")).unwrap().starts_with("<svg "));
    let json: Value =
        serde_json::from_str(&succeeds(folder.path(), &["trace", "describe", "cell.down", "--json"]))
            .unwrap();
    assert!(json["p90_mbps"].as_f64().unwrap() >= json["p10_mbps"].as_f64().unwrap(), "{json}");
}

#[test]
fn a_saved_line_is_compared_as_it_is_and_changed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("line.toml");
    let way = |rate: &str, buffer: &str| {
        format!("rate = \"{rate}\"\ndelay = \"15ms\"\nbuffer = \"{buffer}\"\nreported = true\n")
    };
    let scenario = format!(
        "duration = \"5s\"\n[[link]]\nname = \"line\"\nbetween = [\"server\", \"client\"]\n{}[link.reverse]\n{}\
         [[flow]]\nname = \"download\"\nfrom = \"server\"\nto = \"client\"\n",
        way("4Mbit", "100kB"),
        way("1Mbit", "30kB")
    );
    fs::write(&file, scenario).unwrap();
    let file = file.to_str().unwrap();
    let said = succeeds(folder.path(), &["compare", "--line", file, "--duration", "5s", "--json"]);
    let found: Value = serde_json::from_str(&said).unwrap();
    let names: Vec<_> =
        found["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names[0], "as it is");
    assert!(names.iter().any(|name| name.starts_with("cake at")), "{names:?}");
    let refused = fails(folder.path(), &["compare", "--line", file, "--link", "1Mbit 1ms"], 2);
    assert!(refused.contains("--l"), "{refused}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_is_accepted() {
    let folder = TempDir::new().unwrap();
    for (words, parts) in [
        (&["host", "--load", "1ms"][..], &["--load: 1 ms: accepted: from 1s to 20s"][..]),
        (&["host", "--flows", "33"], &["--flows: 33: accepted: from 1 to 32"]),
        (&["host", "--megabytes", "0"], &["--megabytes: 0: accepted: at least 1"]),
        (&["--read", "no-such-file"], &["--read: no-such-file:", "accepted: a file that --record wrote"]),
        (&["record", "host", "--length", "6min"], &["--length: 360 s: accepted: from 1s to 5min"]),
        (&["--serve", "--listen", "host"], &["--listen:", "accepted: PORT or ADDRESS:PORT"]),
        (
            &["--serve", "--tls-cert", "none", "--tls-key", "none"],
            &["--tls-cert: none:", "accepted: certificates as PEM"],
        ),
        (&["a b"], &["HOST: a b:", "accepted: a name or an address"]),
    ] {
        let message = refuses(folder.path(), &[&["measure"], words].concat());
        for part in parts {
            assert!(message.contains(part), "no {part:?} in: {message}");
        }
    }
    let half = fails(folder.path(), &["measure", "--serve", "--tls-cert", "none"], 2);
    assert!(half.contains("--tls-key"), "{half}");
}
