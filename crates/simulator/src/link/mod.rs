//! A unidirectional link: queue, server, and the packets in flight on it.

pub(crate) mod line;
pub(crate) mod meter;
mod precomputed;
pub(crate) mod wire;

use suimon_algorithms::queue::policy::{Arrival, Verdict};
use suimon_algorithms::queue::{DropReason, Dropped, Ecn, Packet as _, QueueDiscipline};
use suimon_algorithms::registry::{Queue, build_queue};
use suimon_algorithms::{Probe, RandomStream};
use suimon_link::{Impairments, Server};
use suimon_model::{self as scenario, Capacity};
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::line::Line;
use self::precomputed::{Leaving, Precomputed};
use self::wire::{Wire, decides_nothing, loses_nothing};
use crate::events::{Event, EventQueue};
use crate::packet::Frame;
use crate::pieces::Pieces;
use crate::routes::Routes;
use crate::watch::Watch;

/// A link.
#[derive(Debug)]
pub(crate) struct Link {
    index: u32,
    pub(crate) wire: Wire,
    impairments: Option<Box<Impairments>>,
    /// Packets that are known to come, by the time at which they do.
    coming: Pieces<Frame>,
    keeping: Keeping,
    /// A packet that need not wait need not be shown to the queue.
    idle_passes: bool,
    /// What the queue was last told of the rate, where that changes.
    rate_told: Option<Rate>,
    /// Packets in the queue.
    waiting: usize,
    /// How long after what happens here it matters elsewhere, at the earliest.
    leeway: Duration,
    /// When the next [`Event::LinkService`] that counts happens.
    service_due: Instant,
    /// Packets that a radio holds, in order.
    on_air: Pieces<Frame>,
    /// Packets between transmission and arrival.
    in_flight: Line,
    pub(crate) watch: Option<Box<Watch>>,
}

/// Where packets are while they wait.
#[derive(Debug)]
enum Keeping {
    /// Nothing is decided, and what comes is on its way at once, to leave at its time: see [`decides_nothing`].
    Nowhere,
    /// So it is once a policy has decided whether it may join.
    Precomputed(Precomputed),
    /// In the queue.
    Queue(Box<dyn QueueDiscipline<Frame>>),
}

/// What a link acts upon beyond itself.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) events: EventQueue,
    pub(crate) routes: Routes,
    /// Packets that are no more.
    pub(crate) dropped: Vec<Dropped<Frame>>,
}

