//! Runs an end of a bond until it is told to stop.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use suimon_bond::control::metrics;
use suimon_bond::keys::{PrivateKey, PublicKey, client_config, server_config};
use suimon_bond::{
    Carrier, Carriers, Classes, Client, ClientConfigBond, Server, ServerConfigBond, ServerEnd, Tunnel, TunnelError, serve_forward, serve_socks,
};
use suimon_service::Names;
use suimon_service::descriptors::raise_limit;
use tokio::task::JoinHandle;

use super::{ClientArguments, ServerArguments};
use crate::error::CliError;
use crate::service::{bind, run, tell, until_told, whenever_told_to_reread};

pub(super) fn server(arguments: &ServerArguments) -> Result<(), CliError> {
    let key = PrivateKey::read(&arguments.key)?;
    let clients = clients(arguments)?;
    if clients.is_empty() {
        return Err(CliError::Option {
            option: "--client",
            problem:
                "without any client's public key nobody could use this server: --client KEY or --clients FILE"
                    .to_owned(),
        });
    }
    let shared = &arguments.shared;
    shared.service.check()?;
    raise_limit();
    let authorized = clients.iter().copied().collect();
    let server = Server::new(ServerConfigBond {
        tls: Arc::new(server_config(&key, &authorized)?),
        clients: authorized,
        path_buffer: shared.path_buffer,
        cc: shared.cc.clone(),
        quic_cc: shared.quic_cc.clone(),
        reset_secret: key.reset_secret(),
        session: shared.session(),
        sessions: arguments.max_sessions,
        path_timeout: shared.path_timeout(),
        session_timeout: shared.session_timeout(),
        names: Names::of_host(),
    });
    run(&shared.service, async {
        for address in &arguments.listen {
            let takes = |carrier| [Carriers::Auto, Carriers::Only(carrier)].contains(&shared.carrier);
            if takes(Carrier::Tcp) {
                let listener = bind("--listen", *address).await?;
                let server = server.clone();
                tokio::spawn(async move { server.serve(listener).await });
            }
            if takes(Carrier::Quic) {
                let socket = UdpSocket::bind(address).map_err(|error| CliError::Option {
                    option: "--listen",
                    problem: format!("{address}, UDP: {error}; without QUIC: --carrier tcp"),
                })?;
                let server = server.clone();
                tokio::spawn(async move {
                    if let Err(error) = server.serve_quic(socket).await {
                        tracing::error!("no QUIC: {error}");
                    }
                });
            }
            tracing::info!(
                "listening at {address}; {} clients may come; key {}",
                clients.len(),
                key.public()
            );
        }
        let reporter = server.clone();
        tell(&shared.service, "suimon-bond-server", move || reporter.report(), metrics).await?;
        tokio::select! {
            told = until_told() => told?,
            failed = whenever_told_to_reread(async || reread(arguments, &server).await), if arguments.clients.is_some() => failed?,
        }
        server.close().await;
        Ok(())
    })
}

/// The keys of all clients: of the options and of the file.
fn clients(arguments: &ServerArguments) -> Result<Vec<PublicKey>, CliError> {
    let mut clients = arguments.client.clone();
    if let Some(path) = &arguments.clients {
        clients.extend(PublicKey::read_list(path)?);
    }
    Ok(clients)
}

/// Takes the file of clients as it is now. One that is wrong changes nothing.
async fn reread(arguments: &ServerArguments, server: &Server) {
    match clients(arguments) {
        Ok(clients) => {
            let count = clients.len();
            let ended = server.set_clients(clients).await;
            tracing::info!("clients read again: {count} may come; sessions of others that ended: {ended}");
        }
        Err(error) => tracing::error!("clients stay as they were: {error}"),
    }
}

