//! Round-trip times and bytes in flight of TCP, at a point that the packets of both directions pass.
//!
//! Data that passes and the acknowledgement that covers it are one round-trip time apart, from this point to the
//! receiver and back: sequence numbers tell it without timestamps, and SACK blocks where packets were lost (RFC 2018).
//! With timestamps (RFC 7323) the way from here to the sender and back is known too: an acknowledgement's TSval comes
//! back as the TSecr of the data that it let go, as in pping (Nichols: Listening to Networks, 2017). Without them, the
//! handshake tells it once. Delayed acknowledgements harm neither: the packet whose arrival made the receiver answer is
//! the last one that the answer covers.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;

use suimon_units::{Bytes, Duration, Instant};

use crate::queue::FlowId;

/// A packet of a connection in the direction of its data.
#[derive(Debug, Clone, Copy)]
pub struct Forward {
    /// When it passes.
    pub now: Instant,
    /// The connection.
    pub flow: FlowId,
    /// Its size, from the IP header on.
    pub size: Bytes,
    /// The sequence number of its first byte of payload.
    pub seq: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Opens the connection: a SYN without ACK.
    pub opens_connection: bool,
    /// Ends the connection at once: an RST.
    pub resets: bool,
    /// TSecr, where it has timestamps (RFC 7323).
    pub ts_ecr: Option<u32>,
}

/// A packet that answers.
#[derive(Debug, Clone, Copy)]
pub struct Backward {
    /// When it passes.
    pub now: Instant,
    /// The connection.
    pub flow: FlowId,
    /// The cumulative acknowledgement.
    pub ack: u32,
    /// The end of the last byte that its SACK blocks name.
    pub sacked: Option<u32>,
    /// Ends the connection at once: an RST.
    pub resets: bool,
    /// TSval, where it has timestamps.
    pub ts_val: Option<u32>,
}

/// What passed since the last time that somebody asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Passed {
    /// Bytes of packets forward.
    pub sent: Bytes,
    /// Bytes of packets that receivers acknowledged; packets without payload count as they pass.
    pub delivered: Bytes,
    /// Bytes of packets that passed and are not acknowledged.
    pub in_flight: Bytes,
    /// Bytes that receivers may hold back to acknowledge them with the next: a segment for each flow.
    pub unacknowledged: Bytes,
    /// The shortest round-trip times to receivers, weighted by the bytes of their flows.
    pub base_rtt: Option<Duration>,
    /// The latest round-trip times of the flows that were at work, weighted in the same way; that of data without an
    /// answer is its age at least.
    pub rtt: Option<Duration>,
    /// Flows with data in flight.
    pub flows: u32,
}

/// Follows as many connections as it has places.
#[derive(Debug, Clone)]
pub struct RoundTrips {
    places: Box<[Option<Flow>]>,
    passed: Passed,
    /// Bytes of all packets with payload, and of the payload.
    sizes: (u64, u64),
}

#[derive(Debug, Clone)]
struct Flow {
    id: FlowId,
    last: Instant,
    /// The end of the last byte that passed, and of the last one that was acknowledged.
    high: u32,
    edge: u32,
    segment: u32,
    /// When some of the bytes in flight passed: the ends of their packets.
    marks: VecDeque<(u32, Instant)>,
    far: Half,
    near: Half,
    /// When an answer with this TSval passed, which no packet has echoed yet.
    answered: Option<(u32, Instant)>,
    /// Acknowledged bytes, of which those of each interval count half as much as those of the next.
    weight: f64,
    recent: u64,
}

/// Round-trip times between here and one end.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    latest: Option<Duration>,
    shortest: Option<Duration>,
}

impl Half {
    fn measure(&mut self, rtt: Duration) {
        self.latest = Some(rtt);
        self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
    }
}

