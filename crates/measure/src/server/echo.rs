//! The server's half of probes: each address that clients come to gets a socket and a thread, so that nothing else
//! delays answers.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use super::sessions::Sessions;
use crate::arrivals::PACKET;
use crate::clock::Clock;
use crate::datagram::{Datagram, Kind};
use crate::saturator::Saturator;

/// How soon a thread notices that its server is gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// Packets that one datagram of a client may set going.
const BURST: usize = 64;
/// Room for datagrams that come while this host is busy, in bytes.
const ROOM: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Echoes {
    clock: Clock,
    sessions: Arc<Sessions>,
    /// Answers come from the address that was asked, which a socket of all addresses would not see to.
    addresses: Mutex<HashSet<SocketAddr>>,
}

impl Echoes {
    pub(super) fn new(clock: Clock, sessions: Arc<Sessions>) -> Self {
        Self { clock, sessions, addresses: Mutex::default() }
    }

    /// Answers datagrams to `address`, which is one of this host.
    pub(super) fn listen(&self, address: SocketAddr) -> io::Result<()> {
        // A link-local address of IPv6 is one only with its scope.
        let address = match address.ip().to_canonical() {
            IpAddr::V4(mapped) => SocketAddr::new(mapped.into(), address.port()),
            IpAddr::V6(_) => address,
        };
        let mut addresses = self.addresses.lock().expect("no one panics while holding it");
        if addresses.contains(&address) {
            return Ok(());
        }
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // A host that gives less has less.
        let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(ROOM);
        let (clock, sessions) = (self.clock, Arc::downgrade(&self.sessions));
        thread::Builder::new().name("echoes".to_owned()).spawn(move || answer(&socket, clock, &sessions))?;
        addresses.insert(address);
        Ok(())
    }
}

fn answer(socket: &UdpSocket, clock: Clock, sessions: &Weak<Sessions>) {
    let mut bytes = [0; PACKET as usize];
    loop {
        let received = socket.recv_from(&mut bytes);
        let now_us = clock.now_us();
        let Some(sessions) = sessions.upgrade() else { return };
        let Ok((length, client)) = received else { continue };
        let Some((kind, datagram)) = Datagram::read(&bytes[..length]) else { continue };
        if kind == Kind::Question {
            if sessions.may_echo(&datagram.cookie, client.ip()) {
                // A datagram that this host cannot send is one that gets lost.
                let _ = socket.send_to(&Datagram { time_us: now_us, ..datagram }.bytes(Kind::Answer), client);
            }
            continue;
        }
        let Some(session) = sessions.find(&datagram.cookie, client.ip()) else { continue };
        let Some(mut recorder) = session.recorder() else { continue };
        let most = sessions.limits().bytes / PACKET;
        match kind {
            Kind::Data => {
                if recorder.counter.count(now_us, datagram.time_us) <= most {
                    let _ = socket.send_to(&datagram.bytes(Kind::Acknowledgement), client);
                }
            }
            Kind::Call | Kind::Acknowledgement => {
                if kind == Kind::Acknowledgement {
                    recorder.saturator.acknowledge(datagram.number, datagram.time_us, now_us);
                }
                send(socket, client, datagram, &mut recorder.saturator, most, clock);
            }
            Kind::Question | Kind::Answer => {}
        }
    }
}

/// Sends what may be under way, so that data goes only to who says again and again that it comes.
fn send(
    socket: &UdpSocket,
    client: SocketAddr,
    called: Datagram,
    saturator: &mut Saturator,
    most: u64,
    clock: Clock,
) {
    let is_ipv6 = client.ip().to_canonical().is_ipv6();
    for _ in 0..BURST {
        if u64::from(saturator.sent()) >= most {
            return;
        }
        let now_us = clock.now_us();
        let Some(number) = saturator.poll(now_us) else { return };
        let _ = socket.send_to(&Datagram { number, time_us: now_us, ..called }.data(is_ipv6), client);
    }
}
