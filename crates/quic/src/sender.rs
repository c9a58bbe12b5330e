//! A sender of the registry under QUIC's loss recovery (RFC 9002).

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time;

use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Limits,
};
use suimon_units::{Bytes, Duration, Instant, Rate};

use crate::deliveries::Deliveries;
use crate::watch::{Seen, Watch};

/// The congestion control of one connection over one path.
///
/// With a feature of this crate it is a stack's controller. The driver of another stack calls the methods itself. Bytes
/// are those of packets that elicit acknowledgements, QUIC's headers included and UDP's not.
pub struct Sender {
    /// Locked by [`Clone`] and [`fmt::Debug`] alone: stacks ask for [`Sync`], which algorithms need not be.
    algorithm: Mutex<Box<dyn CongestionControl>>,
    /// The algorithm's window holds in recovery too.
    models_delivery: bool,
    limits: Limits,
    initial_window: Bytes,
    /// The largest UDP payload.
    mss: Bytes,
    /// The algorithm's [`Instant::ZERO`].
    began: time::Instant,
    /// The time of the latest event.
    now: Instant,
    in_flight: Bytes,
    /// Bytes that have left the network, acknowledged or lost.
    gone: Bytes,
    /// Bytes that the ACK frame under way acknowledges, and when the newest of their packets was sent.
    acked: Bytes,
    acked_sent: Instant,
    /// When the newest packet of all acknowledged ones was sent.
    newest_sent: Instant,
    /// `congestion_recovery_start_time` (RFC 9002 §B.2).
    recovery_began: Option<Instant>,
    /// The limits before the last cut because of a loss.
    before_cut: Option<Limits>,
    deliveries: Deliveries,
    watch: Option<Watch>,
}

/// The network's signal of congestion, as QUIC's loss recovery tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// So many bytes were lost.
    Packets(Bytes),
    /// So many bytes were lost, and all that was sent in a period of persistent congestion (RFC 9002 §7.6).
    Persistent(Bytes),
    /// The receiver has counted more congestion marks (RFC 9002 §7.1).
    Mark,
}

impl Sender {
    pub(crate) fn new(
        mut algorithm: Box<dyn CongestionControl>,
        now: time::Instant,
        mtu: u16,
        watch: Option<Watch>,
    ) -> Self {
        let mss = Bytes::new(u64::from(mtu));
        let initial_window = initial_window(mss);
        let mut limits = Limits::initial(initial_window);
        algorithm.on_established(Instant::ZERO, &mut limits);
        Self {
            models_delivery: algorithm.models_delivery(),
            algorithm: Mutex::new(algorithm),
            limits,
            initial_window,
            mss,
            began: now,
            now: Instant::ZERO,
            in_flight: Bytes::ZERO,
            gone: Bytes::ZERO,
            acked: Bytes::ZERO,
            acked_sent: Instant::ZERO,
            newest_sent: Instant::ZERO,
            recovery_began: None,
            before_cut: None,
            deliveries: Deliveries::new(),
            watch,
        }
    }

    /// Bytes that may be in flight.
    #[must_use]
    pub fn window(&self) -> Bytes {
        self.limits.cwnd.min(self.limits.space).max(self.minimum_window())
    }

    /// The window that the stack keeps to: without bound where its program does so ([`Watch::set_keeps_window`]).
    #[must_use]
    pub fn window_of_stack(&self) -> Bytes {
        if self.watch.as_ref().is_some_and(Watch::keeps_window) { UNBOUNDED } else { self.window() }
    }

    /// Bytes that could be in flight at the beginning.
    #[must_use]
    pub fn initial_window(&self) -> Bytes {
        self.initial_window
    }

    /// The slow-start threshold; `None` where there is none yet.
    #[must_use]
    pub fn ssthresh(&self) -> Option<Bytes> {
        (self.limits.ssthresh < Bytes::MAX).then_some(self.limits.ssthresh)
    }

    /// The rate at which bytes may leave, where the algorithm paces.
    #[must_use]
    pub fn pacing(&self) -> Option<Rate> {
        self.limits.pacing
    }