/// Whether `a` comes before `b` (RFC 9293 §3.4).
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Flow {
    fn new(packet: &Forward) -> Self {
        Self {
            id: packet.flow,
            last: packet.now,
            high: packet.seq,
            edge: packet.seq,
            segment: 0,
            marks: VecDeque::new(),
            far: Half::default(),
            near: Half::default(),
            answered: None,
            weight: 0.0,
            recent: 0,
        }
    }

    fn in_flight(&self) -> u32 {
        self.high.wrapping_sub(self.edge)
    }

    fn on_forward(&mut self, packet: &Forward) {
        self.last = packet.now;
        if let Some((ts_val, at)) = self.answered
            && packet.ts_ecr.is_none_or(|ts_ecr| !before(ts_ecr, ts_val))
        {
            // Without timestamps only the handshake's answer is waited for. A later echo tells that this answer let no
            // packet go.
            if packet.ts_ecr.is_none_or(|ts_ecr| ts_ecr == ts_val) {
                self.near.measure(packet.now.saturating_since(at));
            }
            self.answered = None;
        }
        if packet.opens_connection {
            // Its SYN takes one sequence number (RFC 9293 §3.4).
            *self = Self { high: packet.seq.wrapping_add(1), ..Self::new(packet) };
            self.marks.push_back((self.high, packet.now));
            return;
        }
        if packet.resets {
            return self.end();
        }
        if packet.payload == 0 {
            return;
        }
        self.segment = self.segment.max(packet.payload);
        let end = packet.seq.wrapping_add(packet.payload);
        if before(self.high, end) {
            self.high = end;
            if self.marks.len() < MARKS {
                self.marks.push_back((end, packet.now));
            }
        } else if before(self.edge, end) {
            // Which of the two is acknowledged is not known (Karn and Partridge 1987).
            self.marks.clear();
        }
    }

    /// Gives the round-trip time to the receiver.
    fn on_backward(&mut self, packet: &Backward) -> Option<Duration> {
        if packet.resets {
            self.end();
            return None;
        }
        let is_first = self.far.shortest.is_none();
        let wants_echo = packet.ts_val.is_some() && self.answered.is_none() || is_first;
        if wants_echo {
            self.answered = Some((packet.ts_val.unwrap_or_default(), packet.now));
        }
        let edge = match packet.sacked {
            Some(sacked) if before(packet.ack, sacked) => sacked,
            _ => packet.ack,
        };
        // What ends a connection takes a number too, and data may have passed before anybody looked.
        let edge = if before(self.high, edge) { self.high } else { edge };
        if !before(self.edge, edge) {
            return None;
        }
        self.recent += u64::from(edge.wrapping_sub(self.edge));
        self.edge = edge;
        let mut covered = None;
        while let Some((_, at)) = self.marks.front().filter(|(end, _)| !before(edge, *end)) {
            covered = Some(*at);
            self.marks.pop_front();
        }
        let rtt = packet.now.saturating_since(covered?);
        self.far.measure(rtt);
        Some(rtt)
    }

    /// Nobody will acknowledge what is in flight.
    fn end(&mut self) {
        self.edge = self.high;
        self.marks.clear();
    }

    /// How long the oldest data has been without an answer. A receiver may keep a single segment's back.
    fn age(&self, now: Instant) -> Duration {
        let oldest = self.marks.front().filter(|_| self.in_flight() > self.segment);
        oldest.map_or(Duration::ZERO, |(_, at)| now.saturating_since(*at))
    }

    /// Whether another flow may take its place.
    fn is_over(&self, now: Instant) -> bool {
        let silent = now.saturating_since(self.last);
        silent > FORGOTTEN || (self.in_flight() == 0 && silent > PATIENCE)
    }
}

/// A mean of times.
#[derive(Debug, Default)]
struct Weighted {
    weights: f64,
    sum: f64,
}

impl Weighted {
    fn add(&mut self, weight: f64, time: Duration) {
        self.weights += weight;
        self.sum += weight * time.as_secs_f64();
    }

    fn mean(&self) -> Option<Duration> {
        (self.weights > 0.0).then(|| Duration::from_secs_f64(self.sum / self.weights))
    }
}

