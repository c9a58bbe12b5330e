//! `suimon sweep`: what is in its folder, whatever happened on the way there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use arrow_array::UInt64Array;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{SCENARIO, fails, refuses, succeeds, suimon};

const MATRIX: &str = r#"
[[matrix]]
set = "flow.main.cc"
values = ["reno", "vegas", "fs-at"]
[[matrix]]
set = "link.bottleneck.queue"
values = ["droptail", "red"]
"#;

/// A folder with `test.toml`: 6 points of the matrix times `seeds` runs.
fn folder(seeds: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("test.toml"), format!("seeds = {seeds}\n{SCENARIO}{MATRIX}")).unwrap();
    folder
}

/// The same, with runs that take their time, for tests that stop a sweep in the middle.
fn folder_of_long_runs(seeds: u64) -> tempfile::TempDir {
    let folder = folder(seeds);
    let path = folder.path().join("test.toml");
    let text = fs::read_to_string(&path).unwrap().replace("duration = \"2s\"", "duration = \"20s\"");
    fs::write(&path, text).unwrap();
    folder
}

/// Every file of a sweep below `folder`, by its path there; without the lock, which holds nothing.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = PathBuf::from(entry.file_name());
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|(path, bytes)| (name.join(path), bytes)));
        } else if name != Path::new("sweep.lock") {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    found
}

/// The parts in `folder`, and when each was written.
fn parts(folder: &Path) -> BTreeMap<String, SystemTime> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let entries = entries.map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry));
    named
        .filter(|(name, _)| name.starts_with("part-"))
        .map(|(name, entry)| (name, entry.metadata().unwrap().modified().unwrap()))
        .collect()
}

/// The column `run` of a table, all parts together, in order.
fn run_numbers(folder: &Path, table: &str) -> Vec<u64> {
    let mut runs = Vec::new();
    for part in parts(folder).keys() {
        let file = File::open(folder.join(part).join(table).with_extension("parquet")).unwrap();
        for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("run").unwrap().as_any().downcast_ref::<UInt64Array>();
            runs.extend(column.unwrap().values());
        }
    }
    runs
}

/// Starts a sweep of `test.toml` in `folder` into `out`, and waits until it has made `more` parts.
fn stopped_after(folder: &Path, out: &str, more: usize) -> Child {
    let before = parts(&folder.join(out)).len();
    let child = suimon()
        .args(["sweep", "test.toml", "--jobs", "2", "--out", out])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while parts(&folder.join(out)).len() < before + more {
        assert!(Instant::now() < patience, "no parts within a minute");
        std::thread::sleep(Duration::from_micros(200));
    }
    child
}

#[test]
fn killed_three_times_and_resumed_it_has_every_run_once_and_the_bytes_of_one_never_killed() {
    let folder = folder_of_long_runs(50);
    let folder = folder.path();
    succeeds(folder, &["sweep", "test.toml", "--out", "whole"]);
    let all = parts(&folder.join("whole")).len();
    for _ in 0..3 {
        let before = parts(&folder.join("killed"));
        let mut child = stopped_after(folder, "killed", 5);
        child.kill().unwrap();
        child.wait().unwrap();
        let after = parts(&folder.join("killed"));
        assert!(after.len() < all, "the kill came too late to show anything");
        // What was there is not made again.
        assert!(before.iter().all(|(part, written)| after.get(part) == Some(written)));
    }
    let before = parts(&folder.join("killed"));
    succeeds(folder, &["sweep", "test.toml", "--out", "killed"]);
    let after = parts(&folder.join("killed"));
    assert!(before.iter().all(|(part, written)| after.get(part) == Some(written)));
    for table in ["runs", "flows", "queues"] {
        let expected: Vec<u64> = (1..=300).collect();
        assert_eq!(run_numbers(&folder.join("killed"), table), expected, "{table}");
    }
    assert!(files(&folder.join("killed")) == files(&folder.join("whole")));
}

#[test]
fn any_number_of_jobs_gives_the_same_bytes() {
    let folder = folder(50);
    let sweep = |jobs: &str| {
        succeeds(folder.path(), &["sweep", "test.toml", "--jobs", jobs, "--out", jobs]);
        files(&folder.path().join(jobs))
    };
    let one = sweep("1");
    // 300 runs, two a part, each part with its three tables; and the manifest.
    assert_eq!(one.len(), 150 * 3 + 1);
    assert!(one == sweep("2"));
    assert!(one == sweep("7"));
}

