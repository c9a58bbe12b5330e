//! A program that ends with the process that started it, and all that it starts too, however that process ends.
//!
//! The program runs below an init of its own, in a process namespace of its own: the kernel kills all of it when
//! the init ends, and ends the init when the thread that started it does. Nothing has a name, so nothing is left
//! behind that would have to be removed.

use std::ffi::{CString, OsStr, OsString, c_char, c_int};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Doing, LinuxError};
use crate::namespace::Namespace;
use crate::schedule::wait_readable;

/// A program to run, and its surroundings.
#[derive(Debug)]
pub struct Program {
    /// The program's name, looked up in `PATH`, and its arguments; not empty.
    pub words: Vec<OsString>,
    /// Variables beside those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// The network that it sees.
    pub namespace: Namespace,
    /// Files that it sees other contents in, where they exist: paths and contents.
    pub covered: Vec<(PathBuf, Vec<u8>)>,
    /// The program keeps this process's rights over its user namespace, though its user is not root.
    pub keeps_rights: bool,
    /// The terminal of the program instead of this process's; streams that are no terminal here stay as they are.
    pub terminal: Option<OwnedFd>,
    /// The program gets the typed input. A program behind it reads nothing.
    pub in_front: bool,
}

/// A program that runs.
#[derive(Debug)]
pub struct Confined {
    pid: libc::pid_t,
    /// Readable once the init has ended.
    descriptor: OwnedFd,
    outcome: Option<Outcome>,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program ended by itself, with this exit code.
    Exited(u8),
    /// A signal ended the program.
    Killed(u8),
}

impl Outcome {
    /// The exit status as a shell gives it: the exit code, or 128 and the signal.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => 128_u8.saturating_add(signal),
        }
    }
}

impl Confined {
    /// Starts `program`. It is killed when the thread that calls this ends.
    ///
    /// # Errors
    /// The program is not found, or the right to make namespaces is missing.
    pub fn start(program: &Program) -> Result<Self, LinuxError> {
        let name = program.words.first().map_or(OsStr::new(""), OsString::as_os_str).to_owned();
        let doing = || format!("starting {}", name.to_string_lossy());
        let prepared = Prepared::of(program).doing(doing())?;
        let (mut ours, theirs) = UnixStream::pair().doing("making a pair of sockets")?;
        // SAFETY: until exec the child makes system calls only, with nothing allocated or locked.
        let pid = unsafe { fork(libc::CLONE_NEWPID | libc::CLONE_NEWNS) };
        if pid < 0 {
            return Err(io::Error::last_os_error()).doing("making a process namespace");
        }
        if pid == 0 {
            prepared.be_init(ours.as_raw_fd(), theirs.as_raw_fd());
        }
        drop(theirs);
        // SAFETY: the child was not waited for, so the number is its own.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as RawFd;
        let descriptor = if descriptor < 0 {
            Err(io::Error::last_os_error())
        } else {
            // SAFETY: it was just opened, and nobody else has it.
            Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
        };
        let mut started = Self { pid, descriptor: descriptor.doing("watching a process")?, outcome: None };
        let mut said = [0; 8];
        match ours.read_exact(&mut said) {
            // Closed without a word by exec.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(started),
            Err(error) => Err(error).doing(doing()),
            Ok(()) => {
                started.wait(None)?;
                let [stage, code] =
                    [0, 4].map(|at| i32::from_ne_bytes([said[at], said[at + 1], said[at + 2], said[at + 3]]));
                let error = Err(io::Error::from_raw_os_error(code));
                match STAGES.get(stage as usize) {
                    Some(stage) => error.doing(stage),
                    None => error.doing_with(doing(), "it is no program that this user may run"),
                }
            }
        }
    }

    /// Waits until it has ended, at most for `timeout`; `None` where it goes on.
    ///
    /// # Errors
    /// None that the kernel is known to give.
    pub fn wait(&mut self, timeout: Option<suimon_units::Duration>) -> Result<Option<Outcome>, LinuxError> {
        if self.outcome.is_none() {
            let [ended] = wait_readable([self.descriptor.as_fd()], timeout)?;
            if ended {
                self.outcome = Some(self.reap()?);
            }
        }
        Ok(self.outcome)
    }