impl RoundTrips {
    /// Follows at most so many connections, one at least.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self { places: vec![None; places.max(1)].into(), passed: Passed::default(), sizes: (0, 0) }
    }

    fn place(&self, flow: FlowId) -> usize {
        // Fibonacci hashing (Knuth: The Art of Computer Programming, volume 3, section 6.4).
        let hash = u64::from(flow.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (hash as usize) % self.places.len()
    }

    /// A packet that nobody acknowledges visibly passes forward.
    pub fn on_other(&mut self, size: Bytes) {
        self.passed.sent += size;
        self.passed.delivered += size;
    }

    /// A packet passes forward.
    pub fn on_forward(&mut self, packet: &Forward) {
        let place = self.place(packet.flow);
        let slot = &mut self.places[place];
        if slot.as_ref().is_none_or(|flow| flow.id != packet.flow && flow.is_over(packet.now)) {
            *slot = (packet.payload > 0 || packet.opens_connection).then(|| Flow::new(packet));
        }
        match slot.as_mut().filter(|flow| flow.id == packet.flow) {
            Some(flow) => {
                flow.on_forward(packet);
                self.passed.sent += packet.size;
                if packet.payload == 0 {
                    self.passed.delivered += packet.size;
                } else {
                    self.sizes.0 += packet.size.get();
                    self.sizes.1 += u64::from(packet.payload);
                }
            }
            None => self.on_other(packet.size),
        }
    }

    /// A packet passes backward. Gives the round-trip time from here to the receiver, where it tells one.
    pub fn on_backward(&mut self, packet: &Backward) -> Option<Duration> {
        let place = self.place(packet.flow);
        let flow = self.places[place].as_mut().filter(|flow| flow.id == packet.flow)?;
        flow.on_backward(packet)
    }

    /// The latest round-trip time between the ends of `flow`; `None` before both halves are known.
    #[must_use]
    pub fn between_ends(&self, flow: FlowId) -> Option<Duration> {
        let flow = self.places[self.place(flow)].as_ref().filter(|known| known.id == flow)?;
        Some(flow.far.latest? + flow.near.latest?)
    }

    /// What passed since the last time that this was asked.
    pub fn take(&mut self, now: Instant) -> Passed {
        let mut passed = core::mem::take(&mut self.passed);
        let (mut in_flight, mut held, mut delivered) = (0, 0, 0);
        let (mut base, mut latest) = (Weighted::default(), Weighted::default());
        for flow in self.places.iter_mut().flatten() {
            let recent = core::mem::take(&mut flow.recent);
            delivered += recent;
            flow.weight = flow.weight / 2.0 + recent as f64;
            if now.saturating_since(flow.last) > FORGOTTEN {
                continue;
            }
            if flow.in_flight() > 0 {
                in_flight += u64::from(flow.in_flight());
                held += u64::from(flow.in_flight().min(flow.segment));
                passed.flows += 1;
            }
            // A flow of which nothing arrives for now still has its part in what waits.
            let weight = flow.weight.max(f64::from(flow.in_flight()) / 1e3);
            if let (Some(shortest), Some(last)) = (flow.far.shortest, flow.far.latest) {
                base.add(weight, shortest);
                if recent > 0 || flow.in_flight() > 0 {
                    latest.add(weight, last.max(flow.age(now)));
                }
            }
        }
        let (size, payload) = (self.sizes.0.max(1), self.sizes.1.max(1));
        let whole = |bytes: u64| Bytes::new((bytes as f64 * size as f64 / payload as f64) as u64);
        passed.delivered += whole(delivered);
        passed.in_flight = whole(in_flight);
        passed.unacknowledged = whole(held);
        (passed.base_rtt, passed.rtt) = (base.mean(), latest.mean());
        passed
    }
}

