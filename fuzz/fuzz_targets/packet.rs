//! Whatever comes to an emulated link is a packet, several, or refused; and what is a packet can be marked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_algorithms::queue::Packet;
use suimon_emulator::{WirePacket, split};
use suimon_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let mut handed = bytes.to_vec();
    let mut scratch = Vec::new();
    let _ = split(&mut handed, &mut scratch, |packet| {
        if let Ok(mut packet) = WirePacket::new(packet, Instant::ZERO, 0) {
            packet.mark_congestion_experienced();
            assert_eq!(
                packet.key(),
                WirePacket::new(packet.ip(), Instant::ZERO, 0).expect("it was one").key()
            );
        }
    });
});