    /// Sends it a signal, such as 15; its init passes that on. Nothing where it has ended.
    pub fn signal(&self, number: i32) {
        if self.outcome.is_none() {
            // SAFETY: it was not waited for, so the number is its own; the call touches no memory.
            unsafe { libc::kill(self.pid, number) };
        }
    }

    fn reap(&self) -> Result<Outcome, LinuxError> {
        let mut status = 0;
        // SAFETY: `status` outlives the call, which writes one number there.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        if waited < 0 {
            return Err(io::Error::last_os_error()).doing("waiting for a process");
        }
        Ok(outcome_of(status))
    }
}

impl AsFd for Confined {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        if self.outcome.is_none() {
            self.signal(libc::SIGKILL);
            let _ = self.reap();
        }
    }
}

fn outcome_of(status: c_int) -> Outcome {
    if libc::WIFSIGNALED(status) {
        Outcome::Killed(libc::WTERMSIG(status) as u8)
    } else {
        Outcome::Exited(libc::WEXITSTATUS(status) as u8)
    }
}

/// The step in which the init failed; beyond these, the start of the program.
const STAGES: [&str; 1] = ["entering a network namespace"];
const STARTING: i32 = STAGES.len() as i32;

/// The program that the init started, for its handler of signals.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// All that the child needs, made before there is one: after a fork of a process with threads nothing may be
/// allocated.
struct Prepared {
    words: Vec<CString>,
    variables: Vec<CString>,
    namespace: RawFd,
    covered: Vec<(CString, Vec<u8>)>,
    keeps_rights: bool,
    terminal: Option<RawFd>,
    in_front: bool,
}

impl Prepared {
    fn of(program: &Program) -> io::Result<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let words = program.words.iter().map(|word| text(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        if words.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
        }
        let added = |name: &OsStr| program.environment.iter().any(|(other, _)| other == name);
        let inherited = std::env::vars_os().filter(|(name, _)| !added(name));
        let variables = inherited
            .chain(program.environment.iter().cloned())
            .map(|(name, value)| text(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
        let variables = variables.collect::<Result<Vec<_>, _>>()?;
        if words.len().max(variables.len()) >= MAX_WORDS {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let cover = |(path, contents): &(PathBuf, Vec<u8>)| {
            Ok((text(path.as_os_str().as_bytes())?, contents.clone()))
        };
        let covered = program.covered.iter().map(cover).collect::<io::Result<_>>()?;
        Ok(Self {
            words,
            variables,
            namespace: program.namespace.descriptor().as_raw_fd(),
            covered,
            keeps_rights: program.keeps_rights,
            terminal: program.terminal.as_ref().map(AsRawFd::as_raw_fd),
            in_front: program.in_front,
        })
    }

    /// Goes on as the init: starts the program, waits for it and for whatever is left to it, and ends as it did.
    fn be_init(&self, parents: RawFd, own: RawFd) -> ! {
        let pointers = |texts: &[CString], into: &mut [*const c_char]| {
            for (text, place) in texts.iter().zip(into) {
                *place = text.as_ptr();
            }
        };
        // SAFETY: each is a system call, with live pointers to texts that end in zero, or with none.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
            libc::close(parents);
            // Where the parent died before it was watched, its end is closed.
            let mut polled = libc::pollfd { fd: own, events: 0, revents: 0 };
            if libc::poll(&raw mut polled, 1, 0) != 0 {
                libc::_exit(1);
            }
            if libc::setns(self.namespace, libc::CLONE_NEWNET) != 0 {
                say(own, 0);
            }
            // Mounts from here on are seen here alone. Where the kernel refuses a view of the processes in here, the
            // outer view has to do.
            let nothing = std::ptr::null();
            libc::mount(nothing, c"/".as_ptr(), nothing, libc::MS_REC | libc::MS_SLAVE, nothing.cast());
            for (path, contents) in &self.covered {
                cover(path, contents);
            }
            libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, nothing.cast());
            // Signals that this process waits for itself come to the program as to any.
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            let program = fork(0);
            if program < 0 {
                say(own, STARTING);
            }
            if program == 0 {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGQUIT, libc::SIG_DFL);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
                if self.keeps_rights {
                    keep_rights();
                }
                if let Some(terminal) = self.terminal {
                    sit_at(terminal, self.in_front);
                }
                if !self.in_front {
                    let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                    libc::dup2(nothing, libc::STDIN_FILENO);
                }
                let mut words = [nothing; MAX_WORDS];
                let mut variables = [nothing; MAX_WORDS];
                pointers(&self.words, &mut words[..MAX_WORDS - 1]);
                pointers(&self.variables, &mut variables[..MAX_WORDS - 1]);
                libc::execvpe(words[0], words.as_ptr(), variables.as_ptr());
                say(own, STARTING);
            }
            PROGRAM.store(program, Ordering::Relaxed);
            for number in PASSED_ON {
                libc::signal(number, pass_on as *const () as libc::sighandler_t);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            // Whatever this process had open is not to stay open for the init's sake.
            libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
            loop {
                let mut status = 0;
                let ended = libc::waitpid(-1, &raw mut status, 0);
                if ended == program {
                    libc::_exit(i32::from(outcome_of(status).code()));
                }
            }
        }
    }
}

/// Most words or variables of a program.
const MAX_WORDS: usize = 16_384;

/// Signals that the init passes on to its program.
const PASSED_ON: [c_int; 5] = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

extern "C" fn pass_on(number: c_int) {
    // SAFETY: may be called in a handler of signals, and touches no memory.
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), number) };
}

