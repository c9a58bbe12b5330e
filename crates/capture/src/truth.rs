//! Round-trip times that a capture of both directions proves.
//!
//! Between two hosts the round trip has two sides as seen from where the capture was made: from there to
//! one host and back, and from there to the other and back. Each is the time between a packet and the
//! first one that answers it: an ACK for a segment, SYN's included, or a segment that carries back the
//! timestamp of an ACK which let it go. Their sum is the round-trip time.
//!
//! A segment whose bytes were sent before gives no time by its ACK, nor does any segment that was
//! outstanding then (Karn's algorithm, RFC 6298 §3); a timestamp tells the two apart (RFC 7323 §4.1).

use std::collections::{HashMap, VecDeque};

use suimon_units::{Duration, Instant};

use crate::packet::{Endpoints, Packet, Tcp};

/// Follows TCP connections and gives their round-trip times.
#[derive(Debug)]
pub struct Truth {
    connections: HashMap<Endpoints, Connection>,
    limit: usize,
    last_sweep: Instant,
    not_followed: u64,
}

/// A round-trip time of a flow, at the packet that showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrueRtt {
    /// The direction of the acknowledged segment.
    pub flow: Endpoints,
    /// When the acknowledgement passed.
    pub at: Instant,
    /// From the capture to the receiver and back.
    pub receiver_side: Duration,
    /// From the capture to the sender and back, when it was last seen; `None` before.
    pub sender_side: Option<Duration>,
    /// The source of the receiver's side.
    pub source: TruthSource,
}

impl TrueRtt {
    /// The whole round trip, where both sides are known.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.sender_side.map(|side| side + self.receiver_side)
    }
}

/// The packet that a true round-trip time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruthSource {
    /// The ACK of a segment that was sent once.
    Acknowledgement,
    /// A timestamp that came back.
    Timestamp,
}

/// Segments, and timestamps, that are outstanding at once and timed; of more, only some are.
const OUTSTANDING: usize = 64;
/// A connection that was silent for so long makes room for another.
const SILENCE: Duration = Duration::from_secs(60);
/// How often room is looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

impl Truth {
    /// Follows at most `limit` connections at once, at no more than 5 kB each.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { connections: HashMap::new(), limit, last_sweep: Instant::ZERO, not_followed: 0 }
    }

    /// Takes the next packet of the capture.
    pub fn on_packet(&mut self, packet: &Packet) -> Option<TrueRtt> {
        let tcp = packet.tcp.as_ref()?;
        let key = packet.endpoints.connection();
        if !self.connections.contains_key(&key) && !self.has_room(packet.time) {
            self.not_followed += 1;
            return None;
        }
        let connection = self.connections.entry(key).or_default();
        connection.last = packet.time;
        let forward = packet.endpoints == key;
        let (own, other) = if forward {
            (&mut connection.forward, &mut connection.backward)
        } else {
            (&mut connection.backward, &mut connection.forward)
        };
        if tcp.syn && tcp.acknowledgement.is_none() && own.first.is_some_and(|first| first != tcp.sequence) {
            // The same ports again, for another connection.
            (*own, *other) = Default::default();
        }
        let answered = other.answered_by(packet, tcp, own.is_busy(packet));
        own.sent(packet, tcp);
        let answered = answered?;
        own.side = Some(answered.after);
        answered.source.map(|source| TrueRtt {
            flow: packet.endpoints.reversed(),
            at: packet.time,
            receiver_side: answered.after,
            sender_side: other.side,
            source,
        })
    }

    /// TCP packets of connections beyond the limit.
    #[must_use]
    pub fn not_followed(&self) -> u64 {
        self.not_followed
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if self.connections.len() < self.limit {
            return true;
        }
        if now.saturating_since(self.last_sweep) >= SWEEP_EVERY {
            self.last_sweep = now;
            self.connections.retain(|_, connection| now.saturating_since(connection.last) < SILENCE);
        }
        self.connections.len() < self.limit
    }
}

#[derive(Debug, Default)]
struct Connection {
    last: Instant,
    forward: Direction,
    backward: Direction,
}

