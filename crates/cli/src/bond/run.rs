//! Runs an end of a bond until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use suimon_bond::control::{Report, listen, serve_metrics, serve_status};
use suimon_bond::keys::{PrivateKey, PublicKey, client_config, server_config};
use suimon_bond::{
    Client, ClientConfigBond, Names, Server, ServerConfigBond, Tunnel, TunnelError, raise_limit, serve_forward, serve_socks,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::options::SharedOptions;
use super::{ClientArguments, ServerArguments};
use crate::error::CliError;

pub(super) fn server(arguments: &ServerArguments) -> Result<(), CliError> {
    let key = PrivateKey::read(&arguments.key)?;
    let mut clients = arguments.client.clone();
    if let Some(path) = &arguments.clients {
        clients.extend(PublicKey::read_list(path)?);
    }
    if clients.is_empty() {
        return Err(CliError::Option {
            option: "--client",
            problem:
                "without any client's public key nobody could use this server: --client KEY or --clients FILE"
                    .to_owned(),
        });
    }
    let shared = &arguments.shared;
    let metrics = shared.metrics()?;
    raise_limit();
    let server = Server::new(ServerConfigBond {
        tls: Arc::new(server_config(&key, clients.iter().copied())?),
        path_buffer: shared.path_buffer,
        cc: shared.cc.clone(),
        session: shared.session(),
        sessions: arguments.max_sessions,
        path_timeout: shared.path_timeout(),
        session_timeout: shared.session_timeout(),
        names: Names::of_host(),
    });
    run(shared, async {
        for address in &arguments.listen {
            let listener = bind("--listen", *address).await?;
            tracing::info!(
                "listening at {address}; {} clients may come; key {}",
                clients.len(),
                key.public()
            );
            let server = server.clone();
            tokio::spawn(async move { server.serve(listener).await });
        }
        let reporter = server.clone();
        tell(shared, metrics, "server", Arc::new(move || reporter.report())).await?;
        until_told().await?;
        server.close().await;
        Ok(())
    })
}

pub(super) fn client(arguments: &ClientArguments) -> Result<(), CliError> {
    let key = PrivateKey::read(&arguments.key)?;
    let shared = &arguments.shared;
    let metrics = shared.metrics()?;
    raise_limit();
    if arguments.socks.is_none() && arguments.forward.is_empty() && arguments.tun.is_none() {
        return Err(CliError::Option {
            option: "--socks",
            problem: "nothing to do: give --socks 127.0.0.1:1080, --forward 8080=host:80 or --tun".to_owned(),
        });
    }
    let mut config = ClientConfigBond {
        server: arguments.server.clone(),
        via: arguments.via.clone(),
        tls: Arc::new(client_config(&key, arguments.server_key)?),
        cc: shared.cc.clone(),
        path_buffer: shared.path_buffer,
        session: shared.session(),
        path_timeout: shared.path_timeout(),
        session_timeout: shared.session_timeout(),
        beside_tunnel: None,
    };
    run(shared, async {
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
            config.beside_tunnel = Some(look_up(&arguments.server).await?);
        }
        let (client, packets) = Client::start(config)
            .map_err(|error| CliError::Option { option: "--via", problem: error.to_string() })?;
        if let Some(tunnel) = tunnel {
            tunnel.routes(arguments.fail).keep(&client).map_err(|error| no_tunnel(error.into()))?;
            tracing::info!(
                "all traffic of this host that no nearer network takes goes over {}",
                tunnel.name()
            );
            let client = client.clone();
            tokio::spawn(async move {
                if let Err(error) = tunnel.serve(client, packets).await {
                    tracing::error!("the device is gone: {error}");
                }
            });
        }
        for (listener, target) in forwards {
            tokio::spawn(serve_forward(listener, target, client.clone()));
        }
        if let Some(listener) = socks {
            tokio::spawn(serve_socks(listener, client.clone()));
        }
        let reporter = client.clone();
        tell(shared, metrics, "client", Arc::new(move || reporter.report())).await?;
        until_told().await?;
        client.close().await;
        Ok(())
    })
}

fn run(shared: &SharedOptions, work: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    tracing_subscriber::fmt()
        .with_max_level(shared.log)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(work)
}

/// Answers those who ask.
async fn tell(
    shared: &SharedOptions,
    metrics: Option<SocketAddr>,
    role: &str,
    report: Arc<dyn Fn() -> Report + Send + Sync>,
) -> Result<(), CliError> {
    let path = shared.control.clone().unwrap_or_else(|| socket_path(role));
    match listen(&path).await {
        Ok(listener) => {
            tokio::spawn(serve_status(listener, report.clone()));
        }
        // Who asked for it gets it or an error; the default place may be out of reach.
        Err(error) if shared.control.is_some() => {
            return Err(CliError::Option {
                option: "--control",
                problem: format!("{}: {error}", path.display()),
            });
        }
        Err(error) => tracing::warn!("no `suimon bond status`: {}: {error}", path.display()),
    }
    if let Some(address) = metrics {
        tokio::spawn(serve_metrics(bind("--metrics", address).await?, report));
    }
    Ok(())
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

async fn bind(option: &'static str, address: SocketAddr) -> Result<TcpListener, CliError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| CliError::Option { option, problem: format!("{address}: {error}") })
}

async fn until_told() -> Result<(), CliError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    Ok(())
}

/// Where an end with `role` answers unless told otherwise.
pub(super) fn socket_path(role: &str) -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from("/run"), PathBuf::from);
    folder.join(format!("suimon-bond-{role}.sock"))
}
