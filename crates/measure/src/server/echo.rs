//! The server's half of probes: each address that clients come to gets a socket and a thread, so that nothing else
//! delays answers.

use std::collections::HashSet;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use super::sessions::Sessions;
use crate::clock::Clock;
use crate::datagram::{Datagram, LENGTH};

/// How soon a thread notices that its server is gone.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let mut addresses = self.addresses.lock().expect("no one panics while holding it");
        if addresses.contains(&address) {
            return Ok(());
        }
        let socket = UdpSocket::bind(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let (clock, sessions) = (self.clock, Arc::downgrade(&self.sessions));
        thread::Builder::new().name("echoes".to_owned()).spawn(move || answer(&socket, clock, &sessions))?;
        addresses.insert(address);
        Ok(())
    }
}

fn answer(socket: &UdpSocket, clock: Clock, sessions: &Weak<Sessions>) {
    let mut bytes = [0; LENGTH + 1];
    loop {
        let received = socket.recv_from(&mut bytes);
        let server_us = clock.now_us();
        let Some(sessions) = sessions.upgrade() else { return };
        let Ok((length, client)) = received else { continue };
        let Some(question) = Datagram::asked(&bytes[..length]) else { continue };
        if sessions.may_echo(&question.cookie, client.ip()) {
            // A datagram that this host cannot send is one that gets lost.
            let _ = socket.send_to(&Datagram { server_us, ..question }.answer(), client);
        }
    }
}