    /// UDP payloads have `mtu` bytes at most from now on.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.mss = Bytes::new(u64::from(mtu));
    }

    /// `bytes` leave. A stack may count packets that elicit no acknowledgement, too: the next ACK puts that right.
    pub fn on_sent(&mut self, now: time::Instant, bytes: Bytes) {
        self.now = self.since_beginning(now);
        self.in_flight += bytes;
        self.deliveries.on_sent(self.now);
        self.show(|seen| seen.sent += bytes);
    }

    /// The ACK frame under way acknowledges a packet of `bytes` that was `sent` at that time.
    pub fn on_packet_acked(&mut self, sent: time::Instant, bytes: Bytes) {
        self.acked += bytes;
        self.acked_sent = self.acked_sent.max(self.since_beginning(sent));
    }

    /// The ACK frame has acknowledged all its packets, and leaves `in_flight` bytes. `app_limited` says that the stack had nothing to
    /// send. Where the window had no room for two packets more, the window was the limit all the same (RFC 9002 §7.8): the application
    /// may have waited for room.
    pub fn on_acks_end(&mut self, now: time::Instant, in_flight: Bytes, app_limited: bool) {
        self.now = self.since_beginning(now);
        self.in_flight = in_flight;
        let delivered = std::mem::take(&mut self.acked);
        let sent = std::mem::take(&mut self.acked_sent);
        if delivered == Bytes::ZERO {
            return;
        }
        self.gone += delivered;
        // An ACK that came late tells no round trip (RFC 9002 §5.1).
        let rtt = (sent >= self.newest_sent).then(|| self.now.saturating_since(sent));
        self.newest_sent = self.newest_sent.max(sent);
        self.show(|seen| {
            seen.acknowledged += delivered;
            seen.app_limited = app_limited;
            if let Some(rtt) = rtt {
                seen.on_rtt(now, rtt);
            }
        });
        let prior_flight_size = in_flight + delivered;
        let app_limited = app_limited && prior_flight_size + self.mss * 2 < self.window();
        let ack = Ack {
            newly_acked: delivered,
            delivered,
            marked: Bytes::ZERO,
            rtt,
            // QUIC numbers packets, not bytes: what is gone and what is in flight make up a sequence as TCP has.
            snd_una: self.gone.get(),
            snd_nxt: (self.gone + in_flight).get(),
            flight_size: in_flight,
            prior_flight_size,
            // Streams have credit of their own, which controllers are not told.
            snd_wnd: Bytes::MAX,
            // A sender that only paces uses its window (RFC 9002 §7.8).
            cwnd_limited: !app_limited && self.limits.cwnd <= self.limits.space,
            app_limited,
            // What was sent before a cut grows no window (RFC 9002 §7.3.2).
            in_recovery: self.recovery_began.is_some_and(|began| sent <= began),
            // All that is acknowledged counts (RFC 9002 §B.5).
            counting: AckCounting::Delivered,
            ..Ack::new(self.now, delivered, self.mss)
        };
        let delivery = self.deliveries.on_ack(&ack, sent);
        let algorithm = own(&mut self.algorithm);
        if self.models_delivery {
            algorithm.on_delivery(&delivery);
        }
        algorithm.on_ack(&ack, &mut self.limits);
    }

    /// The path is congested, or seems to be; the newest packet that tells so was `sent` at that time.
    pub fn on_congestion(&mut self, now: time::Instant, sent: time::Instant, loss: Loss) {
        self.now = self.since_beginning(now);
        let (kind, lost) = match loss {
            Loss::Packets(bytes) => (CongestionKind::Loss, bytes),
            Loss::Persistent(bytes) => (CongestionKind::Timeout, bytes),
            Loss::Mark => (CongestionKind::Ecn, Bytes::ZERO),
        };
        // The window bounds what is in flight, but for probes; `on_sent` may have counted more.
        let flight_size = self.in_flight.min(self.window());
        let snd_nxt = (self.gone + self.in_flight).get();
        self.in_flight = self.in_flight.saturating_sub(lost);
        self.gone += lost;
        self.show(|seen| {
            seen.lost += lost;
            seen.persistent += u64::from(kind == CongestionKind::Timeout);
        });
        // One cut for all that was sent before it (RFC 9002 §7.3.2).
        let sent = self.since_beginning(sent);
        if self.recovery_began.is_some_and(|began| sent <= began) && kind != CongestionKind::Timeout {
            return;
        }
        self.recovery_began = Some(self.now);
        self.before_cut = (kind != CongestionKind::Ecn).then_some(self.limits);
        let event =
            Congestion { now: self.now, kind, flight_size, used_window: flight_size, snd_nxt, mss: self.mss };
        own(&mut self.algorithm).on_congestion(&event, &mut self.limits);
        if self.models_delivery {
            return;
        }
        self.limits.cwnd = match kind {
            // RFC 9002 §7.6.2.
            CongestionKind::Timeout => self.minimum_window(),
            // RFC 9002 §7.3.2 leaves the speed of the reduction open.
            _ => self.limits.cwnd.min(self.limits.ssthresh).max(self.minimum_window()),
        };
    }

    /// All packets that were taken for lost at the last cut have arrived.
    pub fn on_spurious_loss(&mut self) {
        let Some(before) = self.before_cut.take() else { return };
        self.recovery_began = None;
        self.limits.cwnd = self.limits.cwnd.max(before.cwnd);
        self.limits.ssthresh = before.ssthresh;
        own(&mut self.algorithm).on_spurious(self.now, &mut self.limits);
    }

    /// Lets the connection's program see a change, and what is in flight.
    fn show(&self, change: impl FnOnce(&mut Seen)) {
        let Some(watch) = &self.watch else { return };
        watch.update(|seen| {
            change(seen);
            seen.in_flight = self.in_flight;
        });
    }

    /// RFC 9002 §7.2.
    fn minimum_window(&self) -> Bytes {
        self.mss * 2
    }

    fn since_beginning(&self, at: time::Instant) -> Instant {
        // 2^64 ns are 584 years.
        Instant::ZERO + Duration::from_nanos(at.saturating_duration_since(self.began).as_nanos() as u64)
    }
}

