//! The bond beside what else joins paths, all in one run: what a download gets, what a call waits beside it, and what both hear of
//! a cut.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::thread;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts};
use suimon_scenario::Link;
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units as units;

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, TARGET};
use super::sockets::{Transport, offer_subflows};
use super::traffic::{Bulk, CALL, Call, RECOVERY, Server, World, joined};
use super::tunnels::{Failover, Tunnel, engarde, glorytun, wireguard};
use super::waits::{CALLEE, CallClass};
use super::{even_links, long};
use crate::error::LabError;

/// Measure the bond beside kernel MPTCP, WireGuard with failover, engarde and glorytun: a download, a call, and cuts
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default, deny_unknown_fields)]
pub struct Rivals {
    /// The links; the first is the best
    #[arg(long, value_name = "LINKS", default_value = "10Mbit 20ms 60packets; 5Mbit 80ms 60packets")]
    pub paths: Parsed<Paths>,
    /// What joins them; each finds links of its own
    #[arg(
        long,
        value_name = "SCHEME,...",
        value_delimiter = ',',
        value_enum,
        default_value = "path,mptcp,wireguard,engarde,glorytun,bond,bond-redundant"
    )]
    pub schemes: Vec<Scheme>,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// How long the download, and the call, are measured
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Parsed<units::Duration>,
    /// Cuts of each path
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub cuts: u32,
    /// How long a cut lasts, in both directions
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub lasting: Parsed<units::Duration>,
    /// How often WireGuard's failover asks for an answer over each path; the third that is missing ends its use
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub probe: Parsed<units::Duration>,
}

/// As the options say.
impl Default for Rivals {
    fn default() -> Self {
        defaults()
    }
}

/// What joins paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Nothing: the first path alone
    Path,
    /// Kernel MPTCP, with a subflow over each path; the call has the first path alone, as MPTCP carries no datagrams
    Mptcp,
    /// WireGuard over one path, and over another where that gives no answers
    Wireguard,
    /// WireGuard over engarde, which sends each packet over every path
    Engarde,
    /// glorytun, which is told the links' rates
    Glorytun,
    /// The bond, with the call as `--realtime`
    Bond,
    /// The bond, with the call as `--redundant`
    BondRedundant,
}

/// One scheme.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What joined the paths.
    pub scheme: Scheme,
    /// Payload of the download over time, with no call beside it.
    pub goodput_bps: u64,
    /// The same beside a call.
    pub beside_call_bps: u64,
    /// 99 of 100 datagrams of a call took no longer, up and down, with nothing beside it.
    pub idle_p99_ms: [f64; 2],
    /// The same beside the download.
    pub p99_ms: [f64; 2],
    /// What was heard of cuts of each path.
    pub cuts: Vec<CutRow>,
}

/// What a download and a call heard of the cuts of a path.
#[derive(Debug, Serialize)]
pub struct CutRow {
    /// The longest time in which nothing of the download came, from a cut until the path was in use again.
    pub stall_ms: f64,
    /// The longest time in which nothing of the call came, up or down.
    pub silence_ms: f64,
    /// The part of the call's datagrams that never came.
    pub lost: f64,
}

