//! Frames over QUIC: each frame has a stream of its own, so a lost packet delays the frames that have data in it and no other.
//!
//! The handshake's frames go over the client's bidirectional stream, and a last frame in what closes the connection. A frame
//! that the next of its kind makes needless goes as a DATAGRAM frame (RFC 9221), which is not sent again.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{self, Duration};

use quinn_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionError, ConnectionEvent, ConnectionHandle, Dir,
    EndpointEvent, Event, IdleTimeout, Incoming, MtuDiscoveryConfig, ReadError, StreamEvent, StreamId,
    Transmit, TransportConfig, VarInt, WriteError,
};
use rustls::AlertDescription;
use rustls::pki_types::CertificateDer;
use suimon_aggregation::{Segments, WindowedMin};
use suimon_algorithms::path::Rtt;
use suimon_quic::{SenderConfig, Watch};
use suimon_units::{self as units, Bytes, Instant};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use self::backlog::Backlog;
use crate::connection::{Meters, Reading, Told, invalid, other_version};
use crate::frame::{DATA_HEADER, Frame, MAX_DATA, Malformed, decode, decode_whole};
use crate::keys::{PublicKey, SERVER_NAME, peer_key};
use crate::session::Part;
use crate::udp::QuicSocket;

mod backlog;

/// A connection whose other end has proved who it is.
pub(crate) struct QuicConnection {
    socket: Arc<QuicSocket>,
    /// Of a client, the task that receives for this connection.
    receiving: Option<AbortHandle>,
    handle: ConnectionHandle,
    quic: Connection,
    /// Datagrams that came for it.
    events: mpsc::Receiver<ConnectionEvent>,
    timer: Pin<Box<Sleep>>,
    /// Datagrams that the kernel has no room for.
    held: Option<Transmit>,
    datagrams: Vec<u8>,
    is_established: bool,
    is_drained: bool,
    /// Why it has ended.
    ended: Option<io::Error>,
    /// The stream of the handshake's frames, and what came over it.
    first: Option<StreamId>,
    first_bytes: Vec<u8>,
    /// Streams of which there may be more to read.
    readable: Vec<StreamId>,
    /// Frames of which a part came, and the bytes of all.
    partial: HashMap<StreamId, Vec<u8>>,
    partial_bytes: usize,
    /// Whole frames, and the numbers of the streams that brought them.
    inbox: VecDeque<(Option<u64>, Vec<u8>)>,
    lent: Vec<u8>,
    order: Order,
    /// Frames that wait for room in the window or for the other end's credit, and the stream of the first where it has one.
    outbox: VecDeque<Vec<u8>>,
    writing: Option<StreamId>,
    /// The newest report, which waits for room.
    report: Option<Vec<u8>>,
    backlog: Backlog,
    watch: Watch,
    begun: time::Instant,
    rtt_min: WindowedMin,
    meters: Meters,
    /// Bytes that the connection may hold.
    send_buffer: Bytes,
}

