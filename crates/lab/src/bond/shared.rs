//! What the bond takes of a bottleneck that its paths share, beside one connection that is not its own.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use suimon_emulator::{Setup, TwoHosts};
use suimon_linux::Namespace;
use suimon_study::comparison::{Parsed, PathScheduler, Paths};
use suimon_study::defaults;
use suimon_units::{self as units, Bytes, Rate};

use super::ends::{Bond, CARRIERS, ENTRY, Hosts, Options, QUIC_CC, TARGET};
use super::goodput::{drain, fill};
use super::sockets::Transport;
use super::{even_links, long};
use crate::error::LabError;

/// Measure what the bond takes of a bottleneck that its paths share, beside one connection of the same congestion control
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default, deny_unknown_fields)]
pub struct Shared {
    /// The bottleneck, which the other connection crosses too
    #[arg(long, value_name = "LINK", default_value = "10Mbit 40ms 60packets")]
    pub bottleneck: Parsed<Paths>,
    /// The bond's ways to the bottleneck; it is also measured over the first alone, and the other connection has one like the first.
    /// Jitter keeps connections from falling into step at the bottleneck
    #[arg(
        long,
        value_name = "LINKS",
        default_value = "100Mbit 2ms 1000packets jitter=1ms; 100Mbit 20ms 1000packets jitter=1ms"
    )]
    pub paths: Parsed<Paths>,
    /// The bond's scheduler
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead")]
    pub scheduler: Parsed<PathScheduler>,
    /// Congestion control of all connections
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub cc: String,
    /// What carries the bond's connections
    #[arg(long, value_name = "CARRIER", default_value = CARRIERS[0], value_parser = CARRIERS)]
    pub carrier: String,
    /// Congestion control of the bond's connections over QUIC
    #[arg(long, value_name = "SENDER", default_value = QUIC_CC)]
    pub quic_cc: String,
    /// How long they send before they are measured
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub warmup: Parsed<units::Duration>,
    /// How long they are measured
    #[arg(long, value_name = "TIME", default_value = "40s")]
    pub time: Parsed<units::Duration>,
}

/// As the options say.
impl Default for Shared {
    fn default() -> Self {
        defaults()
    }
}

/// Two that share the bottleneck.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What shares the bottleneck with the other connection.
    pub scheme: String,
    /// Its goodput.
    pub goodput_bps: u64,
    /// The goodput of the other connection.
    pub other_bps: u64,
    /// The first over the second.
    pub ratio: f64,
}

impl Shared {
    /// Measures another connection, the bond that `program` runs over one path and over all; `tell` gets each row when
    /// it is there.
    ///
    /// # Errors
    /// When the bond does not come up, or a transfer fails.
    pub fn measure(&self, program: &Path, tell: impl Fn(&Row)) -> Result<Vec<Row>, LabError> {
        let all = self.paths.0.len();
        let schemes = [
            ("one connection".to_owned(), None),
            ("bond, one path".to_owned(), Some((program, 1))),
            (format!("bond, {all} paths"), Some((program, all))),
        ];
        let rows = schemes.into_iter().map(|(scheme, bond)| {
            let [own, other] = self.beside_another(bond)?;
            let ratio = own.as_bps() as f64 / other.as_bps().max(1) as f64;
            let row = Row { scheme, goodput_bps: own.as_bps(), other_bps: other.as_bps(), ratio };
            tell(&row);
            Ok(row)
        });
        rows.collect()
    }

    /// The goodput of the bond that a program runs over so many paths, or of a connection where none is given, and of another
    /// connection beside it.
    fn beside_another(&self, bond: Option<(&Path, usize)>) -> Result<[Rate; 2], LabError> {
        let setup = Setup::default();
        let middle = TwoHosts::new(&setup, &even_links(&self.bottleneck.0)[..1])?;
        middle.forward()?;
        let mut links = even_links(&self.paths.0);
        let like_first = links[0].clone();
        links.truncate(bond.map_or(1, |(_, paths)| paths));
        let between = |links: &[_]| TwoHosts::between(&setup, Namespace::new()?, middle.near.clone(), links);
        let (hosts, others) = (between(&links)?, between(&[like_first])?);
        let far = IpAddr::from(hosts.paths[0].end);
        let ends = Hosts { far: middle.far.clone(), server: far, ..Hosts::emulated(&hosts) };
        let _bond = match bond {
            Some((program, _)) => {
                let options = Options {
                    cc: self.cc.clone(),
                    carrier: &self.carrier,
                    quic_cc: &self.quic_cc,
                    ..Options::new(program, &self.scheduler.0)
                };
                Some(Bond::start(&ends, &options)?)
            }
            None => None,
        };
        let listen = |at| middle.far.run(|| Transport::Tcp.listen(at));
        let [of_own, of_other] = [TARGET, SocketAddr::new(far, OTHER)];
        let own = if bond.is_some() { of_own } else { SocketAddr::new(far, of_own.port()) };
        let sinks = [listen(own)??, listen(of_other)??];
        let entry = if bond.is_some() { (ENTRY, None) } else { (own, Some(self.cc.as_str())) };
        let sources = [
            hosts.near.run(|| Transport::Tcp.connect(entry.0, entry.1))??,
            others.near.run(|| Transport::Tcp.connect(of_other, Some(&self.cc)))??,
        ];
        let from = Instant::now() + long(*self.warmup);
        let until = from + long(*self.time);
        let received = thread::scope(|scope| {
            let drain = |sink: &TcpListener| drain(sink, from, until);
            let sinks = sinks.each_ref().map(|sink| scope.spawn(move || drain(sink)));
            for source in sources {
                scope.spawn(move || fill(source, until));
            }
            sinks.map(|sink| sink.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let [own, other] = received;
        Ok([own?, other?].map(|bytes| Rate::of(Bytes::new(bytes), *self.time)))
    }
}

/// Where the other connection goes.
const OTHER: u16 = TARGET.port() + 1;
