//! Runs a gateway until it is told to stop.

use std::time::Duration;

use suimon_gateway::report::metrics;
use suimon_gateway::{Gateway, Limits, serve_forward, serve_socks};
use suimon_service::Names;
use suimon_service::descriptors::raise_limit;

use super::senders::Senders;
use super::split::{self, Split};
use super::{NAME, Options};
use crate::error::CliError;
use crate::service::{run, tell, until_told};

pub(super) fn execute(options: &Options) -> Result<(), CliError> {
    options.service.check()?;
    if options.lan.is_none() && options.listen.is_none() && options.socks.is_none() {
        return Err(CliError::Option {
            option: "--lan",
            problem: "nothing to do: give --lan eth0 --radio wwan0, --listen 8443 --to host:443 or --socks 1080"
                .to_owned(),
        });
    }
    if let Some(address) = options.socks
        && !address.ip().is_loopback()
        && options.allow.is_empty()
    {
        return Err(CliError::Option {
            option: "--socks",
            problem: format!(
                "{address} is not a loopback address, and whoever reaches it could use the proxy: say who may by --allow 10.0.0.0/8"
            ),
        });
    }
    let devices = split::devices(options)?;
    raise_limit();
    run(&options.service, async {
        // What would be set has no sender.
        let senders = if options.dry_run { Senders::default() } else { Senders::of(options)? };
        let mut limits = Limits::of_process(options.max_of_client);
        limits.connections = options.max_connections.map_or(limits.connections, |most| most.min(limits.connections));
        let gateway = Gateway::new(senders.sides.clone(), limits, Names::of_host());
        if options.dry_run {
            return devices.as_ref().map_or(Ok(()), |devices| split::describe(&gateway, devices));
        }
        let mut listeners = Vec::new();
        if let (Some(address), Some(target)) = (options.listen, &options.to) {
            let listener = listen(&gateway, "--listen", address)?;
            tracing::info!("{address} leads to {target}");
            listeners.push(tokio::spawn(serve_forward(gateway.clone(), listener, target.clone())));
        }
        if let Some(address) = options.socks {
            let listener = listen(&gateway, "--socks", address)?;
            tracing::info!("a SOCKS proxy is at {address}");
            listeners.push(tokio::spawn(serve_socks(gateway.clone(), listener, options.allow.clone())));
        }
        let split = devices.map(|devices| Split::new(&gateway, &devices)).transpose()?;
        tokio::spawn(gateway.clone().measure());
        let reporter = gateway.clone();
        tell(&options.service, NAME, move || reporter.report(), metrics).await?;
        until_told().await?;
        listeners.iter().for_each(tokio::task::JoinHandle::abort);
        split.iter().try_for_each(Split::stop)?;
        let left = gateway.drain(Duration::from_nanos(options.drain.as_nanos())).await;
        if left > 0 {
            tracing::warn!("{left} connections have not ended within {} and are reset", options.drain);
        }
        Ok(())
    })
}

fn listen(
    gateway: &Gateway,
    option: &'static str,
    address: std::net::SocketAddr,
) -> Result<tokio::net::TcpListener, CliError> {
    let listener = gateway.sides().radio.listen(address);
    listener.map_err(|error| CliError::Option { option, problem: format!("{address}: {error}") })
}