/// What is told while it is measured.
#[derive(Debug)]
pub enum News<'a> {
    /// A scheme was measured.
    Row(&'a Row),
    /// A scheme could not be measured here, for a reason.
    None(Scheme, &'a LabError),
}

impl Rivals {
    /// Measures each scheme; `program` runs the bond's ends, and `tell` gets each row when it is there. A scheme that cannot be set
    /// up here, as its program is missing, has no row.
    ///
    /// # Errors
    /// When the links cannot be made, or the bond does not come up.
    pub fn measure(&self, program: &Path, tell: impl Fn(&News<'_>)) -> Result<Vec<Row>, LabError> {
        let mut rows = Vec::new();
        for scheme in &self.schemes {
            match self.row(*scheme, program) {
                Ok(row) => {
                    tell(&News::Row(&row));
                    rows.push(row);
                }
                Err(error) if scheme.is_another() => tell(&News::None(*scheme, &error)),
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    }

    fn row(&self, scheme: Scheme, program: &Path) -> Result<Row, LabError> {
        let links = even_links(&self.paths.0);
        let hosts = TwoHosts::new(&Setup::default(), &links)?;
        let joined = self.join(scheme, program, (&hosts, &links))?;
        let _server = Server::start(&hosts.far, joined.target)?;
        let world = World {
            near: &hosts.near,
            far: &hosts.far,
            entry: joined.entry,
            transport: joined.transport,
            callee: joined.callee,
        };
        let p99 = |calls: [Call; 2]| calls.map(|call| call.delays().quantile_ms(0.99));
        let idle_p99_ms = p99(world.call(long(*self.time))?);
        let (goodput, beside_call, call) = Bulk::beside(&world, |bulk| {
            let (goodput, ()) = bulk.goodput(|| thread::sleep(long(*self.time)));
            let (beside_call, call) = bulk.goodput(|| world.call(long(*self.time)));
            Ok((goodput, beside_call, call?))
        })?;
        let paths = 0..hosts.paths.len();
        let cuts = paths.filter(|_| self.cuts > 0).map(|path| self.through_cuts((&hosts, &world), path));
        Ok(Row {
            scheme,
            goodput_bps: goodput.as_bps(),
            beside_call_bps: beside_call.as_bps(),
            idle_p99_ms,
            p99_ms: p99(call),
            cuts: cuts.collect::<Result<_, _>>()?,
        })
    }

    fn through_cuts(&self, (hosts, world): (&TwoHosts, &World<'_>), path: usize) -> Result<CutRow, LabError> {
        let lasting = long(*self.lasting);
        Bulk::beside(world, |bulk| {
            thread::scope(|scope| {
                let calls = scope.spawn(|| world.call((lasting + RECOVERY) * self.cuts));
                let mut stalls = bulk.through_cuts(hosts, path, (self.cuts, lasting));
                let calls = joined(calls)?;
                let silences = calls.each_ref().map(|call| call.silences().quantile_ms(1.0));
                let lost = calls.each_ref().map(Call::lost);
                Ok(CutRow {
                    stall_ms: stalls.quantile_ms(1.0),
                    silence_ms: silences[0].max(silences[1]),
                    lost: (lost[0] + lost[1]) / 2.0,
                })
            })
        })
    }

    fn join(
        &self,
        scheme: Scheme,
        program: &Path,
        (hosts, links): (&TwoHosts, &[[Link; 2]]),
    ) -> Result<Joined, LabError> {
        let first = IpAddr::from(hosts.paths[0].far);
        Ok(match scheme {
            Scheme::Path => Joined::at(first, Transport::Tcp, Keeps::Nothing),
            Scheme::Mptcp => {
                offer_subflows(hosts)?;
                Joined::at(first, Transport::Mptcp, Keeps::Nothing)
            }
            Scheme::Wireguard => {
                let tunnel = wireguard(hosts, &SocketAddr::new(first, Tunnel::PORT).to_string())?;
                let failover = Failover::start(hosts, &tunnel, long(*self.probe))?;
                Joined::at(Tunnel::FAR, Transport::Tcp, Keeps::Failover(failover, tunnel))
            }
            Scheme::Engarde => Joined::at(Tunnel::FAR, Transport::Tcp, Keeps::Tunnel(engarde(hosts)?)),
            Scheme::Glorytun => {
                Joined::at(Tunnel::FAR, Transport::Tcp, Keeps::Tunnel(glorytun(hosts, links)?))
            }
            Scheme::Bond => self.bond(program, CallClass::Realtime, hosts)?,
            Scheme::BondRedundant => self.bond(program, CallClass::Redundant, hosts)?,
        })
    }

    fn bond(&self, program: &Path, class: CallClass, hosts: &TwoHosts) -> Result<Joined, LabError> {
        hosts.far.add_address("lo", CALLEE, 32)?;
        let options = Options::new(program, &self.scheduler.0);
        let options = Options { carrier: &self.carrier, tun: true, client: class.options(), ..options };
        let bond = Bond::start(&Hosts::emulated(hosts), &options)?;
        let callee = SocketAddr::new(CALLEE, CALL);
        let transport = Transport::Tcp;
        Ok(Joined { target: TARGET, entry: ENTRY, transport, callee, _keeps: Keeps::Bond(bond) })
    }
}

impl Scheme {
    /// Not this project's, and not the links alone.
    fn is_another(self) -> bool {
        !matches!(self, Self::Path | Self::Bond | Self::BondRedundant)
    }
}

/// Two hosts whose paths are joined by a scheme.
#[derive(Debug)]
struct Joined {
    /// The address of the server of downloads.
    target: SocketAddr,
    /// The address under which the near host's programs find it.
    entry: SocketAddr,
    transport: Transport,
    callee: SocketAddr,
    _keeps: Keeps,
}

/// What ends with the scheme.
#[derive(Debug)]
#[expect(dead_code, reason = "held until it is dropped")]
enum Keeps {
    Nothing,
    Bond(Bond),
    Tunnel(Tunnel),
    // The failover ends before what it changes.
    Failover(Failover, Tunnel),
}

impl Joined {
    /// Where programs find the far host under an address of its own.
    fn at(far: IpAddr, transport: Transport, keeps: Keeps) -> Self {
        let target = SocketAddr::new(far, TARGET.port());
        Self { target, entry: target, transport, callee: SocketAddr::new(far, CALL), _keeps: keeps }
    }
}
