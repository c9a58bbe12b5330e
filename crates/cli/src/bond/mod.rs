//! `suimon bond`: real interfaces as one pipe.

mod bench;
mod options;
mod run;
mod status;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use suimon_bond::{Fail, Selector, Via};
use suimon_bond::keys::{PrivateKey, PublicKey};

use crate::bond::options::{Forward, SharedOptions};
use crate::error::CliError;
use crate::output::tell;

const EXAMPLE: &str = "\
Example:
  server$ suimon bond keygen server.key          # prints the server's public key
  client$ suimon bond keygen client.key          # prints the client's
  server$ suimon bond server --listen 0.0.0.0:4443 --key server.key --client CLIENTS_PUBLIC_KEY
  client$ suimon bond client --server host:4443 --server-key SERVERS_PUBLIC_KEY --key client.key \\
            --via wlan0,wwan0,eth1 --socks 127.0.0.1:1080
  client$ curl --proxy socks5h://127.0.0.1:1080 https://example.org/
  client# suimon bond client ... --via wlan0,wwan0 --tun      # instead: all traffic of the host
  client# suimon bond client ... --tun --realtime udp/3478-3481 --redundant tcp/22   # calls first; shells over two paths
  client$ suimon bond status --watch";

/// Use several interfaces as one: streams over a connection on each, by QUIC or TLS
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Keygen(Keygen),
    Pubkey(Pubkey),
    Server(ServerArguments),
    Client(ClientArguments),
    Status(status::Arguments),
    Bench(bench::Arguments),
}

/// Make a private key and print its public half
#[derive(Debug, Args)]
struct Keygen {
    /// Where the private key goes; a file that is there is not overwritten
    #[arg(value_name = "FILE", default_value = "suimon-bond.key")]
    file: PathBuf,
}

/// Print the public half of a private key
#[derive(Debug, Args)]
struct Pubkey {
    /// The private key, as `suimon bond keygen` makes it
    #[arg(value_name = "FILE", default_value = "suimon-bond.key")]
    file: PathBuf,
}

/// Accept clients, and connect their streams to where they want to go
#[derive(Debug, Args)]
struct ServerArguments {
    /// Address and port to listen at, several by repeating it
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4443")]
    listen: Vec<SocketAddr>,
    /// This server's private key, as `suimon bond keygen` makes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// A client's public key, several by repeating it
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    client: Vec<PublicKey>,
    /// A file with clients' public keys, one a line; SIGHUP has it read again, and ends sessions of those who are gone from it
    #[arg(long, value_name = "FILE")]
    clients: Option<PathBuf>,
    /// Sessions at most
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    max_sessions: usize,
    #[command(flatten)]
    shared: SharedOptions,
}

/// Keep a connection to the server over each interface, and let programs use them as one
#[derive(Debug, Args)]
struct ClientArguments {
    /// The server; further ones by repeating it: where no path to one answers, new streams go to the next that does
    #[arg(long, value_name = "HOST:PORT", required = true)]
    server: Vec<String>,
    /// The server's public key, as `suimon bond keygen` printed it there; one for all servers, or one for each in their order
    #[arg(long, value_name = "KEY", value_parser = public_key, required = true)]
    server_key: Vec<PublicKey>,
    /// This client's private key, as `suimon bond keygen` makes it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Interfaces or source addresses, a path each; an interface may come later
    #[arg(long, value_name = "INTERFACE,...", value_delimiter = ',', required = true)]
    via: Vec<Via>,
    /// Where programs find a SOCKS 5 proxy
    #[arg(long, value_name = "ADDRESS:PORT")]
    socks: Option<SocketAddr>,
    /// Lead a port of this host to a target seen from the server; several by repeating it
    #[arg(long, value_name = "[ADDRESS:]PORT=HOST:PORT")]
    forward: Vec<Forward>,
    /// Carry all TCP and UDP of this host that no nearer network takes, by a device of this name; needs the right to make one
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "suimon%d")]
    tun: Option<String>,
    /// While no path is up, --tun's traffic goes nowhere (closed) or around the bond over other routes (open)
    #[arg(long, value_name = "open|closed", default_value = "closed", requires = "tun")]
    fail: Fail,
    /// A flow that goes before all others, over the path on which it arrives first; several by repeating it
    #[arg(long, value_name = FLOW)]
    realtime: Vec<Selector>,
    /// A flow that goes over the two best paths at once, before all others; it costs twice its data
    #[arg(long, value_name = FLOW)]
    redundant: Vec<Selector>,
    #[command(flatten)]
    shared: SharedOptions,
}

/// A selector of flows, in help.
const FLOW: &str = "udp/PORT[-PORT]|tcp/PORT[-PORT]|dscp/NUMBER";

fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|error: suimon_bond::keys::KeyError| error.to_string())
}

pub(crate) fn execute(arguments: &Arguments) -> Result<(), CliError> {
    match &arguments.command {
        Command::Keygen(arguments) => keygen(arguments),
        Command::Pubkey(arguments) => Ok(writeln!(io::stdout(), "{}", PrivateKey::read(&arguments.file)?.public())?),
        Command::Server(arguments) => run::server(arguments),
        Command::Client(arguments) => run::client(arguments),
        Command::Status(arguments) => status::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
    }
}

fn keygen(arguments: &Keygen) -> Result<(), CliError> {
    let key = PrivateKey::generate()?;
    key.write(&arguments.file)?;
    writeln!(io::stdout(), "{}", key.public())?;
    tell(format_args!(
        "{} is the private key; keep it here. The line above is its public half:\n  \
         for a server's key, clients take it as --server-key; for a client's, the server takes it as --client",
        arguments.file.display()
    ));
    Ok(())
}
