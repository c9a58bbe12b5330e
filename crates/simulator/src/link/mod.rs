//! A unidirectional link as the simulator drives it.
//!
//! A [`Port`] is the whole of a link. Two shortcuts give the same results with less work, where a link allows them: a
//! [`Wire`] has no queue, and [`Precomputed`] departures need no queue of packets. A property test holds both to the port,
//! packet by packet.

pub(crate) mod line;
pub(crate) mod meter;
mod precomputed;
mod sink;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use suimon_algorithms::Probe;
use suimon_algorithms::queue::{Dropped, Ecn};
use suimon_algorithms::registry::Queue;
use suimon_link::{Port, Transmitter, queue_of};
use suimon_model::{self as model, Capacity};
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::line::Line;
use self::meter::Meter;
use self::precomputed::Precomputed;
use self::sink::Sink;
use self::wire::Wire;
use crate::events::{Event, EventQueue};
use crate::packet::Frame;
use crate::pieces::Pieces;
use crate::routes::Routes;
use crate::watch::Watch;

/// A link.
#[derive(Debug)]
pub(crate) struct Link {
    index: u32,
    /// Packets that are known to come, by the time at which they do.
    coming: Pieces<Frame>,
    kind: Kind,
    /// The statistics, where results show the link; a wire has its own.
    meter: Option<Box<Meter>>,
    /// Packets between transmission and arrival.
    in_flight: Line,
    /// The shortest time until an event here matters elsewhere.
    leeway: Duration,
    /// The time of the next [`Event::LinkService`] that counts.
    service_due: Instant,
    /// A controller changes the rate.
    is_shaped: bool,
    pub(crate) watch: Option<Box<Watch>>,
}

/// The way in which a link sends its packets.
#[derive(Debug)]
enum Kind {
    Wire(Wire),
    Precomputed(Precomputed),
    Port(Port<Frame>),
}

impl Kind {
    /// The one that takes least work for `link`.
    fn of(link: &model::Link, seed: u64) -> Self {
        if Wire::serves(link) {
            return Self::Wire(Wire::new(link));
        }
        let transmitter = Transmitter::new(link, seed);
        let queue = queue_of(link, seed);
        // A packet that is lost after transmission has to be told in time, not when it joins the queue.
        let in_time = !link.impairments.lose_nothing()
            || transmitter.is_radio()
            || matches!(link.capacity, Capacity::Shaped(_))
            || queue.capabilities().marks_departures;
        match queue {
            Queue::Policy(policy) if !in_time => {
                Self::Precomputed(Precomputed::new(transmitter, policy, link.buffer))
            }
            queue => Self::Port(Port::with_queue(transmitter, queue.into_discipline())),
        }
    }
}

/// The parts of the world that a link acts upon.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) events: EventQueue,
    pub(crate) routes: Routes,
    /// Packets that are no more.
    pub(crate) dropped: Vec<Dropped<Frame>>,
}

impl Link {
    /// A link whose packets take at least `onward` over the wires behind it.
    pub(crate) fn new(index: u32, link: &model::Link, seed: u64, onward: Duration) -> Self {
        Self {
            index,
            coming: Pieces::default(),
            kind: Kind::of(link, seed),
            meter: link.reported.then(|| Box::new(Meter::new(link))),
            in_flight: Line::new(Event::LinkArrival, index),
            // A radio looks when it wants.
            leeway: if link.capacity.is_radio() { Duration::ZERO } else { link.delay + onward },
            service_due: Instant::MAX,
            is_shaped: matches!(link.capacity, Capacity::Shaped(_)),
            watch: Watch::of(link, seed).map(Box::new),
        }
    }

    /// Takes in a packet that comes at the `time` it bears. Refuses where it would cost much to put it in its
    /// place, before others that are known to come.
    #[inline(always)]
    pub(crate) fn expects(&mut self, now: Instant, frame: &Frame, context: &mut Context) -> bool {
        match self.coming.back() {
            Some(last) if last.time <= frame.time => {
                self.coming.push_back(*frame);
                if self.coming.len().is_multiple_of(SEEN_TO_AT_ONCE) && self.next_coming() <= now {
                    self.catch_up(now, context);
                }
                true
            }
            None => {
                self.coming.push_back(*frame);
                self.keep_going(context);
                true
            }
            Some(_) => self.expects_before_others(frame, context),
        }
    }

