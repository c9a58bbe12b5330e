//! `suimon compare`: senders over a link, without writing a file.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use suimon_scenario::{Run, ScenarioError, StackProfile};
use suimon_study::{Findings, PathQuestion, Question};
use suimon_units::{Bytes, Duration};

use crate::error::CliError;
use crate::numbers::{count, whole};
use crate::output::{OutputOptions, command_line};
use crate::progress::simulate;

const EXAMPLE: &str = "\
Examples:
  suimon compare --link \"2Mbit 180ms 96kB\" --cc reno,cubic,vegas,fs-at
  suimon compare --link \"hsdpa PA3 10dB 180ms\" --cc reno,vegas,drs,fs-at
  suimon compare --link \"wifi 802.11b 11Mbit\" --cc cubic,fs-at
  suimon compare --trace lte.down --rtt 40ms --buffer 100packets --cc cubic,fs-at
  suimon compare --link \"10Mbit 40ms 50packets\" --cc reno,fs-at --mixed --flows 4
  suimon compare --link \"10Mbit 28ms 150kB\" --queue droptail,red,rtt-aqm --cc reno --flows 30,50,30@100s

  suimon compare --paths \"10Mbit 10ms; 3Mbit 60ms\" --scheduler look-ahead,least-buffered
  suimon compare --paths \"lte.down 90ms 60packets; wifi 802.11b 11Mbit\" --cc reno --receive-buffer 256kB
  suimon compare --paths \"10Mbit 10ms outages=10s..20s; 4Mbit 60ms\" --size 30MB

A link is RATE ROUND-TRIP-TIME [BUFFER] [loss=1%] [jitter=1ms] [reorder=1%/10ms] [outages=10s..15s].
In place of RATE: a file with a trace, trace=FILE, schedule=FILE, hsdpa PROFILE GEOMETRY,
wifi STANDARD RATE.";

/// Compare senders over a link, or path schedulers over several
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, group = ArgGroup::new("over").args(["link", "trace", "paths"]).required(true))]
pub(crate) struct Arguments {
    /// The link, as in "2Mbit 180ms 96kB"
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// One stream over several links, apart by ";": compares path schedulers
    #[arg(long, value_name = "LINKS", conflicts_with_all = ["queue", "flows", "mixed"])]
    paths: Option<String>,
    /// With --paths: path schedulers (see suimon list) [default:
    /// look-ahead,blest,ecf,lowest-rtt,least-buffered,round-robin]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    scheduler: Vec<String>,
    /// With --paths: what each flow may hold, unsent or unacknowledged [default: 4MiB]
    #[arg(long, value_name = "BYTES")]
    send_buffer: Option<Bytes>,
    /// With --paths: what may wait at the receiver for data of other flows [default: 4MiB]
    #[arg(long, value_name = "BYTES")]
    receive_buffer: Option<Bytes>,
    /// A measured link in place of a rate: a Mahimahi trace, or CSV with time and rate
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// With --trace: round-trip time without queueing
    #[arg(long, value_name = "TIME", default_value = "40ms", requires = "trace")]
    rtt: Duration,
    /// With --trace: what may wait, as in 96kB, 100packets, unbounded
    #[arg(long, value_name = "BUFFER", requires = "trace")]
    buffer: Option<String>,
    /// Algorithms; a receive window such as drs means Reno under it (see suimon list) [default:
    /// reno,cubic,vegas,drs,fs-at; reno where queues are compared; cubic with --paths]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cc: Vec<String>,
    /// Queue disciplines in front of the link; flows use ECN where one marks
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "droptail")]
    queue: Vec<String>,
    /// Flows of each algorithm; 30,50,30@100s: so many, changing every 100 s
    #[arg(long, value_name = "COUNTS", default_value = "1", allow_negative_numbers = true)]
    flows: String,
    /// All algorithms share the link, instead of having it for themselves one after the other
    #[arg(long)]
    mixed: bool,
    /// When a run ends at the latest [default: 60s, or as long as --flows says]
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// Leave the beginning out of totals and percentiles
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warmup: Duration,
    /// How much each flow sends [default: as much as it can]
    #[arg(long, value_name = "BYTES")]
    size: Option<Bytes>,
    /// Receive buffer, the most that a receiver advertises
    #[arg(long, value_name = "BYTES", default_value = "6MiB")]
    window: Bytes,
    #[arg(long, value_name = "NAME", default_value = "linux-6", help = profiles())]
    profile: String,
    /// The first seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,
    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    seeds: NonZeroUsize,
    #[command(flatten)]
    output: OutputOptions,
}

fn profiles() -> String {
    format!("Profile of the TCP stacks: {}", StackProfile::NAMES.join(", "))
}

impl Arguments {
    /// Refuses what goes with several paths only; clap does not where another option excludes those.
    fn no_paths(&self) -> Result<(), CliError> {
        let given = [
            ("--scheduler", !self.scheduler.is_empty()),
            ("--send-buffer", self.send_buffer.is_some()),
            ("--receive-buffer", self.receive_buffer.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                let problem = "goes with --paths, as in --paths \"10Mbit 1ms; 3Mbit 20ms\"".to_owned();
                Err(CliError::Option { option, problem })
            }
            None => Ok(()),
        }
    }

    fn path_question(&self, paths: &str) -> PathQuestion {
        PathQuestion {
            schedulers: self.scheduler.clone(),
            schemes: self.cc.clone(),
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            duration: self.duration,
            warmup: self.warmup,
            size: self.size,
            window: Some(self.window),
            profile: self.profile.clone(),
            seed: self.seed,
            seeds: self.seeds.get() as u64,
            ..PathQuestion::new(paths)
        }
    }

    fn question(&self) -> Result<Question, CliError> {
        let question = match (&self.trace, &self.link) {
            (Some(path), _) => Question::over_trace(path, self.rtt, self.buffer.as_deref())?,
            (None, link) => Question::over(link.as_deref().unwrap_or_default())?,
        };
        Ok(Question {
            schemes: self.cc.clone(),
            queues: self.queue.clone(),
            flows: self.flows.clone(),
            mixed: self.mixed,
            duration: self.duration,
            warmup: self.warmup,
            size: self.size,
            window: Some(self.window),
            profile: self.profile.clone(),
            seed: self.seed,
            seeds: self.seeds.get() as u64,
            ..question
        })
    }
}

/// What is wrong with a comparison, by the option that says it.
fn checked(runs: Result<Vec<Run>, ScenarioError>) -> Result<Vec<Run>, CliError> {
    runs.map_err(|error| {
        let key = error.key().and_then(|key| key.rsplit('.').next());
        let option = match key.filter(|_| ["comparison", "paths"].contains(&error.source_name())) {
            Some("duration") => "--duration",
            Some("warmup") => "--warmup",
            Some("size") => "--size",
            Some("window") => "--window",
            Some("flows") => "--flows",
            Some("seeds") => "--seeds",
            Some("send_buffer") => "--send-buffer",
            Some("reorder_buffer") => "--receive-buffer",
            _ => return error.into(),
        };
        CliError::Option { option, problem: error.problem().to_string() }
    })
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let (header, name, runs) = match &arguments.paths {
        Some(paths) => {
            let question = arguments.path_question(paths);
            let comparison = question.comparison()?;
            (question.header(command_line()), comparison.name.clone(), comparison.runs())
        }
        None => {
            arguments.no_paths()?;
            let question = arguments.question()?;
            let comparison = question.comparison()?;
            (question.header(command_line()), comparison.name.clone(), comparison.runs())
        }
    };
    let results = simulate(&checked(runs)?);
    arguments.output.deliver(&Findings::new(header, &name, results))
}
