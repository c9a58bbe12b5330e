//! Programs that run until they are told to stop, and tell how they do meanwhile.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;
use suimon_service::control::{listen, serve_metrics, serve_status, socket_path};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::CliError;

/// Options of a program that runs until it is told to stop.
#[derive(Debug, Args)]
pub(crate) struct ServiceOptions {
    /// Where the status command asks
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve metrics to Prometheus at this loopback address, under /metrics
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// How much to log: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: tracing::Level,
}

impl ServiceOptions {
    /// Refuses what is not safe.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match self.metrics {
            Some(address) if !address.ip().is_loopback() => Err(CliError::Option {
                option: "--metrics",
                problem: format!(
                    "{address} is not a loopback address, and metrics are not protected: take 127.0.0.1"
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// Runs `work` with what it logs going to standard error.
pub(crate) fn run(
    options: &ServiceOptions,
    work: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(work)
}

/// Answers those who ask the program called `name`.
pub(crate) async fn tell<T: Serialize + 'static>(
    options: &ServiceOptions,
    name: &str,
    report: impl Fn() -> T + Send + Sync + 'static,
    metrics: fn(&T) -> String,
) -> Result<(), CliError> {
    let report: Arc<dyn Fn() -> T + Send + Sync> = Arc::new(report);
    let path = options.control.clone().unwrap_or_else(|| socket_path(name));
    match listen(&path).await {
        Ok(listener) => {
            tokio::spawn(serve_status(listener, report.clone()));
        }
        // Who asked for it gets it or an error; the default place may be out of reach.
        Err(error) if options.control.is_some() => {
            return Err(CliError::Option {
                option: "--control",
                problem: format!("{}: {error}", path.display()),
            });
        }
        Err(error) => tracing::warn!("no status: {}: {error}", path.display()),
    }
    if let Some(address) = options.metrics {
        let page = Arc::new(move || metrics(&report()));
        tokio::spawn(serve_metrics(bind("--metrics", address).await?, page));
    }
    Ok(())
}

pub(crate) async fn bind(option: &'static str, address: SocketAddr) -> Result<TcpListener, CliError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| CliError::Option { option, problem: format!("{address}: {error}") })
}

/// Does `reread` whenever this program is told to read its files again (SIGHUP), for ever.
pub(crate) async fn whenever_told_to_reread(reread: impl AsyncFn()) -> Result<(), CliError> {
    let mut hangup = signal(SignalKind::hangup())?;
    while hangup.recv().await.is_some() {
        reread().await;
    }
    Ok(())
}

pub(crate) async fn until_told() -> Result<(), CliError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    Ok(())
}
