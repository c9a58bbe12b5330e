//! `suimon measure --serve`.

use std::net::SocketAddr;

use clap::Args;
use suimon_measure::PORT;
use suimon_measure::server::{Limits, Report, Server};
use suimon_service::Metrics;
use suimon_service::descriptors::raise_limit;

use super::ServiceOptions;
use crate::error::CliError;
use crate::service::{bind, run, tell, until_told};

#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct Options {
    /// Where clients connect, by TCP and UDP; a port alone is one of all addresses of this host [default: 7423]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = address, requires = "serve")]
    listen: Option<SocketAddr>,
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
        tracing::info!("clients connect to {address}, by TCP and UDP; browsers find http://HOST:{}/", address.port());
        let reporter = server.clone();
        tell(&options.service, NAME, move || reporter.report(), metrics).await?;
        tokio::spawn(server.serve(listener));
        until_told().await
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
