//! Packets that wait until somebody at the far host listens for them.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::packet::FlowKey;

/// A port at the far host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Port {
    pub(crate) transport: Transport,
    pub(crate) number: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// A change of who listens.
#[derive(Debug)]
pub(crate) enum Request {
    /// Somebody should listen on the port.
    Open(Port),
    /// Nobody has used the port for a while; its socket.
    Idle(Port, OwnedFd),
}

/// Ports that somebody listens on, and those that somebody should.
#[derive(Debug)]
pub(crate) struct Gate {
    opened: [Bits; 2],
    asked: [Bits; 2],
    /// The thread that moves packets asks; it does not wait for this, as others take it for a moment only.
    requests: Mutex<Sender<Request>>,
}

impl Gate {
    /// A gate and where it asks for ports to be opened.
    pub(crate) fn new() -> (Arc<Self>, Receiver<Request>) {
        let (requests, asked) = channel();
        let gate =
            Self { opened: Default::default(), asked: Default::default(), requests: Mutex::new(requests) };
        (Arc::new(gate), asked)
    }

    /// True where a packet of `key` may be given to the far host; asks for its port where not.
    pub(crate) fn admits(&self, key: &FlowKey) -> bool {
        let transport = match key.protocol {
            6 => Transport::Tcp,
            17 => Transport::Udp,
            _ => return true,
        };
        let port = Port { transport, number: key.to.port() };
        if self.opened[transport as usize].has(port.number) {
            return true;
        }
        // Where nobody opens ports any more, the packet gets the answer that it gets.
        !self.asked[transport as usize].set(port.number) && !self.request(Request::Open(port))
    }

    /// Nobody has used `port` for a while; `socket` listens on it.
    pub(crate) fn report_idle(&self, port: Port, socket: OwnedFd) {
        self.request(Request::Idle(port, socket));
    }

    fn request(&self, request: Request) -> bool {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).send(request).is_ok()
    }

    /// Somebody listens on `port` now, or cannot, so that packets to it get the answer that they get.
    pub(crate) fn open(&self, port: Port) {
        self.opened[port.transport as usize].set(port.number);
    }

    /// Nobody listens on `port` any more: packets to it wait until somebody does.
    pub(crate) fn close(&self, port: Port) {
        self.opened[port.transport as usize].clear(port.number);
        self.asked[port.transport as usize].clear(port.number);
    }
}

/// A bit for each port.
#[derive(Debug)]
struct Bits(Vec<AtomicU64>);

impl Default for Bits {
    fn default() -> Self {
        Self((0..1_024).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Bits {
    fn has(&self, port: u16) -> bool {
        self.0[usize::from(port) / 64].load(Ordering::Acquire) >> (port % 64) & 1 == 1
    }

    /// Sets it; true where it was set.
    fn set(&self, port: u16) -> bool {
        let bit = 1 << (port % 64);
        self.0[usize::from(port) / 64].fetch_or(bit, Ordering::AcqRel) & bit != 0
    }

    fn clear(&self, port: u16) {
        self.0[usize::from(port) / 64].fetch_and(!(1 << (port % 64)), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_asked_for_once_and_admits_when_open() {
        let (gate, asked) = Gate::new();
        let key = |protocol| FlowKey {
            from: "10.0.0.1:5".parse().unwrap(),
            to: "10.0.0.2:443".parse().unwrap(),
            protocol,
        };
        assert!(gate.admits(&key(1)), "no ports");
        assert!(!gate.admits(&key(6)) && !gate.admits(&key(6)));
        let port = Port { transport: Transport::Tcp, number: 443 };
        let opened = || {
            asked.try_iter().filter(|asked| matches!(asked, Request::Open(asked) if *asked == port)).count()
        };
        assert_eq!(opened(), 1);
        gate.open(port);
        assert!(gate.admits(&key(6)));
        assert!(!gate.admits(&key(17)), "the other transport");
        gate.close(port);
        asked.try_iter().for_each(drop);
        assert!(!gate.admits(&key(6)) && !gate.admits(&key(6)));
        assert_eq!(opened(), 1, "asked for again, once");
    }
}
