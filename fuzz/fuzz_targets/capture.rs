//! Packet captures: packets or a refusal with a message, never a panic, and memory that stays bounded.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use suimon_capture::{Capture, Truth};

fuzz_target!(|bytes: &[u8]| {
    let mut truth = Truth::new(8);
    let outcome = Capture::new("input", Cursor::new(bytes.to_vec())).and_then(|mut capture| {
        while let Some(packet) = capture.next_packet()? {
            assert!(packet.payload <= packet.size);
            truth.on_packet(&packet);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        assert!(error.to_string().starts_with("input: "));
    }
});
