//! The two ends of a flow: a thread each, in the namespace of its host.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time;

use socket2::{Domain, Protocol, Socket, Type};
use suimon_linux::schedule::wake_exactly;
use suimon_linux::tcp::{TcpOptions, discard, limit_window};
use suimon_linux::{Clock, Namespace};
use suimon_model::{Flow, Scenario, TcpFlow, Traffic, UdpFlow};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::plan::{PlannedFlow, slowest};

/// The state that both ends of a flow share with whoever watches them.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The sender's socket, once it is connected.
    pub(crate) socket: OnceLock<Socket>,
    /// Payload that the receiver has read.
    pub(crate) delivered: AtomicU64,
    /// The time of the last delivery, in nanoseconds of the clock.
    pub(crate) last_delivery: AtomicU64,
    /// Datagrams sent, and their bytes.
    pub(crate) datagrams: AtomicU64,
    pub(crate) datagram_bytes: AtomicU64,
}

/// The state that all flows of a run share.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Instant,
    pub(crate) over: &'a AtomicBool,
    pub(crate) timestamps: bool,
    /// The bytes that a sender keeps ready beyond sent ones.
    pub(crate) most_unsent: Bytes,
}

/// Waits for packets end so often to look whether the run is over.
const PATIENCE: time::Duration = time::Duration::from_millis(100);

/// One write or read.
const CHUNK: usize = 1 << 15;

/// TCP's option for timestamps in every segment (RFC 7323 appendix A).
const TIMESTAMPS: Bytes = Bytes::new(12);

