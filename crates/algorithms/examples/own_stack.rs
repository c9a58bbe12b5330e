//! FS-AT over CUBIC in a stack of your own, beside CUBIC alone.
use std::collections::VecDeque;

use suimon_algorithms::congestion::{Ack, Limits};
use suimon_algorithms::registry::{AlgorithmSpec, Role, SpecError};
use suimon_units::{Bytes, Duration, Instant, Rate};

const MSS: Bytes = Bytes::new(1_448);
const PEER: Bytes = Bytes::new(256_000);

fn main() -> Result<(), SpecError> {
    for name in ["cubic", "fs-at+cubic"] {
        let mut sender = AlgorithmSpec::parse(Role::Congestion, name)?.build_congestion();
        let mut limits = Limits::initial(MSS * 10);
        sender.on_established(Instant::ZERO, &mut limits);
        // In place of your network: 2 Mbit/s and 180 ms, with a buffer that is never full.
        let (slot, delay) = (Rate::from_bps(2_000_000).transmission_time(MSS), Duration::from_millis(180));
        let (mut now, mut link_free, mut in_flight) = (Instant::ZERO, Instant::ZERO, VecDeque::new());
        let (mut snd_una, mut snd_nxt) = (0, 0);
        for _ in 0..3_400 {
            // Send what all limits allow. `space` is FS-AT's.
            while snd_nxt - snd_una + MSS.get() <= limits.cwnd.min(limits.space).min(PEER).get() {
                link_free = link_free.max(now) + slot;
                in_flight.push_back((now, link_free + delay));
                snd_nxt += MSS.get();
            }
            // The acknowledgement of the oldest segment arrives.
            let (sent, acked) = in_flight.pop_front().expect("the window holds a segment");
            (now, snd_una) = (acked, snd_una + MSS.get());
            let mut ack = Ack::new(now, MSS, MSS);
            (ack.snd_una, ack.snd_nxt, ack.snd_wnd) = (snd_una, snd_nxt, PEER);
            ack.flight_size = Bytes::new(snd_nxt - snd_una);
            ack.prior_flight_size = ack.flight_size + MSS;
            ack.rtt = Some(now.saturating_since(sent));
            sender.on_ack(&ack, &mut limits);
        }
        println!("{name}: {now}, {} kB in flight", (snd_nxt - snd_una) / 1_000);
    }
    Ok(())
}
