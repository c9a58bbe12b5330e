//! Where pins live: a BPF file system of our own, in the mounts that the whole machine sees.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::statfs::{FsType, statfs};

use super::error::CongestionError;

/// The folder is not below /sys, which `ip netns exec` mounts anew, so that pins there seem gone inside.
pub(crate) const ROOT: &str = "/run/suimon/bpf";
const FOLDER: &str = "/run/suimon";
const BPF_FS_MAGIC: FsType = FsType(0xcafe_4a11_u32 as _);

/// Runs `work` on a thread that sees the machine's own mounts, also from within `ip netns exec`, whose
/// mounts end with it. The calling thread's network namespace stays.
///
/// # Errors
/// Without the right to enter them, where they differ.
///
/// # Panics
/// Where `work` does.
pub fn on_host<T: Send, E: From<CongestionError> + Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    let inside = || {
        enter_host_mounts().map_err(CongestionError::Mounts)?;
        work()
    };
    thread::scope(|scope| scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn enter_host_mounts() -> io::Result<()> {
    let (own, first) = ("/proc/thread-self/ns/mnt", "/proc/1/ns/mnt");
    let Ok(first_identity) = fs::metadata(first) else {
        // Without root, or without another process's namespaces in sight: stay here.
        return Ok(());
    };
    if fs::metadata(own)?.ino() == first_identity.ino() {
        return Ok(());
    }
    // A thread may change its mounts once it shares its directory with no other.
    unshare(CloneFlags::CLONE_FS)?;
    Ok(setns(File::open(first)?, CloneFlags::CLONE_NEWNS)?)
}

/// Held while pins are made or removed, so that two commands do not meet half-way.
#[derive(Debug)]
pub(crate) struct Lock {
    _folder: File,
}

/// Waits until no other command makes or removes pins. The lock is on a folder that only root may open, so that nobody
/// else can hold it.
pub(crate) fn lock() -> Result<Lock, CongestionError> {
    let path = Path::new(FOLDER);
    let wrong = |error| CongestionError::file(path, error);
    loop {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(wrong)?;
        let folder = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.map_err(wrong)?,
        };
        folder.lock().map_err(wrong)?;
        // Whoever had it before may have removed the folder; then this is the lock of nothing.
        let is_there = |there: fs::Metadata| folder.metadata().is_ok_and(|held| held.ino() == there.ino());
        if fs::metadata(path).is_ok_and(is_there) {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(wrong)?;
            return Ok(Lock { _folder: folder });
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only where nothing is left in there.
        let _ = fs::remove_dir(FOLDER);
    }
}

fn is_mounted() -> bool {
    statfs(ROOT).is_ok_and(|status| status.filesystem_type() == BPF_FS_MAGIC)
}

/// Mounts the file system where it is not.
pub(crate) fn prepare() -> Result<(), CongestionError> {
    if is_mounted() {
        return Ok(());
    }
    let root = Path::new(ROOT);
    let wrong = |error: io::Error| CongestionError::file(root, error);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(wrong)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("bpf"), root, Some("bpf"), flags, Some("mode=0700")).map_err(|error| wrong(error.into()))
}

/// Unmounts it where no pin is left, and removes the folders that `prepare` made.
pub(crate) fn tidy() {
    let root = Path::new(ROOT);
    if let Ok(entries) = fs::read_dir(root) {
        for entry in entries.flatten() {
            // Only empty folders go.
            let _ = fs::remove_dir(entry.path());
        }
    }
    // Some kernels put files of their own there, whose names have a dot.
    let is_ours = |entry: fs::DirEntry| !entry.file_name().to_string_lossy().contains('.');
    let is_empty = fs::read_dir(root).is_ok_and(|mut entries| !entries.any(|entry| entry.is_ok_and(is_ours)));
    if is_empty && is_mounted() && umount2(root, MntFlags::empty()).is_ok() {
        let _ = fs::remove_dir(root);
    }
}
