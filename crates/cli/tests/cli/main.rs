//! The command as a user runs it.

mod attack;
mod cc;
mod estimate;
mod files;
#[cfg(feature = "gateway")]
mod gateway;
mod lab;
mod link;
#[cfg(feature = "measure")]
mod measure;
mod mistakes;
mod papers;
mod paths;
mod pcapng;
#[cfg(feature = "bpf")]
mod queue;
mod refusals;
mod results;
#[cfg(feature = "bpf")]
mod shape;
mod shell;
mod sweep;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A short run: one flow over 1 Mbit/s.
const SCENARIO: &str = r#"duration = "2s"
[[link]]
name = "bottleneck"
between = ["a", "b"]
rate = "1Mbit"
delay = "10ms"
[[flow]]
name = "main"
from = "a"
to = "b"
cc = "reno"
"#;

/// The command, without what the environment could change.
fn suimon() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suimon"));
    command.env_remove("COLUMNS").env_remove("RAYON_NUM_THREADS").stdin(Stdio::null());
    command
}

/// The project's folder.
fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What `suimon ARGUMENTS` gives in `folder`.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    suimon().args(arguments).current_dir(folder).output().expect("the command starts")
}

/// Standard output of a command that must succeed.
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = run_in(folder, arguments);
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}\n{errors}", output.status);
    text(&output.stdout)
}

/// What a command that must succeed prints as JSON.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    let text = succeeds(folder, arguments);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{text}"))
}

/// The message of a command that must fail with `code`.
fn fails(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = run_in(folder, arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    message
}

/// The message of a command that must refuse its input: one line.
fn refuses(folder: &Path, arguments: &[&str]) -> String {
    let message = fails(folder, arguments, 2);
    assert!(message.starts_with("suimon: "), "{arguments:?}: {message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{arguments:?}: {message}");
    message
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the command prints UTF-8")
}

/// Names and contents of all files in `folder`.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a folder that opens can be read"))
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}
