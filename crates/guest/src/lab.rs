//! Guests that are ready, and jobs in them.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use sha2::{Digest, Sha256};
use suimon_units::{Bytes, Duration};

use crate::error::{At, GuestError};
use crate::frame::{Frames, Kind};
use crate::job::{ARCHIVE_AT, DESCRIPTION, Job, MAGIC};
use crate::kernel::Kernel;
use crate::machine::{Machine, Parts, ROOM, arguments, emulator_version};
use crate::store::{Scratch, Store};
use crate::tree::{Links, Tree, unpack};

/// A boot takes seconds; on a busy machine it may take this long.
const MAX_BOOT: Duration = Duration::from_secs(1_200);

/// The emulator saves the state of a guest that runs. On a very busy machine one came back with a broken stack, so that
/// a state is kept only once a job ran from it. Until then others are made, up to so many.
const MAX_BOOTS: usize = 3;

/// How often the results are looked at.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Programs that every guest has, where this machine has them.
const PROGRAMS: &[&str] = &[
    "awk",
    "bash",
    "basename",
    "cat",
    "chmod",
    "cmp",
    "cp",
    "curl",
    "cut",
    "date",
    "dd",
    "depmod",
    "diff",
    "dirname",
    "env",
    "ethtool",
    "expr",
    "false",
    "find",
    "grep",
    "gzip",
    "head",
    "hostname",
    "id",
    "ip",
    "iperf3",
    "kill",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mount",
    "mv",
    "nft",
    "nproc",
    "od",
    "ping",
    "ps",
    "pwd",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setpriv",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "ss",
    "stat",
    "sysctl",
    "tail",
    "tc",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "uname",
    "uniq",
    "unshare",
    "wc",
    "xargs",
];

/// The events of a run, as they come.
pub trait Watcher {
    /// Something takes a while.
    fn on_step(&mut self, what: &str);
    /// The program wrote to its standard output, or to its standard error.
    fn on_output(&mut self, is_error: bool, bytes: &[u8]);
    /// So much virtual time has passed since the program began.
    fn on_time(&mut self, virtual_time: Duration);
}

/// Nobody wants to know.
struct Unwatched;

impl Watcher for Unwatched {
    fn on_step(&mut self, _what: &str) {}
    fn on_output(&mut self, _is_error: bool, _bytes: &[u8]) {}
    fn on_time(&mut self, _virtual_time: Duration) {}
}

/// The results of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit code.
    pub exit: u8,
    /// The files that it wrote below its folder: their paths there, and contents.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The digest (SHA-256) of everything that came out of the guest, in hexadecimal digits.
    pub digest: String,
}

/// A kernel, and guests on it.
#[derive(Debug, Clone)]
pub struct Lab {
    store: Store,
    kernel: Kernel,
    /// This program, which is the guest's first process.
    program: PathBuf,
    memory: Bytes,
}

impl Lab {
    /// The memory of a guest, where nothing else is asked for.
    pub const MEMORY: Bytes = Bytes::new(512 << 20);

    /// A lab on the newest kernel whose version begins with `kernel`.
    ///
    /// # Errors
    /// Where none is set up, or there is no emulator.
    pub fn open(store: Store, kernel: Option<&str>, memory: Bytes) -> Result<Self, GuestError> {
        emulator_version()?;
        let kernel = Kernel::find(&store, kernel)?;
        let program = std::env::current_exe().at("this program")?;
        Ok(Self { store, kernel, program, memory })
    }

