//! `suimon cc`: what it refuses anywhere, and a round of it where this machine can load.

use tempfile::tempdir;

use super::{json, run_in, succeeds, text};

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let folder = tempdir().unwrap();
    for (arguments, problem) in [
        (&["cc", "load", "bbr"][..], "accepted: fs-at, fs-at+cubic, vegas, compound"),
        (&["cc", "load", "fs-at", "--as", "fs-at"], "accepted: up to 15 letters, digits and underscores"),
        (&["cc", "unload", "no_such_one"], "no_such_one is not loaded"),
    ] {
        let output = run_in(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(problem), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn one_is_loaded_listed_watched_and_unloaded() {
    let folder = tempdir().unwrap();
    let check = run_in(folder.path(), &["cc", "check"]);
    if !check.status.success() {
        eprintln!("skipped: {}", text(&check.stderr));
        return;
    }
    let name = format!("c{}", std::process::id());
    let said = succeeds(folder.path(), &["cc", "load", "fs-at", "--as", &name]);
    assert!(said.contains(&name), "{said}");
    let twice = run_in(folder.path(), &["cc", "load", "fs-at", "--as", &name]);
    assert!(text(&twice.stderr).contains("already loaded"), "{}", text(&twice.stderr));
    let listed = json(folder.path(), &["cc", "list", "--json"]);
    assert!(listed.to_string().contains(&name), "{listed}");
    assert_eq!(json(folder.path(), &["cc", "stat", &name, "--json"]).as_array().map(Vec::len), Some(0));
    assert_eq!(succeeds(folder.path(), &["cc", "trace", &name, "--json", "--seconds", "1"]), "");
    let said = succeeds(folder.path(), &["cc", "unload", &name]);
    assert!(said.contains("is unloaded"), "{said}");
    let listed = json(folder.path(), &["cc", "list", "--json"]);
    assert!(!listed.to_string().contains(&name), "{listed}");
}
