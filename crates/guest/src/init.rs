//! The guest's first process: it readies the guest, waits for a job, runs it, and sends what comes out of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use suimon_linux::guest::IN_GUEST;
use suimon_linux::random::seed_kernel;

use crate::error::{At, GuestError};
use crate::frame::{self, Kind};
use crate::job::{ARCHIVE_AT, DESCRIPTION, Job, MAGIC};
use crate::tree::{Links, Tree, unpack};

/// The device that holds the job.
const JOB: &str = "/dev/pmem0";
/// The port that takes the results.
const RESULTS: &str = "/dev/vport0p1";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Deferred work of the boot disturbs timers for some seconds after it.
const WARM_UP: Duration = Duration::from_secs(10);
/// How often a guest that waits looks for a job.
const LOOK: Duration = Duration::from_secs(1);
/// A job begins at a multiple of this time, so that when its guest was saved makes no difference.
const ALIGNED_TO: u64 = 10;
/// The size of the pieces in which files are sent.
const PIECE: usize = 1 << 16;

/// Modules without which a guest is none, and modules whose loading would disturb what is measured.
const NEEDED: &[&str] = &["nfit", "nd_pmem", "virtio_pci", "virtio_console"];
const USEFUL: &[&str] = &[
    "veth",
    "tun",
    "ifb",
    "sch_tbf",
    "sch_netem",
    "sch_ingress",
    "cls_bpf",
    "act_mirred",
    "cls_u32",
    "cls_matchall",
    "sch_codel",
    "sch_fq_codel",
    "sch_pie",
    "sch_fq_pie",
    "sch_red",
    "sch_cake",
    "sch_sfq",
    "sch_choke",
    "sch_fq",
    "sch_htb",
    "tcp_bbr",
    "tcp_vegas",
    "tcp_westwood",
    "tcp_illinois",
    "tcp_htcp",
    "tcp_bic",
    "tcp_hybla",
    "tcp_veno",
    "tcp_dctcp",
    "tcp_highspeed",
    "tcp_scalable",
    "tcp_yeah",
    "tcp_lp",
    "tcp_nv",
    "tcp_cdg",
];

/// True where this process is a guest's first.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init")
}

