//! `suimon compare`: senders over a link, without writing a file.

use clap::{ArgGroup, Args};
use suimon_algorithms::registry::Registry;
use suimon_study::Comparison;

use crate::error::CliError;
use crate::live::LiveOptions;
use crate::output::{OutputOptions, command_line};
use crate::progress::simulate;
use crate::view::ViewOptions;

const EXAMPLE: &str = "\
Examples:
  suimon compare --link \"20/5Mbit 60ms\"
  suimon compare --preset home
  suimon compare --line line.toml                         # as `suimon measure --save line.toml` found it
  suimon compare --link \"2Mbit 180ms 96kB\" --cc reno,cubic,vegas,fs-at
  suimon compare --link \"hsdpa PA3 10dB 180ms\" --cc reno,vegas,drs,fs-at
  suimon compare --link \"wifi 802.11b 11Mbit\" --cc cubic,fs-at
  suimon compare --trace lte.down --rtt 40ms --buffer 100packets --cc cubic,fs-at
  suimon compare --link \"10Mbit 40ms 50packets\" --cc reno,fs-at --mixed --flows 4
  suimon compare --link \"10Mbit 28ms 150kB\" --queue droptail,red,rtt-aqm --cc reno --flows 30,50,30@100s

  suimon compare --paths \"10Mbit 10ms; 3Mbit 60ms\" --scheduler look-ahead,least-buffered
  suimon compare --paths \"lte.down 90ms 60packets; wifi 802.11b 11Mbit\" --cc reno --receive-buffer 256kB
  suimon compare --paths \"10Mbit 10ms outages=10s..20s; 4Mbit 60ms\" --size 30MB

A link is RATE ROUND-TRIP-TIME [BUFFER] [loss=1%] [jitter=1ms] [reorder=1%/10ms]
[detour=60ms/10s..15s] [outages=10s..15s].
In place of RATE: a file with a trace, trace=FILE, schedule=FILE, hsdpa PROFILE GEOMETRY,
wifi STANDARD RATE.";

/// Compare senders over a link, or path schedulers over several
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, group = ArgGroup::new("over").args(["link", "line", "trace", "paths", "preset", "down"]).required(true))]
pub(crate) struct Arguments {
    #[command(flatten)]
    comparison: Comparison,
    #[command(flatten)]
    live: LiveOptions,
    #[command(flatten)]
    view: ViewOptions,
    #[cfg(feature = "capture")]
    #[command(flatten)]
    capture: crate::pcapng::CaptureOptions,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    arguments.output.check()?;
    let comparison = &arguments.comparison;
    let registry = Registry::standard();
    let runs = comparison.runs(&registry)?;
    #[cfg(feature = "capture")]
    arguments.capture.record(&runs)?;
    let results = match arguments.live.is_wanted() {
        true => arguments.live.run(&runs, &[], &arguments.view)?,
        false => simulate(&runs),
    };
    arguments.output.deliver(&comparison.findings(&registry, command_line(), results)?)
}
