//! Results: the same bytes each time, in the forms that the documentation promises.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{SCENARIO, contents, json, project, refuses, succeeds, suimon, text};
use serde_json::Value;
use tempfile::TempDir;

/// Every scenario that comes with the project and needs nothing beside it.
fn shipped() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["scenarios", "papers/fs-at"] {
        for (name, content) in contents(&project().join(folder)) {
            let measured = text(&content).contains("/shared/traces/");
            if name.ends_with(".toml") && name != "claims.toml" && !measured {
                found.push(Path::new(folder).join(name));
            }
        }
    }
    assert!(found.len() >= 6, "{found:?}");
    found
}

/// A folder from which the project's files have the same relative names as from its own.
fn elsewhere() -> TempDir {
    let folder = TempDir::new().unwrap();
    for name in ["scenarios", "papers", "traces"] {
        std::os::unix::fs::symlink(project().canonicalize().unwrap().join(name), folder.path().join(name))
            .unwrap();
    }
    folder
}

/// Everything that a short run gives: standard output and files.
fn everything(folder: &Path, scenario: &str, threads: &str) -> Vec<(String, Vec<u8>)> {
    let arguments =
        ["run", scenario, "--out", "out", "--json", "--series", "--set", "duration=25s", "--set", "seeds=1"];
    let output =
        suimon().args(arguments).current_dir(folder).env("RAYON_NUM_THREADS", threads).output().unwrap();
    assert!(output.status.success(), "{scenario}: {}", text(&output.stderr));
    let mut all = contents(&folder.join("out"));
    all.push(("standard output".to_owned(), output.stdout));
    fs::remove_dir_all(folder.join("out")).unwrap();
    all
}

#[test]
fn a_shipped_scenario_gives_the_same_bytes_from_any_folder_on_any_number_of_cores() {
    let (here, there) = (elsewhere(), elsewhere());
    for scenario in shipped() {
        let scenario = scenario.to_str().unwrap();
        let first = everything(here.path(), scenario, "1");
        let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["report.html", "runs.csv", "runs.parquet", "flows.csv", "queues.parquet"] {
            assert!(names.contains(&name), "{scenario}: {names:?}");
        }
        for (one, other) in first.iter().zip(everything(there.path(), scenario, "2")) {
            assert!(*one == other, "{scenario}: {} differs", one.0);
        }
    }
}

#[test]
fn a_report_says_nothing_of_the_machine_that_wrote_it() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    succeeds(folder.path(), &["run", "scenario.toml", "--out", "out"]);
    let place = folder.path().to_str().unwrap();
    for (name, content) in contents(&folder.path().join("out")) {
        let content = String::from_utf8_lossy(&content).into_owned();
        assert!(!content.contains(place), "{name} contains {place}");
    }
}

#[test]
fn json_has_the_documented_keys() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    let whole = json(folder.path(), &["run", "scenario.toml", "--json"]);
    assert_eq!(whole["schema_version"], 1);
    for key in ["title", "description", "command", "version", "scenario_text"] {
        assert!(whole["header"][key].is_string(), "header.{key}");
    }
    assert_eq!(whole["header"]["command"], "suimon run scenario.toml --json");
    for key in ["grading", "notes", "runs", "flows", "queues", "events"] {
        assert!(!whole[key].is_null(), "{key}");
    }
    assert!(whole.get("flow_series").is_none());
    assert!(!folder.path().join("suimon-out").exists(), "with --json files are only written with --out");

    // Every column of the table in docs/reports.md.
    let guide = fs::read_to_string(project().join("docs/reports.md")).unwrap();
    let rows = guide.split("### Runs").nth(1).and_then(|rest| rest.split("###").next()).unwrap();
    let columns: BTreeSet<&str> = rows
        .lines()
        .filter_map(|row| row.split('|').nth(2))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(columns.len() > 15, "{columns:?}");
    for column in columns {
        assert!(whole["runs"][0].get(column).is_some(), "runs lacks {column}");
    }
    let with_series = json(folder.path(), &["run", "scenario.toml", "--json", "--series"]);
    assert!(with_series["flow_series"].as_array().is_some_and(|series| series.len() > 10));
}

#[test]
fn csv_has_a_row_for_each_run_and_units_in_the_names() {
    let folder = TempDir::new().unwrap();
    let arguments =
        ["compare", "--link", "1Mbit 20ms", "--cc", "reno,vegas", "--duration", "2s", "--out", "out"];
    succeeds(folder.path(), &arguments);
    let runs = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 3);
    let head = runs.lines().next().unwrap();
    assert!(head.starts_with("run,scenario,cc,seed,name,algorithm,grade,"), "{head}");
    assert!(head.contains(",goodput_bps,"), "{head}");
}