/// Mounts a file with `contents` over `path`; leaves it where the kernel does not allow that. The file is in memory
/// and has no other name, so it ends with the mount.
///
/// # Safety
/// In a mount namespace of the caller's own only, where nothing else looks at `/proc` meanwhile.
unsafe fn cover(path: &CString, contents: &[u8]) {
    let nothing: *const c_char = std::ptr::null();
    let (scratch, file) = (c"/proc", c"/proc/file");
    // SAFETY: each is a system call with live pointers to texts that end in zero, or to `contents`.
    unsafe {
        if libc::mount(c"tmpfs".as_ptr(), scratch.as_ptr(), c"tmpfs".as_ptr(), 0, nothing.cast()) != 0 {
            return;
        }
        let mode: libc::mode_t = 0o644;
        let descriptor = libc::open(file.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, mode);
        if descriptor >= 0 {
            let written = libc::write(descriptor, contents.as_ptr().cast(), contents.len());
            libc::close(descriptor);
            if written == contents.len() as isize {
                libc::mount(file.as_ptr(), path.as_ptr(), nothing, libc::MS_BIND, nothing.cast());
            }
        }
        libc::umount2(scratch.as_ptr(), libc::MNT_DETACH);
    }
}

/// Forks into new namespaces of these kinds, by the system call. The library's fork takes the locks of all memory first,
/// and in a child of a process with threads one may be held for ever by a thread that is not there.
///
/// # Safety
/// Until exec the child may make system calls only: without CLONE_VM and a stack it has a copy of all memory, as other
/// threads left it, and goes on alone.
unsafe fn fork(namespaces: c_int) -> libc::pid_t {
    // SAFETY: the call takes numbers.
    unsafe { libc::syscall(libc::SYS_clone, namespaces | libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
}

/// Tells the parent the failed step and the error, and ends.
///
/// # Safety
/// In a forked child only, as it ends the process.
unsafe fn say(to: RawFd, stage: i32) -> ! {
    let code = io::Error::last_os_error().raw_os_error().unwrap_or_default();
    let (stage, code) = (stage.to_ne_bytes(), code.to_ne_bytes());
    let words = [stage[0], stage[1], stage[2], stage[3], code[0], code[1], code[2], code[3]];
    // SAFETY: the pointer is to eight live bytes; `_exit` takes a number.
    unsafe {
        libc::write(to, words.as_ptr().cast(), words.len());
        libc::_exit(127)
    }
}

/// Puts `terminal` in the place of the calling process's terminal, if any; one that is `in_front` gets its signals.
///
/// # Safety
/// In a forked child only, as descriptors that others may use change.
unsafe fn sit_at(terminal: RawFd, in_front: bool) {
    // SAFETY: each is a system call on descriptors alone.
    unsafe {
        if in_front {
            libc::setsid();
            libc::ioctl(terminal, libc::TIOCSCTTY, 0);
        }
        for stream in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            if libc::isatty(stream) == 1 {
                libc::dup2(terminal, stream);
            }
        }
    }
}

/// Lets exec keep all rights that the calling process has.
fn keep_rights() {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// `_LINUX_CAPABILITY_VERSION_3`.
    const VERSION: u32 = 0x2008_0522;
    let header = Header { version: VERSION, pid: 0 };
    let mut data = [Data { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: header and data are laid out as the kernel has them for this version: two records of three words; both
    // outlive the calls.
    unsafe {
        libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr());
        for record in &mut data {
            record.inheritable = record.permitted;
        }
        libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr());
        for right in 0..64_u64 {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as u64, right, 0_u64, 0_u64);
        }
    }
}

