//! A unidirectional link: queue, server, and the packets in flight on it.

mod foretold;
pub(crate) mod line;
pub(crate) mod meter;
pub(crate) mod wire;

use suimon_algorithms::RandomStream;
use suimon_algorithms::queue::{DropReason, Dropped, Ecn, QueueDiscipline};
use suimon_algorithms::registry::build_queue;
use suimon_link::{Impairments, Server};
use suimon_model::{self as scenario, Capacity};
use suimon_units::{Bytes, Duration, Instant, Rate};

use self::foretold::{Foretold, Leaving};
use self::line::Line;
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
    queue: Box<dyn QueueDiscipline<Frame>>,
    keeping: Keeping,
    /// A packet that need not wait need not be shown to the queue.
    idle_passes: bool,
    queue_has_timer: bool,
    /// What the queue was last told of the rate, where that changes.
    rate_told: Option<Rate>,
    /// Packets in the queue.
    waiting: usize,
    /// How long after what happens here it matters elsewhere, at the earliest.
    leeway: Duration,
    /// When the next [`Event::LinkLook`] that counts happens.
    look_at: Instant,
    /// Packets that a radio holds, in order.
    on_air: Pieces<Frame>,
    /// Packets between transmission and arrival.
    in_flight: Line,
    next_wakeup: Option<Instant>,
    pub(crate) watch: Option<Box<Watch>>,
}

/// Where packets are while they wait.
#[derive(Debug)]
enum Keeping {
    /// Nothing is decided, and what comes is on its way at once, to leave at its time: see [`decides_nothing`].
    Nowhere,
    /// So it is once it has been decided whether it may join.
    Foretold(Foretold),
    /// In the queue.
    Queue,
}

/// What a link acts upon beyond itself.
#[derive(Debug)]
pub(crate) struct Surroundings {
    pub(crate) events: EventQueue,
    pub(crate) routes: Routes,
    /// Packets that are no more.
    pub(crate) dropped: Vec<Dropped<Frame>>,
}

impl Link {
    /// What it sends takes `onward` at least over the wires behind it.
    pub(crate) fn new(index: u32, link: &scenario::Link, seed: u64, onward: Duration) -> Self {
        let random = |what: &str| RandomStream::new(seed, &format!("link {} {what}", link.name));
        let mut queue: Box<dyn QueueDiscipline<Frame>> =
            build_queue(&link.queue, link.buffer, random("queue"));
        let wire = Wire::new(link);
        let by_radio = matches!(wire.server, Server::Radio);
        let rate = wire.server.rate_at(Instant::ZERO);
        if let Some(rate) = rate {
            queue.on_link_rate(Instant::ZERO, rate);
        }
        Self {
            index,
            rate_told: matches!(wire.server, Server::Steps(_)).then_some(rate).flatten(),
            wire,
            impairments: Impairments::of(link, random("impairments")).map(Box::new),
            coming: Pieces::default(),
            // A loss on the way has to be told in time, not when the packet joins the queue.
            keeping: if decides_nothing(link) {
                Keeping::Nowhere
            } else if queue.judges_arrivals() && loses_nothing(link) && !by_radio {
                Keeping::Foretold(Foretold::default())
            } else {
                Keeping::Queue
            },
            idle_passes: queue.idle_passes() || link.capacity == Capacity::Rate(Rate::MAX),
            queue_has_timer: queue.has_timer(),
            // A radio looks when it wants, and a queue with timers is told the time as it passes.
            leeway: if by_radio || queue.has_timer() { Duration::ZERO } else { link.delay + onward },
            queue,
            waiting: 0,
            look_at: Instant::MAX,
            on_air: Pieces::default(),
            in_flight: Line::new(Event::LinkArrival, index),
            next_wakeup: None,
            watch: Watch::of(link, seed).map(Box::new),
        }
    }

    /// Takes in a packet that comes at the `time` it bears. Refuses where it would cost much to put it in its
    /// place, before others that are known to come.
    #[inline(always)]
    pub(crate) fn expects(&mut self, now: Instant, frame: &Frame, around: &mut Surroundings) -> bool {
        match self.coming.back() {
            Some(last) if last.time <= frame.time => {
                self.coming.push_back(*frame);
                if self.coming.len().is_multiple_of(SEEN_TO_AT_ONCE) && self.next_coming() <= now {
                    self.catch_up(now, around);
                }
                true
            }
            None => {
                self.coming.push_back(*frame);
                self.keep_going(around);
                true
            }
            Some(_) => self.expects_before_others(frame, around),
        }
    }

    fn expects_before_others(&mut self, frame: &Frame, around: &mut Surroundings) -> bool {
        let earlier = self.coming.partition_point(|other| other.time <= frame.time);
        let near = self.coming.len() - earlier <= MOST_OVERTAKEN;
        if near {
            self.coming.insert(earlier, *frame);
            self.keep_going(around);
        }
        near
    }

