//! The folder in which kernels and saved guests are kept.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::{At, GuestError};

/// What begins the names of folders that go.
const PREFIX: &str = "run-";

/// A folder of the user's cache.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

/// A folder that goes when it is dropped. Its lock says that its process lives.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder, which stays.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

impl Store {
    /// The store of this user: `suimon/lab` in `$XDG_CACHE_HOME`, or in `~/.cache`.
    #[must_use]
    pub fn of_user() -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        Self(cache.unwrap_or_else(std::env::temp_dir).join("suimon/lab"))
    }

    pub(crate) fn kernels(&self) -> Result<PathBuf, GuestError> {
        self.folder("kernels")
    }

    pub(crate) fn states(&self) -> Result<PathBuf, GuestError> {
        self.folder("states")
    }

    /// A folder that goes when it is dropped, on the same file system. Folders of processes that were killed go now.
    pub(crate) fn scratch(&self) -> Result<Scratch, GuestError> {
        let all = self.folder("scratch")?;
        // Nobody takes a folder away between its making and its lock.
        let making = File::open(&all).at(&all)?;
        making.lock().at(&all)?;
        for entry in fs::read_dir(&all).at(&all)?.flatten() {
            let path = entry.path();
            let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            if is_ours && File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
                fs::remove_dir_all(&path).at(&path)?;
            }
        }
        let folder = TempDir::with_prefix_in(PREFIX, &all).at(&all)?;
        let lock = File::open(folder.path()).at(folder.path())?;
        lock.lock().at(folder.path())?;
        Ok(Scratch { folder, _lock: lock })
    }

    fn folder(&self, name: &str) -> Result<PathBuf, GuestError> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_processes_go_and_those_of_others_stay() {
        let cache = TempDir::new().unwrap();
        let store = Store(cache.path().to_owned());
        let lives = store.scratch().unwrap();
        let killed = cache.path().join("scratch/run-killed");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("job"), "job").unwrap();
        let kept = store.scratch().unwrap();
        assert!(!killed.exists() && lives.path().exists());
        let kept = kept.keep();
        assert!(kept.exists());
        let gone = lives.path().to_owned();
        drop(lives);
        assert!(!gone.exists());
    }
}
