//! Network namespaces without names: they end with the last process, thread or descriptor that holds them.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Doing, LinuxError};

/// A network namespace: devices, addresses and routes of its own.
#[derive(Debug, Clone)]
pub struct Namespace {
    descriptor: Arc<OwnedFd>,
}

/// The calling thread's own.
const OWN: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// A new one, in which only the loopback device is up.
    ///
    /// # Errors
    /// Without the right to make one: root's, or that of a user namespace.
    pub fn new() -> Result<Self, LinuxError> {
        let made = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).doing("making a network namespace")?;
            Self::current()
        })?;
        made.set_up("lo")?;
        Ok(made)
    }

    /// The one that the calling thread is in.
    ///
    /// # Errors
    /// Where `/proc` is not there.
    pub fn current() -> Result<Self, LinuxError> {
        Self::open(Path::new(OWN))
    }

    /// The one that the file `path` stands for, as `/run/netns/NAME` and `/proc/PID/ns/net` do.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, LinuxError> {
        let file = File::open(path).doing(format_args!("opening {}", path.display()))?;
        Ok(Self { descriptor: Arc::new(file.into()) })
    }

    /// Moves the calling thread in, for good. Threads that it starts from then on are in there too.
    ///
    /// # Errors
    /// The right to enter is missing.
    pub fn enter(&self) -> Result<(), LinuxError> {
        // A thread that is in the namespace already needs no right.
        if Self::current()?.identity()? == self.identity()? {
            return Ok(());
        }
        setns(self.descriptor.as_fd(), CloneFlags::CLONE_NEWNET).doing("entering a network namespace")
    }

    /// Runs `work` in there, on a thread of its own: sockets that it makes stay in there.
    ///
    /// # Errors
    /// The right to enter it is missing.
    ///
    /// # Panics
    /// Where `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LinuxError> {
        on_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Starts `command` in there. It is killed when the thread that called this ends, however that ends.
    ///
    /// # Errors
    /// The command cannot be started, or the namespace not be entered.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LinuxError> {
        let descriptor = Arc::clone(&self.descriptor);
        let parent = std::process::id();
        let prepare = move || {
            // SAFETY: the descriptor is open, as `descriptor` holds it; the call touches no memory.
            if unsafe { libc::setns(descriptor.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // SAFETY: takes numbers, touches no memory.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64) };
            // SAFETY: takes nothing, cannot fail.
            if unsafe { libc::getppid() } as u32 != parent {
                // The parent died before this child watched it.
                // SAFETY: ends this process at once, which is allowed in a forked child.
                unsafe { libc::_exit(1) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec only system calls are made, with nothing locked or allocated.
        unsafe { command.pre_exec(prepare) };
        command.spawn().doing(format_args!("starting {}", command.get_program().to_string_lossy()))
    }

    /// Sets a value below `/proc/sys/net`, as in `("ipv4/tcp_ecn", "1")`.
    ///
    /// # Errors
    /// Where there is no such value, or the kernel refuses it.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<(), LinuxError> {
        let path = format!("/proc/sys/net/{key}");
        self.run(|| fs::write(&path, value))?.doing(format_args!("setting {path} to {value}"))
    }

    /// Reads a value below `/proc/sys/net`.
    ///
    /// # Errors
    /// Where there is no such value.
    pub fn sysctl(&self, key: &str) -> Result<String, LinuxError> {
        let path = format!("/proc/sys/net/{key}");
        let text = self.run(|| fs::read_to_string(&path))?.doing(format_args!("reading {path}"))?;
        Ok(text.trim().to_owned())
    }

    /// The number of the namespace: equal for two that are the same, while either is held.
    fn identity(&self) -> Result<u64, LinuxError> {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let metadata = fs::metadata(&path).doing(format_args!("reading {path}"))?;
        Ok(std::os::unix::fs::MetadataExt::ino(&metadata))
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }
}

/// Runs `work` on a thread that ends with it, so that its changes to the thread end too.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, LinuxError> + Send) -> Result<T, LinuxError> {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}
