//! Radios that serve the directions of a link, driven by real time.

use suimon_algorithms::RandomStream;
use suimon_model::{Capacity, Link};
use suimon_radio::{PortId, Ports, Radio, hsdpa, wlan};
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
    /// Those of the directions `links`: a cell of its own for a terminal, one medium for both where both name it.
    pub(crate) fn new(links: &[Link; 2], seed: u64) -> Self {
        let mut radios = Vec::new();
        let mut media = Vec::new();
        for (direction, link) in links.iter().enumerate() {
            match &link.capacity {
                Capacity::Hsdpa(terminal) => {
                    let users = std::slice::from_ref(&terminal.user);
                    let mut random =
                        |_, what: &str| RandomStream::new(seed, &format!("link {} {what}", link.name));
                    let cell = hsdpa::Cell::new(hsdpa::Policy::RoundRobin, users, &mut random);
                    radios.push(Serving { radio: Box::new(cell), directions: vec![direction] });
                }
                Capacity::Wifi(medium) => media.push((direction, link, medium)),
                _ => {}
            }
        }
        while let Some((direction, link, medium)) = media.pop() {
            let mut alone = wlan::Medium::new(medium.parameters.clone());
            let mut directions = Vec::new();
            let mut add = |direction, link: &Link| {
                let stream = format!("medium {} station {}", medium.name, link.from);
                alone.add_station(1, RandomStream::new(seed, &stream));
                directions.push(direction);
            };
            add(direction, link);
            if let Some((other, its_link, _)) = media.pop_if(|(_, _, other)| other.name == medium.name) {
                add(other, its_link);
            }
            radios.push(Serving { radio: Box::new(alone), directions });
        }
        Self(radios)
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

    /// Does what was due by `now`, each at its time.
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