    /// Takes a packet in that comes now.
    // Forced, here and on the rest of the way over a link: as calls they take 8 % more instructions.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Instant, mut frame: Frame, around: &mut Surroundings) {
        frame.time = now;
        self.proceed(now, around);
        self.admit(&mut frame, around);
        self.keep_going(around);
    }

    /// It is time to see to what waits.
    pub(crate) fn on_look(&mut self, now: Instant, around: &mut Surroundings) {
        if self.look_at == now {
            self.look_at = Instant::MAX;
            self.catch_up(now, around);
        }
    }

    /// Does what was to be done by `now`, and sees to the rest being done in time.
    pub(crate) fn catch_up(&mut self, now: Instant, around: &mut Surroundings) {
        self.proceed(now, around);
        if let Keeping::Foretold(foretold) = &mut self.keeping {
            foretold.leave(now, &mut *self.queue, &mut self.wire.meter);
        }
        self.keep_going(around);
    }

    /// Takes in what has come by `now` and sends what had its turn, each packet at its time. Nobody looks
    /// at a queue between arrivals at one of its ends, so that is when this happens, and no event is needed
    /// for it.
    #[inline(always)]
    fn proceed(&mut self, now: Instant, around: &mut Surroundings) {
        loop {
            if self.waiting > 0 && self.wire.free_at <= self.next_coming() {
                let turn = self.wire.free_at;
                if turn > now {
                    return;
                }
                self.send_next(turn, around);
                self.observe(turn, around);
            } else {
                let Some(first) = self.coming.front().filter(|frame| frame.time <= now) else { return };
                let mut frame = *first;
                self.coming.pass_front();
                self.admit(&mut frame, around);
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
    fn keep_going(&mut self, around: &mut Surroundings) {
        let next = self.next_turn().min(self.next_coming());
        let latest = next + self.leeway;
        if self.look_at.min(self.in_flight.next()) > latest {
            self.look_at = latest;
            around.events.schedule(latest, Event::LinkLook, self.index);
        }
    }

    /// The queue's own timer.
    pub(crate) fn on_wakeup(&mut self, now: Instant, around: &mut Surroundings) {
        if self.next_wakeup.is_some_and(|at| at <= now) {
            self.next_wakeup = None;
            self.queue.on_wakeup(now);
        }
        self.observe(now, around);
    }

    /// Gives the packet that arrives at the far end now, if one does.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, now: Instant, around: &mut Surroundings) -> Option<Frame> {
        let frame = *self.in_flight.arrived(now)?;
        self.in_flight.pass(&mut around.events);
        let next = self.next_turn().min(self.next_coming());
        if self.look_at.min(self.in_flight.next()) > next + self.leeway {
            self.catch_up(now, around);
        }
        Some(frame)
    }

    /// True where a radio finds a packet to take.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Gives the next packet to the radio that serves the link: its size.
    pub(crate) fn hand_over(&mut self, now: Instant, around: &mut Surroundings) -> Option<Bytes> {
        let dropped_before = around.dropped.len();
        let next = self.queue.dequeue(now, &mut around.dropped);
        self.waiting -= around.dropped.len() - dropped_before + usize::from(next.is_some());
        self.observe(now, around);
        let frame = next?;
        self.count_sent(&frame, now);
        self.on_air.push_back(frame);
        Some(self.wire.cost(frame.size))
    }

    /// The radio has carried the oldest of its packets by `at`.
    pub(crate) fn carried(&mut self, at: Instant, around: &mut Surroundings) {
        let mut frame = self.on_air.pop_front().expect("a radio carries what it took");
        self.propagate(at, &mut frame, around);
    }

    /// The radio has given up the oldest of its packets.
    pub(crate) fn not_carried(&mut self, around: &mut Surroundings) {
        let packet = self.on_air.pop_front().expect("a radio gives up what it took");
        around.dropped.push(Dropped { packet, reason: DropReason::Link });
    }

    pub(crate) fn queue(&self) -> &dyn QueueDiscipline<Frame> {
        &*self.queue
    }

    /// How many bytes the link could have sent between the two; `None` without a finite rate.
    pub(crate) fn potential(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.wire.server.potential(from, to)
    }

    /// Sends a packet on or puts it into the queue, at the time it bears.
    #[inline(always)]
    fn admit(&mut self, frame: &mut Frame, around: &mut Surroundings) {
        let now = frame.time;
        if let Some(watch) = &mut self.watch {
            watch.on_packet(now, frame);
        }
        match self.keeping {
            Keeping::Nowhere => {
                frame.time = self.wire.pass(around.events.now(), now, frame.size);
                self.travel(frame, around);
                return;
            }
            Keeping::Foretold(_) => return self.admit_foretold(frame, around),
            Keeping::Queue => {}
        }
        frame.was_marked = frame.ecn == Ecn::CongestionExperienced;
        let idle = now >= self.wire.free_at;
        if idle && self.idle_passes {
            self.transmit(now, frame, around);
            return;
        }
        if self.rate_told.is_some() {
            self.tell_rate(now);
        }
        let dropped_before = around.dropped.len();
        self.queue.enqueue(now, *frame, &mut around.dropped);
        self.waiting += 1;
        self.waiting -= around.dropped.len() - dropped_before;
        if idle {
            self.send_next(now, around);
        } else if self.waiting == 1 && matches!(self.wire.server, Server::Radio) {
            around.events.schedule(now, Event::RadioWaiting, self.index);
        }
        self.observe(now, around);
    }

    /// The same where it is then known when the packet leaves.
    #[inline(always)]
    fn admit_foretold(&mut self, frame: &mut Frame, around: &mut Surroundings) {
        let now = frame.time;
        let idle = now >= self.wire.free_at;
        if self.rate_told.is_some() && !(idle && self.idle_passes) {
            self.tell_rate(now);
        }
        let Self { keeping: Keeping::Foretold(foretold), queue, wire, .. } = self else { return };
        foretold.leave(now, &mut **queue, &mut wire.meter);
        let mut newly_marked = false;
        if !(idle && self.idle_passes) {
            let was_marked = frame.ecn == Ecn::CongestionExperienced;
            if let Err(reason) = queue.judge(now, frame, foretold.backlog()) {
                around.dropped.push(Dropped { packet: *frame, reason });
                return;
            }
            newly_marked = frame.ecn == Ecn::CongestionExperienced && !was_marked;
        }
        let turn = now.max(wire.free_at);
        let service = wire.send(turn, frame.size);
        let waited = service.starts.saturating_since(now);
        if !idle {
            foretold.join(Leaving { turn, waited, size: frame.size, newly_marked });
            if let Some(meter) = &mut wire.meter {
                meter.books.on_backlog(now, foretold.backlog());
            }
        } else {
            if !self.idle_passes {
                queue.on_departure(now, Bytes::new(u64::from(frame.size)), foretold.backlog());
            }
            if let Some(meter) = &mut wire.meter {
                meter.books.on_sent(frame.size, waited, newly_marked);
            }
        }
        self.propagate(service.ends, frame, around);
    }

    /// Tells the queue where the rate has changed.
    #[cold]
    fn tell_rate(&mut self, now: Instant) {
        let rate = self.wire.server.rate_at(now);
        if let Some(rate) = rate.filter(|_| rate != self.rate_told) {
            self.rate_told = Some(rate);
            self.queue.on_link_rate(now, rate);
        }
    }

    #[inline(always)]
    fn send_next(&mut self, now: Instant, around: &mut Surroundings) {
        let dropped_before = around.dropped.len();
        let next = self.queue.dequeue(now, &mut around.dropped);
        self.waiting -= around.dropped.len() - dropped_before;
        if let Some(mut frame) = next {
            self.waiting -= 1;
            self.transmit(now, &mut frame, around);
        }
    }

    #[inline(always)]
    fn transmit(&mut self, now: Instant, frame: &mut Frame, around: &mut Surroundings) {
        let service = self.wire.send(now, frame.size);
        self.count_sent(frame, service.starts);
        self.propagate(service.ends, frame, around);
    }

    #[inline(always)]
    fn count_sent(&mut self, frame: &Frame, starts: Instant) {
        if let Some(meter) = &mut self.wire.meter {
            let waited = starts.saturating_since(frame.time);
            let newly_marked = frame.ecn == Ecn::CongestionExperienced && !frame.was_marked;
            meter.books.on_sent(frame.size, waited, newly_marked);
        }
    }

    /// Puts a packet that left at `departure` on its way.
    #[inline(always)]
    fn propagate(&mut self, departure: Instant, frame: &mut Frame, around: &mut Surroundings) {
        frame.time = departure + self.wire.delay();
        if let Some(impairments) = &mut self.impairments {
            let Some(late) = impairments.apply(departure, frame.time) else {
                around.dropped.push(Dropped { packet: *frame, reason: DropReason::Link });
                return;
            };
            frame.time = late;
        }
        self.travel(frame, around);
    }

    /// Takes a packet to where it matters next, from the far end, which it reaches at the time it bears.
    #[inline(always)]
    fn travel(&mut self, frame: &mut Frame, around: &mut Surroundings) {
        frame.hop += 1;
        match around.routes.pass_wires(around.events.now(), frame).0 {
            None => self.in_flight.push(*frame, &mut around.events),
            Some(line) => around.routes.lines[line as usize].push(*frame, &mut around.events),
        }
    }

    /// Keeps the books on what waits, and the queue's timer scheduled.
    #[inline(always)]
    fn observe(&mut self, now: Instant, around: &mut Surroundings) {
        if let Some(meter) = &mut self.wire.meter {
            meter.books.on_backlog(now, self.queue.backlog());
        }
        if self.queue_has_timer
            && let Some(at) = self.queue.next_wakeup()
            && self.next_wakeup.is_none_or(|scheduled| at < scheduled)
        {
            self.next_wakeup = Some(at);
            around.events.schedule(at, Event::QueueTimer, self.index);
        }
    }
}

/// Whenever so many more packets are known to come, those that have are seen to, even if that could wait: the
/// longer they lie, the more memory is in use at a time.
const SEEN_TO_AT_ONCE: usize = 32;

/// A packet that comes before more than so many others that are known to come is told by an event instead,
/// or it would cost too much to put it in its place.
const MOST_OVERTAKEN: usize = 32;
