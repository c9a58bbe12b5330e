//! What an installation has beside the command.

use tempfile::TempDir;

use crate::{contents, fails, run_in, succeeds, text};

#[test]
fn every_command_has_a_manual_and_is_completed() {
    let folder = TempDir::new().unwrap();
    succeeds(folder.path(), &["files", "--man", "man", "--bash", "b", "--fish", "f", "--zsh", "z"]);
    let manuals = contents(&folder.path().join("man"));
    let completions = ["b", "f", "z"].map(|shell| contents(&folder.path().join(shell)));
    let help = succeeds(folder.path(), &["--help"]);
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<_> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(manuals.iter().any(|(file, _)| *file == format!("suimon-{name}.1")), "{name} has no manual");
        for completion in &completions {
            let (file, content) = &completion[0];
            assert!(text(content).contains(name), "{file} does not complete {name}");
        }
    }
    let shell = manuals.iter().find(|(file, _)| file == "suimon-shell.1").unwrap();
    assert!(text(&shell.1).contains("no\\-segmentation"), "options are in the manual");
}

#[test]
fn programs_for_the_kernel_are_object_files() {
    let folder = TempDir::new().unwrap();
    let output = run_in(folder.path(), &["files", "--bpf", "bpf"]);
    if !output.status.success() {
        eprintln!("skipped: {}", text(&output.stderr));
        return;
    }
    let objects = contents(&folder.path().join("bpf"));
    assert!(objects.iter().any(|(name, _)| name == "fs_at.bpf.o"), "{objects:?}");
    for (name, content) in objects {
        assert!(content.starts_with(b"\x7fELF"), "{name}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let message = fails(folder.path(), &["files", "--man", "file/man"], 3);
    assert!(message.contains("cannot write: file/man: "), "{message}");
}
