//! The settings of sockets on either side.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::syn::Syn;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use suimon_linux::tcp;
use suimon_units::Bytes;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// The settings of one side's sockets.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// Congestion control, as the kernel calls it; its default where none is given.
    pub congestion_control: Option<String>,
    /// The receive buffer (`SO_RCVBUF`), which bounds the window that the other end sees; the kernel's own measure where
    /// none is given, which is twice what is read in a round-trip time.
    pub receive_buffer: Option<Bytes>,
}

/// Both sides.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// The side of the clients.
    pub radio: Side,
    /// The side of the servers.
    pub lan: Side,
}

impl Side {
    /// A socket of this side for `address`.
    pub(crate) fn socket(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket =
            Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        self.apply(&socket)?;
        Ok(socket)
    }

    fn apply(&self, socket: &Socket) -> io::Result<()> {
        if let Some(name) = &self.congestion_control {
            tcp::choose(socket, name)?;
        }
        if let Some(buffer) = self.receive_buffer {
            // The kernel doubles the value, for its own bookkeeping (socket(7)).
            socket.set_recv_buffer_size(usize::try_from(buffer.get() / 2).unwrap_or(usize::MAX))?;
        }
        Ok(())
    }

    /// Listens at `address`; accepted sockets have the settings of this side.
    ///
    /// # Errors
    /// Where the address is taken, or the kernel has no such congestion control.
    pub fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.listen_on(self.socket(address)?, address)
    }

    pub(crate) fn listen_on(&self, socket: Socket, address: SocketAddr) -> io::Result<TcpListener> {
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    }

    /// Connects to the end that `syn` goes to, as if from the end that it comes from.
    ///
    /// # Errors
    /// Without root's rights, where such a connection is there, or where the end does not take it.
    pub(crate) async fn connect_as(&self, syn: Syn) -> io::Result<TcpStream> {
        let socket = self.socket(syn.to)?;
        let is_ipv4 = syn.from.is_ipv4();
        if is_ipv4 { socket.set_ip_transparent_v4(true) } else { socket.set_ip_transparent_v6(true) }?;
        // The port of a client that has connections to other servers too.
        socket.set_reuse_address(true)?;
        set_dscp(&socket, syn.from, syn.dscp)?;
        socket.bind(&syn.from.into())?;
        let socket = TcpSocket::from_std_stream(socket.into());
        timeout(CONNECT_TIMEOUT, socket.connect(syn.to)).await?
    }

    /// Connects to the first of `addresses` that answers.
    ///
    /// # Errors
    /// The last address's, or [`io::ErrorKind::TimedOut`].
    pub(crate) async fn connect(&self, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::HostUnreachable);
        for address in addresses {
            let socket = TcpSocket::from_std_stream(self.socket(*address)?.into());
            match timeout(CONNECT_TIMEOUT, socket.connect(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

/// Settings of a connected socket of either side.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    // What came in one piece goes on at once.
    socket.set_tcp_nodelay(true)?;
    // An urgent byte (RFC 6093) goes on in its place among the others.
    socket.set_out_of_band_inline(true)?;
    // Each end's own probes are answered here, so an end that is gone must be noticed here.
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL))?;
    // A reset, not an end, should this process be killed: nobody is to take a part for the whole.
    socket.set_linger(Some(Duration::ZERO))?;
    limit_unsent(stream, MIN_UNSENT)
}

/// Gives what `socket` sends the DSCP that the connection's other half has, for addresses of the family of `address`.
pub(crate) fn set_dscp(socket: impl AsFd, address: SocketAddr, dscp: u8) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    if address.is_ipv4() { socket.set_tos_v4(dscp.into()) } else { socket.set_tclass_v6(dscp.into()) }
}

/// A writer to `stream` waits while more than `bytes` were not sent yet.
pub(crate) fn limit_unsent(stream: impl AsFd, bytes: u32) -> io::Result<()> {
    SockRef::from(&stream).set_tcp_notsent_lowat(bytes)
}

/// The least that may wait unsent, in bytes: some segments, so that the sender has the next one at hand.
pub(crate) const MIN_UNSENT: u32 = 16 * 1024;
/// As many connections may wait to be accepted as the kernel lets them (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;
/// Linux gives up after 127 s; programs do before.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Silence after which an end is asked whether it is there: within the 124 minutes for which RFC 5382 §5 has routers remember
/// a connection.
const KEEPALIVE: Duration = Duration::from_secs(600);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
