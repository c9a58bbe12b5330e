//! The state of a connection's sender, for the program that the connection belongs to: stacks tell it little.

use std::sync::{Arc, Mutex, PoisonError};
use std::time;

use suimon_units::{Bytes, Duration};

/// A view of the sender that drives a connection, or of the one after it where a stack begins anew on another path.
#[derive(Debug, Clone, Default)]
pub struct Watch(Arc<Mutex<Seen>>);

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
}

impl Watch {
    /// The connection now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Seen {
    /// RFC 6298 §2.2 and §2.3.
    pub(crate) fn on_rtt(&mut self, now: time::Instant, sample: Duration) {
        self.latest = Some((sample, now));
        self.rtt = Some(match self.rtt {
            None => (sample, sample / 2),
            Some((srtt, rttvar)) => {
                let deviation = srtt.max(sample) - srtt.min(sample);
                ((srtt * 7 + sample) / 8, (rttvar * 3 + deviation) / 4)
            }
        });
    }
}

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
        let seen = watch.seen();
        let bytes = [seen.sent, seen.acknowledged, seen.in_flight].map(Bytes::get);
        assert_eq!(bytes, [6_000, 2_400, 2_400]);
        // RFC 6298: 80 and 40 ms at first, then 7/8 of 80 with 1/8 of 160, and 3/4 of 40 with 1/4 of 80.
        assert_eq!(seen.rtt, Some((Duration::from_millis(90), Duration::from_millis(50))));
        assert_eq!(seen.latest, Some((Duration::from_millis(160), at(160))));
    }
}
