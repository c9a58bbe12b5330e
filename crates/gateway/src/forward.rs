//! A port that leads to a server, and a SOCKS proxy: the gateway for who can name it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use ipnet::IpNet;
use suimon_linux::Namespace;
use suimon_service::Target;
use suimon_service::descriptors::{accept, reset_on_close};
use suimon_service::socks::{Reply, answer, greet, refuse};
use tokio::net::{TcpListener, TcpStream};
use tracing::debug;

use crate::gateway::{Gateway, Place};

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
pub async fn serve_socks(gateway: Gateway, listener: TcpListener, allowed: Vec<IpNet>) {
    loop {
        let (mut tcp, client) = accept(&listener).await;
        // A listener of IPv6 sees clients of IPv4 as ::ffff:a.b.c.d.
        let host = client.ip().to_canonical();
        if !allowed.is_empty() && !allowed.iter().any(|network| network.contains(&host)) {
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
    let addresses = look_up(gateway, target).await?;
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
    let addresses = match look_up(gateway, target).await {
        Ok(found) => found,
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

async fn look_up(gateway: &Gateway, target: &Target) -> io::Result<Vec<SocketAddr>> {
    let found = gateway.names().look_up(target.as_str()).await;
    found.map_err(|unknown| io::Error::new(io::ErrorKind::NotFound, unknown))
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
