//! Says which commit this is built from, so that results can be traced to what made them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What a build depends on, in the project's folder.
const SOURCES: [&str; 5] = ["Cargo.lock", "Cargo.toml", "bpf", "crates", "papers"];

fn main() {
    let variable = |name| env::var(name).expect("cargo sets it");
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let release = variable("CARGO_PKG_VERSION");
    let version = match packaged(&package).or_else(|| checked_out(&package)) {
        Some(Commit { digest, dirty: false }) => format!("{release}+{digest}"),
        Some(Commit { digest, dirty: true }) => format!("{release}+{digest}.dirty"),
        None => release,
    };
    println!("cargo::rustc-env=SUIMON_VERSION={version}");
}

struct Commit {
    digest: String,
    /// Whether the sources differ from it.
    dirty: bool,
}

impl Commit {
    fn new(digest: &str, dirty: bool) -> Option<Self> {
        // As many digits as git shows of large projects.
        let digest = digest.get(..9)?.to_owned();
        Some(Self { digest, dirty })
    }
}

/// What `cargo package` wrote down where it made the package.
fn packaged(package: &Path) -> Option<Commit> {
    let path = package.join(".cargo_vcs_info.json");
    let text = fs::read_to_string(&path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Commit::new(text.split_once("\"sha1\": \"")?.1, text.contains("\"dirty\": true"))
}

/// What git says of the project that this package lies in.
fn checked_out(package: &Path) -> Option<Commit> {
    let root = package.join("../..");
    // A package that lies in somebody else's project does not get their commit.
    git(&root, &["ls-files", "--error-unmatch", "crates/study/build.rs"])?;
    let digest = git(&root, &["rev-parse", "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    let dirty = !git(&root, &status)?.is_empty();
    // Every commit and checkout adds a line there.
    let log = root.join(git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?);
    for path in SOURCES.map(|name| root.join(name)).into_iter().chain([log]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    Commit::new(&digest, dirty)
}

/// What a git command prints where it succeeds.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
