//! Handshakes under way: as many as there is room for, and none that keeps others out.
//!
//! Whoever comes is let in. Where there is no room, a handshake of the network that has most of them ends, and of these
//! the oldest that has not sent a byte. So a network that opens many connections only displaces its own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// All handshakes under way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Admission(Arc<Mutex<Pending>>);

#[derive(Debug, Default)]
struct Pending {
    /// Oldest first.
    handshakes: Vec<Handshake>,
    next: u64,
}

#[derive(Debug)]
struct Handshake {
    number: u64,
    network: IpAddr,
    is_silent: bool,
    /// Dropped to end it.
    _place: oneshot::Sender<()>,
}

/// The place of one handshake, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Admission,
    number: u64,
}

/// Closed once the place of a handshake is needed for another.
pub(crate) type Displaced = oneshot::Receiver<()>;

impl Admission {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().expect("no one panics while holding it")
    }

    /// A place for a connection from `address`.
    pub(crate) fn enter(&self, address: IpAddr) -> (Place, Displaced) {
        let mut pending = self.lock();
        let network = network(address);
        let of_network = pending.handshakes.iter().filter(|other| other.network == network).count();
        if of_network >= PER_NETWORK {
            pending.end_one_of(network);
        } else if pending.handshakes.len() >= HANDSHAKES
            && let Some(largest) = pending.largest()
        {
            pending.end_one_of(largest);
        }
        let number = pending.next;
        pending.next += 1;
        let (place, displaced) = oneshot::channel();
        pending.handshakes.push(Handshake { number, network, is_silent: true, _place: place });
        (Place { admission: self.clone(), number }, displaced)
    }
}

impl Pending {
    fn largest(&self) -> Option<IpAddr> {
        let mut counts = HashMap::new();
        for handshake in &self.handshakes {
            *counts.entry(handshake.network).or_insert(0) += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(network, _)| network)
    }

    fn end_one_of(&mut self, network: IpAddr) {
        let of_network = self.handshakes.iter().enumerate().filter(|(_, other)| other.network == network);
        // Of equals the first, which is the oldest.
        let chosen = of_network.min_by_key(|(_, other)| !other.is_silent).map(|(place, _)| place);
        chosen.map(|place| self.handshakes.remove(place));
    }
}

impl Place {
    /// The other end has sent something.
    pub(crate) fn is_heard(&self) {
        let mut pending = self.admission.lock();
        if let Some(own) = pending.handshakes.iter_mut().find(|other| other.number == self.number) {
            own.is_silent = false;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.lock().handshakes.retain(|other| other.number != self.number);
    }
}

/// Addresses that one holder is likely to have: 256 of IPv4, and of IPv6 the 2^64 that a site gets at least
/// (RFC 6177 §2).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => Ipv4Addr::from(u32::from(address) & !0xff).into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
    }
}

/// Handshakes under way at once: each holds a connection and a few kilobytes.
const HANDSHAKES: usize = 128;
const PER_NETWORK: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    type Entered = (Place, Displaced);

    fn has_ended((_, displaced): &mut Entered) -> bool {
        displaced.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    fn enter(admission: &Admission, address: &str, count: usize) -> Vec<Entered> {
        (0..count).map(|_| admission.enter(address.parse().unwrap())).collect()
    }

    #[test]
    fn silent_connections_of_many_networks_keep_nobody_out() {
        let admission = Admission::default();
        let mut crowds: Vec<_> = (1..=4).map(|net| enter(&admission, &format!("10.0.{net}.1"), 32)).collect();
        let mut honest = admission.enter("192.0.2.7".parse().unwrap());
        assert!(!has_ended(&mut honest));
        let ended: Vec<usize> = crowds
            .iter_mut()
            .map(|crowd| crowd.iter_mut().filter_map(|place| has_ended(place).then_some(1)).sum())
            .collect();
        assert_eq!(ended.iter().sum::<usize>(), 1, "one made room");
        for _ in 0..200 {
            crowds.push(enter(&admission, "10.0.1.9", 1));
        }
        assert!(!has_ended(&mut honest), "a crowd displaces its own");
        assert!(admission.lock().handshakes.len() <= HANDSHAKES);
        drop((crowds, honest));
        assert!(admission.lock().handshakes.is_empty());
    }

    #[test]
    fn of_a_full_network_the_oldest_silent_one_goes_and_then_the_oldest() {
        for crowd in ["2001:db8::", "203.0.113."] {
            let admission = Admission::default();
            let mut places: Vec<_> = (1..=PER_NETWORK)
                .map(|host| admission.enter(format!("{crowd}{host}").parse().unwrap()))
                .collect();
            places[0].0.is_heard();
            let mut later = enter(&admission, &format!("{crowd}99"), 1);
            assert!(!has_ended(&mut places[0]) && has_ended(&mut places[1]));
            places.iter().chain(&later).for_each(|(place, _)| place.is_heard());
            later.extend(enter(&admission, &format!("{crowd}98"), 1));
            assert!(has_ended(&mut places[0]) && !has_ended(&mut places[2]));
        }
    }
}