impl std::fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicConnection").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl QuicConnection {
    /// A connection from `socket` to `peer`, which shakes hands by `tls`.
    pub(crate) async fn connect(
        socket: UdpSocket,
        peer: SocketAddr,
        tls: Arc<rustls::ClientConfig>,
        sender: &SenderConfig,
        send_buffer: Option<Bytes>,
    ) -> io::Result<Self> {
        let crypto = QuicClientConfig::try_from(tls)
            .map_err(|error: NoInitialCipherSuite| io::Error::other(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let (transport, watch) = transport(sender, peer);
        config.transport_config(transport);
        let socket = QuicSocket::of_client(socket)?;
        let (handle, quic, events) = {
            let mut routes = socket.routes();
            let connecting = routes.endpoint.connect(time::Instant::now(), config, peer, SERVER_NAME);
            let (handle, quic) = connecting.map_err(invalid)?;
            (handle, quic, routes.add(handle))
        };
        let mut connection = Self::new(socket.clone(), (handle, quic, events), watch, send_buffer);
        let receiving = tokio::spawn(async move { socket.receive(|_| ()).await });
        connection.receiving = Some(receiving.abort_handle());
        connection.established().await?;
        Ok(connection)
    }

    /// The connection of whoever knocked at `socket`, which has to shake hands.
    pub(crate) fn accept(
        socket: &Arc<QuicSocket>,
        incoming: Incoming,
        sender: &SenderConfig,
        send_buffer: Option<Bytes>,
    ) -> io::Result<Self> {
        let mut config = socket.server_config()?;
        let (transport, watch) = transport(sender, incoming.remote_address());
        config.transport_config(transport);
        let mut answer = Vec::new();
        let mut routes = socket.routes();
        let now = time::Instant::now();
        match routes.endpoint.accept(incoming, now, &mut answer, Some(Arc::new(config))) {
            Ok((handle, quic)) => {
                let events = routes.add(handle);
                drop(routes);
                Ok(Self::new(socket.clone(), (handle, quic, events), watch, send_buffer))
            }
            Err(refused) => {
                drop(routes);
                if let Some(transmit) = refused.response {
                    let _ = socket.send(&transmit, &answer);
                }
                Err(why(refused.cause))
            }
        }
    }

    fn new(
        socket: Arc<QuicSocket>,
        (handle, quic, events): (ConnectionHandle, Connection, mpsc::Receiver<ConnectionEvent>),
        watch: Watch,
        send_buffer: Option<Bytes>,
    ) -> Self {
        Self {
            socket,
            receiving: None,
            handle,
            quic,
            events,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            held: None,
            datagrams: Vec::new(),
            is_established: false,
            is_drained: false,
            ended: None,
            first: None,
            first_bytes: Vec::new(),
            readable: Vec::new(),
            partial: HashMap::new(),
            partial_bytes: 0,
            inbox: VecDeque::new(),
            lent: Vec::new(),
            order: Order::default(),
            outbox: VecDeque::new(),
            writing: None,
            report: None,
            backlog: Backlog::default(),
            watch,
            begun: time::Instant::now(),
            rtt_min: WindowedMin::default(),
            meters: Meters::default(),
            send_buffer: send_buffer.map_or(SEND_BUFFER, |bytes| bytes.min(SEND_BUFFER)),
        }
    }

    /// Waits until both ends have proved who they are.
    pub(crate) async fn established(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            self.poll_io(cx);
            match self.ended.take() {
                Some(error) => Poll::Ready(Err(error)),
                None if self.is_established => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The next frame of the handshake, once it came.
    pub(crate) async fn receive<T>(&mut self, wanted: impl Fn(Frame<'_>) -> Option<T>) -> io::Result<T> {
        poll_fn(|cx| self.poll_receive(cx, &wanted)).await
    }

    fn poll_receive<T>(
        &mut self,
        cx: &mut Context<'_>,
        wanted: impl Fn(Frame<'_>) -> Option<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_io(cx);
        self.read_first();
        let wanted = |frame: Frame<'_>| wanted(frame).ok_or_else(|| invalid("a frame out of place"));
        if let Some((frame, len)) = decode(&self.first_bytes).map_err(invalid)? {
            let found = wanted(frame);
            self.first_bytes.drain(..len);
            return Poll::Ready(found);
        }
        let Some(error) = self.ended.take() else { return Poll::Pending };
        // The other end may have closed it by the frame that is waited for.
        Poll::Ready(match self.next_frame().map_err(invalid)? {
            Some(frame) => wanted(frame),
            None => Err(error),
        })
    }

    /// Sends a frame of the handshake.
    pub(crate) fn send_first(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        let first = match self.first {
            Some(first) => first,
            None => self.quic.streams().open(Dir::Bi).ok_or_else(|| invalid("no stream for a handshake"))?,
        };
        self.first = Some(first);
        match self.quic.send_stream(first).write(&bytes) {
            Ok(written) if written == bytes.len() => {}
            _ => return Err(invalid("no credit for a handshake")),
        }
        self.backlog.in_stack += bytes.len() as u64;
        self.transmit();
        Ok(())
    }

    fn read_first(&mut self) {
        let first = self.first.or_else(|| self.quic.streams().accept(Dir::Bi));
        let Some(first) = first else { return };
        self.first = Some(first);
        let mut stream = self.quic.recv_stream(first);
        let Ok(mut chunks) = stream.read(true) else { return };
        // No frame of the handshake is longer; more waits with the stack, within its window.
        while self.first_bytes.len() < MAX_FIRST
            && let Ok(Some(chunk)) = chunks.next(MAX_FIRST)
        {
            self.first_bytes.extend_from_slice(&chunk.bytes);
        }
        let _ = chunks.finalize();
    }

    pub(crate) fn peer_key(&self) -> Option<PublicKey> {
        let identity = self.quic.crypto_session().peer_identity()?;
        let certificates: Box<Vec<CertificateDer<'static>>> = identity.downcast().ok()?;
        peer_key(Some(&certificates))
    }

    pub(crate) fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let local = self.socket.local_addr().ok();
        let local =
            local.map(|local| SocketAddr::new(self.quic.local_ip().unwrap_or(local.ip()), local.port()));
        (local, Some(self.quic.remote_address()))
    }

    /// Reads what came; `UnexpectedEof` at the end. The task is woken when there is more to read.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_io(cx);
        let has_more = self.collect();
        if !self.inbox.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = self.ended.take() {
            return Poll::Ready(Err(error));
        }
        if has_more {
            self.transmit();
        }
        Poll::Pending
    }

    /// The next of the frames that were read.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Malformed> {
        let Some((stream, frame)) = self.inbox.pop_front() else { return Ok(None) };
        self.lent = frame;
        let frame = decode_whole(&self.lent)?;
        if let Some(number) = stream {
            let data = if let Frame::Data { bytes, .. } = &frame { bytes.len() } else { 0 };
            if !self.order.on_frame(number, data as u64) {
                self.ended.get_or_insert_with(|| invalid("more frames behind a missing one than can be"));
            }
        }
        Ok(Some(frame))
    }

    /// Bytes of data in the frames that were read, up to the first frame that is missing.
    pub(crate) fn received(&self) -> u64 {
        self.order.bytes
    }

    /// Sends one frame.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.push(frame.to_vec());
        self.flush()
    }

    /// Sends a frame that the next of its kind makes needless.
    pub(crate) fn send_report(&mut self, frame: &[u8]) -> io::Result<()> {
        self.report = Some(frame.to_vec());
        self.flush()
    }

    /// Gives the stack and the kernel what they can send.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.transmit();
        Ok(())
    }

    fn push(&mut self, frame: Vec<u8>) {
        self.backlog.in_outbox += frame.len() as u64;
        self.outbox.push_back(frame);
    }

    /// Gives the stack what the window has room for, and the other end credit.
    fn write(&mut self) {
        let mut room = self.backlog.room(self.window(), self.mtu());
        if room > 0
            && let Some(report) = self.report.take()
        {
            let len = report.len() as u64;
            // Those that wait are older.
            if self.quic.datagrams().send(report.clone().into(), true).is_ok() {
                room = room.saturating_sub(len);
                self.backlog.in_stack += len;
            } else {
                self.push(report);
            }
        }
        while room > 0
            && let Some(frame) = self.outbox.front_mut()
        {
            let Some(stream) = self.writing.or_else(|| self.quic.streams().open(Dir::Uni)) else { return };
            self.writing = Some(stream);
            let most = frame.len().min(room as usize);
            let taken = match self.quic.send_stream(stream).write(&frame[..most]) {
                Ok(written) => written,
                Err(WriteError::Blocked) => return,
                // Nobody stops a stream of this protocol, but for an end that is to lose its frame.
                Err(_) => frame.len(),
            };
            room = room.saturating_sub(taken as u64);
            self.backlog.in_outbox -= taken as u64;
            self.backlog.in_stack += taken as u64;
            if taken < frame.len() {
                frame.drain(..taken);
                continue;
            }
            let _ = self.quic.send_stream(stream).finish();
            self.writing = None;
            self.outbox.pop_front();
        }
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.quic.congestion_state().metrics().congestion_window)
    }

    fn mtu(&self) -> Bytes {
        Bytes::new(self.quic.current_mtu().into())
    }

    pub(crate) fn is_clogged(&self) -> bool {
        self.held.is_some()
    }

    /// Whether all but what may wait was sent. The task is woken by each datagram, so also when that is.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.is_clogged() && self.backlog.unsent() <= self.meters.may_wait()
    }

    /// Closes the connection by a last frame.
    pub(crate) fn close(&mut self, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.quic.close(time::Instant::now(), VarInt::from_u32(0), bytes.into());
        self.transmit();
    }

    pub(crate) fn reading(&mut self, now: Instant, chunk: Bytes, part: Part) -> Reading {
        let seen = self.watch.seen();
        if let Some((sample, _)) = seen.latest {
            self.rtt_min.on_sample(now, sample);
        }
        let acknowledged_at = seen.latest.map_or(self.begun, |(_, at)| at);
        let path = self.quic.stats().path;
        let unsent = if self.is_hungry() { 0 } else { self.backlog.unsent().max(1) };
        let told = Told {
            buffered: Bytes::new(self.backlog.in_flight() + self.backlog.unsent()),
            unsent: Bytes::new(unsent),
            send_buffer: self.send_buffer,
            cwnd: self.window(),
            mss: self.mtu() - Bytes::new(PACKET_OVERHEAD),
            rtt: seen.rtt.map(|(srtt, rttvar)| Rtt { srtt, rttvar }),
            rtt_min: self.rtt_min.get(),
            is_recovering: self.backlog.is_recovering,
            acknowledged: seen.acknowledged,
            delivered: seen.acknowledged.get(),
            segments: Segments { sent: path.sent_packets, retransmitted: path.lost_packets },
            dropped: path.lost_packets,
            since_ack: units::Duration::from_nanos(acknowledged_at.elapsed().as_nanos() as u64),
        };
        self.meters.on_told(now, told, chunk, part)
    }

    /// Takes in the datagrams that came, and sends what is due.
    fn poll_io(&mut self, cx: &mut Context<'_>) {
        let mut taken = 0;
        loop {
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(event)) => self.quic.handle_event(event),
                Poll::Ready(None) => {
                    self.ended.get_or_insert_with(|| io::ErrorKind::ConnectionRefused.into());
                    return;
                }
                Poll::Pending => break,
            }
            taken += 1;
            if taken == EVENTS {
                cx.waker().wake_by_ref();
                break;
            }
        }
        self.transmit();
        while let Some(at) = self.wakes_at() {
            self.timer.as_mut().reset(at.into());
            if self.timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.quic.handle_timeout(time::Instant::now());
            self.transmit();
        }
    }

    fn wakes_at(&mut self) -> Option<time::Instant> {
        let again = self.held.as_ref().map(|_| time::Instant::now() + AGAIN);
        [self.quic.poll_timeout(), again].into_iter().flatten().min()
    }

    /// Sends what is due, as far as the kernel takes it, and takes in what the stack has to tell.
    fn transmit(&mut self) {
        let now = time::Instant::now();
        self.look();
        // What has to be sent again waits for the stack's window and pace; all else was given as the window has room.
        self.watch.set_keeps_window(self.backlog.in_stack == 0);
        loop {
            if let Some(transmit) = &self.held {
                match self.socket.send(transmit, &self.datagrams) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        self.ended.get_or_insert(error);
                    }
                    Ok(()) => {}
                }
                self.held = None;
            }
            self.datagrams.clear();
            self.write();
            let most = self.socket.most_segments();
            self.held = self.quic.poll_transmit(now, most, &mut self.datagrams);
            if self.held.is_none() {
                break;
            }
            self.look();
        }
        while let Some(event) = self.quic.poll_endpoint_events() {
            self.is_drained |= event.is_drained();
            let answer = self.socket.routes().endpoint.handle_event(self.handle, event);
            if let Some(answer) = answer {
                self.quic.handle_event(answer);
            }
        }
        while let Some(event) = self.quic.poll() {
            self.on_event(event);
        }
    }

    fn look(&mut self) {
        self.backlog.on_look(&self.watch.seen(), &self.quic.stats());
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Connected => self.is_established = true,
            Event::ConnectionLost { reason } => {
                if let ConnectionError::ApplicationClosed(close) = &reason
                    && !close.reason.is_empty()
                {
                    self.inbox.push_back((None, close.reason.to_vec()));
                }
                self.ended.get_or_insert(why(reason));
            }
            Event::Stream(StreamEvent::Readable { id }) => self.readable.push(id),
            Event::Stream(_)
            | Event::HandshakeDataReady
            | Event::DatagramReceived
            | Event::DatagramsUnblocked => {}
        }
    }

    /// Takes the frames that came. True where the other end is to be told of new credit.
    fn collect(&mut self) -> bool {
        let mut tells = false;
        while let Some(stream) = self.quic.streams().accept(Dir::Uni) {
            tells |= self.read(stream);
        }
        for stream in std::mem::take(&mut self.readable) {
            if stream.dir() == Dir::Uni {
                tells |= self.read(stream);
            }
        }
        while let Some(frame) = self.quic.datagrams().recv() {
            self.inbox.push_back((None, frame.to_vec()));
        }
        tells
    }

    fn read(&mut self, id: StreamId) -> bool {
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return false };
        let mut frame = self.partial.remove(&id).unwrap_or_default();
        self.partial_bytes -= frame.len();
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) if frame.len() + chunk.bytes.len() > MAX_DATA + DATA_HEADER => {
                    self.ended.get_or_insert_with(|| invalid("a frame that is longer than any"));
                    break;
                }
                Ok(Some(chunk)) if self.partial_bytes + frame.len() + chunk.bytes.len() > MAX_PARTIAL => {
                    self.ended.get_or_insert_with(|| {
                        invalid("more frames without their ends than can be under way")
                    });
                    break;
                }
                Ok(Some(chunk)) => frame.extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    self.inbox.push_back((Some(id.index()), frame));
                    break;
                }
                Err(ReadError::Blocked) => {
                    self.partial_bytes += frame.len();
                    self.partial.insert(id, frame);
                    break;
                }
                Err(ReadError::Reset(_)) => {
                    self.ended.get_or_insert_with(|| invalid("a frame that was given up"));
                    break;
                }
            }
        }
        chunks.finalize().should_transmit()
    }
}

