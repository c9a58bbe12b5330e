//! The folder of a sweep: a manifest, and a folder for each part that is whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use suimon_report::{ReportError, ReportHeader, Tables, write_parquet};

use super::plan::Manifest;
use crate::error::StudyError;

/// A sweep's folder that no other process takes for its own.
///
/// A part comes to be by a rename, under its own name and with all its tables, so that whatever ends the
/// process leaves whole parts only.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held until the process ends, however it ends.
    _lock: File,
}

impl Folder {
    /// The folder at `path` for the sweep of `manifest`: new, or where a sweep alike has stopped.
    ///
    /// # Errors
    /// When another sweep is there, at work or not and `restart` does not discard it, or foreign files are, or
    /// nothing can be written.
    pub fn open(path: &Path, manifest: &Manifest, restart: bool) -> Result<Self, StudyError> {
        fs::create_dir_all(path).map_err(|source| ReportError::Folder { path: path.to_owned(), source })?;
        if !path.join(MANIFEST).exists() && foreign(path)? {
            return refuse(path, "holds files but no sweep; accepted: another --out, an empty folder");
        }
        let lock_path = path.join(LOCK);
        if fs::symlink_metadata(&lock_path).is_ok_and(|there| !there.is_file()) {
            return refuse(&lock_path, "is there and is no file; accepted: another --out");
        }
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return refuse(path, "another suimon sweep is at work there; accepted: another --out");
            }
            Err(TryLockError::Error(source)) => return Err(at(&lock_path)(source)),
        }
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.clear(restart)?;
        match read_manifest(path) {
            Ok(Some(found)) if !restart => {
                if let Some(difference) = found.difference(manifest) {
                    let problem = format!(
                        "holds a sweep with another {difference}; accepted: the same sweep to go on with, \
                         another --out, --restart to discard what is there"
                    );
                    return refuse(path, problem);
                }
            }
            Err(error) if !restart => return Err(error),
            _ => folder.write_manifest(manifest)?,
        }
        Ok(folder)
    }

    /// Which of the parts of `manifest` are not there.
    #[must_use]
    pub fn missing(&self, manifest: &Manifest) -> Vec<u64> {
        (0..manifest.parts()).filter(|part| !has(&self.path, *part)).collect()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what an interrupted sweep was about to write, and with `everything` its parts too.
    fn clear(&self, everything: bool) -> Result<(), StudyError> {
        let (discarded, others): (Vec<_>, Vec<_>) =
            names(&self.path)?.into_iter().partition(|name| name.starts_with(DISCARDED));
        for name in discarded {
            remove(&self.path.join(name))?;
        }
        for name in others {
            let (is_part, path) = (part_number(&name).is_some(), self.path.join(&name));
            let is_broken = path.is_dir() && !is_whole(&path);
            if name.starts_with(UNFINISHED) || (is_part && (everything || is_broken)) {
                self.discard(&name)?;
            }
        }
        Ok(())
    }

    /// Removes a part or the beginning of one, out of the way first: a worker that outlives its driver may be at it,
    /// and would put in place what is left of it halfway through the removal.
    fn discard(&self, name: &str) -> Result<(), StudyError> {
        let (path, discarded) = (self.path.join(name), self.path.join(format!("{DISCARDED}{name}")));
        match fs::rename(&path, &discarded) {
            Ok(()) => remove(&discarded),
            // That worker has put it in place, whole.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(at(&path)(error)),
        }
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), StudyError> {
        let unfinished = self.path.join(format!("{UNFINISHED}{MANIFEST}"));
        fs::write(&unfinished, manifest.to_json()).map_err(at(&unfinished))?;
        sync(&unfinished)?;
        let path = self.path.join(MANIFEST);
        fs::rename(&unfinished, &path).map_err(at(&path))?;
        sync(&self.path)
    }
}

fn remove(path: &Path) -> Result<(), StudyError> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.map_err(at(path))
}

/// Whether `part` is in the folder at `path`.
pub(super) fn has(path: &Path, part: u64) -> bool {
    is_whole(&path.join(part_name(part)))
}

/// Whether the folder of a part has its runs, and no table that was cut off: Parquet begins and ends with its mark, and
/// before the last one stands the length of what describes the table.
fn is_whole(part: &Path) -> bool {
    let Ok(entries) = fs::read_dir(part) else { return false };
    let mut tables = entries.flatten().map(|entry| entry.path());
    part.join(RUNS).is_file() && tables.all(|table| is_whole_table(&table).unwrap_or(false))
}

fn is_whole_table(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let (mut mark, mut foot) = ([0; 4], [0; 8]);
    file.rewind()?;
    file.read_exact(&mut mark)?;
    file.seek(SeekFrom::Start(length.saturating_sub(8)))?;
    file.read_exact(&mut foot)?;
    let described = u32::from_le_bytes([foot[0], foot[1], foot[2], foot[3]]);
    Ok(mark == *PARQUET && foot[4..] == *PARQUET && u64::from(described) + 12 <= length)
}

