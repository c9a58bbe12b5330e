//! The way from the far host on: connections and datagrams are taken there and made anew outside, for every address.
//!
//! The far host takes every address for its own. Before a packet is given to the far host, a listener starts on the
//! packet's port there, and passes the data on. So the near host reaches every address that the calling process
//! reaches, without rights over its network, and the link ends where the far host's kernel acknowledges. The relay's
//! own connection leads to the hosts behind.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket,
};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt,
};
use suimon_linux::schedule::wait_readable;
use suimon_linux::{LinuxError, Namespace, Route};

use crate::gate::{Gate, Port, Request, Transport};
use crate::topology::Path;

/// The addresses that answer for the host that this runs on.
#[derive(Debug, Clone)]
struct Outside {
    /// The far host's own addresses: these stand for the host that the calling process runs on.
    own: Vec<IpAddr>,
    /// The resolver that port 53 of that host stands for, where programs ask for names.
    resolver: Option<IpAddr>,
    /// A port, or a datagram's way, that nobody uses for so long is closed.
    idle: Duration,
}

/// A datagram's way outside is kept so long after the latest datagram went out by it (RFC 4787 §4.3, REQ-5: 2 min at
/// least; REQ-6), and a port after its latest use.
const IDLE: Duration = Duration::from_secs(120);
/// Most ways for datagrams at a time.
const MAX_WAYS: usize = 1_024;
/// The most time for connecting outside.
const CONNECT: Duration = Duration::from_secs(30);

/// The local table, in which a host looks up addresses first, and those that are its own.
const LOCAL_TABLE: u32 = 255;

/// Lets the far host take every address for its own, and answers for them from the network that the calling thread
/// is in.
///
/// # Errors
/// Without rights over the far host.
pub(crate) fn start(
    far: &Namespace,
    paths: &[Path],
    resolver: Option<IpAddr>,
    requests: Receiver<Request>,
    gate: Arc<Gate>,
) -> Result<(), LinuxError> {
    let has_ipv6 = far.addresses()?.iter().any(|(address, _)| *address == IpAddr::V6(Ipv6Addr::LOCALHOST));
    let all: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let route = |destination, device: &str, local| Route {
        destination: Some(destination),
        via: None,
        device: device.to_owned(),
        table: LOCAL_TABLE,
        local,
    };
    for path in paths {
        // More exact than the route to everything, so that answers find their way back.
        far.add_route(&route(
            (Ipv4Addr::from(u32::from(path.far) & !3).into(), 30),
            &path.far_device,
            false,
        ))?;
        if has_ipv6 {
            far.add_route(&route((path.near_v6.into(), 128), &path.far_device, false))?;
        }
    }
    for everything in all.into_iter().filter(|all| has_ipv6 || all.is_ipv4()) {
        far.add_route(&route((everything, 0), "lo", true))?;
    }
    let own = paths.iter().flat_map(|path| [IpAddr::V4(path.far), IpAddr::V6(path.far_v6)]).collect();
    let outside = Outside { own, resolver, idle: IDLE };
    let far = far.clone();
    thread::Builder::new()
        .name("relay".to_owned())
        .spawn(move || serve(&far, &outside, &requests, &gate))
        .map(drop)
        .map_err(|error| LinuxError::new("starting a thread", error))
}

/// Opens ports that are asked for, and closes those that nobody uses any more, one after the other.
fn serve(far: &Namespace, outside: &Outside, requests: &Receiver<Request>, gate: &Arc<Gate>) {
    while let Ok(request) = requests.recv() {
        match request {
            Request::Open(port) => {
                // Without a listener the far host refuses, and the program is to see that.
                let _ = match port.transport {
                    Transport::Tcp => listen(far, port, outside, gate),
                    Transport::Udp => receive(far, port, outside, gate),
                };
                gate.open(port);
            }
            Request::Idle(port, socket) => {
                gate.close(port);
                // Packets that the gate let pass just before.
                thread::sleep(LAST_PACKETS);
                let is_used = wait_readable([socket.as_fd()], Some(suimon_units::Duration::ZERO));
                if is_used.is_ok_and(|[is_used]| is_used) {
                    let _ = match port.transport {
                        Transport::Tcp => accept(socket.into(), port, outside, gate),
                        Transport::Udp => take(socket.into(), port, outside, gate),
                    };
                    gate.open(port);
                }
            }
        }
    }
}

