//! Frames over TLS over TCP.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{AlertDescription, Connection};
use socket2::SockRef;
use suimon_aggregation::Segments;
use suimon_algorithms::path::Rtt;
use suimon_linux::tcp::{SenderState, acknowledge, limit_timeout, tcp_state, unacknowledged};
use suimon_units::{self as units, Bytes, Instant};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::connection::{Meters, Reading, Told, invalid, other_version};
use crate::frame::{Frame, Malformed, decode};
use crate::session::Part;

/// A connection whose other end has proved who it is.
#[derive(Debug)]
pub(crate) struct TlsConnection {
    tcp: TcpStream,
    tls: Connection,
    /// Bytes that arrived and are not decoded yet.
    inbox: Vec<u8>,
    decoded: usize,
    /// Bytes of data in decoded frames.
    received: u64,
    meters: Meters,
    /// Bytes unsent up to which the kernel counts as hungry.
    lowat: u32,
    recovery: Recovery,
    /// Its maximum segment size, as far as it was read.
    mss: Bytes,
    /// A chunk of one segment came, which the kernel may acknowledge with the next one only.
    owes_ack: bool,
    /// Bytes that the connection may hold, where the limit is below the kernel's.
    send_buffer: Option<Bytes>,
}

impl TlsConnection {
    /// Shakes hands.
    pub(crate) async fn handshake(
        tcp: TcpStream,
        tls: Connection,
        send_buffer: Option<Bytes>,
    ) -> io::Result<Self> {
        let mut connection = Self {
            tcp,
            tls,
            inbox: Vec::new(),
            decoded: 0,
            received: 0,
            meters: Meters::default(),
            lowat: MIN_LOWAT,
            recovery: Recovery::default(),
            mss: Bytes::ZERO,
            owes_ack: false,
            send_buffer,
        };
        // A packet takes several records.
        connection.tls.set_buffer_limit(None);
        prepare(&connection.tcp)?;
        let mut scratch = vec![0; 4096];
        loop {
            while connection.tls.wants_write() {
                connection.tcp.writable().await?;
                connection.flush()?;
            }
            if !connection.tls.is_handshaking() {
                return Ok(connection);
            }
            connection.tcp.readable().await?;
            match connection.read(&mut scratch) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    // An alert says why.
                    let _ = connection.flush();
                    return Err(error);
                }
            }
        }
    }

    /// The next frame, once it came.
    pub(crate) async fn receive<T>(&mut self, wanted: impl Fn(Frame<'_>) -> Option<T>) -> io::Result<T> {
        let mut scratch = vec![0; 4096];
        loop {
            if let Some(frame) = self.next_frame().map_err(invalid)? {
                return wanted(frame).ok_or_else(|| invalid("a frame out of place"));
            }
            self.tcp.readable().await?;
            match self.read(&mut scratch) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
    }

    /// Sends `frame` and waits until the kernel has it.
    pub(crate) async fn send_all(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.send(&bytes)?;
        while self.tls.wants_write() {
            self.tcp.writable().await?;
            self.flush()?;
        }
        Ok(())
    }

    pub(crate) fn peer_key(&self) -> Option<crate::keys::PublicKey> {
        crate::keys::peer_key(self.tls.peer_certificates())
    }

    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (self.tcp.local_addr().ok(), self.tcp.peer_addr().ok())
    }

    /// Reads once, up to the length of `scratch`; `UnexpectedEof` at the end. The task is woken when there is more to read.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp.poll_read_ready(cx))?;
            match self.read(scratch) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    /// As [`poll_read`](Self::poll_read); `WouldBlock` where there is nothing.
    fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        let count = self.tcp.try_read(scratch)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.inbox.drain(..std::mem::take(&mut self.decoded));
        let mut bytes = &scratch[..count];
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes)?;
            self.tls.process_new_packets().map_err(refused)?;
            let mut reader = self.tls.reader();
            loop {
                match reader.fill_buf() {
                    Ok([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(plain) => {
                        self.inbox.extend_from_slice(plain);
                        let count = plain.len();
                        reader.consume(count);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The next of the frames that were read. Behind the last of them, a chunk of one segment is acknowledged: its sender keeps its queue
    /// short for data that waits for no other, and waits for the acknowledgement.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let Some((frame, len)) = decode(&self.inbox[self.decoded..])? else {
            if std::mem::take(&mut self.owes_ack) {
                // After an error the kernel acknowledges as late as it would have.
                let _ = acknowledge(&self.tcp);
            }
            return Ok(None);
        };
        self.decoded += len;
        if let Frame::Data { bytes, .. } = &frame {
            self.received += bytes.len() as u64;
            self.owes_ack |= bytes.len() as u64 <= self.mss.get();
        }
        Ok(Some(frame))
    }

    /// Bytes of data in the frames that were read; TCP keeps their order.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Encrypts `bytes` and gives as much to the kernel as it takes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tls.writer().write_all(bytes)?;
        self.flush()
    }

    /// Gives encrypted bytes to the kernel, as many as it takes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut TryWrite(&self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether something encrypted is left that the kernel did not take.
    pub(crate) fn is_clogged(&self) -> bool {
        self.tls.wants_write()
    }

    /// Whether the kernel has sent all its bytes; if not, the task is woken when it has.
    pub(crate) fn poll_hungry(&self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            match self.tcp.poll_write_ready(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(ready) => ready?,
            }
            // Asking the kernel also makes it tell: without a write that fails, only this sets SOCK_NOSPACE.
            let asked = self.tcp.try_io(Interest::WRITABLE, || {
                let mut fd = [PollFd::new(&self.tcp, PollFlags::OUT)];
                poll(&mut fd, Some(&Timespec::default()))?;
                let hungry = fd[0].revents().contains(PollFlags::OUT);
                if hungry { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match asked {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the state of the connection, which is given about `chunk` bytes at once.
    pub(crate) fn reading(&mut self, now: Instant, chunk: Bytes, part: Part) -> io::Result<Reading> {
        let state = tcp_state(&self.tcp)?;
        self.mss = state.mss;
        let send_buffer = match self.send_buffer {
            Some(bytes) => bytes,
            None => Bytes::new(SockRef::from(&self.tcp).send_buffer_size()? as u64),
        };
        let unsent = if self.is_clogged() {
            state.unsent.max(Bytes::new(1))
        } else if state.unsent < Bytes::new(u64::from(self.lowat)) {
            Bytes::ZERO
        } else {
            state.unsent
        };
        let buffered = unacknowledged(&self.tcp)?;
        let told = Told {
            buffered,
            unsent,
            send_buffer,
            cwnd: state.cwnd,
            mss: state.mss,
            rtt: state.srtt.map(|srtt| Rtt { srtt, rttvar: state.rttvar }),
            rtt_min: state.rtt_min,
            is_recovering: self.recovery.goes_on(state.state, state.acknowledged, buffered),
            acknowledged: state.acknowledged,
            delivered: state.delivered,
            segments: Segments { sent: state.segments, retransmitted: state.retransmissions },
            // The receive window keeps this end from it.
            dropped: 0,
            since_ack: state.since_ack,
        };
        let reading = self.meters.on_told(now, told, chunk, part);
        self.set_lowat()?;
        Ok(reading)
    }

    fn set_lowat(&mut self) -> io::Result<()> {
        let wanted = (self.meters.may_wait() as u32).max(MIN_LOWAT);
        if wanted > self.lowat * 2 || wanted < self.lowat / 2 {
            self.lowat = wanted;
            SockRef::from(&self.tcp).set_tcp_notsent_lowat(wanted)?;
        }
        Ok(())
    }
}

/// What a connection sends again after a timeout, before anything new.
///
/// A cut that takes acknowledgements too lets its timeout seem spurious (RFC 4015 §3.2): the kernel takes it back with the first
/// acknowledgement, though data behind is lost as well. So a recovery goes on until all is acknowledged that the connection held.
#[derive(Debug, Default)]
struct Recovery {
    /// Bytes that are acknowledged then, since the connection began.
    ends_at: Bytes,
}

impl Recovery {
    /// The connection was read: whether it recovers.
    fn goes_on(&mut self, state: SenderState, acknowledged: Bytes, buffered: Bytes) -> bool {
        if state == SenderState::Loss {
            self.ends_at = acknowledged + buffered;
        }
        acknowledged < self.ends_at
    }
}

/// Options of a connection of either end.
fn prepare(tcp: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(tcp);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(MIN_LOWAT)?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    // Older kernels do not know it; a path is then back a little later after an outage.
    let _ = limit_timeout(tcp, RTO_MAX);
    Ok(())
}

/// The reason that TLS gives, in plain words where the ends are of different versions: `Unsupported` then.
fn refused(error: rustls::Error) -> io::Error {
    match error {
        rustls::Error::NoApplicationProtocol
        | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => other_version(),
        other => invalid(other),
    }
}

struct TryWrite<'a>(&'a TcpStream);

impl Write for TryWrite<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The kernel calls a connection writable when twice its unsent bytes are below this.
const MIN_LOWAT: u32 = 1;
/// A connection without any acknowledgement for so long is given up by the kernel.
const USER_TIMEOUT: Duration = Duration::from_secs(20);
/// The least that the kernel accepts.
const RTO_MAX: units::Duration = units::Duration::from_secs(1);

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};
    use tokio::net::TcpListener;

    use super::*;
    use crate::keys::{PrivateKey, client_config, server_config};

    #[test]
    fn a_timeout_that_is_taken_back_is_over_once_all_that_was_under_way_is_acknowledged() {
        let mut recovery = Recovery::default();
        let mut goes_on = |state, acknowledged, buffered| {
            recovery.goes_on(state, Bytes::new(acknowledged), Bytes::new(buffered))
        };
        assert!(!goes_on(SenderState::Open, 1_000, 20_000));
        assert!(goes_on(SenderState::Loss, 1_000, 20_000));
        assert!(goes_on(SenderState::Open, 2_448, 18_552), "taken back");
        assert!(goes_on(SenderState::Recovery, 20_999, 1));
        assert!(!goes_on(SenderState::Open, 21_000, 5_000));
    }

    /// The kernel would wait for more, as both ends speak.
    #[test]
    fn a_short_chunk_is_acknowledged_once_it_was_read() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut ends: [TlsConnection; 2] = connected().await.into();
            for end in &mut ends {
                let part = Part { is_urgent: true, is_second: false };
                end.reading(Instant::ZERO, Bytes::new(1_000), part).unwrap();
            }
            let mut frame = Vec::new();
            Frame::Data { start: 0, bytes: &[7; 500] }.encode(&mut frame);
            for number in 0..60 {
                let [from, to] = [number % 2, (number + 1) % 2];
                ends[from].send(&frame).unwrap();
                ends[to].receive(|_| Some(())).await.unwrap();
                assert!(ends[to].next_frame().unwrap().is_none());
                // The kernel acknowledges the first 16 segments at once (`TCP_MAX_QUICKACKS`).
                if number >= 40 {
                    assert_eq!(unacknowledged(&ends[from].tcp).unwrap(), Bytes::ZERO, "frame {number}");
                }
            }
        });
    }

    /// What a client and a server have of each other, where the client's TLS was changed so.
    async fn shake_hands(change: impl FnOnce(&mut rustls::ClientConfig)) -> [io::Result<TlsConnection>; 2] {
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let server = server_config(&server_key, &[client_key.public()].into_iter().collect()).unwrap();
        let mut client = client_config(&client_key, server_key.public()).unwrap();
        change(&mut client);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (tcp, _) = listener.accept().await.unwrap();
            let tls = ServerConnection::new(Arc::new(server)).unwrap();
            TlsConnection::handshake(tcp, tls.into(), None).await
        };
        let client = async {
            let tcp = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("suimon-bond").unwrap();
            let tls = ClientConnection::new(Arc::new(client), name).unwrap();
            TlsConnection::handshake(tcp, tls.into(), None).await
        };
        let (server, client) = tokio::join!(server, client);
        [client, server]
    }

    /// Both ends of a connection.
    pub(crate) async fn connected() -> (TlsConnection, TlsConnection) {
        let [client, server] = shake_hands(|_| ()).await;
        (client.unwrap(), server.unwrap())
    }

    #[test]
    fn ends_of_different_versions_refuse_each_other_and_say_why() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // What version 1 said.
        let of_version_1 = |client: &mut rustls::ClientConfig| {
            client.alpn_protocols = vec![b"suimon-bond".to_vec()];
        };
        for refusal in runtime.block_on(shake_hands(of_version_1)) {
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.kind(), io::ErrorKind::Unsupported, "{refusal}");
            assert!(refusal.to_string().contains("another version"), "{refusal}");
        }
    }
}