/// True where the calling process may make namespaces and devices where it is.
#[must_use]
pub fn may_administer_network() -> bool {
    /// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    effective.is_some_and(|bits| bits & NEEDED == NEEDED)
}

/// Moves this process into a user namespace of its own, where it has all rights over the namespaces that it makes
/// from then on, and keeps its user.
///
/// # Errors
/// Where the kernel does not allow it, or this process has threads already.
pub fn enter_user_namespace() -> Result<(), LinuxError> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)
        .doing_with("making a user namespace", USER_NAMESPACES)?;
    // Rights over groups are given up first, or the kernel takes no map of them (user_namespaces(7)).
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        std::fs::write(format!("/proc/self/{file}"), text)
            .doing_with(format_args!("writing {file} of a user namespace"), USER_NAMESPACES)?;
    }
    Ok(())
}

/// What keeps users from making them.
const USER_NAMESPACES: &str = "this needs root, in a container with --privileged, or a kernel that lets this user \
                               make user namespaces: by sysctl, user.max_user_namespaces above 0, \
                               kernel.unprivileged_userns_clone=1 on Debian, \
                               kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu";

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use suimon_units::Duration;

    use super::*;

    /// A child of a process with threads has the locks that they held, and nobody who gives them back.
    #[test]
    fn a_program_starts_whatever_other_threads_are_at() {
        let program = Program {
            words: vec!["true".into()],
            environment: Vec::new(),
            namespace: Namespace::current().unwrap(),
            covered: Vec::new(),
            keeps_rights: false,
            terminal: None,
            in_front: false,
        };
        if let Err(error) = Confined::start(&program) {
            return eprintln!("skipped: {error}");
        }
        let over = AtomicBool::new(false);
        let allocate = || {
            while !over.load(Ordering::Relaxed) {
                (1..200).for_each(|kib| drop(black_box(vec![0_u8; kib << 10])));
            }
        };
        thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(allocate)));
            // A descriptor that closes without a word is all that `start` waits for, so one thread may wait for ever.
            let starting = scope.spawn(|| {
                for _ in 0..100 {
                    let mut started = Confined::start(&program).unwrap();
                    let outcome = started.wait(Some(Duration::from_secs(20))).unwrap();
                    if outcome != Some(Outcome::Exited(0)) {
                        return outcome;
                    }
                }
                Some(Outcome::Exited(0))
            });
            let limit = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while !starting.is_finished() {
                if std::time::Instant::now() > limit {
                    eprintln!("a child hangs between fork and exec");
                    std::process::abort();
                }
                thread::sleep(std::time::Duration::from_millis(10));
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(starting.join().unwrap(), Some(Outcome::Exited(0)));
        });
    }
}
