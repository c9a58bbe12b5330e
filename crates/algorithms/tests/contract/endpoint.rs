//! The least of an endpoint, which drives a congestion control by events.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use suimon_algorithms::congestion::{
    Ack, AckCounting, Congestion, CongestionControl, CongestionKind, Delivery, Limits, Siblings,
};
use suimon_algorithms::registry::AlgorithmSpec;
use suimon_units::{Bytes, Duration, Instant, Rate};

use super::duration;

/// An event at a sender.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Ack {
        segments: u64,
        after: Duration,
        rtt: Option<Duration>,
        cwnd_limited: bool,
        marked: bool,
        counting: AckCounting,
    },
    Congestion(CongestionKind),
    Spurious,
}

impl Event {
    /// A steady ACK 10 ms after the last, or now and then a loss.
    pub(crate) fn plain_ack(loss: bool) -> Self {
        if loss {
            return Self::Congestion(CongestionKind::Loss);
        }
        Self::Ack {
            segments: 1,
            after: Duration::from_millis(10),
            rtt: Some(Duration::from_millis(100)),
            cwnd_limited: true,
            marked: false,
            counting: AckCounting::PerAck,
        }
    }
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let segments = prop_oneof![1 => Just(0), 8 => 1..4_u64, 1 => 1..10_000_u64];
    let counting = prop_oneof![
        Just(AckCounting::PerAck),
        Just(AckCounting::Bytes { limit: 1 }),
        Just(AckCounting::Bytes { limit: 2 }),
        Just(AckCounting::Delivered)
    ];
    let ack = (
        segments,
        duration(),
        prop::option::weighted(0.9, duration()),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        counting,
    )
        .prop_map(|(segments, after, rtt, cwnd_limited, marked, counting)| Event::Ack {
            segments,
            after,
            rtt,
            cwnd_limited,
            marked,
            counting,
        });
    prop_oneof![
        40 => ack,
        2 => Just(Event::Congestion(CongestionKind::Loss)),
        1 => Just(Event::Congestion(CongestionKind::Ecn)),
        1 => Just(Event::Congestion(CongestionKind::Timeout)),
        1 => Just(Event::Spurious),
    ]
}

/// The least of an endpoint that obeys the limits: it recovers in one round and undoes what was spurious.
#[derive(Clone)]
pub(crate) struct Endpoint {
    algorithm: Box<dyn CongestionControl>,
    label: String,
    pub(super) limits: Limits,
    before_congestion: Option<Limits>,
    /// In recovery until this byte is acknowledged.
    recovers_at: Option<u64>,
    now: Instant,
    snd_una: u64,
    snd_nxt: u64,
    /// For each time something was sent: `snd_nxt` after it, `snd_una` and the time.
    sent: VecDeque<(u64, u64, Instant)>,
}

impl Endpoint {
    pub(super) const MSS: Bytes = Bytes::new(1_448);

    pub(crate) fn new(spec: &AlgorithmSpec, segments: u64) -> Self {
        let mut algorithm = spec.build_congestion();
        let mut limits = Limits::initial(Self::MSS * segments);
        algorithm.on_established(Instant::ZERO, &mut limits);
        let mut endpoint = Self {
            algorithm,
            label: spec.label().to_owned(),
            limits,
            before_congestion: None,
            recovers_at: None,
            now: Instant::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            sent: VecDeque::new(),
        };
        endpoint.send();
        endpoint
    }

    fn send(&mut self) {
        let window = self.limits.cwnd.min(self.limits.space).whole(Self::MSS).max(1);
        self.snd_nxt = self.snd_nxt.max(self.snd_una + (Self::MSS * window).get());
        self.sent.push_back((self.snd_nxt, self.snd_una, self.now));
    }

