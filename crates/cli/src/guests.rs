//! The runs of a command, each in a guest of its own.
//!
//! A guest runs the same command, told to make one of the runs only. So whatever a command reads and decides, it reads
//! and decides in the guest as here, and nothing but the result has to be handed over.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use suimon_guest::{Job, Lab, Store, Watcher};
use suimon_results::RunResult;
use suimon_study::numbers::whole;
use suimon_units::{Duration, Rate};

use crate::error::CliError;
use crate::lab::named_files;
use crate::output::tell;
use crate::progress::Progress;

/// The variable that names the only run to make.
const ONLY: &str = "SUIMON_ONLY_RUN";
/// The variable that names the file in which all results are handed over, as the Python package asks for them.
const ALL: &str = "SUIMON_RESULTS";
/// The file in which its result is handed over.
const RESULT: &str = ".suimon-run-result";
/// A guest that has not come to its end by then is ended.
pub(crate) const LIMIT: Duration = Duration::from_secs(3_600);

/// What the links of a run may carry together. A guest's processor executes 10^9 instructions a second. With 50 Mbit/s the
/// emulator there is 50 to 100 us late for one packet of a hundred, and with 100 Mbit/s 250 us, which is too late to count.
pub(crate) const GUEST_LOAD: Rate = Rate::from_bps(60_000_000);

/// Options of commands that can run in guests.
#[derive(Debug, Args, Default)]
pub(crate) struct LabOptions {
    /// Run on an unmodified kernel in virtual time, see suimon lab; the kernel's random numbers have this seed
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(value_parser = whole)]
    pub(crate) lab: Option<u64>,
    /// With --lab: the kernel, by the beginning of its version [default: the newest that is set up]
    #[arg(long, value_name = "VERSION", requires = "lab")]
    pub(crate) lab_kernel: Option<String>,
}

/// The only run that this process is to make: its place among all.
pub(crate) struct Only(pub(crate) usize);

impl Only {
    /// The run that this process was told to make, where it was told one.
    pub(crate) fn here() -> Option<Self> {
        std::env::var(ONLY).ok()?.parse().ok().map(Self)
    }

    /// Writes the result for the process outside. There is nothing more to do then, which is said by an error.
    pub(crate) fn hand_over<T: Serialize>(&self, results: &[T]) -> Result<Vec<T>, CliError> {
        let bytes = postcard::to_stdvec(results).map_err(std::io::Error::other)?;
        std::fs::write(RESULT, bytes)?;
        Err(CliError::HandedOver)
    }
}

/// Writes all results for a process that asked for them, which ends this one; else gives them back.
pub(crate) fn hand_over_all(results: Vec<RunResult>) -> Result<Vec<RunResult>, CliError> {
    let Some(path) = std::env::var_os(ALL) else { return Ok(results) };
    let bytes = postcard::to_stdvec(&results).map_err(std::io::Error::other)?;
    std::fs::write(path, bytes)?;
    Err(CliError::HandedOver)
}

/// Guests that each make one run of this command.
pub(crate) struct Guests {
    lab: Lab,
    words: Vec<String>,
    carried: BTreeSet<PathBuf>,
    programs: Vec<String>,
    seed: u64,
}

impl Guests {
    /// Guests that run this command with `words` in place of `--lab`, and take along the files that the command names and
    /// these `files`.
    pub(crate) fn of_command(
        words: &[&str],
        files: &[PathBuf],
        options: &LabOptions,
    ) -> Result<Self, CliError> {
        let mut carried = named_files(&command(words)?[1..]);
        carried.extend(files.iter().flat_map(|file| named_files(&[file.to_string_lossy().into_owned()])));
        Self::open(words, carried, options)
    }

    /// Guests that run this command with `words` in place of `--lab`, and take files along.
    pub(crate) fn open(
        words: &[&str],
        carried: BTreeSet<PathBuf>,
        options: &LabOptions,
    ) -> Result<Self, CliError> {
        let lab = Lab::open(Store::of_user(), options.lab_kernel.as_deref(), Lab::MEMORY)?;
        let words = command(words)?;
        Ok(Self { lab, words, carried, programs: Vec::new(), seed: options.lab.unwrap_or(1) })
    }