    /// The version of the kernel.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel.version
    }

    /// Runs `job` to its end, for at most `limit` of real time.
    ///
    /// # Errors
    /// Where the guest does not start, does not end in time, or ends without a result.
    pub fn run(&self, job: &Job, limit: Duration, watcher: &mut dyn Watcher) -> Result<Outcome, GuestError> {
        let state = self.state(watcher)?;
        self.run_from(&state, job, limit, watcher)
    }

    /// Runs `job` in a guest that goes on from `state`.
    fn run_from(
        &self,
        state: &Path,
        job: &Job,
        limit: Duration,
        watcher: &mut dyn Watcher,
    ) -> Result<Outcome, GuestError> {
        let work = self.store.scratch()?;
        self.hand_over(job, &work.path().join("job"))?;
        let machine = Machine::start(&self.parts(state), work.path(), Some(&state.join("state")))?;
        let mut results = Results::of(machine, work.path(), limit)?;
        let mut archive = Vec::new();
        let exit = loop {
            let (kind, contents) = results.next()?;
            match kind {
                Kind::Ready => {}
                Kind::Output | Kind::Error => watcher.on_output(kind == Kind::Error, &contents),
                Kind::Time => {
                    let nanos = contents.as_slice().try_into().map_or(0, u64::from_le_bytes);
                    watcher.on_time(Duration::from_nanos(nanos));
                }
                Kind::Files => archive.extend(contents),
                Kind::Exit => break contents.first().copied().unwrap_or(1),
            }
        };
        let digest = results.digest();
        Ok(Outcome { exit, files: files_of(&archive, &work.path().join("files"))?, digest })
    }

    fn parts(&self, state: &Path) -> Parts {
        Parts { kernel: self.kernel.image(), initrd: state.join("initrd"), memory: self.memory }
    }

    /// Writes the file from which a guest reads its job.
    fn hand_over(&self, job: &Job, path: &Path) -> Result<(), GuestError> {
        let mut tree = Tree::default();
        tree.directory(&job.folder);
        let is_own = job.words.first().is_some_and(|word| Path::new(word) == self.program);
        for program in job.words.first().filter(|_| !is_own).into_iter().chain(&job.programs) {
            tree.with_program(program)?;
        }
        for file in &job.files {
            tree.with_path(file)?;
        }
        tree.file(DESCRIPTION, serde_json::to_vec(job).map_err(std::io::Error::from).at(path)?);
        let mut file = File::create(path).at(path)?;
        file.seek(SeekFrom::Start(ARCHIVE_AT)).at(path)?;
        let mut archive = Vec::new();
        tree.write(&mut archive)?;
        let size = Bytes::new(archive.len() as u64);
        if size > ROOM {
            return Err(GuestError::TooLarge { size, limit: ROOM });
        }
        file.write_all(&archive).at(path)?;
        file.set_len(ROOM.get() + ARCHIVE_AT).at(path)?;
        file.rewind().at(path)?;
        file.write_all(&[MAGIC.as_slice(), &size.get().to_le_bytes()].concat()).at(path)
    }

    /// The folder of a guest that has booted and waits, made where there is none yet.
    fn state(&self, watcher: &mut dyn Watcher) -> Result<PathBuf, GuestError> {
        let tree = self.base()?;
        let summary =
            format!("{}\n{}\n{}", emulator_version()?, arguments(self.memory).join(" "), tree.summary()?);
        let key = hexadecimal(&Sha256::digest(summary))[..16].to_owned();
        let states = self.store.states()?;
        let state = states.join(&key);
        if state.join("state").exists() {
            return Ok(state);
        }
        // Others that want the same wait for it.
        let lock = File::create(states.join(format!("{key}.lock"))).at(&states)?;
        lock.lock().at(&states)?;
        if state.join("state").exists() {
            return Ok(state);
        }
        watcher.on_step(&format!("starting Linux {} once; later runs go on from there", self.kernel.version));
        let mut boots = 0;
        let made = loop {
            let made = self.boot(&tree)?;
            boots += 1;
            match self.run_from(made.path(), &Job::nothing(), MAX_BOOT, &mut Unwatched) {
                Err(error) if boots == MAX_BOOTS => return Err(error),
                Err(_) => {}
                Ok(_) => break made,
            }
        };
        self.forget_older(&states, &key)?;
        fs::rename(made.keep(), &state).at(&state)?;
        Ok(state)
    }

    /// A guest with these files that has booted and waits, in a folder of its own.
    fn boot(&self, tree: &Tree) -> Result<Scratch, GuestError> {
        let made = self.store.scratch()?;
        let initrd = made.path().join("initrd");
        tree.write(File::create(&initrd).at(&initrd)?)?;
        let blank = made.path().join("job");
        File::create(&blank).and_then(|file| file.set_len(ROOM.get() + ARCHIVE_AT)).at(&blank)?;
        let machine = Machine::start(&self.parts(made.path()), made.path(), None)?;
        let mut results = Results::of(machine, made.path(), MAX_BOOT)?;
        while results.next()?.0 != Kind::Ready {}
        results.machine.save(&made.path().join("state"))?;
        Ok(made)
    }

    /// Removes the oldest states beside the one of `key`: each takes some 350 MB.
    fn forget_older(&self, states: &Path, key: &str) -> Result<(), GuestError> {
        const KEPT: usize = 3;
        let mut others = Vec::new();
        for entry in fs::read_dir(states).at(states)?.flatten() {
            let made = entry.metadata().and_then(|state| state.modified());
            if let Ok(made) = made
                && entry.path().is_dir()
                && entry.file_name() != key
            {
                others.push((made, entry.path()));
            }
        }
        others.sort();
        let spare = others.len().saturating_sub(KEPT);
        // One that another process is about to use goes on from what it has open, or makes its own.
        others.into_iter().take(spare).try_for_each(|(_, path)| fs::remove_dir_all(&path).at(&path))
    }

    /// The files of every guest.
    fn base(&self) -> Result<Tree, GuestError> {
        let mut tree = Tree::default();
        for folder in
            ["/dev", "/proc", "/sys", "/tmp", "/run", "/root", "/etc", "/var/tmp", "/usr/bin", "/usr/sbin"]
        {
            tree.directory(folder);
        }
        for (link, target) in
            [("/var/run", "/run"), ("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib")]
        {
            tree.link(link, target);
        }
        for program in PROGRAMS {
            match tree.with_program(program) {
                Err(GuestError::NoProgram(_)) | Ok(()) => {}
                Err(error) => return Err(error),
            }
        }
        tree.with_program("kmod")?;
        for name in ["modprobe", "insmod", "rmmod", "lsmod"] {
            tree.link(format!("/usr/sbin/{name}"), "/usr/bin/kmod");
        }
        let own = self.program.to_string_lossy();
        tree.with_program(&own)?;
        if self.program != Path::new("/usr/bin/suimon") {
            tree.link("/usr/bin/suimon", &self.program);
        }
        tree.link("/init", &self.program);
        let kernel = &self.kernel.folder;
        add_modules(&mut tree, kernel, &kernel.join("lib/modules"))?;
        for (path, contents) in [
            (
                "/etc/passwd",
                "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
            ),
            ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
            ("/etc/hosts", "127.0.0.1 localhost suimon\n::1 localhost\n"),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
        ] {
            tree.file(path, contents);
        }
        Ok(tree)
    }
}

