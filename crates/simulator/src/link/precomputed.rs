//! A shortcut: a queue that decides everything as packets come.

use suimon_algorithms::queue::policy::{Arrival, ArrivalPolicy, Verdict};
use suimon_algorithms::queue::{Backlog, Buffer, DropReason, Dropped, Ecn, Packet as _};
use suimon_link::{Observer, Transmitter};
use suimon_units::{Bytes, Duration, Instant};

use super::meter::Meter;
use super::sink::Sink;
use crate::packet::Frame;
use crate::pieces::Pieces;

/// A port whose departures are computed as packets come.
///
/// Where a policy judges arrivals, and packets leave in the order of their arrival, the time at which a packet leaves is
/// known as soon as it has been let join: the packet itself is on its way then, and only its departure is kept.
#[derive(Debug)]
pub(super) struct Precomputed {
    transmitter: Transmitter,
    policy: Box<dyn ArrivalPolicy>,
    /// The buffer of a policy that is tail drop: nobody else need be asked.
    tail_drop: Option<Buffer>,
    /// A packet that need not wait need not be shown to the policy.
    idle_passes: bool,
    departures: Pieces<Departure>,
    backlog: Backlog,
}

/// A packet that waits.
#[derive(Debug, Clone, Copy)]
struct Departure {
    /// The time when it leaves the queue.
    turn: Instant,
    /// The time that it has waited then.
    waited: Duration,
    size: u32,
    newly_marked: bool,
}

impl Precomputed {
    pub(super) fn new(transmitter: Transmitter, policy: Box<dyn ArrivalPolicy>, buffer: Buffer) -> Self {
        let mut new = Self {
            idle_passes: policy.capabilities().idle_passes || transmitter.is_unlimited(),
            tail_drop: policy.capabilities().tail_drop.then_some(buffer),
            transmitter,
            policy,
            departures: Pieces::default(),
            backlog: Backlog::default(),
        };
        new.tell_rate(Instant::ZERO);
        new
    }

    pub(super) fn policy(&self) -> &dyn ArrivalPolicy {
        &*self.policy
    }

    pub(super) fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }

    /// Takes in a packet that comes at the time it bears.
    #[inline(always)]
    pub(super) fn offer(&mut self, frame: &mut Frame, sink: &mut Sink<'_>) {
        let now = frame.time;
        let idle = now >= self.transmitter.free_at();
        let passes = idle && self.idle_passes;
        if self.transmitter.rate_varies() && !passes {
            self.tell_rate(now);
        }
        self.leave(now, sink.meter);
        let mut newly_marked = false;
        if !passes {
            match self.judge(now, frame) {
                Verdict::Pass => {}
                Verdict::Mark => {
                    newly_marked = frame.ecn != Ecn::CongestionExperienced;
                    frame.mark_congestion_experienced();
                }
                Verdict::Drop(reason) => return sink.dropped().push(Dropped { packet: *frame, reason }),
            }
        }
        let turn = now.max(self.transmitter.free_at());
        let service = self.transmitter.send(turn, now < turn, frame.size());
        let waited = service.starts.saturating_since(now);
        if !idle {
            self.join(Departure { turn, waited, size: frame.size, newly_marked });
            sink.on_backlog(now, self.backlog);
        } else {
            if !passes {
                self.tell_departure(now, frame.size());
            }
            sink.on_sent(frame, service, waited, newly_marked);
        }
        let arrival = service.ends + self.transmitter.delay();
        if let Some(arrival) = self.transmitter.impair(service.ends, arrival) {
            frame.time = arrival;
            sink.travel(frame);
        }
    }

    #[inline(always)]
    fn judge(&mut self, now: Instant, frame: &Frame) -> Verdict {
        match self.tail_drop {
            Some(buffer) if buffer.admits(self.backlog, frame.size()) => Verdict::Pass,
            Some(_) => Verdict::Drop(DropReason::Overflow),
            None => self.policy.judge(&Arrival::of(frame, now, self.backlog)),
        }
    }

    #[inline(always)]
    fn tell_departure(&mut self, now: Instant, size: Bytes) {
        if self.tail_drop.is_none() {
            self.policy.on_departure(now, size, self.backlog);
        }
    }

    /// One more waits.
    fn join(&mut self, packet: Departure) {
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::new(u64::from(packet.size));
        self.departures.push_back(packet);
    }

    /// Takes note of the packets that have left by `now`.
    #[inline(always)]
    pub(super) fn leave(&mut self, now: Instant, meter: &mut Option<Box<Meter>>) {
        while let Some(&first) = self.departures.front()
            && first.turn <= now
        {
            self.departures.pass_front();
            let size = Bytes::new(u64::from(first.size));
            self.backlog.packets -= 1;
            self.backlog.bytes -= size;
            self.tell_departure(first.turn, size);
            if let Some(meter) = meter {
                meter.statistics.on_sent(first.size, first.waited, first.newly_marked);
                meter.statistics.on_backlog(first.turn, self.backlog);
            }
        }
    }

    /// Tells the policy the rate, where it is new.
    #[cold]
    fn tell_rate(&mut self, now: Instant) {
        if let Some(rate) = self.transmitter.new_rate(now) {
            self.policy.on_link_rate(now, rate);
        }
    }
}
