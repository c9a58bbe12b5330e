//! Every reader on mutated input: 100 000 of them, or as many as `SUIMON_FUZZ_INPUTS` says, from `SUIMON_FUZZ_SEED` on;
//! only that of `SUIMON_FUZZ_READER`, where it is set.

use std::time::Duration;

use suimon_fuzz::{READERS, fuzz};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("the variable is a number"))
}

/// The most memory that this process has had, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}

/// Mutated input may ask for the most that a reader allows; what takes longer is a fault of the reader's limits.
const LONGEST: Duration = Duration::from_secs(5);
const MOST_MEMORY: u64 = 1_000_000_000;

#[test]
fn every_reader_takes_or_refuses_whatever_comes() {
    let (inputs, seed) = (number("SUIMON_FUZZ_INPUTS", 100_000), number("SUIMON_FUZZ_SEED", 1));
    let only = std::env::var("SUIMON_FUZZ_READER").ok();
    let readers: Vec<_> =
        READERS.iter().filter(|reader| only.as_ref().is_none_or(|only| reader.name == only)).collect();
    let weights: u64 = readers.iter().map(|reader| reader.weight).sum();
    let mut all = 0;
    let mut took = Duration::ZERO;
    for reader in readers {
        let outcome = fuzz(reader, seed, (inputs * reader.weight).div_ceil(weights)).unwrap();
        println!(
            "fuzz: {}: {} inputs, {:.1} s, the longest {:.3} s",
            reader.name,
            outcome.inputs,
            outcome.took.as_secs_f64(),
            outcome.longest.as_secs_f64()
        );
        assert!(outcome.longest < LONGEST, "{}: {:?} for one input", reader.name, outcome.longest);
        all += outcome.inputs;
        took += outcome.took;
    }
    let peak = peak_memory();
    println!(
        "fuzz: {all} inputs of seed {seed}, {:.1} s, {} MB at most",
        took.as_secs_f64(),
        peak / 1_000_000
    );
    assert!(all >= inputs && peak < MOST_MEMORY, "{all} inputs, {peak} bytes");
}
