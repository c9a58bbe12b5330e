//! The two ends of a flow: a thread each, in the namespace of its host.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time;

use socket2::{Domain, Protocol, Socket, Type};
use suimon_link::DelayMeter;
use suimon_linux::tcp::{TcpOptions, discard, limit_window, reserve_send_buffer};
use suimon_linux::{Clock, Namespace};
use suimon_model::{Flow, Scenario, TcpFlow, Traffic};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::plan::{PlannedFlow, slowest};
use crate::streams::LiveStream;

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
    /// The time that datagrams took.
    pub(crate) delays: Mutex<DelayMeter>,
}

/// The state that all flows of a run share.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) clock: Clock,
    pub(crate) end: Instant,
    pub(crate) over: &'a AtomicBool,
    pub(crate) timestamps: bool,
    /// The slowest link's rate.
    pub(crate) slowest: Rate,
    pub(crate) streams: &'a [LiveStream<'a>],
}

/// Waits for packets end so often to look whether the run is over.
pub(crate) const PATIENCE: time::Duration = time::Duration::from_millis(100);

/// One write or read.
const CHUNK: usize = 1 << 15;

/// TCP's option for timestamps in every segment (RFC 7323 appendix A).
const TIMESTAMPS: Bytes = Bytes::new(12);

impl Stage<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn options(&self, tcp: &TcpFlow) -> TcpOptions {
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
                // Toward a gateway the kernel measures the window itself.
                let window = (tcp.receiver.name() == "fixed").then_some(tcp.window);
                TcpOptions { window, ..self.options(tcp) }.apply(&socket)?;
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

