//! Receive windows.

use proptest::prelude::*;
use suimon_algorithms::receiver::Received;
use suimon_algorithms::registry::{Role, descriptions};
use suimon_units::{Bytes, Instant};

use super::{config, duration, spec};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_window_stays_within_the_buffer_and_its_right_edge_never_retreats(
        buffer in 1_448..10_000_000_u64,
        steps in prop::collection::vec(
            (duration(), prop::option::weighted(0.8, duration()), 0..20_u64, 0..30_u64),
            1..300,
        ),
    ) {
        for description in descriptions(Role::Receiver) {
            let spec = spec(Role::Receiver, description.name);
            let buffer = Bytes::new(buffer);
            let mut receiver = spec.build_receiver(buffer);
            let mss = Bytes::new(1_448);
            let (mut now, mut rcv_nxt, mut read) = (Instant::ZERO, 0, 0);
            let mut advertised = receiver.buffer().get();
            for &(after, timestamp_rtt, arrived, consumed) in &steps {
                now += after;
                rcv_nxt = (rcv_nxt + (mss * arrived).get()).min(advertised);
                read = (read + (mss * consumed).get()).min(rcv_nxt);
                let segment =
                    Received { now, rcv_nxt, advertised, read, timestamp_rtt, mss, header: Bytes::new(52) };
                receiver.on_segment(&segment);
                prop_assert!(receiver.buffer() <= buffer, "{}: {}", spec, receiver.buffer());
                // RFC 9293 §3.8.6: a receiver should not take back what it has advertised.
                let right_edge = rcv_nxt + receiver.buffer().get();
                prop_assert!(right_edge >= advertised, "{}: {} < {}", spec, right_edge, advertised);
                advertised = right_edge;
                let mut values = Vec::new();
                receiver.probe(&mut values);
                prop_assert!(values.iter().all(|(_, value)| value.is_finite()), "{}: {:?}", spec, values);
            }
        }
    }
}
