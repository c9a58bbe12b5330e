//! Options of both ends of a bond.

use std::net::SocketAddr;
use std::str::FromStr;

use clap::Args;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::mux::MuxLimits;
use suimon_bond::session::SessionConfig;
use suimon_bond::{Carriers, SenderConfig};
use suimon_service::Target;
use suimon_units::{Bytes, Duration};

use crate::service::ServiceOptions;

/// Options of both ends.
#[derive(Debug, Args)]
pub(crate) struct SharedOptions {
    /// Which path carries what that this end sends; `suimon list` has them all
    #[arg(long, value_name = "SCHEDULER", default_value = "look-ahead", value_parser = scheduler)]
    scheduler: AlgorithmSpec,
    /// What carries connections: a client tries QUIC and takes TCP where no UDP passes (auto), a server takes both
    #[arg(long, value_name = "auto|quic|tcp", default_value = "auto")]
    pub(crate) carrier: Carriers,
    /// Congestion control of this end's connections over TCP, as the kernel calls it; its default where none is said
    #[arg(long, value_name = "NAME")]
    pub(crate) cc: Option<String>,
    /// Congestion control of this end's connections over QUIC, a sender of `suimon list`
    #[arg(long, value_name = "SENDER", default_value = "cubic")]
    pub(crate) quic_cc: SenderConfig,
    /// Bytes that wait here for others which a slower path carries
    #[arg(long, value_name = "BYTES", default_value = "8MB")]
    reorder_buffer: Bytes,
    /// Bytes that are kept here until the other end has them
    #[arg(long, value_name = "BYTES", default_value = "16MB")]
    send_buffer: Bytes,
    /// Bytes that a connection may hold, unsent or not acknowledged; as many as the kernel lets it if not said
    #[arg(long, value_name = "BYTES")]
    pub(crate) path_buffer: Option<Bytes>,
    /// Bytes that all streams of a session may hold here unread, beyond 64 kB each
    #[arg(long, value_name = "BYTES", default_value = "64MB")]
    stream_memory: Bytes,
    /// Streams of a session at most
    #[arg(long, value_name = "COUNT", default_value_t = 1024)]
    max_streams: u32,
    /// Reconnect a path over which nothing has come for this time
    #[arg(long, value_name = "TIME", default_value = "4s")]
    path_timeout: Duration,
    /// A session without any path is kept for so long
    #[arg(long, value_name = "TIME", default_value = "2h")]
    session_timeout: Duration,
    #[command(flatten)]
    pub(crate) service: ServiceOptions,
}

fn scheduler(text: &str) -> Result<AlgorithmSpec, String> {
    AlgorithmSpec::parse(Role::Path, text).map_err(|error| error.to_string())
}

impl SharedOptions {
    pub(crate) fn session(&self) -> SessionConfig {
        SessionConfig {
            scheduler: self.scheduler.clone(),
            reorder_buffer: self.reorder_buffer.max(MIN_BUFFER),
            send_buffer: self.send_buffer.max(MIN_BUFFER),
            mux: MuxLimits {
                streams: self.max_streams,
                window: WINDOW,
                window_most: self.reorder_buffer.max(MIN_BUFFER).get() * 2,
                pool: self.stream_memory.get(),
                queue: self.send_buffer.get() / 2,
                packets: PACKETS,
            },
        }
    }

    pub(crate) fn path_timeout(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.path_timeout.as_nanos())
    }

    pub(crate) fn session_timeout(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.session_timeout.as_nanos())
    }
}

/// Less does not hold a few records.
const MIN_BUFFER: Bytes = Bytes::new(64 * 1024);
/// What a new stream may send before it is granted more.
const WINDOW: u32 = 64 * 1024;
/// IP packets that wait to be sent.
const PACKETS: u64 = 256 * 1024;

/// A port that leads somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) listen: SocketAddr,
    pub(crate) target: Target,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not [ADDRESS:]PORT=HOST:PORT, as in 8080=example.org:80");
        let (listen, target) = text.split_once('=').ok_or_else(wrong)?;
        let listen = match listen.parse::<u16>() {
            Ok(port) => SocketAddr::from(([127, 0, 0, 1], port)),
            Err(_) => listen.parse().map_err(|_| wrong())?,
        };
        let (host, port) = target.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(wrong());
        }
        Ok(Self { listen, target: target.parse().map_err(|_| wrong())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_listens_at_loopback_unless_told() {
        let forward: Forward = "8080=example.org:80".parse().unwrap();
        assert_eq!(forward.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(forward.target.as_str(), "example.org:80");
        let wide: Forward = "0.0.0.0:8080=[::1]:80".parse().unwrap();
        assert_eq!((wide.listen.to_string().as_str(), wide.target.as_str()), ("0.0.0.0:8080", "[::1]:80"));
        for wrong in ["8080", "x=y:1", "8080=host", "8080=:80", "8080=host:port", "99999=host:80", "8080=bücher:80", "8080=a b:80"] {
            assert!(wrong.parse::<Forward>().is_err(), "{wrong}");
        }
    }
}
