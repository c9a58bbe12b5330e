//! The state of a connection's sender, for the program that the connection belongs to: stacks tell it little.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

use suimon_units::{Bytes, Duration};

/// A view of the sender that drives a connection, or of the one after it where a stack begins anew on another path, and the program's word
/// to it.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    seen: Seen,
    /// The program keeps to the window itself.
    keeps_window: bool,
}

/// A connection as its sender sees it. Bytes are those of QUIC's packets, as [`Sender`](crate::Sender) counts them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Bytes sent since it began. A stack may count packets that elicit no acknowledgement, too.
    pub sent: Bytes,
    /// Bytes acknowledged since it began.
    pub acknowledged: Bytes,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: Bytes,
    /// The smoothed round-trip time, and the mean deviation of it (RFC 6298 §2); `None` before the first measurement.
    pub rtt: Option<(Duration, Duration)>,
    /// The last round-trip time, and when it was measured.
    pub latest: Option<(Duration, time::Instant)>,
    /// Bytes taken for lost since it began.
    pub lost: Bytes,
    /// Times that congestion was persistent (RFC 9002 §7.6).
    pub persistent: u64,
    /// Before the last acknowledgement the stack had nothing to send.
    pub app_limited: bool,
    /// A probe timeout passed in the last round-trip time.
    timed_out: bool,
}

impl Watch {
    /// The connection now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.lock().seen
    }

    /// `keeps_window` says that the program gives the stack nothing that the window has no room for, and that nothing waits there to be sent
    /// again. The stack then keeps to no window and no pace: while it holds data back it may acknowledge nothing.
    pub fn set_keeps_window(&self, keeps_window: bool) {
        self.lock().keeps_window = keeps_window;
    }

    pub(crate) fn keeps_window(&self) -> bool {
        self.lock().keeps_window
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.lock().seen);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// RFC 6298 §2.2 and §2.3. Where nothing was acknowledged for a probe timeout (RFC 9002 §6.2.1, without the receiver's delay) while
    /// the packet was in flight, an earlier acknowledgement of it may have been lost. Such a sample is left out, as that of a segment sent
    /// again is (RFC 6298 §3). A second one in a row counts: the path has become longer.
    pub(crate) fn on_rtt(&mut self, now: time::Instant, sample: Duration) {
        let before = self.latest.replace((sample, now));
        if let (Some((_, before)), Some((srtt, rttvar))) = (before, self.rtt) {
            let silence = Duration::from_nanos(now.saturating_duration_since(before).as_nanos() as u64);
            let timed_out = silence.min(sample) > srtt + (rttvar * 4).max(GRANULARITY);
            let did_before = std::mem::replace(&mut self.timed_out, timed_out);
            if timed_out && !did_before {
                return;
            }
        }
        self.rtt = Some(match self.rtt {
            None => (sample, sample / 2),
            Some((srtt, rttvar)) => {
                let deviation = srtt.max(sample) - srtt.min(sample);
                ((srtt * 7 + sample) / 8, (rttvar * 3 + deviation) / 4)
            }
        });
    }
}

/// RFC 9002 §6.1.2.
const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, SenderConfig};

    #[test]
    fn a_watch_sees_what_the_sender_does() {
        let (config, watch) = "cubic".parse::<SenderConfig>().unwrap().watched();
        let zero = time::Instant::now();
        let at = |millis| zero + time::Duration::from_millis(millis);
        let mut sender = config.begin(zero, 1_200);
        sender.on_sent(at(0), Bytes::new(6_000));
        sender.on_packet_acked(at(0), Bytes::new(1_200));
        sender.on_acks_end(at(80), Bytes::new(4_800), false);
        sender.on_packet_acked(at(0), Bytes::new(1_200));
        sender.on_congestion(at(160), at(0), Loss::Packets(Bytes::new(1_200)));
        sender.on_acks_end(at(160), Bytes::new(2_400), false);
        assert_eq!((watch.seen().lost, watch.seen().persistent), (Bytes::new(1_200), 0));
        assert!(!watch.seen().app_limited);
        let seen = watch.seen();
        let bytes = [seen.sent, seen.acknowledged, seen.in_flight].map(Bytes::get);
        assert_eq!(bytes, [6_000, 2_400, 2_400]);
        // RFC 6298: 80 and 40 ms at first, then 7/8 of 80 with 1/8 of 160, and 3/4 of 40 with 1/4 of 80.
        assert_eq!(seen.rtt, Some((Duration::from_millis(90), Duration::from_millis(50))));
        assert_eq!(seen.latest, Some((Duration::from_millis(160), at(160))));
        sender.on_congestion(at(900), at(800), Loss::Persistent(Bytes::new(2_400)));
        assert_eq!((watch.seen().lost, watch.seen().persistent), (Bytes::new(3_600), 1));
        sender.on_packet_acked(at(900), Bytes::new(1_200));
        sender.on_acks_end(at(960), Bytes::ZERO, true);
        assert!(watch.seen().app_limited);
    }

    #[test]
    fn a_program_that_keeps_to_the_window_has_the_stack_hold_nothing_back() {
        let (config, watch) = "cubic".parse::<SenderConfig>().unwrap().watched();
        let sender = config.begin(time::Instant::now(), 1_200);
        assert_eq!(sender.window_of_stack(), sender.window());
        watch.set_keeps_window(true);
        // Stacks pace no window of so much.
        assert!(sender.window_of_stack() > Bytes::new(u32::MAX.into()));
        assert_eq!(sender.window(), Bytes::new(12_000));
        watch.set_keeps_window(false);
        assert_eq!(sender.window_of_stack(), sender.window());
    }

    #[test]
    fn a_round_trip_in_which_an_acknowledgement_was_lost_is_none() {
        let zero = time::Instant::now();
        let at = |millis| zero + time::Duration::from_millis(millis);
        let mut seen = Seen::default();
        let mut measure = |now, millis| {
            seen.on_rtt(at(now), Duration::from_millis(millis));
            seen.rtt.unwrap().0.as_nanos() / 1_000_000
        };
        for ms in 0..100 {
            measure(ms, 24);
        }
        assert_eq!(measure(1_100, 1_010), 24, "a cut took the first acknowledgement");
        assert_eq!(measure(1_110, 40), 26, "a queue, with acknowledgements in between");
        for ms in 0..200 {
            measure(1_111 + ms, 24);
        }
        assert_eq!(measure(2_000, 600), 24);
        assert_eq!(measure(3_000, 600), 96, "a path that has become longer, of one packet at a time");
        assert_eq!(measure(3_500, 600), 159, "its timeout is long enough now");
    }
}
