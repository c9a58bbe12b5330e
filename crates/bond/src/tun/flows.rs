//! The connections of programs, matched with those of the listener.
//!
//! A program's connection to a target is redirected to a listener on this host, as from a port that stands for both its
//! ends. So this host's kernel speaks TCP with the program, and the listener's connection is carried as a stream.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::packet::Ends;

/// Connections of programs, each with the stream that carries it.
#[derive(Debug)]
pub(crate) struct Flows<S> {
    by_ends: HashMap<Ends, u16>,
    by_port: HashMap<u16, Flow<S>>,
    /// Where to look for a free port.
    next: u16,
    opening: usize,
    swept_at: Instant,
}

#[derive(Debug)]
struct Flow<S> {
    ends: Ends,
    state: State<S>,
    /// The time of its latest packet.
    used_at: Instant,
}

#[derive(Debug)]
enum State<S> {
    /// The target is not reached yet; the program's SYN waits.
    Opening,
    /// The target is reached; the listener has not heard of it yet.
    Opened(S),
    Carried,
    Ended,
}

/// The fate of a program's segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outward {
    /// The segment goes to the listener, as from this port.
    Redirect(u16),
    /// A connection begins, under this port: reach its target first.
    Open(u16),
    /// The segment waits.
    Hold,
    /// The segment belongs to no connection.
    Unknown,
}

impl<S> Flows<S> {
    pub(crate) fn new(now: Instant) -> Self {
        Self { by_ends: HashMap::new(), by_port: HashMap::new(), next: 1, opening: 0, swept_at: now }
    }

    /// A program sends a segment; `first` where it asks for a connection.
    pub(crate) fn outward(&mut self, now: Instant, ends: Ends, first: bool) -> Outward {
        if let Some(port) = self.by_ends.get(&ends).copied() {
            let flow = self.by_port.get_mut(&port).expect("both or none");
            flow.used_at = now;
            match flow.state {
                State::Opening => return Outward::Hold,
                State::Ended if first => self.forget(port),
                _ => return Outward::Redirect(port),
            }
        }
        if !first {
            return Outward::Unknown;
        }
        self.sweep(now);
        if self.opening >= MAX_OPENING || self.by_port.len() >= MAX_FLOWS {
            return Outward::Hold;
        }
        while self.next == 0 || self.by_port.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let port = self.next;
        self.opening += 1;
        self.by_ends.insert(ends, port);
        self.by_port.insert(port, Flow { ends, state: State::Opening, used_at: now });
        self.next = self.next.wrapping_add(1);
        Outward::Open(port)
    }

    /// The listener sends a segment to `port`: the program's ends, with itself as the source.
    pub(crate) fn inward(&mut self, now: Instant, port: u16) -> Option<Ends> {
        let flow = self.by_port.get_mut(&port)?;
        flow.used_at = now;
        Some(flow.ends)
    }

    /// The target of `port`'s connection is reached by `stream`.
    pub(crate) fn opened(&mut self, port: u16, stream: S) {
        if let Some(flow) = self.by_port.get_mut(&port) {
            flow.state = State::Opened(stream);
            self.opening -= 1;
        }
    }

    /// The target is not reached.
    pub(crate) fn refused(&mut self, port: u16) {
        if self.by_port.contains_key(&port) {
            self.opening -= 1;
            self.forget(port);
        }
    }

    /// The listener has taken `port`'s connection: gives the stream that carries it.
    pub(crate) fn take(&mut self, port: u16) -> Option<S> {
        let flow = self.by_port.get_mut(&port)?;
        match std::mem::replace(&mut flow.state, State::Carried) {
            State::Opened(stream) => Some(stream),
            other => {
                flow.state = other;
                None
            }
        }
    }

    /// Nobody carries `port`'s connection any more. Its last segments may still come.
    pub(crate) fn ended(&mut self, port: u16) {
        if let Some(flow) = self.by_port.get_mut(&port) {
            flow.state = State::Ended;
        }
    }

    fn forget(&mut self, port: u16) {
        if let Some(flow) = self.by_port.remove(&port) {
            self.by_ends.remove(&flow.ends);
        }
    }

    /// Forgets connections that have ended or were given up by their programs.
    fn sweep(&mut self, now: Instant) {
        if now - self.swept_at < SWEEP && self.by_port.len() < MAX_FLOWS {
            return;
        }
        self.swept_at = now;
        self.by_port.retain(|_, flow| {
            let lasting = matches!(flow.state, State::Opening | State::Carried);
            lasting || now - flow.used_at < LINGER
        });
        let by_port = &self.by_port;
        self.by_ends.retain(|_, port| by_port.contains_key(port));
    }
}

/// Connections that wait for their targets; beyond them, a program has to send its SYN again.
const MAX_OPENING: usize = 1_024;
/// Ports are enough for more, but each that has ended takes a moment to be forgotten.
const MAX_FLOWS: usize = 60_000;
/// A translation outlives its connection by so long without any packet (RFC 5382 §5, REQ-5: 4 min at least).
const LINGER: Duration = Duration::from_secs(240);
const SWEEP: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(port: u16) -> Ends {
        Ends { source: ([10, 0, 0, 1], port).into(), destination: ([1, 2, 3, 4], 443).into() }
    }

    #[test]
    fn a_connection_waits_for_its_target_is_carried_and_forgotten_when_it_has_ended() {
        let began = Instant::now();
        let mut flows = Flows::new(began);
        let Outward::Open(port) = flows.outward(began, ends(5), true) else { panic!("it begins") };
        assert_eq!(flows.outward(began, ends(5), true), Outward::Hold, "the SYN once more");
        assert_eq!(flows.take(port), None);
        flows.opened(port, "stream");
        assert_eq!(flows.outward(began, ends(5), true), Outward::Redirect(port));
        assert_eq!(flows.inward(began, port), Some(ends(5)));
        assert_eq!((flows.take(port), flows.take(port)), (Some("stream"), None));
        flows.ended(port);
        assert_eq!(flows.outward(began, ends(5), false), Outward::Redirect(port), "its last segments");
        let later = began + LINGER + SWEEP;
        assert!(matches!(flows.outward(later, ends(6), true), Outward::Open(_)));
        assert_eq!(flows.inward(later, port), None, "forgotten");
        assert_eq!(flows.outward(later, ends(5), false), Outward::Unknown);
    }

    #[test]
    fn ends_that_are_used_again_begin_anew_and_carried_ones_are_kept_however_quiet() {
        let began = Instant::now();
        let mut flows = Flows::new(began);
        let mut carried = |source| {
            let Outward::Open(port) = flows.outward(began, ends(source), true) else { panic!("it begins") };
            flows.opened(port, ());
            flows.take(port);
            port
        };
        let (quiet, reused) = (carried(5), carried(6));
        flows.ended(reused);
        let later = began + LINGER * 2;
        assert!(matches!(flows.outward(later, ends(6), true), Outward::Open(port) if port != reused));
        assert_eq!(flows.outward(later, ends(5), false), Outward::Redirect(quiet));
    }

    #[test]
    fn programs_that_ask_for_too_many_targets_at_once_wait() {
        let began = Instant::now();
        let mut flows = Flows::<()>::new(began);
        let opened: Vec<_> = (0..MAX_OPENING as u16)
            .map(|nth| match flows.outward(began, ends(nth), true) {
                Outward::Open(port) => port,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(flows.outward(began, ends(9_999), true), Outward::Hold);
        flows.refused(opened[0]);
        assert!(matches!(flows.outward(began, ends(9_999), true), Outward::Open(_)));
    }
}
