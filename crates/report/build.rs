//! Takes the charting library from where npm put it, so that none of its code is kept here.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let web =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder")).join("web");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output folder"));
    let library = web.join("node_modules/uplot");
    copy(&library.join("dist/uPlot.iife.min.js"), &out.join("uplot.js"));
    copy(&library.join("dist/uPlot.min.css"), &out.join("uplot.css"));
    copy(&library.join("LICENSE"), &out.join("uplot-licence.txt"));
}

fn copy(from: &Path, to: &Path) {
    println!("cargo::rerun-if-changed={}", from.display());
    if let Err(error) = fs::copy(from, to) {
        println!(
            "cargo::error=uPlot is not installed: run `make setup` (npm ci in crates/report/web); {}: {error}",
            from.display()
        );
    }
}
