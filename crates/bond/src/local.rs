//! Where programs of the client's host come in: SOCKS 5 (RFC 1928) and forwarded ports.

use std::io;

use suimon_service::Target;
use suimon_service::descriptors::{accept, reset_on_close};
use suimon_service::socks::{Reply, answer, greet, refuse};
use tokio::net::{TcpListener, TcpStream};
use tracing::debug;

use crate::client::Client;
use crate::descriptors::Share;
use crate::mux::ResetReason;
use crate::relay::relay;

/// Serves SOCKS 5 at `listener`, for ever.
pub async fn serve_socks(listener: TcpListener, client: Client) {
    let descriptors = client.descriptors().clone();
    serve(listener, descriptors, move |tcp| socks(tcp, client.clone())).await;
}

/// Leads whoever connects to `listener` to `target`, seen from the server; for ever.
pub async fn serve_forward(listener: TcpListener, target: Target, client: Client) {
    let descriptors = client.descriptors().clone();
    serve(listener, descriptors, move |tcp| forward(tcp, target.clone(), client.clone())).await;
}

async fn serve<F>(listener: TcpListener, descriptors: Share, each: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        // Programs wait rather than take the descriptors of paths.
        let ticket = descriptors.wait().await;
        let (tcp, _) = accept(&listener).await;
        // Where this process is killed, a program is not to take nothing for all.
        let _ = reset_on_close(&tcp, true);
        let served = each(tcp);
        tokio::spawn(async move {
            if let Err(error) = served.await {
                debug!("a program's connection ended: {error}");
            }
            drop(ticket);
        });
    }
}

async fn forward(tcp: TcpStream, target: Target, client: Client) -> io::Result<()> {
    match client.open(&target).await {
        Ok(stream) => {
            relay(tcp, stream).await;
            Ok(())
        }
        Err(reason) => Err(io::Error::other(format!("{target}: {reason}"))),
    }
}

async fn socks(mut tcp: TcpStream, client: Client) -> io::Result<()> {
    let target = greet(&mut tcp).await?;
    match client.open(&target).await {
        Ok(stream) => {
            answer(&mut tcp, Reply::Succeeded).await?;
            relay(tcp, stream).await;
            Ok(())
        }
        Err(reason) => {
            let reply = match reason {
                ResetReason::Forbidden => Reply::NotAllowed,
                ResetReason::Refused => Reply::Refused,
                ResetReason::Unreachable | ResetReason::UnknownName => Reply::HostUnreachable,
                ResetReason::TimedOut => Reply::TimedOut,
                _ => Reply::Failed,
            };
            refuse(&mut tcp, reply).await?;
            Err(io::Error::other(format!("{target}: {reason}")))
        }
    }
}
