//! Congestion control: the limits of a sender's flight and rate.
//!
//! TCP's mechanics (loss detection, recovery, timers) belong to the endpoint; an algorithm sees
//! events and writes [`Limits`]. The limits are handed in and out rather than kept inside, so that a
//! wrapper such as FS-AT can correct the decision of the algorithm below it, and recovery can move
//! `cwnd` toward `ssthresh` packet by packet, without either knowing the other's state.

pub mod abe;
pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod cdg;
pub mod compound;
pub mod copa;
pub mod cubic;
pub mod cubic_2_1;
pub mod cubic_linux;
pub mod dctcp;
pub mod fs_at;
pub mod fs_at_open;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
mod hystart;
pub mod hystart_plus_plus;
pub mod illinois;
pub mod ledbat_plus_plus;
pub mod lia;
pub mod lp;
pub mod nv;
pub mod prague;
pub mod reno;
pub mod scalable;
pub mod sprout_ewma;
pub mod vegas;
pub mod vegas_linux;
pub mod veno;
pub mod verus;
pub mod vivace;
pub mod westwood;
mod whole_curve;
mod window;
pub mod yeah;

use alloc::boxed::Box;
use core::fmt::Debug;

use dyn_clone::{DynClone, clone_trait_object};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::probe::Probe;
use crate::queue::Ecn;

/// One connection's congestion control.
pub trait CongestionControl: Debug + Send + DynClone {
    /// The connection is established; `limits` hold the stack's initial window.
    fn on_established(&mut self, _now: Instant, _limits: &mut Limits) {}

    /// An acknowledgement arrived and the scoreboard was updated; nothing was sent in response yet.
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits);

    /// The network is congested, or seems to be: set `limits.ssthresh`. The endpoint then brings
    /// `cwnd` there, by its own recovery algorithm (or to one segment after a timeout).
    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits);

    /// The last congestion event was a mistake. The endpoint has restored the `cwnd` and `ssthresh`
    /// of before; restore all else that the event changed.
    fn on_spurious(&mut self, _now: Instant, _limits: &mut Limits) {}

    /// True where [`CongestionControl::on_delivery`] is to be called, and where the window is this
    /// algorithm's alone, also in recovery and after idle times. Asked once.
    fn models_delivery(&self) -> bool {
        false
    }

    /// How it takes congestion marks. Asked once.
    fn mark_response(&self) -> MarkResponse {
        MarkResponse::Once
    }

    /// The delivery rate sample of the ACK that [`CongestionControl::on_ack`] is about to get; not called where
    /// the ACK delivers nothing. A call before [`CongestionControl::on_established`] gives the round trip of the
    /// handshake, where it is known, without data and without a rate.
    fn on_delivery(&mut self, _delivery: &Delivery) {}

    /// Tells the inner values that are worth plotting.
    fn probe(&self, _out: &mut dyn Probe) {}
}

clone_trait_object!(CongestionControl);

impl CongestionControl for Box<dyn CongestionControl> {
    fn on_established(&mut self, now: Instant, limits: &mut Limits) {
        (**self).on_established(now, limits);
    }
    fn on_ack(&mut self, ack: &Ack, limits: &mut Limits) {
        (**self).on_ack(ack, limits);
    }
    fn on_congestion(&mut self, event: &Congestion, limits: &mut Limits) {
        (**self).on_congestion(event, limits);
    }
    fn on_spurious(&mut self, now: Instant, limits: &mut Limits) {
        (**self).on_spurious(now, limits);
    }
    fn models_delivery(&self) -> bool {
        (**self).models_delivery()
    }
    fn on_delivery(&mut self, delivery: &Delivery) {
        (**self).on_delivery(delivery);
    }
    fn mark_response(&self) -> MarkResponse {
        (**self).mark_response()
    }
    fn probe(&self, out: &mut dyn Probe) {
        (**self).probe(out);
    }
}

/// How a congestion control takes congestion marks, which decides how both ends of the connection use ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkResponse {
    /// One cut for any number of marks within a round trip, where the stack negotiates ECN: the receiver
    /// repeats its echo until the cut is announced (RFC 3168 §6.1).
    Once,
    /// By their share: ECN is used whatever the stack does by itself, the receiver tells which segments were
    /// marked (RFC 8257 §3.2), and packets carry this code point.
    ByShare(Ecn),
    /// Not at all: its packets say that their transport does not understand marks, so that queues drop instead of
    /// marking in vain (RFC 3168 §6.1.2 asks of a transport that takes marks to answer them as it answers losses).
    Never,
}

/// The limits of the sender, which obeys all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold.
    pub ssthresh: Bytes,
    /// A further limit on the flight, beside `cwnd` and the peer's window; [`Bytes::MAX`] when unused.
    pub space: Bytes,
    /// Rate at which payload may leave, where the algorithm paces; `None` leaves it to the stack.
    pub pacing: Option<Rate>,
}

impl Limits {
    /// A connection's first limits: slow start without a threshold.
    #[must_use]
    pub const fn initial(window: Bytes) -> Self {
        Self { cwnd: window, ssthresh: Bytes::MAX, space: Bytes::MAX, pacing: None }
    }

