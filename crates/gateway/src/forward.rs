//! A port that leads to a server, and a SOCKS proxy: the gateway for who can name it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::atomic::Ordering;

use suimon_linux::Namespace;
use suimon_service::Target;
use suimon_service::descriptors::{accept, reset_on_close};
use suimon_service::socks::{Reply, answer, greet, refuse};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tracing::debug;

use crate::gateway::{Gateway, Place};

/// A network whose hosts may use a proxy, as in 10.0.0.0/8 or 2001:db8::/32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    network: IpAddr,
    prefix: u8,
}

impl Allowed {
    /// Whether `address` is in the network.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let differing = match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => (network.to_bits() ^ address.to_bits())
                .checked_shr(32 - u32::from(self.prefix))
                .map(u128::from),
            (IpAddr::V6(network), IpAddr::V6(address)) => Some(
                (network.to_bits() ^ address.to_bits())
                    .checked_shr(128 - u32::from(self.prefix))
                    .unwrap_or(0),
            ),
            _ => return false,
        };
        differing.unwrap_or(0) == 0
    }
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network; accepted: ADDRESS/BITS, as in 10.0.0.0/8");
        let (network, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let (network, prefix) =
            (network.parse::<IpAddr>().map_err(|_| wrong())?, prefix.parse().map_err(|_| wrong())?);
        let most = if network.is_ipv4() { 32 } else { 128 };
        if prefix > most { Err(wrong()) } else { Ok(Self { network, prefix }) }
    }
}

/// Leads whoever connects to `listener` to `target`, for ever.
pub async fn serve_forward(gateway: Gateway, listener: TcpListener, target: Target) {
    loop {
        let (tcp, client) = accept(&listener).await;
        let Some(place) = admit(&gateway, &tcp, client) else { continue };
        let (gateway, target) = (gateway.clone(), target.clone());
        tokio::spawn(async move {
            if let Err(error) = forward(&gateway, place, tcp, client, &target).await {
                debug!("{client} to {target}: {error}");
            }
        });
    }
}

/// Serves SOCKS 5 at `listener` to clients of the `allowed` networks, and to all where none is given, for ever. Nobody is
/// led to this host itself.
pub async fn serve_socks(gateway: Gateway, listener: TcpListener, allowed: Vec<Allowed>) {
    loop {
        let (mut tcp, client) = accept(&listener).await;
        if !allowed.is_empty() && !allowed.iter().any(|network| network.has(client.ip())) {
            let _ = reset_on_close(&tcp, true);
            continue;
        }
        let Some(place) = admit(&gateway, &tcp, client) else { continue };
        let gateway = gateway.clone();
        tokio::spawn(async move {
            let served = async {
                let target = greet(&mut tcp).await?;
                socks(&gateway, place, tcp, client, &target).await
            };
            if let Err(error) = served.await {
                debug!("{client}: {error}");
            }
        });
    }
}

/// A place for the connection; where there is none, its client is told at once.
fn admit(gateway: &Gateway, tcp: &TcpStream, client: SocketAddr) -> Option<Place> {
    let _ = reset_on_close(tcp, true);
    gateway.enter(client.ip())
}

async fn forward(
    gateway: &Gateway,
    place: Place,
    tcp: TcpStream,
    client: SocketAddr,
    target: &Target,
) -> io::Result<()> {
    let addresses: Vec<_> = lookup_host(target.as_str()).await?.collect();
    let lan = connect(gateway, &addresses).await?;
    gateway.carry(place, (client, tcp), (lan.peer_addr()?, lan)).await
}

async fn socks(
    gateway: &Gateway,
    place: Place,
    mut tcp: TcpStream,
    client: SocketAddr,
    target: &Target,
) -> io::Result<()> {
    let addresses: Vec<_> = match lookup_host(target.as_str()).await {
        Ok(found) => found.collect(),
        Err(error) => {
            refuse(&mut tcp, Reply::HostUnreachable).await?;
            return Err(error);
        }
    };
    if addresses.iter().any(|address| is_own(address.ip())) {
        refuse(&mut tcp, Reply::NotAllowed).await?;
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{target} is this host")));
    }
    match connect(gateway, &addresses).await {
        Ok(lan) => {
            answer(&mut tcp, Reply::Succeeded).await?;
            gateway.carry(place, (client, tcp), (lan.peer_addr()?, lan)).await
        }
        Err(error) => {
            let reply = match error.kind() {
                io::ErrorKind::ConnectionRefused => Reply::Refused,
                io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Reply::HostUnreachable,
                io::ErrorKind::TimedOut => Reply::TimedOut,
                _ => Reply::Failed,
            };
            refuse(&mut tcp, reply).await?;
            Err(error)
        }
    }
}

async fn connect(gateway: &Gateway, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let connected = gateway.sides().lan.connect(addresses).await;
    if connected.is_err() {
        gateway.totals().failed.fetch_add(1, Ordering::Relaxed);
    }
    connected
}

/// Whether `address` leads back to this host: its services are not for a proxy's clients, its listeners would be a loop.
fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let of_host = || Namespace::current().and_then(|host| host.addresses()).unwrap_or_default();
    address.is_loopback() || address.is_unspecified() || of_host().iter().any(|(own, _)| *own == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_hosts_of_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.0.2.1/32", "192.0.2.1", "192.0.2.0"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            ("::1/128", "::1", "::2"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:11.0.0.1"),
        ] {
            let allowed: Allowed = network.parse().unwrap();
            assert!(allowed.has(inside.parse().unwrap()), "{network} {inside}");
            assert!(!allowed.has(outside.parse().unwrap()), "{network} {outside}");
        }
        for wrong in ["10.0.0.0", "10.0.0.0/33", "host/8", "::/129", "/8", "10.0.0.0/"] {
            assert!(wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
    }
}