/// The whole life of a guest. Returns only where the guest cannot go on; the kernel ends then.
pub fn main() {
    if let Err(error) = live() {
        // Nothing else can be told than on the console.
        eprintln!("suimon: {error}");
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

fn live() -> Result<(), GuestError> {
    ready()?;
    let results = OpenOptions::new().write(true).open(RESULTS).at(RESULTS)?;
    let results = Arc::new(Mutex::new(results));
    thread::sleep(WARM_UP);
    count_on();
    send(&results, Kind::Ready, &[]);
    let exit = match wait_for_job().and_then(|job| run(&job, &results)) {
        Ok(exit) => exit,
        Err(error) => {
            send(&results, Kind::Error, format!("suimon: in the guest: {error}\n").as_bytes());
            125
        }
    };
    send(&results, Kind::Exit, &[exit]);
    Ok(())
}

/// Mounts, links and modules, as programs expect them.
fn ready() -> Result<(), GuestError> {
    // `PATH` is for the programs that this one starts below: there is one thread yet.
    for (what, path) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("bpf", "/sys/fs/bpf"),
        ("cgroup2", "/sys/fs/cgroup"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        mount(Some(what), path, Some(what), MsFlags::empty(), None::<&str>).at(path)?;
    }
    for folder in ["/dev/net", "/dev/shm", "/dev/pts", "/run/lock", "/run/netns"] {
        fs::create_dir_all(folder).at(folder)?;
    }
    mount(Some("devpts"), "/dev/pts", Some("devpts"), MsFlags::empty(), None::<&str>).at("/dev/pts")?;
    for (link, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "fd/0"),
        ("/dev/stdout", "fd/1"),
        ("/dev/stderr", "fd/2"),
    ] {
        let _ = symlink(target, link);
    }
    start("modprobe", &["-qa"], NEEDED)?;
    // Kernels differ in what they have.
    let _ = start("modprobe", &["-qa"], USEFUL);
    start("ip", &["link", "set", "lo"], &["up"])?;
    give_tcp_memory()?;
    nix::unistd::sethostname("suimon").at("the host's name")?;
    [RESULTS, JOB].into_iter().try_for_each(wait_for)
}

/// Lets all sockets of TCP hold half of the memory. The kernel's own bound is a tenth, which connections with windows of
/// some megabytes reach in a small guest; it then drops what arrives, which no queue shows.
fn give_tcp_memory() -> Result<(), GuestError> {
    const BOUNDS: &str = "/proc/sys/net/ipv4/tcp_mem";
    let Some(memory) = sysconf(SysconfVar::_PHYS_PAGES).at(BOUNDS)? else { return Ok(()) };
    let pages = memory / 2;
    fs::write(BOUNDS, format!("{pages} {pages} {pages}")).at(BOUNDS)
}

/// Waits until a device is there, whose module has just been loaded. A guest without it must not be saved.
fn wait_for(device: &str) -> Result<(), GuestError> {
    for _ in 0..1_000 {
        if Path::new(device).exists() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(io::Error::from(io::ErrorKind::NotFound)).at(device)
}

/// Lets the processor work until the count of its instructions is past 2^32 and before 2^32 + 2^31. The emulator takes a
/// saved guest's count for a number of 32 bits with a sign, and ends where it is negative.
fn count_on() {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let mut times = uptime.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let busy = times.next().unwrap_or_default() - times.next().unwrap_or_default();
    // An instruction takes a nanosecond.
    let wanted = (1_u64 << 32) + (1 << 30);
    let until =
        monotonic() + Duration::from_nanos(wanted).saturating_sub(Duration::from_secs_f64(busy.max(0.0)));
    while monotonic() < until {
        std::hint::spin_loop();
    }
}

fn start(program: &str, options: &[&str], arguments: &[&str]) -> Result<(), GuestError> {
    let status = Command::new(program)
        .args(options)
        .args(arguments)
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .status()
        .at(program)?;
    if status.success() {
        return Ok(());
    }
    Err(GuestError::Failed { program: program.to_owned(), message: format!("{arguments:?}: {status}") })
}

fn send(results: &Mutex<File>, kind: Kind, contents: &[u8]) {
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    // Nobody is there to be told where this fails; the missing end is seen from outside.
    let _ = frame::write(&mut *results, kind, contents);
}

/// Waits until the device holds a job, and unpacks it.
fn wait_for_job() -> Result<Job, GuestError> {
    loop {
        let mut device = File::open(JOB).at(JOB)?;
        // What was read before the guest was saved is not asked for again.
        posix_fadvise(device.as_fd(), 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).at(JOB)?;
        let mut begin = [0; 16];
        device.read_exact(&mut begin).at(JOB)?;
        let (magic, size) = begin.split_at(8);
        if magic == MAGIC {
            let size = size.try_into().map_or(0, u64::from_le_bytes);
            device.seek(SeekFrom::Start(ARCHIVE_AT)).at(JOB)?;
            let archive = io::BufReader::with_capacity(1 << 20, device.take(size));
            unpack(archive, Path::new("/"), Links::Made).at(JOB)?;
            let text = fs::read(DESCRIPTION).at(DESCRIPTION)?;
            return serde_json::from_slice(&text).map_err(io::Error::from).at(DESCRIPTION);
        }
        thread::sleep(LOOK);
    }
}

/// Runs the program of `job`, and returns its exit code.
fn run(job: &Job, results: &Arc<Mutex<File>>) -> Result<u8, GuestError> {
    let before = files_below(&job.folder);
    let (program, arguments) = job.words.split_first().ok_or_else(|| GuestError::NoProgram(String::new()))?;
    seed_kernel(job.seed)?;
    align();
    let begun = monotonic();
    let release =
        nix::sys::utsname::uname().at("the kernel's name")?.release().to_string_lossy().into_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(&job.folder)
        .env_clear()
        .envs([("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8")])
        .env(IN_GUEST, format!("Linux {release}, seed {}", job.seed))
        .envs(job.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .at(program)?;
    let forwards = forward(&mut child, results);
    let ends = Arc::new(AtomicBool::new(false));
    let clock = tell_time(begun, Arc::clone(results), Arc::clone(&ends));
    let status = child.wait().at(program)?;
    ends.store(true, Ordering::Relaxed);
    // These threads only read and write, which does not panic. What the program left running may hold its output open.
    drop(forwards.into_iter().map(|thread| wait_a_while(&thread)).collect::<Vec<_>>());
    drop(clock);
    send(results, Kind::Time, &nanos(monotonic() - begun).to_le_bytes());
    send_files(&job.folder, &before, results)?;
    Ok(exit_code(status))
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn forward(child: &mut Child, results: &Arc<Mutex<File>>) -> Vec<thread::JoinHandle<()>> {
    let output = child.stdout.take().map(|pipe| (Kind::Output, Box::new(pipe) as Box<dyn Read + Send>));
    let errors = child.stderr.take().map(|pipe| (Kind::Error, Box::new(pipe) as Box<dyn Read + Send>));
    let each = |(kind, mut pipe): (Kind, Box<dyn Read + Send>)| {
        let results = Arc::clone(results);
        thread::spawn(move || {
            let mut bytes = vec![0; PIECE];
            while let Ok(read) = pipe.read(&mut bytes)
                && read > 0
            {
                send(&results, kind, &bytes[..read]);
            }
        })
    };
    output.into_iter().chain(errors).map(each).collect()
}

/// Waits until a thread ends, at most a virtual second.
fn wait_a_while(thread: &thread::JoinHandle<()>) {
    let _ = (0..100).find(|_| {
        thread.is_finished() || {
            thread::sleep(Duration::from_millis(10));
            false
        }
    });
}

/// Tells the time each second, until all `ends`.
fn tell_time(begun: Duration, results: Arc<Mutex<File>>, ends: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            if ends.load(Ordering::Relaxed) {
                return;
            }
            send(&results, Kind::Time, &nanos(monotonic() - begun).to_le_bytes());
        }
    })
}

fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits for the next multiple of [`ALIGNED_TO`] seconds.
fn align() {
    let now = monotonic();
    let next = Duration::from_secs((now.as_secs() / ALIGNED_TO + 1) * ALIGNED_TO);
    thread::sleep(next - now);
}

/// Files below a folder, with the times at which they were changed.
fn files_below(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && !is_of_the_system(&entry.path()) {
                folders.push(entry.path());
            } else if about.is_file() {
                found.push((entry.path(), about.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
    }
    found.sort();
    found
}

fn is_of_the_system(path: &Path) -> bool {
    ["/proc", "/sys", "/dev", "/usr", "/run"].iter().any(|folder| path == Path::new(folder))
}

/// Sends the files below `folder` that are new or were changed.
fn send_files(
    folder: &Path,
    before: &[(PathBuf, SystemTime)],
    results: &Mutex<File>,
) -> Result<(), GuestError> {
    let mut tree = Tree::default();
    let mut is_empty = true;
    for (path, changed) in files_below(folder) {
        if before.binary_search(&(path.clone(), changed)).is_err() {
            let within = path.strip_prefix(folder).unwrap_or(&path);
            tree.copy(Path::new("/").join(within), &path);
            is_empty = false;
        }
    }
    if is_empty {
        return Ok(());
    }
    let mut archive = Vec::new();
    tree.write(&mut archive)?;
    archive.chunks(PIECE).for_each(|piece| send(results, Kind::Files, piece));
    results.lock().unwrap_or_else(PoisonError::into_inner).flush().at(RESULTS)
}
