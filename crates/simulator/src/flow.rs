//! A flow: its two endpoints, its routes, its application.

use std::sync::Arc;

use suimon_algorithms::RandomStream;
use suimon_link::{DelayMeter, FlowSums, FlowTally, FlowTimes};
use suimon_model::{self as model, Link, OnOff, StackProfile, TcpFlow, Traffic};
use suimon_results::{EventKind, FlowResult};
use suimon_units::{Bytes, Duration, Instant};

use crate::gateway::Half;
use crate::measure::SpreadMeter;
use crate::multipath::Subflow;
use crate::packet::{Packet, PacketKind};
use crate::routes::{NOWHERE, Planner};
use crate::tcp::{Counters, Receiver, Sender, Source};
use crate::udp::DatagramSource;

/// A flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) endpoints: Endpoints,
    pub(crate) there: Way,
    pub(crate) back: Way,
    /// The aggregate that it carries data for.
    pub(crate) subflow: Option<Subflow>,
    /// The half of a split connection that it is.
    pub(crate) half: Option<Half>,
    /// Of the half toward a gateway: the other half is there too.
    pub(crate) joined: bool,
    /// When the next event of each kind that counts happens; others are stale.
    pub(crate) sender_timer: Instant,
    pub(crate) sender_turn: Instant,
    pub(crate) receiver_timer: Instant,
    /// The time when its connection was last made anew.
    reconnected: Option<Instant>,
    /// Bytes that earlier connections sent for the first time, and those that they delivered.
    sent_before: u64,
    delivered_before: u64,
    pub(crate) started: Option<Instant>,
    pub(crate) completed: Option<Instant>,
    /// The last time when payload reached the receiving application.
    pub(crate) last_delivery: Instant,
    on_off: Option<OnOff>,
    random: RandomStream,
    /// The counts made in the network; the rest is counted at the flow's ends.
    pub(crate) tally: FlowTally,
    pub(crate) spread: Option<Box<SpreadMeter>>,
    /// The tally when the warm-up ended.
    before_measuring: FlowTally,
}

/// The common fields of all packets in one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// The start of its route.
    pub(crate) hop: u32,
    /// Bytes beside the payload.
    pub(crate) header: u32,
    /// Numbers of the nodes that it leads from and to.
    pub(crate) source: u16,
    pub(crate) destination: u16,
}

#[derive(Debug)]
pub(crate) enum Endpoints {
    Tcp { sender: Box<Sender>, receiver: Box<Receiver> },
    Udp { source: DatagramSource, received: u64, delays: Box<DelayMeter>, echo: bool },
}

impl Endpoints {
    /// Both ends of a connection, with `profile` of `tcp`, for the data of `source`.
    fn tcp(tcp: &TcpFlow, profile: Arc<StackProfile>, source: Source) -> Self {
        let cc = tcp.cc.build_congestion();
        let window = tcp.receiver.build_receiver(tcp.window);
        let receiver = Receiver::new(Arc::clone(&profile), window, tcp.window, cc.mark_response());
        let sender = Sender::new(profile, cc, source);
        Self::Tcp { sender: Box::new(sender), receiver: Box::new(receiver) }
    }
}

/// Profiles in use, so that a hundred thousand flows share one.
#[derive(Debug, Default)]
pub(crate) struct Profiles(Vec<Arc<StackProfile>>);

impl Profiles {
    fn share(&mut self, profile: &StackProfile) -> Arc<StackProfile> {
        if let Some(known) = self.0.iter().find(|known| ***known == *profile) {
            return Arc::clone(known);
        }
        self.0.push(Arc::new(profile.clone()));
        Arc::clone(&self.0[self.0.len() - 1])
    }
}