/// The algorithm, without a lock: nobody else holds it.
fn own(algorithm: &mut Mutex<Box<dyn CongestionControl>>) -> &mut Box<dyn CongestionControl> {
    algorithm.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// More than any window. quinn and noq set no pace where a window has more than 32 bits.
const UNBOUNDED: Bytes = Bytes::new(1 << 62);

/// RFC 9002 §7.2.
fn initial_window(mss: Bytes) -> Bytes {
    (mss * 10).min(Bytes::new(14_720).max(mss * 2))
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        let algorithm = self.algorithm.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            algorithm: Mutex::new(algorithm),
            deliveries: self.deliveries.clone(),
            watch: self.watch.clone(),
            ..*self
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let algorithm = self.algorithm.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("Sender")
            .field("algorithm", &*algorithm)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use suimon_algorithms::registry::{Role, descriptions};

    use super::*;
    use crate::{SenderConfig, SenderError};

    const MTU: u16 = 1_200;
    const PACKET: Bytes = Bytes::new(MTU as u64);

    /// A connection whose clock the test moves.
    struct Path {
        sender: Sender,
        zero: time::Instant,
    }

    impl Path {
        fn new(name: &str, mtu: u16) -> Self {
            let zero = time::Instant::now();
            Self { sender: name.parse::<SenderConfig>().unwrap().begin(zero, mtu), zero }
        }

        fn at(&self, millis: u64) -> time::Instant {
            self.zero + time::Duration::from_millis(millis)
        }

        /// `packets` that were `sent` at that time are acknowledged at `now`, and `left` are in flight.
        fn ack(&mut self, now: u64, sent: u64, packets: u64, left: u64) {
            for _ in 0..packets {
                self.sender.on_packet_acked(self.at(sent), PACKET);
            }
            self.sender.on_acks_end(self.at(now), PACKET * left, false);
        }

        fn lose(&mut self, now: u64, sent: u64, loss: Loss) {
            self.sender.on_congestion(self.at(now), self.at(sent), loss);
        }
    }

    #[test]
    fn the_first_window_is_that_of_rfc_9002() {
        // Ten packets, at most 14720 bytes where two packets are less (§7.2).
        for (mtu, window) in [(1_200, 12_000), (1_472, 14_720), (1_473, 14_720), (9_000, 18_000)] {
            assert_eq!(Path::new("reno", mtu).sender.initial_window(), Bytes::new(window), "{mtu}");
        }
    }

    #[test]
    fn slow_start_grows_by_all_that_is_acknowledged() {
        let mut path = Path::new("reno", MTU);
        path.ack(100, 0, 10, 0);
        assert_eq!(path.sender.window(), PACKET * 20);
    }

    #[test]
    fn a_full_window_is_the_limit_also_where_the_stack_has_nothing_to_send() {
        let mut path = Path::new("reno", MTU);
        let mut ack_two_of = |in_flight: u64| {
            path.sender.on_packet_acked(path.at(0), PACKET * 2);
            path.sender.on_acks_end(path.at(100), PACKET * (in_flight - 2), true);
            path.sender.window()
        };
        assert_eq!(ack_two_of(7), PACKET * 10, "two more would have had room");
        assert_eq!(ack_two_of(8), PACKET * 12);
    }

    #[test]
    fn a_round_trip_has_one_cut_and_what_was_sent_before_it_grows_no_window() {
        let mut path = Path::new("reno", MTU);
        path.ack(100, 0, 10, 20);
        path.lose(110, 50, Loss::Packets(PACKET));
        let cut = path.sender.window();
        assert_eq!(cut, PACKET * 10, "half of what was in flight");
        path.lose(120, 109, Loss::Packets(PACKET));
        path.lose(121, 110, Loss::Mark);
        path.ack(150, 110, 5, 10);
        assert_eq!(path.sender.window(), cut);
        path.lose(250, 111, Loss::Mark);
        assert!(path.sender.window() < cut, "it was sent after the cut");
    }

    #[test]
    fn persistent_congestion_leaves_two_packets_also_in_recovery() {
        let mut path = Path::new("cubic", MTU);
        path.ack(100, 0, 10, 20);
        path.lose(110, 100, Loss::Packets(PACKET));
        path.lose(120, 101, Loss::Persistent(PACKET * 4));
        assert_eq!(path.sender.window(), PACKET * 2);
    }

    #[test]
    fn a_mistaken_cut_is_taken_back_once() {
        let mut path = Path::new("cubic", MTU);
        path.ack(100, 0, 10, 20);
        let before = (path.sender.window(), path.sender.ssthresh());
        path.lose(110, 50, Loss::Packets(PACKET));
        assert!(path.sender.window() < before.0);
        path.sender.on_spurious_loss();
        assert_eq!((path.sender.window(), path.sender.ssthresh()), before);
        path.lose(130, 120, Loss::Mark);
        let cut = path.sender.window();
        path.sender.on_spurious_loss();
        assert_eq!(path.sender.window(), cut, "a mark is no mistake");
    }

    #[test]
    fn a_copy_goes_its_own_way() {
        let mut path = Path::new("fs-at", MTU);
        let copy = path.sender.clone();
        path.ack(100, 0, 10, 0);
        assert!(path.sender.window() > copy.window());
        assert_eq!(copy.window(), copy.initial_window());
    }

    #[derive(Debug, Clone)]
    enum Event {
        Sent(u64),
        Acked { packets: u64, age: u64, in_flight: u64, app_limited: bool },
        Congestion { age: u64, loss: u64, persistent: bool },
        Spurious,
        Mtu(u16),
    }

    fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
        let event = prop_oneof![
            4 => (1..100_000_u64).prop_map(Event::Sent),
            4 => (0..100_u64, 0..3_000_u64, 0..10_000_000_u64, any::<bool>()).prop_map(
                |(packets, age, in_flight, app_limited)| Event::Acked { packets, age, in_flight, app_limited }
            ),
            1 => (0..3_000_u64, 0..10_u64, any::<bool>())
                .prop_map(|(age, loss, persistent)| Event::Congestion { age, loss, persistent }),
            1 => Just(Event::Spurious),
            1 => (1_200..9_000_u16).prop_map(Event::Mtu),
        ];
        prop::collection::vec((0..500_u64, event), 1..60)
    }

    proptest! {
        /// A peer may acknowledge what it likes when it likes.
        #[test]
        fn whatever_the_peer_says_two_packets_may_be_in_flight(events in events()) {
            for description in descriptions(Role::Congestion) {
                let config = match description.name.parse::<SenderConfig>() {
                    Err(SenderError::CountsMarks(_)) => continue,
                    config => config.unwrap(),
                };
                let zero = time::Instant::now();
                let mut sender = config.begin(zero, MTU);
                let (mut now, mut mtu) = (0, MTU);
                for (passed, event) in &events {
                    now += passed;
                    let at = |millis: u64| zero + time::Duration::from_millis(millis);
                    match *event {
                        Event::Sent(bytes) => sender.on_sent(at(now), Bytes::new(bytes)),
                        Event::Acked { packets, age, in_flight, app_limited } => {
                            for _ in 0..packets {
                                sender.on_packet_acked(at(now.saturating_sub(age)), PACKET);
                            }
                            sender.on_acks_end(at(now), Bytes::new(in_flight), app_limited);
                        }
                        Event::Congestion { age, loss, persistent } => {
                            let loss = match (PACKET * loss, persistent) {
                                (Bytes::ZERO, _) => Loss::Mark,
                                (bytes, true) => Loss::Persistent(bytes),
                                (bytes, false) => Loss::Packets(bytes),
                            };
                            sender.on_congestion(at(now), at(now.saturating_sub(age)), loss);
                        }
                        Event::Spurious => sender.on_spurious_loss(),
                        Event::Mtu(bytes) => {
                            sender.set_mtu(bytes);
                            mtu = bytes;
                        }
                    }
                    prop_assert!(sender.window().get() >= 2 * u64::from(mtu), "{}", description.name);
                }
            }
        }
    }
}