/// Which frames came, of those that the other end sent. Streams are numbered as they are opened, one for each frame.
#[derive(Debug, Default)]
struct Order {
    /// The number of the first frame that is missing.
    next: u64,
    /// Bytes of data in the frames before it.
    bytes: u64,
    /// Frames behind it, and the bytes of data in each.
    ahead: HashMap<u64, u64>,
}

impl Order {
    /// Frame `number` came with so much data. False where more came behind a missing one than an honest end sends.
    fn on_frame(&mut self, number: u64, data: u64) -> bool {
        self.ahead.insert(number, data);
        while let Some(data) = self.ahead.remove(&self.next) {
            self.next += 1;
            self.bytes += data;
        }
        self.ahead.len() <= MAX_AHEAD
    }
}

impl Drop for QuicConnection {
    fn drop(&mut self) {
        self.quic.close(time::Instant::now(), VarInt::from_u32(0), Vec::new().into());
        self.transmit();
        let mut routes = self.socket.routes();
        routes.remove(self.handle);
        if !self.is_drained {
            // Nobody is left who could answer: whoever speaks to it further is told that it is gone (RFC 9000 §10.3).
            routes.endpoint.handle_event(self.handle, EndpointEvent::drained());
        }
        drop(routes);
        if let Some(receiving) = &self.receiving {
            receiving.abort();
        }
    }
}