/// The time from the gate to the far host's socket.
const LAST_PACKETS: Duration = Duration::from_millis(2);

impl Outside {
    /// The destination outside for data sent to `address`.
    fn of(&self, address: SocketAddr) -> SocketAddr {
        let ip = address.ip().to_canonical();
        if !self.own.contains(&ip) {
            return SocketAddr::new(ip, address.port());
        }
        let host = match self.resolver {
            Some(resolver) if address.port() == 53 => resolver,
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        SocketAddr::new(host, address.port())
    }
}

fn listen(far: &Namespace, port: Port, outside: &Outside, gate: &Arc<Gate>) -> io::Result<()> {
    // An IPv6 listener takes both; a kernel without IPv6 has the other.
    let bind = || {
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, port.number))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.number)))
    };
    accept(far.run(bind).map_err(io::Error::other)??, port, outside, gate)
}

fn accept(listener: TcpListener, port: Port, outside: &Outside, gate: &Arc<Gate>) -> io::Result<()> {
    let (outside, gate) = (outside.clone(), Arc::clone(gate));
    let accept = move || {
        while is_used(&listener, outside.idle) {
            let Ok((near, _)) = listener.accept() else {
                // Descriptors have run out, most likely.
                thread::sleep(PAUSE);
                continue;
            };
            let outside = outside.clone();
            // Without a thread for it the connection closes.
            let _ = thread::Builder::new().stack_size(STACK).spawn(move || connect(&near, &outside));
        }
        gate.report_idle(port, listener.into());
    };
    thread::Builder::new().stack_size(STACK).spawn(accept).map(drop)
}

/// Waits until `socket` can be read, at most for `idle`.
fn is_used(socket: &impl AsFd, idle: Duration) -> bool {
    let ends = Instant::now() + idle;
    loop {
        let left = ends.saturating_duration_since(Instant::now());
        let left = suimon_units::Duration::from_nanos(left.as_nanos() as u64);
        match wait_readable([socket.as_fd()], Some(left)) {
            Ok([true]) => return true,
            Ok([false]) if left > suimon_units::Duration::ZERO => {}
            _ => return false,
        }
    }
}

const PAUSE: Duration = Duration::from_millis(100);
const STACK: usize = 256 * 1_024;

fn connect(near: &TcpStream, outside: &Outside) -> io::Result<()> {
    let far = TcpStream::connect_timeout(&outside.of(near.local_addr()?), CONNECT)?;
    relay(near, &far)
}

/// Carries both directions until both have ended. Where one fails, both connections are reset, and so they are where this
/// process is killed: whoever reads must not take the part for the whole.
fn relay(near: &TcpStream, far: &TcpStream) -> io::Result<()> {
    for stream in [near, far] {
        stream.set_nodelay(true)?;
        reset_on_close(stream, true)?;
    }
    let (from_near, to_far) = (near.try_clone()?, far.try_clone()?);
    let outward = thread::Builder::new().stack_size(STACK).spawn(move || pass(&from_near, &to_far))?;
    let inward = pass(far, near);
    let outward = outward.join().map_err(|_| io::Error::other("a thread has panicked"))?;
    inward.and(outward)?;
    [near, far].into_iter().try_for_each(|stream| reset_on_close(stream, false))
}

