//! How long what is small waits beside what is large: requests, the datagrams of a call, and all of them while a path is cut.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts};
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units as units;

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, QUIC_CC, TARGET};
use super::sockets::Transport;
use super::traffic::{Bulk, CALL, Call, RECOVERY, Server, Times, World, joined};
use super::{even_links, long};
use crate::error::LabError;

/// Measure how long small requests and a call's datagrams wait beside a download, and while a path is cut
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default, deny_unknown_fields)]
pub struct Waits {
    /// The links; the first is the best
    #[arg(long, value_name = "LINKS", default_value = "10Mbit 20ms 60packets; 5Mbit 80ms 60packets")]
    pub paths: Parsed<Paths>,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// Congestion control of the bond's connections
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: String,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
    /// Congestion control of the bond's connections over QUIC
    #[arg(long, value_name = "SENDER", default_value = QUIC_CC)]
    pub quic_cc: String,
    /// How long each of the parts is measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Parsed<units::Duration>,
    /// Cuts of each path
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub cuts: u32,
    /// How long a cut lasts, in both directions
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub lasting: Parsed<units::Duration>,
    /// How the bond takes the call; requests are measured beside the first
    #[arg(long, value_name = "CLASS,...", value_delimiter = ',', value_enum, default_values = ["default", "realtime", "redundant"])]
    pub call: Vec<CallClass>,
    /// Measure the call alone, without requests
    #[arg(long)]
    pub only_call: bool,
    /// Builds of suimon whose bonds are measured in one run, instead of this one; several by repeating it
    #[arg(long, value_name = "FILE")]
    pub build: Vec<PathBuf>,
}

/// What the client is told of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallClass {
    /// Nothing
    Default,
    /// `--realtime udp/3478`
    Realtime,
    /// `--redundant udp/3478`
    Redundant,
}

impl CallClass {
    pub(super) fn options(self) -> Vec<String> {
        let flow = format!("udp/{CALL}");
        match self {
            Self::Default => Vec::new(),
            Self::Realtime => vec!["--realtime".to_owned(), flow],
            Self::Redundant => vec!["--redundant".to_owned(), flow],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Realtime => ", call --realtime",
            Self::Redundant => ", call --redundant",
        }
    }
}

/// As the options say.
impl Default for Waits {
    fn default() -> Self {
        defaults()
    }
}

/// One measured quantity.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What carried it: the best path alone, or the bond of a build.
    pub over: String,
    /// What was measured.
    pub what: String,
    /// Beside what.
    pub beside: String,
    /// How often.
    pub count: u64,
    /// Half took no longer, in milliseconds.
    pub median_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// The part that never came, of datagrams.
    pub lost: Option<f64>,
}

impl Waits {
    /// Measures the best path alone, and the bond that `program` runs, and each other build; `tell` gets each row when it is
    /// there.
    ///
    /// # Errors
    /// When the bond does not come up, or a connection over it fails.
    pub fn measure(&self, program: &Path, tell: impl Fn(&Row)) -> Result<Vec<Row>, LabError> {
        let mut rows = Vec::new();
        let mut push = |row: Row| {
            tell(&row);
            rows.push(row);
        };
        self.alone(&mut push)?;
        for (nth, class) in self.call.iter().enumerate() {
            let asks = nth == 0 && !self.only_call;
            for build in &self.build {
                self.bonded(build, &build.display().to_string(), (*class, asks), &mut push)?;
            }
            if self.build.is_empty() {
                self.bonded(program, "bond", (*class, asks), &mut push)?;
            }
        }
        Ok(rows)
    }

    /// Over the best path, with nothing else on it.
    fn alone(&self, push: &mut impl FnMut(Row)) -> Result<(), LabError> {
        let hosts = TwoHosts::new(&Setup::default(), &even_links(&self.paths.0))?;
        let far = IpAddr::from(hosts.paths[0].far);
        let server = Server::start(&hosts.far, SocketAddr::new(far, TARGET.port()))?;
        let world = World {
            near: &hosts.near,
            far: &hosts.far,
            entry: server.address,
            transport: Transport::Tcp,
            callee: SocketAddr::new(far, CALL),
        };
        self.each(&world, ("best path alone", "nothing", !self.only_call), push)
    }