/// How a connection with `peer` is, and a view of its sender.
fn transport(sender: &SenderConfig, peer: SocketAddr) -> (Arc<TransportConfig>, Watch) {
    let (sender, watch) = sender.watched();
    let mut acks = AckFrequencyConfig::default();
    acks.max_ack_delay(Some(ACK_DELAY));
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(
        ETHERNET_MTU - if peer.ip().to_canonical().is_ipv4() { IPV4_HEADERS } else { IPV6_HEADERS },
    );
    let mut transport = TransportConfig::default();
    transport
        .mtu_discovery_config(Some(mtu))
        .congestion_controller_factory(Arc::new(sender))
        .ack_frequency_config(Some(acks))
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(FRAMES))
        .stream_receive_window(VarInt::from_u32((MAX_DATA + DATA_HEADER) as u32))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        // The scheduler bounds what a connection holds.
        .send_window(u64::MAX)
        // A frame that is whole is worth more than two halves.
        .send_fairness(false)
        .datagram_receive_buffer_size(Some(REPORTS))
        .datagram_send_buffer_size(REPORTS)
        .initial_rtt(INITIAL_RTT)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_MS))));
    (Arc::new(transport), watch)
}

/// The reason of a connection's end, in plain words where the ends are of different versions.
fn why(reason: ConnectionError) -> io::Error {
    let refusal = quinn_proto::TransportErrorCode::crypto(AlertDescription::NoApplicationProtocol.into());
    match reason {
        ConnectionError::TransportError(error) if error.code == refusal => other_version(),
        ConnectionError::ConnectionClosed(close) if close.error_code == refusal => other_version(),
        ConnectionError::ApplicationClosed(_) => io::ErrorKind::UnexpectedEof.into(),
        ConnectionError::Reset => io::Error::new(io::ErrorKind::ConnectionReset, "the other end has lost it"),
        ConnectionError::TimedOut => io::ErrorKind::TimedOut.into(),
        other => invalid(other),
    }
}

