//! Where programs of the client's host come in: SOCKS 5 (RFC 1928) and forwarded ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::client::Client;
use crate::link::invalid;
use crate::mux::ResetReason;
use crate::relay::relay;

/// Serves SOCKS 5 at `listener`, for ever.
pub async fn serve_socks(listener: TcpListener, client: Client) {
    serve(listener, move |tcp| socks(tcp, client.clone())).await;
}

/// Leads whoever connects to `listener` to `target`, seen from the server; for ever.
pub async fn serve_forward(listener: TcpListener, target: String, client: Client) {
    serve(listener, move |tcp| forward(tcp, target.clone(), client.clone())).await;
}

async fn serve<F>(listener: TcpListener, each: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                let served = each(tcp);
                tokio::spawn(async move {
                    if let Err(error) = served.await {
                        debug!("a program's connection ended: {error}");
                    }
                });
            }
            Err(error) => {
                warn!("cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn forward(tcp: TcpStream, target: String, client: Client) -> io::Result<()> {
    match client.open(&target).await {
        Ok(stream) => {
            relay(tcp, stream).await;
            Ok(())
        }
        Err(reason) => {
            socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO))?;
            Err(io::Error::other(format!("{target}: {reason}")))
        }
    }
}

async fn socks(mut tcp: TcpStream, client: Client) -> io::Result<()> {
    let target = timeout(GREETING_TIMEOUT, greet(&mut tcp)).await??;
    match client.open(&target).await {
        Ok(stream) => {
            answer(&mut tcp, SUCCEEDED).await?;
            relay(tcp, stream).await;
            Ok(())
        }
        Err(reason) => {
            let code = match reason {
                ResetReason::Forbidden => NOT_ALLOWED,
                ResetReason::Refused => REFUSED,
                ResetReason::Unreachable | ResetReason::UnknownName => HOST_UNREACHABLE,
                ResetReason::TimedOut => TTL_EXPIRED,
                _ => FAILED,
            };
            answer(&mut tcp, code).await?;
            Err(io::Error::other(format!("{target}: {reason}")))
        }
    }
}

/// Hears where a program wants to go.
async fn greet(tcp: &mut TcpStream) -> io::Result<String> {
    if tcp.read_u8().await? != VERSION {
        return Err(invalid("no SOCKS 5"));
    }
    let mut methods = vec![0; usize::from(tcp.read_u8().await?)];
    tcp.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        tcp.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(invalid("only SOCKS without authentication"));
    }
    tcp.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut request = [0; 4];
    tcp.read_exact(&mut request).await?;
    let [version, command, _, kind] = request;
    if version != VERSION {
        return Err(invalid("no SOCKS 5"));
    }
    let host = match kind {
        1 => {
            let mut bytes = [0; 4];
            tcp.read_exact(&mut bytes).await?;
            Host::Address(Ipv4Addr::from(bytes).into())
        }
        3 => {
            let mut bytes = vec![0; usize::from(tcp.read_u8().await?)];
            tcp.read_exact(&mut bytes).await?;
            Host::Name(String::from_utf8(bytes).map_err(invalid)?)
        }
        4 => {
            let mut bytes = [0; 16];
            tcp.read_exact(&mut bytes).await?;
            Host::Address(Ipv6Addr::from(bytes).into())
        }
        _ => {
            answer(tcp, NO_ADDRESS_TYPE).await?;
            return Err(invalid("an unknown type of address"));
        }
    };
    let port = tcp.read_u16().await?;
    if command != CONNECT {
        answer(tcp, NO_COMMAND).await?;
        return Err(invalid("only CONNECT"));
    }
    Ok(match host {
        Host::Address(address) => SocketAddr::new(address, port).to_string(),
        Host::Name(name) => format!("{name}:{port}"),
    })
}

enum Host {
    Address(IpAddr),
    Name(String),
}

async fn answer(tcp: &mut TcpStream, code: u8) -> io::Result<()> {
    // The bound address is nobody's business here: zero.
    tcp.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// Replies of RFC 1928 §6.
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const TTL_EXPIRED: u8 = 6;
const NO_COMMAND: u8 = 7;
const NO_ADDRESS_TYPE: u8 = 8;
