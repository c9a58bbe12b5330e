//! The `suimon` command: simulate links, compare senders, re-run papers.

#![forbid(unsafe_code)]

#[macro_use]
mod part;

mod attack;
mod championship;
mod compare;
mod error;
mod files;
#[cfg(feature = "live")]
mod guests;
mod link;
mod list;
#[cfg_attr(not(feature = "live"), path = "live_missing.rs")]
mod live;
mod new;
mod output;
mod paper;
#[cfg(feature = "bpf")]
mod paper_kernel;
#[cfg(feature = "capture")]
mod pcapng;
mod plain_table;
mod progress;
mod run;
#[cfg(any(feature = "bond", feature = "gateway", feature = "measure"))]
mod service;
mod shape;
mod trace;
#[cfg_attr(not(feature = "view"), path = "view_missing.rs")]
mod view;

module_of_part!("bond", BOND, bond);
module_of_part!("bpf", BPF, cc);
module_of_part!("capture", CAPTURE, estimate);
module_of_part!("gateway", GATEWAY, gateway);
module_of_part!("live", LIVE, lab);
module_of_part!("measure", MEASURE, measure);
module_of_part!("bpf", BPF, queue);
module_of_part!("live", LIVE, shell);
module_of_part!("parquet", PARQUET, sweep);

use std::error::Error;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::error::CliError;
use crate::part::VERSION_LINE;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a claim that once held no longer does, a bond under test failed, or a line was not measured; 2 the input is \
wrong; 3 a file could not be written; 4 the kernel does not allow it, or this build lacks it. suimon shell and suimon lab \
end as their programs do.";

/// Keeps queues short and links full: simulate a link, compare senders, see the result.
#[derive(Debug, Parser)]
#[command(name = "suimon", version = VERSION_LINE.as_str(), max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    New(new::Arguments),
    Compare(Box<compare::Arguments>),
    Championship(championship::Arguments),
    Attack(attack::Arguments),
    Sweep(sweep::Arguments),
    Estimate(estimate::Arguments),
    Paper(paper::Arguments),
    List(list::Arguments),
    Link(link::Arguments),
    Shape(shape::Arguments),
    Shell(shell::Arguments),
    Lab(lab::Arguments),
    Measure(measure::Arguments),
    Trace(trace::Arguments),
    Cc(cc::Arguments),
    Queue(queue::Arguments),
    Bond(bond::Arguments),
    Gateway(gateway::Arguments),
    Files(files::Arguments),
}

fn main() -> ExitCode {
    #[cfg(feature = "live")]
    if suimon_guest::init::is_init() {
        suimon_guest::init::main();
        return ExitCode::FAILURE;
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    let done = match &cli.command {
        Command::Shell(arguments) => return shell::execute(arguments).unwrap_or_else(|error| fail(&error)),
        Command::Lab(arguments) => return lab::execute(arguments).unwrap_or_else(|error| fail(&error)),
        Command::Run(arguments) => run::execute(arguments),
        Command::New(arguments) => new::execute(arguments),
        Command::Compare(arguments) => compare::execute(arguments),
        Command::Estimate(arguments) => estimate::execute(arguments),
        Command::Championship(arguments) => championship::execute(arguments),
        Command::Attack(arguments) => attack::execute(arguments),
        Command::Sweep(arguments) => sweep::execute(arguments),
        Command::Paper(arguments) => paper::execute(arguments),
        Command::Link(arguments) => link::execute(arguments),
        Command::Measure(arguments) => measure::execute(arguments),
        Command::List(arguments) => list::execute(arguments),
        Command::Trace(arguments) => trace::execute(arguments),
        Command::Cc(arguments) => cc::execute(arguments),
        Command::Queue(arguments) => queue::execute(arguments),
        Command::Shape(arguments) => shape::execute(arguments),
        Command::Bond(arguments) => bond::execute(arguments),
        Command::Gateway(arguments) => gateway::execute(arguments),
        Command::Files(arguments) => files::execute(arguments, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as `head` does.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        #[cfg(feature = "live")]
        Err(CliError::HandedOver) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Ends the program for options that do not read. A value that its option does not take is told as all other refusals.
fn refuse(error: &clap::Error) -> ! {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    if let Some(problem) = link_without_option(error.kind(), &context(ContextKind::InvalidArg)) {
        let error = CliError::Input(problem);
        output::tell(&error);
        std::process::exit(error.exit_code().into())
    }
    let (ErrorKind::ValueValidation, Some(problem)) = (error.kind(), error.source()) else { error.exit() };
    let (option, value) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue));
    // The option comes with what its value is called.
    let option = option.split(' ').next().unwrap_or_default();
    let problem = problem.to_string();
    // Some say what is accepted and not what is wrong, some neither.
    let is_whole = problem.split_once("accepted").is_some_and(|(what, _)| !what.is_empty());
    let problem = if is_whole { problem } else { format!("\"{value}\": {problem}") };
    let error = CliError::Input(format!("{option}: {problem}"));
    output::tell(&error);
    std::process::exit(error.exit_code().into())
}

/// The first thing that many try: a link without the option that it belongs to.
fn link_without_option(kind: ErrorKind, word: &str) -> Option<String> {
    let is_compare = std::env::args().nth(1).is_some_and(|command| command == "compare");
    let is_link =
        is_compare && kind == ErrorKind::UnknownArgument && word.starts_with(|c: char| c.is_ascii_digit());
    is_link.then(|| {
        format!("\"{word}\": is no option; accepted: a link behind --link, as in --link \"20/5Mbit 60ms\"")
    })
}

fn fail(error: &CliError) -> ExitCode {
    output::tell(error);
    ExitCode::from(error.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &clap::Command) {
        let mut seen = std::collections::HashSet::new();
        for one in command.get_subcommands() {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty(), "{} says nothing", one.get_name());
            assert!(seen.insert(about.clone()), "{} says the same as another: {about}", one.get_name());
            check(one);
        }
    }

    #[test]
    fn every_command_says_what_it_does_and_others_beside_it_do_not() {
        check(&Cli::command());
    }
}