    /// Measured from when the last segment acknowledged by now was sent.
    fn delivery(&mut self, rtt: Option<Duration>, app_limited: bool) -> Option<Delivery> {
        let mut newest = None;
        while let Some(sent) = self.sent.front().copied().filter(|sent| sent.0 <= self.snd_una) {
            newest = self.sent.pop_front().map(|_| sent);
        }
        let (_, una_when_sent, at) = newest?;
        let (total, total_when_sent) = (Bytes::new(self.snd_una), Bytes::new(una_when_sent));
        let elapsed = self.now.saturating_since(at);
        let rate = (elapsed > Duration::ZERO).then(|| Rate::of(total - total_when_sent, elapsed));
        // A peer's clock may show anything.
        let ts_val = Some(self.snd_una.wrapping_mul(0x9e37_79b9) as u32);
        Some(Delivery { total, total_when_sent, rate, app_limited, rtt, ts_val, next_departure: self.now })
    }

    fn flight_size(&self) -> Bytes {
        Bytes::new(self.snd_nxt - self.snd_una)
    }

    pub(crate) fn apply(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match *event {
            Event::Ack { segments, after, rtt, cwnd_limited, marked, counting } => {
                self.now += after;
                let prior_flight_size = self.flight_size();
                let newly_acked = (Self::MSS * segments).min(prior_flight_size);
                self.snd_una += newly_acked.get();
                if self.recovers_at.is_some_and(|recover| self.snd_una >= recover) {
                    self.recovers_at = None;
                }
                let in_recovery = self.recovers_at.is_some();
                let models_delivery = self.algorithm.models_delivery();
                if let Some(delivery) = self.delivery(rtt, !cwnd_limited).filter(|_| models_delivery) {
                    self.algorithm.on_delivery(&delivery);
                }
                let ack = Ack {
                    now: self.now,
                    newly_acked,
                    delivered: newly_acked,
                    marked: if marked { newly_acked } else { Bytes::ZERO },
                    rtt,
                    snd_una: self.snd_una,
                    snd_nxt: self.snd_nxt,
                    flight_size: self.flight_size(),
                    prior_flight_size,
                    snd_wnd: Bytes::new(1 << 30),
                    mss: Self::MSS,
                    cwnd_limited,
                    app_limited: !cwnd_limited,
                    in_recovery,
                    counting,
                    siblings: Siblings::default(),
                };
                let cwnd = self.limits.cwnd;
                self.algorithm.on_ack(&ack, &mut self.limits);
                // Where the rate of delivery is known, it bounds the window.
                if (!cwnd_limited || in_recovery) && !models_delivery {
                    prop_assert!(self.limits.cwnd <= cwnd, "{}: grew a window not used: {ack:?}", self.label);
                }
                if newly_acked == Bytes::ZERO {
                    prop_assert!(
                        self.limits.cwnd <= cwnd,
                        "{}: grew without data acked: {ack:?}",
                        self.label
                    );
                }
                self.check()?;
                self.send();
            }
            Event::Congestion(kind) => {
                self.before_congestion = Some(self.limits);
                let event = Congestion {
                    now: self.now,
                    kind,
                    flight_size: self.flight_size(),
                    used_window: self.flight_size(),
                    snd_nxt: self.snd_nxt,
                    mss: Self::MSS,
                };
                self.algorithm.on_congestion(&event, &mut self.limits);
                self.check()?;
                self.recovers_at = Some(self.snd_nxt);
                self.limits.cwnd = match kind {
                    CongestionKind::Timeout => Self::MSS,
                    CongestionKind::Loss | CongestionKind::Ecn => self.limits.cwnd.min(self.limits.ssthresh),
                };
            }
            Event::Spurious => {
                if let Some(before) = self.before_congestion.take() {
                    self.limits = before;
                    self.recovers_at = None;
                    self.algorithm.on_spurious(self.now, &mut self.limits);
                    self.check()?;
                }
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Self { label, limits, .. } = self;
        prop_assert!(limits.cwnd >= Self::MSS, "{label}: {limits:?}");
        prop_assert!(limits.ssthresh >= Self::MSS * 2, "{label}: {limits:?}");
        prop_assert!(limits.space >= Self::MSS, "{label}: {limits:?}");
        let mut values = Vec::new();
        self.algorithm.probe(&mut values);
        let mut names = BTreeSet::new();
        for (name, value) in values {
            prop_assert!(value.is_finite(), "{label}: {name} is {value}");
            prop_assert!(names.insert(name), "{label}: {name} twice");
        }
        Ok(())
    }
}
