//! Takes the papers in, so that an installed package has them.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder"));
    let papers = root.join("../../papers").canonicalize().expect("papers/ is beside crates/");
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut files = Vec::new();
    for folder in sorted(&papers) {
        files.extend(
            sorted(&folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")),
        );
    }
    let entries = files.iter().map(|path| {
        let name = path.strip_prefix(&papers).expect("it is below").to_string_lossy();
        format!("    ({name:?}, include_str!({:?})),\n", path.to_string_lossy())
    });
    let text = format!("&[\n{}]\n", entries.collect::<String>());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output folder"));
    fs::write(out.join("papers.rs"), text).expect("the output folder takes files");
}

/// What is in `folder`, in the order of names.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
