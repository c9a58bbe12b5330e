//! What a transfer goes through when something fails: every byte is accounted for, and stalls are told.

use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts, Way as LinkWay};
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units::Bytes;

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, TARGET};
use super::links;
use super::reliable::{Digests, Outcome, PATIENCE, Progress, Way, transfer};
use crate::error::LabError;

/// Move data while paths are cut, a device is unplugged, the server restarted; tell stalls and compare digests
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// What happens; each in a transfer of its own
    #[arg(
        long,
        value_name = "FAULT,...",
        value_delimiter = ',',
        default_value = "cut,both-cut,unplugged,restart"
    )]
    pub faults: Vec<Fault>,
    /// How much each transfer moves
    #[arg(long, value_name = "BYTES", default_value = "1GB")]
    pub bytes: Parsed<Bytes>,
    /// The links that are cut
    #[arg(long, value_name = "LINKS", default_value = "200Mbit 10ms 400packets; 100Mbit 30ms 400packets")]
    pub paths: Parsed<Paths>,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
}

/// As the options say.
impl Default for Faults {
    fn default() -> Self {
        defaults()
    }
}

/// What happens to a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nothing
    None,
    /// The first path carries nothing for 5 s
    Cut,
    /// No path carries anything for 10 s
    BothCut,
    /// No path carries anything for an hour
    Hour,
    /// An interface is removed, and made anew when as much again has come; over devices that carry what the machine can
    Unplugged,
    /// The server is killed and started anew 1 s later; the program goes on over a new stream
    Restart,
}

/// A transfer, and what happened to it.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What happened.
    pub fault: Fault,
    /// Payload that came.
    pub bytes: u64,
    /// How long it took.
    pub time_s: f64,
    /// Payload over that time.
    pub goodput_bps: u64,
    /// Longest time in which nothing came.
    pub longest_stall_s: f64,
    /// Streams that the transfer took.
    pub streams: u64,
    /// How the digests of what was sent and of what came compare; they differ where not all came.
    pub sha256: Digests,
}

impl Faults {
    /// Moves data between two ends of the bond, which `program` runs, once for each fault.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer is given up.
    pub fn measure(&self, program: &Path) -> Result<Vec<Row>, LabError> {
        self.faults.iter().map(|fault| self.row(*fault, program)).collect()
    }

    fn row(&self, fault: Fault, program: &Path) -> Result<Row, LabError> {
        let outcome = suffer(self, fault, program)?;
        let is_whole = outcome.bytes == self.bytes.get();
        Ok(Row {
            fault,
            bytes: outcome.bytes,
            time_s: outcome.time.as_secs_f64(),
            goodput_bps: outcome.goodput_bps(),
            longest_stall_s: outcome.longest_stall.as_secs_f64(),
            streams: outcome.streams,
            sha256: if is_whole { outcome.digests() } else { Digests::Differ },
        })
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

fn suffer(bench: &Faults, fault: Fault, program: &Path) -> Result<Outcome, LabError> {
    let emulated = match fault {
        Fault::Unplugged => None,
        _ => Some(TwoHosts::new(&Setup::default(), &links(&bench.paths.0))?),
    };
    let hosts = match &emulated {
        Some(emulated) => Hosts::emulated(emulated),
        None => Hosts::plain(2)?,
    };
    let mut bond = Bond::start(
        &hosts,
        &Options { carrier: &bench.carrier, ..Options::new(program, &bench.scheduler.0) },
    )?;
    let progress = Progress::default();
    let patience = if fault == Fault::Hour { HOUR * 2 } else { PATIENCE };
    let way = Way { near: (&hosts.near, ENTRY), far: (&hosts.far, TARGET), up: true, patience };
    let most = bench.bytes.get();
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
            Fault::Hour => cut(hosts.via.len(), HOUR.as_secs()),
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