/// Passes data on, and its end.
fn pass(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 128 * 1_024];
    let passed = loop {
        match from.read(&mut buffer) {
            Ok(0) => break to.shutdown(Shutdown::Write),
            Ok(read) => {
                if let Err(error) = to.write_all(&buffer[..read]) {
                    break Err(error);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if passed.is_err() {
        // The other direction waits for data of one of them.
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Read);
        }
    }
    passed
}

/// Whether the kernel resets the connection when its last descriptor is closed (`SO_LINGER` with no time, socket(7)).
fn reset_on_close(tcp: &TcpStream, resets: bool) -> io::Result<()> {
    let linger = nix::libc::linger { l_onoff: resets.into(), l_linger: 0 };
    Ok(setsockopt(tcp, sockopt::Linger, &linger)?)
}

/// A datagram's way outside.
#[derive(Debug)]
struct Way {
    socket: UdpSocket,
    /// When a datagram went out by it last.
    used: Mutex<Instant>,
}

impl Way {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.socket.send(data).map(drop)
    }

    /// What is left of the time for which it is kept.
    fn left(&self, idle: Duration) -> Option<Duration> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        idle.checked_sub(used.elapsed()).filter(|left| !left.is_zero())
    }
}

/// Ways for datagrams, by who sends them and where to.
type Ways = Arc<Mutex<HashMap<(SocketAddrV4, Ipv4Addr), Arc<Way>>>>;

fn receive(far: &Namespace, port: Port, outside: &Outside, gate: &Arc<Gate>) -> io::Result<()> {
    let bind = || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port.number));
    let socket = far.run(bind).map_err(io::Error::other)??;
    setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
    take(socket, port, outside, gate)
}

fn take(socket: UdpSocket, port: Port, outside: &Outside, gate: &Arc<Gate>) -> io::Result<()> {
    let (mut socket, outside, gate) = (Arc::new(socket), outside.clone(), Arc::clone(gate));
    let take = move || {
        let ways = Ways::default();
        let mut data = vec![0; 65_536];
        loop {
            while is_used(&*socket, outside.idle) {
                let Ok(Some((length, from, to))) = receive_one(&socket, &mut data) else { continue };
                let to = SocketAddrV4::new(to, port.number);
                // A datagram that finds no way is lost, as datagrams are.
                let _ = send_outside(&socket, &ways, &outside, &data[..length], from, to);
            }
            // Whoever may still answer holds it too.
            match Arc::try_unwrap(socket) {
                Ok(socket) => return gate.report_idle(port, socket.into()),
                Err(held) => socket = held,
            }
        }
    };
    thread::Builder::new().stack_size(STACK).spawn(take).map(drop)
}

/// A datagram's length, who sent it, and to which address.
fn receive_one(socket: &UdpSocket, data: &mut [u8]) -> io::Result<Option<(usize, SocketAddrV4, Ipv4Addr)>> {
    let mut space = nix::cmsg_space!(nix::libc::in_pktinfo);
    let mut parts = [IoSliceMut::new(data)];
    let message = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty())?;
    let to = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4PacketInfo(info) => Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr))),
        _ => None,
    });
    let from = message.address.map(SocketAddrV4::from);
    Ok(from.zip(to).map(|(from, to)| (message.bytes, from, to)))
}

fn send_outside(
    socket: &Arc<UdpSocket>,
    ways: &Ways,
    outside: &Outside,
    data: &[u8],
    from: SocketAddrV4,
    to: SocketAddrV4,
) -> io::Result<()> {
    let key = (from, *to.ip());
    let known = ways.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(way) = known {
        return way.send(data);
    }
    if ways.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAX_WAYS {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let there = outside.of(to.into());
    let any: IpAddr =
        if there.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let outward = UdpSocket::bind((any, 0))?;
    outward.connect(there)?;
    let way = Arc::new(Way { socket: outward, used: Mutex::new(Instant::now()) });
    let (answering, idle) = (Arc::clone(&way), outside.idle);
    let (socket, all) = (Arc::clone(socket), Arc::clone(ways));
    let answer = move || {
        let mut data = vec![0; 65_536];
        while let Some(left) = answering.left(idle) {
            if answering.socket.set_read_timeout(Some(left)).is_err() {
                break;
            }
            // On an error, an ICMP message has come about an earlier datagram; the next may do better.
            if let Ok(length) = answering.socket.recv(&mut data) {
                let _ = answer_one(&socket, &data[..length], from, *to.ip());
            }
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    };
    thread::Builder::new().stack_size(STACK).spawn(answer)?;
    ways.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&way));
    way.send(data)
}

