//! Papers: a verdict for each claim, and exit codes that mean it.

use std::fs;

use crate::{fails, json, project, run_in, text};
use tempfile::TempDir;

/// A copy of the papers, in which `from` is replaced by `to` in FS-AT's claims.
fn doctored(from: &str, to: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("papers/fs-at");
    fs::create_dir_all(&copy).unwrap();
    for (name, content) in crate::contents(&project().join("papers/fs-at")) {
        if name.ends_with(".toml") {
            fs::write(copy.join(name), content).unwrap();
        }
    }
    let claims = fs::read_to_string(copy.join("claims.toml")).unwrap();
    assert!(claims.contains(from), "{from}");
    fs::write(copy.join("claims.toml"), claims.replacen(from, to, 1)).unwrap();
    folder
}

const SINGLE_FLOW: [&str; 4] = ["paper", "fs-at", "--experiment", "single-flow"];

#[test]
fn claims_that_hold_end_with_0_and_stand_in_the_json() {
    let whole = json(&project(), &[&SINGLE_FLOW[..], &["--json"]].concat());
    let verdicts = whole["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 1);
    let rows = verdicts[0]["rows"].as_array().unwrap();
    assert!(rows.len() >= 24, "{}", rows.len());
    for row in rows {
        for key in ["claim", "paper", "tolerance", "measured", "verdict"] {
            assert!(row[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {row}");
        }
    }
}

/// All of FS-AT's experiments that need nothing beside the project; this is also where a claim that fell is noticed.
#[test]
fn the_claims_of_fs_at_hold_but_for_those_that_are_known_to_miss() {
    let folder = doctored("../../../shared/traces/", "not/here/");
    let whole = json(folder.path(), &["paper", "fs-at", "--json"]);
    let claims = suimon_study::paper::Paper::read(&project().join("papers/fs-at")).unwrap();
    let tally = claims.tally().to_string();
    let tables = whole["verdicts"].as_array().unwrap().iter();
    let rows: Vec<_> = tables.flat_map(|table| table["rows"].as_array().unwrap()).collect();
    // An experiment with bars of this project needs a recording.
    for (basis, what) in [
        ("printed", "numbers printed"),
        ("ordering", "orderings"),
        ("same-throughput", "same throughput"),
        ("reference", "numbers from elsewhere"),
    ] {
        let judged: Vec<_> = rows.iter().filter(|row| row["basis"] == basis).collect();
        let held = judged.iter().filter(|row| row["verdict"] == "reproduced").count();
        let said = format!("{what}: {held} of {}", judged.len());
        assert!(tally.contains(&said), "claims.toml says {tally}, and the runs {said}");
    }
}

/// `make papers` runs the evaluations, which take minutes, and fails where a claim that once held no longer does. So
/// what is marked as missed is what is missed.
#[test]
fn the_readme_says_how_many_claims_of_each_paper_are_reproduced() {
    let readme = fs::read_to_string(project().join("README.md")).unwrap();
    for paper in ["fs-at", "dpd-qt", "rtt-aqm", "buffer-path"] {
        let claims = suimon_study::paper::Paper::read(&project().join("papers").join(paper)).unwrap();
        let said = claims.tally().to_string();
        let row = readme.lines().find(|line| line.contains(&format!("`suimon paper {paper}`"))).unwrap();
        assert!(row.contains(&said), "README.md lacks: {said} of {paper}");
    }
}

#[test]
fn a_claim_that_no_longer_holds_ends_with_1() {
    let folder = doctored("reference = 9.651, within_percent = 1", "reference = 12.0, within_percent = 1");
    let message = fails(folder.path(), &[&SINGLE_FLOW[..], &["--no-files"]].concat(), 1);
    assert_eq!(message, "suimon: a claim that once held no longer does\n");
}

#[test]
fn a_miss_that_is_known_is_no_failure() {
    let known = "reference = 12.0, within_percent = 1, missed = \"Doctored.\"";
    let folder = doctored("reference = 9.651, within_percent = 1", known);
    let whole = json(folder.path(), &[&SINGLE_FLOW[..], &["--json"]].concat());
    assert_eq!(whole["verdicts"][0]["rows"][0]["verdict"], "not reproduced");
    assert_eq!(whole["verdicts"][0]["rows"][0]["cause"], "Doctored.");
}

#[test]
fn half_a_relation_is_refused_rather_than_left_out() {
    let folder = doctored(
        "of = \"flows.goodput_bps\", unit = \"Mbit/s\"",
        "of = \"flows.goodput_bps\", unit = \"Mbit/s\", relation = \"saving\"",
    );
    let message = fails(folder.path(), &[&SINGLE_FLOW[..], &["--no-files"]].concat(), 2);
    assert!(message.contains("\"against\" and \"relation\" go together"), "{message}");
}

#[test]
fn unevenness_of_one_kind_of_flows_is_refused() {
    let folder = doctored(
        "of = \"flows.goodput_bps\", unit = \"Mbit/s\"",
        "of = \"flows.goodput_bps\", unit = \"Mbit/s\", unevenness = true",
    );
    let message = fails(folder.path(), &[&SINGLE_FLOW[..], &["--no-files"]].concat(), 2);
    assert!(message.contains("\"unevenness\" needs \"over_flows\""), "{message}");
}

#[test]
fn a_measurement_that_does_not_exist_is_refused() {
    let folder = doctored("of = \"flows.goodput_bps\", unit = \"Mbit/s\"", "of = \"flows.happiness\"");
    let message = fails(folder.path(), &[&SINGLE_FLOW[..], &["--no-files"]].concat(), 2);
    assert!(
        message.contains("claims.toml") && message.contains("unknown column \"happiness\" of flows"),
        "{message}"
    );
}

/// Every claim and figure, on runs of half a second: too short to hold, long enough to measure.
#[test]
fn every_claim_of_the_long_papers_can_be_measured() {
    let line = |line: &str| match line.split_once(" = ").map(|(key, _)| key) {
        Some("duration") => "duration = \"500ms\"\n".to_owned(),
        Some("seeds" | "warmup") => String::new(),
        Some("start") => "start = [\"0s\", \"200ms\"]\n".to_owned(),
        _ => format!("{line}\n"),
    };
    for paper in ["dpd-qt", "buffer-path"] {
        let folder = TempDir::new().unwrap();
        let copy = folder.path().join("papers").join(paper);
        fs::create_dir_all(&copy).unwrap();
        for (name, content) in crate::contents(&project().join("papers").join(paper)) {
            fs::write(copy.join(name), text(&content).lines().map(line).collect::<String>()).unwrap();
        }
        let output = run_in(folder.path(), &["paper", paper, "--no-files"]);
        let message = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{paper}: {message}");
        assert!(message.is_empty() || message.contains("that once held no longer do"), "{paper}: {message}");
    }
}