    fn expects_before_others(&mut self, frame: &Frame, context: &mut Context) -> bool {
        let earlier = self.coming.partition_point(|other| other.time <= frame.time);
        let near = self.coming.len() - earlier <= MAX_OVERTAKEN;
        if near {
            self.coming.insert(earlier, *frame);
            self.keep_going(context);
        }
        near
    }

    /// Takes a packet in that comes now.
    // Forced, here and on the rest of the way over a link: as calls they take 8 % more instructions.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Instant, mut frame: Frame, context: &mut Context) {
        frame.time = now;
        self.proceed(now, context);
        self.admit(&mut frame, context);
        self.keep_going(context);
    }

    /// The time has come to serve the waiting packets.
    pub(crate) fn on_service(&mut self, now: Instant, context: &mut Context) {
        if self.service_due == now {
            self.service_due = Instant::MAX;
            self.catch_up(now, context);
        }
    }

    /// Catches up with `now`, and sees to the rest being done in time.
    pub(crate) fn catch_up(&mut self, now: Instant, context: &mut Context) {
        self.proceed(now, context);
        if let Kind::Precomputed(precomputed) = &mut self.kind {
            precomputed.leave(now, &mut self.meter);
        }
        self.keep_going(context);
    }

    /// Takes in packets that have come by `now` and sends those that had their turn, each at its time. Nobody looks at
    /// a queue between arrivals at one of its ends, so the work happens then, and needs no event.
    #[inline(always)]
    fn proceed(&mut self, now: Instant, context: &mut Context) {
        loop {
            if matches!(self.kind, Kind::Port(_)) {
                self.proceed_port(now, context);
            }
            let Some(first) = self.coming.front().filter(|frame| frame.time <= now) else { return };
            let mut frame = *first;
            self.coming.pass_front();
            self.admit(&mut frame, context);
        }
    }

    /// Sends packets that have their turn by `now` and before the next packet comes.
    // Apart, as is the other use of a port: inlined beside the shortcuts, it adds 3 % to their instructions.
    #[inline(never)]
    fn proceed_port(&mut self, now: Instant, context: &mut Context) {
        let until = self.next_coming().min(now);
        if let (Kind::Port(port), mut sink) = self.parts(context) {
            port.proceed(until, &mut sink);
        }
    }

    /// The link apart from where its packets go.
    #[inline(always)]
    fn parts<'a>(&'a mut self, context: &'a mut Context) -> (&'a mut Kind, Sink<'a>) {
        (&mut self.kind, Sink { meter: &mut self.meter, in_flight: &mut self.in_flight, context })
    }

    /// The time when the first waiting packet can be sent.
    #[inline(always)]
    fn next_turn(&self) -> Instant {
        if let Kind::Port(port) = &self.kind { port.next_turn() } else { Instant::MAX }
    }

    /// The time when the first packet known to come does.
    #[inline(always)]
    fn next_coming(&self) -> Instant {
        self.coming.front().map_or(Instant::MAX, |frame| frame.time)
    }

    /// Makes sure that somebody looks again before the next event here matters.
    #[inline(always)]
    fn keep_going(&mut self, context: &mut Context) {
        let next = self.next_turn().min(self.next_coming());
        let latest = next + self.leeway;
        if self.service_due.min(self.in_flight.next()) > latest {
            self.service_due = latest;
            context.events.schedule(latest, Event::LinkService, self.index);
        }
    }

    /// Gives the packet that arrives at the far end now, if one does.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Instant, context: &mut Context) -> Option<Frame> {
        let frame = *self.in_flight.arrived(now)?;
        self.in_flight.pass(&mut context.events);
        let next = self.next_turn().min(self.next_coming());
        if self.service_due.min(self.in_flight.next()) > next + self.leeway {
            self.catch_up(now, context);
        }
        Some(frame)
    }

    /// The port that a radio empties, and where its packets go.
    fn radio<'a>(&'a mut self, context: &'a mut Context) -> (&'a mut Port<Frame>, Sink<'a>) {
        match self.parts(context) {
            (Kind::Port(port), sink) => (port, sink),
            _ => unreachable!("a link that a radio serves is a port"),
        }
    }

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.kind, Kind::Port(port) if port.waiting() > 0)
    }

    /// Gives the next packet to the radio that serves the link, and returns the bytes that it takes.
    pub(crate) fn hand_over(&mut self, now: Instant, context: &mut Context) -> Option<Bytes> {
        let (port, mut sink) = self.radio(context);
        port.hand_over(now, &mut sink)
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub(crate) fn carried(&mut self, at: Instant, context: &mut Context) {
        let (port, mut sink) = self.radio(context);
        port.carried(at, &mut sink);
    }

    /// The radio has given up the oldest of its packets.
    pub(crate) fn not_carried(&mut self, now: Instant, context: &mut Context) {
        let (port, mut sink) = self.radio(context);
        port.not_carried(now, &mut sink);
    }

    /// Tells the inner values of the queue.
    pub(crate) fn probe(&self, out: &mut dyn Probe) {
        match &self.kind {
            Kind::Wire(_) => {}
            Kind::Precomputed(precomputed) => precomputed.policy().probe(out),
            Kind::Port(port) => port.probe(out),
        }
    }

    /// The statistics, where results show the link.
    pub(crate) fn meter_mut(&mut self) -> &mut Option<Box<Meter>> {
        if let Kind::Wire(wire) = &mut self.kind { &mut wire.meter } else { &mut self.meter }
    }

    /// A link that is shaped sends at `rate` from now on.
    pub(crate) fn shape(&mut self, now: Instant, rate: Rate, context: &mut Context) {
        self.proceed(now, context);
        if let Kind::Port(port) = &mut self.kind {
            port.set_capacity(now, &Capacity::Rate(rate));
        }
        self.keep_going(context);
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate that stays.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        match &self.kind {
            _ if self.is_shaped => None,
            Kind::Wire(wire) => wire.potential(from, to),
            Kind::Precomputed(precomputed) => precomputed.transmitter().potential(from, to),
            Kind::Port(port) => port.transmitter().potential(from, to),
        }
    }

    /// Takes in a packet at the time it bears.
    #[inline(always)]
    fn admit(&mut self, frame: &mut Frame, context: &mut Context) {
        if let Some(watch) = &mut self.watch {
            watch.on_packet(frame.time, frame);
        }
        let (kind, mut sink) = self.parts(context);
        match kind {
            Kind::Wire(wire) => {
                frame.time = wire.pass(sink.context.events.now(), frame.time, frame.size);
                sink.travel(frame);
            }
            Kind::Precomputed(precomputed) => precomputed.offer(frame, &mut sink),
            Kind::Port(_) => self.offer_to_port(frame, context),
        }
    }

    #[inline(never)]
    fn offer_to_port(&mut self, frame: &mut Frame, context: &mut Context) {
        let (now, index) = (frame.time, self.index);
        frame.was_marked = frame.ecn == Ecn::CongestionExperienced;
        let (Kind::Port(port), mut sink) = self.parts(context) else { return };
        port.offer(*frame, &mut sink);
        if port.waiting() == 1 && port.transmitter().is_radio() {
            context.events.schedule(now, Event::RadioWaiting, index);
        }
    }
}

/// Whenever so many more packets are known to come, those that have are seen to, even if that could wait: the
/// longer they lie, the more memory is in use at a time.
const SEEN_TO_AT_ONCE: usize = 32;

/// A packet that comes before more than so many others that are known to come is told by an event instead,
/// or it would cost too much to put it in its place.
const MAX_OVERTAKEN: usize = 32;
