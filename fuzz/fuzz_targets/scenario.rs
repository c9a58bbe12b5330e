//! Scenario files: a value or a refusal with a message, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suimon_scenario::Document;

fuzz_target!(|text: &str| {
    let runs = Document::parse(text, "input").and_then(|document| document.runs());
    if let Err(error) = runs {
        assert!(!error.to_string().is_empty());
    }
});
