//! One connection: frames over TLS over TCP.

use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{AlertDescription, Connection};
use socket2::SockRef;
use suimon_aggregation::{CapacityMeter, Flight, FlightBound, LossMeter, Occupancy, Segments};
use suimon_algorithms::path::{PathStatus, Rtt};
use suimon_linux::tcp::{SenderState, TcpState, limit_timeout, tcp_state, unacknowledged};
use suimon_units::{self as units, Bytes, Instant, Probability};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::frame::{Frame, Malformed, VERSION, decode};
use crate::session::Part;

/// A connection whose other end has proved who it is.
#[derive(Debug)]
pub(crate) struct TlsConnection {
    tcp: TcpStream,
    tls: Connection,
    /// Bytes that arrived and are not decoded yet.
    inbox: Vec<u8>,
    decoded: usize,
    rate: CapacityMeter,
    bound: FlightBound,
    loss: LossMeter,
    /// Bytes unsent up to which the kernel counts as hungry.
    lowat: u32,
    /// Bytes that the connection may hold, where the limit is below the kernel's.
    send_buffer: Option<Bytes>,
    /// Segments that had arrived at the reading before.
    delivered: u64,
}

/// One reading of a connection's state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) status: PathStatus,
    pub(crate) connection: TcpState,
    /// The part of its segments that was lost of late.
    pub(crate) loss: Probability,
    /// Whether something was acknowledged, be it selectively, since the reading before.
    pub(crate) acknowledged: bool,
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
            rate: CapacityMeter::default(),
            bound: FlightBound::default(),
            loss: LossMeter::default(),
            lowat: MIN_LOWAT,
            send_buffer,
            delivered: 0,
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

    /// Reads once, up to the length of `scratch`; `WouldBlock` where there is nothing, `UnexpectedEof` at the end.
    pub(crate) fn read(&mut self, scratch: &mut [u8]) -> io::Result<()> {
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

    /// The next of the frames that were read.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let Some((frame, len)) = decode(&self.inbox[self.decoded..])? else { return Ok(None) };
        self.decoded += len;
        Ok(Some(frame))
    }

    /// Whether reading would give something; the task is woken when it would.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_read_ready(cx)
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
        let connection = tcp_state(&self.tcp)?;
        let held = unacknowledged(&self.tcp)?;
        let rtt = connection.srtt.map(|srtt| Rtt { srtt, rttvar: connection.rttvar });
        let rtt_min = connection.rtt_min.map(|least| least.max(MIN_RTT));
        let acknowledged = connection.acknowledged;
        if let Some(rtt) = rtt {
            self.rate.on_reading(now, Occupancy { acknowledged, buffered: held, srtt: rtt.srtt, rtt_min });
            if let Some(rtt_min) = rtt_min {
                let Part { is_realtime, is_second } = part;
                let Rtt { srtt, rttvar } = rtt;
                let flight = Flight { buffered: held, srtt, rttvar, rtt_min, is_realtime, is_second };
                self.bound.on_reading(now, flight, chunk);
            }
        }
        let segments = Segments { sent: connection.segments, retransmitted: connection.retransmissions };
        self.loss.on_reading(now, segments);
        self.set_lowat()?;
        let unsent = if self.is_clogged() {
            connection.unsent.max(Bytes::new(1))
        } else if connection.unsent < Bytes::new(u64::from(self.lowat)) {
            Bytes::ZERO
        } else {
            connection.unsent
        };
        let send_buffer = match self.send_buffer {
            Some(bytes) => bytes,
            None => Bytes::new(SockRef::from(&self.tcp).send_buffer_size()? as u64),
        };
        let status = PathStatus {
            buffered: held,
            unsent,
            send_buffer: self.bound.get().map_or(send_buffer, |bound| bound.min(send_buffer)),
            cwnd: connection.cwnd,
            mss: connection.mss,
            rtt,
            rtt_min,
            delivery_rate: self.rate.get(),
            is_recovering: connection.state == SenderState::Loss,
        };
        let moved = connection.delivered != std::mem::replace(&mut self.delivered, connection.delivered);
        Ok(Reading { status, connection, loss: self.loss.get(), acknowledged: moved })
    }

    /// On a fast path two milliseconds' worth may wait in the kernel, so that it does not run dry while this
    /// program is asked; on others nothing, so that the scheduler decides as late as can be.
    fn set_lowat(&mut self) -> io::Result<()> {
        let worth = self.rate.get().map_or(0, |rate| rate.amount_in(LOWAT_TIME).get());
        let wanted = if worth < FAST { MIN_LOWAT } else { worth.min(MAX_LOWAT) as u32 };
        if wanted > self.lowat * 2 || wanted < self.lowat / 2 {
            self.lowat = wanted;
            SockRef::from(&self.tcp).set_tcp_notsent_lowat(wanted)?;
        }
        Ok(())
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
        | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            let text = format!(
                "it speaks another version of the protocol than this end ({VERSION}): both ends need the same version of suimon"
            );
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        other => invalid(other),
    }
}

pub(crate) fn invalid(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
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
const MAX_LOWAT: u64 = 1 << 20;
const LOWAT_TIME: units::Duration = units::Duration::from_millis(2);
/// A round trip is over when this program looks again, which is a timer's tick and a turn of the processor later; a connection
/// that may hold no more than the wire does would run dry in between.
const MIN_RTT: units::Duration = units::Duration::from_millis(2);
/// Less than a record, and records go one by one.
const FAST: u64 = 32 * 1024;
/// A connection without any acknowledgement for so long is given up by the kernel.
const USER_TIMEOUT: Duration = Duration::from_secs(20);
/// The least that the kernel accepts.
const RTO_MAX: units::Duration = units::Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};
    use tokio::net::TcpListener;

    use super::*;
    use crate::keys::{PrivateKey, client_config, server_config};

    #[test]
    fn ends_of_different_versions_refuse_each_other_and_say_why() {
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let server = server_config(&server_key, &[client_key.public()].into_iter().collect()).unwrap();
        let mut client = client_config(&client_key, server_key.public()).unwrap();
        // What version 1 said.
        client.alpn_protocols = vec![b"suimon-bond".to_vec()];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refusals = runtime.block_on(async {
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
            [server.unwrap_err(), client.unwrap_err()]
        });
        for refusal in refusals {
            assert_eq!(refusal.kind(), io::ErrorKind::Unsupported, "{refusal}");
            assert!(refusal.to_string().contains("another version"), "{refusal}");
        }
    }
}