    /// The connection that comes to `listener`; none where the run is over before.
    pub(crate) fn accept(&self, listener: &Socket) -> io::Result<Option<Socket>> {
        loop {
            match listener.accept() {
                Ok((socket, _)) => return Ok(Some(socket)),
                Err(error) if is_timeout(&error) && !self.is_over() => {}
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Receives until the run is over.
    pub(crate) fn receive(
        &self,
        listener: Listener,
        planned: &PlannedFlow,
        shared: &Shared,
    ) -> io::Result<()> {
        let (listener, window) = match listener {
            Listener::Udp(socket) => return self.receive_datagrams(&socket, shared),
            Listener::Tcp(listener, window) => (listener, window),
        };
        let Some(socket) = self.accept(&listener)? else { return Ok(()) };
        socket.set_read_timeout(Some(PATIENCE))?;
        while !self.is_over() {
            limit_window(&socket, window)?;
            match discard(&socket, 1 << 20) {
                Ok(0) => break,
                Ok(count) => {
                    let now = self.clock.now();
                    shared.last_delivery.store(now.as_nanos(), Ordering::Relaxed);
                    let before = shared.delivered.fetch_add(count as u64, Ordering::Relaxed);
                    if let Some(subflow) = planned.subflow {
                        self.streams[subflow.aggregate].on_delivered(
                            now,
                            subflow.path,
                            before + count as u64,
                        );
                    }
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
                Err(error) => return Err(error),
            }
        }
        abandon(&socket)
    }

    /// Sends the data of `flow`, from its start to its end, from `host`. Behind a gateway `onward` goes on from there: data
    /// waits until that is connected too.
    pub(crate) fn send(
        &self,
        host: &Namespace,
        flow: &Flow,
        planned: &PlannedFlow,
        (shared, onward): (&Shared, Option<&Shared>),
    ) -> io::Result<()> {
        host.enter().map_err(io::Error::other)?;
        self.clock.sleep_until(planned.start.min(self.end));
        let until = flow.stop.unwrap_or(self.end).min(self.end);
        if planned.start >= until || self.is_over() {
            return Ok(());
        }
        let tcp = match &flow.traffic {
            Traffic::Udp(udp) => return self.send_datagrams(udp, planned, shared, until),
            Traffic::Tcp(tcp) => tcp,
        };
        let Some(stream) = self.connect(tcp, planned, shared, until)? else { return Ok(()) };
        while onward.is_some_and(|onward| onward.socket.get().is_none()) && !self.is_over() {
            std::thread::sleep(APPLICATION_TICK);
        }
        // What an aggregate sends, a thread of its own writes.
        if planned.subflow.is_none() {
            self.write(stream, tcp, planned, until)?;
        }
        // Segments in flight still arrive; the connection ends with the run.
        while !self.is_over() {
            std::thread::sleep(PATIENCE);
        }
        shared.socket.get().map_or(Ok(()), abandon)
    }

    /// Connects a flow, whose socket all see from then on; none where nothing answers.
    pub(crate) fn connect(
        &self,
        tcp: &TcpFlow,
        planned: &PlannedFlow,
        shared: &Shared,
        until: Instant,
    ) -> io::Result<Option<TcpStream>> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let buffer = planned.subflow.map(|subflow| self.streams[subflow.aggregate].send_buffer());
        let options = TcpOptions {
            congestion_control: planned.kernel_cc.clone(),
            // An aggregate's connection holds as much as its scheduler lets it.
            most_unsent: buffer.is_none().then(|| most_unsent(self.slowest, tcp)),
            ..self.options(tcp)
        };
        options.apply(&socket)?;
        if let Some(buffer) = buffer {
            reserve_send_buffer(&socket, buffer)?;
        }
        if tcp.profile.pacing {
            set_pacing(&socket)?;
        }
        socket.bind(&SocketAddr::from(planned.from).into())?;
        let patience = time::Duration::from_nanos(until.saturating_since(self.clock.now()).as_nanos().max(1));
        match socket.connect_timeout(&SocketAddr::from(planned.to).into(), patience) {
            // Nothing got through so far: the flow has delivered nothing.
            Err(error) if is_timeout(&error) => return Ok(None),
            done => done?,
        }
        socket.set_write_timeout(Some(PATIENCE))?;
        let stream = TcpStream::from(socket.try_clone()?);
        let _ = shared.socket.set(socket);
        Ok(Some(stream))
    }

    /// Writes the data of a flow that is no part of an aggregate.
    fn write(
        &self,
        mut stream: TcpStream,
        tcp: &TcpFlow,
        planned: &PlannedFlow,
        until: Instant,
    ) -> io::Result<()> {
        // A write that waits for room does not notice that the application falls silent.
        let most = most_unsent(self.slowest, tcp).get() as usize;
        let data = vec![0; most.min(CHUNK)];
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
            let chunk = usize::try_from(offered - written).unwrap_or(CHUNK).min(data.len());
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

/// An application that produces at a rate, or is silent now and then, looks at the time every so often.
pub(crate) const APPLICATION_TICK: time::Duration = time::Duration::from_millis(1);

/// The connection ends at once and leaves nothing behind, so that its namespace can end too.
pub(crate) fn abandon(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(time::Duration::ZERO))
}

/// Lets the kernel pace at rates of its own making: a limit that nothing reaches turns pacing on.
fn set_pacing(socket: &Socket) -> io::Result<()> {
    suimon_linux::tcp::limit_pacing(socket, Rate::from_bps(8_000_000_000_000))
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Has the senders of `scenario`, when it is simulated, behave as live ones, of which the scenario says nothing.
///
/// They write as much at once: the kernel wakes a writer when half of its ready data is sent, and takes as much again.
/// Each write ends with PSH, which receivers acknowledge at once. An aggregate writes so that no write ends. The loss of
/// a SYN does not end ECN.
pub fn behave_as_live(scenario: &mut Scenario) {
    let slowest = slowest(scenario.links.iter());
    let of_aggregates: Vec<_> = scenario.aggregates.iter().flat_map(|one| &one.flows).collect();
    for flow in &mut scenario.flows {
        if let Traffic::Tcp(tcp) = &mut flow.traffic {
            tcp.profile.ecn_fallback = false;
            if !of_aggregates.contains(&&flow.name) {
                tcp.profile.write = most_unsent(slowest, tcp) / 2;
            }
        }
    }
}

/// The bytes that a sender keeps ready, by the slowest link's rate, so that the application need not be quick. An
/// application that falls silent now and then keeps less ready, as that leaves all the same.
fn most_unsent(slowest: Rate, tcp: &TcpFlow) -> Bytes {
    const AHEAD: Duration = Duration::from_millis(20);
    let most = slowest.amount_in(AHEAD).clamp(Bytes::new(32 * 1_024), Bytes::new(4 * 1_024 * 1_024));
    if tcp.on_off.is_some() { most / 8 } else { most }
}
