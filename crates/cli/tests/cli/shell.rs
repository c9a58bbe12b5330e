//! Programs behind emulated links. Needs root, or the right to make namespaces and devices; skips elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use suimon_linux::terminal::PseudoTerminal;

use crate::{fails, project};

fn suimon() -> Command {
    Command::new(env!("CARGO_BIN_EXE_suimon"))
}

/// Whether this machine lets links be made; says why where not.
fn can_emulate() -> bool {
    let output = suimon().args(["shell", "--quiet", "--link", "1Mbit", "--", "true"]).output().unwrap();
    if !output.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status.success()
}

/// What a shell behind the link prints and ends with.
fn behind(options: &[&str], script: &str) -> (String, i32) {
    let command = suimon().arg("shell").args(options).args(["--", "sh", "-c", script]).output().unwrap();
    let text = [command.stdout, command.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (text, command.status.code().unwrap())
}

#[test]
fn the_program_has_a_network_of_its_own_and_its_exit_code_is_passed_on() {
    if !can_emulate() {
        return;
    }
    let (text, code) = behind(
        &["--link", "3.6Mbit 90ms 96kB", "--queue", "rtt-aqm"],
        "cat /proc/net/dev; cat /etc/hosts; cat /proc/sys/net/ipv4/tcp_ecn; echo $SUIMON_FAR; exit 7",
    );
    assert_eq!(code, 7, "{text}");
    for part in ["path0:", " far\n", "\n1\n100.", "up: ", "down: ", "SCHED_"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("eth0"), "{text}");
    assert_eq!(behind(&["--link", "1Mbit", "--quiet"], "kill -9 $$"), (String::new(), 128 + 9));
}

#[test]
fn several_paths_are_several_devices_and_shells_nest() {
    if !can_emulate() {
        return;
    }
    let (text, code) = behind(
        &["--paths", "10Mbit 5ms; 3Mbit 40ms loss=1%", "--quiet"],
        "cat /proc/net/dev; echo $SUIMON_PATHS",
    );
    assert_eq!(code, 0, "{text}");
    for part in ["path0:", "path1:", "path0=100.", " path1=100."] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let inner = format!(
        "{} shell --quiet --link 1Mbit -- sh -c 'cat /proc/net/fib_trie; exit 5'",
        env!("CARGO_BIN_EXE_suimon")
    );
    let (text, code) = behind(&["--link", "10Mbit 5ms", "--quiet"], &inner);
    assert_eq!(code, 5, "{text}");
}

/// The median round-trip time of a ping, in milliseconds.
fn ping_ms(text: &str) -> f64 {
    let times = text.lines().filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok());
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    *times.get(times.len() / 2).unwrap_or_else(|| panic!("no answer in\n{text}"))
}

#[test]
fn links_of_nested_shells_add_up_from_end_to_end() {
    if !can_emulate() || Command::new("ping").arg("-V").output().is_err() {
        eprintln!("skipped: there is no ping, or no link");
        return;
    }
    let inner = |link: &str, script: &str| {
        format!("{} shell --quiet --link '{link}' -- sh -c '{script}'", env!("CARGO_BIN_EXE_suimon"))
    };
    let ping = "ping -4 -c 5 -i 0.2 far && ping -c 1 $SUIMON_FAR_V6";
    let (text, code) = behind(&["--quiet", "--link", "10Mbit 40ms"], &inner("10Mbit 60ms", ping));
    assert_eq!(code, 0, "{text}");
    assert!((100.0..110.0).contains(&ping_ms(&text)), "{text}");
    // Both ways of a connection pass both links too: a server at the outermost end answers one at the innermost.
    let server = ["--quiet", "--link", "10Mbit 20ms", "--server", "sleep 20"];
    let (text, code) = behind(&server, &inner("10Mbit 30ms", "ping -4 -c 5 -i 0.2 far"));
    assert_eq!(code, 0, "{text}");
    assert!((50.0..60.0).contains(&ping_ms(&text)), "{text}");
}

#[test]
fn a_user_without_rights_hears_which_one_is_missing() {
    use std::os::unix::process::CommandExt;

    let mut command = suimon();
    command.args(["shell", "--quiet", "--link", "1Mbit", "--", "true"]).uid(65_534).gid(65_534);
    let Ok(output) = command.output() else {
        eprintln!("skipped: only root becomes another user, who must find the command");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success()
            || output.status.code() == Some(4)
                && ["chmod 666 /dev/net/tun", "user.max_user_namespaces", "No such file"]
                    .iter()
                    .any(|part| said.contains(part)),
        "{said}"
    );
}