impl Link {
    /// What it sends takes `onward` at least over the wires behind it.
    pub(crate) fn new(index: u32, link: &scenario::Link, seed: u64, onward: Duration) -> Self {
        let random = |what: &str| RandomStream::new(seed, &format!("link {} {what}", link.name));
        let wire = Wire::new(link);
        let by_radio = matches!(wire.server, Server::Radio);
        let rate = wire.server.rate_at(Instant::ZERO);
        let queue = build_queue(&link.queue, link.buffer, random("queue"));
        let capabilities = queue.capabilities();
        // A loss on the way has to be told in time, not when the packet joins the queue.
        let in_time = !loses_nothing(link) || by_radio || capabilities.marks_departures;
        let mut keeping = match queue {
            _ if decides_nothing(link) => Keeping::Nowhere,
            Queue::Policy(policy) if !in_time => Keeping::Precomputed(Precomputed::new(policy)),
            queue => Keeping::Queue(queue.into_discipline()),
        };
        if let Some(rate) = rate {
            keeping.on_link_rate(Instant::ZERO, rate);
        }
        Self {
            index,
            rate_told: matches!(wire.server, Server::Steps(_)).then_some(rate).flatten(),
            wire,
            impairments: Impairments::of(link, random("impairments")).map(Box::new),
            coming: Pieces::default(),
            keeping,
            idle_passes: capabilities.idle_passes || link.capacity == Capacity::Rate(Rate::MAX),
            // A radio looks when it wants.
            leeway: if by_radio { Duration::ZERO } else { link.delay + onward },
            waiting: 0,
            service_due: Instant::MAX,
            on_air: Pieces::default(),
            in_flight: Line::new(Event::LinkArrival, index),
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

    /// It is time to see to what waits.
    pub(crate) fn on_service(&mut self, now: Instant, context: &mut Context) {
        if self.service_due == now {
            self.service_due = Instant::MAX;
            self.catch_up(now, context);
        }
    }

    /// Does what was to be done by `now`, and sees to the rest being done in time.
    pub(crate) fn catch_up(&mut self, now: Instant, context: &mut Context) {
        self.proceed(now, context);
        if let Keeping::Precomputed(precomputed) = &mut self.keeping {
            precomputed.leave(now, &mut self.wire.meter);
        }
        self.keep_going(context);
    }

    /// Takes in what has come by `now` and sends what had its turn, each packet at its time. Nobody looks
    /// at a queue between arrivals at one of its ends, so that is when this happens, and no event is needed
    /// for it.
    #[inline(always)]
    fn proceed(&mut self, now: Instant, context: &mut Context) {
        loop {
            if self.waiting > 0 && self.wire.free_at <= self.next_coming() {
                let turn = self.wire.free_at;
                if turn > now {
                    return;
                }
                self.send_next(turn, context);
                self.observe(turn);
            } else {
                let Some(first) = self.coming.front().filter(|frame| frame.time <= now) else { return };
                let mut frame = *first;
                self.coming.pass_front();
                self.admit(&mut frame, context);
            }
        }
    }

    /// When the first that waits can be sent.
    fn next_turn(&self) -> Instant {
        if self.waiting > 0 { self.wire.free_at } else { Instant::MAX }
    }

    /// When the first that is known to come does.
    fn next_coming(&self) -> Instant {
        self.coming.front().map_or(Instant::MAX, |frame| frame.time)
    }

    /// Makes sure that somebody looks again before it matters what happens here next.
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

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Gives the next packet to the radio that serves the link: its size.
    pub(crate) fn hand_over(&mut self, now: Instant, context: &mut Context) -> Option<Bytes> {
        let next = self.dequeue(now, context);
        self.observe(now);
        let frame = next?;
        self.count_sent(&frame, now);
        self.on_air.push_back(frame);
        Some(self.wire.cost(frame.size))
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub(crate) fn carried(&mut self, at: Instant, context: &mut Context) {
        let mut frame = self.on_air.pop_front().expect("a radio carries what it took");
        self.propagate(at, &mut frame, context);
    }

    /// The radio has given up the oldest of its packets.
    pub(crate) fn not_carried(&mut self, context: &mut Context) {
        let packet = self.on_air.pop_front().expect("a radio gives up what it took");
        context.dropped.push(Dropped { packet, reason: DropReason::Link });
    }

    /// Tells the inner values of the queue.
    pub(crate) fn probe(&self, out: &mut dyn Probe) {
        match &self.keeping {
            Keeping::Nowhere => {}
            Keeping::Precomputed(precomputed) => precomputed.policy.probe(out),
            Keeping::Queue(queue) => queue.probe(out),
        }
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.wire.server.potential(from, to)
    }

    /// Sends a packet on or puts it into the queue, at the time it bears.
    #[inline(always)]
    fn admit(&mut self, frame: &mut Frame, context: &mut Context) {
        let now = frame.time;
        if let Some(watch) = &mut self.watch {
            watch.on_packet(now, frame);
        }
        match self.keeping {
            Keeping::Nowhere => {
                frame.time = self.wire.pass(context.events.now(), now, frame.size);
                self.travel(frame, context);
                return;
            }
            Keeping::Precomputed(_) => return self.admit_precomputed(frame, context),
            Keeping::Queue(_) => {}
        }
        frame.was_marked = frame.ecn == Ecn::CongestionExperienced;
        let idle = now >= self.wire.free_at;
        if idle && self.idle_passes {
            self.transmit(now, frame, context);
            return;
        }
        if self.rate_told.is_some() {
            self.tell_rate(now);
        }
        let Keeping::Queue(queue) = &mut self.keeping else { return };
        let dropped_before = context.dropped.len();
        queue.enqueue(now, *frame, &mut context.dropped);
        self.waiting += 1;
        self.waiting -= context.dropped.len() - dropped_before;
        if idle {
            self.send_next(now, context);
        } else if self.waiting == 1 && matches!(self.wire.server, Server::Radio) {
            context.events.schedule(now, Event::RadioWaiting, self.index);
        }
        self.observe(now);
    }

    /// The same where it is then known when the packet leaves.
    #[inline(always)]
    fn admit_precomputed(&mut self, frame: &mut Frame, context: &mut Context) {
        let now = frame.time;
        let idle = now >= self.wire.free_at;
        if self.rate_told.is_some() && !(idle && self.idle_passes) {
            self.tell_rate(now);
        }
        let Self { keeping: Keeping::Precomputed(precomputed), wire, .. } = self else { return };
        precomputed.leave(now, &mut wire.meter);
        let mut newly_marked = false;
        if !(idle && self.idle_passes) {
            match precomputed.policy.judge(&Arrival::of(frame, now, precomputed.backlog())) {
                Verdict::Pass => {}
                Verdict::Mark => {
                    newly_marked = frame.ecn != Ecn::CongestionExperienced;
                    frame.mark_congestion_experienced();
                }
                Verdict::Drop(reason) => return context.dropped.push(Dropped { packet: *frame, reason }),
            }
        }
        let turn = now.max(wire.free_at);
        let service = wire.send(turn, frame.size);
        let waited = service.starts.saturating_since(now);
        if !idle {
            precomputed.join(Leaving { turn, waited, size: frame.size, newly_marked });
            if let Some(meter) = &mut wire.meter {
                meter.statistics.on_backlog(now, precomputed.backlog());
            }
        } else {
            if !self.idle_passes {
                let size = Bytes::new(u64::from(frame.size));
                precomputed.policy.on_departure(now, size, precomputed.backlog());
            }
            if let Some(meter) = &mut wire.meter {
                meter.statistics.on_sent(frame.size, waited, newly_marked);
            }
        }
        self.propagate(service.ends, frame, context);
    }

    /// Tells the queue where the rate has changed.
    #[cold]
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.wire.server.rate_at(now);
        if let Some(rate) = rate.filter(|_| rate != self.rate_told) {
            self.rate_told = Some(rate);
            self.keeping.on_link_rate(now, rate);
        }
    }

    #[inline(always)]
    fn send_next(&mut self, now: Instant, context: &mut Context) {
        if let Some(mut frame) = self.dequeue(now, context) {
            self.transmit(now, &mut frame, context);
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Instant, context: &mut Context) -> Option<Frame> {
        let Keeping::Queue(queue) = &mut self.keeping else { return None };
        let dropped_before = context.dropped.len();
        let next = queue.dequeue(now, &mut context.dropped);
        self.waiting -= context.dropped.len() - dropped_before + usize::from(next.is_some());
        next
    }

    #[inline(always)]
    fn transmit(&mut self, now: Instant, frame: &mut Frame, context: &mut Context) {
        let service = self.wire.send(now, frame.size);
        self.count_sent(frame, service.starts);
        self.propagate(service.ends, frame, context);
    }

    #[inline(always)]
    fn count_sent(&mut self, frame: &Frame, starts: Instant) {
        if let Some(meter) = &mut self.wire.meter {
            let waited = starts.saturating_since(frame.time);
            let newly_marked = frame.ecn == Ecn::CongestionExperienced && !frame.was_marked;
            meter.statistics.on_sent(frame.size, waited, newly_marked);
        }
    }

    /// Puts a packet that left at `departure` on its way.
    #[inline(always)]
    fn propagate(&mut self, departure: Instant, frame: &mut Frame, context: &mut Context) {
        frame.time = departure + self.wire.delay();
        if let Some(impairments) = &mut self.impairments {
            let Some(late) = impairments.apply(departure, frame.time) else {
                context.dropped.push(Dropped { packet: *frame, reason: DropReason::Link });
                return;
            };
            frame.time = late;
        }
        self.travel(frame, context);
    }

    /// Takes a packet to where it matters next, from the far end, which it reaches at the time it bears.
    #[inline(always)]
    fn travel(&mut self, frame: &mut Frame, context: &mut Context) {
        frame.hop += 1;
        match context.routes.pass_wires(context.events.now(), frame).0 {
            None => self.in_flight.push(*frame, &mut context.events),
            Some(line) => context.routes.lines[line as usize].push(*frame, &mut context.events),
        }
    }

    /// Keeps the statistics of what waits.
    #[inline(always)]
    fn observe(&mut self, now: Instant) {
        if let (Some(meter), Keeping::Queue(queue)) = (&mut self.wire.meter, &self.keeping) {
            meter.statistics.on_backlog(now, queue.backlog());
        }
    }
}

impl Keeping {
    fn on_link_rate(&mut self, now: Instant, rate: Rate) {
        match self {
            Self::Nowhere => {}
            Self::Precomputed(precomputed) => precomputed.policy.on_link_rate(now, rate),
            Self::Queue(queue) => queue.on_link_rate(now, rate),
        }
    }
}

/// Whenever so many more packets are known to come, those that have are seen to, even if that could wait: the
/// longer they lie, the more memory is in use at a time.
const SEEN_TO_AT_ONCE: usize = 32;

/// A packet that comes before more than so many others that are known to come is told by an event instead,
/// or it would cost too much to put it in its place.
const MAX_OVERTAKEN: usize = 32;