fn add_modules(tree: &mut Tree, root: &Path, folder: &Path) -> Result<(), GuestError> {
    let mut entries: Vec<_> = fs::read_dir(folder).at(folder)?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let within = Path::new("/usr").join(path.strip_prefix(root).unwrap_or(&path));
        if path.is_dir() {
            add_modules(tree, root, &path)?;
        } else {
            tree.copy(within, path);
        }
    }
    Ok(())
}

/// The files in the archive that a guest sent.
fn files_of(archive: &[u8], folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, GuestError> {
    if archive.is_empty() {
        return Ok(Vec::new());
    }
    fs::create_dir_all(folder).at(folder)?;
    let paths = unpack(archive, folder, Links::LeftOut).at(folder)?;
    paths.into_iter().map(|path| Ok((path.clone(), fs::read(folder.join(&path)).at(&path)?))).collect()
}

/// Frames of a machine, as it writes them.
struct Results {
    machine: Machine,
    file: File,
    path: PathBuf,
    frames: Frames,
    digest: Sha256,
    begun: Instant,
    limit: Duration,
}

impl Results {
    fn of(machine: Machine, folder: &Path, limit: Duration) -> Result<Self, GuestError> {
        let path = folder.join("results");
        // The emulator makes the file as it starts, and empties one that is there.
        let file = File::options().create(true).append(true).read(true).open(&path).at(&path)?;
        let (frames, digest, begun) = (Frames::default(), Sha256::new(), Instant::now());
        Ok(Self { machine, file, path, frames, digest, begun, limit })
    }

    /// The next frame; waits for it.
    fn next(&mut self) -> Result<(Kind, Vec<u8>), GuestError> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            if let Some((kind, contents)) = self.frames.next() {
                self.digest.update([kind as u8]);
                self.digest.update(contents);
                return Ok((kind, contents.to_vec()));
            }
            // In this order: what is written before the end is read after it.
            let ended = self.machine.ended()?.is_some();
            let read = self.file.read(&mut bytes).at(&self.path)?;
            self.frames.push(&bytes[..read]);
            if read > 0 {
                continue;
            }
            if ended {
                return Err(GuestError::Ended { last_words: self.machine.last_words() });
            }
            if self.begun.elapsed() > std::time::Duration::from_nanos(self.limit.as_nanos()) {
                return Err(GuestError::OutOfTime { limit: self.limit });
            }
            sleep(LOOK);
        }
    }

    fn digest(&self) -> String {
        hexadecimal(&self.digest.clone().finalize())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
