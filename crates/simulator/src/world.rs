//! The simulated world: events in, packets from hop to hop, results out.

mod halves;

use std::fmt;

use suimon_algorithms::Probe;
use suimon_algorithms::estimate::Seen;
use suimon_algorithms::estimate::round_trips::{Backward, Forward};
use suimon_algorithms::queue::{Dropped, Ecn, FlowId};
use suimon_link::{SeriesBuilder, stream_result};
use suimon_model::Scenario;
use suimon_results::{Event as ResultEvent, EventKind, RunResult};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::events::{Event, EventQueue};
use crate::flow::{Endpoints, Flow, Profiles, Way};
use crate::gateway::{self, Client, Half};
use crate::link::meter::Meters;
use crate::link::{Context, Link};
use crate::measure::sample_tcp;
use crate::multipath::{self, Multipath, Subflow};
use crate::packet::{Frame, Packet, PacketKind, Packets, Sack};
use crate::radio::Radios;
use crate::routes::{Planner, Step};
use crate::shaper::{self, Shaper};
use crate::tap::Tap;
use crate::tcp::Source;
use crate::timers::Timers;
use crate::watch::{Watch, measured};
use crate::windows::Windows;

/// Progress is told every so many events: some milliseconds of work.
const EVENTS_PER_REPORT: u32 = 1 << 16;

/// One run.
#[derive(Debug)]
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    context: Context,
    links: Vec<Link>,
    radios: Radios,
    shapers: Vec<Shaper>,
    flows: Vec<Flow>,
    multipaths: Vec<Multipath>,
    clients: Vec<Client>,
    /// The number of flows that results show: halves of split connections toward a gateway come behind them.
    reported: usize,
    timers: Timers,
    /// Flows with a size that are not complete, and not stopped before that.
    incomplete: usize,
    /// The end of the run: events at this time are still handled.
    end: Instant,
    recorder: Option<Recorder>,
    windows: Windows<'a>,
    watcher: Option<Watcher<'a>>,
    pub(crate) tap: Option<Tap<'a>>,
    crossing: Option<OnCrossing<'a>>,
    kept_events: Vec<ResultEvent>,
    events_not_kept: u64,
    // Reused from event to event, so that nothing is allocated per packet.
    outbox: Vec<Packet>,
    packets: Packets,
}

/// Series under construction.
#[derive(Debug)]
struct Recorder {
    interval: Duration,
    flows: Vec<SeriesBuilder>,
    /// Delivered at the sample before.
    delivered: Vec<u64>,
    queues: Vec<(usize, SeriesBuilder)>,
    aggregates: Vec<SeriesBuilder>,
}

type OnPacket<'a> = &'a mut (dyn FnMut(&Seen, Option<Duration>) + 'a);

/// A packet that passes a link, there or back.
#[derive(Debug, Clone, Copy)]
pub enum Crossing {
    /// In the direction of its connection's data.
    Forward(Forward),
    /// An answer.
    Backward(Backward),
}

/// Somebody who is shown the packets that pass a link there and back.
pub(crate) struct OnCrossing<'a>(pub(crate) &'a mut dyn FnMut(&Crossing, Option<Duration>));

impl fmt::Debug for OnCrossing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnCrossing").finish_non_exhaustive()
    }
}

/// Somebody who is shown the packets of a link.
struct Watcher<'a> {
    link: usize,
    on_packet: OnPacket<'a>,
}

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("link", &self.link).finish_non_exhaustive()
    }
}