pub(super) fn client(arguments: &ClientArguments) -> Result<(), CliError> {
    let key = PrivateKey::read(&arguments.key)?;
    let shared = &arguments.shared;
    shared.service.check()?;
    raise_limit();
    if arguments.socks.is_none() && arguments.forward.is_empty() && arguments.tun.is_none() {
        return Err(CliError::Option {
            option: "--socks",
            problem: "nothing to do: give --socks 127.0.0.1:1080, --forward 8080=host:80 or --tun".to_owned(),
        });
    }
    let mut config = ClientConfigBond {
        servers: servers(arguments, &key)?,
        via: arguments.via.clone(),
        carriers: shared.carrier,
        cc: shared.cc.clone(),
        quic_cc: shared.quic_cc.clone(),
        path_buffer: shared.path_buffer,
        session: shared.session(),
        classes: Classes::new(arguments.realtime.clone(), arguments.redundant.clone()),
        path_timeout: shared.path_timeout(),
        session_timeout: shared.session_timeout(),
        beside_tunnel: arguments.tun.is_some(),
    };
    run(&shared.service, async {
        let mut forwards = Vec::new();
        for forward in &arguments.forward {
            forwards.push((bind("--forward", forward.listen).await?, forward.target.clone()));
        }
        let socks = match arguments.socks {
            Some(address) => Some(bind("--socks", address).await?),
            None => None,
        };
        let no_tunnel = |error: TunnelError| CliError::Option { option: "--tun", problem: error.to_string() };
        let tunnel = arguments.tun.as_deref().map(Tunnel::open).transpose().map_err(no_tunnel)?;
        if tunnel.is_some() {
            for server in &mut config.servers {
                server.addresses = Some(look_up(&server.name).await?);
            }
        }
        let (client, packets) = Client::start(config)
            .map_err(|error| CliError::Option { option: "--via", problem: error.to_string() })?;
        let mut carried = None;
        if let Some(tunnel) = tunnel {
            tunnel.routes(arguments.fail).keep(&client).map_err(|error| no_tunnel(error.into()))?;
            tracing::info!(
                "all traffic of this host that no nearer network takes goes over {}",
                tunnel.name()
            );
            carried = Some(tokio::spawn(tunnel.serve(client.clone(), packets)));
        }
        for (listener, target) in forwards {
            tokio::spawn(serve_forward(listener, target, client.clone()));
        }
        if let Some(listener) = socks {
            tokio::spawn(serve_socks(listener, client.clone()));
        }
        let reporter = client.clone();
        tell(&shared.service, "suimon-bond-client", move || reporter.report(), metrics).await?;
        // With the device its routes are gone, and traffic goes around the bond: whoever started this has to know.
        let result = tokio::select! {
            told = until_told() => told,
            gone = ended(carried) => Err(CliError::Option { option: "--tun", problem: format!("the device is gone: {gone}") }),
        };
        client.close().await;
        result
    })
}

/// The reason for which a tunnel has ended; waits for ever where there is none.
async fn ended(carried: Option<JoinHandle<io::Result<()>>>) -> String {
    match carried {
        None => std::future::pending().await,
        Some(carried) => match carried.await {
            Ok(Ok(())) => "it gives no packets".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        },
    }
}

/// The servers with their keys.
fn servers(arguments: &ClientArguments, key: &PrivateKey) -> Result<Vec<ServerEnd>, CliError> {
    let (names, keys) = (&arguments.server, &arguments.server_key);
    if keys.len() != 1 && keys.len() != names.len() {
        return Err(CliError::Option {
            option: "--server-key",
            problem: format!("{} keys for {} servers: give one for all, or one for each", keys.len(), names.len()),
        });
    }
    let with_keys = names.iter().zip(keys.iter().chain(std::iter::repeat(&keys[0])));
    with_keys
        .map(|(name, server_key)| {
            let tls = Arc::new(client_config(key, *server_key)?);
            Ok(ServerEnd { name: name.clone(), tls, addresses: None })
        })
        .collect()
}

/// Of a server's name: once the device is there, names are asked for over the bond.
async fn look_up(server: &str) -> Result<Vec<SocketAddr>, CliError> {
    let found = tokio::net::lookup_host(server).await;
    let found = found.map_err(|error| CliError::Option {
        option: "--server",
        problem: format!("{server}: {error}; with --tun it must be known at the start"),
    })?;
    Ok(found.collect())
}