    /// True below the slow-start threshold (RFC 5681 §3.1).
    #[must_use]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// An acknowledgement, as seen by the sender once its scoreboard is up to date.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// How far it moved `snd_una`.
    pub newly_acked: Bytes,
    /// Bytes that it confirms at the receiver for the first time, cumulatively or selectively.
    pub delivered: Bytes,
    /// Bytes of `delivered` that bore a congestion mark; all zero where the receiver does not tell
    /// ([`MarkResponse::Once`]).
    pub marked: Bytes,
    /// Round-trip time of a segment that `snd_una` passed with this ACK, the first or the last as the
    /// stack has it; `None` where nothing or a retransmission was acknowledged, whose time would be
    /// ambiguous. With Linux also that of a segment that was selectively acknowledged.
    pub rtt: Option<Duration>,
    /// Oldest unacknowledged byte, counted from the start of the connection.
    pub snd_una: u64,
    /// Next new byte to be sent.
    pub snd_nxt: u64,
    /// Bytes in flight now: sent, and neither acknowledged nor selectively acknowledged nor lost.
    pub flight_size: Bytes,
    /// Bytes in flight before this ACK.
    pub prior_flight_size: Bytes,
    /// Bytes that the peer's advertised window and the send buffer let be outstanding.
    pub snd_wnd: Bytes,
    /// Maximum segment size.
    pub mss: Bytes,
    /// The window, rather than the application or the peer, held the sender back.
    pub cwnd_limited: bool,
    /// The application, rather than any window, held the sender back.
    pub app_limited: bool,
    /// In fast recovery or after a timeout: an algorithm does not grow its window.
    pub in_recovery: bool,
    /// How the stack counts ACKs when it grows a window.
    pub counting: AckCounting,
    /// The other connections that carry the same stream.
    pub siblings: Siblings,
}

/// What coupled congestion control sees of the other connections that carry the same stream: nothing where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Siblings {
    /// The sum of their windows over their round-trip times, in bytes per second.
    pub rate: f64,
    /// The largest of their windows over the squares of their round-trip times, in bytes per square second.
    pub steepest: f64,
}

impl Siblings {
    /// With one more, of a window and a smoothed round-trip time.
    #[must_use]
    pub fn with(self, cwnd: Bytes, srtt: Duration) -> Self {
        let srtt = srtt.as_secs_f64();
        let rate = cwnd.as_f64() / srtt;
        Self { rate: self.rate + rate, steepest: self.steepest.max(rate / srtt) }
    }
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00 §3.1.3): from when the
/// segment that was sent last among those delivered now was sent, until now.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// `C.delivered`: payload confirmed since the connection began.
    pub total: Bytes,
    /// `rs.prior_delivered`: the same when that segment was sent.
    pub total_when_sent: Bytes,
    /// `rs.delivery_rate`; `None` where the sample spans less than the smallest round trip, and so is of a
    /// burst of acknowledgements.
    pub rate: Option<Rate>,
    /// `rs.is_app_limited`: the application had nothing to send when that segment was sent.
    pub app_limited: bool,
    /// Round-trip time of that segment; `None` where it was a retransmission.
    pub rtt: Option<Duration>,
    /// `TSval` of the ACK (RFC 7323 §3): when the peer sent it, by a clock of the peer's own that most stacks let tick
    /// once in a millisecond. `None` where the connection has no timestamps.
    pub ts_val: Option<u32>,
    /// When pacing lets the next segment out; not after the ACK where it need not wait.
    pub next_departure: Instant,
}

/// How a stack turns acknowledgements into window growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckCounting {
    /// One segment per ACK, whatever it covers (RFC 2581).
    PerAck,
    /// The bytes an ACK covers (RFC 3465), at most this many segments per ACK in slow start.
    Bytes {
        /// `L` of RFC 3465 §2.2.
        limit: u32,
    },
    /// The bytes that an ACK confirms for the first time, cumulatively or selectively, without a limit, as Linux since
    /// 3.15: the ACK that ends a recovery grows no window by what was selectively acknowledged before.
    Delivered,
}

impl Ack {
    /// An acknowledgement at `now` that confirms `delivered` in order, of segments of `mss`. Nothing is marked, and
    /// only the window holds the sender back. The round-trip time, the sequence numbers and the flight are to be set.
    #[must_use]
    pub const fn new(now: Instant, delivered: Bytes, mss: Bytes) -> Self {
        Self {
            now,
            newly_acked: delivered,
            delivered,
            marked: Bytes::ZERO,
            rtt: None,
            snd_una: 0,
            snd_nxt: 0,
            flight_size: Bytes::ZERO,
            prior_flight_size: Bytes::ZERO,
            snd_wnd: Bytes::MAX,
            mss,
            cwnd_limited: true,
            app_limited: false,
            in_recovery: false,
            counting: AckCounting::Bytes { limit: 2 },
            siblings: Siblings { rate: 0.0, steepest: 0.0 },
        }
    }

