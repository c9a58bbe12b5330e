//! `suimon gateway`: TCP split in front of a radio.

mod run;
mod senders;
mod split;
mod status;

use std::net::SocketAddr;

use clap::{Args, Subcommand};
use ipnet::IpNet;
use suimon_service::Target;
use suimon_units::{Bytes, Duration};

use crate::error::CliError;
use crate::service::ServiceOptions;

const EXAMPLE: &str = "\
Examples:
  sudo suimon gateway --lan eth0 --radio wwan0              # all TCP that is routed between the two
  sudo suimon gateway --lan eth0 --radio wwan0 --except 22 --dry-run
  suimon gateway --listen 8443 --to server.example:443      # a port that leads to one server
  suimon gateway --socks 1080                               # a proxy for programs of this host
  suimon gateway --socks 0.0.0.0:1080 --allow 10.0.0.0/8    # a proxy for a network
  suimon gateway status --view                              # the clients, anew each second
  suimon gateway stat --json | jq '.clients[] | {client, queue_bytes}'

FS-AT is loaded for as long as the gateway runs, which takes root; without it the kernel's own senders serve.";

/// Split TCP in front of a radio, with FS-AT toward the clients
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The clients: connections, rates, round-trip times, what is held and what waits at the radio
    Status(status::Arguments),
    /// The connections: the same of each
    Stat(status::Arguments),
    /// Routes of marked packets, until standard input ends
    #[command(hide = true)]
    KeepRoutes,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The device toward the servers: TCP that is routed between it and --radio's is split, the addresses kept
    #[arg(long, value_name = "DEVICE", requires = "radio")]
    lan: Option<String>,
    /// The device toward the clients
    #[arg(long, value_name = "DEVICE", requires = "lan")]
    radio: Option<String>,
    /// Connections to this port pass unsplit, several by repeating it
    #[arg(long, value_name = "PORT", requires = "lan")]
    except: Vec<u16>,
    /// Print the rules and routes that --lan and --radio would set, and set none
    #[arg(long, requires = "lan")]
    dry_run: bool,
    /// Where clients connect to reach the server of --to; a port alone is one of all addresses of this host
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = everywhere, requires = "to")]
    listen: Option<SocketAddr>,
    /// The server behind --listen
    #[arg(long, value_name = "HOST:PORT", value_parser = server, requires = "listen")]
    to: Option<Target>,
    /// Where programs find a SOCKS 5 proxy; a port alone is one of the loopback address
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = loopback)]
    socks: Option<SocketAddr>,
    /// A network whose hosts may use the proxy, several by repeating it
    #[arg(long, value_name = "ADDRESS/BITS", value_parser = network, requires = "socks")]
    allow: Vec<IpNet>,
    /// Congestion control toward the clients: of `suimon cc list`, or as the kernel calls it. With fs-at-shared all
    /// connections to one client share one target
    #[arg(long, value_name = "NAME", default_value = senders::DEFAULT)]
    radio_cc: String,
    /// Congestion control toward the servers; the kernel's default where none is said
    #[arg(long, value_name = "NAME")]
    lan_cc: Option<String>,
    /// Receive buffer of each connection on each side; as the kernel measures it if not said
    #[arg(long, value_name = "BYTES")]
    receive_buffer: Option<Bytes>,
    /// Connections of one client at most: of an IPv4 address, or of an IPv6 network of 64 bits
    #[arg(long, value_name = "COUNT", default_value_t = 1024)]
    max_of_client: usize,
    /// Connections of all clients at most; as many as there may be open files for if not said
    #[arg(long, value_name = "COUNT")]
    max_connections: Option<usize>,
    /// When told to stop, let open connections end for so long
    #[arg(long, value_name = "TIME", default_value = "30s")]
    drain: Duration,
    #[command(flatten)]
    service: ServiceOptions,
}

/// The name of the socket at which a gateway answers.
const NAME: &str = "suimon-gateway";

fn everywhere(text: &str) -> Result<SocketAddr, String> {
    // With both families of addresses.
    address(text, SocketAddr::from(([0_u16; 8], 0)))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    address(text, SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn address(text: &str, mut alone: SocketAddr) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        alone.set_port(port);
        return Ok(alone);
    }
    text.parse().map_err(|_| format!("{text:?}: accepted: PORT or ADDRESS:PORT, as in 8443 or 10.0.0.1:8443"))
}

fn network(text: &str) -> Result<IpNet, String> {
    text.parse().map_err(|_| format!("{text:?} is no network; accepted: ADDRESS/BITS, as in 10.0.0.0/8"))
}

fn server(text: &str) -> Result<Target, String> {
    let wrong = || format!("{text:?}: accepted: HOST:PORT, as in server.example:443");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err(wrong());
    }
    text.parse().map_err(|_| wrong())
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.command {
        None => run::execute(&arguments.options),
        Some(Command::Status(arguments)) => arguments.show(status::clients),
        Some(Command::Stat(arguments)) => arguments.show(status::connections),
        Some(Command::KeepRoutes) => Ok(suimon_gateway::keep_routes()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_has_the_address_of_its_option() {
        assert_eq!(everywhere("8443").unwrap().to_string(), "[::]:8443");
        assert_eq!(loopback("1080").unwrap().to_string(), "127.0.0.1:1080");
        assert_eq!(loopback("[::]:1080").unwrap().to_string(), "[::]:1080");
        for wrong in ["", "99999", "host", "host:80", "10.0.0.1"] {
            assert!(everywhere(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "host", ":443", "host:", "host:x", "a b:1"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
        assert_eq!(server("[::1]:443").unwrap().as_str(), "[::1]:443");
    }
}