#[test]
fn what_crossed_and_what_happened_is_written() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (capture, log, json) = (path("link.pcapng"), path("log.csv"), path("result.json"));
    let out = path("out");
    // To a port that nobody listens on: a packet there, and a refusal back.
    let script = "exec 3<>/dev/udp/$SUIMON_FAR/9 && echo hello >&3; sleep 0.3";
    let options = ["--link", "1Mbit 20ms", "--pcap", &capture, "--log", &log, "--json", &json, "--out", &out];
    let run = suimon().arg("shell").args(options).args(["--", "bash", "-c", script]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let log = fs::read_to_string(log).unwrap();
    for part in [
        "time_s,link,packet,event",
        ",up,0,arrived,",
        ",up,0,sent,",
        ",up,0,delivered,",
        ",34,udp 100.",
        ",down,0,delivered,",
    ] {
        assert!(log.contains(part), "{part:?} is not in\n{log}");
    }
    let mut packets = suimon_capture::Capture::open(Path::new(&capture)).unwrap();
    let first = packets.next_packet().unwrap().unwrap();
    assert_eq!((first.size.get(), first.endpoints.destination.port()), (34, 9));
    let result: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(result["queues"].as_array().unwrap().len(), 2, "{result}");
    assert!(fs::read_to_string(Path::new(&out).join("report.html")).unwrap().contains("suimon shell"));
}

#[test]
fn several_that_start_at_the_same_time_take_different_addresses() {
    if !can_emulate() {
        return;
    }
    for _ in 0..3 {
        let one =
            |_| suimon().args(["shell", "--paths", "1Mbit 5ms; 2Mbit 5ms", "--", "true"]).spawn().unwrap();
        let all: Vec<_> = (0..4).map(one).collect();
        for running in all {
            let done = running.wait_with_output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
    }
}

/// Processes that have `marker` in their environment.
fn marked(marker: &str) -> Vec<String> {
    let is_marked = |path: &Path| {
        fs::read(path.join("environ")).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(marker))
    };
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    processes.filter(|path| is_marked(path)).map(|path| path.display().to_string()).collect()
}

fn devices() -> BTreeSet<String> {
    let names = fs::read_dir("/sys/class/net").unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.starts_with("suimon")).collect()
}