/// Sends an answer to `to`, as from the address that was asked.
fn answer_one(socket: &UdpSocket, data: &[u8], to: SocketAddrV4, from: Ipv4Addr) -> io::Result<()> {
    let source = nix::libc::in_addr { s_addr: u32::from(from).to_be() };
    let nowhere = nix::libc::in_addr { s_addr: 0 };
    let info = nix::libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: nowhere };
    let parts = [IoSlice::new(data)];
    let controls = [ControlMessage::Ipv4PacketInfo(&info)];
    sendmsg(socket.as_raw_fd(), &parts, &controls, MsgFlags::empty(), Some(&SockaddrIn::from(to)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_nobody_uses_is_closed_and_opened_again_when_asked_for() {
        let free = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap().local_addr().unwrap().port();
        let (gate, requests) = Gate::new();
        let far = match Namespace::new() {
            Ok(far) => far,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let own = vec![Ipv4Addr::LOCALHOST.into()];
        let outside = Outside { own, resolver: None, idle: Duration::from_millis(300) };
        let (served, there) = (Arc::clone(&gate), far.clone());
        thread::spawn(move || serve(&there, &outside, &requests, &served));
        let key = crate::packet::FlowKey {
            from: "10.0.0.1:5".parse().unwrap(),
            to: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), free),
            protocol: 6,
        };
        for _ in 0..3 {
            let began = Instant::now();
            while !gate.admits(&key) {
                assert!(began.elapsed() < Duration::from_secs(5), "it opens");
                thread::sleep(Duration::from_millis(1));
            }
            let connect = || far.run(|| TcpStream::connect(key.to)).unwrap();
            connect().unwrap();
            let began = Instant::now();
            while connect().is_ok() {
                assert!(began.elapsed() < Duration::from_secs(5), "it closes");
                thread::sleep(Duration::from_millis(400));
            }
        }
    }

    /// Two ends of a connection.
    fn connection() -> [TcpStream; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [near, listener.accept().unwrap().0]
    }

    #[test]
    fn an_end_passes_as_an_end_and_a_reset_as_a_reset() {
        for resets in [false, true] {
            let [mut program, near] = connection();
            let [far, mut server] = connection();
            let relaying = thread::spawn(move || relay(&near, &far));
            server.write_all(b"a part").unwrap();
            let mut part = [0; 6];
            program.read_exact(&mut part).unwrap();
            reset_on_close(&server, resets).unwrap();
            drop(server);
            let rest = program.read(&mut [0; 8]);
            if resets {
                assert_eq!(rest.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            } else {
                assert_eq!(rest.unwrap(), 0);
            }
            drop(program);
            assert_eq!(relaying.join().unwrap().is_err(), resets);
        }
    }

    #[test]
    fn datagrams_keep_their_port_outside_while_they_are_sent_and_when_nobody_took_one() {
        let far = match Namespace::new() {
            Ok(far) => far,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let there = server.local_addr().unwrap();
        let outside = Outside {
            own: vec![Ipv4Addr::LOCALHOST.into()],
            resolver: None,
            idle: Duration::from_millis(500),
        };
        let (gate, _requests) = Gate::new();
        receive(&far, Port { number: there.port(), transport: Transport::Udp }, &outside, &gate).unwrap();
        let client = far.run(|| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).unwrap().unwrap();
        let ask = |server: &UdpSocket| {
            client.send_to(b"?", there).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            server.recv_from(&mut [0; 8]).unwrap().1
        };
        let way = ask(&server);
        // Nobody answers for longer than a way is kept without use.
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(100));
            assert_eq!(ask(&server), way);
        }
        drop(server);
        client.send_to(b"?", there).unwrap();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(ask(&UdpSocket::bind(there).unwrap()), way);
    }
}
