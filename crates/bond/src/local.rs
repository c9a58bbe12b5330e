//! Where programs of the client's host come in: SOCKS 5 (RFC 1928) and forwarded ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tracing::debug;

use crate::client::Client;
use crate::connection::invalid;
use crate::descriptors::{Share, accept};
use crate::mux::{ResetReason, Target};
use crate::relay::{relay, reset_on_close};

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
            refuse(&mut tcp, code).await?;
            Err(io::Error::other(format!("{target}: {reason}")))
        }
    }
}

/// Hears where a program wants to go.
async fn greet(tcp: &mut TcpStream) -> io::Result<Target> {
    if tcp.read_u8().await? != VERSION {
        return Err(invalid("no SOCKS 5"));
    }
    let mut methods = vec![0; usize::from(tcp.read_u8().await?)];
    tcp.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        reset_on_close(tcp, false)?;
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
            Host::Name(bytes)
        }
        4 => {
            let mut bytes = [0; 16];
            tcp.read_exact(&mut bytes).await?;
            Host::Address(Ipv6Addr::from(bytes).into())
        }
        _ => {
            refuse(tcp, NO_ADDRESS_TYPE).await?;
            return Err(invalid("an unknown type of address"));
        }
    };
    let port = tcp.read_u16().await?;
    if command != CONNECT {
        refuse(tcp, NO_COMMAND).await?;
        return Err(invalid("only CONNECT"));
    }
    let target = match host {
        Host::Address(address) => SocketAddr::new(address, port).to_string().into_bytes(),
        Host::Name(mut name) => {
            name.extend(format!(":{port}").bytes());
            name
        }
    };
    match Target::from_bytes(&target) {
        Ok(target) => Ok(target),
        Err(problem) => {
            refuse(tcp, HOST_UNREACHABLE).await?;
            Err(invalid(problem))
        }
    }
}

enum Host {
    Address(IpAddr),
    Name(Vec<u8>),
}

async fn answer(tcp: &mut TcpStream, code: u8) -> io::Result<()> {
    // The bound address is nobody's business here: zero.
    tcp.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

/// Answers, and lets the connection end in order, so that the program reads it.
async fn refuse(tcp: &mut TcpStream, code: u8) -> io::Result<()> {
    reset_on_close(tcp, false)?;
    answer(tcp, code).await
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// The target that a program reaches by asking for `name` by SOCKS, and the answers to the program.
    fn asked(name: &[u8]) -> (io::Result<Target>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let request =
                [&[5, 1, 0, 5, 1, 0, 3, name.len() as u8][..], name, &80_u16.to_be_bytes()].concat();
            let program = tokio::task::spawn_blocking(move || {
                let mut tcp = std::net::TcpStream::connect(address).unwrap();
                tcp.write_all(&request).unwrap();
                let mut answers = Vec::new();
                tcp.read_to_end(&mut answers).unwrap();
                answers
            });
            let (mut tcp, _) = listener.accept().await.unwrap();
            let target = greet(&mut tcp).await;
            drop(tcp);
            (target, program.await.unwrap())
        })
    }

    #[test]
    fn a_name_that_no_server_takes_is_refused_where_it_comes_in() {
        let (target, answers) = asked(b"example.org");
        assert_eq!(target.unwrap().as_str(), "example.org:80");
        assert_eq!(answers, [VERSION, NO_AUTHENTICATION]);
        for name in [&b"exa\nmple.org"[..], "b\u{fc}cher.example".as_bytes(), b"\xff", &[b'x'; 255]] {
            let (target, answers) = asked(name);
            assert!(target.is_err(), "{name:?}");
            assert_eq!(answers[..4], [VERSION, NO_AUTHENTICATION, VERSION, HOST_UNREACHABLE], "{name:?}");
        }
    }
}