#[test]
fn a_sweep_that_is_done_stays_as_it_is_and_says_how_far_it_is() {
    let folder = folder(1);
    let folder = folder.path();
    let first = succeeds(folder, &["sweep", "test.toml"]);
    assert!(first.starts_with("6 runs in suimon-out/test-sweep\n"), "{first}");
    assert!(first.contains("suimon-out/test-sweep/part-*/runs.parquet"), "{first}");
    let out = folder.join("suimon-out/test-sweep");
    let written = parts(&out);
    assert_eq!(first, succeeds(folder, &["sweep", "test.toml"]));
    assert_eq!(written, parts(&out));
    fs::remove_dir_all(out.join("part-000003")).unwrap();
    let status = succeeds(folder, &["sweep", "--status", "suimon-out/test-sweep"]);
    assert_eq!(status, "test: 5 of 6 runs\n");
    assert!(refuses(folder, &["sweep", "--status", "."]).contains("holds no sweep"));
}

#[test]
fn samples_and_events_come_only_when_asked_for() {
    let folder = folder(1);
    let tables = |out: &str, series: &[&str]| {
        succeeds(folder.path(), &[&["sweep", "test.toml", "--out", out], series].concat());
        fs::read_dir(folder.path().join(out).join("part-000000")).unwrap().count()
    };
    assert_eq!(tables("totals", &[]), 3);
    assert_eq!(tables("series", &["--series"]), 6);
}

#[test]
fn what_is_not_the_same_sweep_is_left_alone_unless_it_is_to_be_discarded() {
    let folder = folder(1);
    let folder = folder.path();
    succeeds(folder, &["sweep", "test.toml", "--out", "s"]);
    let before = files(&folder.join("s"));
    let other = ["sweep", "test.toml", "--out", "s", "--set", "duration=1s"];
    let message = refuses(folder, &other);
    assert!(message.contains("another --set") && message.contains("--restart"), "{message}");
    assert!(before == files(&folder.join("s")));
    succeeds(folder, &[&other[..], &["--restart"]].concat());
    let after = files(&folder.join("s"));
    assert!(before.keys().eq(after.keys()) && before != after);
    let message = refuses(folder, &["sweep", "test.toml", "--out", ".", "--restart"]);
    assert!(message.contains("holds files but no sweep"), "{message}");
    assert!(folder.join("test.toml").exists());
    fs::write(folder.join("s/sweep.json"), "{").unwrap();
    assert!(refuses(folder, &["sweep", "test.toml", "--out", "s"]).contains("sweep.json: does not read"));
    succeeds(folder, &["sweep", "test.toml", "--out", "s", "--restart"]);
}

#[test]
fn two_sweeps_do_not_work_in_one_folder() {
    let folder = folder_of_long_runs(1_000);
    let mut child = stopped_after(folder.path(), "s", 1);
    let message = refuses(folder.path(), &["sweep", "test.toml", "--out", "s"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(message.contains("another suimon sweep is at work"), "{message}");
}

#[test]
fn a_part_that_cannot_be_written_ends_the_sweep_with_the_others_kept() {
    let folder = folder(1);
    let folder = folder.path();
    fs::create_dir(folder.join("s")).unwrap();
    succeeds(folder, &["sweep", "test.toml", "--out", "s"]);
    fs::remove_dir_all(folder.join("s/part-000004")).unwrap();
    fs::write(folder.join("s/part-000004"), "in the way").unwrap();
    let message = fails(folder, &["sweep", "test.toml", "--out", "s"], 3);
    assert!(message.contains("cannot write s/part-000004"), "{message}");
    assert_eq!(run_numbers_of_folders(&folder.join("s")), [1, 2, 3, 4, 6]);
    fs::remove_file(folder.join("s/part-000004")).unwrap();
    succeeds(folder, &["sweep", "test.toml", "--out", "s"]);
    assert_eq!(run_numbers(&folder.join("s"), "runs"), [1, 2, 3, 4, 5, 6]);
}

/// As [`run_numbers`], where one part is a file in the way.
fn run_numbers_of_folders(folder: &Path) -> Vec<u64> {
    let way = folder.join("part-000004");
    let aside = folder.join("aside");
    fs::rename(&way, &aside).unwrap();
    let runs = run_numbers(folder, "runs");
    fs::rename(&aside, &way).unwrap();
    runs
}

#[test]
fn a_wrong_value_anywhere_in_the_matrix_is_refused_before_anything_runs() {
    let folder = folder(1);
    let path = folder.path().join("test.toml");
    let text = fs::read_to_string(&path).unwrap().replace("\"red\"", "\"rod\"");
    fs::write(&path, text).unwrap();
    assert!(refuses(folder.path(), &["sweep", "test.toml", "--out", "s"]).contains("accepted: "));
    assert!(!folder.path().join("s").exists());
}
