//! `suimon measure` over an emulated link, and `suimon compare --line`.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::{fails, refuses, run_in, succeeds, suimon, text};

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

/// A server on this host.
struct Served {
    server: Child,
    log: Lines<BufReader<ChildStderr>>,
    address: String,
}

impl Served {
    fn new(options: &[&str]) -> Self {
        let mut server = suimon();
        server.args(["measure", "--serve", "--listen", "127.0.0.1:0"]).args(options);
        let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(server.stderr.take().unwrap()).lines();
        let mut served = Self { server, log, address: String::new() };
        let begun = served.until("clients connect to ").pop().unwrap();
        served.address = begun.split("connect to ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        served
    }

    /// What it logs, up to the line that has `end`.
    fn until(&mut self, end: &str) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        while !said.last().is_some_and(|line| line.contains(end)) {
            said.push(self.log.next().unwrap_or_else(|| panic!("no {end:?} in {said:?}")).unwrap());
        }
        said
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn the_log_of_a_server_has_no_address_of_those_who_measure() {
    let mut served = Served::new(&[]);
    let mut client = TcpStream::connect(&served.address).unwrap();
    // A session is wanted: the preface, a length, and the message.
    client.write_all(b"suimeas1\x00\x01\x00").unwrap();
    client.read_exact(&mut [0]).unwrap();
    let own = client.local_addr().unwrap();
    drop(client);
    let said = served.until("a measurement has ended: 0 bytes");
    assert!(!said.iter().any(|line| line.contains(&own.ip().to_string())), "{own}: {said:?}");
}

#[test]
fn a_recording_whose_second_half_is_refused_writes_the_first() {
    let folder = TempDir::new().unwrap();
    let served = Served::new(&["--max-a-minute", "1"]);
    let ended = run_in(folder.path(), &["measure", "record", &served.address, "--length", "1s"]);
    let [said, problem] = [text(&ended.stdout), text(&ended.stderr)];
    assert_eq!(ended.status.code(), Some(1), "{problem}");
    assert!(problem.contains("too often"), "{problem}");
    assert!(said.starts_with("line.down: ") && said.lines().count() == 1, "{said}");
    assert!(folder.path().join("line.down").exists() && !folder.path().join("line.up").exists());
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

/// What --record writes of a line that was measured idle only, by one probe.
const IDLE: &str = r#"{"is_ipv6":false,"probes":[{"sent_us":0,"answer":[500,9000]}],
    "idle":[{"from_us":0,"to_us":100000}],"download":null,"upload":null}"#;

#[test]
fn a_file_that_cannot_be_written_is_named_behind_the_result_and_leaves_the_others() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("idle.json"), IDLE).unwrap();
    let words = ["measure", "--read", "idle.json", "--csv", "/dev/full", "--prometheus", "line.prom"];
    let ended = run_in(folder.path(), &words);
    let [said, problem] = [text(&ended.stdout), text(&ended.stderr)];
    assert_eq!(ended.status.code(), Some(3), "{problem}");
    assert!(said.contains("9.00 ms"), "{said}");
    assert!(problem.contains("cannot write: --csv: /dev/full: No space left"), "{problem}");
    assert!(fs::read_to_string(folder.path().join("line.prom")).unwrap().contains("suimon_line_idle"));
}

#[test]
fn a_recording_of_times_that_cannot_be_is_refused() {
    let folder = TempDir::new().unwrap();
    let late = IDLE.replace("9000]}]", "9000]},{\"sent_us\":9223372036854775808,\"answer\":null}]");
    fs::write(folder.path().join("late.json"), late).unwrap();
    let message = refuses(folder.path(), &["measure", "--read", "late.json", "--flent", "line.flent"]);
    assert!(message.contains("--read: late.json: it has times that no measurement has"), "{message}");
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
        (&["host", "--save", "no/line.toml"], &["--save: no/line.toml: accepted: a file in a folder"]),
        (&["host", "--record", "no/line.json"], &["--record: no/line.json: accepted: a file in a folder"]),
        (&["host", "--csv", "."], &["--csv: .: accepted: a file in a folder"]),
        (&["host", "--flent", "no/line"], &["--flent: no/line: accepted: a file in a folder"]),
        (&["--read", "none", "--prometheus", "/no/line"], &["--prometheus: /no/line: accepted: a file"]),
        (&["record", "host", "--out", "no/line"], &["--out: no/line.down: accepted: a file in a folder"]),
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
