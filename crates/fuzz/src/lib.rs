//! Mutated input for every reader, in process and on stable Rust, the same for the same seed.
//!
//! [`READERS`] has what this project reads from outside. [`fuzz`] gives a reader the files and texts that it is made for, with
//! parts of them changed, and expects a value or a refusal: neither a panic, nor a long time, nor more memory than the
//! reader's limits allow. The targets of `cargo fuzz`, which look for inputs by coverage and need a nightly compiler, call
//! the same readers.

#![forbid(unsafe_code)]

mod mutate;
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use suimon_algorithms::RandomStream;

pub use readers::READERS;

/// Something that reads bytes from outside.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// Reads an input, and panics where the reader breaks a promise.
    pub read: fn(&[u8]),
    /// Inputs that it is made for.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language.
    pub words: &'static [&'static str],
    /// The part of all inputs that it gets, beside those of the others: quick readers get more.
    pub weight: u64,
}

/// Gives `bytes` to the reader called `name`.
///
/// # Panics
/// Where the reader breaks a promise, or there is none of that name.
pub fn read(name: &str, bytes: &[u8]) {
    let reader = READERS.iter().find(|reader| reader.name == name).expect("a target names a reader");
    (reader.read)(bytes);
}

/// The outcome of a reader's inputs.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Inputs read.
    pub inputs: u64,
    /// Time for all.
    pub took: Duration,
    /// Time of a processor for the input that took longest.
    pub longest: Duration,
}

/// Gives `reader` so many inputs, all of which follow from `seed`.
///
/// # Errors
/// The first input that made it panic, with its number and the bytes.
pub fn fuzz(reader: &Reader, seed: u64, inputs: u64) -> Result<Outcome, String> {
    let seeds = (reader.seeds)();
    let mut random = RandomStream::new(seed, reader.name);
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    for number in 0..inputs {
        let input = mutate::mutated(&mut random, &seeds, reader.words);
        let read_at = processor_time();
        if catch_unwind(AssertUnwindSafe(|| (reader.read)(&input))).is_err() {
            return Err(format!(
                "{}: input {number} of seed {seed} made it panic: {}",
                reader.name,
                input.escape_ascii()
            ));
        }
        longest = longest.max(processor_time() - read_at);
    }
    Ok(Outcome { inputs, took: began.elapsed(), longest })
}

/// Time that this thread has had on a processor: a busy machine does not make a reader slow.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
