//! Radios that serve the directions of a link, driven by real time.

use suimon_model::{Link, radios};
use suimon_radio::{PortId, Ports, Radio};
use suimon_units::{Bytes, Instant};

use crate::direction::Direction;

/// The radios of one link.
#[derive(Debug, Default)]
pub(crate) struct Radios(Vec<Serving>);

#[derive(Debug)]
struct Serving {
    radio: Box<dyn Radio>,
    /// The direction that each port serves.
    directions: Vec<usize>,
}

impl Radios {
    /// The radios of the directions `links`.
    pub(crate) fn new(links: &[Link; 2], seed: u64) -> Self {
        let serving = |(radio, directions)| Serving { radio, directions };
        Self(radios(links, seed).into_iter().map(serving).collect())
    }

    /// A packet has come to wait in `direction`.
    pub(crate) fn on_waiting(&mut self, now: Instant, direction: usize) {
        for serving in &mut self.0 {
            if let Some(port) = serving.directions.iter().position(|served| *served == direction) {
                serving.radio.on_waiting(now, PortId(port));
            }
        }
    }

    pub(crate) fn next_event(&self) -> Instant {
        let next = self.0.iter().filter_map(|serving| serving.radio.next_event()).min();
        next.unwrap_or(Instant::MAX)
    }

    /// Does everything that was due by `now`, each at its time.
    pub(crate) fn proceed(&mut self, now: Instant, directions: &mut [Direction; 2]) {
        for Serving { radio, directions: served } in &mut self.0 {
            while let Some(due) = radio.next_event().filter(|due| *due <= now) {
                radio.on_event(due, &mut Served { served, directions });
            }
        }
    }
}

struct Served<'a> {
    served: &'a [usize],
    directions: &'a mut [Direction; 2],
}

impl Ports for Served<'_> {
    fn is_waiting(&self, port: PortId) -> bool {
        self.directions[self.served[port.0]].is_waiting()
    }

    fn take(&mut self, now: Instant, port: PortId) -> Option<Bytes> {
        self.directions[self.served[port.0]].hand_over(now)
    }

    fn deliver(&mut self, at: Instant, port: PortId) {
        self.directions[self.served[port.0]].carried(at);
    }

    fn give_up(&mut self, at: Instant, port: PortId) {
        self.directions[self.served[port.0]].not_carried(at);
    }
}
