//! Clients that keep to no rule but those that get them in.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use suimon_bond::frame::{Frame, Join, decode};
use suimon_bond::keys::{PrivateKey, client_config};
use tokio::runtime::Runtime;

use super::arena::Arena;

/// A connection of a client that has joined.
pub(super) struct Hostile {
    tls: StreamOwned<ClientConnection, TcpStream>,
    /// Bytes of the aggregate that were sent.
    pub(super) sent: u64,
}

/// Types of the frames of streams, as `suimon_bond::mux` has them.
pub(super) mod kind {
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const OPENED: u8 = 2;
    pub(crate) const DATA: u8 = 3;
    pub(crate) const END: u8 = 5;
    pub(crate) const RESET: u8 = 6;
    pub(crate) const PACKET: u8 = 7;
    pub(crate) const BLOCKED: u8 = 8;
}

/// The frame that opens a stream, of any class of service.
pub(super) fn open(stream: u32, target: &[u8]) -> Vec<u8> {
    let class = (stream % 3) as u8;
    [&[kind::OPEN][..], &stream.to_be_bytes(), &[class, target.len() as u8], target].concat()
}

/// A frame of a stream without anything but its head.
pub(super) fn head(kind: u8, stream: u32) -> Vec<u8> {
    [&[kind][..], &stream.to_be_bytes()].concat()
}

/// Data of a stream from `place` on.
pub(super) fn data(stream: u32, place: u64, bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u16).to_be_bytes();
    [&head(kind::DATA, stream)[..], &place.to_be_bytes(), &len, bytes].concat()
}

/// The end of a stream of so many bytes.
pub(super) fn end(stream: u32, length: u64) -> Vec<u8> {
    [&head(kind::END, stream)[..], &length.to_be_bytes()].concat()
}

/// A connection from `from` to the server, over which nothing was said.
pub(super) fn knock(arena: &Arena, from: Ipv4Addr) -> io::Result<TcpStream> {
    let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), arena.port());
    let connect = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from.into(), 0).into())?;
        socket.connect_timeout(&to.into(), LIMIT)?;
        Ok::<TcpStream, io::Error>(socket.into())
    };
    let stream = arena.far().run(connect).map_err(io::Error::other)??;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

/// A socket whose datagrams from `from` go to the server.
pub(super) fn knock_by_udp(arena: &Arena, from: Ipv4Addr) -> io::Result<UdpSocket> {
    let bind = || UdpSocket::bind(SocketAddr::new(from.into(), 0));
    let socket = arena.far().run(bind).map_err(io::Error::other)??;
    socket.connect(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), arena.port()))?;
    Ok(socket)
}

/// The first frame of a client.
fn first(session: [u8; 16]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame::Join(Join {
        session,
        nonce: 0,
        path: 0,
        attempt: 1,
        reorder_buffer: 1 << 20,
        window: 1 << 16,
        name: "hostile0".to_owned(),
    })
    .encode(&mut bytes);
    bytes
}

/// A connection over QUIC of a client that has joined.
pub(super) struct HostileQuic {
    connection: quinn::Connection,
    runtime: Runtime,
}

impl HostileQuic {
    /// Joins `session` by `key`, from an address.
    pub(super) fn join(
        arena: &Arena,
        key: &PrivateKey,
        from: Ipv4Addr,
        session: [u8; 16],
    ) -> io::Result<Self> {
        let bind = || UdpSocket::bind(SocketAddr::new(from.into(), 0));
        let socket = arena.far().run(bind).map_err(io::Error::other)??;
        let tls = client_config(key, arena.server_key.public()).map_err(io::Error::other)?;
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), arena.port());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let joining = async {
            let stack = Arc::new(quinn::TokioRuntime);
            let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), None, socket, stack)?;
            let config = quinn::ClientConfig::new(Arc::new(crypto));
            let connecting = endpoint.connect_with(config, to, "suimon-bond").map_err(io::Error::other)?;
            let connection = connecting.await?;
            let (mut send, mut receive) = connection.open_bi().await?;
            send.write_all(&first(session)).await?;
            let mut answer = [0; 256];
            let count = receive.read(&mut answer).await.map_err(io::Error::other)?.unwrap_or_default();
            match decode(&answer[..count]) {
                Ok(Some((Frame::Welcome(_), _))) => Ok(connection),
                _ => Err(io::Error::other("refused")),
            }
        };
        let connection = runtime.block_on(async { tokio::time::timeout(LIMIT, joining).await })??;
        Ok(Self { connection, runtime })
    }

    /// Begins up to `count` frames, sends up to `bytes` of each, and never ends them.
    pub(super) fn begin_frames(&self, count: usize, bytes: usize) {
        self.runtime.block_on(async {
            let begun = async {
                let mut frames = Vec::new();
                while frames.len() < count {
                    let Ok(mut frame) = self.connection.open_uni().await else { return };
                    let part = vec![4; bytes];
                    let _ = tokio::time::timeout(Duration::from_millis(1), frame.write_all(&part)).await;
                    frames.push(frame);
                }
                std::future::pending::<()>().await;
            };
            let _ = tokio::time::timeout(LIMIT, begun).await;
            // The server hears of the end.
            self.connection.close(0_u32.into(), b"");
            tokio::time::sleep(Duration::from_millis(50)).await;
        });
    }
}

impl Hostile {
    /// Joins `session` by `key`, from an address.
    pub(super) fn join(
        arena: &Arena,
        key: &PrivateKey,
        from: Ipv4Addr,
        session: [u8; 16],
    ) -> io::Result<Self> {
        let stream = knock(arena, from)?;
        let config = client_config(key, arena.server_key.public()).map_err(io::Error::other)?;
        let name = ServerName::try_from("suimon-bond").expect("a plain name");
        let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut joined = Self { tls: StreamOwned::new(tls, stream), sent: 0 };
        joined.send_all(&first(session))?;
        let mut answer = Vec::new();
        let mut buffer = [0; 256];
        loop {
            let count = joined.tls.read(&mut buffer)?;
            answer.extend_from_slice(&buffer[..count]);
            match decode(&answer).map_err(io::Error::other)? {
                Some((Frame::Welcome(_), _)) => return Ok(joined),
                Some(_) => return Err(io::Error::other("refused")),
                None if count == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => {}
            }
        }
    }

    pub(super) fn send(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.tls.write_all(&bytes)
    }

    /// Sends frames as they are.
    pub(super) fn send_all(&mut self, frames: &[u8]) -> io::Result<()> {
        self.tls.write_all(frames)
    }

    /// Sends whole frames of streams, as many as a frame of the connection takes.
    pub(super) fn stream(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(&Frame::Data { start: self.sent, bytes })?;
        self.sent += bytes.len() as u64;
        self.drain()
    }

    /// Reads what has come, and forgets it.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.tls.sock.set_nonblocking(true)?;
        let mut buffer = [0; 65_536];
        let read = loop {
            match self.tls.read(&mut buffer) {
                Ok(0) => break Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.tls.sock.set_nonblocking(false)?;
        read
    }
}

/// The most time for one call of the kernel, so that each of these ends.
const LIMIT: Duration = Duration::from_millis(500);