    /// They take these programs along too.
    #[cfg(feature = "bpf")]
    pub(crate) fn with_programs(self, programs: &[&str]) -> Self {
        Self { programs: programs.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    /// The version of their kernel.
    #[cfg(feature = "parquet")]
    pub(crate) fn kernel(&self) -> &str {
        self.lab.kernel()
    }

    /// The run of this number among all of the command.
    pub(crate) fn run<T: DeserializeOwned>(&self, nth: usize, progress: &Progress) -> Result<T, CliError> {
        let job = Job {
            words: self.words.clone(),
            folder: std::env::current_dir()?,
            environment: vec![(ONLY.to_owned(), nth.to_string())],
            files: self.carried.iter().cloned().collect(),
            programs: self.programs.clone(),
            seed: self.seed,
        };
        let mut watcher = Counted { progress, told: Duration::ZERO, errors: Vec::new() };
        let outcome = self.lab.run(&job, LIMIT, &mut watcher)?;
        let file = outcome.files.iter().find(|(path, _)| path.as_os_str() == RESULT);
        let result = file.and_then(|(_, bytes)| postcard::from_bytes::<Vec<T>>(bytes).ok()?.pop());
        result.ok_or_else(|| {
            let said = String::from_utf8_lossy(&watcher.errors).trim().to_owned();
            CliError::InGuest {
                said: if said.is_empty() { format!("exit code {}", outcome.exit) } else { said },
            }
        })
    }

    /// All runs of these numbers, each in a guest, as many at once as this machine has cores. They take `time` together.
    pub(crate) fn run_all<T: DeserializeOwned + Send>(
        &self,
        numbers: Range<usize>,
        time: Duration,
    ) -> Result<Vec<T>, CliError> {
        let progress = Progress::new(time);
        let next = AtomicUsize::new(numbers.start);
        let results: Mutex<Vec<Option<Result<T, CliError>>>> =
            Mutex::new(numbers.clone().map(|_| None).collect());
        let serve = || {
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                if run >= numbers.end {
                    return;
                }
                let result = self.run(run, &progress);
                let failed = result.is_err();
                if let Ok(mut results) = results.lock() {
                    results[run - numbers.start] = Some(result);
                }
                if failed {
                    // The others need not begin.
                    next.store(numbers.end, Ordering::Relaxed);
                }
            }
        };
        // The first guest may have to boot, from which the others go on.
        thread::scope(|scope| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..cores.min(numbers.len()) {
                scope.spawn(serve);
            }
        });
        let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (made, mut missing): (Vec<_>, Vec<_>) = results.into_iter().partition(Option::is_some);
        let made = made.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
        match missing.pop() {
            None => Ok(made),
            Some(_) => Err(CliError::Input("--lab: a guest gave no result".to_owned())),
        }
    }
}

/// This command as it runs in a guest: these words stand in place of `--lab`, but for those that it has already.
pub(crate) fn command(words: &[&str]) -> Result<Vec<String>, CliError> {
    let is_new = |word: &&&str| !std::env::args().any(|given| given == **word);
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let mut command = vec![own];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--" => {
                command.push(word);
                command.extend(given);
                break;
            }
            "--lab-kernel" => drop(given.next()),
            _ if word == "--lab" || word.starts_with("--lab=") => {
                command.extend(words.iter().filter(is_new).map(|word| (*word).to_owned()));
            }
            _ if word.starts_with("--lab-kernel=") => {}
            _ => command.push(word),
        }
    }
    Ok(command)
}

/// The watcher of one guest: it counts virtual time, and keeps complaints.
struct Counted<'a> {
    progress: &'a Progress,
    told: Duration,
    errors: Vec<u8>,
}

impl Watcher for Counted<'_> {
    fn on_step(&mut self, what: &str) {
        tell(what);
    }

    fn on_output(&mut self, is_error: bool, bytes: &[u8]) {
        if is_error {
            self.errors.extend(bytes);
        }
    }

    fn on_time(&mut self, virtual_time: Duration) {
        let more = virtual_time.saturating_sub(self.told);
        self.told = virtual_time;
        self.progress.advance_by(more.as_nanos());
    }
}
