//! The checks that tests on a real kernel share: whether this machine lets links be made, and whether it was in time.

mod names;
mod stillness;

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};

use suimon_linux::{Namespace, Tun, TunOptions, guest};

pub use names::serve_names;
use stillness::Watch;

/// Whether this machine lets namespaces and devices be made; says why where not.
pub fn can_emulate() -> bool {
    let refused = Namespace::new().and_then(|near| Tun::open(&near, "probe", TunOptions::default()));
    if let Err(error) = &refused {
        eprintln!("skipped: {error}");
    }
    refused.is_ok()
}

/// The payload of the panic of [`assert_in_time`].
struct Untimely(String);

/// Ends the test with a problem that a machine that stands still can bring about. See [`assert_in_time`].
pub fn untimely(problem: String) -> ! {
    // A panic's payload is not shown where it is no text.
    eprintln!("not in time: {problem}");
    panic_any(Untimely(problem))
}

/// `assert!` for results that a machine that stands still can break, as goodput and delays: within [`in_time`] only.
///
/// All else stays `assert!`: that no byte is lost, doubled or reordered holds on any machine.
#[macro_export]
macro_rules! assert_in_time {
    ($holds:expr, $($problem:tt)+) => {
        if !$holds {
            $crate::untimely(format!($($problem)+))
        }
    };
}

/// As often as a test is tried while the machine keeps standing still.
const ATTEMPTS: usize = 5;

/// Runs a test in real time, again where an [`assert_in_time`] failed while this machine stood still: such a failure
/// says nothing about the code under test. Says so and skips the test where the machine stood still each time.
///
/// In a guest, whose clock is the count of its instructions, there is no such excuse.
///
/// The code under test cannot excuse itself so: the watch goes before every thread of a link.
///
/// # Panics
/// As `test` does; by an `assert_in_time` only on a machine that was in time.
pub fn in_time(test: impl Fn()) {
    if guest::here().is_some() {
        return test();
    }
    for attempt in 1..=ATTEMPTS {
        let watch = Watch::begin();
        let outcome = catch_unwind(AssertUnwindSafe(&test));
        let stillness = watch.end();
        let Err(failure) = outcome else { return };
        match failure.downcast::<Untimely>() {
            Err(failure) => resume_unwind(failure),
            Ok(untimely) if stillness.is_harmless() => panic!("{}", untimely.0),
            Ok(untimely) => {
                eprintln!("attempt {attempt} of {ATTEMPTS} says nothing, as {stillness}: {}", untimely.0);
            }
        }
    }
    eprintln!("skipped: this machine is not in time");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often a test was tried, and whether it failed.
    fn tried(test: impl Fn()) -> (usize, bool) {
        let count = Cell::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            in_time(|| {
                count.set(count.get() + 1);
                test();
            });
        }));
        (count.get(), outcome.is_err())
    }

    #[test]
    fn what_holds_is_tried_once_as_is_what_never_may_fail() {
        assert_eq!(tried(|| ()), (1, false));
        assert_eq!(tried(|| panic!("a byte was lost")), (1, true));
    }

    #[test]
    fn an_untimely_end_on_a_machine_in_time_is_a_failure() {
        let (count, failed) = tried(|| assert_in_time!(count_of_packets() == 1, "{}", count_of_packets()));
        // On a machine that stands still in all of five moments there is nothing to see.
        assert!(failed || count == ATTEMPTS, "{count}");
    }

    fn count_of_packets() -> u32 {
        2
    }
}