impl<'a> World<'a> {
    /// The run of `scenario`; if asked, shows the packets that come to the reported link of this name whenever a sample
    /// is taken.
    pub(crate) fn new(
        scenario: &'a Scenario,
        watch: Option<(&str, OnPacket<'a>)>,
        crossing: Option<(&str, OnCrossing<'a>)>,
    ) -> Self {
        let watcher = watch.filter(|_| scenario.record.interval.is_some()).and_then(|(name, on_packet)| {
            let mut links = scenario.links.iter();
            let link = links.position(|each| each.reported && each.name == name)?;
            Some(Watcher { link, on_packet })
        });
        let mut events = EventQueue::default();
        let mut routes = Planner::new(scenario, crossing.as_ref().map(|(link, _)| *link));
        let mut profiles = Profiles::default();
        let mut flows = Vec::with_capacity(scenario.flows.len());
        let (halves, clients) = gateway::halves(scenario);
        let reported = scenario.flows.len() - scenario.halves().len();
        for (index, spec) in scenario.flows.iter().enumerate() {
            let subflow = multipath::subflow_of(scenario, &spec.name);
            let spread = scenario.record.rate_spread;
            let half = halves[index];
            let mut flow = Flow::new(spec, scenario.seed, &mut routes, &mut profiles, subflow, half, spread);
            // Where there is a gateway, the connection to it starts, and that from it follows.
            if !matches!(half, Some(Half::Outward { .. })) {
                events.schedule(flow.start_time(scenario, spec), Event::FlowStart, index as u32);
            }
            if let Some(stop) = spec.stop {
                events.schedule(stop, Event::FlowStop, index as u32);
            }
            flows.push(flow);
        }
        let multipaths = (scenario.aggregates.iter())
            .map(|spec| Multipath::new(spec, scenario, &halves))
            .collect::<Vec<_>>();
        if scenario.record.warmup > Duration::ZERO {
            events.schedule(Instant::ZERO + scenario.record.warmup, Event::WarmupEnd, 0);
        }
        let recorder = scenario.record.interval.map(|interval| {
            events.schedule(Instant::ZERO + interval, Event::Sample, 0);
            Recorder {
                interval,
                flows: scenario.flows[..reported].iter().map(|flow| SeriesBuilder::new(&flow.name)).collect(),
                delivered: vec![0; reported],
                queues: (scenario.links.iter().enumerate())
                    .filter(|(_, link)| link.reported)
                    .map(|(index, link)| (index, SeriesBuilder::new(&link.name)))
                    .collect(),
                aggregates: scenario.aggregates.iter().map(|spec| SeriesBuilder::new(&spec.name)).collect(),
            }
        });
        let shapers = Shaper::all(scenario, &mut events);
        let windows = Windows::new(scenario, &mut events, |link| {
            let crosses = |(_, flow): &(usize, &Flow)| routes.crosses(flow.there.hop, link);
            flows[..reported].iter().enumerate().filter(crosses).map(|(index, _)| index).collect()
        });
        let routes = routes.finish(watcher.as_ref().map(|watcher| watcher.link));
        let mut links: Vec<_> = (scenario.links.iter().enumerate().zip(routes.onward(scenario.links.len())))
            .map(|((index, link), onward)| Link::new(index as u32, link, scenario.seed, onward))
            .collect();
        if let Some(watcher) = &watcher {
            links[watcher.link].watch = Some(Box::new(Watch::for_others()));
        }
        Self {
            end: Instant::ZERO + scenario.duration,
            incomplete: flows.iter().filter(|flow| flow.will_complete()).count()
                + multipaths.iter().filter(|multipath| multipath.will_complete()).count(),
            scenario,
            timers: Timers::new(flows.len()),
            context: Context { events, routes, dropped: Vec::new() },
            links,
            radios: Radios::new(scenario),
            shapers,
            flows,
            multipaths,
            clients,
            reported,
            recorder,
            windows,
            watcher,
            tap: None,
            crossing: crossing.map(|(_, on_crossing)| on_crossing),
            kept_events: Vec::new(),
            events_not_kept: 0,
            outbox: Vec::new(),
            packets: Packets::default(),
        }
    }

    pub(crate) fn run(
        mut self,
        labels: &[(String, String)],
        on_progress: &mut dyn FnMut(Duration),
    ) -> RunResult {
        let mut until_report = EVENTS_PER_REPORT;
        while let Some((now, event, index)) = self.context.events.pop(self.end) {
            self.handle(now, event, index);
            until_report -= 1;
            if until_report == 0 {
                until_report = EVENTS_PER_REPORT;
                on_progress(now.saturating_since(Instant::ZERO));
            }
        }
        let end = self.end;
        self.into_result(end, labels)
    }

    // Forced, here and where packets are sent: as calls they take 2 % more instructions.
    #[inline(always)]
    fn handle(&mut self, now: Instant, event: Event, index: u32) {
        match event {
            Event::LinkArrival => self.on_arrival(now, index),
            Event::WireArrival => self.on_wire_arrival(now, index),
            Event::LinkService => {
                self.links[index as usize].on_service(now, &mut self.context);
                self.account_for_dropped(index);
            }
            Event::SenderTimer => self.on_sender_timer(now, index),
            Event::Timers => self.on_timers(now),
            Event::SenderTurn => self.on_sender_turn(now, index),
            Event::ReceiverTimer => self.on_receiver_timer(now, index),
            Event::RadioWaiting => self.radios.on_waiting(now, index, &mut self.context.events),
            Event::Radio => self.on_radio(now, index),
            Event::FlowStart => self.on_flow_start(now, index),
            Event::FlowStop => self.on_flow_stop(now, index),
            Event::FlowToggle => self.on_flow_toggle(now, index),
            Event::Aggregate => self.on_aggregate_timer(now, index),
            Event::WarmupEnd => self.on_warmup_end(now),
            Event::Sample => self.on_sample(now),
            Event::Window => self.on_window(now, index),
            Event::Shaper => self.on_shaper(now, index),
        }
    }

    fn on_radio(&mut self, now: Instant, index: u32) {
        self.radios.on_event(now, index, &mut self.links, &mut self.context);
        while let Some((link, dropped)) = self.radios.dropped.pop() {
            self.context.dropped.push(dropped);
            self.account_for_dropped(link);
        }
    }

    fn on_arrival(&mut self, now: Instant, link: u32) {
        let arrived = self.links[link as usize].arrive(now, &mut self.context);
        self.account_for_dropped(link);
        if let Some(frame) = arrived {
            self.forward(now, frame);
        }
    }

    fn on_wire_arrival(&mut self, now: Instant, line: u32) {
        let line = &mut self.context.routes.lines[line as usize];
        let Some(&frame) = line.arrived(now) else { return };
        line.pass(&mut self.context.events);
        self.forward(now, frame);
    }

    /// Takes a packet on that has arrived somewhere now.
    #[inline(always)]
    fn forward(&mut self, now: Instant, frame: Frame) {
        match self.context.routes.steps[frame.hop as usize] {
            Step::Link(link) => self.offer(now, link, frame),
            Step::Deliver => self.deliver(now, &frame),
            Step::Shaper { index, is_back } => self.pass_shaper(now, frame, index, is_back),
            Step::Wire(_) => unreachable!("a packet passes wires as soon as it comes to them"),
        }
    }

    /// Shows a packet to the shaper that it passes, or to whoever looks there, and takes it on.
    #[cold]
    fn pass_shaper(&mut self, now: Instant, mut frame: Frame, shaper: u32, is_back: bool) {
        let (packet, sack) = self.packets.peek(frame.packet);
        match (self.shapers.get_mut(shaper as usize), &mut self.crossing) {
            (Some(shaper), _) if is_back => shaper.on_backward(now, &frame, packet, sack),
            (Some(shaper), _) => shaper.on_forward(now, &frame, packet),
            (None, Some(OnCrossing(on_crossing))) => {
                let crossing = match is_back {
                    true => shaper::backward(now, &frame, packet, sack).map(Crossing::Backward),
                    false => shaper::forward(now, &frame, packet).map(Crossing::Forward),
                };
                if let Some(crossing) = crossing {
                    on_crossing(&crossing, measured(&self.flows, FlowId(frame.flow)));
                }
            }
            (None, None) => {}
        }
        frame.hop += 1;
        match self.context.routes.pass_wires(now, &mut frame) {
            (None, _) => self.forward(now, frame),
            (Some(line), next) => self.announce(now, frame, line, next),
        }
    }

    /// A shaper chooses the rate of its link.
    #[cold]
    fn on_shaper(&mut self, now: Instant, index: u32) {
        let shaper = &mut self.shapers[index as usize];
        let (rate, again) = shaper.next(now);
        let link = shaper.link;
        self.links[link as usize].shape(now, rate, &mut self.context);
        self.context.events.schedule(again, Event::Shaper, index);
        self.account_for_dropped(link);
    }

    // A call of its own, since packets come to most links by wires, which leads through `announce`.
    #[inline(never)]
    fn offer(&mut self, now: Instant, link: u32, frame: Frame) {
        self.links[link as usize].offer(now, frame, &mut self.context);
        self.account_for_dropped(link);
    }

    #[inline(always)]
    fn account_for_dropped(&mut self, link: u32) {
        if !self.context.dropped.is_empty() {
            self.take_back_dropped(link);
        }
    }

    #[cold]
    fn take_back_dropped(&mut self, link: u32) {
        while let Some(Dropped { packet: frame, reason }) = self.context.dropped.pop() {
            if let Some(meter) = self.links[link as usize].meter_mut() {
                meter.statistics.on_dropped(reason);
            }
            if self.packets.take(frame.packet).kind.counts_when_lost() {
                self.flows[frame.flow as usize].tally.lost += 1;
            }
        }
    }

    #[inline(never)]
    fn deliver(&mut self, now: Instant, frame: &Frame) {
        let index = frame.flow;
        let (packet, sack) = self.packets.take_with_sack(frame.packet);
        packet.ecn = frame.ecn;
        if let Some(Subflow { aggregate, path }) = self.flows[index as usize].subflow
            && !packet.kind.is_forward()
        {
            self.multipaths[aggregate].couple(&mut self.flows, path);
        }
        let flow = &mut self.flows[index as usize];
        if packet.ecn == Ecn::CongestionExperienced {
            flow.tally.marked += 1;
        }
        if let Some(tap) = &mut self.tap
            && !packet.kind.is_forward()
        {
            tap.show(now, index, packet, sack);
        }
        if flow.gave_up(packet) {
            return;
        }
        if let Some(spread) = flow.spread.as_mut().filter(|_| packet.kind.is_data()) {
            spread.on_packet(now, frame.size);
        }
        match &mut flow.endpoints {
            Endpoints::Udp { delays, .. } if packet.kind == PacketKind::Echo => {
                delays.record(now, packet.ts_val);
            }
            Endpoints::Udp { received, delays, echo, .. } => {
                *received += u64::from(packet.bytes);
                flow.last_delivery = now;
                if *echo {
                    let answer = Packet { kind: PacketKind::Echo, ..*packet };
                    self.send_answer(now, index, Some(answer));
                } else {
                    delays.record(now, packet.ts_val);
                }
            }
            Endpoints::Tcp { receiver, .. } if packet.kind.is_forward() => {
                let before = receiver.delivered();
                let answer = receiver.on_packet(now, packet);
                let delivered = receiver.delivered();
                if delivered > before {
                    flow.last_delivery = now;
                    if let Some(Subflow { aggregate, path }) = flow.subflow
                        && !matches!(flow.half, Some(Half::Inward { .. }))
                    {
                        self.multipaths[aggregate].stream.on_delivered(now, path, delivered);
                    }
                }
                let half = flow.half.filter(|_| delivered > before);
                self.send_answer(now, index, answer);
                if let Some(Half::Inward { outward }) = half {
                    self.pass_on(now, outward, Bytes::new(delivered - before));
                }
            }
            Endpoints::Tcp { sender, .. } => {
                let (subflow, half, sent) = (flow.subflow, flow.half, packet.ts_val);
                sender.on_packet(now, packet, sack, &mut self.outbox);
                self.after_sender(now, index);
                if let Some(half) = half {
                    self.on_half(now, index, half);
                }
                if let Some(subflow) = subflow {
                    self.hear(now, index, subflow, Some(sent));
                }
            }
        }
    }

    /// Sends `packet`, which has its `place`, of the flow with this `index` on its `way`.
    #[inline(always)]
    fn send(&mut self, now: Instant, index: u32, way: Way, packet: &Packet, place: u32) {
        let mut frame = Frame {
            time: now,
            packet: place,
            flow: index,
            hop: way.hop,
            size: way.header + packet.payload(),
            source: way.source,
            destination: way.destination,
            ecn: packet.ecn,
            was_marked: false,
            opens_connection: packet.kind == PacketKind::Syn,
        };
        match self.context.routes.pass_wires(now, &mut frame) {
            (None, _) => self.forward(now, frame),
            (Some(line), next) => self.announce(now, frame, line, next),
        }
    }

    /// Lets a packet that has passed wires arrive at the end of the last one, at the time that it bears: the
    /// link that comes `next` is told at once where that is cheap, or else an event follows it on `line`.
    #[inline(always)]
    fn announce(&mut self, now: Instant, frame: Frame, line: u32, next: Step) {
        if let Step::Link(link) = next
            && self.context.routes.lines[line as usize].is_empty()
            && self.links[link as usize].expects(now, &frame, &mut self.context)
        {
            self.account_for_dropped(link);
        } else {
            self.context.routes.lines[line as usize].push(frame, &mut self.context.events);
        }
    }

    /// Sends the answer of the receiving side and keeps its timer scheduled.
    #[inline(always)]
    fn send_answer(&mut self, now: Instant, index: u32, answer: Option<Packet>) {
        let flow = &mut self.flows[index as usize];
        if let Endpoints::Tcp { receiver, .. } = &flow.endpoints
            && let Some(at) = brought_forward(&mut flow.receiver_timer, receiver.next_wakeup())
        {
            self.context.events.schedule(at, Event::ReceiverTimer, index);
        }
        if let Some(answer) = answer {
            let way = flow.back;
            let place = match &mut flow.endpoints {
                Endpoints::Tcp { receiver, .. } if answer.has_sack => {
                    self.packets.put_with_sack(&answer, &receiver.sack(&answer))
                }
                _ => self.packets.put(&answer),
            };
            self.send(now, index, way, &answer, place);
        }
    }

    /// Sends the packets that the sending side put into the outbox, notes events, keeps its wakeups scheduled.
    fn after_sender(&mut self, now: Instant, index: u32) {
        self.keep_wakeups(index);
        let flow = &mut self.flows[index as usize];
        let way = flow.there;
        if let Some(kind) = flow.take_event() {
            if kind == EventKind::Completed {
                flow.completed = Some(now);
                self.flow_completed(now);
            }
            self.note(now, index, kind);
        }
        let mut sent = 0;
        while let Some(packet) = self.outbox.get(sent).copied() {
            sent += 1;
            if let Some(tap) = &mut self.tap {
                tap.show(now, index, &packet, &Sack::new());
            }
            let place = self.packets.put(&packet);
            self.send(now, index, way, &packet, place);
        }
        self.outbox.clear();
    }

    /// Keeps the wakeups of the sending side scheduled.
    #[inline(always)]
    fn keep_wakeups(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let (timer, turn) = (flow.next_timer(), flow.next_turn());
        if let Some(at) = timer.filter(|at| *at < flow.sender_timer) {
            flow.sender_timer = self.timers.expect(at, index, &mut self.context.events);
        }
        if let Some(at) = brought_forward(&mut flow.sender_turn, turn) {
            self.context.events.schedule(at, Event::SenderTurn, index);
        }
    }

    /// A slot of timers begins: those that have moved on move on here too.
    fn on_timers(&mut self, now: Instant) {
        while let Some(index) = self.timers.pop(&mut self.context.events) {
            let flow = &mut self.flows[index as usize];
            if flow.sender_timer == now {
                flow.sender_timer = Instant::MAX;
                self.keep_wakeups(index);
            }
        }
    }

    fn on_sender_timer(&mut self, now: Instant, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.sender_timer == now {
            flow.sender_timer = Instant::MAX;
            let due = flow.next_timer();
            self.wake_sender(now, index, due);
        }
    }

    fn on_sender_turn(&mut self, now: Instant, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.sender_turn == now {
            flow.sender_turn = Instant::MAX;
            let due = flow.next_turn();
            self.wake_sender(now, index, due);
        }
    }

    /// An event was scheduled for a wakeup that may since have moved to the time `due`.
    fn wake_sender(&mut self, now: Instant, index: u32, due: Option<Instant>) {
        if due.is_some_and(|due| due <= now) {
            self.flows[index as usize].on_sender_wakeup(now, &mut self.outbox);
            self.after_sender(now, index);
        } else {
            self.keep_wakeups(index);
        }
        if let Some(subflow) = self.flows[index as usize].subflow {
            self.hear(now, index, subflow, None);
        }
        if let Some(half) = self.flows[index as usize].half {
            self.on_half(now, index, half);
        }
    }

    /// A connection has news for the aggregate whose subflow it is: an acknowledgement that was sent at `heard`, or
    /// that all its data is sent. What the second half of a split one hears, its gateway passes on.
    fn hear(&mut self, now: Instant, index: u32, subflow: Subflow, heard: Option<Instant>) {
        let flow = &self.flows[index as usize];
        match (flow.half, heard) {
            (Some(Half::Outward { .. }), Some(heard)) => {
                let multipath = &mut self.multipaths[subflow.aggregate];
                multipath.stream.pass_on(now, heard);
                if multipath.completes(now) {
                    self.flow_completed(now);
                }
            }
            (Some(Half::Outward { .. }), None) => {}
            (Some(Half::Inward { .. }), _) if !flow.joined => {}
            _ => {
                self.serve_aggregate(now, subflow, heard);
                self.hand_out(now, subflow.aggregate);
            }
        }
    }

    fn serve_aggregate(
        &mut self,
        now: Instant,
        Subflow { aggregate, path }: Subflow,
        heard: Option<Instant>,
    ) {
        let multipath = &mut self.multipaths[aggregate];
        if let Endpoints::Tcp { sender, .. } = &self.flows[multipath.flows[path]].endpoints {
            multipath.on_news(now, path, sender, heard);
        }
    }

    /// Gives the connections of the aggregate the data that its scheduler assigns.
    fn hand_out(&mut self, now: Instant, aggregate: usize) {
        while let Some((path, len)) = self.multipaths[aggregate].next(now) {
            let flow = self.multipaths[aggregate].flows[path];
            if let Endpoints::Tcp { sender, .. } = &mut self.flows[flow].endpoints {
                sender.source.feed(len);
                sender.on_wakeup(now, &mut self.outbox);
            }
            self.after_sender(now, flow as u32);
            self.serve_aggregate(now, Subflow { aggregate, path }, None);
        }
        let multipath = &mut self.multipaths[aggregate];
        // A timeout that has become shorter may have run out already.
        let wakeup = multipath.next_wakeup().map(|at| at.max(now));
        if let Some(at) = brought_forward(&mut multipath.timer, wakeup) {
            self.context.events.schedule(at, Event::Aggregate, aggregate as u32);
        }
        if multipath.completes(now) {
            self.flow_completed(now);
        }
    }

    fn on_aggregate_timer(&mut self, now: Instant, index: u32) {
        let multipath = &mut self.multipaths[index as usize];
        if multipath.timer == now {
            multipath.timer = Instant::MAX;
            while let Some(path) = self.multipaths[index as usize].stream.overdue(now) {
                self.reconnect(now, index as usize, path);
            }
            self.hand_out(now, index as usize);
        }
    }

    /// Makes the connection of a path of the aggregate anew.
    fn reconnect(&mut self, now: Instant, aggregate: usize, path: usize) {
        let multipath = &mut self.multipaths[aggregate];
        multipath.stream.on_reconnect(now, path);
        let flow = multipath.flows[path];
        self.flows[flow].reconnect(now, &self.scenario.flows[flow], Source::fed(), &mut self.outbox);
        self.note(now, flow as u32, EventKind::Reconnect);
        self.after_sender(now, flow as u32);
    }

    fn on_receiver_timer(&mut self, now: Instant, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.receiver_timer != now {
            return;
        }
        flow.receiver_timer = Instant::MAX;
        if let Endpoints::Tcp { receiver, .. } = &mut flow.endpoints {
            let answer = receiver.on_timer(now);
            self.send_answer(now, index, answer);
        }
    }

    fn on_flow_stop(&mut self, now: Instant, index: u32) {
        if let Some(Half::Inward { outward }) = self.flows[index as usize].half {
            self.end_outward(now, index as usize, outward);
        }
        let flow = &mut self.flows[index as usize];
        let would_have = flow.will_complete();
        flow.stop();
        if would_have && !flow.will_complete() {
            self.flow_completed(now);
        }
    }

    fn flow_completed(&mut self, now: Instant) {
        self.incomplete -= 1;
        if self.incomplete == 0 && self.scenario.stop_when_complete {
            self.end = now;
        }
    }

    fn on_flow_start(&mut self, now: Instant, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.start(now, &mut self.outbox);
        let (subflow, half) = (flow.subflow, flow.half);
        if let Some(Half::Outward { client: Some(client), .. }) = half {
            self.enter_client(index as usize, client);
        }
        let flow = &mut self.flows[index as usize];
        let subflow = subflow.filter(|_| !matches!(half, Some(Half::Outward { .. })));
        if let Some(Subflow { aggregate, path }) = subflow {
            self.multipaths[aggregate].start(now, path);
        }
        if let Some(time) = flow.time_to_toggle() {
            self.context.events.schedule(now + time, Event::FlowToggle, index);
        }
        if let Some(Half::Inward { .. }) = half
            && let Endpoints::Tcp { sender, .. } = &mut self.flows[index as usize].endpoints
        {
            // Its data waits for the other half.
            sender.source.pause(now, 0);
        }
        self.note(now, index, EventKind::Started);
        self.after_sender(now, index);
        if let Some(Subflow { aggregate, .. }) = subflow {
            self.hand_out(now, aggregate);
        }
    }

    fn on_flow_toggle(&mut self, now: Instant, index: u32) {
        let flow = &mut self.flows[index as usize];
        flow.toggle(now, &self.scenario.flows[index as usize], &mut self.outbox);
        if let Some(time) = flow.time_to_toggle() {
            self.context.events.schedule(now + time, Event::FlowToggle, index);
        }
        flow.on_sender_wakeup(now, &mut self.outbox);
        self.after_sender(now, index);
    }

    /// Brings all queues up to date.
    fn catch_up(&mut self, now: Instant) {
        for index in 0..self.links.len() {
            self.links[index].catch_up(now, &mut self.context);
            self.account_for_dropped(index as u32);
        }
        // The meters settle only now, since packets that have left a link may have passed others since.
        for index in 0..self.links.len() {
            if let Some(meter) = self.meters().of(index) {
                meter.settle(now);
            }
        }
    }

    fn meters(&mut self) -> Meters<'_> {
        Meters { links: &mut self.links, routes: &mut self.context.routes }
    }

    fn on_warmup_end(&mut self, now: Instant) {
        self.catch_up(now);
        for index in 0..self.links.len() {
            if let Some(meter) = self.meters().of(index) {
                meter.statistics.restart(now);
            }
        }
        for flow in &mut self.flows {
            flow.begin_measuring(now);
        }
        for multipath in &mut self.multipaths {
            multipath.stream.begin_measuring(now);
        }
    }

    fn on_sample(&mut self, now: Instant) {
        if self.recorder.is_some() {
            self.catch_up(now);
        }
        let Some(recorder) = &mut self.recorder else { return };
        let interval = recorder.interval;
        self.context.events.schedule(now + interval, Event::Sample, 0);
        for (index, (flow, series)) in self.flows.iter().zip(&mut recorder.flows).enumerate() {
            if flow.started.is_none() {
                continue;
            }
            let delivered = flow.delivered();
            let before = std::mem::replace(&mut recorder.delivered[index], delivered.get());
            let goodput = Rate::of(delivered - Bytes::new(before), interval);
            series.begin(now);
            series.value("goodput_bps", goodput.as_bps_f64());
            if let Endpoints::Tcp { sender, receiver } = &flow.endpoints {
                sample_tcp(sender, receiver, series);
            }
        }
        for (multipath, series) in self.multipaths.iter_mut().zip(&mut recorder.aggregates) {
            if multipath.stream.has_started() {
                series.begin(now);
                multipath.stream.sample(interval, series);
            }
        }
        for (index, series) in &mut recorder.queues {
            let mut meters = Meters { links: &mut self.links, routes: &mut self.context.routes };
            if let Some(meter) = meters.of(*index) {
                series.begin(now);
                meter.statistics.sample(interval, series);
            }
            let link = &mut self.links[*index];
            link.probe(series);
            if let Some(shaper) = self.shapers.iter().find(|shaper| shaper.link as usize == *index) {
                shaper.probe(series);
            }
            if let Some(watch) = &mut link.watch {
                watch.sample(&self.flows, series);
            }
        }
        if let Some(watcher) = &mut self.watcher
            && let Some(watch) = &mut self.links[watcher.link].watch
        {
            watch.drain(&self.flows).for_each(|(seen, truth)| (watcher.on_packet)(&seen, truth));
        }
    }

    fn on_window(&mut self, now: Instant, index: u32) {
        self.catch_up(now);
        let mut meters = Meters { links: &mut self.links, routes: &mut self.context.routes };
        let events = &mut self.context.events;
        self.windows.on_event(now, index as usize, &mut meters, &self.flows, events);
    }

    fn note(&mut self, time: Instant, flow: u32, kind: EventKind) {
        if flow as usize >= self.reported {
            return;
        }
        if self.kept_events.len() < self.scenario.record.events {
            self.kept_events.push(ResultEvent { time, flow, kind });
        } else {
            self.events_not_kept += 1;
        }
    }

    fn into_result(mut self, end: Instant, labels: &[(String, String)]) -> RunResult {
        self.catch_up(end);
        if end < Instant::ZERO + self.scenario.record.warmup {
            // All was complete before anything was to be measured.
            self.on_warmup_end(end);
        }
        let mut meters = Meters { links: &mut self.links, routes: &mut self.context.routes };
        let windows = self.windows.finish(end, &mut meters, &self.flows);
        let meters: Vec<_> = (0..self.scenario.links.len()).map(|index| meters.take(index)).collect();
        let measured_from = (Instant::ZERO + self.scenario.record.warmup).min(end);
        let specs = self.scenario.flows[..self.reported].iter();
        let flows =
            self.flows.iter().zip(specs).map(|(flow, spec)| flow.result(spec, measured_from, end)).collect();
        let aggregates = (self.multipaths.iter_mut().zip(&self.scenario.aggregates))
            .map(|(multipath, spec)| stream_result(spec, &mut multipath.stream, (measured_from, end)))
            .collect();
        let queues = (self.links.iter().zip(meters))
            .filter_map(|(link, meter)| {
                Some(meter?.statistics.result(end, |from, to| link.potential(from, to)))
            })
            .collect();
        let (flow_series, queue_series, aggregate_series) =
            self.recorder.map_or_else(Default::default, |recorder| {
                (
                    recorder.flows.into_iter().map(SeriesBuilder::finish).collect(),
                    recorder.queues.into_iter().map(|(_, series)| series.finish()).collect(),
                    recorder.aggregates.into_iter().map(SeriesBuilder::finish).collect(),
                )
            });
        RunResult {
            scenario: self.scenario.name.clone(),
            labels: labels.to_vec(),
            seed: self.scenario.seed,
            duration: end.saturating_since(Instant::ZERO),
            measured: end.saturating_since(measured_from),
            flows,
            aggregates,
            applications: Vec::new(),
            queues,
            events: self.kept_events,
            events_not_kept: self.events_not_kept,
            windows,
            flow_series,
            aggregate_series,
            queue_series,
            emulated: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The time for which to schedule an event: that of `due`, unless one is `scheduled` that comes no later
/// and will look again.
fn brought_forward(scheduled: &mut Instant, due: Option<Instant>) -> Option<Instant> {
    let at = due.filter(|at| at < scheduled)?;
    *scheduled = at;
    Some(at)
}
