//! The folder in which kernels and saved guests are kept.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::error::{At, GuestError};

/// A folder of the user's cache.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

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

    /// A folder that goes when it is dropped, on the same file system.
    pub(crate) fn scratch(&self) -> Result<TempDir, GuestError> {
        let folder = self.folder("scratch")?;
        TempDir::new_in(&folder).at(&folder)
    }

    fn folder(&self, name: &str) -> Result<PathBuf, GuestError> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).at(&folder)?;
        Ok(folder)
    }
}
