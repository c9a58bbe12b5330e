//! What a connection of the bond may bring: taken, or refused with a reason; never a panic, never more memory than
//! was granted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_algorithms::path::PathId;
use suimon_algorithms::registry::{AlgorithmSpec, Role};
use suimon_bond::frame::{Frame, decode};
use suimon_bond::mux::MuxLimits;
use suimon_bond::session::{Session, SessionConfig};
use suimon_units::{Bytes, Instant};

const LIMITS: MuxLimits =
    MuxLimits { streams: 4, window: 1_000, window_most: 8_000, pool: 10_000, queue: 20_000, packets: 4_000 };

fuzz_target!(|bytes: &[u8]| {
    let config = SessionConfig {
        scheduler: AlgorithmSpec::parse(Role::Path, "look-ahead").expect("the registry has it"),
        reorder_buffer: Bytes::new(10_000),
        send_buffer: Bytes::new(10_000),
        mux: LIMITS,
    };
    let mut session = Session::new(false, &config);
    session.on_peer_buffer(config.reorder_buffer);
    session.path_up(Instant::ZERO, PathId(0), 1);
    let mut at = 0;
    while let Ok(Some((frame, len))) = decode(&bytes[at..]) {
        at += len;
        let taken = match frame {
            Frame::Data { start, bytes } => session.on_data(Instant::ZERO, PathId(0), start, bytes),
            Frame::Feedback(feedback, received) => session.on_feedback(Instant::ZERO, feedback, &received),
            _ => Ok(()),
        };
        let view = session.view();
        assert!(view.reorder_held <= 10_000);
        assert!(view.streams_held <= 4 * 1_000 + LIMITS.pool);
        if taken.is_err() {
            break;
        }
    }
});
