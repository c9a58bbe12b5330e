//! The server's half of SOCKS 5 (RFC 1928): CONNECT, without authentication.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::descriptors::reset_on_close;
use crate::target::Target;

/// Hears where a program wants to go, within [`GREETING_TIMEOUT`]. A program that asks for more than this proxy does is
/// told so.
///
/// # Errors
/// A connection that ended, and a request that RFC 1928 does not know or that this proxy does not serve.
pub async fn greet(tcp: &mut TcpStream) -> io::Result<Target> {
    timeout(GREETING_TIMEOUT, hear(tcp)).await?
}

async fn hear(tcp: &mut TcpStream) -> io::Result<Target> {
    if tcp.read_u8().await? != VERSION {
        return Err(invalid_data("no SOCKS 5"));
    }
    let mut methods = vec![0; usize::from(tcp.read_u8().await?)];
    tcp.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        reset_on_close(tcp, false)?;
        tcp.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(invalid_data("only SOCKS without authentication"));
    }
    tcp.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut request = [0; 4];
    tcp.read_exact(&mut request).await?;
    let [version, command, _, kind] = request;
    if version != VERSION {
        return Err(invalid_data("no SOCKS 5"));
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
            refuse(tcp, Reply::NoAddressType).await?;
            return Err(invalid_data("an unknown type of address"));
        }
    };
    let port = tcp.read_u16().await?;
    if command != CONNECT {
        refuse(tcp, Reply::NoCommand).await?;
        return Err(invalid_data("only CONNECT"));
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
            refuse(tcp, Reply::HostUnreachable).await?;
            Err(invalid_data(problem))
        }
    }
}

enum Host {
    Address(IpAddr),
    Name(Vec<u8>),
}

/// Answers a request with `reply`.
///
/// # Errors
/// Where the connection is gone.
pub async fn answer(tcp: &mut TcpStream, reply: Reply) -> io::Result<()> {
    // The bound address is nobody's business here: zero.
    tcp.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

/// Answers, and lets the connection end in order, so that the program reads it.
///
/// # Errors
/// Where the connection is gone.
pub async fn refuse(tcp: &mut TcpStream, reply: Reply) -> io::Result<()> {
    reset_on_close(tcp, false)?;
    answer(tcp, reply).await
}

/// The longest time that a program may take to say where it wants to go.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// Replies of RFC 1928 §6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The connection is there.
    Succeeded = 0,
    /// This proxy cannot.
    Failed = 1,
    /// A rule forbids it.
    NotAllowed = 2,
    /// There is no way to the host, or no such host.
    HostUnreachable = 4,
    /// The host refuses it.
    Refused = 5,
    /// The host did not answer in time.
    TimedOut = 6,
    /// This proxy serves CONNECT only.
    NoCommand = 7,
    /// The address is of an unknown type.
    NoAddressType = 8,
}

fn invalid_data(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use tokio::net::TcpListener;

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
            assert_eq!(
                answers[..4],
                [VERSION, NO_AUTHENTICATION, VERSION, Reply::HostUnreachable as u8],
                "{name:?}"
            );
        }
    }
}