    /// Requests where it `asks`, and then a call.
    fn each(
        &self,
        world: &World<'_>,
        (over, beside, asks): (&str, &str, bool),
        push: &mut impl FnMut(Row),
    ) -> Result<(), LabError> {
        let length = long(*self.time);
        for kept in [false, true].into_iter().filter(|_| asks) {
            push(Row::new((over, request(kept), beside), world.requests(kept, length)?));
        }
        for (up, call) in [true, false].into_iter().zip(world.call(length)?) {
            push(Row::of_call((over, datagrams(up), beside), &call));
        }
        Ok(())
    }

    /// Over the bond, where the call is of a class; with requests where it `asks`.
    fn bonded(
        &self,
        program: &Path,
        over: &str,
        (class, asks): (CallClass, bool),
        push: &mut impl FnMut(Row),
    ) -> Result<(), LabError> {
        let over = &format!("{over}{}", class.name());
        let hosts = TwoHosts::new(&Setup::default(), &even_links(&self.paths.0))?;
        hosts.far.add_address("lo", CALLEE, 32)?;
        let options = Options::new(program, &self.scheduler.0);
        let options = Options {
            cc: self.cc.clone(),
            carrier: &self.carrier,
            quic_cc: &self.quic_cc,
            tun: true,
            client: class.options(),
            ..options
        };
        let _bond = Bond::start(&Hosts::emulated(&hosts), &options)?;
        let _server = Server::start(&hosts.far, TARGET)?;
        let world = World {
            near: &hosts.near,
            far: &hosts.far,
            entry: ENTRY,
            transport: Transport::Tcp,
            callee: SocketAddr::new(CALLEE, CALL),
        };
        self.each(&world, (over, "nothing", asks), push)?;
        Bulk::beside(&world, |_| self.each(&world, (over, "a download", asks), push))?;
        for path in (0..hosts.paths.len()).filter(|_| self.cuts > 0) {
            self.through_cuts((&hosts, &world), path, (over, asks), push)?;
        }
        Ok(())
    }

    /// All at once, while a path is cut again and again.
    fn through_cuts(
        &self,
        (hosts, world): (&TwoHosts, &World<'_>),
        path: usize,
        (over, asks): (&str, bool),
        push: &mut impl FnMut(Row),
    ) -> Result<(), LabError> {
        let lasting = long(*self.lasting);
        let length = (lasting + RECOVERY) * self.cuts;
        let beside = &format!("a download, path {} cut", path + 1);
        Bulk::beside(world, |bulk| {
            thread::scope(|scope| {
                let requests = asks.then(|| scope.spawn(move || world.requests(true, length)));
                let calls = scope.spawn(move || world.call(length));
                let stalls = bulk.through_cuts(hosts, path, (self.cuts, lasting));
                push(Row::new((over, "stall of the download", beside), stalls));
                if let Some(requests) = requests {
                    push(Row::new((over, request(true), beside), joined(requests)?));
                }
                for (up, call) in [true, false].into_iter().zip(joined(calls)?) {
                    push(Row::of_call((over, datagrams(up), beside), &call));
                    push(Row::new((over, silence(up), beside), call.silences()));
                }
                Ok(())
            })
        })
    }
}

impl Row {
    fn new((over, what, beside): (&str, &str, &str), mut times: Times) -> Self {
        Self {
            over: over.to_owned(),
            what: what.to_owned(),
            beside: beside.to_owned(),
            count: times.count() as u64,
            median_ms: times.quantile_ms(0.5),
            p99_ms: times.quantile_ms(0.99),
            longest_ms: times.quantile_ms(1.0),
            lost: None,
        }
    }

    fn of_call(names: (&str, &str, &str), call: &Call) -> Self {
        Self { lost: Some(call.lost()), ..Self::new(names, call.delays()) }
    }
}

fn request(kept: bool) -> &'static str {
    if kept { "request" } else { "request on a new connection" }
}

fn datagrams(up: bool) -> &'static str {
    if up { "datagram up" } else { "datagram down" }
}

fn silence(up: bool) -> &'static str {
    if up { "silence of the call up" } else { "silence of the call down" }
}

/// Where a call goes that is carried by the bond.
pub(super) const CALLEE: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 5));