/// Marks of one flow: those in flight at a time tell no more than so many.
const MARKS: usize = 64;
/// After so long a flow that has nothing in flight leaves its place to another.
const PATIENCE: Duration = Duration::from_secs(1);
/// After so long any flow does, and what it had in flight is lost: a sender that is there sends again after one and two
/// seconds more at the latest (RFC 6298 §2, §5).
const FORGOTTEN: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    const FLOW: FlowId = FlowId(7);

    fn forward(at: f64, seq: u32, payload: u32) -> Forward {
        Forward {
            now: Instant::ZERO + ms(at),
            flow: FLOW,
            size: Bytes::new(u64::from(payload) + 52),
            seq,
            payload,
            opens_connection: false,
            resets: false,
            ts_ecr: None,
        }
    }

    fn backward(at: f64, ack: u32) -> Backward {
        Backward { now: Instant::ZERO + ms(at), flow: FLOW, ack, sacked: None, resets: false, ts_val: None }
    }

    #[test]
    fn an_acknowledgement_tells_the_time_since_the_last_byte_that_it_covers() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 1_000, 1_000));
        trips.on_forward(&forward(3.0, 2_000, 1_000));
        assert_eq!(
            trips.on_backward(&backward(50.0, 3_000)),
            Some(ms(47.0)),
            "the second packet released it"
        );
        assert_eq!(trips.on_backward(&backward(51.0, 3_000)), None);
    }

    #[test]
    fn sequence_numbers_wrap_around() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, u32::MAX - 499, 1_000));
        assert_eq!(trips.on_backward(&backward(40.0, 500)), Some(ms(40.0)));
        assert_eq!(trips.take(Instant::ZERO).in_flight, Bytes::ZERO);
    }

    #[test]
    fn a_packet_that_was_sent_again_tells_nothing() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_forward(&forward(300.0, 0, 1_000));
        assert_eq!(trips.on_backward(&backward(340.0, 1_000)), None);
    }

    #[test]
    fn a_hole_does_not_hide_what_has_arrived_behind_it() {
        let mut trips = RoundTrips::new(16);
        (0..4).for_each(|packet| trips.on_forward(&forward(f64::from(packet), packet * 1_000, 1_000)));
        let selective = Backward { sacked: Some(4_000), ..backward(43.0, 1_000) };
        assert_eq!(trips.on_backward(&selective), Some(ms(40.0)));
        assert_eq!(trips.take(Instant::ZERO).in_flight, Bytes::ZERO, "the hole itself is small and unknown");
    }

    #[test]
    fn timestamps_tell_the_other_half() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_backward(&Backward { ts_val: Some(77), ..backward(40.0, 1_000) });
        trips.on_forward(&Forward { ts_ecr: Some(70), ..forward(41.0, 1_000, 1_000) });
        assert_eq!(trips.between_ends(FLOW), None, "that was sent before the answer came");
        trips.on_forward(&Forward { ts_ecr: Some(77), ..forward(52.0, 2_000, 1_000) });
        assert_eq!(trips.between_ends(FLOW), Some(ms(52.0)));
    }

    #[test]
    fn without_timestamps_the_handshake_tells_it() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&Forward { opens_connection: true, ..forward(0.0, 99, 0) });
        assert_eq!(trips.on_backward(&backward(40.0, 100)), Some(ms(40.0)));
        trips.on_forward(&forward(52.0, 100, 1_000));
        trips.on_backward(&backward(100.0, 1_100));
        assert_eq!(trips.between_ends(FLOW), Some(ms(60.0)), "48 ms there, 12 ms here");
    }

    #[test]
    fn what_ends_a_connection_leaves_nothing_in_flight() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_backward(&backward(40.0, 1_001));
        assert_eq!(trips.take(Instant::ZERO).in_flight, Bytes::ZERO);
    }

    #[test]
    fn a_reset_leaves_nothing_in_flight_and_neither_does_a_sender_that_is_gone() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_backward(&Backward { resets: true, ..backward(40.0, 0) });
        assert_eq!(trips.take(Instant::ZERO).in_flight, Bytes::ZERO);
        trips.on_forward(&forward(50.0, 1_000, 1_000));
        assert_eq!(trips.take(Instant::ZERO + ms(3_000.0)).in_flight, Bytes::new(1_052));
        assert_eq!(trips.take(Instant::ZERO + ms(5_000.0)).in_flight, Bytes::ZERO);
    }

    #[test]
    fn data_without_an_answer_shows_its_age() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_backward(&backward(40.0, 1_000));
        trips.on_forward(&forward(100.0, 1_000, 1_000));
        assert_eq!(trips.take(Instant::ZERO + ms(300.0)).rtt, Some(ms(40.0)), "one segment may be held back");
        trips.on_forward(&forward(300.0, 2_000, 1_000));
        assert_eq!(trips.take(Instant::ZERO + ms(400.0)).rtt, Some(ms(300.0)));
        trips.on_backward(&backward(410.0, 3_000));
        trips.take(Instant::ZERO + ms(420.0));
        assert_eq!(trips.take(Instant::ZERO + ms(440.0)).rtt, None, "it is not at work");
    }

    #[test]
    fn bytes_count_with_their_headers_and_those_without_answers_at_once() {
        let mut trips = RoundTrips::new(16);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_forward(&forward(0.0, 1_000, 1_000));
        trips.on_other(Bytes::new(200));
        trips.on_backward(&backward(40.0, 1_000));
        let passed = trips.take(Instant::ZERO + ms(40.0));
        assert_eq!((passed.sent, passed.delivered), (Bytes::new(2_304), Bytes::new(1_252)));
        assert_eq!((passed.in_flight, passed.flows), (Bytes::new(1_052), 1));
        assert_eq!((passed.base_rtt, passed.rtt), (Some(ms(40.0)), Some(ms(40.0))));
        assert_eq!(trips.take(Instant::ZERO + ms(60.0)).delivered, Bytes::ZERO);
    }

    #[test]
    fn a_flow_keeps_its_place_while_it_has_something_in_flight() {
        let mut trips = RoundTrips::new(1);
        trips.on_forward(&forward(0.0, 0, 1_000));
        trips.on_forward(&Forward { flow: FlowId(8), ..forward(2_000.0, 0, 500) });
        assert_eq!(trips.take(Instant::ZERO).delivered, Bytes::new(552), "the other is not followed");
        trips.on_backward(&backward(2_001.0, 1_000));
        trips.on_forward(&Forward { flow: FlowId(8), ..forward(4_000.0, 500, 500) });
        assert_eq!(
            trips.on_backward(&Backward { flow: FlowId(8), ..backward(4_030.0, 1_000) }),
            Some(ms(30.0))
        );
    }
}
