use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;

/// Why a report could not be written. The message names the file.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A folder could not be made.
    #[error("cannot create the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A Parquet file could not be written.
    #[cfg(feature = "parquet")]
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The writer's reason.
        source: ParquetError,
    },
}

impl ReportError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn parquet(path: &Path) -> impl Fn(ParquetError) -> Self {
        move |source| Self::Parquet { path: path.to_owned(), source }
    }
}

/// Makes `directory` and those above it.
pub(crate) fn create_folder(directory: &Path) -> Result<(), ReportError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| ReportError::Folder { path: directory.to_owned(), source })
}
