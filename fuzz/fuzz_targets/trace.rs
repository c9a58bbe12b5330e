//! Traces and schedules: a value or a refusal with a message, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_scenario::trace::{Opportunities, RateSchedule};

fuzz_target!(|text: &str| {
    if let Ok(trace) = Opportunities::parse(text, "input") {
        assert_eq!(Opportunities::parse(&trace.to_text(), "input"), Ok(trace));
    }
    if let Err(error) = RateSchedule::parse(text, "input") {
        assert!(!error.to_string().is_empty());
    }
});
