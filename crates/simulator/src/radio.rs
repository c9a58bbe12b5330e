//! Radios that links share: cells and media of the `radio` crate, driven by the simulator's events.

use std::collections::BTreeMap;

use suimon_algorithms::queue::Dropped;
use suimon_model::Scenario;
use suimon_radio::{PortId, Ports, Radio};
use suimon_units::{Bytes, Instant};

use crate::events::{Event, EventQueue};
use crate::link::{Context, Link};
use crate::packet::Frame;

/// Every radio of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Radios {
    radios: Vec<Shared>,
    /// The radio and its port that serve a link, by the link's index.
    ports: BTreeMap<u32, (u32, PortId)>,
    /// Frames that links dropped or gave up, until the world accounts for them.
    pub(crate) dropped: Vec<(u32, Dropped<Frame>)>,
}

#[derive(Debug)]
struct Shared {
    radio: Box<dyn Radio>,
    /// The link that each port serves.
    links: Vec<u32>,
    /// The time of the next event that counts; others are stale.
    next: Instant,
}

impl Radios {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut radios = Self::default();
        for (radio, links) in suimon_model::radios(&scenario.links, scenario.seed) {
            radios.add(radio, links.into_iter().map(|link| link as u32).collect());
        }
        radios
    }

    fn add(&mut self, radio: Box<dyn Radio>, links: Vec<u32>) {
        for (port, link) in links.iter().enumerate() {
            self.ports.insert(*link, (self.radios.len() as u32, PortId(port)));
        }
        self.radios.push(Shared { radio, links, next: Instant::MAX });
    }

    /// A packet has come to wait at a link.
    pub(crate) fn on_waiting(&mut self, now: Instant, link: u32, events: &mut EventQueue) {
        let (index, port) = self.ports[&link];
        let shared = &mut self.radios[index as usize];
        shared.radio.on_waiting(now, port);
        shared.expect_next(index, events);
    }

    /// A radio asked to be called.
    pub(crate) fn on_event(&mut self, now: Instant, index: u32, links: &mut [Link], context: &mut Context) {
        let shared = &mut self.radios[index as usize];
        if shared.next != now {
            return;
        }
        let mut served = Served { ports: &shared.links, links, context, dropped: &mut self.dropped };
        shared.radio.on_event(now, &mut served);
        shared.next = Instant::MAX;
        shared.expect_next(index, &mut context.events);
    }
}

impl Shared {
    /// Keeps the radio's next event scheduled.
    fn expect_next(&mut self, index: u32, events: &mut EventQueue) {
        let next = self.radio.next_event().unwrap_or(Instant::MAX);
        if next != self.next && next != Instant::MAX {
            events.schedule(next, Event::Radio, index);
        }
        self.next = next;
    }
}

/// The links of one radio as its ports.
struct Served<'a> {
    ports: &'a [u32],
    links: &'a mut [Link],
    context: &'a mut Context,
    dropped: &'a mut Vec<(u32, Dropped<Frame>)>,
}

impl Served<'_> {
    /// Acts at the link of `port` and keeps the frames that it dropped.
    fn at<T>(&mut self, port: PortId, act: impl FnOnce(&mut Link, &mut Context) -> T) -> T {
        let index = self.ports[port.0];
        let result = act(&mut self.links[index as usize], self.context);
        self.dropped.extend(self.context.dropped.drain(..).map(|dropped| (index, dropped)));
        result
    }
}

impl Ports for Served<'_> {
    fn is_waiting(&self, port: PortId) -> bool {
        self.links[self.ports[port.0] as usize].is_waiting()
    }

    fn take(&mut self, now: Instant, port: PortId) -> Option<Bytes> {
        self.at(port, |link, context| link.hand_over(now, context))
    }

    fn deliver(&mut self, at: Instant, port: PortId) {
        self.at(port, |link, context| link.carried(at, context));
    }

    fn give_up(&mut self, now: Instant, port: PortId) {
        self.at(port, |link, context| link.not_carried(now, context));
    }
}
