//! `suimon measure --serve`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use suimon_measure::PORT;
use suimon_measure::server::{Limits, Report, Server, Tls, TlsError};
use suimon_service::Metrics;
use suimon_service::descriptors::raise_limit;

use super::ServiceOptions;
use crate::error::CliError;
use crate::service::{bind, run, tell, until_told, whenever_told_to_reread};

#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct Options {
    /// Where clients connect, by TCP and UDP; a port alone is one of all addresses of this host [default: 7423]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address, requires = "serve")]
    listen: Option<SocketAddr>,
    /// Serve the page by HTTPS too, at the same port, by the certificates of this file (PEM); SIGHUP reads it again
    #[arg(long, value_name = "FILE", requires_all = ["serve", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Measurements at once
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().sessions, requires = "serve")]
    max_sessions: usize,
    /// Measurements at once of one client: of an IPv4 address, or of an IPv6 network of 64 bits
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().of_network, requires = "serve")]
    max_of_client: usize,
    /// Measurements that one client may begin in a minute
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().a_minute, requires = "serve")]
    max_a_minute: usize,
    /// The most data of each direction of a measurement, in megabytes
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().bytes / 1_000_000, requires = "serve")]
    max_megabytes: u64,
    #[command(flatten)]
    service: ServiceOptions,
}

/// The name of the socket at which a server answers.
const NAME: &str = "suimon-measure";

impl Options {
    /// The files of the certificate and of its key, where both are given.
    fn tls_files(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    fn tls(&self) -> Result<Option<Tls>, CliError> {
        let read = self.tls_files().map(|(certificate, key)| Tls::read(certificate, key)).transpose();
        read.map_err(|error| CliError::Option {
            option: match error {
                TlsError::Certificate { .. } => "--tls-cert",
                TlsError::Key { .. } | TlsError::OtherKey { .. } => "--tls-key",
            },
            problem: error.to_string(),
        })
    }

    /// Reads the certificate again; the server keeps the one before where it does not read.
    fn protect_again(&self, server: &Server) {
        match self.tls() {
            Ok(Some(tls)) => {
                server.protect(tls);
                tracing::info!("the certificate was read again");
            }
            Ok(None) => {}
            Err(error) => tracing::error!("{error}; the certificate before remains"),
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([0_u16; 8], port)));
    }
    text.parse().map_err(|_| format!("{text:?}: accepted: PORT or ADDRESS:PORT, as in 7423 or [::1]:7423"))
}

pub(super) fn execute(options: &Options) -> Result<(), CliError> {
    options.service.check()?;
    raise_limit();
    let limits = Limits {
        sessions: options.max_sessions,
        of_network: options.max_of_client,
        a_minute: options.max_a_minute,
        bytes: options.max_megabytes.saturating_mul(1_000_000),
        ..Limits::default()
    };
    let tls = options.tls()?;
    run(&options.service, async {
        let listener = match options.listen {
            Some(address) => bind("--listen", address).await?,
            // Hosts without IPv6 have one family only.
            None => match bind("--listen", SocketAddr::from(([0_u16; 8], PORT))).await {
                Ok(listener) => listener,
                Err(_) => bind("--listen", SocketAddr::from(([0; 4], PORT))).await?,
            },
        };
        let server = Server::new(limits, super::web::documents);
        let address = listener.local_addr()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        tracing::info!("clients connect to {address}, by TCP and UDP; browsers find {scheme}://HOST:{}/", address.port());
        if let Some(tls) = tls {
            server.protect(tls);
        }
        let reporter = server.clone();
        tell(&options.service, NAME, move || reporter.report(), metrics).await?;
        tokio::spawn(server.clone().serve(listener));
        tokio::select! {
            done = until_told() => done,
            failed = whenever_told_to_reread(async || options.protect_again(&server)), if options.tls_cert.is_some() => failed,
        }
    })
}

fn metrics(report: &Report) -> String {
    let mut metrics = Metrics::new("suimon_measure_server");
    let one = |value: u64| [([], value as f64)];
    metrics.add::<0>(("sessions", "gauge", "Measurements under way."), one(report.open));
    metrics.add::<0>(("sessions_total", "counter", "Measurements begun."), one(report.opened));
    metrics.add::<0>(("refused_total", "counter", "Measurements refused."), one(report.refused));
    metrics.add::<0>(("bytes_total", "counter", "Payload of loads that are over."), one(report.bytes));
    metrics.add::<0>(("echoes_total", "counter", "Datagrams answered."), one(report.echoes));
    metrics.add::<0>(("ignored_total", "counter", "Datagrams not answered."), one(report.ignored));
    metrics.finish()
}
