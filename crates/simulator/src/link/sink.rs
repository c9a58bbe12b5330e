//! The destination of a link's packets, with its counts.

use suimon_algorithms::queue::{Backlog, Dropped};
use suimon_link::{Observer, Service};
use suimon_units::{Duration, Instant};

use super::Context;
use super::line::Line;
use super::meter::Meter;
use crate::packet::Frame;

/// The parts that a link acts upon as it sends.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    pub(super) meter: &'a mut Option<Box<Meter>>,
    /// Packets between transmission and arrival.
    pub(super) in_flight: &'a mut Line,
    pub(super) context: &'a mut Context,
}

impl Sink<'_> {
    /// Takes a packet to where it matters next, from the far end, which it reaches at the time it bears.
    #[inline(always)]
    pub(super) fn travel(&mut self, frame: &mut Frame) {
        let Context { events, routes, .. } = &mut *self.context;
        frame.hop += 1;
        match routes.pass_wires(events.now(), frame).0 {
            None => self.in_flight.push(*frame, events),
            Some(line) => routes.lines[line as usize].push(*frame, events),
        }
    }
}

impl Observer<Frame> for Sink<'_> {
    #[inline(always)]
    fn on_sent(&mut self, frame: &Frame, _: Service, waited: Duration, newly_marked: bool) {
        if let Some(meter) = self.meter {
            meter.statistics.on_sent(frame.size, waited, newly_marked);
        }
    }

    #[inline(always)]
    fn on_backlog(&mut self, now: Instant, backlog: Backlog) {
        if let Some(meter) = self.meter {
            meter.statistics.on_backlog(now, backlog);
        }
    }

    #[inline(always)]
    fn dropped(&mut self) -> &mut Vec<Dropped<Frame>> {
        &mut self.context.dropped
    }

    #[inline(always)]
    fn on_departure(&mut self, mut frame: Frame) {
        self.travel(&mut frame);
    }
}
