//! `suimon lab`: programs on an unmodified kernel in virtual time.

use std::collections::BTreeSet;
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration as RealTime, Instant};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use suimon_guest::{Job, Kernel, Lab, Store, Watcher};
use suimon_study::numbers::whole;
use suimon_units::{Bytes, Duration};

use crate::error::CliError;
use crate::guests::{LIMIT, LabOptions, command};
use crate::output::tell;

const EXAMPLE: &str = "\
Examples:
  suimon lab setup
  suimon lab -- suimon shell --link \"2Mbit 90ms\" -- ping -c 3 far
  suimon lab --twice -- sh my-experiment.sh
  suimon lab --kernel 6.1 --seed 2 -- suimon run my.toml --live

The program runs as root on a kernel of its own, whose clock is the count of the processor's instructions: the same \
job with the same seed gives the same bytes, however busy this machine is. Files that its arguments name are there, \
and files that it writes below the current folder come back. Its exit code is this command's.";

/// Run a program on an unmodified kernel in virtual time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The kernel, by the beginning of its version [default: the newest that is set up]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<String>,
    /// Seed of the kernel's random numbers
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// Run the program twice, and fail where anything that comes out differs
    #[arg(long)]
    twice: bool,
    /// Take this file or folder along; as often as needed
    #[arg(long, value_name = "PATH")]
    with: Vec<PathBuf>,
    /// Take this program along, with its libraries; as often as needed
    #[arg(long, value_name = "PROGRAM")]
    with_program: Vec<String>,
    /// The guest's memory
    #[arg(long, value_name = "SIZE", default_value_t = Lab::MEMORY)]
    memory: Bytes,
    /// End the guest after so much real time
    #[arg(long, value_name = "TIME", default_value_t = LIMIT)]
    limit: Duration,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Download a distribution's kernel and take it apart; nothing is installed
    Setup {
        /// The kernel, by the beginning of its version, as in 6.1 [default: the newest that there is]
        #[arg(long, value_name = "VERSION")]
        kernel: Option<String>,
        /// The archive of Debian packages [default: that of this machine's apt]
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
    },
    /// List the kernels that are set up
    List,
}

/// Runs this very command in a guest, without its options of guests, and takes `programs` along.
pub(crate) fn instead(options: &LabOptions, programs: Vec<String>) -> Result<ExitCode, CliError> {
    execute(&Arguments {
        action: None,
        kernel: options.lab_kernel.clone(),
        seed: options.lab.unwrap_or(1),
        twice: false,
        with: Vec::new(),
        with_program: programs,
        memory: Lab::MEMORY,
        limit: LIMIT,
        command: command(&[])?,
    })
}

pub(crate) fn execute(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let store = Store::of_user();
    match &arguments.action {
        Some(Action::Setup { kernel, mirror }) => {
            let kernel = Kernel::set_up(&store, kernel.as_deref(), mirror.as_deref(), &|what| tell(what))?;
            println!("{}", kernel.version);
            return Ok(ExitCode::SUCCESS);
        }
        Some(Action::List) => {
            Kernel::all(&store)?.iter().for_each(|kernel| println!("{}", kernel.version));
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    let lab = Lab::open(store, arguments.kernel.as_deref(), arguments.memory)?;
    let job = Job {
        words: own_program(&arguments.command)?,
        folder: std::env::current_dir()?,
        environment: Vec::new(),
        files: arguments.with.iter().cloned().chain(named_files(&arguments.command)).collect(),
        programs: arguments.with_program.clone(),
        seed: arguments.seed,
    };
    let mut shown = Shown::new();
    let outcome = lab.run(&job, arguments.limit, &mut shown)?;
    shown.bar.finish_and_clear();
    // Before files come back, so that both runs find the same.
    let again = if arguments.twice { Some(lab.run(&job, arguments.limit, &mut Silent)?) } else { None };
    for (path, contents) in &outcome.files {
        let path = job.folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&path, contents)?;
    }
    match again {
        Some(again) if again.digest != outcome.digest => {
            Err(CliError::Differs { one: outcome.digest, other: again.digest })
        }
        Some(_) => {
            tell(format!("the second run gave the same bytes: SHA-256 {}", outcome.digest));
            Ok(ExitCode::from(outcome.exit))
        }
        None => Ok(ExitCode::from(outcome.exit)),
    }
}

/// The words of a command, in which `suimon` is this program.
fn own_program(command: &[String]) -> Result<Vec<String>, CliError> {
    let mut words = command.to_vec();
    if words.first().is_some_and(|word| word == "suimon") {
        words[0] = std::env::current_exe()?.to_string_lossy().into_owned();
    }
    Ok(words)
}

/// The files that words name, or parts of them, and the files that those of them name that are scenarios.
pub(crate) fn named_files(words: &[String]) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for word in words {
        for part in word.split([' ', '=', ',', ';']).chain([word.as_str()]) {
            let path = Path::new(part);
            if !part.is_empty() && path.exists() && !is_of_the_system(path) && files.insert(path.to_owned()) {
                files.extend(files_of_scenario(path));
            }
        }
    }
    files
}

/// True for folders that every guest has, or that are too much to take along.
fn is_of_the_system(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| {
        path.components().count() <= 2 || ["/usr", "/proc", "/sys", "/dev"].iter().any(|root| path.starts_with(root))
    })
}

/// The files that the strings of a scenario name.
fn files_of_scenario(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        return entries.filter(|entry| entry.path().is_file()).flat_map(|entry| files_of_scenario(&entry.path())).collect();
    }
    let is_scenario = path.extension().is_some_and(|extension| extension == "toml");
    let text = is_scenario.then(|| fs::read_to_string(path).ok()).flatten().unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let strings = text.split('"').skip(1).step_by(2).flat_map(|string| string.split_whitespace());
    strings.map(|word| folder.join(word)).filter(|path| path.is_file()).collect()
}

/// Nobody watches.
struct Silent;

impl Watcher for Silent {
    fn on_step(&mut self, _: &str) {}
    fn on_output(&mut self, _: bool, _: &[u8]) {}
    fn on_time(&mut self, _: Duration) {}
}

/// Shows output as it comes, and how much time has passed in both worlds.
struct Shown {
    bar: ProgressBar,
    begun: Instant,
}

impl Shown {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("the template is constant");
        bar.set_style(style);
        Self { bar, begun: Instant::now() }
    }
}

impl Watcher for Shown {
    fn on_step(&mut self, what: &str) {
        tell(what);
        self.begun = Instant::now();
    }

    fn on_output(&mut self, is_error: bool, bytes: &[u8]) {
        let show = || {
            if is_error {
                return std::io::stderr().write_all(bytes);
            }
            std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush())
        };
        // Where nobody reads any more, the results still count.
        let _ = self.bar.suspend(show);
    }

    fn on_time(&mut self, virtual_time: Duration) {
        if self.begun.elapsed() > RealTime::from_secs(2) && std::io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            let real = self.begun.elapsed().as_secs();
            self.bar.set_message(format!("{virtual_time} of virtual time in {real} s"));
            self.bar.tick();
        }
    }
}