/// The packets of one of the two hosts.
#[derive(Debug, Default)]
struct Direction {
    /// Sequence number of its SYN.
    first: Option<u32>,
    /// The sequence number behind all that it sent.
    next: Option<u32>,
    /// Ends of segments whose ACK will be timed.
    segments: VecDeque<(u32, Instant)>,
    /// Its newest timestamp.
    stamp: Option<u32>,
    stamps: VecDeque<Stamp>,
    /// Its largest payload, and whether its last one was as large: then more was waiting to be sent.
    largest: u64,
    last_was_largest: bool,
    /// From the capture to this host and back.
    side: Option<Duration>,
}

/// A timestamp and when it was first seen.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    value: u32,
    at: Instant,
    /// Whether it came with something that must be acknowledged.
    wants_answer: bool,
}

struct Answered {
    after: Duration,
    /// `None` where data answered an ACK.
    source: Option<TruthSource>,
}

/// Whether sequence number `a` is beyond `b` (RFC 9293 §3.4).
fn beyond(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Direction {
    /// Whether this host, which sends `packet`, sends it because an ACK let it: it had more to send
    /// before. An application that was idle proves nothing by the time it waited.
    fn is_busy(&self, packet: &Packet) -> bool {
        self.last_was_largest && packet.payload.get() > 0
    }

    /// This host sends `packet`.
    fn sent(&mut self, packet: &Packet, tcp: &Tcp) {
        let payload = packet.payload.get();
        let occupies = payload as u32 + u32::from(tcp.syn) + u32::from(tcp.fin);
        if tcp.syn {
            self.first = Some(tcp.sequence);
        }
        if let Some(stamps) = tcp.timestamps
            && self.stamp.is_none_or(|newest| beyond(stamps.value, newest))
        {
            self.stamp = Some(stamps.value);
            if self.stamps.len() < OUTSTANDING {
                let wants_answer = occupies > 0;
                self.stamps.push_back(Stamp { value: stamps.value, at: packet.time, wants_answer });
            }
        }
        if occupies == 0 {
            return;
        }
        let end = tcp.sequence.wrapping_add(occupies);
        let is_new = self.next.is_none_or(|next| !beyond(next, tcp.sequence));
        if !is_new {
            self.segments.clear();
        } else if self.segments.len() < OUTSTANDING {
            self.segments.push_back((end, packet.time));
        }
        if self.next.is_none_or(|next| beyond(end, next)) {
            self.next = Some(end);
        }
        if payload > 0 {
            self.largest = self.largest.max(payload);
            self.last_was_largest = payload == self.largest;
        }
    }

    /// The other host sends `packet`, which may answer packets of this host.
    fn answered_by(&mut self, packet: &Packet, tcp: &Tcp, is_busy: bool) -> Option<Answered> {
        let acknowledgement = tcp.acknowledgement.filter(|_| !tcp.rst)?;
        let since = |at: Instant| packet.time.saturating_since(at);
        let mut by_ack = None;
        while let Some((end, at)) = self.segments.front().copied() {
            if beyond(end, acknowledgement) {
                break;
            }
            // An ACK that ends within a larger segment answers one that was not captured as such.
            by_ack = (end == acknowledgement).then(|| since(at));
            self.segments.pop_front();
        }
        let mut by_stamp = None;
        if let Some(stamps) = tcp.timestamps {
            while let Some(stamp) = self.stamps.front().copied() {
                if beyond(stamp.value, stamps.echo) {
                    break;
                }
                by_stamp = (stamp.value == stamps.echo).then_some(stamp);
                self.stamps.pop_front();
            }
        }
        if let Some(after) = by_ack {
            return Some(Answered { after, source: Some(TruthSource::Acknowledgement) });
        }
        let stamp = by_stamp?;
        if stamp.wants_answer {
            Some(Answered { after: since(stamp.at), source: Some(TruthSource::Timestamp) })
        } else {
            is_busy.then(|| Answered { after: since(stamp.at), source: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use suimon_algorithms::queue::Ecn;
    use suimon_units::Bytes;

    use super::*;
    use crate::packet::{TcpTimestamps, Transport};

    /// A packet between client and server; times in milliseconds, sequence numbers relative to each
    /// host's first.
    struct Script {
        truth: Truth,
        stamps: bool,
        number: u64,
    }

    #[derive(Clone, Copy)]
    enum Host {
        Client,
        Server,
    }
    use Host::{Client, Server};

    const CLIENT_ISN: u32 = u32::MAX - 700;
    const SERVER_ISN: u32 = 5_000;

    impl Script {
        fn new(stamps: bool) -> Self {
            Self { truth: Truth::new(10), stamps, number: 0 }
        }

        fn packet(&mut self, at: f64, from: Host, tcp: Tcp, payload: u64) -> Option<TrueRtt> {
            self.number += 1;
            let there = Endpoints {
                transport: Transport::Tcp,
                source: "10.0.0.1:5000".parse().unwrap(),
                destination: "10.0.0.2:80".parse().unwrap(),
            };
            self.truth.on_packet(&Packet {
                number: self.number,
                time: Instant::from_nanos((at * 1e6) as u64),
                endpoints: match from {
                    Client => there,
                    Server => there.reversed(),
                },
                size: Bytes::new(payload + 40),
                payload: Bytes::new(payload),
                ecn: Ecn::NotCapable,
                tcp: Some(tcp),
            })
        }

        /// Bytes `sequence..sequence + payload` with ACK; `stamps` are value and echo.
        fn segment(
            &mut self,
            at: f64,
            from: Host,
            sequence: u32,
            payload: u64,
            ack: u32,
            stamps: (u32, u32),
        ) -> Option<TrueRtt> {
            let (own, other) = match from {
                Client => (CLIENT_ISN, SERVER_ISN),
                Server => (SERVER_ISN, CLIENT_ISN),
            };
            let tcp = Tcp {
                sequence: own.wrapping_add(sequence),
                acknowledgement: Some(other.wrapping_add(ack)),
                sacked: None,
                syn: false,
                fin: false,
                rst: false,
                timestamps: self.stamps.then_some(TcpTimestamps { value: stamps.0, echo: stamps.1 }),
            };
            self.packet(at, from, tcp, payload)
        }

        /// SYN at 0 ms, SYN-ACK at 30 ms, ACK at 40 ms.
        fn handshake(&mut self) -> Option<TrueRtt> {
            let syn = Tcp {
                sequence: CLIENT_ISN,
                acknowledgement: None,
                sacked: None,
                syn: true,
                fin: false,
                rst: false,
                timestamps: None,
            };
            assert_eq!(self.packet(0.0, Client, syn, 0), None);
            let answer =
                Tcp { sequence: SERVER_ISN, acknowledgement: Some(CLIENT_ISN.wrapping_add(1)), ..syn };
            let half = self.packet(30.0, Server, answer, 0).unwrap();
            assert_eq!((half.receiver_side, half.rtt()), (ms(30), None));
            self.segment(40.0, Client, 1, 0, 1, (40, 0))
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_handshake_gives_both_sides() {
        let shown = Script::new(false).handshake().unwrap();
        assert_eq!((shown.receiver_side, shown.sender_side), (ms(10), Some(ms(30))));
        assert_eq!(shown.rtt(), Some(ms(40)));
        assert_eq!(shown.flow.source.port(), 80, "what was acknowledged is the SYN of the server");
    }

    #[test]
    fn an_ack_times_the_newest_segment_that_it_ends_with() {
        let mut script = Script::new(false);
        script.handshake();
        assert_eq!(script.segment(50.0, Client, 1, 1000, 1, (0, 0)), None);
        assert_eq!(script.segment(60.0, Client, 1001, 1000, 1, (0, 0)), None);
        let shown = script.segment(85.0, Server, 1, 0, 2001, (0, 0)).unwrap();
        assert_eq!((shown.receiver_side, shown.rtt()), (ms(25), Some(ms(35))));
        assert_eq!(script.segment(86.0, Server, 1, 0, 2001, (0, 0)), None, "the same ACK again");
        script.segment(90.0, Client, 2001, 1000, 1, (0, 0));
        assert_eq!(script.segment(99.0, Server, 1, 0, 2500, (0, 0)), None, "within a segment");
    }

    #[test]
    fn after_a_retransmission_only_later_segments_are_timed() {
        let mut script = Script::new(false);
        script.handshake();
        script.segment(50.0, Client, 1, 1000, 1, (0, 0));
        script.segment(60.0, Client, 1001, 1000, 1, (0, 0));
        script.segment(300.0, Client, 1, 1000, 1, (0, 0));
        assert_eq!(script.segment(330.0, Server, 1, 0, 2001, (0, 0)), None);
        script.segment(340.0, Client, 2001, 1000, 1, (0, 0));
        assert_eq!(script.segment(371.0, Server, 1, 0, 3001, (0, 0)).unwrap().receiver_side, ms(31));
    }

    #[test]
    fn a_timestamp_times_a_retransmission() {
        let mut script = Script::new(true);
        script.handshake();
        script.segment(50.0, Client, 1, 1000, 1, (50, 1));
        script.segment(300.0, Client, 1, 1000, 1, (300, 1));
        let shown = script.segment(328.0, Server, 1, 0, 1001, (900, 300)).unwrap();
        assert_eq!((shown.receiver_side, shown.source), (ms(28), TruthSource::Timestamp));
    }

    #[test]
    fn the_senders_side_is_followed_while_it_has_more_to_send() {
        let mut script = Script::new(true);
        script.handshake();
        script.segment(50.0, Client, 1, 1000, 1, (50, 1));
        script.segment(51.0, Client, 1001, 1000, 1, (51, 1));
        let first = script.segment(80.0, Server, 1, 0, 1001, (900, 50)).unwrap();
        assert_eq!(first.sender_side, Some(ms(10)), "the handshake's");
        script.segment(95.0, Client, 2001, 1000, 1, (94, 900));
        let second = script.segment(124.0, Server, 1, 0, 3001, (944, 94)).unwrap();
        assert_eq!(second.sender_side, Some(ms(15)));
        // A shorter segment was the last that it had; the next one waits for the application.
        script.segment(130.0, Client, 3001, 200, 1, (130, 944));
        script.segment(160.0, Server, 1, 0, 3201, (980, 130));
        script.segment(2000.0, Client, 3201, 1000, 1, (2000, 980));
        let third = script.segment(2031.0, Server, 1, 0, 4201, (2850, 2000)).unwrap();
        assert!(third.sender_side.unwrap() < ms(20), "{third:?}");
    }

    #[test]
    fn the_same_ports_may_be_used_again() {
        let mut script = Script::new(false);
        script.handshake();
        script.segment(50.0, Client, 1, 1000, 1, (0, 0));
        let syn = Tcp {
            sequence: 77,
            acknowledgement: None,
            sacked: None,
            syn: true,
            fin: false,
            rst: false,
            timestamps: None,
        };
        script.packet(90_000.0, Client, syn, 0);
        let answer = Tcp { sequence: 99, acknowledgement: Some(78), ..syn };
        let shown = script.packet(90_030.0, Server, answer, 0).unwrap();
        assert_eq!((shown.receiver_side, shown.sender_side), (ms(30), None));
    }

    #[test]
    fn memory_is_bounded_by_the_number_of_connections() {
        let mut truth = Truth::new(3);
        let mut syn = |port: u16, seconds: u64| {
            let endpoints = Endpoints {
                transport: Transport::Tcp,
                source: format!("10.0.0.1:{port}").parse().unwrap(),
                destination: "10.0.0.2:80".parse().unwrap(),
            };
            let tcp = Tcp {
                sequence: 1,
                acknowledgement: None,
                sacked: None,
                syn: true,
                fin: false,
                rst: false,
                timestamps: None,
            };
            truth.on_packet(&Packet {
                number: 1,
                time: Instant::from_nanos(seconds * 1_000_000_000),
                endpoints,
                size: Bytes::new(40),
                payload: Bytes::ZERO,
                ecn: Ecn::NotCapable,
                tcp: Some(tcp),
            });
            (truth.connections.len(), truth.not_followed())
        };
        assert_eq!([syn(1, 0), syn(2, 1), syn(3, 2), syn(4, 3)][3], (3, 1));
        // The first two have been silent for a minute.
        assert_eq!(syn(5, 61), (2, 1));
    }
}