impl Stage<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn options(&self, tcp: &TcpFlow) -> TcpOptions {
        TcpOptions {
            congestion_control: None,
            max_segment: tcp.profile.mss + if self.timestamps { TIMESTAMPS } else { Bytes::ZERO },
            window: None,
            most_unsent: None,
        }
    }

    /// The receiving end, ready for its sender; `host` is where.
    pub(crate) fn listen(
        &self,
        host: &Namespace,
        flow: &Flow,
        planned: &PlannedFlow,
    ) -> io::Result<Listener> {
        host.run(|| match &flow.traffic {
            Traffic::Tcp(tcp) => {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
                TcpOptions { window: Some(tcp.window), ..self.options(tcp) }.apply(&socket)?;
                socket.bind(&SocketAddr::from(planned.to).into())?;
                socket.listen(1)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                Ok(Listener::Tcp(socket, tcp.window))
            }
            Traffic::Udp(_) => {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
                socket.set_recv_buffer_size(1 << 22)?;
                socket.bind(&SocketAddr::from(planned.to).into())?;
                socket.set_read_timeout(Some(PATIENCE))?;
                Ok(Listener::Udp(socket))
            }
        })
        .map_err(io::Error::other)?
    }

    /// Receives until the run is over.
    pub(crate) fn receive(&self, listener: Listener, shared: &Shared) -> io::Result<()> {
        let (socket, window) = match listener {
            Listener::Udp(socket) => (socket, None),
            Listener::Tcp(listener, window) => loop {
                match listener.accept() {
                    Ok((socket, _)) => break (socket, Some(window)),
                    Err(error) if is_timeout(&error) && !self.is_over() => {}
                    Err(error) if is_timeout(&error) => return Ok(()),
                    Err(error) => return Err(error),
                }
            },
        };
        socket.set_read_timeout(Some(PATIENCE))?;
        let headers = if window.is_some() { 0 } else { UDP_HEADERS.get() };
        let mut buffer = vec![0; CHUNK];
        while !self.is_over() {
            // Datagrams are copied even where they are thrown away.
            let got = if let Some(window) = window {
                limit_window(&socket, window)?;
                discard(&socket, 1 << 20)
            } else {
                (&socket).read(&mut buffer)
            };
            match got {
                Ok(0) => break,
                Ok(count) => {
                    shared.last_delivery.store(self.clock.now().as_nanos(), Ordering::Relaxed);
                    shared.delivered.fetch_add(count as u64 + headers, Ordering::Relaxed);
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error),
            }
        }
        if window.is_some() {
            abandon(&socket)?;
        }
        Ok(())
    }

    /// Sends the data of `flow`, from its start to its end, from `host`.
    pub(crate) fn send(
        &self,
        host: &Namespace,
        flow: &Flow,
        planned: &PlannedFlow,
        shared: &Shared,
    ) -> io::Result<()> {
        host.enter().map_err(io::Error::other)?;
        self.clock.sleep_until(planned.start.min(self.end));
        let until = flow.stop.unwrap_or(self.end).min(self.end);
        if planned.start >= until || self.is_over() {
            return Ok(());
        }
        match &flow.traffic {
            Traffic::Tcp(tcp) => self.send_stream(tcp, planned, shared, until),
            Traffic::Udp(udp) => self.send_datagrams(udp, planned, shared, until),
        }
    }

    fn send_stream(
        &self,
        tcp: &TcpFlow,
        planned: &PlannedFlow,
        shared: &Shared,
        until: Instant,
    ) -> io::Result<()> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let options = TcpOptions {
            congestion_control: planned.kernel_cc.clone(),
            most_unsent: Some(self.most_unsent),
            ..self.options(tcp)
        };
        options.apply(&socket)?;
        if tcp.profile.pacing {
            set_pacing(&socket)?;
        }
        socket.bind(&SocketAddr::from(planned.from).into())?;
        let patience = time::Duration::from_nanos(until.saturating_since(self.clock.now()).as_nanos().max(1));
        match socket.connect_timeout(&SocketAddr::from(planned.to).into(), patience) {
            // Nothing got through so far: the flow has delivered nothing.
            Err(error) if is_timeout(&error) => return Ok(()),
            done => done?,
        }
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut stream = TcpStream::from(socket.try_clone()?);
        let _ = shared.socket.set(socket);
        let data = vec![0; CHUNK];
        let (began, mut written) = (self.clock.now(), 0_u64);
        while !self.is_over() && self.clock.now() < until {
            // An even number of turns has passed while the application speaks.
            let silent = planned.toggles.partition_point(|time| *time <= self.clock.now()) % 2 == 1;
            if silent {
                std::thread::sleep(APPLICATION_TICK);
                continue;
            }
            let mut offered = tcp.size.map_or(u64::MAX, Bytes::get);
            if let Some(rate) = tcp.application_rate {
                let produced = rate.amount_in(self.clock.now().saturating_since(began)).get();
                if produced <= written && written < offered {
                    std::thread::sleep(APPLICATION_TICK);
                    continue;
                }
                offered = offered.min(produced);
            }
            let chunk = usize::try_from(offered - written).unwrap_or(CHUNK).min(CHUNK);
            if chunk == 0 {
                break;
            }
            match stream.write(&data[..chunk]) {
                Ok(count) => written += count as u64,
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error),
            }
        }
        // Segments in flight still arrive; the connection ends with the run.
        while !self.is_over() {
            std::thread::sleep(PATIENCE);
        }
        abandon(shared.socket.get().expect("it was set above"))
    }

    fn send_datagrams(
        &self,
        udp: &UdpFlow,
        planned: &PlannedFlow,
        shared: &Shared,
        until: Instant,
    ) -> io::Result<()> {
        wake_exactly();
        let socket = UdpSocket::bind(planned.from)?;
        socket.connect(planned.to)?;
        let data = vec![0; (udp.packet - UDP_HEADERS).get() as usize];
        let (began, mut sent) = (self.clock.now(), Bytes::ZERO);
        let limit = udp.size.unwrap_or(Bytes::MAX);
        while sent < limit && !self.is_over() {
            let due = began + udp.rate.transmission_time(sent);
            if due >= until {
                break;
            }
            self.clock.sleep_until(due);
            let size = udp.packet.min(limit - sent).max(UDP_HEADERS);
            match socket.send(&data[..(size - UDP_HEADERS).get() as usize]) {
                // Nobody listens any more, or there is no room: datagrams get lost.
                Ok(_) | Err(_) => {}
            }
            sent += size;
            shared.datagrams.fetch_add(1, Ordering::Relaxed);
            shared.datagram_bytes.store(sent.get(), Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The receiving end, before anything came.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A socket, with the largest window that it may advertise.
    Tcp(Socket, Bytes),
    Udp(Socket),
}

/// IPv4's and UDP's.
const UDP_HEADERS: Bytes = Bytes::new(28);

/// An application that produces at a rate, or is silent now and then, looks at the time every so often.
const APPLICATION_TICK: time::Duration = time::Duration::from_millis(1);

/// The connection ends at once and leaves nothing behind, so that its namespace can end too.
fn abandon(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(time::Duration::ZERO))
}

/// Lets the kernel pace at rates of its own making: a limit that nothing reaches turns pacing on.
fn set_pacing(socket: &Socket) -> io::Result<()> {
    suimon_linux::tcp::limit_pacing(socket, Rate::from_bps(8_000_000_000_000))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Has the senders of `scenario`, when it is simulated, write as much at once as live: the kernel wakes a writer when
/// half of its ready data is sent, and takes as much again. Each write ends with PSH, which receivers acknowledge at
/// once.
pub fn write_as_live(scenario: &mut Scenario) {
    let write = most_unsent(slowest(scenario.links.iter())) / 2;
    for flow in &mut scenario.flows {
        if let Traffic::Tcp(tcp) = &mut flow.traffic {
            tcp.profile.write = write;
        }
    }
}

/// The bytes that a sender keeps ready, by the slowest link's rate, so that the application need not be quick.
pub(crate) fn most_unsent(slowest: Rate) -> Bytes {
    const AHEAD: Duration = Duration::from_millis(20);
    slowest.amount_in(AHEAD).clamp(Bytes::new(32 * 1_024), Bytes::new(4 * 1_024 * 1_024))
}
