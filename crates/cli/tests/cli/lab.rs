//! Programs on a kernel in virtual time. Needs an emulator and a kernel that is set up; skips elsewhere.

use std::fs;
use std::process::{Command, Output};

use crate::{SCENARIO, suimon, text};

/// What a command gives; none where this machine has no guests.
fn in_lab(command: &mut Command) -> Option<Output> {
    let output = command.output().expect("the command starts");
    let errors = text(&output.stderr);
    if errors.contains("no kernel is set up") || errors.contains("is not installed") {
        eprintln!("skipped: {errors}");
        return None;
    }
    Some(output)
}

#[test]
fn a_program_gives_the_same_bytes_its_files_and_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat given; date; head -c 8 /dev/urandom | od -An -tx1; ls /sys/class/net; mkdir -p a; \
                  echo new > a/new; echo more >> given; exit 7";
    let run = |times: &[&str], seed: &str, zone: &str| {
        // The same folder each time: files in it that words of the script name are taken along.
        let _ = fs::remove_dir_all(folder.path().join("a"));
        fs::write(folder.path().join("given"), "given\n").unwrap();
        let program = ["--with", "given", "--seed", seed, "--", "sh", "-c", script];
        let arguments = [&["lab"], times, &program].concat();
        in_lab(suimon().args(arguments).env("TZ", zone).current_dir(folder.path()))
            .map(|output| (text(&output.stdout), text(&output.stderr), output.status.code()))
    };
    let Some((printed, errors, code)) = run(&["--twice"], "1", "UTC") else { return };
    assert_eq!(code, Some(7), "{errors}");
    assert!(errors.contains("the second run gave the same bytes"), "{errors}");
    assert!(
        printed.starts_with("given\n") && printed.contains("2026") && printed.contains("lo"),
        "{printed}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("a/new")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(folder.path().join("given")).unwrap(), "given\nmore\n");
    let once = |seed: &str, zone: &str| run(&[], seed, zone).unwrap().0;
    assert_eq!(once("1", "Asia/Tokyo"), printed, "this machine's zone makes no difference");
    assert_ne!(once("2", "UTC"), printed, "another seed does");
}

#[test]
fn a_link_has_its_delay_to_a_tenth_of_a_millisecond() {
    let folder = tempfile::tempdir().unwrap();
    let link = ["shell", "--lab", "--link", "2Mbit 90ms 96kB", "--", "ping", "-c", "3", "-s", "1000", "far"];
    let Some(output) = in_lab(suimon().args(link).current_dir(folder.path())) else { return };
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    let Some(summary) = printed.lines().find(|line| line.starts_with("rtt")) else {
        assert!(errors.contains("ping"), "{printed}{errors}");
        eprintln!("skipped: {errors}");
        return;
    };
    let times: Vec<f64> = summary.split(['=', '/', ' ']).filter_map(|word| word.parse().ok()).collect();
    // 90 ms, and 1028 bytes both ways at 2 Mbit/s.
    let expected = 90.0 + 2.0 * 1_028.0 * 8.0 / 2_000.0;
    assert!(times[..3].iter().all(|time| (0.0..0.15).contains(&(time - expected))), "{expected}: {summary}");
}

#[test]
fn a_scenario_runs_there_with_nearly_the_simulators_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let longer =
        SCENARIO.replace("\"2s\"", "\"15s\"").replace("\"10ms\"", "\"40ms\"\nbuffer = \"30packets\"");
    fs::write(folder.path().join("my.toml"), longer).unwrap();
    let arguments = ["run", "my.toml", "--lab", "--beside-simulation", "--json"];
    let Some(output) = in_lab(suimon().args(arguments).current_dir(folder.path())) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let backlog = |run: &serde_json::Value| run["backlog_mean_packets"].as_f64().unwrap();
    let (one, other) = (backlog(&runs[0]), backlog(&runs[1]));
    assert!(runs.len() == 2 && (one / other - 1.0).abs() < 0.05, "{one} {other}");
}