/// The longest packet that a connection tries.
const ETHERNET_MTU: u16 = 1500;
/// Headers of IP without options, and of UDP (RFC 791 §3.1, RFC 8200 §3, RFC 768).
const IPV4_HEADERS: u16 = 20 + 8;
const IPV6_HEADERS: u16 = 40 + 8;
/// Datagrams that are taken in before others get their turn.
const EVENTS: usize = 128;
/// When to offer the kernel again what it had no room for.
const AGAIN: Duration = Duration::from_millis(1);
/// A packet's header, its tag, and the head of a STREAM frame (RFC 9000 §17.3.1, §19.8).
const PACKET_OVERHEAD: u64 = 40;
/// No frame of a handshake is longer.
const MAX_FIRST: usize = 256;
/// Frames that may be under way at once. The stack may keep 32 kB of memory for each of which pieces came out of order.
const FRAMES: u32 = 512;
/// Frames that may come while one is missing, which is sent again after a round trip: ten seconds' worth of the shortest chunks at 20
/// Mbit/s. A session sends what is missing over its other paths, so they could go on without an end.
const MAX_AHEAD: usize = 16_384;
/// As much as a kernel lets a TCP connection hold unread (`tcp_rmem`).
const RECEIVE_WINDOW: u32 = 6 << 20;
/// More than the other end may have under way.
const MAX_PARTIAL: usize = 6 << 20;
/// As much as a kernel lets a TCP connection hold unsent or unacknowledged (`tcp_wmem`); the other end takes no more.
const SEND_BUFFER: Bytes = Bytes::new(4 << 20);
const REPORTS: usize = 16 * 1024;
/// A receiver that waits longer makes round-trip times of single packets look longer than they are, and the queue beside a call has to be a
/// segment longer. The stack takes no less.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Before it is measured. What is lost of a handshake is sent again after three times this (RFC 9002 §6.2.2); a longer round trip
/// costs a packet or two.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// A connection over which nothing comes for so long is given up by the stack.
const IDLE_MS: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{PrivateKey, client_config, server_config};

    /// What both ends of a handshake say where the client's TLS was changed so.
    fn refusals(change: impl FnOnce(&mut rustls::ClientConfig)) -> [io::Error; 2] {
        let (server_key, client_key) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
        let server = server_config(&server_key, &[client_key.public()].into_iter().collect()).unwrap();
        let mut client = client_config(&client_key, server_key.public()).unwrap();
        change(&mut client);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let peer = socket.local_addr().unwrap();
            let socket = QuicSocket::of_server(socket, Arc::new(server), &server_key.reset_secret()).unwrap();
            let sender: SenderConfig = "cubic".parse().unwrap();
            let (told, mut refused) = mpsc::channel(1);
            let (listening, with) = (socket.clone(), sender.clone());
            tokio::spawn(async move {
                let knock = |incoming| {
                    let accepted = QuicConnection::accept(&listening, incoming, &with, None);
                    let told = told.clone();
                    tokio::spawn(async move {
                        let shaken = match accepted {
                            Ok(mut connection) => connection.established().await,
                            Err(error) => Err(error),
                        };
                        let _ = told.send(shaken.unwrap_err()).await;
                    });
                };
                listening.receive(knock).await
            });
            let own = UdpSocket::bind("127.0.0.1:0").unwrap();
            own.connect(peer).unwrap();
            let client = QuicConnection::connect(own, peer, Arc::new(client), &sender, None).await;
            [client.unwrap_err(), refused.recv().await.unwrap()]
        })
    }

    #[test]
    fn data_counts_as_received_up_to_the_first_missing_frame() {
        let mut order = Order::default();
        let mut bytes_after = |number, data| {
            assert!(order.on_frame(number, data));
            order.bytes
        };
        assert_eq!(bytes_after(1, 10), 0);
        assert_eq!(bytes_after(3, 1_000), 0);
        assert_eq!(bytes_after(0, 1), 11);
        assert_eq!(bytes_after(2, 100), 1_111);
        for number in 0..MAX_AHEAD as u64 {
            assert!(order.on_frame(number + 5, 1));
        }
        assert!(!order.on_frame(MAX_AHEAD as u64 + 5, 1));
    }

    #[test]
    fn ends_of_different_versions_refuse_each_other_over_quic_and_say_why() {
        for refusal in refusals(|client| client.alpn_protocols = vec![b"suimon-bond/1".to_vec()]) {
            assert_eq!(refusal.kind(), io::ErrorKind::Unsupported, "{refusal}");
            assert!(refusal.to_string().contains("another version"), "{refusal}");
        }
    }
}