/// Devices of other tests come and go; what stays is what nobody takes away.
fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let ends = Instant::now() + Duration::from_secs(10);
    while Instant::now() < ends {
        if holds() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_behind() {
    if !can_emulate() {
        return;
    }
    let before = devices();
    let mut own = BTreeSet::new();
    for nth in 0..20_u64 {
        let marker = format!("SUIMON_TEST_{}_{nth}", std::process::id());
        let mut running = suimon()
            .args([
                "shell",
                "--paths",
                "1Mbit 5ms; 2Mbit 5ms",
                "--",
                "sh",
                "-c",
                "setsid sleep 1000 & echo ready; sleep 1000",
            ])
            .env(&marker, "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if nth < 3 {
            // Once all is up, with a child that has left the session.
            let mut line = String::new();
            BufReader::new(running.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            // A process that becomes another program has no environment for a moment.
            assert!(wait_until(|| marked(&marker).len() >= 4), "{:?}", marked(&marker));
        } else {
            thread::sleep(Duration::from_millis(2 * (nth - 3)));
        }
        own.extend(devices().difference(&before).cloned());
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(wait_until(|| marked(&marker).is_empty()), "{:?}", marked(&marker));
    }
    assert!(!own.is_empty());
    assert!(wait_until(|| devices().is_disjoint(&own)), "{:?}", devices());
}

#[test]
fn the_links_are_shown_above_a_program_that_has_the_keys() {
    if !can_emulate() {
        return;
    }
    let (mut terminal, end) = PseudoTerminal::open().unwrap();
    let end = || end.try_clone().unwrap();
    let mut running = suimon()
        .args([
            "shell",
            "--link",
            "1Mbit 5ms",
            "--view",
            "--",
            "sh",
            "-c",
            "read line; echo got $line; exit 5",
        ])
        .env("TERM", "xterm")
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    // Typed once the picture is there.
    let mut shown = Vec::new();
    let mut take = |terminal: &mut PseudoTerminal, until: &str| {
        let mut part = [0; 4_096];
        while !String::from_utf8_lossy(&shown).contains(until) {
            let length = terminal.read(&mut part).unwrap();
            shown.extend(&part[..length]);
        }
    };
    take(&mut terminal, "Ctrl-]");
    terminal.write_all(b"keys\r").unwrap();
    // Below the picture, then alone, as what was there before comes back; and what a shell says at its end.
    take(&mut terminal, "\x1b[?1049l");
    take(&mut terminal, "SCHED_");
    let after = String::from_utf8_lossy(&shown);
    let after = after.split("\x1b[?1049l").last().unwrap();
    assert!(after.contains("got keys") && after.contains("suimon: up:"), "{after}");
    assert_eq!(running.wait().unwrap().code(), Some(5));
}

#[test]
fn the_links_are_shown_in_a_browser() {
    if !can_emulate() {
        return;
    }
    let mut running = suimon()
        .args(["shell", "--link", "1Mbit 5ms", "--web", "127.0.0.1:0", "--", "sleep", "20"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(running.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.split(['/', ' ']).find(|part| part.starts_with("127.")).expect(&line).to_owned();
    let board = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET /links HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(wait_until(|| board().contains("\"name\":\"down\"")), "{}", board());
    assert!(board().contains("sleep 20 over 1Mbit 5ms"));
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    let refused = |options: &[&str], code| fails(&project(), &[&["shell"][..], options].concat(), code);
    let message = |options: &[&str]| refused(options, 2);
    assert!(message(&["--link", "10", "--", "true"]).contains("--link: \"10\""));
    assert!(
        message(&["--link", "1Mbit 5ms", "--queue", "nosuch", "--", "true"]).contains("accepted: droptail")
    );
    assert!(message(&["--paths", " ; ", "--", "true"]).contains("links apart by semicolons"));
    assert!(message(&["--", "true"]).contains("--link"));
    assert!(message(&["--link", "1Mbit", "--awak", "--", "true"]).contains("\"--awak\" is no option"));
    let no_terminal = message(&["--link", "1Mbit", "--view", "--", "true"]);
    assert!(no_terminal.contains("standard output is no terminal; accepted: --web"), "{no_terminal}");
    if can_emulate() {
        assert!(
            refused(&["--link", "1Mbit", "--", "no-such-program"], 127)
                .contains("starting no-such-program: No such file")
        );
        let plain = refused(&["--link", "1Mbit", "--", "/etc/hosts"], 126);
        assert!(plain.contains("it is no program that this user may run"), "{plain}");
        assert!(
            message(&["--link", "1Mbit", "--cc", "nosuch", "--", "true"])
                .contains("\"nosuch\" is none that the kernel has")
        );
        let known = |key: &str| {
            let path = format!("/proc/sys/net/ipv4/tcp_{key}_congestion_control");
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>()
        };
        if !known("available").contains("compound") {
            let to_load = message(&["--link", "1Mbit", "--cc", "compound", "--", "true"]);
            assert!(to_load.contains("load it first, as root: suimon cc load compound"), "{to_load}");
        }
        if let Some(cc) = known("available").difference(&known("allowed")).next() {
            let not_allowed = message(&["--link", "1Mbit", "--cc", cc, "--", "true"]);
            assert!(
                not_allowed.contains("sysctl -w net.ipv4.tcp_allowed_congestion_control"),
                "{not_allowed}"
            );
        }
    }
}

#[test]
fn a_word_that_is_no_utf8_costs_neither_the_result_nor_the_exit_code() {
    use std::os::unix::ffi::OsStrExt;

    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let output = suimon()
        .args(["shell", "--quiet", "--link", "1Mbit", "--json"])
        .arg(&file)
        .args(["--", "sh", "-c", "exit 7"])
        .arg(std::ffi::OsStr::from_bytes(b"\xff\x1b[2J"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(&file).unwrap().contains("exit 7"));
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_control_characters_are_written_out() {
    if !can_emulate() {
        return;
    }
    for (option, name) in [("--log", "/dev/full"), ("--json", "/dev/full"), ("--pcap", "/dev/full")] {
        let output = suimon()
            .args(["shell", "--quiet", "--link", "1Mbit", option, name, "--", "ping", "-c1", "far"])
            .output();
        let said = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(said.contains("/dev/full: "), "{option}: {said}");
    }
    let output = suimon().args(["run", "no\x1b[31msuch.toml"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\\u{1b}[31m") && !said.contains('\x1b'), "{said:?}");
}

#[test]
fn a_signal_of_the_users_own_reaches_the_program() {
    if !can_emulate() {
        return;
    }
    let script = "trap 'exit 9' USR1; echo ready; while true; do sleep 0.05; done";
    let mut shell = suimon()
        .args(["shell", "--quiet", "--link", "1Mbit", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    Command::new("kill").args(["-USR1", &shell.id().to_string()]).status().unwrap();
    assert_eq!(shell.wait().unwrap().code(), Some(9));
}
