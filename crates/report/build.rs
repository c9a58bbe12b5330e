//! Brings the charting library of the report page, so that none of its code is kept here.
//!
//! The library is a released npm package. Three of its files are needed, each held against its digest, so their source
//! does not matter: the folder that `SUIMON_UPLOT` names, npm, or curl from a mirror of npm's packages.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use sha2::{Digest, Sha256};

const PACKAGE: &str = "uplot@1.6.32";
/// Serves the files of every npm package.
const MIRROR: &str = "https://cdn.jsdelivr.net/npm";
/// Path within the package, name in the output folder, SHA-256.
const FILES: [(&str, &str, &str); 3] = [
    (
        "dist/uPlot.iife.min.js",
        "uplot.js",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    ("dist/uPlot.min.css", "uplot.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    ("LICENSE", "uplot-licence.txt", "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SUIMON_UPLOT");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output folder"));
    let brought = match env::var_os("SUIMON_UPLOT") {
        Some(folder) => take(Path::new(&folder), &out),
        None => by_npm(&out)
            .or_else(|first| by_curl(&out).map_err(|second| format!("by npm: {first}; by curl: {second}"))),
    };
    if let Err(problem) = brought {
        println!(
            "cargo::error=the charting library {PACKAGE} was not brought: {problem}; accepted: npm or curl and a \
             network, or SUIMON_UPLOT=FOLDER with the package's files in it"
        );
    }
}

/// Takes the files from a folder with the package.
fn take(package: &Path, out: &Path) -> Result<(), String> {
    for (path, name, digest) in FILES {
        let path = package.join(path);
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        if found != digest {
            return Err(format!("{} has the SHA-256 {found} rather than {digest}", path.display()));
        }
        fs::write(out.join(name), content).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

fn by_npm(out: &Path) -> Result<(), String> {
    let folder = out.join("npm");
    let quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--no-save", "--silent"];
    run(Command::new("npm").arg("install").args(quiet).arg("--prefix").arg(&folder).arg(PACKAGE))?;
    take(&folder.join("node_modules/uplot"), out)
}

fn by_curl(out: &Path) -> Result<(), String> {
    let folder = out.join("curl");
    for (path, ..) in FILES {
        let options =
            ["--silent", "--show-error", "--fail", "--location", "--create-dirs", "--max-time", "60"];
        let url = format!("{MIRROR}/{PACKAGE}/{path}");
        run(Command::new("curl").args(options).arg("--output").arg(folder.join(path)).arg(url))?;
    }
    take(&folder, out)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}