#[test]
fn a_sweep_runs_there_and_no_other_place_goes_on_with_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.toml"), format!("seeds = 2\n{SCENARIO}")).unwrap();
    let sweep = ["sweep", "my.toml", "--lab", "--out", "out"];
    let Some(output) = in_lab(suimon().args(sweep).current_dir(folder.path())) else { return };
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in ["part-000000", "part-000001"] {
        assert!(folder.path().join("out").join(part).join("queues.parquet").exists());
    }
    let again = suimon().args(sweep).current_dir(folder.path()).output().unwrap();
    assert!(text(&again.stderr).contains("2 of 2 runs are there already"), "{}", text(&again.stderr));
    let elsewhere =
        suimon().args(["sweep", "my.toml", "--out", "out"]).current_dir(folder.path()).output().unwrap();
    assert!(text(&elsewhere.stderr).contains("another place to run"), "{}", text(&elsewhere.stderr));
    assert_eq!(elsewhere.status.code(), Some(2));
}

/// A link that needs a file beside the experiment, and programs.
const EXPERIMENT: &str = r#"
description = "Small"
duration = "3s"
window = "32kB"
cc = ["fs-at", "vegas"]
agreement = 0.10
agreement_packets = 1.0

[[link]]
name = "a trace"
link = "trace=measured.trace 40ms 100packets"
needs = "measured.trace"

[programs]
links = ["a trace"]
iperf3 = "3s"
download = "200kB"
"#;

#[test]
fn a_papers_experiment_runs_there_with_its_files_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("small")).unwrap();
    fs::write(folder.path().join("small/claims.toml"), "").unwrap();
    fs::write(folder.path().join("small/kernel.toml"), EXPERIMENT).unwrap();
    // One packet every 6 ms: 2 Mbit/s.
    let trace: String = (1..=500).map(|nth| format!("{}\n", 6 * nth)).collect();
    fs::write(folder.path().join("measured.trace"), trace).unwrap();
    let run = || {
        let paper = ["paper", "small", "--from", ".", "--lab", "--json"];
        in_lab(suimon().args(paper).current_dir(folder.path()))
    };
    let Some(output) = run() else { return };
    let errors = text(&output.stderr);
    if errors.contains("cannot be loaded") || errors.contains("built without") {
        eprintln!("skipped: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = told["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{told}");
    // The guest's kernel has a Vegas of its own, which keeps twice as much in the queue.
    assert!(rows[1]["cc"] == "vegas" && rows[1]["backlog_agrees"] == true, "{told}");
    let (programs, left_out) = (told["programs"].as_array().unwrap(), told["left_out"].as_array().unwrap());
    assert!(programs.len() == 4 || !left_out.is_empty(), "{told}");
    for row in programs {
        let number = |key: &str| row[key].as_f64().unwrap();
        assert!((1_000.0..2_000.0).contains(&number("throughput_kbps")), "{row}");
        assert!((40.0..300.0).contains(&number("ping_p50_ms")), "{row}");
    }
    assert_eq!(run().map(|again| again.stdout), Some(output.stdout), "the same bytes");
}

#[test]
fn refusals_name_what_is_missing_and_what_is_accepted() {
    let empty = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output = suimon().args(arguments).env("XDG_CACHE_HOME", empty.path()).output().unwrap();
        (text(&output.stderr), output.status.code())
    };
    let (errors, code) = refused(&["lab", "--", "true"]);
    let no_kernel = errors.contains("no kernel is set up; set one up: suimon lab setup");
    assert!(no_kernel || errors.contains("is not installed"), "{errors}");
    assert_eq!(code, Some(4));
    let (errors, code) = refused(&["lab"]);
    assert!(errors.contains("PROGRAM") && code == Some(2), "{errors}");
    let (errors, code) = refused(&["shell", "--link", "1Mbit", "--lab"]);
    assert!(errors.contains("--lab") && errors.contains("name the program") && code == Some(2), "{errors}");
    let (errors, code) = refused(&["lab", "--kernl", "6.1", "--", "true"]);
    assert!(errors.contains("--kernl") && errors.contains("--kernel") && code == Some(2), "{errors}");
    let (errors, code) = refused(&["run", "x.toml", "--lab", "--live"]);
    assert!(errors.contains("--live") && code == Some(2), "{errors}");
    for (arguments, part) in [
        (["lab", "--", "no-such-program"].as_slice(), "no-such-program: there is no such program"),
        (&["lab", "--kernel", "1.0", "--", "true"], "no kernel 1.0 is set up; accepted: "),
        (&["lab", "--with", "no-such-file", "--", "true"], "no-such-file"),
    ] {
        let Some(output) = in_lab(suimon().args(arguments)) else { return };
        let errors = text(&output.stderr);
        assert!(errors.contains(part) && output.status.code() != Some(0), "{arguments:?}: {errors}");
    }
}
