//! What a transfer goes through when something fails: every byte is accounted for, and stalls are told.

use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_emulator::{Setup, TwoHosts, Way as LinkWay};
use suimon_units::Bytes;

use super::ends::{Bond, ENTRY, Hosts, Options, TARGET};
use super::reliable::{Outcome, Progress, Way, transfer};
use super::{check_whole, links, mbit, print, scheduler};
use crate::error::CliError;

/// Move data while paths are cut, a device is unplugged, the server restarted; tell stalls and compare digests
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// What happens; each in a transfer of its own
    #[arg(
        long,
        value_name = "FAULT,...",
        value_delimiter = ',',
        default_value = "cut,both-cut,unplugged,restart"
    )]
    faults: Vec<Fault>,
    /// How much each transfer moves
    #[arg(long, value_name = "BYTES", default_value = "1GB")]
    bytes: Bytes,
    /// The links that are cut
    #[arg(long, value_name = "LINKS", default_value = "200Mbit 10ms 400packets; 100Mbit 30ms 400packets")]
    paths: String,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead", value_parser = scheduler)]
    scheduler: AlgorithmSpec,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fault {
    /// Nothing
    None,
    /// The first path carries nothing for 5 s
    Cut,
    /// No path carries anything for 10 s
    BothCut,
    /// An interface is removed, and made anew when as much again has come; over devices that carry what the machine can
    Unplugged,
    /// The server is killed and started anew 1 s later; the program goes on over a new stream
    Restart,
}

#[derive(Debug, Serialize)]
struct Row {
    fault: String,
    bytes: u64,
    time_s: f64,
    goodput_bps: u64,
    longest_stall_s: f64,
    streams: u64,
    sha256: &'static str,
}

pub(super) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    let (mut rows, mut whole) = (Vec::new(), true);
    for fault in &arguments.faults {
        let name = fault.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let outcome = suffer(arguments, *fault)?;
        whole &= outcome.intact && outcome.bytes == arguments.bytes.get();
        rows.push(Row {
            fault: name,
            bytes: outcome.bytes,
            time_s: outcome.time.as_secs_f64(),
            goodput_bps: outcome.goodput_bps(),
            longest_stall_s: outcome.longest_stall.as_secs_f64(),
            streams: outcome.streams,
            sha256: outcome.sha256(),
        });
    }
    let header = ["fault", "bytes", "time", "goodput", "longest stall", "streams", "SHA-256"];
    print(&rows, arguments.json, &header, 1, |row| {
        vec![
            row.fault.clone(),
            Bytes::new(row.bytes).to_string(),
            format!("{:.1} s", row.time_s),
            mbit(row.goodput_bps),
            format!("{:.2} s", row.longest_stall_s),
            row.streams.to_string(),
            row.sha256.to_owned(),
        ]
    })?;
    check_whole(whole)
}

fn suffer(arguments: &Arguments, fault: Fault) -> Result<Outcome, CliError> {
    let emulated = match fault {
        Fault::Unplugged => None,
        _ => Some(TwoHosts::new(&Setup::default(), &links(&arguments.paths)?)?),
    };
    let hosts = match &emulated {
        Some(emulated) => Hosts::emulated(emulated),
        None => Hosts::plain(2)?,
    };
    let mut bond = Bond::start(&hosts, &Options::new(&arguments.scheduler))?;
    let progress = Progress::default();
    let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true };
    let most = arguments.bytes.get();
    thread::scope(|scope| {
        let moving = scope.spawn(|| transfer(&way, most, &progress));
        progress.wait_for(most / 4);
        let cut = |paths: usize, time: u64| {
            let Some(emulated) = &emulated else { return };
            (0..paths).for_each(|path| emulated.emulation.cut(path, LinkWay::Both));
            thread::sleep(Duration::from_secs(time));
            (0..paths).for_each(|path| emulated.emulation.restore(path, LinkWay::Both));
        };
        match fault {
            Fault::None => {}
            Fault::Cut => cut(1, 5),
            Fault::BothCut => cut(hosts.via.len(), 10),
            Fault::Unplugged => {
                hosts.near.delete_device("near2")?;
                progress.wait_for(most / 2);
                hosts.plug(2)?;
                bond.wait_for_paths(2)?;
            }
            Fault::Restart => {
                bond.kill_server();
                thread::sleep(Duration::from_secs(1));
                bond.start_server()?;
            }
        }
        let moved = moving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(moved?)
    })
}