/// Writes `part` into the folder at `path`; it is there once this returns, and not before. `writer` tells apart
/// processes that may write the same part; it is there once whoever wins, since all write the same bytes.
pub(super) fn write(
    path: &Path,
    part: u64,
    writer: &str,
    header: &ReportHeader,
    tables: &Tables,
) -> Result<(), StudyError> {
    let name = part_name(part);
    let unfinished = path.join(format!("{UNFINISHED}{name}{writer}"));
    for file in write_parquet(&unfinished, header, tables)? {
        sync(&file)?;
    }
    sync(&unfinished)?;
    let finished = path.join(name);
    match fs::rename(&unfinished, &finished) {
        Ok(()) => sync(path),
        Err(_) if finished.is_dir() => fs::remove_dir_all(&unfinished).map_err(at(&unfinished)),
        Err(error) => Err(at(&finished)(error)),
    }
}

/// The sweep in the folder at `path`, and how many of its runs are there.
///
/// # Errors
/// When it holds none.
pub fn progress_of(path: &Path) -> Result<(Manifest, u64), StudyError> {
    let Some(manifest) = read_manifest(path)? else {
        return refuse(path, "holds no sweep; accepted: the folder of a sweep");
    };
    let names = names(path)?;
    let whole = names.iter().filter(|name| is_whole(&path.join(name)));
    let parts = whole.filter_map(|name| part_number(name)).collect::<Vec<_>>();
    let done = parts.into_iter().map(|part| manifest.runs_in(part).count() as u64).sum();
    Ok((manifest, done))
}

fn read_manifest(folder: &Path) -> Result<Option<Manifest>, StudyError> {
    let path = folder.join(MANIFEST);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return refuse(&path, format!("does not read: {error}")),
    };
    match Manifest::from_json(&text) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(error) => {
            let problem = format!("does not read: {error}; accepted: another --out, --restart to discard it");
            refuse(&path, problem)
        }
    }
}

/// Whether the folder holds anything that no sweep has put there.
fn foreign(folder: &Path) -> Result<bool, StudyError> {
    Ok(names(folder)?.iter().any(|name| name != LOCK && !name.starts_with(UNFINISHED)))
}

fn names(folder: &Path) -> Result<Vec<String>, StudyError> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    match entries {
        Ok(entries) => Ok(entries.iter().map(|e| e.file_name().to_string_lossy().into_owned()).collect()),
        Err(error) => refuse(folder, format!("does not read: {error}")),
    }
}

fn part_name(part: u64) -> String {
    format!("{PART}{part:06}")
}

fn part_number(name: &str) -> Option<u64> {
    name.strip_prefix(PART)?.parse().ok()
}

/// Waits until a file or the names in a folder are on the disk.
fn sync(path: &Path) -> Result<(), StudyError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StudyError {
    move |source| ReportError::File { path: path.to_owned(), source }.into()
}

fn refuse<T>(folder: &Path, problem: impl Into<String>) -> Result<T, StudyError> {
    Err(StudyError::Folder { path: folder.to_owned(), problem: problem.into() })
}

const MANIFEST: &str = "sweep.json";
const LOCK: &str = "sweep.lock";
const PART: &str = "part-";
/// The table that every part has.
const RUNS: &str = "runs.parquet";
const PARQUET: &[u8; 4] = b"PAR1";
/// Starts with a dot, so that no pattern such as `part-*` takes it for a part.
const UNFINISHED: &str = ".unfinished-";
/// What is being removed.
const DISCARDED: &str = ".unfinished-discarded-";

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const FILES: usize = 400;

    /// A worker that outlives its driver puts its part in place at any moment of the removal: whole, or not at all.
    #[test]
    fn a_part_that_is_discarded_never_comes_to_be_in_part() {
        for pause in 0..40 {
            let place = tempfile::TempDir::new().unwrap();
            let (unfinished, finished) =
                (place.path().join(".unfinished-part-000000w"), place.path().join("part-000000"));
            fs::create_dir(&unfinished).unwrap();
            let table = b"PAR1\0\0\0\0PAR1";
            let write = |name: &str| fs::write(unfinished.join(name), table).unwrap();
            (1..FILES).for_each(|file| write(&file.to_string()));
            write(RUNS);
            let lock = File::create(place.path().join(LOCK)).unwrap();
            let folder = Folder { path: place.path().to_owned(), _lock: lock };
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(std::time::Duration::from_micros(50 * pause));
                    let _ = fs::rename(&unfinished, &finished);
                });
                folder.clear(false).unwrap();
            });
            assert!(!unfinished.exists());
            assert_eq!(
                fs::read_dir(&finished).map_or(FILES, Iterator::count),
                FILES,
                "of a part that is there"
            );
        }
    }

    #[test]
    fn a_part_that_was_cut_off_is_not_done() {
        let place = tempfile::TempDir::new().unwrap();
        let (part, table) = (place.path().join("part-000000"), b"PAR1\x02\0\0\0\0xx\x02\0\0\0PAR1");
        fs::create_dir(&part).unwrap();
        fs::write(part.join("flows.parquet"), table).unwrap();
        assert!(!has(place.path(), 0), "without its runs");
        for length in 0..=table.len() {
            fs::write(part.join(RUNS), &table[..length]).unwrap();
            assert_eq!(has(place.path(), 0), length == table.len(), "{length} bytes");
        }
        fs::write(part.join("flows.parquet"), &table[..9]).unwrap();
        let lock = File::create(place.path().join(LOCK)).unwrap();
        let folder = Folder { path: place.path().to_owned(), _lock: lock };
        folder.clear(false).unwrap();
        assert!(!part.exists(), "it is made again");
    }
}