/// Five flows for a second, eight for the next: drop tail loses, RED marks flows that understand marks.
#[test]
fn queues_are_compared_under_a_load_that_changes() {
    let arguments = ["--queue", "droptail,red", "--cc", "reno", "--flows", "5,8@1s", "--json"];
    let whole = json(&project(), &[&["compare", "--link", "2Mbit 20ms 20packets"], &arguments[..]].concat());
    let runs = whole["runs"].as_array().unwrap();
    let queues: Vec<_> = runs.iter().map(|run| run["queue"].as_str().unwrap()).collect();
    assert_eq!(queues, ["droptail", "red"]);
    for run in runs {
        assert_eq!((run["duration_s"].as_f64(), run["flows"].as_u64()), (Some(2.0), Some(8)));
    }
    let count = |run: usize, key: &str| runs[run][key].as_u64().unwrap();
    assert!(count(0, "packets_lost") > 0 && count(0, "packets_marked") == 0);
    assert!(count(1, "packets_marked") > 0);
    let starts: Vec<_> =
        whole["flows"].as_array().unwrap().iter().map(|flow| flow["start_s"].as_f64()).collect();
    assert_eq!(starts.iter().filter(|start| **start == Some(1.0)).count(), 6);
}

#[test]
fn the_list_has_every_algorithm_with_parameters_units_and_defaults() {
    let list = json(&project(), &["list", "--json"]);
    let list = list.as_array().unwrap();
    let names: BTreeSet<&str> = list.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    for name in ["reno", "cubic", "cubic-2.1", "bic", "vegas", "fs-at", "fixed", "drs", "droptail"] {
        assert!(names.contains(name), "{name}");
    }
    let pages = contents(&project().join("docs/algorithms"));
    let pages: BTreeSet<&str> = pages
        .iter()
        .filter_map(|(name, _)| name.strip_suffix(".md"))
        .filter(|name| !["README", "references"].contains(name))
        .collect();
    assert_eq!(names, pages, "every page has its algorithm and every algorithm its page");
    for entry in list {
        for key in ["role", "summary", "source", "colour"] {
            assert!(entry[key].as_str().is_some_and(|text| !text.is_empty()), "{}: {key}", entry["name"]);
        }
        for parameter in entry["parameters"].as_array().unwrap() {
            for key in ["name", "default", "accepted", "help"] {
                assert!(
                    parameter[key].as_str().is_some_and(|text| !text.is_empty()),
                    "{}: {key}",
                    entry["name"]
                );
            }
        }
    }
    let fs_at = list.iter().find(|entry| entry["name"] == "fs-at").unwrap();
    let min_target =
        fs_at["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "min_target").unwrap();
    assert_eq!(min_target["default"], "8 kB");
    assert!(min_target["accepted"].as_str().unwrap().contains("bytes with a unit"));
}

#[test]
fn an_own_trace_stands_in_for_a_rate() {
    let folder = TempDir::new().unwrap();
    let trace = project().join("traces/cellular-3g.down").canonicalize().unwrap();
    let arguments =
        ["compare", "--trace", trace.to_str().unwrap(), "--buffer", "100packets", "--json", "--duration"];
    let goodput = |duration: &str| {
        let result = json(folder.path(), &[&arguments[..], &[duration]].concat());
        let runs = result["runs"].as_array().unwrap().clone();
        let algorithms: Vec<&str> = runs.iter().map(|run| run["name"].as_str().unwrap()).collect();
        assert_eq!(algorithms, ["reno", "cubic", "vegas", "drs", "fs-at"]);
        runs.iter().map(|run| run["goodput_bps"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    for bps in goodput("120s") {
        assert!((1.5e6..2.2e6).contains(&bps), "{bps}: the trace carries 2.1 Mbit/s");
    }
    let described = succeeds(&project(), &["trace", "describe", "traces/cellular-3g.down"]);
    assert!(described.contains("mean rate  2.1") && described.contains("length     120.0 s"), "{described}");
}

#[test]
fn a_trace_that_was_made_can_be_used() {
    let folder = TempDir::new().unwrap();
    let made =
        succeeds(folder.path(), &["trace", "generate", "--mean", "3Mbit", "--length", "10s", "--seed", "7"]);
    assert_eq!(
        made,
        succeeds(folder.path(), &["trace", "generate", "--mean", "3Mbit", "--length", "10s", "--seed", "7"])
    );
    fs::write(folder.path().join("cell.down"), made).unwrap();
    json(folder.path(), &["compare", "--trace", "cell.down", "--cc", "reno", "--duration", "5s", "--json"]);
}

#[test]
fn the_printed_defaults_run_and_say_what_is_default() {
    let folder = TempDir::new().unwrap();
    let defaults = succeeds(folder.path(), &["run", "--print-defaults"]);
    fs::write(folder.path().join("defaults.toml"), &defaults).unwrap();
    let whole = json(folder.path(), &["run", "defaults.toml", "--json"]);
    assert_eq!(whole["runs"].as_array().unwrap().len(), 1);
    assert!(defaults.contains("duration = \"60s\""), "{defaults}");
}

#[test]
fn a_setting_replaces_what_the_file_says() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("scenario.toml"), SCENARIO).unwrap();
    let arguments = ["run", "scenario.toml", "--json", "--set", "flow.main.cc=vegas", "--set", "duration=1s"];
    let whole = json(folder.path(), &arguments);
    assert_eq!(whole["runs"][0]["algorithm"], "vegas");
    assert_eq!(whole["runs"][0]["duration_s"], 1);
}

#[test]
fn several_scenarios_are_told_apart_by_name() {
    let folder = TempDir::new().unwrap();
    for name in ["one", "two"] {
        fs::write(folder.path().join(format!("{name}.toml")), SCENARIO).unwrap();
    }
    let whole = json(folder.path(), &["run", "one.toml", "two.toml", "--json"]);
    let names: Vec<&Value> = whole["runs"].as_array().unwrap().iter().map(|run| &run["name"]).collect();
    assert_eq!(names, ["one", "two"]);
}

#[test]
fn the_report_is_named_and_is_there() {
    let folder = TempDir::new().unwrap();
    let printed =
        succeeds(folder.path(), &["compare", "--link", "1Mbit 20ms", "--cc", "reno", "--duration", "1s"]);
    let report = printed.lines().find_map(|line| line.strip_prefix("Report: ")).unwrap();
    assert!(fs::read_to_string(folder.path().join(report)).unwrap().contains("</html>"));
    for line in printed.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for arguments in [&["list"][..], &["run", "--print-defaults"], &["trace", "generate", "--length", "600s"]]
    {
        let mut child =
            suimon().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", output.status);
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn every_help_has_an_example_or_the_commands() {
    for command in ["run", "compare", "estimate", "paper", "list", "trace"] {
        let help = succeeds(&project(), &[command, "--help"]);
        assert!(help.contains(&format!("  suimon {command} ")) && help.contains("Example"), "{help}");
    }
    let help = succeeds(&project(), &["--help"]);
    assert!(help.contains("Exit codes: 0") && help.contains("compare"), "{help}");
}

#[test]
fn the_network_that_an_attack_finds_runs_again_with_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let attack = ["attack", "--cc", "reno", "--rivals", "vegas", "--worst", "delay", "--networks", "8"];
    let found = json(folder.path(), &[&attack[..], &["--save", "worst.toml", "--json"]].concat());
    let runs = json(folder.path(), &["run", "worst.toml", "--no-files", "--json"]);
    let runs = runs["runs"].as_array().unwrap();
    for found in found["outcomes"].as_array().unwrap() {
        let of_sender = runs.iter().filter(|run| run["cc"] == found["sender"]);
        let delays: Vec<f64> = of_sender.map(|run| run["delay_p95_ms"].as_f64().unwrap()).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert_eq!(delays.len(), 3, "{found}");
        assert!((found["delay_p95_ms"].as_f64().unwrap() - mean).abs() < 1e-9, "{found} {delays:?}");
    }
    let message = refuses(folder.path(), &["attack", "--cc", "fast", "--worst", "delay"]);
    assert!(message.contains("--cc") && message.contains("accepted: reno"), "{message}");
}

#[test]
fn a_file_in_no_folder_is_refused_before_the_search_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let attack =
        ["attack", "--cc", "reno", "--worst", "delay", "--networks", "1000000", "--save", "none/worst.toml"];
    let championship = ["championship", "--page", "none/page.md"];
    for (command, names) in
        [(&attack[..], "--save: none/worst.toml: "), (&championship, "--page: none/page.md: ")]
    {
        let message = refuses(folder.path(), command);
        assert!(message.contains(names) && message.contains("accepted: a file in a folder"), "{message}");
    }
}
