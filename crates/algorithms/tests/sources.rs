//! The rules for the sources and the pages of this crate: purity, citations that exist, a page for every
//! algorithm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use suimon_algorithms::registry::{Description, Role, descriptions};

/// The headings of an algorithm's page, in order, behind its name.
const HEADINGS: [&str; 6] =
    ["Scope and limits", "Equations", "Parameters", "Validation", "Deviations", "References"];

fn crate_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn pages() -> PathBuf {
    crate_root().join("../../docs/algorithms")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` whose name ends in `.extension`.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("a folder that opens can be read").path()) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}

fn all() -> Vec<&'static Description> {
    Role::ALL.iter().copied().flat_map(descriptions).collect()
}

#[test]
fn algorithms_ask_the_operating_system_for_nothing() {
    const FORBIDDEN: [&str; 12] = [
        "std::time",
        "std::net",
        "std::thread",
        "std::fs",
        "std::env",
        "std::process",
        "std::io",
        "thread_rng",
        "OsRng",
        "println!",
        "eprint",
        "dbg!",
    ];
    for path in files(&crate_root().join("src"), "rs") {
        for (number, line) in (1..).zip(read(&path).lines()) {
            for word in FORBIDDEN {
                assert!(!line.contains(word), "{}:{number}: {word}", path.display());
            }
        }
    }
}

/// Floating-point functions of the standard library come from the platform and may differ between two.
#[test]
fn float_functions_come_from_libm() {
    const PLATFORM: [&str; 12] = [
        ".cbrt()", ".powi(", ".powf(", ".exp()", ".exp2()", ".ln()", ".log2()", ".log10()", ".log(",
        ".sin()", ".cos()", ".tanh()",
    ];
    for path in files(&crate_root().join("src"), "rs") {
        for (number, line) in (1..).zip(read(&path).lines()) {
            for word in PLATFORM {
                assert!(!line.contains(word), "{}:{number}: {word}", path.display());
            }
        }
    }
}

/// The numbers behind every "RFC" in `text`.
fn cited(text: &str) -> BTreeSet<u32> {
    text.split("RFC ")
        .skip(1)
        .filter_map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        })
        .collect()
}

#[test]
fn every_rfc_cited_is_in_the_list_of_references() {
    let mut listed = BTreeMap::new();
    for line in read(&pages().join("references.md")).lines() {
        if let Some((number, title)) = line.strip_prefix("- RFC ").and_then(|rest| rest.split_once(": ")) {
            listed.insert(number.parse::<u32>().expect("an RFC has a number"), title.to_owned());
        }
    }
    assert!(listed.values().all(|title| !title.is_empty()));
    let sources = files(&crate_root().join("src"), "rs");
    for path in sources.into_iter().chain(files(&pages(), "md")) {
        for number in cited(&read(&path)) {
            assert!(listed.contains_key(&number), "{}: RFC {number} is not in the list", path.display());
        }
    }
}

#[test]
fn every_algorithm_has_a_page_with_the_fixed_headings() {
    for description in all() {
        let path = pages().join(format!("{}.md", description.name));
        let text = read(&path);
        let mut in_code = false;
        let mut headings = Vec::new();
        for line in text.lines() {
            in_code ^= line.starts_with("```");
            if !in_code && line.starts_with('#') && !line.starts_with("###") {
                headings.push(line.to_owned());
            }
        }
        let mut expected = vec![format!("# {}", description.name)];
        expected.extend(HEADINGS.iter().map(|heading| format!("## {heading}")));
        assert_eq!(headings, expected, "{}", path.display());
    }
}

#[test]
fn a_page_gives_every_parameter_with_its_default() {
    for description in all() {
        let path = pages().join(format!("{}.md", description.name));
        let text = read(&path);
        for parameter in description.parameters {
            let row = format!("| `{}` | {} |", parameter.name, parameter.default);
            assert!(text.contains(&row), "{}: no row \"{row}\"", path.display());
        }
    }
}

#[test]
fn the_index_lists_every_page() {
    let index = read(&pages().join("README.md"));
    for description in all() {
        let link = format!("[{0}]({0}.md)", description.name);
        assert!(index.contains(&link), "no link {link}");
    }
}

#[test]
fn the_guide_shows_the_example_that_is_built() {
    let guide = read(&pages().join("../guides/own-stack.md"));
    let example = read(&crate_root().join("examples/own_stack.rs"));
    assert!(guide.contains(&format!("```rust\n{example}```\n")));
    assert!(example.lines().count() <= 40);
}