impl Flow {
    pub(crate) fn new<'a>(
        flow: &'a model::Flow,
        seed: u64,
        routes: &mut Planner<'a>,
        profiles: &mut Profiles,
        subflow: Option<Subflow>,
        half: Option<Half>,
        rate_spread: Option<u64>,
    ) -> Self {
        let (endpoints, on_off) = match &flow.traffic {
            Traffic::Tcp(tcp) => {
                let tcp = match (half, &tcp.gateway) {
                    (Some(Half::Outward { .. }), Some(gateway)) => {
                        &TcpFlow { cc: gateway.cc.clone(), ..(**tcp).clone() }
                    }
                    _ => &**tcp,
                };
                let source = match (subflow, half) {
                    (_, Some(Half::Outward { .. })) => Source::split(tcp.size),
                    (Some(_), _) => Source::fed(),
                    (None, _) => Source::new(tcp.size, tcp.application_rate),
                };
                let mut endpoints = Endpoints::tcp(tcp, profiles.share(&tcp.profile), source);
                if let (Endpoints::Tcp { receiver, .. }, Some(Half::Inward { .. })) = (&mut endpoints, half) {
                    receiver.leave_unread();
                }
                (endpoints, tcp.on_off)
            }
            Traffic::Udp(udp) => {
                let (source, delays) = (DatagramSource::new(udp), Box::default());
                (Endpoints::Udp { source, received: 0, delays, echo: udp.echo }, udp.on_off)
            }
        };
        let there = match &flow.via {
            Some(via) => routes.over(via),
            None => routes.between(&flow.from, &flow.to),
        };
        let (answered, header) = match &flow.traffic {
            // The payload of a datagram counts as all of it.
            Traffic::Udp(udp) => (udp.echo, Bytes::ZERO),
            Traffic::Tcp(tcp) => (true, tcp.profile.header),
        };
        let back = match &flow.via {
            // There need not be a way back.
            _ if !answered => NOWHERE,
            None => routes.between(&flow.to, &flow.from),
            Some(via) => {
                let back: Vec<_> = via.iter().rev().map(|link| Link::other_direction(link)).collect();
                routes.over(&back)
            }
        };
        let header = header.get() as u32;
        let (source, destination) = (routes.number_of(&flow.from), routes.number_of(&flow.to));
        Self {
            endpoints,
            there: Way { hop: there, header, source, destination },
            back: Way { hop: back, header, source: destination, destination: source },
            subflow,
            half,
            joined: false,
            sender_timer: Instant::MAX,
            sender_turn: Instant::MAX,
            receiver_timer: Instant::MAX,
            reconnected: None,
            sent_before: 0,
            delivered_before: 0,
            started: None,
            completed: None,
            last_delivery: Instant::ZERO,
            on_off,
            random: flow.random(seed),
            tally: FlowTally::default(),
            spread: rate_spread.map(|packets| Box::new(SpreadMeter::new(packets))),
            before_measuring: FlowTally::default(),
        }
    }

    /// The time of the start of this flow, which is that of `spec`.
    pub(crate) fn start_time(&mut self, scenario: &model::Scenario, spec: &model::Flow) -> Instant {
        scenario.drawn_start(spec, &mut self.random)
    }

    /// The application begins to send.
    pub(crate) fn start(&mut self, now: Instant, out: &mut Vec<Packet>) {
        self.started = Some(now);
        if let Some(spread) = &mut self.spread {
            spread.begin(now);
        }
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } => {
                sender.source.resume(now);
                sender.open(now, out);
            }
            Endpoints::Udp { source, .. } => source.set_active(now, true),
        }
    }

    /// Gives up the connection, which is that of `spec`, and begins another for the data of `source`; data that the old
    /// one had not delivered is gone.
    pub(crate) fn reconnect(
        &mut self,
        now: Instant,
        spec: &model::Flow,
        source: Source,
        out: &mut Vec<Packet>,
    ) {
        let (Endpoints::Tcp { sender, receiver }, Traffic::Tcp(tcp)) = (&mut self.endpoints, &spec.traffic)
        else {
            return;
        };
        self.sent_before += sender.taken();
        self.delivered_before += receiver.delivered();
        self.reconnected = Some(now);
        let counters = std::mem::take(&mut sender.counters);
        let mut anew = Endpoints::tcp(tcp, sender.profile(), source);
        if let Endpoints::Tcp { sender, .. } = &mut anew {
            sender.counters = Counters { event: None, ..counters };
            sender.open(now, out);
        }
        self.endpoints = anew;
    }

    /// `packet` belongs to a connection that was given up.
    pub(crate) fn gave_up(&self, packet: &Packet) -> bool {
        self.reconnected.is_some_and(|at| {
            // Nothing but a SYN and its answer can be of the new connection at that very time.
            let opens = matches!(packet.kind, PacketKind::Syn | PacketKind::SynAck);
            packet.ts_val < at || (packet.ts_val == at && !opens)
        })
    }

    /// The application ends for good.
    pub(crate) fn stop(&mut self) {
        self.on_off = None;
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } => {
                let taken = sender.taken();
                sender.source.end(taken);
            }
            Endpoints::Udp { source, .. } => source.end(),
        }
    }

    /// Whether the flow has a size, and will complete once all of that has got through.
    pub(crate) fn will_complete(&self) -> bool {
        match &self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.source.will_complete(),
            Endpoints::Udp { source, .. } => source.will_complete(),
        }
    }

    /// The application falls silent or starts again.
    pub(crate) fn toggle(&mut self, now: Instant, spec: &model::Flow, out: &mut Vec<Packet>) {
        let Some(on_off) = self.on_off else { return };
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } if sender.source.is_active() => {
                let taken = sender.taken();
                sender.source.pause(now, taken);
            }
            Endpoints::Tcp { sender, .. } if on_off.reconnect => {
                let mut source = sender.source.anew();
                source.resume(now);
                self.reconnect(now, spec, source, out);
            }
            Endpoints::Tcp { sender, .. } => sender.source.resume(now),
            Endpoints::Udp { source, .. } => source.set_active(now, !source.is_active()),
        }
    }

    /// The time until the application falls silent or starts again.
    pub(crate) fn time_to_toggle(&mut self) -> Option<Duration> {
        let on_off = self.on_off?;
        let active = match &self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.source.is_active(),
            Endpoints::Udp { source, .. } => source.is_active(),
        };
        Some(self.random.exponential(if active { on_off.on } else { on_off.off }))
    }

    /// The time when the sender's timer runs out.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        match &self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.timer(),
            Endpoints::Udp { .. } => None,
        }
    }

    /// The time when the sender has more to send, if nothing arrives before.
    #[inline(always)]
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        match &self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.next_turn(),
            Endpoints::Udp { source, .. } => source.next_turn(),
        }
    }

    /// The sender's event that is worth a line in the results, told once.
    #[inline(always)]
    pub(crate) fn take_event(&mut self) -> Option<EventKind> {
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.counters.event.take(),
            Endpoints::Udp { source, .. } => {
                (source.is_complete() && self.completed.is_none()).then_some(EventKind::Completed)
            }
        }
    }

    pub(crate) fn on_sender_wakeup(&mut self, now: Instant, out: &mut Vec<Packet>) {
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } => sender.on_wakeup(now, out),
            Endpoints::Udp { source, .. } => source.on_wakeup(now, out),
        }
    }

    /// Payload that has reached the receiving application.
    pub(crate) fn delivered(&self) -> Bytes {
        Bytes::new(match &self.endpoints {
            Endpoints::Tcp { receiver, .. } => self.delivered_before + receiver.delivered(),
            Endpoints::Udp { received, .. } => *received,
        })
    }

    /// The sums that windows keep of the flow.
    pub(crate) fn sums(&self) -> FlowSums {
        let (entered, retransmissions) = match &self.endpoints {
            Endpoints::Tcp { sender, .. } => {
                (self.sent_before + sender.taken(), sender.counters.retransmissions)
            }
            Endpoints::Udp { source, .. } => (source.bytes_sent.get(), 0),
        };
        FlowSums { entered, delivered: self.delivered().get(), retransmissions }
    }

    fn current(&self) -> FlowTally {
        let mut tally = FlowTally { delivered: self.delivered().get(), ..self.tally };
        match &self.endpoints {
            Endpoints::Tcp { sender, .. } => {
                let counters = &sender.counters;
                tally.sent = counters.packets_sent;
                tally.retransmissions = counters.retransmissions;
                tally.window_cuts = counters.window_cuts;
                tally.timeouts = counters.timeouts;
                tally.spurious = counters.spurious;
                tally.rtt_samples = counters.rtt_samples;
                tally.rtt_sum = counters.rtt_sum;
            }
            Endpoints::Udp { source, .. } => tally.sent = source.packets_sent,
        }
        tally
    }

    /// The warm-up is over.
    pub(crate) fn begin_measuring(&mut self, now: Instant) {
        self.before_measuring = self.current();
        if let Some(spread) = &mut self.spread {
            spread.begin(now);
        }
        match &mut self.endpoints {
            Endpoints::Tcp { sender, .. } => {
                (sender.counters.rtt_min, sender.counters.rtt_max) = (None, None);
            }
            Endpoints::Udp { delays, .. } => delays.begin_measuring(now),
        }
    }

    pub(crate) fn result(&self, flow: &model::Flow, measured_from: Instant, end: Instant) -> FlowResult {
        let (rtt_min, rtt_max) = match &self.endpoints {
            Endpoints::Tcp { sender, .. } => (sender.counters.rtt_min, sender.counters.rtt_max),
            Endpoints::Udp { .. } => (None, None),
        };
        let times =
            FlowTimes { started: self.started, completed: self.completed, last_delivery: self.last_delivery };
        FlowResult {
            rtt_min,
            rtt_max,
            rate_spread: self.spread.as_ref().and_then(|spread| spread.result()),
            datagrams: match &self.endpoints {
                Endpoints::Tcp { .. } => None,
                Endpoints::Udp { delays, .. } => delays.result(),
            },
            ..self.current().result(&self.before_measuring, flow, times, (measured_from, end))
        }
    }
}
