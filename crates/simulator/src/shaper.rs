//! Links whose rate a controller chooses from the packets that pass their far end in both directions.

use std::collections::VecDeque;

use suimon_algorithms::Probe;
use suimon_algorithms::estimate::round_trips::{Backward, Forward, RoundTrips};
use suimon_algorithms::queue::FlowId;
use suimon_algorithms::shaper::{Observed, RateController};
use suimon_model::{Capacity, Scenario};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::events::{Event, EventQueue};
use crate::packet::{Frame, Packet, PacketKind, Sack, ticks};

/// The controller of one link.
#[derive(Debug)]
pub(crate) struct Shaper {
    /// The index of the link.
    pub(crate) link: u32,
    controller: Box<dyn RateController>,
    trips: RoundTrips,
    /// Datagrams that wait for their echo: when they were sent, and when they passed.
    probes: VecDeque<(Instant, Instant)>,
    probe_rtt: Option<Duration>,
    before: Instant,
}

impl Shaper {
    /// The shapers of a scenario, in the order of its links.
    pub(crate) fn all(scenario: &Scenario, events: &mut EventQueue) -> Vec<Self> {
        let specs = scenario.links.iter().enumerate().filter_map(|(link, spec)| match &spec.capacity {
            Capacity::Shaped(shaper) => Some((link as u32, shaper.build_shaper())),
            _ => None,
        });
        let shaper = |(index, (link, controller)): (usize, (u32, Box<dyn RateController>))| {
            events.schedule(Instant::ZERO + controller.interval(), Event::Shaper, index as u32);
            Self {
                link,
                controller,
                trips: RoundTrips::new(PLACES),
                probes: VecDeque::new(),
                probe_rtt: None,
                before: Instant::ZERO,
            }
        };
        specs.enumerate().map(shaper).collect()
    }

    /// A packet has left the link.
    pub(crate) fn on_forward(&mut self, now: Instant, frame: &Frame, packet: &Packet) {
        if packet.kind == PacketKind::Datagram {
            if self.probes.len() == MOST_PROBES {
                self.probes.pop_front();
            }
            self.probes.push_back((packet.ts_val, now));
        }
        match forward(now, frame, packet) {
            Some(packet) => self.trips.on_forward(&packet),
            None => self.trips.on_other(Bytes::new(u64::from(frame.size))),
        }
    }

    /// A packet has come back beside the link.
    pub(crate) fn on_backward(&mut self, now: Instant, frame: &Frame, packet: &Packet, sack: &Sack) {
        if packet.kind == PacketKind::Echo {
            let passed = self.probes.iter().find(|(sent, _)| *sent == packet.ts_val);
            self.probe_rtt = passed.map(|(_, at)| now.saturating_since(*at)).or(self.probe_rtt);
        }
        if let Some(packet) = backward(now, frame, packet, sack) {
            self.trips.on_backward(&packet);
        }
    }

    /// The rate from now on, and when to ask again.
    pub(crate) fn next(&mut self, now: Instant) -> (Rate, Instant) {
        let passed = self.trips.take(now);
        let rate = self.controller.on_interval(&Observed {
            now,
            elapsed: now.saturating_since(std::mem::replace(&mut self.before, now)),
            sent: passed.sent,
            delivered: passed.delivered,
            in_flight: passed.in_flight,
            unacknowledged: passed.unacknowledged,
            base_rtt: passed.base_rtt,
            rtt: passed.rtt,
            probe_rtt: self.probe_rtt.take(),
        });
        (rate, now + self.controller.interval())
    }

    /// Tells the inner values of the controller.
    pub(crate) fn probe(&self, out: &mut dyn Probe) {
        self.controller.probe(out);
    }
}

/// A packet in the direction of a connection's data, as an estimator sees it.
pub(crate) fn forward(now: Instant, frame: &Frame, packet: &Packet) -> Option<Forward> {
    let opens_connection = packet.kind == PacketKind::Syn;
    matches!(packet.kind, PacketKind::Syn | PacketKind::Data).then(|| Forward {
        now,
        flow: FlowId(frame.flow),
        size: Bytes::new(u64::from(frame.size)),
        // Payload counts from zero.
        seq: if opens_connection { u32::MAX } else { packet.seq as u32 },
        payload: packet.payload(),
        opens_connection,
        resets: false,
        ts_ecr: Some(ticks(packet.ts_ecr)),
    })
}

/// An answer, as an estimator sees it.
pub(crate) fn backward(now: Instant, frame: &Frame, packet: &Packet, sack: &Sack) -> Option<Backward> {
    matches!(packet.kind, PacketKind::SynAck | PacketKind::Ack).then(|| Backward {
        now,
        flow: FlowId(frame.flow),
        ack: packet.seq as u32,
        sacked: sack.ranges(packet.seq).map(|(_, end)| end as u32).max(),
        resets: false,
        ts_val: Some(ticks(packet.ts_val)),
    })
}

/// Connections that a shaper follows.
const PLACES: usize = 1_024;
/// Probes that may be under way.
const MOST_PROBES: usize = 1_024;