    /// Bytes that this ACK adds to `cwnd` in slow start: only bytes acknowledged for the first time, since a
    /// filled hole also covers bytes that were selectively acknowledged and left the network before.
    #[must_use]
    pub fn slow_start_credit(&self) -> Bytes {
        let news = self.newly_acked.min(self.delivered);
        match self.counting {
            AckCounting::PerAck => news.min(self.mss),
            AckCounting::Bytes { limit } => news.min(self.mss * u64::from(limit)),
            AckCounting::Delivered => self.delivered,
        }
    }

    /// Bytes that this ACK counts for in congestion avoidance.
    #[must_use]
    pub fn avoidance_credit(&self) -> Bytes {
        match self.counting {
            AckCounting::PerAck => self.newly_acked.min(self.mss),
            AckCounting::Bytes { .. } => self.newly_acked,
            AckCounting::Delivered => self.delivered,
        }
    }
}

/// A congestion event, as seen by the sender.
#[derive(Debug, Clone, Copy)]
pub struct Congestion {
    /// When it was noticed.
    pub now: Instant,
    /// The signal.
    pub kind: CongestionKind,
    /// Bytes in flight just before.
    pub flight_size: Bytes,
    /// What Reno halves: `flight_size` (RFC 5681 §3.1, eq. 4), or the congestion window on a stack of Linux, in an even
    /// number of segments.
    pub used_window: Bytes,
    /// Next new byte to be sent.
    pub snd_nxt: u64,
    /// Maximum segment size.
    pub mss: Bytes,
}

/// The signal of congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionKind {
    /// Segments were lost and fast recovery begins.
    Loss,
    /// The receiver echoed a congestion mark (RFC 3168).
    Ecn,
    /// The retransmission timer ran out.
    Timeout,
}

#[cfg(test)]
pub(crate) mod testing {
    //! Events for the algorithms' tests; a test overrides the fields that it is about.

    use super::*;

    pub(crate) const MSS: Bytes = Bytes::new(1_448);

    /// A plain ACK for `segments` full segments, 100 ms into the connection.
    pub(crate) fn ack(segments: u64) -> Ack {
        Ack {
            now: Instant::ZERO + Duration::from_millis(100),
            newly_acked: MSS * segments,
            delivered: MSS * segments,
            marked: Bytes::ZERO,
            rtt: Some(Duration::from_millis(100)),
            snd_una: (MSS * segments).get(),
            snd_nxt: (MSS * 20).get(),
            flight_size: MSS * 10,
            prior_flight_size: MSS * (10 + segments),
            snd_wnd: Bytes::new(96_000),
            mss: MSS,
            cwnd_limited: true,
            app_limited: false,
            in_recovery: false,
            counting: AckCounting::PerAck,
            siblings: Siblings::default(),
        }
    }

    /// A loss noticed while `segments` were in flight.
    pub(crate) fn loss(segments: u64) -> Congestion {
        Congestion {
            now: Instant::ZERO + Duration::from_millis(200),
            kind: CongestionKind::Loss,
            flight_size: MSS * segments,
            used_window: MSS * segments,
            snd_nxt: (MSS * 20).get(),
            mss: MSS,
        }
    }

    pub(crate) fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A path that delivers `rate` at `rtt`, seen from an ACK each millisecond, which is one segment.
    pub(crate) struct Path<C> {
        pub(crate) cc: C,
        pub(crate) limits: Limits,
        pub(crate) millis: u64,
        pub(crate) delivered: u64,
        /// In segments.
        pub(crate) flight: u64,
        pub(crate) rate: Rate,
        pub(crate) rtt: Duration,
    }

    impl<C: CongestionControl> Path<C> {
        pub(crate) const RATE: Rate = Rate::from_bps(11_584_000);
        pub(crate) const RTT: Duration = Duration::from_millis(50);
        /// The bandwidth-delay product of [`Self::RATE`] and [`Self::RTT`], in segments.
        pub(crate) const BDP: u64 = 50;

        pub(crate) fn new(mut cc: C, flight: u64) -> Self {
            let mut limits = Limits::initial(MSS * 10);
            cc.on_established(at(0), &mut limits);
            Self { cc, limits, millis: 0, delivered: 0, flight, rate: Self::RATE, rtt: Self::RTT }
        }

        /// The next segment arrives, and `lost` others are given up.
        pub(crate) fn ack(&mut self, lost: u64) {
            self.millis += 1;
            self.delivered += 1;
            self.cc.on_delivery(&Delivery {
                total: MSS * self.delivered,
                total_when_sent: MSS * self.delivered.saturating_sub(self.flight),
                rate: Some(self.rate),
                app_limited: false,
                rtt: Some(self.rtt),
                ts_val: None,
                next_departure: at(self.millis),
            });
            let event = Ack {
                now: at(self.millis),
                snd_una: (MSS * self.delivered).get(),
                flight_size: MSS * (self.flight - lost - 1),
                prior_flight_size: MSS * self.flight,
                ..ack(1)
            };
            self.cc.on_ack(&event, &mut self.limits);
        }
    }
}
