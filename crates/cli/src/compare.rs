//! `suimon compare`: senders over a link, without writing a file.

use std::path::PathBuf;

use clap::Args;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_report::ReportHeader;
use suimon_scenario::trace::read_capacity;
use suimon_scenario::{Comparison, FlowCounts, LinkSpec, Scheme, StackProfile};
use suimon_units::{Bytes, Duration};

use crate::error::CliError;
use crate::output::{Findings, OutputOptions, VERSION, command_line};
use crate::progress::simulate;

const EXAMPLE: &str = "\
Examples:
  suimon compare --link \"2Mbit 180ms 96kB\" --cc reno,cubic,vegas,fs-at
  suimon compare --link \"hsdpa PA3 10dB 180ms\" --cc reno,vegas,drs,fs-at
  suimon compare --link \"wifi 802.11b 11Mbit\" --cc cubic,fs-at
  suimon compare --trace lte.down --rtt 40ms --buffer 100packets --cc cubic,fs-at
  suimon compare --link \"10Mbit 40ms 50packets\" --cc reno,fs-at --mixed --flows 4
  suimon compare --link \"10Mbit 28ms 150kB\" --queue droptail,red,rtt-aqm --cc reno --flows 30,50,30@100s

A link is RATE ROUND-TRIP-TIME [BUFFER] [loss=1%] [jitter=1ms] [reorder=1%/10ms]. In place of RATE:
trace=FILE, schedule=FILE, hsdpa PROFILE GEOMETRY, wifi STANDARD RATE.";

/// Compare senders over a link
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    /// The link, as in "2Mbit 180ms 96kB"
    #[arg(long, value_name = "LINK", required_unless_present = "trace", conflicts_with = "trace")]
    link: Option<String>,
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
    /// reno,cubic,vegas,drs,fs-at; reno where queues are compared]
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
    /// Habits of the TCP stacks: linux-6, linux-2.6.16, ns-2, qualnet-3.9
    #[arg(long, value_name = "NAME", default_value = "linux-6")]
    profile: String,
    /// The first seed of all randomness
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// How many seeds
    #[arg(long, value_name = "COUNT", default_value_t = 1, allow_negative_numbers = true)]
    seeds: u64,
    #[command(flatten)]
    output: OutputOptions,
}

impl Arguments {
    fn comparison(&self) -> Result<Comparison, CliError> {
        let refuse = |option, problem: String| CliError::Option { option, problem };
        let scheme =
            |name: &String| Scheme::parse(name).map_err(|error| refuse("--cc", error.problem().to_string()));
        let schemes = self.schemes().iter().map(scheme).collect::<Result<_, _>>()?;
        let queue = |name: &String| {
            AlgorithmSpec::parse(Role::Queue, name).map_err(|error| refuse("--queue", error.to_string()))
        };
        let queues = self.queue.iter().map(queue).collect::<Result<_, _>>()?;
        let flows =
            FlowCounts::parse(&self.flows).map_err(|error| refuse("--flows", error.problem().to_string()))?;
        let profile = StackProfile::named(&self.profile).ok_or_else(|| {
            let accepted = StackProfile::NAMES.join(", ");
            refuse("--profile", format!("unknown profile \"{}\"; accepted: {accepted}", self.profile))
        })?;
        Ok(Comparison {
            queues,
            profile,
            duration: self.duration.or(flows.duration()).unwrap_or(DURATION),
            flows,
            mixed: self.mixed,
            warmup: self.warmup,
            size: self.size,
            window: self.window,
            seed: self.seed,
            seeds: self.seeds,
            ..Comparison::new(self.link_spec()?, schemes)
        })
    }

    /// What `--cc` says, or else what is worth comparing.
    fn schemes(&self) -> Vec<String> {
        let default: &[&str] = if self.queue.len() > 1 { &["reno"] } else { &SCHEMES };
        if self.cc.is_empty() {
            default.iter().map(|name| (*name).to_owned()).collect()
        } else {
            self.cc.clone()
        }
    }

    fn link_spec(&self) -> Result<LinkSpec, CliError> {
        let Some(path) = &self.trace else {
            let text = self.link.as_deref().unwrap_or_default();
            return LinkSpec::parse(text).map_err(|error| CliError::of_link("--link", error));
        };
        let mut link = LinkSpec::new(read_capacity(path)?, self.rtt);
        if let Some(buffer) = &self.buffer {
            link.set_buffer(buffer).map_err(|error| CliError::Option {
                option: "--buffer",
                problem: error.problem().to_string(),
            })?;
        }
        Ok(link)
    }

    fn title(&self) -> String {
        let link = match (&self.link, &self.trace) {
            (Some(link), _) => link.clone(),
            (None, trace) => {
                let name = trace.as_ref().and_then(|path| path.file_name());
                format!("{} {}", name.unwrap_or_default().to_string_lossy(), self.rtt)
            }
        };
        let schemes = self.schemes().join(", ");
        match self.queue.as_slice() {
            [_] => format!("{schemes} over {link}"),
            queues => format!("{} under {schemes} over {link}", queues.join(", ")),
        }
    }
}

const SCHEMES: [&str; 5] = ["reno", "cubic", "vegas", "drs", "fs-at"];

const DURATION: Duration = Duration::from_secs(60);

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let comparison = arguments.comparison()?;
    let results = simulate(&comparison.runs()?);
    let header = ReportHeader {
        title: arguments.title(),
        description: String::new(),
        command: command_line(),
        version: VERSION.to_owned(),
        scenario_text: None,
    };
    arguments.output.deliver(Findings {
        header,
        name: &comparison.name,
        runs: &results,
        verdicts: Vec::new(),
        figures: Vec::new(),
        notes: Vec::new(),
    })
}
